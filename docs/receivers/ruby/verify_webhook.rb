# frozen_string_literal: true

require "json"
require "openssl"

# Verifies webhook deliveries of the platform. Copy this file; it needs only Ruby 3.0 or later.
module PlatformWebhook
  # The delivery is not accepted: respond with `status`. It is 401 if the delivery is not authentic, and 400 for the code
  # "invalid_payload", whose signature is valid. `code` is the failed check; it is not secret.
  class VerificationError < StandardError
    attr_reader :code, :status

    def initialize(code)
      super
      @code = code
      @status = code == "invalid_payload" ? 400 : 401
    end
  end

  module_function

  # Returns [id, payload]: an id that is the same for every attempt of a delivery, and the parsed body.
  #
  # body: the raw body, a String. headers: a Hash of names and values, in any case, or the Rack environment.
  # secrets: the webhook's whole secret, usually with "whsec_", or the project's public key, "whpk_…", or a list, of which one must match. now: Unix time in seconds.
  # scheme: :standard is webhook-signature, which covers id, time and body. :body is X-Service-Signature, which covers only
  # the body, so that a replayed delivery always verifies; the id is then the SHA-256 of the body.
  # Raises VerificationError, or ArgumentError when an argument is not valid.
  def verify(body:, headers:, secrets:, scheme: :standard, tolerance_seconds: 300, now: Time.now.to_i)
    raise ArgumentError, "body must be the raw body: verify it before it is parsed" unless body.is_a?(String)

    secrets = Array(secrets)
    unless secrets.any? && secrets.all? { |secret| secret.bytesize >= 16 && secret == secret.strip }
      raise ArgumentError, "secrets must be complete (16 bytes or more), without surrounding whitespace"
    end

    bytes = body.b
    given = headers.to_h.transform_keys { |name| name.to_s.downcase.delete_prefix("http_").tr("_", "-") }
    id =
      case scheme
      when :standard then verify_standard(bytes, given, secrets, tolerance_seconds, now)
      when :body then verify_body(bytes, given, secrets)
      else raise ArgumentError, "scheme must be :standard or :body"
      end
    [id, parse(bytes)]
  end

  # Standard Webhooks.
  def verify_standard(bytes, headers, secrets, tolerance_seconds, now)
    id = required(headers, "webhook-id")
    timestamp = required(headers, "webhook-timestamp")
    signature = required(headers, "webhook-signature")
    raise VerificationError, "invalid_timestamp" unless timestamp.match?(/\A[0-9]{1,12}\z/)

    age = now.to_i - timestamp.to_i
    raise VerificationError, "timestamp_too_old" if age > tolerance_seconds
    raise VerificationError, "timestamp_too_new" if age < -tolerance_seconds

    signed = "#{id}.#{timestamp}.".b + bytes
    given = signature.split(/,?\s+/)
    return id if secrets.any? { |secret| public_key?(secret) && signed_by?(secret, signed, given.first(10)) }

    expected = secrets.reject { |secret| public_key?(secret) }.map do |secret|
      "v1,#{[OpenSSL::HMAC.digest("SHA256", standard_key(secret), signed)].pack("m0")}"
    end
    require_match(expected, given)
    id
  end

  # Rejects a public key as a secret: it is published, so any caller could sign with it.
  def public_key?(text)
    text.start_with?("whpk_")
  end

  # The public key of a project, whpk_ and the key in base64, verifies the signatures v1a.
  def signed_by?(key, signed, given)
    # What is before the key in its usual form: RFC 8410, section 4.
    public_key = OpenSSL::PKey.read(["302a300506032b6570032100"].pack("H*") + key.delete_prefix("whpk_").unpack1("m"))
    given.select { |each| each.start_with?("v1a,") }.any? do |each|
      public_key.verify(nil, each.delete_prefix("v1a,").unpack1("m"), signed)
    rescue OpenSSL::PKey::PKeyError
      false
    end
  end

  # The key is the part of the secret after whsec_, decoded from base64. Any other secret is the key itself, as text.
  def standard_key(secret)
    encoded = secret[%r{\Awhsec_((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?)\z}, 1]
    encoded ? encoded.unpack1("m") : secret
  end

  # The key is the whole secret as text.
  def verify_body(bytes, headers, secrets)
    given = "#{required(headers, "x-service-signature")},#{headers["x-service-signature-previous"].to_s.b}"
    expected = secrets.reject { |secret| public_key?(secret) }.map { |secret| "sha256=#{OpenSSL::HMAC.hexdigest("SHA256", secret, bytes)}" }
    require_match(expected, given.split(/,\s*/))
    OpenSSL::Digest.hexdigest("SHA256", bytes)
  end

  def required(headers, name)
    value = headers[name].to_s.b
    raise VerificationError, "missing_header" if value.empty?

    value
  end

  # Compares each expected with each given signature, in constant time per pair.
  def require_match(expected, given)
    matches = expected.product(given).map { |one, other| OpenSSL.secure_compare(one.b, other.b) }
    raise VerificationError, "no_matching_signature" if matches.none?
  end

  def parse(bytes)
    JSON.parse(bytes.dup.force_encoding(Encoding::UTF_8))
  rescue JSON::ParserError
    raise VerificationError, "invalid_payload"
  end

  private_class_method :verify_standard, :verify_body, :public_key?, :signed_by?, :required, :require_match, :parse
end

# frozen_string_literal: true

require "json"
require "openssl"

# Verifies that a delivery comes from the platform. Copy this file: it needs Ruby 3.0 or later, and nothing else.
module PlatformWebhook
  # A delivery that must not be believed: answer 401. `code` says which check failed, and is no secret.
  class VerificationError < StandardError
    attr_reader :code

    def initialize(code)
      super
      @code = code
    end
  end

  module_function

  # Returns [id, payload]: what to recognise a repeated delivery by, and the parsed body.
  #
  # body: the raw body, a String. headers: a Hash of names and values, in any case, or the Rack environment.
  # secrets: the webhook's secret, "whsec_" included, or those that may have signed. now: Unix time in seconds.
  # scheme: :standard is webhook-signature, which covers id, time and body. :body is X-Service-Signature, which covers the
  # body alone, so that a copy of a delivery verifies for ever; the id is the SHA-256 of the body then.
  # Raises VerificationError, or ArgumentError when the caller is wrong.
  def verify(body:, headers:, secrets:, scheme: :standard, tolerance_seconds: 300, now: Time.now.to_i)
    raise ArgumentError, "body must be the raw body: verify before anything parses it" unless body.is_a?(String)

    secrets = Array(secrets)
    unless secrets.any? && secrets.all? { |secret| secret.match?(%r{\Awhsec_[A-Za-z0-9+/]+={0,2}\z}) }
      raise ArgumentError, "secrets must be whsec_ and what follows it, with nothing around it"
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

  # Standard Webhooks. The key is what the part of the secret after whsec_ decodes to in base64.
  def verify_standard(bytes, headers, secrets, tolerance_seconds, now)
    id = required(headers, "webhook-id")
    timestamp = required(headers, "webhook-timestamp")
    signature = required(headers, "webhook-signature")
    raise VerificationError, "invalid_timestamp" unless timestamp.match?(/\A[0-9]{1,12}\z/)

    age = now.to_i - timestamp.to_i
    raise VerificationError, "timestamp_too_old" if age > tolerance_seconds
    raise VerificationError, "timestamp_too_new" if age < -tolerance_seconds

    signed = "#{id}.#{timestamp}.".b + bytes
    expected = secrets.map do |secret|
      key = secret.delete_prefix("whsec_").unpack1("m")
      "v1,#{[OpenSSL::HMAC.digest("SHA256", key, signed)].pack("m0")}"
    end
    require_match(expected, signature.split(/,?\s+/))
    id
  end

  # The key is the whole secret as text.
  def verify_body(bytes, headers, secrets)
    given = "#{required(headers, "x-service-signature")},#{headers["x-service-signature-previous"].to_s.b}"
    expected = secrets.map { |secret| "sha256=#{OpenSSL::HMAC.hexdigest("SHA256", secret, bytes)}" }
    require_match(expected, given.split(/,\s*/))
    OpenSSL::Digest.hexdigest("SHA256", bytes)
  end

  def required(headers, name)
    value = headers[name].to_s.b
    raise VerificationError, "missing_header" if value.empty?

    value
  end

  # Compares all with all, each pair in constant time.
  def require_match(expected, given)
    matches = expected.product(given).map { |one, other| OpenSSL.secure_compare(one.b, other.b) }
    raise VerificationError, "no_matching_signature" if matches.none?
  end

  def parse(bytes)
    JSON.parse(bytes.dup.force_encoding(Encoding::UTF_8))
  rescue JSON::ParserError
    raise VerificationError, "invalid_payload"
  end

  private_class_method :verify_standard, :verify_body, :required, :require_match, :parse
end

# Runs verify_webhook.rb on the test vectors and prints one line per vector. Arguments: its folder, the vectors file.

require "json"
require File.join(ARGV[0], "verify_webhook")

def result_of(vector, headers)
  id, payload = PlatformWebhook.verify(
    body: vector["body"],
    headers: headers,
    secrets: vector["secrets"],
    scheme: vector["scheme"].to_sym,
    now: vector["now"],
  )
  "verified #{id} #{payload["event"]} #{payload.dig("data", "test") == true}"
rescue PlatformWebhook::VerificationError => error
  error.code
end

# As servers for Rack do: repeated headers are one value, with commas.
def rack_environment(headers)
  headers.to_h do |name, value|
    joined = name.casecmp?("webhook-signature") ? value.gsub(" ", ", ") : value
    ["HTTP_#{name.upcase.tr("-", "_")}", joined]
  end
end

JSON.parse(File.read(ARGV[1], encoding: "UTF-8"))["vectors"].each do |vector|
  headers = vector["headers"]
  puts [headers, rack_environment(headers)].map { |each| result_of(vector, each) }.uniq.join(", and from Rack: ")
end

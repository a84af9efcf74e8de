# Runs verify_webhook.rb on the test vectors and prints one line per vector. Arguments: its folder, the vectors file.

require "json"
require File.join(ARGV[0], "verify_webhook")

JSON.parse(File.read(ARGV[1], encoding: "UTF-8"))["vectors"].each do |vector|
  id, payload = PlatformWebhook.verify(
    body: vector["body"],
    headers: vector["headers"],
    secrets: vector["secrets"],
    scheme: vector["scheme"].to_sym,
    now: vector["now"],
  )
  puts "verified #{id} #{payload["event"]} #{payload.dig("data", "test") == true}"
rescue PlatformWebhook::VerificationError => error
  puts error.code
end

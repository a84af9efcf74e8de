# frozen_string_literal: true

# A receiver: gem install webrick, then WEBHOOK_SECRET=whsec_… ruby server.rb
#
# It keeps the ids in memory and may lose work when it ends: otherwise insert a row with the id as its key into your database, and process
# it in a worker. In Rails, Sinatra or Rack, the method `accept` stays as it is.

require "webrick"
require_relative "verify_webhook"

MAX_BYTES = 1_000_000
MAX_IDS = 10_000
SECRETS = ENV.fetch("WEBHOOK_SECRET").split # several during a rotation, with spaces between them

ACCEPTED = Queue.new
KNOWN = {}
LOCK = Mutex.new

def accept(id, payload)
  return if payload["data"]["test"] == true

  LOCK.synchronize do
    return if KNOWN.key?(id)

    KNOWN[id] = true
    KNOWN.shift if KNOWN.size > MAX_IDS
  end
  ACCEPTED << [id, payload]
end

Thread.new do
  loop do
    id, payload = ACCEPTED.pop
    puts "#{payload["event"]} #{id}" # your work
    $stdout.flush
  rescue StandardError => error
    # Allows a manual redelivery. There is no automatic retry, because the response was 2xx.
    LOCK.synchronize { KNOWN.delete(id) }
    warn error.full_message
  end
end

# Reads at most the limit, also of a request that does not say its length.
def body_of(request)
  body = +""
  request.body { |part| (body << part).bytesize > MAX_BYTES && raise(WEBrick::HTTPStatus::RequestEntityTooLarge) }
  body
end

quiet = { Logger: WEBrick::Log.new($stderr, WEBrick::Log::WARN), AccessLog: [] }
server = WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: ENV.fetch("PORT", "4000").to_i, **quiet)
server.mount_proc "/" do |request, response|
  raise WEBrick::HTTPStatus::MethodNotAllowed unless request.request_method == "POST"

  headers = request.header.transform_values { |values| values.join(", ") }
  accept(*PlatformWebhook.verify(body: body_of(request), headers: headers, secrets: SECRETS))
  response.status = 204
rescue PlatformWebhook::VerificationError => error
  response.status = error.status
  response.body = error.code
end
# Any other error is 500: the delivery is retried.
%w[INT TERM].each { |signal| trap(signal) { server.shutdown } }
server.start

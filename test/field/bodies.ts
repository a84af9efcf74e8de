/*
 * Bodies that receivers have refused, or pipelines have sent, in public reports. A new report is one row more: what it is, the report, the text,
 * and what becomes of it.
 */

type Row<Rest extends unknown[]> = [what: string, source: string, ...Rest];

const nested = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;

/** Text of `data` in a message of the pipeline, and what receivers get instead; undefined = the same text. All verifiers accept it. */
export const sentData: Row<[data: string, becomes?: object]>[] = [
  ["a commit message cut inside an emoji", "fazer-ai/agents#218", '{"a":"Ship it \\ud83d"}', { a: "Ship it \ufffd" }],
  ["the second half of an emoji", "elizaOS/eliza#18079", '{"a":"\\ude80 live"}', { a: "\ufffd live" }],
  ["halves in the wrong order", "vertesia/llumiverse#462", '{"a":["\\ude80\\ud83d"]}', { a: ["\ufffd\ufffd"] }],
  ["half an emoji in a name", "ruby/json#1069", '{"\\ud83d":{"a":1}}', { "\ufffd": { a: 1 } }],
  ["a whole emoji as escapes", "octokit/webhooks.js#1155", '{"a":"\\ud83d\\ude80"}', { a: "🚀" }],
  ["an escaped backslash before ud83d", "kodustech/kodus-ai#1683", '{"a":"\\\\ud83d"}'],
  ["NUL and an escape sequence", "turbot/steampipe#292", '{"a":"\\u0000\\u001b[2J"}'],
  ["NUL in a piece of code", "Kilo-Org/cloud#6245", '{"hunk":"@@ -1 +1 @@\\n-a\\u0000b"}'],
  ["NUL in a name", "LuthienResearch/luthien-proxy#816", '{"\\u0000":{"a":"\\u0000"}}'],
  ["NUL and half an emoji", "papercomputeco/tapes#251", '{"a":"\\u0000\\ud83d"}', { a: "\u0000\ufffd" }],
  ["NUL after a backslash", "nyaruka/goflow#1027", '{"a":"\\\\u0000"}'],
  ["64 levels of a body", "pbi-tools/pbi-tools#284", `{"a":${nested(62)}}`],
  ["65 levels", "OneDrive/apidoctor#121", `{"a":1,"b":${nested(63)}}`, { a: 1, b: expect.anything() }],
  ["101 levels", "arangamani/jenkins_api_client#318", `{"a":1,"b":${nested(99)}}`, { a: 1, b: expect.anything() }],
  ["1,500 levels", "contentful/contentful.net#299", `{"a":1,"b":${nested(1_498)}}`, { a: 1, b: expect.anything() }],
  ["5,000 levels", "kontent-ai/delivery-sdk-net#392", `{"a":1,"b":${nested(5_000)}}`, { a: 1, b: expect.anything() }],
  ["an integer beyond 2^53", "webhooksite/webhook.site#76", '{"a":1152921506151679043}'],
  ["an integer beyond 64 bits", "CrowdStrike/gofalcon#507", '{"a":108817150738035204530}'],
  ["an integer of 308 digits", "ballerina-platform/ballerina-lang#13614", `{"a":${"9".repeat(308)}}`],
  ["an integer of 400 digits", "goccy/go-json#599", `{"a":${"7".repeat(400)}}`, { a: "7".repeat(400) }],
  ["an integer of 5,000 digits", "python/cpython#96857", `{"a":[${"7".repeat(5_000)}]}`, { a: ["7".repeat(5_000)] }],
  ["1e999", "goccy/go-json#599", '{"a":1e999,"b":-1E400}', { a: "1e999", b: "-1E400" }],
  ["a number that is almost 0", "LFDT-Paladin/paladin#99", '{"a":1e-400,"b":-0}'],
  ["the notation of a number", "couchbase/sync_gateway#2067", '{"a":10002318,"b":2.50,"c":1E5}'],
];

/** A whole message of the pipeline; the reason of the dead letter, or undefined if it is delivered. */
export const messages: Row<[change: (message: string) => string, reason?: string]>[] = [
  ["a byte order mark", "n8n-io/n8n#35933", (message) => `\ufeff${message}`],
  ["line ends of Windows", "SharePoint/sp-dev-docs#1123", (message) => message.replaceAll(",", ",\r\n")],
  [
    "NaN, which Python writes",
    "apify/apify-client-python#87",
    (message) => message.replace("{}", '{"a":NaN}'),
    "is not JSON",
  ],
  ["quotes of a word processor", "adnanh/webhook#536", (message) => message.replaceAll('"', "\u201c"), "is not JSON"],
  ["a message that ends early", "Liquid4All/ifstruct#3", (message) => message.slice(0, -9), "is not JSON"],
  ["a list of messages", "accensa/x402-facilitator-stellar#199", (message) => `[${message}]`, "must be a JSON object"],
];

/** A signed body that the service does not send. Each verifier accepts it or returns `invalid_payload`, and ends in no other way. */
export const foreignBodies: Row<[body: string]>[] = [
  ["half an emoji", "fazer-ai/agents#218", '{"data":{"a":"\\ud83d"}}'],
  ["half an emoji in a name", "ruby/json#1069", '{"data":{"\\ude80":1}}'],
  ["200 levels", "joshbuddy/jsonpath#141", `{"data":{"a":${nested(200)}}}`],
  ["5,000 levels", "arangamani/jenkins_api_client#318", `{"data":{"a":${nested(5_000)}}}`],
  ["100,000 levels", "codehaus/jettison#12", nested(100_000)],
  ["an integer of 5,000 digits", "miguelgrinberg/python-socketio#1420", `{"data":{"a":${"7".repeat(5_000)}}}`],
  ["1e999", "goccy/go-json#599", '{"data":{"a":1e999}}'],
  ["a byte order mark", "DaveGamble/cJSON#184", '\ufeff{"data":{}}'],
  ["JSON that ends early", "Liquid4All/ifstruct#3", '{"data":{"a":2499999'],
];

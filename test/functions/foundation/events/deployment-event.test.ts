import fc from "fast-check";
import { type DeploymentEvent, deliveryIdOf } from "../../../../functions/foundation/events/deployment-event.ts";
import { parseDeploymentEvent, unchanged } from "../../../../functions/foundation/events/parse-deployment-event.ts";
import { eventNames } from "../../../../functions/foundation/manifest/events.ts";

const started = {
  event: "deploy.started",
  project_id: "01930000-0000-7000-8000-00000000d301",
  deployment_id: "0b0e7d53-3a3e-4b5a-9c7e-2f1d8f0a6c11",
  timestamp: "2026-01-02T03:04:05Z",
};
const succeeded = {
  ...started,
  event: "deploy.succeeded",
  data: { url: "https://app.example.com", status: "running" },
};

function read(message: string | object): DeploymentEvent {
  const result = parseDeploymentEvent(typeof message === "string" ? message : JSON.stringify(message));
  if (!result.ok) throw new Error(result.reason);
  return result.event;
}

/** Returns the message with exactly this text as `data`. */
const withData = (data: string) => `${JSON.stringify(started).slice(0, -1)},"data":${data}}`;
const without = (field: keyof typeof started) => ({ ...started, [field]: undefined });
const nestedObjects = (depth: number) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;

/** A valid message of each kind of `data`. */
const validMessages = {
  "deploy.started": started,
  "deploy.failed": { ...started, event: "deploy.failed", data: { error: "health check timed out", code: 7 } },
  "deploy.succeeded": succeeded,
};

test.each<[string, object]>([
  ...Object.entries(validMessages),
  ...["https://bücher.example/", "https://shop.example/ü?tags=[a|b]", "HTTPS://shop.example/%zz"].map(
    (url): [string, object] => [`deploy.succeeded with ${url}`, { ...succeeded, data: { url, status: "running" } }],
  ),
  ["deploy.succeeded over plain http", { ...succeeded, data: { url: "http://10.0.0.1:8080/x", status: "running" } }],
  ["a fraction of a second", { ...started, timestamp: "2026-01-02T03:04:05.123456789Z" }],
  ["+00:00 for UTC", { ...started, timestamp: "2026-01-02T03:04:05+00:00" }],
  ["lowercase t and z, as RFC 3339 allows", { ...started, timestamp: "2026-01-02t03:04:05z" }],
])("accepts %s and returns a body with exactly the five fields in their order", (_, message) => {
  const { body, event } = read(message);
  expect(Object.keys(JSON.parse(body))).toEqual(["event", "project_id", "deployment_id", "timestamp", "data"]);
  expect(JSON.parse(body)).toEqual({ data: {}, ...message });
  expect(message).toMatchObject({ event });
});

const BAD_URL = "data.url does not fit its schema: String does not match pattern.";
const NO_URL =
  'data does not fit its schema: Instance does not have required property "url". data does not fit its schema: Instance does not have required property "status".';
test.each<[string, string | object, string]>([
  ["text that is not JSON", "deploy.started", "the message is not JSON"],
  ["an empty message", "", "the message is not JSON"],
  ["JSON after two byte order marks", `\ufeff\ufeff${JSON.stringify(started)}`, "the message is not JSON"],
  [
    "an envelope of SNS",
    { Type: "Notification", TopicArn: "arn:aws:sns:x", Message: JSON.stringify(started) },
    "the message is an envelope of SNS: enable raw message delivery for the subscription",
  ],
  [
    "an envelope of EventBridge",
    { version: "0", source: "pipeline", "detail-type": "deploy", detail: started },
    "the message is an envelope of EventBridge: set the input path of the target to $.detail",
  ],
  ["truncated JSON", JSON.stringify(started).slice(0, -1), "the message is not JSON"],
  ["null", "null", "the message must be a JSON object"],
  ["an array", [started], "the message must be a JSON object"],
  ["a string", '"deploy.started"', "the message must be a JSON object"],
  ["no event", without("event"), "event is required"],
  [
    "an unknown event",
    { ...started, event: "deploy.unknown" },
    `event must be one of ${eventNames.join(", ")}; "deploy.unknown" is most like deploy.started`,
  ],
  [
    "several faults",
    { event: "deploy.unknown", project_id: "x", timestamp: "yesterday" },
    `event must be one of ${eventNames.join(", ")}; "deploy.unknown" is most like deploy.started; project_id must be a UUID; deployment_id is required; timestamp must be ISO 8601 in UTC`,
  ],
  ["the fields in its prototype", `{"__proto__":${JSON.stringify(started)}}`, "event is required"],
  ["no project_id", without("project_id"), "project_id is required"],
  ["a project_id that is not a UUID", { ...started, project_id: "42" }, "project_id must be a UUID"],
  ["a project_id that is a number", { ...started, project_id: 42 }, "project_id must be a UUID"],
  ["no deployment_id", without("deployment_id"), "deployment_id is required"],
  [
    "a deployment_id with a trailing newline",
    { ...started, deployment_id: `${started.deployment_id}\n` },
    "deployment_id must be a UUID",
  ],
  ["no timestamp", without("timestamp"), "timestamp is required"],
  ["a timestamp in epoch seconds", { ...started, timestamp: 1767323045 }, "timestamp must be a string"],
  [
    "a timestamp without a time zone",
    { ...started, timestamp: "2026-01-02T03:04:05" },
    "timestamp must be ISO 8601 in UTC",
  ],
  [
    "a timestamp in another time zone",
    { ...started, timestamp: "2026-01-02T03:04:05+01:00" },
    "timestamp must be ISO 8601 in UTC",
  ],
  ["a timestamp that is a date", { ...started, timestamp: "2026-01-02" }, "timestamp must be ISO 8601 in UTC"],
  ["a timestamp in month 13", { ...started, timestamp: "2026-13-02T03:04:05Z" }, "timestamp must be ISO 8601 in UTC"],
  ["data: null", { ...started, data: null }, "data must be a JSON object"],
  ["data: an array", { ...started, data: [] }, "data must be a JSON object"],
  ["data: a string", { ...started, data: "x" }, "data must be a JSON object"],
  ["data: a number", withData("7"), "data must be a JSON object"],
  ["data: a number that keeps its notation", withData("1.0"), "data must be a JSON object"],
  ["data: a number beyond double precision", withData("9007199254740993"), "data must be a JSON object"],
  ["deploy.succeeded without data", { ...succeeded, data: undefined }, NO_URL],
  ["deploy.succeeded with empty data", { ...succeeded, data: {} }, NO_URL],
  [
    "another status",
    { ...succeeded, data: { ...succeeded.data, status: "up" } },
    'data.status does not fit its schema: Instance does not match "running".',
  ],
  [
    "a url that is not a URL",
    { ...succeeded, data: { ...succeeded.data, url: "app.example.com" } },
    `${BAD_URL} data.url does not fit its schema: String does not match format "uri".`,
  ],
  [
    "a url without a host",
    { ...succeeded, data: { ...succeeded.data, url: "https://" } },
    'data.url does not fit its schema: String does not match format "uri".',
  ],
  ["a url of another scheme", { ...succeeded, data: { ...succeeded.data, url: "javascript:alert(1)" } }, BAD_URL],
  [
    "several invalid fields",
    { event: "deploy.failed", project_id: "x", deployment_id: started.deployment_id },
    "project_id must be a UUID; timestamp is required",
  ],
])("rejects %s with a reason", (_, message, reason) => {
  const text = typeof message === "string" ? message : JSON.stringify(message);
  expect(parseDeploymentEvent(text)).toEqual({ ok: false, reason });
});

const IMPLAUSIBLE = { ok: false, reason: "timestamp must be between the year 2000 and a day after the event is sent" };
test.each<[string, string, object]>([
  ["the zero of Go", "0001-01-01T00:00:00Z", IMPLAUSIBLE],
  ["the zero of Unix", "1970-01-01T00:00:00Z", IMPLAUSIBLE],
  ["milliseconds before 2000", "1999-12-31T23:59:59.999Z", IMPLAUSIBLE],
  ["the year 2000", "2000-01-01T00:00:00Z", { ok: true }],
  ["a clock that is a day ahead", "2026-01-03T03:04:05Z", { ok: true }],
  ["more than a day ahead", "2026-01-03T03:04:05.001Z", IMPLAUSIBLE],
  ["the end of time", "9999-12-31T23:59:59Z", IMPLAUSIBLE],
])("a timestamp is checked against the time at which the event was sent: %s", (_, timestamp, expected) => {
  const message = JSON.stringify({ ...started, timestamp });
  expect(parseDeploymentEvent(message, new Date(started.timestamp))).toMatchObject(expected);
  // An event that was accepted before the rule can be replayed.
  expect(parseDeploymentEvent(message)).toMatchObject({ ok: true });
});

test.each([
  ["whole numbers beyond double precision", '{"id":9007199254740993,"big":[123456789012345678901234567890]}'],
  [
    "decimals in their notation",
    '{"a":1.0,"b":1.10,"c":0.1000000000000000055511151231257827,"d":-0,"e":1E5,"f":1e308,"g":1e-400}',
  ],
  ["unknown fields of any kind", '{"x":{"y":[null,true,false,"",{}]},"rawJSON":"1"}'],
  ["a field test that is not true", '{"test":{"failed":3}}'],
  ["the field __proto__", '{"__proto__":{"isAdmin":true},"constructor":1}'],
  ["Unicode", '{"text":"grüße 🚀 日本 \u2028","noncharacter":"\uffff"}'],
  ["an integer of 308 digits", `{"a":${"9".repeat(308)}}`],
  ["63 nested objects, the 64 levels of a body", nestedObjects(63)],
  ["62 nested lists", `{"a":${"[".repeat(62)}${"]".repeat(62)}}`],
  ["the mark of a test delivery in an object", '{"a":{"test":true},"Tests":true}'],
])("passes data on unchanged: %s", (_, data) => {
  const { body } = read(withData(data));
  expect(body).toBe(withData(data));
});

/** What a customer may choose if the pipeline copies it to `data`: each is delivered. */
test.each<[string, string, string, unknown]>([
  [
    "the mark of a test delivery",
    '{"a":1,"test":true}',
    "test is renamed to pipeline_test",
    { pipeline_test: true, a: 1 },
  ],
  ["the mark, as parsers read it that ignore case", '{"Test":true}', "test is renamed", { pipeline_test: true }],
  [
    "the mark with a letter that has the same upper case",
    '{"te\u017ft":true}',
    "test is renamed",
    { pipeline_test: true },
  ],
  ["the mark twice", '{"test":false,"test":true,"TEST":true}', "test is renamed", { pipeline_test: true }],
  ["the mark and the other name", '{"test":true,"pipeline_test":"x"}', "test is renamed", { pipeline_test: "x" }],
  ["the mark and __proto__", '{"__proto__":{"test":true},"test":true}', "test is renamed", expect.anything()],
  ["half an emoji", '{"a":["Ship it \\ud83d"]}', "U+FFFD for halves", { a: ["Ship it \ufffd"] }],
  ["half an emoji in a name", '{"\\ude80a":1}', "U+FFFD for halves", { "\ufffda": 1 }],
  ["a number beyond double range", '{"a":-1e400,"b":1.0}', "strings for numbers", { a: "-1e400", b: 1 }],
  ["an integer of 5,000 digits", `{"a":${"7".repeat(5_000)}}`, "strings for numbers", { a: "7".repeat(5_000) }],
  [
    "a level too many, and keeps exact numbers",
    `{"b":1.10,"a":${"[".repeat(63)}${"]".repeat(63)}}`,
    "null for",
    expect.anything(),
  ],
  ["40,000 nested objects", nestedObjects(40_000), "null for what was nested deeper than 64", expect.anything()],
  [
    "100,000 nested lists",
    `{"a":${"[".repeat(100_000)}${"]".repeat(100_000)},"b":7}`,
    "null for what",
    expect.objectContaining({ b: 7 }),
  ],
  [
    "two of 1,250 nested objects",
    `{"a":${nestedObjects(1_250)},"b":${nestedObjects(1_250)}}`,
    "null for what",
    expect.anything(),
  ],
])("delivers %s, and says what changed", (_, data, changed, expected) => {
  const result = parseDeploymentEvent(withData(data));
  expect(result).toMatchObject({ ok: true, changed: expect.stringContaining(changed) });
  const { body, digest } = read(withData(data));
  expect(JSON.parse(body).data).toEqual(expected);
  // The body is stored, and read again by a replay. It is the same event.
  expect(parseDeploymentEvent(body)).toMatchObject({ ok: true, event: { body, digest } });
  expect(JSON.parse(body).data.test).toBeUndefined();
  expect(JSON.parse(body).event).toBe(started.event);
  expect(read(withData(data)).digest).toBe(read(withData(data)).digest);
});

test("a stored body is read as it is, also one that was stored before the limits", () => {
  const body = withData('{"half":"\\ud83d","a":1e400}');
  expect(parseDeploymentEvent(body, undefined, unchanged)).toMatchObject({ ok: true, event: { body } });
});

test.each(Object.values(validMessages))("renames the mark of a test delivery in $event", (message) => {
  const data = { ...("data" in message && message.data) };
  const { body } = read({ ...message, data: { ...data, test: true } });
  expect(JSON.parse(body).data).toEqual({ ...data, pipeline_test: true });
});

test("passes any object on unchanged (property)", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (data) => {
      const { body } = read(withData(JSON.stringify(data)));
      expect(JSON.stringify(JSON.parse(body).data)).toBe(JSON.stringify(JSON.parse(JSON.stringify(data))));
    }),
  );
});

test("removes unknown top-level fields", () => {
  const { body } = read({ trace_id: "t", ...started, data: { kept: 1 }, secret: "s" });
  expect(JSON.parse(body)).toEqual({ ...started, data: { kept: 1 } });
});

test("sets missing data to {}, also with a polluted __proto__", () => {
  const polluted = `${JSON.stringify(started).slice(0, -1)},"__proto__":{"data":{"evil":1}}}`;
  expect(read(started).body).toBe(withData("{}"));
  expect(read(polluted).body).toBe(withData("{}"));
});

test("converts ids to lower case and keeps the timestamp unchanged", () => {
  const upper = { ...started, project_id: started.project_id.toUpperCase(), timestamp: "2026-01-02T03:04:05.10+00:00" };
  expect(read(upper)).toMatchObject({ project_id: started.project_id, timestamp: "2026-01-02T03:04:05.10+00:00" });
});

test("the digest does not depend on the order of keys", () => {
  const data = { b: [1, { y: 1, x: 2 }], a: { d: 1, c: 2 } };
  const sameData = { a: { c: 2, d: 1 }, b: [1, { x: 2, y: 1 }] };
  const { event, project_id, deployment_id, timestamp } = started;
  const shuffled = { extra: 1, timestamp, data: sameData, deployment_id, project_id, event };
  expect(read(shuffled).digest).toBe(read({ ...started, data }).digest);
  expect(read(started).digest).toBe(read({ ...started, data: {} }).digest);
});

test.each<[string, string, string]>([
  ["another value", withData('{"a":1}'), withData('{"a":2}')],
  ["a number beyond double precision", withData('{"a":9007199254740992}'), withData('{"a":9007199254740993}')],
  ["a number and the same number as a string", withData('{"a":1}'), withData('{"a":"1"}')],
  ["the order of an array", withData('{"a":[1,2]}'), withData('{"a":[2,1]}')],
  ["the field __proto__", withData("{}"), withData('{"__proto__":{}}')],
  ["the event", JSON.stringify(started), JSON.stringify({ ...started, event: "deploy.failed" })],
  ["the deployment", JSON.stringify(started), JSON.stringify({ ...started, deployment_id: started.project_id })],
  ["the time", JSON.stringify(started), JSON.stringify({ ...started, timestamp: "2026-01-02T03:04:05.001Z" })],
])("the digest differs for events that differ in %s", (_, one, other) => {
  expect(read(one).digest).not.toBe(read(other).digest);
});

describe("the delivery id", () => {
  const webhookId = "01930000-0000-7000-8000-00000000aaaa";
  const at = (timestamp: string) => deliveryIdOf(read({ ...started, timestamp }), webhookId);

  test("is a UUIDv7 that contains the time of the event", () => {
    const id = at("2026-01-02T03:04:05.678Z");
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(Number.parseInt(id.replace(/-/g, "").slice(0, 12), 16)).toBe(Date.parse("2026-01-02T03:04:05.678Z"));
  });

  test("sorts by the time of the event", () => {
    const times = [
      "1969-12-31T23:59:59Z",
      "2025-12-31T23:59:59.999Z",
      "2026-01-01T00:00:00+00:00",
      "2026-01-01T00:00:00.001Z",
      "9999-12-31T23:59:59Z",
    ];
    const ids = times.map(at);
    expect([...ids].sort()).toEqual(ids);
    expect(new Set(ids).size).toBe(times.length);
  });

  test("depends on the event and on the webhook only", () => {
    const event = read(started);
    expect(deliveryIdOf(read({ data: {}, ...started }), webhookId)).toBe(deliveryIdOf(event, webhookId));
    expect(deliveryIdOf(event, webhookId.replace("a", "b"))).not.toBe(deliveryIdOf(event, webhookId));
    expect(deliveryIdOf(read({ ...started, data: { a: 1 } }), webhookId)).not.toBe(deliveryIdOf(event, webhookId));
  });
});

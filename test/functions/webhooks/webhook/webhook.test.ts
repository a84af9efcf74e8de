import { webhookEventNames } from "../../../../functions/foundation/manifest/events.ts";
import { parse } from "../../../../functions/foundation/schema/input.ts";
import type { Health } from "../../../../functions/webhooks/webhook/health.ts";
import {
  createWebhook,
  generateSecret,
  toCreated,
  toDetail,
  toListItem,
  toRotated,
  WEBHOOK_RANDOM_BYTES,
  type Webhook,
  webhookInput,
  webhookPatch,
} from "../../../../functions/webhooks/webhook/webhook.ts";

const now = new Date("2026-03-01T12:00:00.000Z");
const random = Buffer.from(Array.from({ length: WEBHOOK_RANDOM_BYTES }, (_, index) => index));
const url = "https://example.com/hook";
const hex = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

test("createWebhook returns the input with an id and a time, and a secret of the random bytes", () => {
  const { webhook, secret } = createWebhook({ url, events: ["deploy.failed"] }, "project-1", now, random);
  expect(secret).toBe(`whsec_${hex}`);
  expect(webhook).toEqual({
    id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
    project_id: "project-1",
    url,
    events: ["deploy.failed"],
    created_at: "2026-03-01T12:00:00.000Z",
  });
});

test.each<[string, object, object]>([
  ["a name", { name: "Chat" }, {}],
  ["a filter", { filter: { branch: ["main"] } }, { filter: null }],
  ["shadow mode", { mode: "shadow" }, { mode: "live" }],
])("a webhook with %s has it in every view, and one without has no such field", (_, fields, none) => {
  const [without, given, withNone] = [{}, fields, none].map((each) => {
    const parsed = parse(webhookInput([]), { url, events: ["deploy.failed"], ...each });
    return createWebhook(parsed, "project-1", now, random).webhook;
  });
  if (without === undefined || given === undefined) throw new Error("nothing was created");
  expect(withNone).toEqual(without);
  expect(given).toEqual({ ...without, ...fields });
  for (const view of [
    (webhook: Webhook) => toListItem(webhook, health),
    (webhook: Webhook) => toDetail(webhook, health),
    (webhook: Webhook) => toRotated(webhook, "whsec_1"),
    (webhook: Webhook) => toCreated(webhook, "whsec_1"),
  ]) {
    expect(Object.keys(view(without))).not.toEqual(expect.arrayContaining(Object.keys(fields)));
    expect(view(given)).toEqual({ ...view(without), ...fields });
  }
});

test("the id of a webhook does not depend on its secret bytes", () => {
  const otherSecret = Buffer.concat([Buffer.alloc(32, 0xff), random.subarray(32)]);
  const idOf = (bytes: Buffer) => createWebhook({ url, events: ["deploy.failed"] }, "project-1", now, bytes).webhook.id;
  expect(idOf(otherSecret)).toBe(idOf(random));
});

test("a secret is valid for Standard Webhooks: the part after the prefix is base64", () => {
  const encoded = generateSecret(random).slice("whsec_".length);
  expect(Buffer.from(encoded, "base64").toString("base64")).toBe(encoded);
});

const created: Webhook = { id: "1", project_id: "2", url, events: ["deploy.failed"], created_at: now.toISOString() };
const disabled: Webhook = { ...created, disabled_at: now.toISOString(), disabled_reason: "gone" };

const health: Health = { state: "healthy", since: null, last_success_at: null, last_error: null, next_probe_at: null };

test("toListItem returns whether a webhook is enabled and the reason of disabling", () => {
  expect(toListItem(created, health)).toEqual({ ...created, enabled: true, disabled_reason: null, health });
  const { disabled_at: _, ...shown } = disabled;
  expect(toListItem(disabled, health)).toEqual({ ...shown, enabled: false, health });
});

test("toDetail returns the time of disabling too, and who changed the webhook", () => {
  const unknown = { created_by: null, updated_by: null, secret_rotated_at: null };
  const enabled = { enabled: true, disabled_reason: null, disabled_at: null };
  expect(toDetail(created, health)).toEqual({ ...created, ...enabled, ...unknown, health });
  expect(toDetail(disabled, health)).toEqual({ ...disabled, enabled: false, ...unknown, health });
});

test("no view of a webhook contains the internal failure state", () => {
  const failing = { ...created, failing_since: now.toISOString(), probe_at: now.toISOString(), change_id: "1" };
  expect(toListItem(failing, health)).toEqual(toListItem(created, health));
  expect(toDetail(failing, health)).toEqual(toDetail(created, health));
  expect(toRotated(failing, "whsec_1")).toEqual(toRotated(created, "whsec_1"));
  expect(toCreated(failing, "whsec_1")).toEqual({ ...created, secret: "whsec_1" });
});

const input = webhookInput([]);
const started = "deploy.started";
const failed = "deploy.failed";
const succeeded = "deploy.succeeded";

test.each([
  ["one", [failed], [failed]],
  ["all, in their original order", [failed, started, succeeded], [failed, started, succeeded]],
  ["a duplicate, which is removed", [failed, failed], [failed]],
  ["several with duplicates", [failed, started, failed, started], [failed, started]],
  ["patterns", ["*", "deploy.*", "webhook.*"], ["*", "deploy.*", "webhook.*"]],
  ["one a hundred times", Array.from({ length: 100 }, () => started), [started]],
])("accepts events that are %s", (_title, events, expected) => {
  expect(parse(input, { url, events })).toEqual({ url, events: expected });
});

const EVENT = `must be one of ${webhookEventNames.join(", ")}, or a pattern for some of them: * or deploy.*`;
const TEXT = "must be the name of an event";
const ARRAY = "must be an array of event names";

test.each([
  ["missing", undefined, [{ path: "events", message: "is required" }]],
  ["null", null, [{ path: "events", message: ARRAY }]],
  ["a string", failed, [{ path: "events", message: ARRAY }]],
  ["an object", { 0: failed, length: 1 }, [{ path: "events", message: ARRAY }]],
  ["empty", [], [{ path: "events", message: "must name at least one event" }]],
  ["more than a hundred", Array(101).fill(failed), [{ path: "events", message: "must not repeat events" }]],
  ["an unknown event", [failed, "deploy.unknown"], [{ path: "events.1", message: EVENT }]],
  ["in upper case", ["DEPLOY.FAILED"], [{ path: "events.0", message: EVENT }]],
  ["with a space", ["deploy.failed "], [{ path: "events.0", message: EVENT }]],
  ["a pattern for no event", ["build.*"], [{ path: "events.0", message: EVENT }]],
  ["a pattern within a word", ["deploy.fail*"], [{ path: "events.0", message: EVENT }]],
  ["a pattern in front", ["*.failed"], [{ path: "events.0", message: EVENT }]],
  ["the name of an inherited field", ["constructor"], [{ path: "events.0", message: EVENT }]],
  ["an array with null", [null], [{ path: "events.0", message: TEXT }]],
  ["nested arrays", [[failed]], [{ path: "events.0", message: TEXT }]],
])("rejects events that are %s", (_title, events, details) => {
  expect(() => parse(input, { url, events })).toThrow(expect.objectContaining({ code: "validation_error", details }));
});

test("parse reports all invalid fields", () => {
  expect(() => parse(input, { url: "http://example.com", events: ["x"], secret: "mine" })).toThrow(
    expect.objectContaining({
      details: [
        { path: "url", message: "must start with https://" },
        { path: "events.0", message: EVENT },
        { path: "secret", message: "is not a known field" },
      ],
    }),
  );
});

const VALUES = Array.from({ length: 20 }, (_, index) => `value ${index}`);

test.each<[string, object]>([
  ["five fields of twenty values", Object.fromEntries(["a", "b", "c", "d", "e"].map((name) => [name, VALUES]))],
  ["a value of 255 characters", { branch: ["é".repeat(255)] }],
  ["a name of 100 characters", { ["é".repeat(100)]: ["x"] }],
  ["a name that objects inherit", { toString: ["x"] }],
  ["* alone", { branch: ["*"] }],
  ["4,096 bytes", { a: VALUES.map((text) => text.padEnd(201, "x")).with(0, "x".repeat(210)) }],
])("accepts a filter with %s", (_, filter) => {
  expect(parse(input, { url, events: [failed], filter })).toEqual({ url, events: [failed], filter });
});

test("duplicate values of a filter are removed", () => {
  const { filter } = parse(input, { url, events: [failed], filter: { branch: ["main", "next", "main"] } });
  expect(filter).toEqual({ branch: ["main", "next"] });
});

const AN_OBJECT = "must be an object with a list of values for each field";
const NAMES =
  "must have fields with names of 1 to 100 characters, without control characters, other than __proto__ and constructor";

test.each<[string, unknown, string, string]>([
  ["a text", "production", "filter", AN_OBJECT],
  ["a list", [["production"]], "filter", AN_OBJECT],
  ["without fields", {}, "filter", "must have 1 to 5 fields, or be null"],
  [
    "of six fields",
    { a: ["1"], b: ["1"], c: ["1"], d: ["1"], e: ["1"], f: ["1"] },
    "filter",
    "must have 1 to 5 fields, or be null",
  ],
  ["with a field without a name", { "": ["x"] }, "filter", NAMES],
  ["with a name of 101 characters", { ["é".repeat(101)]: ["x"] }, "filter", NAMES],
  ["with a line break in a name", { "a\nb": ["x"] }, "filter", NAMES],
  ["with the field constructor", { constructor: ["x"] }, "filter", NAMES],
  ["with the field __proto__", JSON.parse('{"a":["x"],"__proto__":["x"]}'), "filter", NAMES],
  ["with a text instead of a list", { branch: "main" }, "filter.branch", "must be an array"],
  ["with an empty list", { branch: [] }, "filter.branch", "must not be empty"],
  ["with 21 values", { branch: [...VALUES, "21"] }, "filter.branch", "must have at most 20 entries"],
  ["with a number", { pr: [42] }, "filter.pr.0", "must be a string"],
  ["with an empty value", { branch: ["main", ""] }, "filter.branch.1", "must have 1 to 255 characters"],
  ["with a value of 256 characters", { branch: ["é".repeat(256)] }, "filter.branch.0", "must have 1 to 255 characters"],
  [
    "with a control character",
    { branch: ["ma\nin"] },
    "filter.branch.0",
    "must not contain control or invisible characters: it has \\u000a",
  ],
  ["with * at the beginning", { branch: ["*main"] }, "filter.branch.0", "must have * only at its end"],
  ["with two *", { branch: ["release/**"] }, "filter.branch.0", "must have * only at its end"],
  [
    "of 4,097 bytes",
    { a: VALUES.map((text) => text.padEnd(201, "x")).with(0, `é${"x".repeat(209)}`) },
    "filter",
    "must have at most 4096 bytes as JSON",
  ],
])("rejects a filter %s ", (_, filter, path, message) => {
  const rejected = expect.objectContaining({ code: "validation_error", details: [{ path, message }] });
  expect(() => parse(input, { url, events: [failed], filter })).toThrow(rejected);
});

test.each([
  ["HTTPS://Example.com:443/a/../b?x=%7e", "https://example.com/b?x=%7e"],
  ["https://example.com\\@8.8.8.8/", "https://example.com/@8.8.8.8/"],
  ["https://0x8.0x8.2056/hook", "https://8.8.8.8/hook"],
  ["https://example.com/hook", "https://example.com/hook"],
  ["https://example.com", "https://example.com"],
])("the URL %s is stored as it is requested: %s", (sent, expected) => {
  expect(parse(input, { url: sent, events: [failed] }).url).toBe(expected);
  expect(parse(webhookPatch([]), { url: sent })).toEqual({ url: expected });
});

import { webhookEventNames } from "../../../functions/deployments/webhook-event.ts";
import { parse } from "../../../functions/schema/input.ts";
import type { Health } from "../../../functions/webhooks/health.ts";
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
} from "../../../functions/webhooks/webhook.ts";

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

test("a webhook with a name has it in every view, and one without has no such field", () => {
  const nameless = createWebhook({ url, events: ["deploy.failed"] }, "project-1", now, random).webhook;
  const named = createWebhook({ url, name: "Chat", events: ["deploy.failed"] }, "project-1", now, random).webhook;
  const views = [
    (webhook: Webhook) => toListItem(webhook, health),
    (webhook: Webhook) => toDetail(webhook, health),
    (webhook: Webhook) => toRotated(webhook, "whsec_1"),
    (webhook: Webhook) => toCreated(webhook, "whsec_1"),
  ];
  for (const view of views) {
    expect(view(nameless)).not.toHaveProperty("name");
    expect(view(named)).toEqual({ ...view(nameless), name: "Chat" });
  }
});

test("a webhook in shadow mode has its mode in every view, and a live one has no such field", () => {
  const input = { url, events: ["deploy.failed" as const] };
  const [absent, live, shadow] = [
    input,
    { ...input, mode: "live" as const },
    { ...input, mode: "shadow" as const },
  ].map((given) => createWebhook(given, "project-1", now, random).webhook);
  expect(live).toEqual(absent);
  expect(shadow).toEqual({ ...absent, mode: "shadow" });
  if (shadow === undefined) return;
  for (const view of [
    () => toListItem(shadow, health),
    () => toDetail(shadow, health),
    () => toRotated(shadow, "whsec_1"),
    () => toCreated(shadow, "whsec_1"),
  ]) {
    expect(view()).toMatchObject({ mode: "shadow" });
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
  ["one a hundred times", Array.from({ length: 100 }, () => started), [started]],
])("accepts events that are %s", (_title, events, expected) => {
  expect(parse(input, { url, events })).toEqual({ url, events: expected });
});

const EVENT = `must be one of ${webhookEventNames.join(", ")}`;
const ARRAY = "must be an array of event names";

test.each([
  ["missing", undefined, [{ path: "events", message: "is required" }]],
  ["null", null, [{ path: "events", message: ARRAY }]],
  ["a string", failed, [{ path: "events", message: ARRAY }]],
  ["an object", { 0: failed, length: 1 }, [{ path: "events", message: ARRAY }]],
  ["empty", [], [{ path: "events", message: "must name at least one event" }]],
  ["more than a hundred", Array(101).fill(failed), [{ path: "events", message: "must not repeat events" }]],
  ["an unknown event", [failed, "deploy.paused"], [{ path: "events.1", message: EVENT }]],
  ["in upper case", ["DEPLOY.FAILED"], [{ path: "events.0", message: EVENT }]],
  ["with a space", ["deploy.failed "], [{ path: "events.0", message: EVENT }]],
  ["a wildcard", ["*"], [{ path: "events.0", message: EVENT }]],
  ["the name of an inherited field", ["constructor"], [{ path: "events.0", message: EVENT }]],
  ["an array with null", [null], [{ path: "events.0", message: EVENT }]],
  ["nested arrays", [[failed]], [{ path: "events.0", message: EVENT }]],
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

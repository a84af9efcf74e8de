import { randomUUID } from "node:crypto";
import {
  type Attempt,
  createDelivery,
  dueAt,
  expiresAt,
  held,
  isParked,
  MAX_ATTEMPTS,
  MAX_QUEUE_DELAY_SECONDS,
  parkingShardOf,
  shardOf,
  withAttempt,
} from "../../../functions/deliveries/delivery.ts";
import { deliveryIdOf, parseDeploymentEvent } from "../../../functions/deployments/deployment-event.ts";
import { settings } from "../../../functions/platform/env.ts";
import { DEFAULT_LIMITS } from "../../../functions/receivers/receiver-client.ts";
import type { Webhook } from "../../../functions/webhooks/webhook.ts";
import { eventOf } from "../../support/deliveries.ts";

const now = new Date("2026-01-02T03:04:05.678Z");
const webhook: Webhook = {
  id: randomUUID(),
  project_id: randomUUID(),
  url: "https://example.com/",
  events: ["deploy.started"],
  created_at: "2026-01-01T00:00:00.000Z",
};

function newEvent() {
  const message = parseDeploymentEvent(JSON.stringify(eventOf(webhook.project_id)));
  if (!message.ok) throw new Error(message.reason);
  return message.event;
}

test("a new delivery is pending, planned for now, due after the grace period and kept for 30 days", () => {
  const event = newEvent();
  const { due_shard, ...delivery } = createDelivery(event, webhook, now, 120);
  expect(delivery).toEqual({
    webhook_id: webhook.id,
    id: deliveryIdOf(event, webhook.id),
    project_id: webhook.project_id,
    event: "deploy.started",
    deployment_id: event.deployment_id,
    body: event.body,
    status: "pending",
    created_at: "2026-01-02T03:04:05.678Z",
    attempt_count: 0,
    next_attempt_at: "2026-01-02T03:04:05.678Z",
    due_at: "2026-01-02T03:06:05.678Z",
    expires_at: Date.parse("2026-02-01T03:04:05Z") / 1000,
  });
});

test("a held delivery has no planned attempt and no due time", () => {
  const created = createDelivery(newEvent(), webhook, now, 120);
  const { next_attempt_at, due_at, due_shard, ...rest } = created;
  expect(held(created)).toEqual({ ...rest, status: "held" });
});

test("a test delivery is marked as one and is pending even when the webhook is disabled", () => {
  const disabled: Webhook = { ...webhook, disabled_at: now.toISOString(), disabled_reason: "gone" };
  const event = newEvent();
  expect(createDelivery(event, disabled, now, 120, "test")).toEqual({
    ...createDelivery(event, webhook, now, 120),
    test: true,
    trigger: "test",
  });
});

test("deliveries spread over all 32 shards of the due index", () => {
  const shards = Array.from({ length: 1_000 }, () => createDelivery(newEvent(), webhook, now, 120).due_shard);
  expect([...new Set(shards)].sort((a = 0, b = 0) => a - b)).toEqual([...Array(32).keys()]);
});

test("a webhook has a parking of its own, beyond the shards that the sweep reads", () => {
  const ids = Array.from({ length: 1_000 }, () => randomUUID());
  const shards = ids.map(parkingShardOf);
  expect(new Set(shards).size).toBe(1_000);
  expect(Math.min(...shards)).toBeGreaterThanOrEqual(32);
  expect(Math.max(...shards)).toBeLessThan(Number.MAX_SAFE_INTEGER);
  expect(ids.map(parkingShardOf)).toEqual(shards);
  expect(shards.map((due_shard) => isParked({ due_shard }))).toEqual(shards.map(() => true));
  expect([...ids.map((id) => isParked({ due_shard: shardOf(id) })), isParked({})]).not.toContain(true);
});

test.each([
  ["for now is due after the grace period, because it has a message", 0, 120],
  ["in 5 minutes is due a grace period later, because it has a delayed message", 300, 420],
  ["in 15 minutes, the maximum delay, is due a grace period later", 900, 1_020],
  ["a second beyond the maximum delay is due on time, because it has no message", 901, 901],
  ["in 10 hours is due on time", 36_000, 36_000],
])("an attempt that is planned %s", (_, afterSeconds, dueAfterSeconds) => {
  expect(Date.parse(dueAt(now, afterSeconds, 120)) - now.getTime()).toBe(dueAfterSeconds * 1000);
});

test("the default grace period is 120 s, so that the sweep does not repeat an attempt in flight", () => {
  delete process.env.DELIVERY_GRACE_SECONDS;
  expect(settings.deliveryGraceSeconds()).toBe(120);
  expect(settings.deliveryGraceSeconds() * 1000).toBeGreaterThan(2 * DEFAULT_LIMITS.deadlineMs);
});

test("the limits are 50 attempts, 900 s of queue delay and 30 days of retention", () => {
  expect({ MAX_ATTEMPTS, MAX_QUEUE_DELAY_SECONDS }).toEqual({ MAX_ATTEMPTS: 50, MAX_QUEUE_DELAY_SECONDS: 900 });
  expect(expiresAt(new Date("2026-01-01T00:00:00.999Z"))).toBe(1_767_225_600 + 2_592_000);
});

describe("withAttempt", () => {
  const attemptOf = (number: number, changes: Partial<Attempt> = {}): Attempt => {
    const response = {
      status_code: 308,
      error_code: "http_status" as const,
      response_excerpt: "x",
      detail: "https://new.example",
    };
    return { number, at: "2026-03-01T00:00:00.000Z", duration_ms: 3, trigger: "redeliver", ...response, ...changes };
  };

  test("keeps the responses of the newest three attempts only, and everything else of all", () => {
    let attempts: Attempt[] | undefined;
    for (let number = 1; number <= 5; number++) attempts = withAttempt({ attempts }, attemptOf(number));
    const { response_excerpt, detail, ...older } = attemptOf(1);
    expect(attempts).toEqual([older, { ...older, number: 2 }, attemptOf(3), attemptOf(4), attemptOf(5)]);
  });

  test("keeps the cause of an older attempt without a response, which is short", () => {
    const first = attemptOf(1, { status_code: undefined, error_code: "tls_error", detail: "CERT_HAS_EXPIRED" });
    const attempts = withAttempt({ attempts: [first, attemptOf(2), attemptOf(3)] }, attemptOf(4));
    expect(attempts[0]).toMatchObject({ error_code: "tls_error", detail: "CERT_HAS_EXPIRED" });
    expect(attempts[0]).not.toHaveProperty("response_excerpt");
  });
});

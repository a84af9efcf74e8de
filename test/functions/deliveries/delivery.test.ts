import { randomUUID } from "node:crypto";
import { createDelivery, DUE_SHARDS, dueAt } from "../../../functions/deliveries/delivery.ts";
import { deliveryIdOf, readDeploymentEvent } from "../../../functions/deployments/deployment-event.ts";
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
  const message = readDeploymentEvent(JSON.stringify(eventOf(webhook.project_id)));
  if (!message.ok) throw new Error(message.reason);
  return message.event;
}

test("a new delivery is pending, planned for now, due after the grace, and kept for 30 days", () => {
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

test("the delivery to a disabled webhook is held and has no due time", () => {
  const disabled: Webhook = { ...webhook, disabled_at: now.toISOString(), disabled_reason: "gone" };
  const delivery = createDelivery(newEvent(), disabled, now, 120);
  expect(delivery.status).toBe("held");
  for (const field of ["next_attempt_at", "due_shard", "due_at"]) expect(delivery).not.toHaveProperty(field);
});

test("a sample is marked as one, and pending although the webhook is disabled", () => {
  const disabled: Webhook = { ...webhook, disabled_at: now.toISOString(), disabled_reason: "gone" };
  const event = newEvent();
  expect(createDelivery(event, disabled, now, 120, "test")).toEqual({
    ...createDelivery(event, webhook, now, 120),
    test: true,
    trigger: "test",
  });
});

test("deliveries spread over all shards of the due index", () => {
  const shards = Array.from({ length: 1_000 }, () => createDelivery(newEvent(), webhook, now, 120).due_shard);
  expect([...new Set(shards)].sort((a = 0, b = 0) => a - b)).toEqual([...Array(DUE_SHARDS).keys()]);
});

test.each([
  ["now: the queue has it, the sweep waits for the grace", 0, 120],
  ["in minutes: the queue delays it, the sweep waits for the grace after that", 300, 420],
  ["in 15 minutes, as long as the queue can delay", 900, 1_020],
  ["later: no message is under way, the sweep hands it over on time", 901, 901],
  ["in hours", 36_000, 36_000],
])("an attempt that is planned %s", (_, afterSeconds, dueAfterSeconds) => {
  expect(Date.parse(dueAt(now, afterSeconds, 120)) - now.getTime()).toBe(dueAfterSeconds * 1000);
});

test("the grace outlasts an attempt, so that the sweep does not repeat one that is being made", () => {
  delete process.env.DELIVERY_GRACE_SECONDS;
  expect(settings.deliveryGraceSeconds() * 1000).toBeGreaterThan(2 * DEFAULT_LIMITS.deadlineMs);
});

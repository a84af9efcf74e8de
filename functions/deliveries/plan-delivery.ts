import type { WebhookEvent } from "../deployments/webhook-event.ts";
import { settings } from "../platform/env.ts";
import { checkCircuit } from "../webhooks/circuit-breaker.ts";
import { holdsDeliveries } from "../webhooks/suspension.ts";
import type { Webhook } from "../webhooks/webhook.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { createDelivery } from "./delivery.ts";
import { fitsInMessage, laneOf } from "./delivery-queue.ts";
import * as deliveries from "./delivery-store.ts";
import { hold } from "./hold.ts";
import type { Outgoing } from "./outbox.ts";
import { ensureWakeUp } from "./parking-store.ts";

/**
 * How long a delivery waits whose event was handed over before. Its first message usually ends it in this time, so that
 * a duplicate event leads to no second request.
 */
const DUPLICATE_DELAY_SECONDS = 30;

/**
 * Plans the delivery of an event to a webhook. A healthy webhook gets a message that carries the delivery. In all other
 * cases the row comes first. A row that exists already was inserted for the same event before: its message is enqueued,
 * or the sweep will enqueue it.
 * @param isNew false when the event was handed over before, so that a message may exist that carries the delivery
 * @param delaySeconds of the message for a row
 * @returns the message to send, or the row that needs none; empty when the row existed
 */
export async function planDelivery(
  event: WebhookEvent,
  webhook: Webhook,
  receivedAt: Date,
  isNew: boolean,
  delaySeconds = isNew ? 0 : DUPLICATE_DELAY_SECONDS,
): Promise<Outgoing[]> {
  const now = new Date();
  const created = createDelivery(event, webhook, now, settings.deliveryGraceSeconds() + delaySeconds);
  const delivery = { ...created, event_received_at: receivedAt.toISOString() };
  if (holdsDeliveries(webhook)) {
    const result = await hold(delivery, false, async () =>
      (await webhooks.list(webhook.project_id)).find(({ id }) => id === webhook.id),
    );
    if (result.kind === "held") return [{ kind: "stored", delivery }];
    if (result.kind === "changed") return [];
    return [{ kind: "due", delivery: result.delivery, lane: laneOf(webhook), delaySeconds: 0 }];
  }
  const circuit = checkCircuit(webhook, now);
  if (circuit.kind === "open") {
    await ensureWakeUp(webhook, circuit.probeAt);
    const isParked = await deliveries.insertParked(delivery, circuit.probeAt.toISOString());
    return isParked ? [{ kind: "stored", delivery }] : [];
  }
  const lane = laneOf(webhook);
  if (isNew && lane === "normal" && fitsInMessage(delivery)) return [{ kind: "first", delivery }];
  return (await deliveries.insert(delivery)) ? [{ kind: "due", delivery, lane, delaySeconds }] : [];
}

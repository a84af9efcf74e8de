import type { WebhookEvent } from "../deployments/webhook-event.ts";
import { checkCircuit } from "../webhooks/circuit-breaker.ts";
import { holdsDeliveries } from "../webhooks/suspension.ts";
import type { Webhook } from "../webhooks/webhook.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { afterDuplicate, enterAll, holdNew, type NewWaiting } from "./backlog.ts";
import { createDelivery, type Delivery } from "./delivery.ts";
import { fitsInMessage } from "./delivery-queue.ts";
import * as deliveries from "./delivery-store.ts";

/**
 * `carried`: a message is to carry the delivery. `waits`: it is to wait in the backlog. `stored`: it has a row now.
 * `known`: it had one before.
 */
export type PlannedDelivery =
  | { kind: "carried"; webhook: Webhook; delivery: Delivery }
  | ({ kind: "waits" } & NewWaiting)
  | { kind: "stored" }
  /** `row`: as it was read; absent when another process has just inserted it. */
  | { kind: "known"; webhook: Webhook; row?: Delivery };

/**
 * Whether an event was handed to the senders before:
 * - `no`: it was not.
 * - `perhaps`: a message may exist that carries the delivery.
 * - `never`: no message carries it, because its row comes first each time. A row that exists is from a call before.
 */
type HandedOver = "no" | "perhaps" | "never";

/** Returns whether a message may carry the first attempt: the receiver is not known to be slow or down. */
export const isHealthy = (webhook: Webhook, now: Date): boolean =>
  webhook.slow_since === undefined && checkCircuit(webhook, now).kind === "closed";

/**
 * Plans the delivery of an event to a webhook. A message carries that of a new event for a healthy webhook. In all other
 * cases the row comes first, written by this function or the caller. Its id is derived from event and webhook, so that a
 * repetition leads to the same row.
 */
export async function planDelivery(
  event: WebhookEvent,
  webhook: Webhook,
  receivedAt: Date,
  handedOver: HandedOver,
): Promise<PlannedDelivery> {
  const now = new Date();
  const delivery = createDelivery(event, webhook, now, receivedAt);
  // Most duplicates arrive when the row exists: a read instead of four writes.
  const row = handedOver === "no" ? undefined : await deliveries.find(webhook.id, delivery.id);
  if (row) return { kind: "known", webhook, row };
  const isCarried = handedOver === "no" && isHealthy(webhook, now) && fitsInMessage(delivery);
  if (isCarried && !holdsDeliveries(webhook)) return { kind: "carried", webhook, delivery };
  if (!holdsDeliveries(webhook)) {
    return { kind: "waits", webhook, delivery, due: handedOver === "perhaps" ? afterDuplicate(now) : now };
  }
  const readWebhook = async () => (await webhooks.list(webhook.project_id)).find(({ id }) => id === webhook.id);
  return (await holdNew(delivery, readWebhook)) ? { kind: "stored" } : { kind: "known", webhook };
}

/**
 * Stores the planned deliveries that wait.
 * @returns the number of those that had no row
 * @throws the first error, after all calls have ended
 */
export async function storeWaiting(planned: readonly PlannedDelivery[]): Promise<number> {
  const { added, lost } = await enterAll(planned.flatMap((each) => (each.kind === "waits" ? each : [])));
  for (const error of lost.values()) throw error;
  return added;
}

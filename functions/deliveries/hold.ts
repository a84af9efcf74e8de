import { settings } from "../platform/env.ts";
import { holdsDeliveries } from "../webhooks/suspension.ts";
import type { Webhook } from "../webhooks/webhook.ts";
import { type Delivery, held, type PendingDelivery } from "./delivery.ts";
import * as deliveries from "./delivery-store.ts";

/** `changed`: the row exists already, or is no longer as read. `reopened`: the delivery is pending and not enqueued. */
export type HoldResult = { kind: "held" } | { kind: "changed" } | { kind: "reopened"; delivery: PendingDelivery };

/**
 * Holds a delivery of a webhook that is disabled or whose project is suspended. Opens it again when neither is true any
 * more: a recovery may have run before the row was held, and would not find it again.
 *
 * Callers hold only what `holdsDeliveries` is true for: with any other reason, it would be opened again at once.
 *
 * Not a transaction with a check of the webhook: concurrent transactions on one item conflict, so a busy disabled
 * webhook would delay the events of all projects.
 * @param isStored whether the delivery has a row
 * @param readWebhook reads the webhook, strongly consistent
 */
export async function hold(
  delivery: Delivery,
  isStored: boolean,
  readWebhook: () => Promise<Webhook | undefined>,
): Promise<HoldResult> {
  const isHeld = isStored
    ? await deliveries.hold(delivery)
    : await deliveries.insert(held(delivery as PendingDelivery));
  if (!isHeld) return { kind: "changed" };
  const webhook = await readWebhook();
  if (!webhook || holdsDeliveries(webhook)) return { kind: "held" };
  const [reopened] = await deliveries.rescheduleAll([{ ...delivery, status: "held" }], settings.deliveryGraceSeconds());
  return reopened ? { kind: "reopened", delivery: reopened as PendingDelivery } : { kind: "changed" };
}

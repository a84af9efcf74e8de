import type { WebhookEvent } from "../../foundation/events/webhook-event.ts";
import { allEnded, inParallel } from "../../foundation/platform/parallel.ts";
import { addSeconds } from "../../foundation/platform/time.ts";
import { checkCircuit } from "../../webhooks/webhook/circuit-breaker.ts";
import { holdsDeliveries } from "../../webhooks/webhook/suspension.ts";
import type { Webhook } from "../../webhooks/webhook/webhook.ts";
import { afterDuplicate, type Entering, enter, holdNew } from "../line/backlog.ts";
import { createDelivery, type Delivery } from "../line/delivery.ts";
import { enqueue, fitsInMessage } from "../line/delivery-queue.ts";
import * as deliveries from "../line/delivery-store.ts";

/** A new delivery, and where it goes. */
export interface PlannedDelivery extends Entering {
  webhook: Webhook;
  /**
   * `carried`: a message is to carry the delivery. `waits`: it is to wait in the backlog. `held`: its webhook holds its
   * deliveries. `known`: it had a row before, which is `delivery`.
   */
  kind: "carried" | "waits" | "held" | "known";
}

/**
 * Whether the deliveries of an event were dispatched before:
 * - `no`: they were not.
 * - `perhaps`: a message may exist that carries the delivery.
 * - `never`: no message carries it, because its row comes first each time. A row that exists is from a call before.
 */
type Dispatched = "no" | "perhaps" | "never";

/** Returns whether a message may carry the first attempt: the receiver is not known to be slow or down. */
export const isHealthy = (webhook: Webhook, now: Date): boolean =>
  webhook.slow_since === undefined && checkCircuit(webhook, now).kind === "closed";

/**
 * Plans the delivery of an event to a webhook. A message carries that of a new event for a healthy webhook. In all other
 * cases the row comes first. Its id is derived from event and webhook, so that a repetition leads to the same row.
 */
export async function planDelivery(
  event: WebhookEvent,
  webhook: Webhook,
  receivedAt: Date,
  dispatched: Dispatched,
): Promise<PlannedDelivery> {
  const now = new Date();
  const delivery = createDelivery(event, webhook, now, receivedAt);
  const isCarried = dispatched === "no" && isHealthy(webhook, now) && fitsInMessage(delivery);
  const sentAt = new Date(addSeconds(now, webhook.settle_seconds ?? 0));
  // SQS may accept a message although the call fails.
  const due = isCarried || dispatched === "perhaps" ? afterDuplicate(sentAt) : sentAt;
  // Most duplicates arrive when the row exists: a read instead of four writes.
  const row = dispatched === "no" ? undefined : await deliveries.find(webhook.id, delivery.id);
  if (row) return { kind: "known", webhook, delivery: row, due };
  if (holdsDeliveries(webhook)) return { kind: "held", webhook, delivery, due };
  return { kind: isCarried ? "carried" : "waits", webhook, delivery, due };
}

/** Lines that deliveries enter at once. */
const PARALLEL_LINES = 10;
/** Deliveries that are held at once. */
const PARALLEL_HOLDS = 25;

/**
 * Enqueues the deliveries that messages are to carry, and stores all others that have no row. What SQS does not accept waits.
 * @returns the number of new rows, and the deliveries that are neither in the queue nor in the table, with the error
 */
export async function dispatch(
  planned: readonly PlannedDelivery[],
): Promise<{ stored: number; lost: Map<Delivery, unknown> }> {
  const ofKind = (kind: PlannedDelivery["kind"]) => planned.filter((each) => each.kind === kind);
  // A message is delayed for as long as a state waits for a newer one.
  const carried = [...Map.groupBy(ofKind("carried"), ({ webhook }) => webhook.settle_seconds ?? 0)];
  const refused = await allEnded(
    carried.map(([seconds, group]) =>
      enqueue(
        group.map(({ delivery }) => ({ kind: "first" as const, delivery })),
        seconds,
      ),
    ),
  );
  const rejected = new Set(refused.flat().map(({ delivery }) => delivery));
  const lost = new Map<Delivery, unknown>();
  const waiting = planned.filter(({ kind, delivery }) => kind === "waits" || rejected.has(delivery));
  // The deliveries of one webhook share the write of its wake-up.
  const lines = [...Map.groupBy(waiting, ({ webhook }) => webhook)];
  const entered = await inParallel(lines, PARALLEL_LINES, ([webhook, line]) =>
    enter(webhook, line).catch((error: unknown) => {
      for (const { delivery } of line) lost.set(delivery, error);
      return [];
    }),
  );
  const held = await inParallel(ofKind("held"), PARALLEL_HOLDS, ({ delivery }) =>
    holdNew(delivery).catch((error: unknown) => void lost.set(delivery, error)),
  );
  const rows = [...entered.flat().map(({ isWritten }) => isWritten), ...held];
  return { stored: rows.filter((isNew) => isNew).length, lost };
}

/**
 * Stores planned deliveries as `dispatch` does.
 * @returns the number of new rows
 * @throws the first error, after all calls have ended
 */
export async function store(planned: readonly PlannedDelivery[]): Promise<number> {
  const { stored, lost } = await dispatch(planned);
  for (const error of lost.values()) throw error;
  return stored;
}

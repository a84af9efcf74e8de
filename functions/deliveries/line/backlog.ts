import { settings } from "../../foundation/platform/env.ts";
import { inParallel } from "../../foundation/platform/parallel.ts";
import { addSeconds } from "../../foundation/platform/time.ts";
import { nextSendAt } from "../../webhooks/webhook/circuit-breaker.ts";
import { holdsDeliveries } from "../../webhooks/webhook/suspension.ts";
import { wake } from "../../webhooks/webhook/wake-up-store.ts";
import type { Webhook } from "../../webhooks/webhook/webhook.ts";
import * as webhooks from "../../webhooks/webhook/webhook-store.ts";
import { callWorker, type LineVisit } from "../../webhooks/webhook/worker-call.ts";
import { type Place, placeOf, putPlace, removePlace } from "./backlog-store.ts";
import { type Change, change } from "./change-delivery.ts";
import { type Delivery, isOnRequest } from "./delivery.ts";
import { inserted, insertedHeld, type PlaceKey, reopened, type Transition } from "./delivery-transitions.ts";

/*
 * The way into the backlog of a webhook (backlog-store.ts): place, wake-up, row, message, in this order. Whichever write is
 * the last one before a crash, a row that waits has a place, and a wake-up that is not later.
 */

/** When a delivery is due that a message may carry too: the message usually ends it before. */
export const afterDuplicate = (now: Date): Date => new Date(addSeconds(now, settings.duplicateSeconds()));

/** A row that enters the backlog. */
export interface Entering {
  /** The row as the caller knows it; without a version, the caller believes that none exists. */
  delivery: Delivery;
  due: Date;
  /** A user waits for it; absent = no. */
  isAsked?: boolean;
  /**
   * Lets the row wait at the place. Called again, with another place, if another process may have removed the first. Absent = the
   * delivery is new, and gets its row.
   */
  transition?: (place: PlaceKey) => Transition;
}

/** Rows that enter at once. */
const PARALLEL_WRITES = 50;

/**
 * Lets rows of one webhook wait, and calls its worker if no look at the line was planned so early. A row that exists, or
 * has changed, so that it does not enter, stays as it is.
 * @param visit in which they enter: its worker looks at the line again before its end; absent = the worker is called
 * @returns what became of each row, in the order given
 */
export async function enter(webhook: Webhook, entering: readonly Entering[], visit?: LineVisit): Promise<Change[]> {
  if (entering.length === 0) return [];
  const now = new Date();
  const placed = entering.map((row) => ({ ...row, place: placeOf(row.delivery, row.due, row.isAsked) }));
  const at = new Date(Math.min(...placed.map(({ place }) => lookAt(webhook, place, now).getTime())));
  await inParallel(placed, PARALLEL_WRITES, ({ place }) => putPlace(place));
  let isFirst = !visit && (await wake(webhook, at));
  const changes = await inParallel(placed, PARALLEL_WRITES, async ({ place, delivery, due, isAsked, ...row }) => {
    const transition = row.transition ?? ((to) => inserted(delivery, to));
    const places = [place];
    const result = await change(delivery, transition(place), async () => {
      const next = placeOf(delivery, due, isAsked);
      places.push(next);
      await putPlace(next);
      // The visit that has removed the first place may have removed the wake-up too.
      if (!visit && (await wake(webhook, at))) isFirst = true;
      return transition(next);
    });
    for (const { entry } of places) if (result.row?.place !== entry) await removePlace(webhook.id, entry);
    return result;
  });
  if (isFirst) await callWorker(webhook, at);
  return changes;
}

/**
 * Returns when the worker is to look at a place: while the circuit is open, at the time of the next probe.
 * @param webhook undefined = it is deleted
 */
export function lookAt(webhook: Webhook | undefined, { due, is_asked }: Place, now: Date): Date {
  if (is_asked) return now;
  return !webhook || holdsDeliveries(webhook) ? new Date(due) : nextSendAt(webhook, new Date(due), now);
}

/**
 * Holds a new delivery of a webhook that is disabled or whose project is suspended. Reads the webhook again, and lets the
 * delivery wait if it holds no deliveries any more: a recovery may have run before the row existed, and would not find it.
 * @returns false when its row exists already
 */
export async function holdNew(delivery: Delivery): Promise<boolean> {
  const { row, isWritten } = await change(delivery, insertedHeld(delivery));
  if (row?.status !== "held") return isWritten;
  const webhook = await webhooks.find(delivery.project_id, delivery.webhook_id);
  // Of a subscription the row does not say whether its project is suspended: its delivery stays held until a recovery.
  if (!webhook || webhook.subscription || holdsDeliveries(webhook)) return isWritten;
  const due = afterDuplicate(new Date());
  await enter(webhook, [{ delivery: row, due, transition: (place) => reopened(undefined, place) }]);
  return isWritten;
}

/** Puts back the place of a row that waits, which a restored table may lack. If the row has left it meanwhile, it is a leftover. */
export async function putBack(webhook: Webhook, delivery: Delivery): Promise<void> {
  const { status, place: entry, next_attempt_at } = delivery;
  if (status !== "pending" || entry === undefined || next_attempt_at === undefined) return;
  const place = { ...placeOf(delivery, new Date(next_attempt_at), isOnRequest(delivery)), entry };
  const at = lookAt(webhook, place, new Date());
  await putPlace(place);
  if (await wake(webhook, at)) await callWorker(webhook, at);
}

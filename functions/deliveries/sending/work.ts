import { log } from "../../foundation/platform/log.ts";
import { randomId } from "../../foundation/platform/random-id.ts";
import { addSeconds, laterOf } from "../../foundation/platform/time.ts";
import { findUsable } from "../../webhooks/subscription/subscription-store.ts";
import * as receiverState from "../../webhooks/webhook/receiver-state-store.ts";
import { holdsDeliveries } from "../../webhooks/webhook/suspension.ts";
import { endVisit, lease } from "../../webhooks/webhook/wake-up-store.ts";
import type { Webhook } from "../../webhooks/webhook/webhook.ts";
import { callWorker, type WorkCall } from "../../webhooks/webhook/worker-call.ts";
import { lookAt } from "../line/backlog.ts";
import { type Place, placePages, removePlace } from "../line/backlog-store.ts";
import { change } from "../line/change-delivery.ts";
import type { Delivery } from "../line/delivery.ts";
import { readForRequest } from "../line/delivery-store.ts";
import { cancelled, held, reopened } from "../line/delivery-transitions.ts";
import { isHeldBy } from "../log/waiting.ts";
import { makeAttempt } from "./attempt.ts";
import { supersede } from "./newer-states.ts";
import { type NextPlaces, readNext } from "./next-places.ts";
import { hasTimeToAttempt } from "./time-left.ts";
import { turnOf } from "./turn.ts";
import { Visit } from "./visit.ts";

/*
 * The worker of a webhook: visits its line and sends what is due, what users wait for first, then the oldest. One worker
 * per webhook at a time, because it leases the wake-up until its process has ended for certain. So no receiver, and no
 * number of deliveries, occupies more than one sender per webhook.
 */

/** Requests in flight at once, of one line and of all lines in this process, which share them. */
export const AT_ONCE = 50;
/** Of each line in any case. */
const MIN_AT_ONCE = 5;
/** Places read at once to plan the next look: as many as one read unit has. */
const LOOK_SIZE = 15;
/** How long the lease lasts after the process has ended: longer than two clocks differ. */
const LEASE_MARGIN_MS = 5_000;
/** The longest time that a process lives; it applies where no limit is known. */
const MAX_LIFE_MS = 60_000;
/** A place without a row is kept for this long: its row may be about to be written. */
const LEFTOVER_SECONDS = 120;
/**
 * When a line is looked at again: for a row that may be about to be written, after failures in a row, after an error. By then
 * an outcome is recorded whose first record failed.
 */
const UNWRITTEN_PAUSE_SECONDS = 5;
const FAILING_PAUSE_SECONDS = 10;
const ERROR_PAUSE_SECONDS = 60;
/** Tries to plan the next look while rows keep entering, and when the line is looked at again after the last one. */
const MAX_PLANS = 3;
const BUSY_PAUSE_SECONDS = 1;
/** After this many failures in a row the receiver seems to be down. Its circuit opens soon. */
const MAX_FAILURES = 3;

/** Lines that this process works on. A batch of ten calls shares its memory and processor. */
let lines = 0;

const fromNow = (seconds: number): Date => new Date(addSeconds(new Date(), seconds));

/**
 * Sends what is due in the line of a webhook, until nothing is left, the receiver seems to be down, or the time is up.
 * Does nothing when the line is not due, or another worker has it.
 * @param remainingMs returns the time until Lambda stops the function
 */
export async function work({ project_id, webhook_id }: WorkCall, remainingMs: () => number): Promise<void> {
  log.tag({ project_id, webhook_id });
  const [key, leaseId] = [{ project_id, id: webhook_id }, randomId()];
  const now = new Date();
  const until = new Date(now.getTime() + Math.min(MAX_LIFE_MS, remainingMs()) + LEASE_MARGIN_MS);
  const wakeUp = await lease(key, leaseId, now, until);
  if (!wakeUp) return;
  const next = await visitLine(new Visit(key, remainingMs, leaseId, wakeUp));
  if (next) await callWorker(key, next);
}

/** @returns when the line is looked at next; undefined = nothing waits */
async function visitLine(visit: Visit): Promise<Date | undefined> {
  lines += 1;
  try {
    const first = await readNext(visit);
    const sent = () => sendAll(visit, first);
    await (first.places.length > 1 ? log.batchMetrics(sent) : sent());
    if (!visit.isUnrecorded) return await planNextLook(visit);
  } catch (error) {
    log.error("line not served", error, {}, { messagesFailed: 1 });
  } finally {
    lines -= 1;
  }
  const pause = fromNow(ERROR_PAUSE_SECONDS);
  await endVisit(visit.key, visit.leaseId, pause, { keptUntil: pause });
  return pause;
}

/**
 * Serves the places that were read and what follows, several at once. A receiver that fails gets one request at a time until
 * it accepts one, besides what users wait for: fifty that fail together, such as those for a name that does not resolve, would
 * all be recorded together, and hold up what else this process does.
 */
async function sendAll(visit: Visit, first: NextPlaces): Promise<void> {
  /** By delivery: what is done for its place. */
  const inFlight = new Map<string, Promise<void>>();
  const allServed = () => Promise.all(inFlight.values());
  try {
    for (let page = first; page.places.length > 0; page = await readNext(visit)) {
      for (const place of page.places) {
        if (!place.is_asked) await Promise.race([visit.severalAtOnce.promise, allServed()]);
        while (inFlight.size >= Math.max(MIN_AT_ONCE, AT_ONCE / lines)) await Promise.race(inFlight.values());
        if (visit.isOver) return;
        // What waits became due: it is read again, in the order of the events.
        if (page.catchUpAt !== visit.catchUpAt) break;
        visit.seen.add(place.entry);
        // It was requested again during its attempt: the next visit sends it.
        if (inFlight.has(place.delivery_id)) continue;
        const served = log
          .scope({}, () => serve(visit, place))
          // One row that fails does not hold up the others.
          .catch((error: unknown) => {
            visit.postpone(fromNow(ERROR_PAUSE_SECONDS));
            log.error("delivery not sent", error, { delivery_id: place.delivery_id }, { messagesFailed: 1 });
          })
          .finally(() => inFlight.delete(place.delivery_id));
        inFlight.set(place.delivery_id, served);
      }
      if (!page.hasMore && page.catchUpAt === visit.catchUpAt) await allServed();
    }
  } finally {
    await allServed();
  }
}

/**
 * Ends the visit: plans the next look, or removes the wake-up, unless rows keep entering.
 * @returns when the line is looked at next; undefined = nothing waits
 */
async function planNextLook(visit: Visit): Promise<Date | undefined> {
  // The next visit goes on if this one had no time for all.
  const caughtUpAt = visit.isStopped || !visit.isOver ? visit.catchUpAt : undefined;
  for (let plans = 0; plans < MAX_PLANS; plans++) {
    const { wakes, catch_up_at, caught_up_at } = visit.wakeUp;
    const isCaughtUp = catch_up_at === (caughtUpAt ?? caught_up_at);
    const next = await nextLook(visit, isCaughtUp || catch_up_at === undefined ? undefined : new Date(catch_up_at));
    const wakeUp = await endVisit(visit.key, visit.leaseId, next, { wakes, caughtUpAt });
    if (wakeUp === undefined) return next;
    visit.wakeUp = wakeUp;
  }
  const soon = fromNow(BUSY_PAUSE_SECONDS);
  await endVisit(visit.key, visit.leaseId, soon);
  return soon;
}

/**
 * Returns when the line is to be looked at next; undefined = nothing waits. Reads it after all writes of the visit.
 * @param catchUpAt when all that waits is due; undefined = each delivery at its own time
 */
async function nextLook(visit: Visit, catchUpAt: Date | undefined): Promise<Date | undefined> {
  const { key, seen, isStopped, notBefore } = visit;
  const now = new Date();
  let next: Date | undefined;
  // As it is after all attempts of the visit, some of which may have failed beside others that succeeded.
  let webhook: Webhook | undefined;
  for await (const page of placePages(key.id, LOOK_SIZE)) {
    for (const place of page) {
      if (!next) webhook = await findUsable(key.project_id, key.id);
      next ??= catchUpAt && laterOf(now, catchUpAt);
      const isNew = !seen.has(place.entry) && (place.is_asked || !isStopped);
      const look = laterOf(now, lookAt(webhook, place, now), ...(isNew ? [] : [notBefore]));
      if (!next || look < next) next = look;
      // What follows is looked at later, or at the same time.
      if (isNew || (isStopped && !place.is_asked)) return next;
    }
  }
  return next;
}

/** Does what a place asks for: sends its delivery, or ends its wait. */
async function serve(visit: Visit, place: Place): Promise<void> {
  const keys = { project_id: visit.key.project_id, webhook_id: visit.key.id };
  log.tag({ ...keys, delivery_id: place.delivery_id });
  const { row, webhook, secrets } = await readForRequest({ webhook_id: keys.webhook_id, id: place.delivery_id }, keys);
  visit.webhook = webhook ?? null;
  if (webhook?.failing_since === undefined || holdsDeliveries(webhook)) visit.severalAtOnce.resolve();
  if (row?.place !== place.entry) return endLeftover(visit, place);
  if (!webhook) {
    await change(row, cancelled);
    return log.info("delivery cancelled, its webhook is deleted", { delivery_id: row.id });
  }
  if (isHeldBy(webhook, row) || row.status === "held") return holdWaiting(visit, row, place);
  const turn = turnOf(row, place, webhook, visit.catchUpAt !== undefined, new Date());
  if (turn.kind === "later") {
    visit.seen.delete(place.entry);
    visit.done.add(row.id);
    return;
  }
  if (turn.kind === "carried") return visit.postpone(new Date(place.due));
  if (turn.kind === "between_probes") return visit.stop(turn.probeAt);
  // A user who requests a redelivery wants this state. Before the probe is claimed: what is not sent is no probe.
  if (turn.kind !== "asked" && webhook.delivery === "latest") {
    if (await supersede(row, webhook, visit.newerStates)) return;
    // What is newer may have taken long to read: the next visit sends the delivery.
    if (!hasTimeToAttempt(visit.remainingMs)) return void visit.seen.delete(place.entry);
  }
  const isProbe = turn.kind === "probe";
  if (isProbe && !(await receiverState.claimProbe(webhook, turn.nextProbeAt, row.id))) return visit.stop(turn.probeAt);
  visit.done.add(row.id);
  const result = await makeAttempt(row, webhook, secrets, visit);
  if (result === "unrecorded") visit.isUnrecorded = true;
  else if (result === "accepted") {
    visit.failures = 0;
    visit.severalAtOnce.resolve();
  } else if (turn.kind !== "asked") {
    visit.failures += 1;
    // A user who asks for a catch-up may wait for another delivery than the one that fails.
    const isDown = visit.failures >= MAX_FAILURES || (isProbe && visit.catchUpAt === undefined);
    if (isDown) visit.stop(isProbe ? new Date(turn.nextProbeAt) : fromNow(FAILING_PAUSE_SECONDS));
  }
}

/** Removes a place that no row names, unless its row may be about to be written. */
async function endLeftover(visit: Visit, { line, entry, written_at }: Place): Promise<void> {
  if (written_at < addSeconds(new Date(), -LEFTOVER_SECONDS)) await removePlace(line, entry);
  else visit.postpone(fromNow(UNWRITTEN_PAUSE_SECONDS));
}

/**
 * Holds a row that waits. Reads the webhook again, and lets the row wait if it holds no deliveries any more: a recovery may
 * have run before the row was held. The place stays until then, so that the next visit finishes what a crash interrupts.
 */
async function holdWaiting({ key }: Visit, row: Delivery, place: Place): Promise<void> {
  const next = row.status === "held" ? row : (await change(row, held(place.entry))).row;
  if (next?.place !== place.entry) return;
  const webhook = await findUsable(key.project_id, key.id);
  if (!webhook || isHeldBy(webhook, next)) await removePlace(place.line, place.entry);
  else await change(next, reopened(place.entry, place));
}

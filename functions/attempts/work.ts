import { callWorker } from "../deliveries/backlog.ts";
import { endVisit, lease, type Place, placePages, removePlace } from "../deliveries/backlog-store.ts";
import { change } from "../deliveries/change-delivery.ts";
import { type Delivery, isOnRequest } from "../deliveries/delivery.ts";
import type { WorkCall } from "../deliveries/delivery-queue.ts";
import { readForRequest } from "../deliveries/delivery-store.ts";
import { cancelled, held, reopened } from "../deliveries/delivery-transitions.ts";
import { isHeldBy } from "../deliveries/waiting.ts";
import { log } from "../platform/log.ts";
import { randomId } from "../platform/random-id.ts";
import { addSeconds, laterOf } from "../platform/time.ts";
import { checkCircuit } from "../webhooks/circuit-breaker.ts";
import * as receiverState from "../webhooks/receiver-state-store.ts";
import { holdsDeliveries } from "../webhooks/suspension.ts";
import type { Webhook } from "../webhooks/webhook.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { makeAttempt } from "./attempt.ts";
import { hasTimeToAttempt } from "./time-left.ts";

/*
 * The worker of a webhook: visits its line and sends what is due, what users wait for first, then the oldest. One worker
 * per webhook at a time, because it leases the wake-up until its process has ended for certain. So no receiver, and no
 * number of deliveries, occupies more than one sender per webhook.
 */

/** Requests in flight at once, of one line and of all lines in this process, which share them. */
export const AT_ONCE = 50;
/** Of each line in any case. */
const MIN_AT_ONCE = 5;
/** Places read at once. */
const PAGE_SIZE = 100;
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

type WebhookKey = Pick<Webhook, "project_id" | "id">;

/** Lines that this process works on. A batch of ten calls shares its memory and processor. */
let lines = 0;

/** One visit to the line of a webhook. */
class LineVisit {
  readonly key: WebhookKey;
  readonly remainingMs: () => number;
  readonly leaseId = randomId();
  /** Places that are or were served. */
  readonly seen = new Set<string>();
  /** By delivery: what is done for its place. */
  readonly inFlight = new Map<string, Promise<void>>();
  /** Resolves when the receiver may get several requests at once. */
  readonly severalAtOnce = Promise.withResolvers<void>();
  /** In a row. */
  failures = 0;
  /** The outcome of a request waits in a queue to be recorded. No other worker may send that delivery until then. */
  isUnrecorded = false;
  isStopped = false;
  /** What the visit has seen is not looked at before, nor, if it has stopped, what no user waits for. */
  notBefore = new Date(0);

  constructor(key: WebhookKey, remainingMs: () => number) {
    this.key = key;
    this.remainingMs = remainingMs;
  }

  get isOver(): boolean {
    return this.isStopped || this.isUnrecorded || !hasTimeToAttempt(this.remainingMs);
  }

  stop(notBefore: Date): void {
    this.isStopped = true;
    this.postpone(notBefore);
  }

  postpone(notBefore: Date): void {
    this.notBefore = laterOf(this.notBefore, notBefore);
  }
}

const fromNow = (seconds: number): Date => new Date(addSeconds(new Date(), seconds));

/**
 * Sends what is due in the line of a webhook, until nothing is left, the receiver seems to be down, or the time is up.
 * Does nothing when the line is not due, or another worker has it.
 * @param remainingMs returns the time until Lambda stops the function
 */
export async function work({ project_id, webhook_id }: WorkCall, remainingMs: () => number): Promise<void> {
  log.tag({ project_id, webhook_id });
  const visit = new LineVisit({ project_id, id: webhook_id }, remainingMs);
  const now = new Date();
  const until = new Date(now.getTime() + Math.min(MAX_LIFE_MS, remainingMs()) + LEASE_MARGIN_MS);
  const wakeUp = await lease(visit.key, visit.leaseId, now, until);
  if (!wakeUp) return;
  const next = await serveAndPlan(visit, wakeUp.wakes);
  if (next) await callWorker(visit.key, next);
}

/** @returns when the line is looked at next; undefined = nothing waits */
async function serveAndPlan(visit: LineVisit, wakes: number): Promise<Date | undefined> {
  try {
    await serveLine(visit);
    if (!visit.isUnrecorded) return await planNextLook(visit, wakes);
  } catch (error) {
    log.error("line not served", error, {}, { messagesFailed: 1 });
  }
  const pause = fromNow(ERROR_PAUSE_SECONDS);
  await endVisit(visit.key, visit.leaseId, pause, { keptUntil: pause });
  return pause;
}

async function serveLine(visit: LineVisit): Promise<void> {
  lines += 1;
  try {
    const first = await readNext(visit);
    const served = () => servePages(visit, first);
    await (first.places.length > 1 ? log.batchMetrics(served) : served());
  } finally {
    lines -= 1;
  }
}

/** Reads the first places that are due and were not served in this visit. `hasMore`: others may follow. */
async function readNext({ key, seen }: LineVisit): Promise<{ places: Place[]; hasMore: boolean }> {
  for await (const page of placePages(key.id, PAGE_SIZE, new Date())) {
    const places = page.filter(({ entry }) => !seen.has(entry));
    if (places.length > 0) return { places, hasMore: page.length === PAGE_SIZE };
  }
  return { places: [], hasMore: false };
}

/**
 * Serves the places that were read and what follows, several at once. A receiver that fails gets one request at a time until
 * it accepts one, besides what users wait for: fifty that fail together, such as those for a name that does not resolve, would
 * all be recorded together, and hold up what else this process does.
 */
async function servePages(visit: LineVisit, first: Awaited<ReturnType<typeof readNext>>): Promise<void> {
  const { inFlight } = visit;
  const allServed = () => Promise.all(inFlight.values());
  try {
    for (let page = first; page.places.length > 0; page = await readNext(visit)) {
      for (const place of page.places) {
        if (!place.is_asked) await Promise.race([visit.severalAtOnce.promise, allServed()]);
        while (inFlight.size >= Math.max(MIN_AT_ONCE, AT_ONCE / lines)) await Promise.race(inFlight.values());
        if (visit.isOver) return;
        visit.seen.add(place.entry);
        // It was requested again during its attempt: the next visit sends it.
        if (inFlight.has(place.delivery_id)) continue;
        const served = serveOrPostpone(visit, place).finally(() => inFlight.delete(place.delivery_id));
        inFlight.set(place.delivery_id, served);
      }
      if (!page.hasMore) await allServed();
    }
  } finally {
    await allServed();
  }
}

/** Does not throw: one row that fails does not hold up the others. */
async function serveOrPostpone(visit: LineVisit, place: Place): Promise<void> {
  try {
    await log.scope({}, () => serve(visit, place));
  } catch (error) {
    visit.postpone(fromNow(ERROR_PAUSE_SECONDS));
    log.error("delivery not sent", error, { delivery_id: place.delivery_id }, { messagesFailed: 1 });
  }
}

/**
 * Ends the visit: plans the next look, or removes the wake-up, unless rows keep entering.
 * @returns when the line is looked at next; undefined = nothing waits
 */
async function planNextLook(visit: LineVisit, wakes: number): Promise<Date | undefined> {
  let entered: number | undefined = wakes;
  for (let plans = 0; plans < MAX_PLANS; plans++) {
    const next = await nextLook(visit);
    entered = await endVisit(visit.key, visit.leaseId, next, { wakes: entered });
    if (entered === undefined) return next;
  }
  const soon = fromNow(BUSY_PAUSE_SECONDS);
  await endVisit(visit.key, visit.leaseId, soon);
  return soon;
}

/** Returns when the line is to be looked at next; undefined = nothing waits. Reads it after all writes of the visit. */
async function nextLook({ key, seen, isStopped, notBefore }: LineVisit): Promise<Date | undefined> {
  const now = new Date();
  let next: Date | undefined;
  for await (const page of placePages(key.id, LOOK_SIZE)) {
    for (const { entry, due, is_asked } of page) {
      const isNew = !seen.has(entry) && (is_asked || !isStopped);
      const look = laterOf(now, new Date(due), ...(isNew ? [] : [notBefore]));
      if (!next || look < next) next = look;
      // What follows is looked at later, or at the same time.
      if (isNew || (isStopped && !is_asked)) return next;
    }
  }
  return next;
}

/** Does what a place asks for: sends its delivery, or ends its wait. */
async function serve(visit: LineVisit, place: Place): Promise<void> {
  const keys = { project_id: visit.key.project_id, webhook_id: visit.key.id };
  log.tag({ ...keys, delivery_id: place.delivery_id });
  const { row, webhook, secrets } = await readForRequest({ webhook_id: keys.webhook_id, id: place.delivery_id }, keys);
  if (webhook?.failing_since === undefined || holdsDeliveries(webhook)) visit.severalAtOnce.resolve();
  if (row?.place !== place.entry) return endLeftover(visit, place);
  if (!webhook) {
    await change(row, cancelled);
    return log.info("delivery cancelled, its webhook is deleted", { delivery_id: row.id });
  }
  if (isHeldBy(webhook, row) || row.status === "held") return holdWaiting(visit, row, place);
  const isAsked = isOnRequest(row);
  const now = new Date();
  const circuit = checkCircuit(webhook, now);
  const isProbe = circuit.kind === "open" && !isAsked;
  if (isProbe) {
    // While the circuit is open, only the oldest row is sent, when the next probe is due. After a success the others follow.
    const isDue = circuit.probeAt <= now;
    const isClaimed = isDue && (await receiverState.claimProbe(webhook, circuit.nextProbeAt, row.id));
    if (!isClaimed) return visit.stop(circuit.probeAt);
  }
  const result = await makeAttempt(row, webhook, secrets, true);
  if (result === "unrecorded") visit.isUnrecorded = true;
  else if (result === "accepted") {
    visit.failures = 0;
    visit.severalAtOnce.resolve();
  } else if (isProbe) visit.stop(new Date(circuit.nextProbeAt));
  else if (!isAsked) {
    visit.failures += 1;
    if (visit.failures >= MAX_FAILURES) visit.stop(fromNow(FAILING_PAUSE_SECONDS));
  }
}

/** Removes a place that no row names, unless its row may be about to be written. */
async function endLeftover(visit: LineVisit, { line, entry, written_at }: Place): Promise<void> {
  if (written_at < addSeconds(new Date(), -LEFTOVER_SECONDS)) await removePlace(line, entry);
  else visit.postpone(fromNow(UNWRITTEN_PAUSE_SECONDS));
}

/**
 * Holds a row that waits. Reads the webhook again, and lets the row wait if it holds no deliveries any more: a recovery may
 * have run before the row was held. The place stays until then, so that the next visit finishes what a crash interrupts.
 */
async function holdWaiting({ key }: LineVisit, row: Delivery, place: Place): Promise<void> {
  const next = row.status === "held" ? row : (await change(row, held(place.entry))).row;
  if (next?.place !== place.entry) return;
  const webhook = await webhooks.find(key.project_id, key.id);
  if (!webhook || isHeldBy(webhook, next)) await removePlace(place.line, place.entry);
  else await change(next, reopened(place.entry, place));
}

import { callWorker, lookAt } from "../deliveries/backlog.ts";
import { endVisit, type Lease, lease, type Place, placePages, removePlace } from "../deliveries/backlog-store.ts";
import { change } from "../deliveries/change-delivery.ts";
import { type Delivery, isOnRequest } from "../deliveries/delivery.ts";
import type { WorkCall } from "../deliveries/delivery-queue.ts";
import { cancelled, held, reopened } from "../deliveries/delivery-transitions.ts";
import { log } from "../platform/log.ts";
import { allEnded } from "../platform/parallel.ts";
import { randomId } from "../platform/random-id.ts";
import { addSeconds, laterOf } from "../platform/time.ts";
import { checkCircuit } from "../webhooks/circuit-breaker.ts";
import * as receiverState from "../webhooks/receiver-state-store.ts";
import { holdsDeliveries } from "../webhooks/suspension.ts";
import type { Webhook } from "../webhooks/webhook.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { makeAttempt, readCurrent } from "./attempt.ts";
import type { Visit } from "./record.ts";
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
/** When a line is looked at again: for a row that may be about to be written, after failures in a row, after an error. */
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
class LineVisit implements Visit, Lease {
  readonly key: WebhookKey;
  readonly remainingMs: () => number;
  readonly leaseId = randomId();
  /** Later than now while a row waits whose request is not recorded yet. */
  keptUntil = new Date(0);
  /** Places that are or were served. */
  readonly seen = new Set<string>();
  /** The deliveries whose attempt is being made: one may have been requested again, with another place. */
  readonly flying = new Set<string>();
  /** Places that were read and not served yet. */
  page: Place[] = [];
  /** More places are due than were read. */
  hasMore = false;
  /** Resolves when the receiver may get several requests at once. */
  severalAtOnce = Promise.withResolvers<void>();
  /** Whether the webhook of a row that was served had an open circuit. */
  isCircuitOpen = false;
  /** In a row. */
  failures = 0;
  isStopped = false;
  /** What the visit has seen is not looked at before, nor, if it has stopped, what no user waits for. */
  notBefore = new Date(0);
  #reading: Promise<void> | undefined;

  constructor(key: WebhookKey, remainingMs: () => number) {
    this.key = key;
    this.remainingMs = remainingMs;
  }

  get isOver(): boolean {
    return this.isStopped || !hasTimeToAttempt(this.remainingMs);
  }

  keepUntil(time: Date): void {
    this.keptUntil = time;
    this.stop(time);
  }

  stop(notBefore: Date): void {
    this.isStopped = true;
    this.postpone(notBefore);
  }

  postpone(notBefore: Date): void {
    this.notBefore = laterOf(this.notBefore, notBefore);
  }

  /** Reads the next places that are due and were not served in this visit. */
  async read(): Promise<void> {
    for await (const page of placePages(this.key.id, PAGE_SIZE, new Date())) {
      this.page = page.filter(({ entry }) => !this.seen.has(entry));
      this.hasMore = page.length === PAGE_SIZE;
      if (this.page.length > 0) break;
    }
  }

  /**
   * Takes the next place. Concurrent calls share a read of the line.
   * @param isFirst all other calls wait for `severalAtOnce`, unless a user waits for the place
   */
  async take(isFirst: boolean): Promise<Place | undefined> {
    if (this.page.length === 0 && this.hasMore) {
      this.#reading ??= this.read().finally(() => {
        this.#reading = undefined;
      });
      await this.#reading;
    }
    if (!isFirst && this.page[0]?.is_asked === false) await this.severalAtOnce.promise;
    return this.isOver ? undefined : this.page.shift();
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
  let next: Date | undefined;
  try {
    await serveLine(visit);
    next = await planNextLook(visit, wakeUp.wakes);
  } catch (error) {
    log.error("line not served", error, {}, { messagesFailed: 1 });
    next = fromNow(ERROR_PAUSE_SECONDS);
    await endVisit(visit.key, visit, next);
  }
  if (next) await callWorker(visit.key, next);
}

async function serveLine(visit: LineVisit): Promise<void> {
  lines += 1;
  try {
    while (!visit.isOver) {
      await visit.read();
      if (visit.page.length === 0) return;
      const served = () => servePage(visit);
      await (visit.page.length > 1 ? log.batchMetrics(served) : served());
    }
  } finally {
    lines -= 1;
  }
}

/**
 * Serves what was read and what follows, several places at once. A receiver that fails gets one request at a time until it
 * accepts one: fifty that fail together, such as those for a name that does not resolve, would all be recorded together, and
 * hold up what else this process does.
 */
async function servePage(visit: LineVisit): Promise<void> {
  visit.severalAtOnce = Promise.withResolvers();
  const first = serveInTurn(visit, true).finally(visit.severalAtOnce.resolve);
  const atOnce = Math.max(MIN_AT_ONCE, Math.ceil(AT_ONCE / lines));
  const others = Array.from({ length: atOnce - 1 }, () => serveInTurn(visit, false));
  await allEnded([first, ...others]);
}

/** Serves one place after the other, as long as the visit has some. */
async function serveInTurn(visit: LineVisit, isFirst: boolean): Promise<void> {
  while (!visit.isOver) {
    const place = await visit.take(isFirst);
    if (!place) return;
    visit.seen.add(place.entry);
    try {
      await log.scope({}, () => serve(visit, place));
    } catch (error) {
      // One row that fails does not hold up the others.
      visit.postpone(fromNow(ERROR_PAUSE_SECONDS));
      log.error("delivery not sent", error, { delivery_id: place.delivery_id }, { messagesFailed: 1 });
    }
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
    entered = await endVisit(visit.key, visit, next, entered);
    if (entered === undefined) return next;
  }
  const soon = fromNow(BUSY_PAUSE_SECONDS);
  await endVisit(visit.key, visit, soon);
  return soon;
}

/** Returns when the line is to be looked at next; undefined = nothing waits. Reads it after all writes of the visit. */
async function nextLook({ key, seen, isStopped, isCircuitOpen, notBefore }: LineVisit): Promise<Date | undefined> {
  // The circuit may have closed since.
  const webhook = (isCircuitOpen && (await webhooks.find(key.project_id, key.id))) || {};
  const now = new Date();
  let next: Date | undefined;
  for await (const page of placePages(key.id, LOOK_SIZE)) {
    for (const place of page) {
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
async function serve(visit: LineVisit, place: Place): Promise<void> {
  const { project_id, id: webhook_id } = visit.key;
  log.tag({ project_id, webhook_id, delivery_id: place.delivery_id });
  const {
    delivery: row,
    webhook,
    secrets,
  } = await readCurrent({ project_id, webhook_id, delivery_id: place.delivery_id });
  if (webhook?.failing_since === undefined || holdsDeliveries(webhook)) visit.severalAtOnce.resolve();
  if (row?.place !== place.entry) return endLeftover(visit, place);
  if (!webhook) {
    await change(row, cancelled, row);
    return log.info("delivery cancelled, its webhook is deleted", { delivery_id: row.id });
  }
  const isAsked = isOnRequest(row);
  // A suspension holds what a user has requested too.
  const isHeld = isAsked ? webhook.suspended_at !== undefined : holdsDeliveries(webhook);
  if (isHeld || row.status === "held") return holdWaiting(visit, row, place);
  // It was requested again during its attempt: the next visit sends it.
  if (visit.flying.has(row.id)) return;
  const circuit = checkCircuit(webhook, new Date());
  visit.isCircuitOpen ||= circuit.kind === "open";
  const isProbe = circuit.kind === "open" && !isAsked;
  if (isProbe && !(await claimProbe(webhook, circuit, row.id))) {
    visit.isStopped = true;
    return;
  }
  visit.flying.add(row.id);
  const isSuccess = await makeAttempt(row, webhook, secrets, visit).finally(() => visit.flying.delete(row.id));
  if (isSuccess) {
    visit.failures = 0;
    visit.severalAtOnce.resolve();
  } else if (isProbe) visit.isStopped = true;
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

type OpenCircuit = Extract<ReturnType<typeof checkCircuit>, { kind: "open" }>;

/**
 * While the circuit is open, only the oldest row is sent, when the next probe is due. After a success the others follow.
 * @returns false when it is not due, or another process has claimed it
 */
const claimProbe = async (webhook: Webhook, { probeAt, nextProbeAt }: OpenCircuit, deliveryId: string) =>
  probeAt <= new Date() && (await receiverState.claimProbe(webhook, nextProbeAt, deliveryId));

/**
 * Holds a row that waits. Reads the webhook again, and lets the row wait if it holds no deliveries any more: a recovery may
 * have run before the row was held. The place stays until then, so that the next visit finishes what a crash interrupts.
 */
async function holdWaiting({ key }: LineVisit, row: Delivery, place: Place): Promise<void> {
  const next = row.status === "held" ? row : (await change(row, held(place.entry), row)).row;
  if (next?.place !== place.entry) return;
  const webhook = await webhooks.find(key.project_id, key.id);
  const isHeld = isOnRequest(next) ? webhook?.suspended_at !== undefined : webhook && holdsDeliveries(webhook);
  if (!webhook || isHeld) await removePlace(place.line, place.entry);
  else await change(next, reopened(place.entry, place), next);
}

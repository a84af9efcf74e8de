import { callWorker } from "../deliveries/backlog.ts";
import { endVisit, findPlaces, lease, type Place, removePlace } from "../deliveries/backlog-store.ts";
import { change } from "../deliveries/change-delivery.ts";
import { type Delivery, isOnRequest } from "../deliveries/delivery.ts";
import type { WorkCall } from "../deliveries/delivery-queue.ts";
import { cancelled, held, reopened } from "../deliveries/delivery-transitions.ts";
import { log } from "../platform/log.ts";
import { randomId } from "../platform/random-id.ts";
import { addSeconds } from "../platform/time.ts";
import { checkCircuit } from "../webhooks/circuit-breaker.ts";
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

/** Requests in flight at once: of one line, and of all lines in this process, but a few of each in any case. */
export const LANES = 50;
const MIN_LANES = 5;
/** Places read at once. */
const PAGE_SIZE = 100;
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
/** After this many failures in a row the receiver seems to be down. Its circuit opens soon. */
const MAX_FAILURES = 3;

type WebhookKey = Pick<Webhook, "project_id" | "id">;

/** Lines that this process works on. A batch of ten calls shares its memory and processor. */
let lines = 0;

/** One visit to the line of a webhook. */
class LineVisit implements Visit {
  readonly key: WebhookKey;
  /** Places that are or were served. */
  readonly seen = new Set<string>();
  /** The deliveries whose attempt is being made, with their places: a delivery may have been requested again. */
  readonly flying = new Map<string, Place>();
  /** Places that were read and not served yet. */
  page: Place[] = [];
  /** The first of the page that no user waits for: it is the probe if the circuit is open. */
  oldest: Place | undefined;
  probedId: string | undefined;
  /** Resolves when the first row of the visit was read, which shows whether the circuit is open. */
  readonly firstRead = Promise.withResolvers<void>();
  /** In a row. */
  failures = 0;
  isStopped = false;
  /** A user's request has succeeded while the circuit was open: the others need not wait for a probe. */
  hasRecovered = false;
  /** The line stays leased until then, because a row waits whose request is not recorded yet. */
  keptUntil: Date | undefined;
  /** The line is not looked at before, except for what users wait for. */
  notBefore = new Date(0);

  constructor(key: WebhookKey) {
    this.key = key;
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
    if (notBefore > this.notBefore) this.notBefore = notBefore;
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
  const visit = new LineVisit({ project_id, id: webhook_id });
  const leaseId = randomId();
  const now = new Date();
  const until = new Date(now.getTime() + Math.min(MAX_LIFE_MS, remainingMs()) + LEASE_MARGIN_MS);
  const wakeUp = await lease(visit.key, leaseId, now, until);
  if (!wakeUp) return;
  while (!visit.isStopped && hasTimeToAttempt(remainingMs)) {
    visit.page = await unseenPlaces(visit);
    if (visit.page.length === 0) break;
    visit.oldest = visit.page.find(({ is_asked }) => !is_asked);
    const served = () => servePage(visit, remainingMs);
    lines += 1;
    await (visit.page.length > 1 ? log.batchMetrics(served) : served()).finally(() => {
      lines -= 1;
    });
  }
  const next = await nextLook(visit);
  const end = { leaseId, next, probedId: visit.probedId, keptUntil: visit.keptUntil };
  const isEnded = await endVisit(visit.key, wakeUp.wakes, end, new Date());
  const lookAt = isEnded ? next : new Date();
  if (lookAt) await callWorker(visit.key, lookAt);
}

/** Serves the places of a page. On the first page, one lane shows whether the circuit is open before the others read a row. */
async function servePage(visit: LineVisit, remainingMs: () => number): Promise<void> {
  const first = serveLane(visit, remainingMs).finally(visit.firstRead.resolve);
  const lanes = Math.max(MIN_LANES, Math.ceil(LANES / lines));
  const others = Array.from({ length: lanes - 1 }, async () => {
    await visit.firstRead.promise;
    await serveLane(visit, remainingMs);
  });
  await Promise.all([first, ...others]);
}

/** Reads the next places that are due and were not served in this visit. */
async function unseenPlaces({ key, seen }: LineVisit): Promise<Place[]> {
  const dueUntil = new Date();
  for (let after: string | undefined; ; ) {
    const page = await findPlaces(key.id, PAGE_SIZE, { dueUntil, after });
    const unseen = page.filter(({ entry }) => !seen.has(entry));
    after = page.at(-1)?.entry;
    if (unseen.length > 0 || after === undefined) return unseen;
  }
}

/** Returns when the line is looked at next; undefined = nothing waits. Reads it after all writes of the visit. */
async function nextLook({ key, seen, isStopped, hasRecovered, notBefore }: LineVisit): Promise<Date | undefined> {
  const [first] = await findPlaces(key.id, 1);
  if (!first) return undefined;
  // A place that is new to the visit does not wait for the others.
  const isNew = !seen.has(first.entry) && (first.is_asked || !isStopped);
  const times = [new Date(first.due), new Date(), ...(isNew || hasRecovered ? [] : [notBefore])];
  return new Date(Math.max(...times.map((time) => time.getTime())));
}

/** Serves places, one after the other, as long as the visit has some. */
async function serveLane(visit: LineVisit, remainingMs: () => number): Promise<void> {
  while (!visit.isStopped && hasTimeToAttempt(remainingMs)) {
    const place = visit.page.shift();
    if (!place) return;
    visit.seen.add(place.entry);
    try {
      await log.scope({}, () => serve(visit, place));
    } catch (error) {
      // One row that fails does not hold up the others.
      visit.postpone(fromNow(ERROR_PAUSE_SECONDS));
      log.error("delivery not sent", error, { delivery_id: place.delivery_id }, { messagesFailed: 1 });
    }
    if (visit.flying.get(place.delivery_id) === place) visit.flying.delete(place.delivery_id);
  }
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
  visit.firstRead.resolve();
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
  const isProbe = circuit.kind === "open" && !isAsked;
  if (isProbe && !(await claimProbe(visit, webhook, place, circuit))) return;
  visit.flying.set(row.id, place);
  const isSuccess = await makeAttempt(row, webhook, secrets, visit);
  if (isSuccess) {
    visit.failures = 0;
    visit.hasRecovered ||= circuit.kind === "open";
  } else if (isProbe) {
    visit.probedId = row.id;
    visit.stop(new Date(circuit.nextProbeAt));
  } else if (!isAsked) {
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
 * While the circuit is open, only the oldest row is sent, when the next probe is due. After a success the others follow in
 * the same visit: the line is read again, and the webhook for each row.
 * @returns whether this row is the probe
 */
async function claimProbe(
  visit: LineVisit,
  webhook: Webhook,
  place: Place,
  { probeAt, nextProbeAt }: OpenCircuit,
): Promise<boolean> {
  visit.page = [];
  if (place !== visit.oldest) {
    visit.seen.delete(place.entry);
    return false;
  }
  if (probeAt <= new Date() && (await webhooks.claimProbe(webhook, nextProbeAt))) return true;
  visit.stop(probeAt > new Date() ? probeAt : fromNow(UNWRITTEN_PAUSE_SECONDS));
  return false;
}

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

import { findUsable } from "../../webhooks/subscription/subscription-store.ts";
import { checkCircuit } from "../../webhooks/webhook/circuit-breaker.ts";
import { holdsDeliveries } from "../../webhooks/webhook/suspension.ts";
import { type Place, placePages } from "../line/backlog-store.ts";
import type { Visit } from "./visit.ts";

/** Places read at once. */
const PAGE_SIZE = 100;
/** Places read at once to catch up, in the order of their events. */
const CATCH_UP_SIZE = 1_000;

export interface NextPlaces {
  places: Place[];
  /** Others may follow. */
  hasMore: boolean;
  /** `catchUpAt` of the visit when they were read; absent = it had none. */
  catchUpAt?: string;
}

const NONE: NextPlaces = { places: [], hasMore: false };

/** Reads the next places that were not served in this visit: all if it catches up, else those that are due, or the probe. */
export async function readNext(visit: Visit): Promise<NextPlaces> {
  if (visit.isOver) return NONE;
  const { catchUpAt } = visit;
  if (catchUpAt === undefined) return (await readDue(visit)) ?? readProbe(visit);
  const places = await readEarly(visit, CATCH_UP_SIZE, await mayProbe(visit));
  return { places, hasMore: places.length >= CATCH_UP_SIZE, catchUpAt };
}

async function readDue({ key, seen }: Visit): Promise<NextPlaces | undefined> {
  for await (const page of placePages(key.id, PAGE_SIZE, new Date())) {
    const places = page.filter(({ entry }) => !seen.has(entry));
    if (places.length > 0) return { places, hasMore: page.length === PAGE_SIZE };
  }
  return undefined;
}

/**
 * Reads the delivery that probes the receiver while the circuit is open: the oldest of the first that are due later, and after
 * it failed the next one, so that a delivery that its receiver never accepts holds up no other.
 */
async function readProbe(visit: Visit): Promise<NextPlaces> {
  if (!(await mayProbe(visit))) return NONE;
  const places = await readEarly(visit, PAGE_SIZE, true);
  return { places: places.slice(0, 1), hasMore: false };
}

/** Returns whether the circuit is open and a probe may be sent, when it is due. */
async function mayProbe(visit: Visit): Promise<boolean> {
  const { project_id, id } = visit.key;
  if (visit.webhook === undefined) visit.webhook = (await findUsable(project_id, id)) ?? null;
  const { webhook } = visit;
  return webhook !== null && !holdsDeliveries(webhook) && checkCircuit(webhook, new Date()).kind === "open";
}

/**
 * Reads places whatever their time, what users wait for first, then in the order of the events.
 * @param isProbe begins with the delivery after the one that the last probe has sent
 */
async function readEarly(visit: Visit, max: number, isProbe: boolean): Promise<Place[]> {
  const { key, seen, done } = visit;
  const places: Place[] = [];
  // A delivery whose attempt has just failed is sent again at its own time.
  const isNext = ({ entry, is_asked, delivery_id }: Place) => !seen.has(entry) && (is_asked || !done.has(delivery_id));
  for await (const page of placePages(key.id, PAGE_SIZE)) {
    places.push(...page.filter(isNext));
    if (places.length >= max) break;
  }
  const probed = (isProbe && visit.webhook?.probed_id) || "";
  // In which part of the order: asked, after the probed delivery, or up to it.
  const partOf = ({ is_asked, delivery_id }: Place) => (is_asked ? 0 : delivery_id > probed ? 1 : 2);
  const isBefore = (a: Place, b: Place) => partOf(a) - partOf(b) || (a.delivery_id < b.delivery_id ? -1 : 1);
  return places.toSorted(isBefore);
}

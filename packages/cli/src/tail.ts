import { setTimeout as sleep } from "node:timers/promises";
import type { Client, Delivery, WebhookPlace } from "../../client/src/client.ts";
import { ApiError } from "../../client/src/errors.ts";
import { isTemporary } from "./api.ts";
import { deliveryLine } from "./delivery-view.ts";
import { jsonText, note, paint, print } from "./terminal.ts";

/* The deliveries of webhooks as they happen. The API has no stream: it is asked again and again, less often in quiet times. */

const LEAST_WAIT_MS = 1_000;
const QUIET_WAIT_MS = 10_000;
const OUTAGE_WAIT_MS = 30_000;

const PAGE = 100;
/** How many new ones are looked for beyond what is known, before it is taken for the past. */
const MAX_NEW = 1_000;
/** How many pending ones that have fallen off the first page are asked for one by one, each time. */
const MAX_OPEN = 20;

interface How {
  /** How many of the latest are printed at the start. */
  last: number;
  json: boolean;
  /** Ends it. */
  signal: AbortSignal;
}

/** Follows for good. @throws what no waiting mends (a refused credential, a webhook that is gone), and when it is ended */
export async function tail(api: Client, places: WebhookPlace[], { last, json, signal }: How): Promise<void> {
  const polls = new Map(places.map((place) => [place, follow(api, place)]));
  const changesOf = async () => {
    const changes = await Promise.all([...polls].map(([place, poll]) => poll().catch((error) => leave(place, error))));
    return changes.flat().sort(byId);
  };
  /** One webhook of several that is deleted does not end it. */
  const leave = (place: WebhookPlace, error: unknown): Change[] => {
    if (!(error instanceof ApiError && error.status === 404) || polls.size === 1) throw error;
    polls.delete(place);
    note(`The webhook ${place.webhookId} is gone.`);
    return [];
  };
  let waitMs = LEAST_WAIT_MS;
  let isFirst = true;
  let isOut = false;
  for (;;) {
    try {
      const changes = await changesOf();
      if (isOut) note("The service answers again.");
      isOut = false;
      waitMs = changes.length > 0 ? LEAST_WAIT_MS : Math.min(waitMs * 1.3, QUIET_WAIT_MS);
      for (const change of isFirst && last === 0 ? [] : changes.slice(isFirst ? -last : 0))
        await show(api, change, json);
      if (isFirst) note(`Following ${places.length} ${places.length === 1 ? "webhook" : "webhooks"}. Ctrl-C ends.`);
      isFirst = false;
    } catch (error) {
      if (!isTemporary(error)) throw error;
      if (!isOut) note(`${(error as Error).message} Trying again.`);
      isOut = true;
      waitMs = Math.min(waitMs * 2, OUTAGE_WAIT_MS);
    }
    await sleep(waitMs, undefined, { signal });
  }
}

interface Change {
  delivery: Delivery;
  place: WebhookPlace;
}

const byId = (a: Change, b: Change): number => (a.delivery.id < b.delivery.id ? -1 : 1);

/** @returns what yields the deliveries of a webhook that are new or have changed since it was asked last */
function follow(api: Client, place: WebhookPlace): () => Promise<Change[]> {
  const states = new Map<string, string>();
  const pending = new Set<string>();
  const stateOf = ({ status, attempt_count }: Delivery) => `${status} ${attempt_count}`;
  const isNews = (delivery: Delivery): boolean => {
    const isChanged = states.get(delivery.id) !== stateOf(delivery);
    states.set(delivery.id, stateOf(delivery));
    // Deleted first: those that were asked for go to the end of the line.
    pending.delete(delivery.id);
    if (delivery.status === "pending") pending.add(delivery.id);
    return isChanged;
  };
  let isFirst = true;
  return async () => {
    const found = new Map<string, Delivery>();
    let cursor: string | undefined;
    do {
      const page = await api.listDeliveries(place, { limit: PAGE, ...(cursor !== undefined && { cursor }) });
      for (const delivery of page.items) found.set(delivery.id, delivery);
      // A page with something known on it is where the past begins.
      const isPast = isFirst || found.size >= MAX_NEW || page.items.some(({ id }) => states.has(id));
      cursor = isPast ? undefined : page.nextCursor;
    } while (cursor !== undefined);
    const fallen = [...pending].filter((id) => !found.has(id)).slice(0, MAX_OPEN);
    for (const [id, delivery] of await Promise.all(
      fallen.map(async (id) => [id, await stillThere(api, place, id)] as const),
    )) {
      if (delivery) found.set(id, delivery);
      else pending.delete(id);
    }
    isFirst = false;
    return [...found.values()].filter(isNews).map((delivery) => ({ delivery, place }));
  };
}

/** A delivery that was pending; undefined once its row has expired, of which the webhook knows nothing. */
async function stillThere(api: Client, place: WebhookPlace, id: string): Promise<Delivery | undefined> {
  try {
    return await api.getDelivery(place, id);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

async function show(api: Client, { delivery, place }: Change, json: boolean): Promise<void> {
  if (json) return print(jsonText(delivery));
  const line = deliveryLine(delivery, await lastAttempt(api, place, delivery));
  print(`${paint("dim", new Date().toISOString().slice(11, 19))}  ${line}`);
}

/** The attempt that failed, for its reason: a line without it would only make people look it up. */
async function lastAttempt(api: Client, place: WebhookPlace, { id, status, attempt_count }: Delivery) {
  if (status === "succeeded" || attempt_count === 0) return undefined;
  try {
    return (await api.getDelivery(place, id)).attempts[attempt_count - 1];
  } catch (error) {
    // The line is worth more than its reason.
    if (isTemporary(error) || (error instanceof ApiError && error.status === 404)) return undefined;
    throw error;
  }
}

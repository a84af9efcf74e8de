import { setTimeout as sleep } from "node:timers/promises";
import type { Client, Delivery, WebhookRef } from "../../../client/src/client.ts";
import { ApiError } from "../../../client/src/errors.ts";
import { jsonText, note, print, printable, styled } from "../terminal/terminal.ts";
import { deliveryLine } from "../views/delivery-view.ts";
import { terminalWidth } from "../views/table.ts";
import { isTemporary } from "./api.ts";

/* Follows deliveries by polling, because the API has no stream. */

const MIN_INTERVAL_MS = 1_000;
/** The interval when nothing happens. */
const MAX_IDLE_INTERVAL_MS = 10_000;
/** The interval while the service is unavailable. */
const MAX_OUTAGE_INTERVAL_MS = 30_000;

const PAGE_SIZE = 100;
/** Upper bound on the new deliveries that one poll of a webhook reads. */
const MAX_NEW = 1_000;
/** Upper bound on the pending deliveries beyond the pages read that one poll requests by id. */
const MAX_PENDING_LOOKUPS = 20;

interface TailOptions {
  /** The number of latest deliveries to print at the start. */
  last: number;
  json: boolean;
  /** How lines name the webhooks, by id. */
  labels: Map<string, string>;
  /** Stops the tail. */
  signal: AbortSignal;
  /** Waits before a poll, in milliseconds. Default: until then, or until the signal is aborted. */
  pause?: (ms: number) => Promise<void>;
}

/**
 * Prints deliveries as they change, until the signal is aborted.
 * @throws AbortError when the signal is aborted
 * @throws ApiError when a retry cannot help: the credential was rejected, or all webhooks were deleted
 */
export async function tail(api: Client, webhooks: WebhookRef[], options: TailOptions): Promise<void> {
  const { last, signal, pause = (ms) => sleep(ms, undefined, { signal }) } = options;
  const polls = new Map(webhooks.map((webhook) => [webhook, createPoll(api, webhook)]));
  /** Continues with the other webhooks when one was deleted. */
  const dropIfDeleted = (webhook: WebhookRef, error: unknown): Change[] => {
    if (!(error instanceof ApiError && error.status === 404) || polls.size === 1) throw error;
    polls.delete(webhook);
    note(`The webhook ${webhook.webhookId} was deleted.`);
    return [];
  };
  /** Changes that are not printed yet. No later poll returns them again. */
  const unprinted: Change[] = [];
  /** @returns why a webhook could not be read; undefined = all were read */
  const pollAll = async () => {
    const results = await Promise.allSettled(
      [...polls].map(([webhook, poll]) => poll().catch((error) => dropIfDeleted(webhook, error))),
    );
    for (const result of results) if (result.status === "fulfilled") unprinted.push(...result.value);
    return results.find((result) => result.status === "rejected");
  };
  let intervalMs = MIN_INTERVAL_MS;
  let isFirst = true;
  let isUnavailable = false;
  for (;;) {
    try {
      const failure = await pollAll();
      // The first lines are the latest of all webhooks.
      if (failure && isFirst) throw failure.reason;
      const changes = unprinted.splice(0).sort(byId);
      // slice(-0) would return all.
      const shown = isFirst ? changes.slice(Math.max(changes.length - last, 0)) : changes;
      for (const change of shown) await printChange(api, change, options);
      if (failure) throw failure.reason;
      if (isUnavailable) note("The service is available again.");
      isUnavailable = false;
      intervalMs = changes.length > 0 ? MIN_INTERVAL_MS : Math.min(intervalMs * 1.3, MAX_IDLE_INTERVAL_MS);
      if (isFirst) {
        note(`Following ${webhooks.length} ${webhooks.length === 1 ? "webhook" : "webhooks"}. Press Ctrl-C to stop.`);
      }
      isFirst = false;
    } catch (error) {
      if (!isTemporary(error)) throw error;
      if (!isUnavailable) note(`${(error as Error).message} Retrying.`);
      isUnavailable = true;
      intervalMs = Math.min(intervalMs * 2, MAX_OUTAGE_INTERVAL_MS);
    }
    await pause(intervalMs);
  }
}

interface Change {
  delivery: Delivery;
  webhook: WebhookRef;
}

const byId = (a: Change, b: Change): number => (a.delivery.id < b.delivery.id ? -1 : 1);

/** @returns a function that returns the deliveries of a webhook that are new or have changed since its previous call */
function createPoll(api: Client, webhook: WebhookRef): () => Promise<Change[]> {
  const knownStates = new Map<string, string>();
  /** In the order of their last lookup, oldest first. */
  const pendingIds = new Set<string>();
  // A receiver that is down gets a line. An attempt that waits for its turn does not.
  const stateOf = ({ status, attempt_count, waiting_for }: Delivery) =>
    `${status} ${attempt_count} ${waiting_for === "recovery" ? waiting_for : ""}`;
  /** Records the state of a delivery. @returns whether it has changed */
  const recordState = (delivery: Delivery): boolean => {
    const hasChanged = knownStates.get(delivery.id) !== stateOf(delivery);
    knownStates.set(delivery.id, stateOf(delivery));
    // Deleted before it is added, which moves it to the end of the set.
    pendingIds.delete(delivery.id);
    if (delivery.status === "pending") pendingIds.add(delivery.id);
    return hasChanged;
  };
  let isFirst = true;
  return async () => {
    const found = new Map<string, Delivery>();
    let cursor: string | undefined;
    do {
      const page = await api.listDeliveries(webhook, { limit: PAGE_SIZE, ...(cursor !== undefined && { cursor }) });
      for (const delivery of page.items) found.set(delivery.id, delivery);
      // Pages are newest first: all deliveries after a known one are known too.
      const isComplete = isFirst || found.size >= MAX_NEW || page.items.some(({ id }) => knownStates.has(id));
      cursor = isComplete ? undefined : page.nextCursor;
    } while (cursor !== undefined);
    const notOnPages = [...pendingIds].filter((id) => !found.has(id)).slice(0, MAX_PENDING_LOOKUPS);
    const lookups = notOnPages.map(async (id) => [id, await getIfPresent(api, webhook, id)] as const);
    for (const [id, delivery] of await Promise.all(lookups)) {
      if (delivery) found.set(id, delivery);
      else pendingIds.delete(id);
    }
    isFirst = false;
    const changed = [...found.values()].filter(recordState);
    // Pages of a later poll end with the oldest of these at the latest: any other one is only looked up, while it is pending.
    for (const id of knownStates.keys()) if (!found.has(id) && !pendingIds.has(id)) knownStates.delete(id);
    return changed.map((delivery) => ({ delivery, webhook }));
  };
}

/** @returns undefined when the row of the delivery has expired */
async function getIfPresent(api: Client, webhook: WebhookRef, id: string): Promise<Delivery | undefined> {
  try {
    return await api.getDelivery(webhook, id);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

async function printChange(
  api: Client,
  { delivery, webhook }: Change,
  { json, labels }: Pick<TailOptions, "json" | "labels">,
): Promise<void> {
  if (json) return print(jsonText(delivery));
  const line = deliveryLine(delivery, await getFailedAttempt(api, webhook, delivery), labels.get(webhook.webhookId));
  const recordedAt = delivery.last_attempt?.at ?? delivery.created_at;
  const at = terminalWidth() === undefined ? recordedAt : `${recordedAt.slice(11, 19)}Z`;
  print(`${styled("dim", printable(at))}  ${line}`);
}

/** Requests the last attempt of a delivery that has not succeeded, because its line shows the cause. */
async function getFailedAttempt(api: Client, webhook: WebhookRef, { id, status, attempt_count }: Delivery) {
  if (status === "succeeded" || attempt_count === 0) return undefined;
  try {
    return (await api.getDelivery(webhook, id)).attempts[attempt_count - 1];
  } catch (error) {
    // The line is printed without the cause.
    if (isTemporary(error) || (error instanceof ApiError && error.status === 404)) return undefined;
    throw error;
  }
}

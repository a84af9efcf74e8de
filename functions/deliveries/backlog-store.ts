import { DeleteCommand, PutCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo, isConditionFailed, storedItem } from "../platform/aws.ts";
import { pagesOf } from "../platform/dynamo.ts";
import { tableName } from "../platform/env.ts";
import { allOf, changing, onlyIf, when } from "../platform/expression.ts";
import { randomId } from "../platform/random-id.ts";
import { addSeconds } from "../platform/time.ts";
import type { Webhook } from "../webhooks/webhook.ts";
import type { Delivery } from "./delivery.ts";

/*
 * The backlog of a webhook: the deliveries that wait, in a line of places, and one wake-up. The wake-up says when a worker
 * looks at the line. So a receiver that is down costs a few reads and writes a minute, however much waits for it.
 *
 * Invariant: while a row waits, its place exists, and the wake-up of its webhook is not later than that place, the next probe,
 * or the pause of at most a minute after failures and errors. backlog.ts keeps it by the order of its writes.
 */

/** What a user waits for is first in the line. */
const ASKED = "0";
const SCHEDULED = "1";

/** A place in the line of a webhook. A place without a row that names it is a leftover. */
export interface Place {
  /** The id of the webhook. */
  line: string;
  /** `<class>#<due>#<delivery>#<random id>`: the line is in order of class, then of due time, then of the events. */
  entry: string;
  delivery_id: string;
  /** When the delivery is due, in ISO 8601. */
  due: string;
  /** A user waits for it. */
  is_asked: boolean;
  /** When the place was written, in ISO 8601. */
  written_at: string;
}

/**
 * Returns a new place for a delivery.
 * @param isAsked a user waits for it: see `isOnRequest`
 */
export const placeOf = (
  { webhook_id, id }: Pick<Delivery, "webhook_id" | "id">,
  due: Date,
  isAsked = false,
): Place => ({
  line: webhook_id,
  entry: `${isAsked ? ASKED : SCHEDULED}#${due.toISOString()}#${id}#${randomId()}`,
  delivery_id: id,
  due: due.toISOString(),
  is_asked: isAsked,
  written_at: new Date().toISOString(),
});

export async function putPlace(place: Place): Promise<void> {
  await dynamo().send(new PutCommand({ TableName: tableName("backlog"), Item: place }));
}

export async function removePlace(webhookId: string, entry: string): Promise<void> {
  await dynamo().send(new DeleteCommand({ TableName: tableName("backlog"), Key: { line: webhookId, entry } }));
}

/**
 * Reads the places of a line in order, page by page. Strongly consistent.
 * @param dueUntil leaves out what is due later, unless a user waits for it; absent = reads all
 */
export function placePages(webhookId: string, pageSize: number, dueUntil?: Date): AsyncGenerator<Place[]> {
  // The character after `#`: places due in that very millisecond are included.
  const end = `${SCHEDULED}#${dueUntil?.toISOString() ?? "~"}$`;
  return pagesOf("backlog", when`line = ${webhookId} AND entry < ${end}`, { Limit: pageSize });
}

type WebhookKey = Pick<Webhook, "project_id" | "id">;

/** When a worker looks at the line of a webhook, and which worker has it. */
export interface WakeUp {
  /** `wake-up#` and the id of the webhook: a partition of its own, so that it does not share the writes of the places. */
  line: string;
  /** The id of the project. */
  entry: string;
  due_shard: number;
  /** When the line is looked at, in ISO 8601: not later than its first place, except for a probe or a pause. */
  due: string;
  /** How often `wake` was called: a visit that finds more calls at its end than at its start looks again. */
  wakes: number;
  /** Until when the line is leased; absent before the first visit, the past when it is free. */
  lease_until?: string;
  /** Random id of the visit that has the lease; absent = none. */
  lease_id?: string;
}

/** Two clocks differ by less than this. */
const CLOCK_DIFFERENCE_SECONDS = 2;

const PREFIX = "wake-up#";

/** Partition keys of the index `due`. DynamoDB accepts 1,000 writes a second for each. */
export const DUE_SHARDS = 32;

const shardOf = (webhookId: string): number =>
  Number.parseInt(webhookId.replaceAll("-", "").slice(-8), 16) % DUE_SHARDS;

/** Returns where the wake-up of a webhook is stored. */
export const wakeUpKey = ({ project_id, id }: WebhookKey) => ({
  TableName: tableName("backlog"),
  Key: { line: `${PREFIX}${id}`, entry: project_id },
});

/**
 * Makes sure that a worker looks at the line at `at` or before.
 * @returns whether no look was planned so early, so that the caller sends a message to the worker
 */
export async function wake(webhook: WebhookKey, at: Date): Promise<boolean> {
  const due = at.toISOString();
  const first = { due: when`if_not_exists(due, ${due})`, due_shard: shardOf(webhook.id) };
  const { wakeUp } = await changeWakeUp(webhook, changing({ set: first, add: { wakes: 1 } }));
  if (wakeUp && wakeUp.due <= due) return wakeUp.wakes === 1;
  await changeWakeUp(webhook, changing({ set: { due }, when: when`due > ${due}` }));
  return true;
}

/**
 * Leases the line of a webhook to one worker.
 * @param leaseId random id of the visit
 * @param until when the process of the worker has ended for certain
 * @returns the wake-up, or undefined when it is not due, or leased to another worker
 */
export async function lease(webhook: WebhookKey, leaseId: string, now: Date, until: Date): Promise<WakeUp | undefined> {
  // A call must not be lost because the clock of its sender is ahead. What is due is decided by the places.
  const isDue = when`due <= ${addSeconds(now, CLOCK_DIFFERENCE_SECONDS)}`;
  const isFree = when`(attribute_not_exists(lease_until) OR lease_until < ${now.toISOString()})`;
  const set = { lease_until: until.toISOString(), lease_id: leaseId };
  const result = await changeWakeUp(webhook, changing({ set, when: allOf(isDue, isFree) }));
  // The SDK may have repeated a write that took effect.
  return result.isChanged || result.wakeUp?.lease_id === leaseId ? result.wakeUp : undefined;
}

/**
 * Ends the visit of a worker: plans the next look, or removes the wake-up.
 * @param leaseId of the visit
 * @param next when the line is looked at next; undefined = nothing waits
 * @param wakes of the wake-up when the visit read the line; absent = whatever has entered since
 * @param keptUntil the line stays leased until then; absent = it is free
 * @returns undefined when the visit has ended, or another one has the line; otherwise `wakes` by now: nothing has changed
 */
export async function endVisit(
  webhook: WebhookKey,
  leaseId: string,
  next: Date | undefined,
  { wakes, keptUntil = new Date(0) }: { wakes?: number; keptUntil?: Date } = {},
): Promise<number | undefined> {
  const isAsSeen = allOf(when`lease_id = ${leaseId}`, wakes !== undefined && when`wakes = ${wakes}`);
  const set = next && { due: next.toISOString(), lease_until: keptUntil.toISOString() };
  const { isChanged, wakeUp } = set
    ? await changeWakeUp(webhook, changing({ set, remove: ["lease_id"], when: isAsSeen }))
    : await removeWakeUp(webhook, onlyIf(isAsSeen));
  return !isChanged && wakeUp?.lease_id === leaseId ? wakeUp.wakes : undefined;
}

/** `wakeUp`: after the change; if there was none, as it is stored, or undefined when it does not exist. */
interface WakeUpChange {
  isChanged: boolean;
  wakeUp: WakeUp | undefined;
}

const ALL_OLD = { ReturnValuesOnConditionCheckFailure: "ALL_OLD" } as const;

const changeWakeUp = (webhook: WebhookKey, change: ReturnType<typeof changing>) =>
  ifTrue(() =>
    dynamo().send(new UpdateCommand({ ...wakeUpKey(webhook), ...change, ReturnValues: "ALL_NEW", ...ALL_OLD })),
  );

const removeWakeUp = (webhook: WebhookKey, condition: ReturnType<typeof onlyIf>) =>
  ifTrue(() => dynamo().send(new DeleteCommand({ ...wakeUpKey(webhook), ...condition, ...ALL_OLD })));

async function ifTrue(write: () => Promise<{ Attributes?: Record<string, unknown> }>): Promise<WakeUpChange> {
  try {
    const { Attributes } = await write();
    return { isChanged: true, wakeUp: Attributes as WakeUp | undefined };
  } catch (error) {
    if (!isConditionFailed(error)) throw error;
    return { isChanged: false, wakeUp: storedItem(error) as WakeUp | undefined };
  }
}

/**
 * Reads the wake-ups of a shard that are due page by page, longest overdue first, with the webhooks that they belong to. The
 * index is eventually consistent, and has the keys only: a lease in it would be a further write of each visit.
 */
export async function* overduePages(
  shard: number,
  now: Date,
  pageSize: number,
): AsyncGenerator<(WebhookKey & Pick<WakeUp, "due">)[]> {
  const isOverdue = when`due_shard = ${shard} AND due <= ${now.toISOString()}`;
  const pages = pagesOf<WakeUp>("backlog", isOverdue, { IndexName: "due", ConsistentRead: false, Limit: pageSize });
  for await (const page of pages) {
    yield page.map(({ line, entry, due }) => ({ project_id: entry, id: line.slice(PREFIX.length), due }));
  }
}

import { DeleteCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo, isConditionFailed, storedItem } from "../../foundation/platform/aws.ts";
import { pagesOf } from "../../foundation/platform/dynamo.ts";
import { tableName } from "../../foundation/platform/env.ts";
import { allOf, changing, onlyIf, type Part, when } from "../../foundation/platform/expression.ts";
import { addSeconds } from "../../foundation/platform/time.ts";
import { CATCH_UP_SECONDS } from "./circuit-breaker.ts";
import type { Webhook } from "./webhook.ts";

/* The wake-up of the line of a webhook (deliveries/line/backlog-store.ts): one item, in the same table as the places. */

export type WebhookKey = Pick<Webhook, "project_id" | "id">;

/** When a worker looks at the line of a webhook, and which worker has it. */
export interface WakeUp {
  /** `wake-up#` and the id of the webhook: a partition of its own, so that it does not share the writes of the places. */
  line: string;
  /** The id of the project. */
  entry: string;
  due_shard: number;
  /** When the line is looked at, in ISO 8601: not later than its first place, except for a probe or a pause. */
  due: string;
  /**
   * When all places are due at once, whatever their own time, in ISO 8601: the receiver has accepted a request, or a user has
   * changed the webhook. Absent = never so far.
   */
  catch_up_at?: string;
  /** The `catch_up_at` that a visit has served. */
  caught_up_at?: string;
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
 * Plans that all that waits for a webhook is sent at once, oldest first. Does nothing when nothing waits.
 * @returns when; undefined when nothing waits, or a catch-up is planned already
 */
export async function planCatchUp(webhook: WebhookKey, now: Date): Promise<Date | undefined> {
  const plan = (at: string, isAllowed: Part) =>
    changeWakeUp(webhook, changing({ set: { catch_up_at: at }, when: when`attribute_exists(line) AND ${isAllowed}` }));
  const [at, recent] = [now.toISOString(), addSeconds(now, -CATCH_UP_SECONDS)];
  const isAllowed = when`(attribute_not_exists(catch_up_at) OR catch_up_at < ${recent})`;
  const { isChanged, wakeUp } = await plan(at, isAllowed);
  const last = wakeUp?.catch_up_at;
  // The SDK may have repeated a write that took effect.
  if (isChanged || last === at) return now;
  if (last === undefined || last > at) return undefined;
  const next = addSeconds(new Date(last), CATCH_UP_SECONDS);
  await plan(next, when`catch_up_at = ${last}`);
  return new Date(next);
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
 * @param caughtUpAt the `catch_up_at` that the visit has served; absent = none
 * @param keptUntil the line stays leased until then; absent = it is free
 * @returns undefined when the visit has ended, or another one has the line; otherwise the wake-up by now: nothing has changed
 */
export async function endVisit(
  webhook: WebhookKey,
  leaseId: string,
  next: Date | undefined,
  { wakes, caughtUpAt, keptUntil = new Date(0) }: { wakes?: number; caughtUpAt?: string; keptUntil?: Date } = {},
): Promise<WakeUp | undefined> {
  const isAsSeen = allOf(when`lease_id = ${leaseId}`, wakes !== undefined && when`wakes = ${wakes}`);
  const set = next && { due: next.toISOString(), lease_until: keptUntil.toISOString(), caught_up_at: caughtUpAt };
  const { isChanged, wakeUp } = set
    ? await changeWakeUp(webhook, changing({ set, remove: ["lease_id"], when: isAsSeen }))
    : await removeWakeUp(webhook, onlyIf(isAsSeen));
  return !isChanged && wakeUp?.lease_id === leaseId ? wakeUp : undefined;
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

import { DeleteCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo, isConditionFailed } from "../platform/aws.ts";
import { settings, tableName } from "../platform/env.ts";
import { addSeconds } from "../platform/time.ts";
import type { Webhook } from "../webhooks/webhook.ts";
import { parkingShardOf, shardOf } from "./delivery.ts";
import { enqueueWakeUps } from "./delivery-queue.ts";
import { type DueCursor, type DueKey, findDue } from "./due-index.ts";

/*
 * Parking. While the circuit of a webhook is open, its deliveries wait in a partition of the `due` index of their own,
 * which the sweep does not read. One item of the webhook, its wake-up, is due instead of all of them. So a receiver
 * that is down costs the same few messages and reads a minute, however many deliveries wait for it.
 *
 * Invariant: as long as a row is parked, the wake-up of its webhook exists. The wake-up is written first and then the
 * row; the drain removes a wake-up only when the parking was empty at two visits, ten minutes apart, and no row
 * was parked in between.
 */

export interface WakeUp {
  /** `wake-up:` and the id of the webhook, so that no list of deliveries contains it. */
  webhook_id: string;
  /** The id of the webhook. */
  id: string;
  project_id: string;
  due_shard: number;
  due_at: string;
  /** Number of the latest wake-up call. The first drain that starts with it makes all calls up to it void. */
  generation: number;
  /** How often the sweep has repeated that call; absent for never. */
  handovers?: number;
  /** How often this item was written before a row was parked. */
  parkings: number;
  /** When a drain found the parking empty; absent while rows may be parked. */
  empty_since?: string;
  /** Id of the delivery that was the last failed probe, which explains the failure; absent when there was none. */
  probed_id?: string;
}

const PREFIX = "wake-up:";

/** Returns whether a row of the `due` index is a wake-up, not a delivery. */
export const isWakeUp = ({ webhook_id }: Pick<DueKey, "webhook_id">): boolean => webhook_id.startsWith(PREFIX);

type WebhookKey = Pick<Webhook, "project_id" | "id">;

const keyOf = ({ id }: Pick<Webhook, "id">) => ({
  TableName: tableName("deliveries"),
  Key: { webhook_id: `${PREFIX}${id}`, id },
});

/**
 * For this long after it wrote the wake-up of a webhook, a process does not write it again. Far shorter than
 * `EMPTY_SECONDS`, so that a row parked meanwhile is found at the next visit.
 */
const REMEMBERED_MS = 30_000;
/** How long a parking must be empty before its wake-up is removed, far longer than the index lags behind the table. */
const EMPTY_SECONDS = 600;
const MAX_REMEMBERED = 10_000;
const writtenAt = new Map<string, number>();

/**
 * Makes sure that the wake-up of a webhook exists. To be called before a row is parked. This write ends the time in which
 * the parking was empty: a visit that starts between it and the row would otherwise remove the wake-up.
 * @param at when the parked rows are to be looked at
 */
export async function ensureWakeUp(webhook: WebhookKey, at: Date): Promise<void> {
  const now = Date.now();
  if (now - (writtenAt.get(webhook.id) ?? Number.NEGATIVE_INFINITY) < REMEMBERED_MS) return;
  const { Attributes } = await dynamo().send(
    new UpdateCommand({
      ...keyOf(webhook),
      UpdateExpression:
        "SET project_id = :project, due_shard = :shard, due_at = if_not_exists(due_at, :at), generation = if_not_exists(generation, :none) REMOVE empty_since ADD parkings :one",
      ExpressionAttributeValues: {
        ":project": webhook.project_id,
        ":shard": shardOf(webhook.id),
        ":at": new Date(Math.max(at.getTime(), now)).toISOString(),
        ":none": 0,
        ":one": 1,
      },
      ReturnValues: "ALL_OLD",
    }),
  );
  const { generation = 0, empty_since }: Partial<WakeUp> = Attributes ?? {};
  if (generation === 0 || empty_since !== undefined) await scheduleDrain(webhook, at);
  if (writtenAt.size >= MAX_REMEMBERED) writtenAt.clear();
  writtenAt.set(webhook.id, now);
}

/** SQS delays a message by at most 15 minutes. The sweep wakes the webhook when a later time has come. */
const MAX_DELAY_SECONDS = 900;

/**
 * Schedules a drain of a webhook for the time `at`, if its wake-up exists. All wake-up calls before become void.
 * @param expected the generation of the caller's wake-up; undefined = any
 * @param probedId id of the delivery that was a failed probe; undefined = the one before stays
 */
export async function scheduleDrain(
  webhook: WebhookKey,
  at: Date,
  { expected, probedId }: { expected?: number; probedId?: string | undefined } = {},
): Promise<void> {
  const afterSeconds = Math.min(MAX_DELAY_SECONDS, Math.max(0, (at.getTime() - Date.now()) / 1000));
  const moved = await changeWakeUp(
    webhook,
    `SET due_at = :at${probedId === undefined ? "" : ", probed_id = :probed"} REMOVE empty_since, handovers ADD generation :one`,
    {
      ":at": addSeconds(new Date(), afterSeconds + leaseSeconds()),
      ":one": 1,
      ...(probedId !== undefined && { ":probed": probedId }),
    },
    expected,
  );
  if (!moved) return;
  const call = {
    kind: "wake-up",
    project_id: moved.project_id,
    webhook_id: webhook.id,
    generation: moved.generation,
  } as const;
  // A call that is not accepted is left to the sweep.
  await enqueueWakeUps([call], afterSeconds);
}

/** How long the sweep waits for a wake-up call. A drain ends within a minute. */
const leaseSeconds = () => Math.max(60, settings.deliveryGraceSeconds());

/**
 * Starts a drain.
 * @param generation number of the wake-up call
 * @returns the wake-up, with a number of its own; undefined when the call is void
 */
export function startDrain(webhook: WebhookKey, generation: number): Promise<WakeUp | undefined> {
  const until = addSeconds(new Date(), leaseSeconds() + 60);
  return changeWakeUp(
    webhook,
    "SET due_at = :until REMOVE handovers ADD generation :one",
    { ":until": until, ":one": 1 },
    generation,
  );
}

/**
 * Ends a drain that found the parking empty. Removes the wake-up once the parking has been empty for ten minutes and no
 * row was parked since the drain started; before that, makes it due again.
 * @param visitAt when the parking is looked at again, at the latest in ten minutes; absent = then
 */
export async function endDrainEmpty(webhook: WebhookKey, wakeUp: WakeUp, visitAt?: Date): Promise<void> {
  const { generation, parkings, empty_since } = wakeUp;
  const now = new Date();
  const isLongEmpty = empty_since !== undefined && addSeconds(now, -EMPTY_SECONDS) >= empty_since;
  if (!isLongEmpty) {
    const latest = addSeconds(now, EMPTY_SECONDS);
    const at = visitAt && visitAt.toISOString() < latest ? visitAt.toISOString() : latest;
    const expression = "SET due_at = :at, empty_since = if_not_exists(empty_since, :now)";
    await changeWakeUp(webhook, expression, { ":at": at, ":now": now.toISOString() }, generation);
    return;
  }
  try {
    await dynamo().send(
      new DeleteCommand({
        ...keyOf(webhook),
        ConditionExpression: "generation = :generation AND parkings = :parkings AND empty_since = :emptySince",
        ExpressionAttributeValues: { ":generation": generation, ":parkings": parkings, ":emptySince": empty_since },
      }),
    );
  } catch (error) {
    if (!isConditionFailed(error)) throw error;
  }
}

/** @returns the changed wake-up; undefined when it does not exist or has been handed over by another process */
async function changeWakeUp(
  webhook: WebhookKey,
  expression: string,
  values: Record<string, string | number>,
  expected?: number,
): Promise<WakeUp | undefined> {
  const isExpected = expected === undefined ? "" : " AND generation = :expected";
  try {
    const { Attributes } = await dynamo().send(
      new UpdateCommand({
        ...keyOf(webhook),
        UpdateExpression: expression,
        ConditionExpression: `attribute_exists(id)${isExpected}`,
        ExpressionAttributeValues: { ...values, ...(expected !== undefined && { ":expected": expected }) },
        ReturnValues: "ALL_NEW",
      }),
    );
    return Attributes as WakeUp;
  } catch (error) {
    if (isConditionFailed(error)) return undefined;
    throw error;
  }
}

/**
 * Reads one page of the parked rows of a webhook, in order of their planned attempts.
 * @param after cursor of the page before; absent for the first page
 */
export async function findParked(
  webhookId: string,
  limit: number,
  after?: DueCursor,
): Promise<{ rows: DueKey[]; next?: DueCursor }> {
  const page = await findDue(parkingShardOf(webhookId), new Date(), limit, after);
  return { ...page, rows: page.rows.filter(({ webhook_id }) => webhook_id === webhookId) };
}

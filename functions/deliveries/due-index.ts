import { QueryCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo, isConditionFailed, storedValue } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import type { Delivery, Due } from "./delivery.ts";

/* The `due` index, which contains the pending rows by due time, and the wake-ups of parked webhooks. */

export type DueKey = Pick<Delivery, "webhook_id" | "id"> & Due;

/** Where the next page of a shard begins. */
export type DueCursor = Record<string, unknown>;

/**
 * Reads one page of a shard's rows whose due time has passed, longest overdue first. The index is eventually
 * consistent.
 * @param after cursor of the page before; absent for the first page
 * @returns `next` is absent on the last page
 */
export async function findDue(
  shard: number,
  now: Date,
  limit: number,
  after?: DueCursor,
): Promise<{ rows: DueKey[]; next?: DueCursor }> {
  const { Items, LastEvaluatedKey } = await dynamo().send(
    new QueryCommand({
      TableName: tableName("deliveries"),
      IndexName: "due",
      KeyConditionExpression: "due_shard = :shard AND due_at <= :now",
      ExpressionAttributeValues: { ":shard": shard, ":now": now.toISOString() },
      Limit: limit,
      ...(after && { ExclusiveStartKey: after }),
    }),
  );
  return { rows: (Items ?? []) as DueKey[], ...(LastEvaluatedKey && { next: LastEvaluatedKey }) };
}

/** The attributes of a claimed row that its message needs: of a delivery, or the wake-up of a webhook (parking-store.ts). */
export type ClaimedRow = Pick<Delivery, "project_id" | "webhook_id" | "id" | "attempt_count"> & {
  due_at: string;
  handovers: number;
  /** Of a wake-up: the number of its latest call. */
  generation?: number;
};

/**
 * Claims a due row: moves its due time to `until`, the end of the lease, and counts the hand-over. If the message is
 * lost, the row is due again at that time.
 * @param until in ISO 8601, with a random fraction of a second: two sweeps with an equal one may both get the row, which
 * costs a message, not a request
 * @returns the row, or undefined when it has changed since it was read, or a sender is sending its attempt
 */
export async function claim(
  { webhook_id, id, due_shard, due_at }: DueKey,
  until: string,
): Promise<ClaimedRow | undefined> {
  try {
    const { Attributes } = await dynamo().send(
      new UpdateCommand({
        TableName: tableName("deliveries"),
        Key: { webhook_id, id },
        UpdateExpression: "SET due_at = :until ADD handovers :one",
        // A row that was parked since may be due at the same time, in the partition of its webhook.
        ConditionExpression:
          "due_at = :readDueAt AND due_shard = :readShard AND (attribute_not_exists(sending_until) OR sending_until <= :now)",
        ExpressionAttributeValues: {
          ":until": until,
          ":readDueAt": due_at,
          ":readShard": due_shard,
          ":now": new Date().toISOString(),
          ":one": 1,
        },
        ReturnValues: "ALL_NEW",
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      }),
    );
    return Attributes as ClaimedRow;
  } catch (error) {
    if (!isConditionFailed(error)) throw error;
    // Equal when the SDK has repeated a claim that took effect.
    if (storedValue(error, "due_at") !== until) return undefined;
    return {
      project_id: storedValue(error, "project_id") ?? "",
      webhook_id,
      id,
      attempt_count: Number(storedValue(error, "attempt_count") ?? 0),
      due_at: until,
      handovers: Number(storedValue(error, "handovers") ?? 0),
      generation: Number(storedValue(error, "generation") ?? 0),
    };
  }
}

/**
 * Moves the due time of a claimed row: the end of a longer lease, or an earlier time because its message was not
 * accepted. Does nothing when the row has changed since.
 */
export async function changeLease({ webhook_id, id, due_at }: Omit<DueKey, "due_shard">, until: string): Promise<void> {
  try {
    await dynamo().send(
      new UpdateCommand({
        TableName: tableName("deliveries"),
        Key: { webhook_id, id },
        UpdateExpression: "SET due_at = :until",
        ConditionExpression: "due_at = :claimed",
        ExpressionAttributeValues: { ":until": until, ":claimed": due_at },
      }),
    );
  } catch (error) {
    if (!isConditionFailed(error)) throw error;
  }
}

import { QueryCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo, isConditionFailed } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import type { Delivery } from "./delivery.ts";

/* The `due` index, which contains the pending rows by due time. */

type DueKey = Pick<Delivery, "webhook_id" | "id"> & { due_at: string };

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

/**
 * Claims a due row: moves its due time to `until`, the end of the lease. If the message is lost, the row is due again
 * at that time.
 * @returns the row, or undefined when the row has changed since it was read, by another sweep or by an attempt
 */
export async function claim({ webhook_id, id, due_at }: DueKey, until: string): Promise<Delivery | undefined> {
  try {
    const { Attributes } = await dynamo().send(
      new UpdateCommand({
        TableName: tableName("deliveries"),
        Key: { webhook_id, id },
        UpdateExpression: "SET due_at = :until",
        ConditionExpression: "due_at = :readDueAt",
        ExpressionAttributeValues: { ":until": until, ":readDueAt": due_at },
        ReturnValues: "ALL_NEW",
      }),
    );
    return Attributes as Delivery;
  } catch (error) {
    if (isConditionFailed(error)) return undefined;
    throw error;
  }
}

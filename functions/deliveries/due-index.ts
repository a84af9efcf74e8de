import { QueryCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo, isConditionFailed } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import type { Delivery } from "./delivery.ts";

/* The `due` index: which rows wait for the sweep. */

type DueKey = Pick<Delivery, "webhook_id" | "id"> & { due_at: string };

/** The rows of a shard whose due time has passed, longest overdue first, one page. The index lags by milliseconds. */
export async function findDue(shard: number, now: Date, limit: number): Promise<DueKey[]> {
  const { Items } = await dynamo().send(
    new QueryCommand({
      TableName: tableName("deliveries"),
      IndexName: "due",
      KeyConditionExpression: "due_shard = :shard AND due_at <= :now",
      ExpressionAttributeValues: { ":shard": shard, ":now": now.toISOString() },
      Limit: limit,
    }),
  );
  return (Items ?? []) as DueKey[];
}

/**
 * Takes a due row for the sweep that saw it, and moves its due time to `until`: should its message be lost, it is due again.
 * @returns the row, or undefined when another sweep or an attempt was faster
 */
export async function claim({ webhook_id, id, due_at }: DueKey, until: string): Promise<Delivery | undefined> {
  try {
    const { Attributes } = await dynamo().send(
      new UpdateCommand({
        TableName: tableName("deliveries"),
        Key: { webhook_id, id },
        UpdateExpression: "SET due_at = :until",
        ConditionExpression: "due_at = :seen",
        ExpressionAttributeValues: { ":until": until, ":seen": due_at },
        ReturnValues: "ALL_NEW",
      }),
    );
    return Attributes as Delivery;
  } catch (error) {
    if (isConditionFailed(error)) return undefined;
    throw error;
  }
}

import { randomBytes } from "node:crypto";
import { DeleteCommand, QueryCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo, type TransactItem } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import { createNotification, dueBound, type Notification, type NotificationInput } from "./notification.ts";

/**
 * Returns the write of a notification, for the transaction that makes the change: no change is without its notification,
 * and no notification without its change.
 * @param dueAt when it is published; absent = now
 */
export function notificationPut(input: NotificationInput, dueAt = new Date()): TransactItem {
  const Item = createNotification(input, dueAt, randomBytes(16));
  return { Put: { TableName: tableName("notifications"), Item } };
}

/**
 * Reads a page of the notifications of a shard that are due, longest due first. Strongly consistent.
 * @param after the `due` of the last row before the page; absent = from the first
 * @returns `next` is the `after` of the next page, absent on the last page
 */
export async function findDue(
  shard: number,
  now: Date,
  limit: number,
  after?: string,
): Promise<{ rows: Notification[]; next?: string }> {
  const { Items, LastEvaluatedKey } = await dynamo().send(
    new QueryCommand({
      TableName: tableName("notifications"),
      ConsistentRead: true,
      KeyConditionExpression: "due_shard = :shard AND due < :bound",
      ExpressionAttributeValues: { ":shard": String(shard), ":bound": dueBound(now) },
      Limit: limit,
      ...(after !== undefined && { ExclusiveStartKey: { due_shard: String(shard), due: after } }),
    }),
  );
  return { rows: (Items ?? []) as Notification[], ...(LastEvaluatedKey && { next: LastEvaluatedKey.due as string }) };
}

/** Deletes a notification that is published, or no longer true. Does nothing if another run has deleted it. */
export async function remove({ due_shard, due }: Pick<Notification, "due_shard" | "due">): Promise<void> {
  await dynamo().send(new DeleteCommand({ TableName: tableName("notifications"), Key: { due_shard, due } }));
}

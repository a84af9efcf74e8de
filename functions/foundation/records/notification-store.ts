import { DeleteCommand, PutCommand, QueryCommand, type QueryCommandOutput } from "@aws-sdk/lib-dynamodb";
import { dynamo, type TransactItem } from "../platform/aws.ts";
import { transactIf } from "../platform/dynamo.ts";
import { tableName } from "../platform/env.ts";
import { onlyIf, selecting, when } from "../platform/expression.ts";
import { log } from "../platform/log.ts";
import {
  createNotification,
  dueBound,
  dueOwnerBound,
  MAX_WAITING_PER_OWNER,
  type Notification,
  type NotificationInput,
} from "./notification.ts";

type Key = Pick<Notification, "owner" | "due">;

const put = (Item: Notification): TransactItem => ({ Put: { TableName: tableName("notifications"), Item } });
const keyOf = ({ owner, due }: Key) => ({ TableName: tableName("notifications"), Key: { owner, due } });

/**
 * Returns the write of a notification, for the transaction that makes the change: no notification is without its change.
 * @param dueAt when it is published; absent = now
 * @returns nothing when `MAX_WAITING_PER_OWNER` of the owner are due by then: the change is made without a notification.
 *   Concurrent changes may exceed the bound by one each
 */
export async function notificationPut(
  input: NotificationInput,
  dueAt = new Date(),
): Promise<{ notification?: TransactItem }> {
  const [notification] = await notificationPuts([input], dueAt);
  return notification ? { notification } : {};
}

/** As `notificationPut`, for several notifications of one owner in one transaction: one read for all. */
export async function notificationPuts(inputs: NotificationInput[], dueAt = new Date()): Promise<TransactItem[]> {
  const rows = inputs.map((input) => createNotification(input, dueAt));
  const [{ owner, type, project_id } = {}] = rows;
  if (owner === undefined) return [];
  const { Count = 0 } = await dynamo().send(
    new QueryCommand({ ...dueOf(owner, dueAt), Select: "COUNT", Limit: MAX_WAITING_PER_OWNER }),
  );
  const room = MAX_WAITING_PER_OWNER - Count;
  if (room < rows.length) log.info("notification not written", { owner, type, project_id });
  return rows.slice(0, room).map(put);
}

/** Returns the deletion of a notification, for the transaction after which it is not true. It need not exist. */
export const notificationDelete = (input: NotificationInput, dueAt: Date): TransactItem => ({
  Delete: keyOf(createNotification(input, dueAt)),
});

/** Returns the write of a reminder, for the transaction that creates the key. A key has one, so keys bound their number. */
export const reminderPut = (reminder: Notification | undefined): { reminder?: TransactItem } =>
  reminder === undefined ? {} : { reminder: put(reminder) };

/** Returns the deletion of a reminder, for the transaction that deletes the key. */
export const reminderDelete = (reminder: Notification | undefined): { reminder?: TransactItem } =>
  reminder === undefined ? {} : { reminder: { Delete: keyOf(reminder) } };

const dueOf = (owner: string, now: Date) => ({
  TableName: tableName("notifications"),
  ConsistentRead: true,
  ...selecting(when`#owner = ${owner} AND due < ${dueBound(now)}`),
});

/**
 * Reads the notifications of an owner that are due: those that failed least often first, of these the longest due first.
 * Leaves out those that wait for a retry. Strongly consistent.
 */
export async function findDue(owner: string, now: Date): Promise<Notification[]> {
  const { Items } = await dynamo().send(new QueryCommand({ ...dueOf(owner, now), Limit: MAX_WAITING_PER_OWNER }));
  const at = now.toISOString();
  const due = ((Items ?? []) as Notification[]).filter(({ retry_at = at }) => retry_at <= at);
  return due.sort((a, b) => (a.failures ?? 0) - (b.failures ?? 0));
}

/** Rows of the index that one request reads: about 200 KB. */
const INDEX_PAGE = 1_000;

/**
 * Finds the owners with notifications that are due, longest due first. A request reads at most a page of rows of one owner
 * and minute, and the next one seeks past them. Eventually consistent: a row that is missed is found a minute later.
 * @param maxOwners more are found once these have none left
 * @returns `longestDueAt`: due time of the longest overdue row; absent when none is due
 */
export async function findDueOwners(
  shard: number,
  now: Date,
  maxOwners: number,
): Promise<{ owners: string[]; longestDueAt?: string }> {
  const owners = new Set<string>();
  let longestDueAt: string | undefined;
  let from: string | undefined = "0";
  while (from !== undefined && owners.size < maxOwners) {
    const { Items = [], LastEvaluatedKey }: QueryCommandOutput = await dynamo().send(
      new QueryCommand({
        TableName: tableName("notifications"),
        IndexName: "due",
        ...selecting(when`due_shard = ${shard} AND due_owner BETWEEN ${from} AND ${dueOwnerBound(now)}`),
        Limit: INDEX_PAGE,
      }),
    );
    const rows = Items as Key[];
    for (const { owner } of rows) owners.add(owner);
    longestDueAt ??= rows.map(({ due }) => due.slice(0, due.indexOf("#"))).sort()[0];
    // No id of an owner has a character below the space, so this is the first key after those of the last owner and minute.
    from = LastEvaluatedKey && `${LastEvaluatedKey.due_owner} `;
  }
  return { owners: [...owners], ...(longestDueAt !== undefined && { longestDueAt }) };
}

/** Replaces a notification that could not be published. If another run has published it meanwhile, it is published twice. */
export async function postpone(Item: Notification): Promise<void> {
  await dynamo().send(new PutCommand({ TableName: tableName("notifications"), Item }));
}

/** Deletes a notification that is published, given up, or no longer true. Does nothing if another run has deleted it. */
export async function remove(row: Key): Promise<void> {
  await dynamo().send(new DeleteCommand(keyOf(row)));
}

/** Replaces a reminder that is published or given up by the next one. Does nothing if its key was deleted, and the row with it. */
export async function replace(row: Key, next: Notification): Promise<void> {
  await transactIf({
    published: { Delete: { ...keyOf(row), ...onlyIf(when`attribute_exists(due)`) } },
    next: put(next),
  });
}

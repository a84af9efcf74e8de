import { randomBytes } from "node:crypto";
import { PutCommand, QueryCommand } from "@aws-sdk/lib-dynamodb";
import { type DeploymentEvent, eventIdOf } from "../../foundation/events/deployment-event.ts";
import { dynamo, isConditionFailed, storedValue } from "../../foundation/platform/aws.ts";
import { pagesOf, readItem, transactIf } from "../../foundation/platform/dynamo.ts";
import { tableName } from "../../foundation/platform/env.ts";
import { selecting, when } from "../../foundation/platform/expression.ts";
import { timeOrderedUuid } from "../../foundation/platform/uuid.ts";
import { expiresAt } from "../line/delivery.ts";
import { LATE_MS } from "./feed-position.ts";

/** A row of the `events` table: the project's deployment events in order of time. */
export interface StoredEvent {
  project_id: string;
  /** Derived from the identity of the event, time first: equal events have equal ids. */
  id: string;
  event: string;
  deployment_id: string;
  body: string;
  /** When SQS received the event, by the clock of SQS. */
  received_at: string;
  /** When the row was written, by the clock of the function; absent in a row of an earlier version. */
  stored_at?: string;
  /**
   * Present in the copy of a late event: the id of the event. The id of the copy begins with `stored_at`, so that a
   * reader of the feed finds it where it looks for new events.
   */
  copy_of?: string;
  /** The SQS message that created the row. */
  message_id: string;
  /** Random id of the write: shows that the SDK has repeated it. */
  write_id: string;
  /** Expiry time in epoch seconds. */
  expires_at: number;
}

/**
 * Inserts the row of an event, and for a late event its copy with it.
 * @param messageId id of the SQS message
 * @param now absent = the current time
 * @returns false when the row exists: the event was received before, in this or in another message
 */
export async function insert(
  event: DeploymentEvent,
  receivedAt: Date,
  messageId: string,
  now = new Date(),
): Promise<boolean> {
  const row: StoredEvent = {
    project_id: event.project_id,
    id: eventIdOf(event),
    event: event.event,
    deployment_id: event.deployment_id,
    body: event.body,
    received_at: receivedAt.toISOString(),
    stored_at: now.toISOString(),
    message_id: messageId,
    write_id: randomBytes(6).toString("base64url"),
    expires_at: expiresAt(now),
  };
  const isLate = Date.parse(event.timestamp) < now.getTime() - LATE_MS;
  return isLate ? insertWithCopy(row, now) : insertAlone(row);
}

const putOf = (row: StoredEvent) => ({
  TableName: tableName("events"),
  Item: row,
  ConditionExpression: "attribute_not_exists(id)",
  ReturnValuesOnConditionCheckFailure: "ALL_OLD" as const,
});

/**
 * In one transaction: a copy without its event would be shown, and an event without its copy be missing. When the SDK repeats
 * it, DynamoDB recognizes its `ClientRequestToken`, so that no condition fails.
 */
function insertWithCopy(row: StoredEvent, now: Date): Promise<boolean> {
  const copy = { ...row, id: timeOrderedUuid(now.getTime(), randomBytes(16)), copy_of: row.id };
  return transactIf({ row: { Put: putOf(row) }, copy: { Put: putOf(copy) } });
}

async function insertAlone(row: StoredEvent): Promise<boolean> {
  try {
    await dynamo().send(new PutCommand(putOf(row)));
    return true;
  } catch (error) {
    if (!isConditionFailed(error)) throw error;
    return storedValue(error, "write_id") === row.write_id;
  }
}

/** The attributes of an event from which its deliveries follow. */
export type ReceivedEvent = Pick<StoredEvent, "id" | "body" | "received_at">;

/** Upper bound on the rows that one query reads, whether or not they match. */
const MAX_ROWS_READ = 1_000;
/** DynamoDB deletes an expired row at any time after its expiry. */
const EXPIRY_MARGIN_SECONDS = 3600;

/**
 * Reads a page of the project's events that were received at `since` or later, in the order of their ids, without the
 * copies of late events. Strongly consistent.
 *
 * An id begins with the time that the pipeline wrote into the event. That time has no relation to when the event was
 * received: the pipeline may have sent the event days later. So all events of the project are read, at most 30 days of
 * them, and DynamoDB filters them. An event that expires within the hour is left out, because the rows of its
 * deliveries may be deleted before it, and it would be delivered again.
 * @param after id of an event: only later ids are read; absent = all
 * @returns `next` is the `after` of the next page, absent on the last page. A page may be empty although more follow.
 */
export async function findReceived(
  projectId: string,
  since: Date,
  now: Date,
  after?: string,
): Promise<{ events: ReceivedEvent[]; next?: string }> {
  const expiry = Math.floor(now.getTime() / 1000) + EXPIRY_MARGIN_SECONDS;
  const { Items, LastEvaluatedKey } = await dynamo().send(
    new QueryCommand({
      TableName: tableName("events"),
      ConsistentRead: true,
      ...selecting(when`project_id = ${projectId}`, {
        filter: when`received_at >= ${since.toISOString()} AND expires_at > ${expiry} AND attribute_not_exists(copy_of)`,
        attributes: ["id", "body", "received_at"],
      }),
      Limit: MAX_ROWS_READ,
      ...(after !== undefined && { ExclusiveStartKey: { project_id: projectId, id: after } }),
    }),
  );
  return { events: (Items ?? []) as ReceivedEvent[], ...(LastEvaluatedKey && { next: LastEvaluatedKey.id as string }) };
}

/** What shows whether an event is a newer state of a deployment. */
export type EventHead = Pick<StoredEvent, "id" | "event" | "deployment_id" | "received_at" | "copy_of">;

/** Yields the events of a project with these ids page by page, also the copies of late ones. Strongly consistent. */
export const eventPages = (project_id: string, from: string, until: string): AsyncGenerator<EventHead[]> =>
  pagesOf<EventHead>("events", when`project_id = ${project_id} AND id BETWEEN ${from} AND ${until}`, {
    attributes: ["id", "event", "deployment_id", "received_at", "copy_of"],
  });

/** Returns the body of an event; undefined = it has expired. Strongly consistent. */
export async function bodyOf(project_id: string, id: string): Promise<string | undefined> {
  const row = await readItem<StoredEvent>({ TableName: tableName("events"), Key: { project_id, id } });
  return row?.body;
}

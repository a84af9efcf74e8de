import { PutCommand } from "@aws-sdk/lib-dynamodb";
import { type DeploymentEvent, eventIdOf } from "../deployments/deployment-event.ts";
import { dynamo, isConditionFailed, storedValue } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import { expiresAt } from "./delivery.ts";

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
  /** The SQS message that created the row. */
  message_id: string;
  /** Expiry time in epoch seconds. */
  expires_at: number;
}

/**
 * Inserts the row of an event.
 * @param messageId id of the SQS message. A row with the same id was written by this call, repeated by the SDK, or by
 *   an earlier receive of the message: the caller knows whether there was one.
 * @returns `inserted`, or whether the row of this event was inserted for the same message or for another one
 */
export async function insert(
  event: DeploymentEvent,
  receivedAt: Date,
  messageId: string,
): Promise<"inserted" | "same message" | "other message"> {
  const row: StoredEvent = {
    project_id: event.project_id,
    id: eventIdOf(event),
    event: event.event,
    deployment_id: event.deployment_id,
    body: event.body,
    received_at: receivedAt.toISOString(),
    message_id: messageId,
    expires_at: expiresAt(new Date()),
  };
  try {
    await dynamo().send(
      new PutCommand({
        TableName: tableName("events"),
        Item: row,
        ConditionExpression: "attribute_not_exists(id)",
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      }),
    );
    return "inserted";
  } catch (error) {
    if (!isConditionFailed(error)) throw error;
    return storedValue(error, "message_id") === messageId ? "same message" : "other message";
  }
}

import { DeleteCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../../foundation/platform/aws.ts";
import { pagesOf } from "../../foundation/platform/dynamo.ts";
import { tableName } from "../../foundation/platform/env.ts";
import { when } from "../../foundation/platform/expression.ts";
import { randomId } from "../../foundation/platform/random-id.ts";
import type { Delivery } from "./delivery.ts";

/*
 * The backlog of a webhook: the deliveries that wait, in a line of places, and one wake-up (webhooks/webhook/wake-up-store.ts). The
 * wake-up says when a worker looks at the line. So a receiver that is down costs a few reads and writes a minute, however
 * much waits for it.
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

import { createHash } from "node:crypto";
import type { FailureCode } from "../../foundation/events/failure-code.ts";
import type { WebhookEventName } from "../../foundation/events/webhook-event.ts";
import { timeOfUuid, uuidOfHex } from "../../foundation/platform/uuid.ts";
import { invalidField } from "../../foundation/schema/input.ts";
import type { DeliveryStatus } from "../line/delivery.ts";

/*
 * The cursor of a list of deliveries, also of those that a recovery looks at: the id after which the next page begins, a
 * digest of what is listed, and, after a page of a project that large rows have cut short, how far each of its webhooks was
 * read. Clients must not rely on what it contains.
 */

/** The bytes of a cursor in base64url: an id and a digest, and two ids for each of up to 20 webhooks. */
export const LIST_CURSOR_PATTERN = "^[A-Za-z0-9_-]{32,886}$";
export const listCursorRule =
  "must be the cursor of an earlier response for the same webhook or project, with the same filters";

/** Which deliveries to list. Absent = all. */
export interface DeliveryFilters {
  event?: WebhookEventName | undefined;
  status?: DeliveryStatus | undefined;
  deployment_id?: string | undefined;
  /** Of the last attempt, while the delivery has not succeeded. */
  error_code?: FailureCode | undefined;
  /** Time of the earliest event. */
  since?: Date | undefined;
  /** The time that all events are before. */
  until?: Date | undefined;
}

/**
 * The list that a cursor belongs to: the deliveries of one webhook, or of all webhooks of a project, with these filters; or those
 * of a webhook that a recovery looks at.
 */
export interface ListedDeliveries {
  scope: `webhook:${string}` | `project:${string}` | `recovery:${string}`;
  filters: DeliveryFilters;
}

/** Where a page begins. */
export interface ListPosition {
  /** The id after which the deliveries begin of each webhook that is not in `reached`; absent = the newest delivery. */
  after?: string | undefined;
  /** By webhook, the id after which its deliveries begin. */
  reached?: Record<string, string>;
}

const ID_BYTES = 16;
const DIGEST_BYTES = 8;
/** Stands for an absent `after`. */
const NO_ID = "00000000-0000-0000-0000-000000000000";

/** Returns the cursor of the page that begins at this position. */
export function listCursor({ after = NO_ID, reached = {} }: ListPosition, listed: ListedDeliveries): string {
  return Buffer.concat([bytesOf(after), digestOf(listed), ...Object.entries(reached).flat().map(bytesOf)]).toString(
    "base64url",
  );
}

/**
 * Returns where a page begins. Rejects the cursor of another list or of other filters, which would skip
 * deliveries. Needs no signature: a caller who invents a cursor skips only deliveries that they may read.
 * @throws ApiError `validation_error` for a text that is not a cursor of this list
 */
export function readListCursor(cursor: string, listed: ListedDeliveries): ListPosition {
  const bytes = Buffer.from(cursor, "base64url");
  const [after = NO_ID] = idsIn(bytes.subarray(0, ID_BYTES));
  const reached: Record<string, string> = {};
  for (let start = ID_BYTES + DIGEST_BYTES; start < bytes.length; start += 2 * ID_BYTES) {
    const [webhookId, id] = idsIn(bytes.subarray(start, start + 2 * ID_BYTES));
    if (webhookId !== undefined && id !== undefined) reached[webhookId] = id;
  }
  const position: ListPosition = { after: after === NO_ID ? undefined : after, reached };
  const ids = [position.after, ...Object.values(reached)].filter((id) => id !== undefined);
  // Not the same cursor: of another list, or of no list.
  if (listCursor(position, listed) !== cursor || !ids.every((id) => isInRange(id, listed.filters))) {
    throw invalidField("cursor", listCursorRule);
  }
  return position;
}

const bytesOf = (id: string): Buffer => Buffer.from(id.replaceAll("-", ""), "hex");

const idsIn = (bytes: Buffer): string[] => (bytes.toString("hex").match(/.{32}/g) ?? []).map(uuidOfHex);

/** DynamoDB rejects a query that begins outside its key condition. */
function isInRange(id: string, { since, until }: DeliveryFilters): boolean {
  const time = timeOfUuid(id);
  return (since === undefined || time >= since) && (until === undefined || time < until);
}

function digestOf({ scope, filters }: ListedDeliveries): Buffer {
  const { event, status, deployment_id, error_code, since, until } = filters;
  const values = [scope, event, status, deployment_id, error_code, since?.getTime(), until?.getTime()];
  return createHash("sha256").update(JSON.stringify(values)).digest().subarray(0, DIGEST_BYTES);
}

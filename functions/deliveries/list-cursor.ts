import { createHash } from "node:crypto";
import type { WebhookEventName } from "../deployments/webhook-event.ts";
import { canonicalUuid, timeOfUuid } from "../platform/uuid.ts";
import type { FailureCode } from "../receivers/failure-code.ts";
import { invalidField } from "../schema/input.ts";
import type { DeliveryStatus } from "./delivery.ts";

/*
 * The cursor of a list of deliveries: the id after which the next page begins, and a digest of what is listed. Clients must
 * not rely on what it contains.
 */

/** The bytes of an id and of a digest in base64url. */
export const LIST_CURSOR_PATTERN = "^[A-Za-z0-9_-]{32}$";
export const listCursorRule = "must come from the Link header of a page of the same list with the same filters";

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

/** The list that a cursor belongs to: the deliveries of one webhook, or of all webhooks of a project, with these filters. */
export interface ListedDeliveries {
  scope: `webhook:${string}` | `project:${string}`;
  filters: DeliveryFilters;
}

const ID_BYTES = 16;
const DIGEST_BYTES = 8;

/** Returns the cursor of the page that begins after the delivery with this id. */
export function listCursor(lastId: string, listed: ListedDeliveries): string {
  return Buffer.concat([Buffer.from(lastId.replaceAll("-", ""), "hex"), digestOf(listed)]).toString("base64url");
}

/**
 * Returns the id after which a page begins. Rejects the cursor of another list or of other filters, which would skip
 * deliveries. Needs no signature: a caller who invents a cursor skips only deliveries that they may read.
 * @throws ApiError `validation_error` for a text that is not a cursor of this list
 */
export function readListCursor(cursor: string, listed: ListedDeliveries): string {
  const hex = Buffer.from(cursor, "base64url").toString("hex", 0, ID_BYTES);
  const id = canonicalUuid(hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5"));
  if (id === undefined || listCursor(id, listed) !== cursor || !isInRange(id, listed.filters)) {
    throw invalidField("cursor", listCursorRule);
  }
  return id;
}

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

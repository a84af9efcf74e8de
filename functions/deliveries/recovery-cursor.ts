import { uuidOfHex } from "../platform/uuid.ts";
import { invalidField } from "../schema/input.ts";
import type { Delivery } from "./delivery.ts";

/* The cursor of a recovery: where the next call continues. Clients must not rely on what it contains. */

/** The bytes of two UUIDs in base64url. */
export const RECOVERY_CURSOR_PATTERN = "^[A-Za-z0-9_-]{43}$";
export const recoveryCursorRule = "must be the next_cursor of a recovery of this webhook";

/** The last delivery that a call looked at. */
export type RecoveryPosition = Pick<Delivery, "webhook_id" | "id">;

/** Returns the cursor that continues after a delivery. */
export function recoveryCursor({ webhook_id, id }: RecoveryPosition): string {
  return Buffer.from(`${webhook_id}${id}`.replaceAll("-", ""), "hex").toString("base64url");
}

/**
 * Returns the id of the delivery after which a cursor continues. Rejects the cursor of another webhook, which would skip
 * deliveries of this one. Needs no signature: a caller who invents a cursor skips only deliveries of their own webhook.
 * @throws ApiError `validation_error` for a text that is not a cursor of this webhook
 */
export function readRecoveryCursor(cursor: string, webhookId: string): string {
  const id = uuidOfHex(Buffer.from(cursor, "base64url").toString("hex").slice(-32));
  if (recoveryCursor({ webhook_id: webhookId, id }) !== cursor) throw invalidField("cursor", recoveryCursorRule);
  return id;
}

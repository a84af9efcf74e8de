import { chargeRequest } from "../access/request-budget-store.ts";
import { recordRequest } from "../audit/audit-store.ts";
import { accepted, defineEndpoint } from "../http/define-endpoint.ts";
import { endpoints } from "../manifest/endpoints.ts";
import { ApiError } from "../platform/errors.ts";
import type { Webhook } from "../webhooks/webhook.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { enter } from "./backlog.ts";
import type { DeliveryStatus } from "./delivery.ts";
import { findByStatus, SCANNED_ROWS, type ScanRange } from "./delivery-list-store.ts";
import { recoverInput, toRecoveryResult } from "./delivery-presenter.ts";
import { type PlaceKey, requested } from "./delivery-transitions.ts";
import { listCursor, readListCursor } from "./list-cursor.ts";

/**
 * Upper bounds for one call, checked after each page: a call never sends more, and reads at most a page more. The duration is
 * well below the 29 s timeout of API Gateway. The rows and read units bound what a call costs that finds nothing: 12 calls a
 * minute are 1,200 units a second.
 */
const MAX_DELIVERIES = 10_000;
const MAX_ROWS_READ = 25_000;
const MAX_READ_UNITS = 6_000;
const MAX_DURATION_MS = 20_000;

/**
 * Sends failed and held deliveries of events since a time again, oldest first. A call that reached an upper bound
 * returns a cursor, with which the next call continues. `since` and `status` may change in between: a call looks at the
 * events that are neither before `since` nor before the cursor. The caller repeats it and no job of ours, which would be a
 * second source of truth about the deliveries.
 */
export const handler = defineEndpoint(endpoints.recoverDeliveries, {
  input: recoverInput,
  async run({ params, input: { since, status, cursor }, actor, now }) {
    const webhook = await webhooks.getUnsuspended(params);
    if (webhook.disabled_at !== undefined) {
      throw new ApiError("conflict", 'The webhook is disabled. Enable it first: send PATCH with {"enabled":true}.');
    }
    const looked = { scope: `recovery:${webhook.id}`, filters: {} } as const;
    const { after } = cursor === undefined ? {} : readListCursor(cursor, looked);
    await chargeRequest(webhook.project_id, "recover", now);
    const details = { since: since.toISOString(), status, cursor };
    await recordRequest("webhook.recovery_requested", actor, webhook, details, now);
    const { count, stoppedAt } = await sendAgain(webhook, { since, after }, statusesOf(status), now);
    return accepted(toRecoveryResult(count, stoppedAt && listCursor({ after: stoppedAt }, looked)));
  },
});

const statusesOf = (status: "failed" | "held" | undefined) => (status ? [status] : (["failed", "held"] as const));

/**
 * Sends deliveries again until it reaches the newest one or an upper bound.
 * @param start when the call started
 * @returns the number of deliveries sent, and the id of the last one looked at; absent when no later one exists
 */
async function sendAgain(
  webhook: Webhook,
  range: ScanRange,
  statuses: readonly DeliveryStatus[],
  start: Date,
): Promise<{ count: number; stoppedAt?: string | undefined }> {
  const endsAt = start.getTime() + MAX_DURATION_MS;
  let count = 0;
  let [rowsRead, readUnits] = [0, 0];
  for await (const page of findByStatus(webhook.id, range, statuses)) {
    const transition = (place: PlaceKey) => requested("recover", place, start, statuses);
    // All are due at the same time, so that they are sent in the order of their events.
    const entering = page.found.map((delivery) => ({ delivery, due: start, transition }));
    const changes = await enter(webhook, entering);
    // A row may have changed since this call wrote it, if the SDK has repeated the write.
    count += changes.filter(({ isWritten, row }) => isWritten || row?.requested_at === start.toISOString()).length;
    rowsRead += page.rowsRead;
    readUnits += page.readUnits;
    const isReadUp = rowsRead >= MAX_ROWS_READ || readUnits >= MAX_READ_UNITS;
    const isAtBound = count > MAX_DELIVERIES - SCANNED_ROWS || isReadUp || Date.now() > endsAt;
    if (isAtBound) return { count, stoppedAt: page.lastId };
  }
  return { count };
}

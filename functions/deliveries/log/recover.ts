import { chargeRequest } from "../../foundation/budgets/request-budget-store.ts";
import { accepted, defineEndpoint } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { inParallel } from "../../foundation/platform/parallel.ts";
import { addSeconds } from "../../foundation/platform/time.ts";
import { recordRequest } from "../../foundation/records/audit-store.ts";
import type { Webhook } from "../../webhooks/webhook/webhook.ts";
import * as webhooks from "../../webhooks/webhook/webhook-store.ts";
import { catchUp } from "../../webhooks/webhook/worker-call.ts";
import { enter, putBack } from "../line/backlog.ts";
import type { Delivery, DeliveryStatus } from "../line/delivery.ts";
import { LOST_AFTER_SECONDS, newRequest, requested } from "../line/delivery-transitions.ts";
import { findByStatus, SCANNED_ROWS, type ScanRange } from "./delivery-list-store.ts";
import { type RecoveredStatus, recoveredStatuses, recoverInput, toRecoveryResult } from "./delivery-presenter.ts";
import { listCursor, readListCursor } from "./list-cursor.ts";
import { waitOf } from "./waiting.ts";

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
 * Sends failed and held deliveries of events since a time again, oldest first, and makes all that waits due at once. A call
 * that reached an upper bound returns a cursor, with which the next call continues. `since` and `status` may change in
 * between: a call looks at the events that are neither before `since` nor before the cursor. The caller repeats it and no job
 * of ours, which would be a second source of truth about the deliveries.
 */
export const handler = defineEndpoint(endpoints.recoverDeliveries, {
  input: recoverInput,
  async run({ params, input: { since, status, cursor }, actor, now }) {
    const webhook = await webhooks.getUnsuspended(params);
    if (webhook.disabled_at !== undefined) {
      throw new ApiError("conflict", 'The webhook is disabled. Enable it first: send PATCH with {"enabled":true}.');
    }
    if (status === "shadowed" && webhook.mode === "shadow") {
      throw new ApiError(
        "conflict",
        'The webhook is in shadow mode. Switch it first: send PATCH with {"mode":"live"}.',
      );
    }
    if (status === "superseded" && webhook.delivery === "latest") {
      throw new ApiError(
        "conflict",
        'The webhook gets the latest state only, and these are older. Change it first: send PATCH with {"delivery":"every"}.',
      );
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

/** On request only: what an earlier service has sent before a cutover, and what was out of date. */
const ON_REQUEST: readonly RecoveredStatus[] = ["shadowed", "superseded"];
const statusesOf = (status: RecoveredStatus | undefined) =>
  status ? [status] : recoveredStatuses.filter((each) => !ON_REQUEST.includes(each));

/** Deliveries that get their places back at once. */
const PARALLEL_REPAIRS = 25;

/** Returns whether a delivery is due for so long that its place may be lost. */
const isLost = ({ next_attempt_at = "" }: Delivery, now: Date): boolean =>
  next_attempt_at < addSeconds(now, -LOST_AFTER_SECONDS);

/** Returns whether a delivery waits for a later attempt, or for a receiver that fails. */
const isWaiting = (delivery: Delivery, webhook: Webhook, now: Date): boolean =>
  ["schedule", "recovery"].includes(waitOf(delivery, webhook, now).waiting_for ?? "");

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
  const request = newRequest(start);
  const endedStatuses = statuses.filter((status) => status !== "pending");
  const transition = requested("recover", request, endedStatuses);
  for await (const page of findByStatus(webhook.id, range, statuses)) {
    // What waits is in the line already: it would be sent twice if it is in a request.
    const waiting = page.found.filter((row) => isWaiting(row, webhook, start));
    const ended = page.found.filter(({ status }) => status !== "pending");
    if (waiting.length > 0) await catchUp(webhook, start);
    // One that should have been sent long ago may have lost its place.
    const late = page.found.filter((row) => row.status === "pending" && isLost(row, start) && !waiting.includes(row));
    await inParallel(late, PARALLEL_REPAIRS, (row) => putBack(webhook, row));
    // All are due at the same time, so that they are sent in the order of their events.
    const entering = ended.map((delivery) => ({ delivery, due: start, transition }));
    const changes = await enter(webhook, entering);
    // A row may have changed since this call wrote it, if the SDK has repeated the write.
    const sent = changes.filter(({ isWritten, row }) => isWritten || row?.requested_at === request.key);
    count += waiting.length + sent.length;
    rowsRead += page.rowsRead;
    readUnits += page.readUnits;
    const isReadUp = rowsRead >= MAX_ROWS_READ || readUnits >= MAX_READ_UNITS;
    const isAtBound = count > MAX_DELIVERIES - SCANNED_ROWS || isReadUp || Date.now() > endsAt;
    if (isAtBound) return { count, stoppedAt: page.lastId };
  }
  return { count };
}

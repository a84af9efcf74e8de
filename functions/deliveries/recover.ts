import { accepted, defineEndpoint } from "../http/define-endpoint.ts";
import { settings } from "../platform/env.ts";
import { ApiError } from "../platform/errors.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { findByStatus } from "./delivery-list-store.ts";
import { recoverInput } from "./delivery-presenter.ts";
import { enqueue, laneOf } from "./delivery-queue.ts";
import * as deliveries from "./delivery-store.ts";

/** Upper bounds for one call. The duration is well below the 29 s timeout of API Gateway. */
const MAX_DELIVERIES = 10_000;
const MAX_DURATION_MS = 20_000;

/**
 * Sends failed and held deliveries of events since a time again, oldest first. A recovered delivery is pending and is
 * not found again, so the client continues a call that reached an upper bound by repeating it.
 */
export const handler = defineEndpoint("POST /v1/projects/{project_id}/webhooks/{webhook_id}/recover", {
  input: recoverInput,
  async run({ params, input: { since, status }, now }) {
    const webhook = await webhooks.get(params.project_id, params.webhook_id);
    if (webhook.disabled_at !== undefined) {
      throw new ApiError("conflict", 'The webhook is disabled. Enable it first: send PATCH with {"enabled":true}.');
    }
    const endsAt = now.getTime() + MAX_DURATION_MS;
    const statuses = status === undefined ? (["failed", "held"] as const) : [status];
    let count = 0;
    for await (const page of findByStatus(webhook.id, since, statuses)) {
      const rescheduled = await deliveries.rescheduleAll(
        page.slice(0, MAX_DELIVERIES - count),
        settings.deliveryGraceSeconds(),
      );
      await enqueue(rescheduled, { lane: laneOf(webhook) });
      count += rescheduled.length;
      if (count >= MAX_DELIVERIES || Date.now() > endsAt) break;
    }
    return accepted({ count });
  },
});

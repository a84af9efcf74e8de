import { accepted, defineEndpoint } from "../http/define-endpoint.ts";
import { settings } from "../platform/env.ts";
import { ApiError } from "../platform/errors.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { findFinished } from "./delivery-list-store.ts";
import { recoverInput } from "./delivery-presenter.ts";
import { enqueue } from "./delivery-queue.ts";
import * as deliveries from "./delivery-store.ts";

const MAX_A_CALL = 10_000;
/** Well before API Gateway stops waiting. What is left by then is for the next call. */
const MAX_MS = 20_000;

/**
 * Sends the deliveries of events since a time that failed or were held once more, oldest first. What is recovered is pending
 * and so is not found again: a call that reaches its bound is continued by the same call.
 */
export const handler = defineEndpoint("POST /v1/projects/{project_id}/webhooks/{webhook_id}/recover", {
  input: recoverInput,
  async run({ params, input: { since, status }, now }) {
    const webhook = await webhooks.get(params.project_id, params.webhook_id);
    if (webhook.disabled_at !== undefined) {
      throw new ApiError("conflict", 'The webhook is disabled. Enable it first: PATCH it with {"enabled":true}.');
    }
    const endsAt = now.getTime() + MAX_MS;
    const statuses = status === undefined ? (["failed", "held"] as const) : [status];
    let count = 0;
    for await (const page of findFinished(webhook.id, since, statuses)) {
      const reopened = await deliveries.rescheduleAll(
        page.slice(0, MAX_A_CALL - count),
        settings.deliveryGraceSeconds(),
      );
      await enqueue(reopened);
      count += reopened.length;
      if (count >= MAX_A_CALL || Date.now() > endsAt) break;
    }
    return accepted({ count });
  },
});

import { chargeRequest } from "../access/request-budget-store.ts";
import { recordRequest } from "../audit/audit-store.ts";
import { accepted, defineEndpoint } from "../http/define-endpoint.ts";
import { settings } from "../platform/env.ts";
import { requireNotSuspended } from "../webhooks/suspension.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { toListItem } from "./delivery-presenter.ts";
import { enqueue, laneOf } from "./delivery-queue.ts";
import * as deliveries from "./delivery-store.ts";

/** Sends a delivery of any status again, under the same id. If the attempt fails, the retry schedule restarts. */
export const handler = defineEndpoint(
  "POST /v1/projects/{project_id}/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver",
  {
    async run({ params, actor, now }) {
      const webhook = await webhooks.get(params.project_id, params.webhook_id);
      requireNotSuspended(webhook);
      // Also for an unknown delivery: whether it exists is known only after the write.
      await chargeRequest(webhook.project_id, "redeliver", now);
      const { delivery, isNew } = await deliveries.reschedule(
        webhook.id,
        params.delivery_id,
        now,
        settings.deliveryGraceSeconds(),
      );
      // Not before: only the write shows whether the delivery exists. If this fails, the caller repeats the request.
      await recordRequest("webhook.redelivery_requested", actor, webhook, { delivery_id: delivery.id }, now);
      if (isNew) await enqueue([delivery], { lane: laneOf(webhook) });
      return accepted(toListItem(delivery, webhook, now));
    },
  },
);

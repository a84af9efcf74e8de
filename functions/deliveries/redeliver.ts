import { chargeRequest } from "../access/request-budget-store.ts";
import { recordRequest } from "../audit/audit-store.ts";
import { accepted, defineEndpoint } from "../http/define-endpoint.ts";
import { endpoints } from "../manifest/endpoints.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { enter } from "./backlog.ts";
import { toListItem } from "./delivery-presenter.ts";
import * as deliveries from "./delivery-store.ts";
import { type PlaceKey, requested } from "./delivery-transitions.ts";

/** Sends a delivery of any status again, under the same id. If the attempt fails, the retry schedule restarts. */
export const handler = defineEndpoint(endpoints.redeliver, {
  async run({ params, actor, now }) {
    const webhook = await webhooks.getUnsuspended(params);
    // Also for an unknown delivery, which costs a read.
    await chargeRequest(webhook.project_id, "redeliver", now);
    const read = await deliveries.get(webhook.id, params.delivery_id);
    await recordRequest("webhook.redelivery_requested", actor, webhook, { delivery_id: read.id }, now);
    const transition = (place: PlaceKey) => requested("redeliver", place, now);
    const [change] = await enter(webhook, [{ delivery: read, due: now, isAsked: true, transition }]);
    return accepted(toListItem(change?.row ?? read, webhook, now));
  },
});

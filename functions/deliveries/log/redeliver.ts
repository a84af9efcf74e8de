import { chargeRequest } from "../../foundation/budgets/request-budget-store.ts";
import { accepted, defineEndpoint } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { recordRequest } from "../../foundation/records/audit-store.ts";
import * as webhooks from "../../webhooks/webhook/webhook-store.ts";
import { enter } from "../line/backlog.ts";
import * as deliveries from "../line/delivery-store.ts";
import { newRequest, requested } from "../line/delivery-transitions.ts";
import { toListItem } from "./delivery-presenter.ts";

/** Sends a delivery of any status again, under the same id. If the attempt fails, the retry schedule restarts. */
export const handler = defineEndpoint(endpoints.redeliver, {
  async run({ params, actor, now }) {
    const webhook = await webhooks.getUnsuspended(params);
    // Also for an unknown delivery, which costs a read.
    await chargeRequest(webhook.project_id, "redeliver", now);
    const read = await deliveries.get(webhook.id, params.delivery_id);
    await recordRequest("webhook.redelivery_requested", actor, webhook, { delivery_id: read.id }, now);
    const transition = requested("redeliver", newRequest(now));
    const [change] = await enter(webhook, [{ delivery: read, due: now, isAsked: true, transition }]);
    return accepted(toListItem(change?.row ?? read, webhook, now));
  },
});

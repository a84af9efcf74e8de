import { meteredReads } from "../../foundation/budgets/metered-reads-store.ts";
import { defineEndpoint, ok } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import * as webhooks from "../../webhooks/webhook/webhook-store.ts";
import * as deliveries from "../line/delivery-store.ts";
import { toDetail } from "./delivery-presenter.ts";

/** Returns one delivery with its payload and attempts. */
export const handler = defineEndpoint(endpoints.getDelivery, {
  async run({ params, identity, now }) {
    const webhook = await webhooks.getUnsuspended(params);
    const delivery = await meteredReads({ project: params.project_id, caller: identity }, now, (reads) =>
      deliveries.getMetered(reads, webhook.id, params.delivery_id),
    );
    return ok(toDetail(delivery, webhook, now));
  },
});

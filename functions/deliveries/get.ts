import { meteredReads } from "../access/metered-reads-store.ts";
import { defineEndpoint, ok } from "../http/define-endpoint.ts";
import { endpoints } from "../manifest/endpoints.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { toDetail } from "./delivery-presenter.ts";
import * as deliveries from "./delivery-store.ts";

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

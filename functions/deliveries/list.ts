import { endpoint, ok } from "../endpoint.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { listPage } from "./delivery-log-store.ts";
import { deliveryPage, toRecord } from "./delivery-resource.ts";

/** The deliveries of a webhook, newest first. The next page is in the `Link` header (RFC 8288). */
export const handler = endpoint("GET /v1/projects/{project_id}/webhooks/{webhook_id}/deliveries", {
  query: deliveryPage,
  async run({ params, query, self }) {
    const webhook = await webhooks.get(params.project_id, params.webhook_id);
    const { items, nextCursor } = await listPage(webhook.id, query);
    if (nextCursor === undefined) return ok(items.map(toRecord));
    self.search = new URLSearchParams({ ...query.given, cursor: nextCursor }).toString();
    return ok(items.map(toRecord), { Link: `<${self}>; rel="next"` });
  },
});

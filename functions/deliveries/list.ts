import { defineEndpoint, okPage } from "../http/define-endpoint.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { listPage } from "./delivery-list-store.ts";
import { listQuery, toListItem } from "./delivery-presenter.ts";

/** Lists the deliveries of a webhook, newest first. */
export const handler = defineEndpoint("GET /v1/projects/{project_id}/webhooks/{webhook_id}/deliveries", {
  query: listQuery,
  async run({ params, query, requestUrl, now }) {
    const webhook = await webhooks.get(params.project_id, params.webhook_id);
    const { items, nextCursor } = await listPage(webhook.id, query);
    const page = items.map((delivery) => toListItem(delivery, webhook, now));
    return okPage(page, { requestUrl, query, nextCursor });
  },
});

import { meteredReads } from "../../foundation/budgets/metered-reads-store.ts";
import { defineEndpoint, okPage } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import * as webhooks from "../../webhooks/webhook/webhook-store.ts";
import { listPage } from "./delivery-list-store.ts";
import { listQuery, toListItem } from "./delivery-presenter.ts";
import { listCursor, readListCursor } from "./list-cursor.ts";

/** Lists the deliveries of a webhook, newest first. */
export const handler = defineEndpoint(endpoints.listDeliveries, {
  query: listQuery,
  async run({ params, identity, query, requestUrl, now }) {
    const webhook = await webhooks.getUnsuspended(params);
    const { filters, limit, cursor } = query;
    const listed = { scope: `webhook:${webhook.id}`, filters } as const;
    const position = cursor === undefined ? {} : readListCursor(cursor, listed);
    const { items, next } = await meteredReads({ project: params.project_id, caller: identity }, now, (reads) =>
      listPage(reads, [webhook.id], { filters, limit, position }),
    );
    const nextCursor = next && listCursor(next, listed);
    return okPage(
      items.map((delivery) => toListItem(delivery, webhook, now)),
      { requestUrl, query, nextCursor },
    );
  },
});

import { meteredReads } from "../../foundation/budgets/metered-reads-store.ts";
import { defineEndpoint, okPage } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { requireNotSuspended } from "../../webhooks/webhook/suspension.ts";
import * as suspensions from "../../webhooks/webhook/suspension-store.ts";
import { listPage } from "./delivery-list-store.ts";
import { listQuery, toListItem } from "./delivery-presenter.ts";
import { listCursor, readListCursor } from "./list-cursor.ts";

/** Lists the deliveries of all webhooks of a project, newest first. Those of deleted webhooks can no longer be read. */
export const handler = defineEndpoint(endpoints.listProjectDeliveries, {
  query: listQuery,
  async run({ params, identity, query, requestUrl, now }) {
    const { filters, limit, cursor } = query;
    const listed = { scope: `project:${params.project_id}`, filters } as const;
    const position = cursor === undefined ? {} : readListCursor(cursor, listed);
    const project = await suspensions.projectState(params.project_id);
    requireNotSuspended(project);
    const byId = new Map(project.webhooks.map((webhook) => [webhook.id, webhook]));
    const { items, next } = await meteredReads({ project: params.project_id, caller: identity }, now, (reads) =>
      listPage(reads, [...byId.keys()], { filters, limit, position }),
    );
    const nextCursor = next && listCursor(next, listed);
    const page = items.flatMap((delivery) => {
      const webhook = byId.get(delivery.webhook_id);
      return webhook ? [toListItem(delivery, webhook, now)] : [];
    });
    return okPage(page, { requestUrl, query, nextCursor });
  },
});

import { meteredReads } from "../../foundation/budgets/metered-reads-store.ts";
import { defineEndpoint, okPage } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { toListItem } from "../../foundation/records/audit-event.ts";
import { auditQuery, listPage } from "./audit-list-store.ts";

/** Lists what was done to the webhooks, secrets and members of a project, newest first. */
export const handler = defineEndpoint(endpoints.listProjectAuditEvents, {
  query: auditQuery,
  async run({ params: { project_id }, identity, query, requestUrl, now }) {
    const { items, nextCursor } = await meteredReads(`user:${identity.userId}`, now, (reads) =>
      listPage(reads, `project:${project_id}`, query),
    );
    return okPage(items.map(toListItem), { requestUrl, query, nextCursor });
  },
});

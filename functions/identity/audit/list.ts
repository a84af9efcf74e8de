import { meteredReads } from "../../foundation/budgets/metered-reads-store.ts";
import { defineEndpoint, okPage } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { toListItem } from "../../foundation/records/audit-event.ts";
import { auditQuery, listPage } from "./audit-list-store.ts";

/** Lists what was done to the API keys of the caller, newest first. */
export const handler = defineEndpoint(endpoints.listAuditEvents, {
  query: auditQuery,
  async run({ identity, query, requestUrl, now }) {
    if (identity.projectIds) {
      const message = "The credential is limited to projects. Read the audit log of one of them.";
      throw new ApiError("insufficient_permission", message);
    }
    const scope = `user:${identity.userId}` as const;
    const { items, nextCursor } = await meteredReads(scope, now, (reads) => listPage(reads, scope, query));
    return okPage(items.map(toListItem), { requestUrl, query, nextCursor });
  },
});

import { isScoped } from "../../foundation/access/identity.ts";
import { meteredReads } from "../../foundation/budgets/metered-reads-store.ts";
import { defineEndpoint, ok } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { toListItem } from "./api-key.ts";
import { listQuery } from "./api-key-input.ts";
import * as apiKeys from "./api-key-store.ts";

/** Lists the API keys of the caller, oldest first, with the time of their last use. A scoped key lists only itself. */
export const handler = defineEndpoint(endpoints.listApiKeys, {
  query: listQuery,
  async run({ identity, query, now }) {
    const { userId, keyId = "none" } = identity;
    const onlyId = isScoped(identity) ? keyId : undefined;
    const keys = await meteredReads(`user:${userId}`, now, (reads) => apiKeys.list(reads, userId, now, onlyId));
    return ok(keys.map((apiKey) => toListItem(apiKey, query.include)));
  },
});

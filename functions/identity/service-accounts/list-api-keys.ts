import { meteredReads } from "../../foundation/budgets/metered-reads-store.ts";
import { defineEndpoint, ok } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { toListItem } from "../api-keys/api-key.ts";
import { listQuery } from "../api-keys/api-key-input.ts";
import * as apiKeys from "../api-keys/api-key-store.ts";
import * as serviceAccounts from "./service-account-store.ts";

/** Lists the API keys of a service account, oldest first. */
export const handler = defineEndpoint(endpoints.listServiceAccountApiKeys, {
  query: listQuery,
  async run({ params, identity, query, now }) {
    const owner = await serviceAccounts.keyOwner(params);
    const keys = await meteredReads(`user:${identity.userId}`, now, (reads) => apiKeys.list(reads, owner, now));
    return ok(keys.map((apiKey) => toListItem(apiKey, query.include)));
  },
});

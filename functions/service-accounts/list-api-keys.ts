import { serviceAccountUserId } from "../access/identity.ts";
import { meteredReads } from "../access/metered-reads-store.ts";
import { toListItem } from "../api-keys/api-key.ts";
import { listQuery } from "../api-keys/api-key-input.ts";
import * as apiKeys from "../api-keys/api-key-store.ts";
import { defineEndpoint, ok } from "../http/define-endpoint.ts";
import { endpoints } from "../manifest/endpoints.ts";
import * as serviceAccounts from "./service-account-store.ts";

/** Lists the API keys of a service account, oldest first. */
export const handler = defineEndpoint(endpoints.listServiceAccountApiKeys, {
  query: listQuery,
  async run({ params: { project_id, service_account_id }, query, now }) {
    await serviceAccounts.requireAccount(project_id, service_account_id);
    const userId = serviceAccountUserId(service_account_id);
    const keys = await meteredReads(project_id, now, (reads) => apiKeys.list(reads, userId, now));
    return ok(keys.map((apiKey) => toListItem(apiKey, query.include)));
  },
});

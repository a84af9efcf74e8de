import { serviceAccountUserId } from "../access/identity.ts";
import * as apiKeys from "../api-keys/api-key-store.ts";
import { defineEndpoint, noContent } from "../http/define-endpoint.ts";
import { endpoints } from "../manifest/endpoints.ts";
import * as serviceAccounts from "./service-account-store.ts";

/** Deletes an API key of a service account. The next request with the key is rejected. */
export const handler = defineEndpoint(endpoints.deleteServiceAccountApiKey, {
  async run({ params: { project_id, service_account_id, id }, actor }) {
    await serviceAccounts.requireAccount(project_id, service_account_id);
    await apiKeys.remove(serviceAccountUserId(service_account_id), id, actor);
    return noContent();
  },
});

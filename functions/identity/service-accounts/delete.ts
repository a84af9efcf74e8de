import { serviceAccountUserId } from "../../foundation/access/identity.ts";
import { defineEndpoint, noContent } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import * as apiKeys from "../api-keys/api-key-store.ts";
import * as serviceAccounts from "./service-account-store.ts";

/**
 * Removes a service account: first as a member, so that its keys can do nothing from the next request on, then its
 * keys, then the account. A request that fails in between is repeated after 30 seconds; the account is in the list until all is done.
 */
export const handler = defineEndpoint(endpoints.deleteServiceAccount, {
  async run({ params: { project_id, service_account_id }, actor, now }) {
    await serviceAccounts.beginRemoval(project_id, service_account_id, now, actor);
    await apiKeys.removeAll(serviceAccountUserId(service_account_id), actor, "service_account_deleted");
    await serviceAccounts.endRemoval(project_id, service_account_id, actor);
    return noContent();
  },
});

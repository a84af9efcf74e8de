import { defineEndpoint, noContent } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import * as apiKeys from "../api-keys/api-key-store.ts";
import * as serviceAccounts from "./service-account-store.ts";

/** Deletes an API key of a service account. The next request with the key is rejected. */
export const handler = defineEndpoint(endpoints.deleteServiceAccountApiKey, {
  async run({ params, actor }) {
    await apiKeys.remove(await serviceAccounts.keyOwner(params), params.id, actor);
    return noContent();
  },
});

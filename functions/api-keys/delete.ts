import { defineEndpoint, noContent } from "../http/define-endpoint.ts";
import * as apiKeys from "./api-key-store.ts";

/** Deletes an API key of the caller. The next request with the key is rejected. */
export const handler = defineEndpoint("DELETE /v1/api-keys/{id}", {
  async run({ params, identity }) {
    await apiKeys.remove(identity.userId, params.id);
    return noContent();
  },
});

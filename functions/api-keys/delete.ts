import { defineEndpoint, noContent } from "../http/define-endpoint.ts";
import * as apiKeys from "./api-key-store.ts";

/** Revokes one of the caller's API keys. The next request with it is refused. */
export const handler = defineEndpoint("DELETE /v1/api-keys/{id}", {
  async run({ params, identity }) {
    await apiKeys.remove(identity.userId, params.id);
    return noContent();
  },
});

import { endpoint, noContent } from "../endpoint.ts";
import * as apiKeys from "./api-key-store.ts";

/** Revokes one of the caller's API keys. The next request with it is refused. */
export const handler = endpoint("DELETE /v1/api-keys/{id}", {
  async run({ params, identity }) {
    await apiKeys.remove(identity.userId, params.id);
    return noContent();
  },
});

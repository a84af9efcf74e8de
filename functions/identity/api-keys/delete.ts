import { isScoped } from "../../foundation/access/identity.ts";
import { defineEndpoint, noContent } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import * as apiKeys from "./api-key-store.ts";

/** Deletes an API key of the caller. The next request with the key is rejected. A scoped key deletes only itself. */
export const handler = defineEndpoint(endpoints.deleteApiKey, {
  async run({ params, identity, actor }) {
    const isVisible = !isScoped(identity) || params.id === identity.keyId;
    if (!isVisible) throw apiKeys.notFound();
    await apiKeys.remove(identity.userId, params.id, actor);
    return noContent();
  },
});

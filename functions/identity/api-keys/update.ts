import { isScoped } from "../../foundation/access/identity.ts";
import { defineEndpoint, ok } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { toListItem } from "./api-key.ts";
import { apiKeyPatch } from "./api-key-input.ts";
import * as apiKeys from "./api-key-store.ts";

/** Renames an API key of the caller. A scoped key renames only itself. */
export const handler = defineEndpoint(endpoints.updateApiKey, {
  input: apiKeyPatch,
  async run({ params, input, identity, actor }) {
    const isVisible = !isScoped(identity) || params.id === identity.keyId;
    if (!isVisible) throw apiKeys.notFound();
    return ok(toListItem(await apiKeys.update(identity.userId, params.id, input, actor)));
  },
});

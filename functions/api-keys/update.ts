import { isNarrow } from "../access/identity.ts";
import { defineEndpoint, ok } from "../http/define-endpoint.ts";
import { toListItem } from "./api-key.ts";
import { renameInput } from "./api-key-input.ts";
import * as apiKeys from "./api-key-store.ts";

/** Renames an API key of the caller. A narrow key renames only itself. */
export const handler = defineEndpoint("PATCH /v1/api-keys/{id}", {
  input: renameInput,
  async run({ params, input, identity, actor }) {
    const isVisible = !isNarrow(identity) || params.id === identity.keyId;
    if (!isVisible) throw apiKeys.notFound();
    return ok(toListItem(await apiKeys.rename(identity.userId, params.id, input.name, actor)));
  },
});

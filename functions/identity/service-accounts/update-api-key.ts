import { requireActive } from "../../foundation/access/suspension-store.ts";
import { defineEndpoint, ok } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { toListItem } from "../api-keys/api-key.ts";
import { apiKeyPatch } from "../api-keys/api-key-input.ts";
import * as apiKeys from "../api-keys/api-key-store.ts";
import * as serviceAccounts from "./service-account-store.ts";

/** Renames an API key of a service account. */
export const handler = defineEndpoint(endpoints.updateServiceAccountApiKey, {
  input: apiKeyPatch,
  async run({ params, input, actor }) {
    await requireActive(params.project_id);
    const owner = await serviceAccounts.keyOwner(params);
    return ok(toListItem(await apiKeys.update(owner, params.id, input, actor)));
  },
});

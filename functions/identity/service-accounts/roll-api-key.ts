import { requireActive } from "../../foundation/access/suspension-store.ts";
import { defineEndpoint, ok } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { toCreated } from "../api-keys/api-key.ts";
import { rollInput } from "../api-keys/api-key-input.ts";
import * as apiKeys from "../api-keys/api-key-store.ts";
import * as serviceAccounts from "./service-account-store.ts";

/**
 * Replaces the secret of an API key of a service account. This is the only response that contains the new one. The previous
 * one ends after the overlap, or at once.
 */
export const handler = defineEndpoint(endpoints.rollServiceAccountApiKey, {
  input: rollInput,
  async run({ params, input: { overlap_seconds: overlapSeconds }, actor, now }) {
    await requireActive(params.project_id);
    const owner = await serviceAccounts.keyOwner(params);
    const { apiKey, key } = await apiKeys.roll(owner, params.id, { overlapSeconds, now }, actor);
    return ok(toCreated(apiKey, key));
  },
});

import { defineEndpoint, ok } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { toCreated } from "./api-key.ts";
import { rollInput } from "./api-key-input.ts";
import * as apiKeys from "./api-key-store.ts";

/**
 * Replaces the secret of an API key of the caller. This is the only response that contains the new one. The previous one
 * ends after the overlap, or at once.
 */
export const handler = defineEndpoint(endpoints.rollApiKey, {
  input: rollInput,
  async run({ params, input: { overlap_seconds: overlapSeconds }, identity, actor, now }) {
    const { apiKey, key } = await apiKeys.roll(identity.userId, params.id, { overlapSeconds, now }, actor);
    return ok(toCreated(apiKey, key));
  },
});

import { randomBytes } from "node:crypto";
import { defineEndpoint, ok } from "../http/define-endpoint.ts";
import { endpoints } from "../manifest/endpoints.ts";
import { API_KEY_RANDOM_BYTES, toCreated } from "./api-key.ts";
import { rollInput } from "./api-key-input.ts";
import * as apiKeys from "./api-key-store.ts";

/**
 * Replaces the secret of an API key of the caller. This is the only response that contains the new one. The previous one
 * ends after the overlap, or at once.
 */
export const handler = defineEndpoint(endpoints.rollApiKey, {
  input: rollInput,
  async run({ params, input: { overlap_seconds }, identity, actor, now }) {
    const random = randomBytes(API_KEY_RANDOM_BYTES);
    const roll = { overlapSeconds: overlap_seconds, now, random };
    const rolled = await apiKeys.roll(identity.userId, params.id, roll, actor);
    return ok(toCreated(rolled.apiKey, rolled.key));
  },
});

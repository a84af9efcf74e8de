import { randomBytes } from "node:crypto";
import { serviceAccountUserId } from "../access/identity.ts";
import { API_KEY_RANDOM_BYTES, toCreated } from "../api-keys/api-key.ts";
import { rollInput } from "../api-keys/api-key-input.ts";
import * as apiKeys from "../api-keys/api-key-store.ts";
import { defineEndpoint, ok } from "../http/define-endpoint.ts";
import { endpoints } from "../manifest/endpoints.ts";
import * as serviceAccounts from "./service-account-store.ts";

/**
 * Replaces the secret of an API key of a service account. This is the only response that contains the new one. The previous
 * one ends after the overlap, or at once.
 */
export const handler = defineEndpoint(endpoints.rollServiceAccountApiKey, {
  input: rollInput,
  async run({ params: { project_id, service_account_id, id }, input: { overlap_seconds }, actor, now }) {
    await serviceAccounts.requireAccount(project_id, service_account_id);
    const random = randomBytes(API_KEY_RANDOM_BYTES);
    const roll = { overlapSeconds: overlap_seconds, now, random };
    const rolled = await apiKeys.roll(serviceAccountUserId(service_account_id), id, roll, actor);
    return ok(toCreated(rolled.apiKey, rolled.key));
  },
});

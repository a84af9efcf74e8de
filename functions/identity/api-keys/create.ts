import { randomBytes } from "node:crypto";
import { requireActive } from "../../foundation/access/suspension-store.ts";
import { created, defineEndpoint } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { allEnded } from "../../foundation/platform/parallel.ts";
import { API_KEY_RANDOM_BYTES, createApiKey, toCreated } from "./api-key.ts";
import { apiKeyInput } from "./api-key-input.ts";
import * as apiKeys from "./api-key-store.ts";
import { requireMember } from "./require-member.ts";

/** Creates an API key for the caller. This is the only response that contains the key. */
export const handler = defineEndpoint(endpoints.createApiKey, {
  input: apiKeyInput,
  async run({ input, identity, actor, onceOnly, now }) {
    await requireMember(identity.userId, input.project_ids);
    await allEnded(input.project_ids?.map(requireActive) ?? []);
    const { apiKey, key } = createApiKey(identity.userId, input, now, randomBytes(API_KEY_RANDOM_BYTES));
    const response = toCreated(apiKey, key);
    await apiKeys.insert(apiKey, actor, onceOnly(response));
    return created(response);
  },
});

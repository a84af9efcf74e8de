import { randomBytes } from "node:crypto";
import { created, defineEndpoint } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { API_KEY_RANDOM_BYTES, createApiKey, toCreated } from "./api-key.ts";
import { apiKeyInput } from "./api-key-input.ts";
import * as apiKeys from "./api-key-store.ts";
import { requireProjects } from "./require-projects.ts";

/** Creates an API key for the caller. This is the only response that contains the key. */
export const handler = defineEndpoint(endpoints.createApiKey, {
  input: apiKeyInput,
  async run({ input, identity, actor, onceOnly, now }) {
    await requireProjects(identity.userId, input.project_ids);
    const { apiKey, key } = createApiKey(identity.userId, input, now, randomBytes(API_KEY_RANDOM_BYTES));
    const response = toCreated(apiKey, key);
    await apiKeys.insert(apiKey, actor, onceOnly(response));
    return created(response);
  },
});

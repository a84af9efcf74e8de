import { randomBytes } from "node:crypto";
import { created, endpoint } from "../endpoint.ts";
import { API_KEY_RANDOM_BYTES, mintApiKey, newApiKey, withSecret } from "./api-key.ts";
import * as apiKeys from "./api-key-store.ts";

/** Makes an API key for the caller. This response is the only one that ever carries the key. */
export const handler = endpoint("POST /v1/api-keys", {
  input: newApiKey,
  async run({ input, identity, now }) {
    const { apiKey, key } = mintApiKey(identity.userId, input, now, randomBytes(API_KEY_RANDOM_BYTES));
    await apiKeys.insert(apiKey);
    return created(withSecret(apiKey, key));
  },
});

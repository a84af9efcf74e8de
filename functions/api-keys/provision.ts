import { randomBytes } from "node:crypto";
import { log } from "../platform/log.ts";
import { parse } from "../schema/input.ts";
import { API_KEY_RANDOM_BYTES, type CreatedApiKey, createApiKey, provisionInput, toCreated } from "./api-key.ts";
import * as apiKeys from "./api-key-store.ts";

/**
 * Creates an API key for a user whose account a partner created. The platform invokes this function with IAM
 * credentials.
 * @param input `{user_id, name}`
 */
export async function handler(input: unknown): Promise<CreatedApiKey> {
  const { user_id, name } = parse(provisionInput, input);
  const { apiKey, key } = createApiKey(user_id, { name }, new Date(), randomBytes(API_KEY_RANDOM_BYTES));
  await apiKeys.insert(apiKey);
  log.info("api key provisioned", { user_id, key_id: apiKey.id });
  return toCreated(apiKey, key);
}

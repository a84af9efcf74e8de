import { randomBytes } from "node:crypto";
import { log } from "../../foundation/platform/log.ts";
import { parse } from "../../foundation/schema/input.ts";
import { API_KEY_RANDOM_BYTES, type CreatedApiKey, createApiKey, toCreated } from "./api-key.ts";
import { provisionInput } from "./api-key-input.ts";
import * as apiKeys from "./api-key-store.ts";
import { requireMember } from "./require-projects.ts";

/**
 * Creates an API key for a user whose account a partner created. The platform invokes this function with IAM
 * credentials.
 * @param input `{user_id, name}`, and optionally `permissions`, `project_ids` and `expires_at`
 */
export async function handler(input: unknown): Promise<CreatedApiKey> {
  const { user_id, ...apiKeyInput } = parse(provisionInput(), input);
  await requireMember(user_id, apiKeyInput.project_ids);
  const { apiKey, key } = createApiKey(user_id, apiKeyInput, new Date(), randomBytes(API_KEY_RANDOM_BYTES));
  await apiKeys.insert(apiKey);
  log.info("api key provisioned", { user_id, key_id: apiKey.id });
  return toCreated(apiKey, key);
}

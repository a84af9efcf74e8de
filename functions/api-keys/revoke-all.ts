import { ApiError } from "../platform/errors.ts";
import { log } from "../platform/log.ts";
import { fields, parse, userId } from "../schema/input.ts";
import { MAX_KEYS_PER_USER } from "./api-key.ts";
import * as apiKeys from "./api-key-store.ts";

export const revocationInput = fields({ user_id: userId });

/** Upper bound on the keys that one call deletes: with more, they are created as fast as they are deleted. */
const MAX_REVOKED = 2 * MAX_KEYS_PER_USER;

/**
 * Deletes all API keys of a user, also those that are created meanwhile: it ends when the list is empty. After this
 * returns, requests with the keys are rejected. A user who can still sign in can create new keys. Idempotent. The platform
 * invokes this function with IAM credentials.
 * @param input `{user_id}`
 * @returns the number of keys that this call has deleted
 * @throws ApiError `conflict` when keys are created as fast as they are deleted
 */
export async function handler(input: unknown): Promise<{ revoked: number }> {
  const { user_id } = parse(revocationInput, input);
  let revoked = 0;
  while ((await apiKeys.idsOf(user_id)).length > 0) {
    if (revoked >= MAX_REVOKED) {
      throw new ApiError(
        "conflict",
        `${revoked} keys were deleted, and new ones are created meanwhile. End the user's sessions, then repeat the call.`,
      );
    }
    revoked += await apiKeys.removeAll(user_id);
  }
  log.info("api keys revoked", { user_id, revoked });
  return { revoked };
}

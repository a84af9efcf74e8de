import { platform } from "../access/actor.ts";
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
  for (let ids = await apiKeys.idsOf(user_id); ids.length > 0; ids = await apiKeys.idsOf(user_id)) {
    if (revoked >= MAX_REVOKED) {
      throw new ApiError(
        "conflict",
        `${revoked} keys were deleted, and new ones are created meanwhile. End the user's sessions, then repeat the call.`,
      );
    }
    // One after the other: concurrent transactions on the counter of the user cancel each other.
    for (const id of ids) if (await isRemoved(user_id, id)) revoked += 1;
  }
  log.info("api keys revoked", { user_id, revoked });
  return { revoked };
}

/** @returns false when a concurrent request has deleted the key */
async function isRemoved(userId: string, id: string): Promise<boolean> {
  try {
    await apiKeys.remove(userId, id, platform, "revoked_by_platform");
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.code === "not_found") return false;
    throw error;
  }
}

import * as z from "zod/mini";
import { platform } from "../../foundation/access/actor.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { log } from "../../foundation/platform/log.ts";
import { fields, parse, userId, uuid } from "../../foundation/schema/input.ts";
import { MAX_KEYS_PER_USER } from "./api-key.ts";
import * as apiKeys from "./api-key-store.ts";

/** `api_key_id`: absent = all keys of the user. */
export const revocationInput = fields({ user_id: userId, api_key_id: z.optional(uuid) });

/** Upper bound on the keys that one call deletes: with more, they are created as fast as they are deleted. */
const MAX_REVOKED = 2 * MAX_KEYS_PER_USER;

/**
 * Deletes one API key of a user or a service account, or all, also those that are created meanwhile: it ends when the list
 * is empty. A machine whose sign-in was approved, but has not taken its key, gets none. After this returns, requests with
 * the keys are rejected. A user who can still sign in can create new keys. Deleting all is idempotent. The platform and
 * operators invoke this function with IAM credentials.
 * @param input `{user_id}`, and `api_key_id` for one key
 * @returns the number of keys that this call has deleted
 * @throws ApiError `conflict` when keys are created as fast as they are deleted, `not_found` when there is no key `api_key_id`
 */
export async function handler(input: unknown): Promise<{ revoked: number }> {
  const { user_id, api_key_id } = parse(revocationInput, input);
  const revoked = api_key_id === undefined ? await removeAll(user_id) : await removeOne(user_id, api_key_id);
  log.info("api keys revoked", { user_id, revoked });
  return { revoked };
}

async function removeOne(userId: string, id: string): Promise<number> {
  await apiKeys.remove(userId, id, platform, "revoked_by_platform");
  return 1;
}

async function removeAll(userId: string): Promise<number> {
  await apiKeys.endRequests(userId, new Date());
  let revoked = 0;
  while (await apiKeys.hasKeys(userId)) {
    if (revoked >= MAX_REVOKED) {
      throw new ApiError(
        "conflict",
        `${revoked} keys were deleted, and new ones are created meanwhile. End the user's sessions, then repeat the call.`,
      );
    }
    revoked += await apiKeys.removeAll(userId, platform, "revoked_by_platform");
  }
  return revoked;
}

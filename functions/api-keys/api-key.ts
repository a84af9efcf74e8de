import { createHash } from "node:crypto";
import type * as z from "zod/mini";
import { timeOrderedUuid } from "../platform/uuid.ts";
import { displayName, fields, userId } from "../schema/input.ts";

/** A stored API key. The key itself is returned once, on creation; only its hash is stored. */
export interface ApiKey {
  id: string;
  user_id: string;
  name: string;
  key_prefix: string;
  key_hash: string;
  created_at: string;
  /** Absent before the first use. */
  last_used_at?: string;
}

export const apiKeyInput = fields({ name: displayName });
export type ApiKeyInput = z.infer<typeof apiKeyInput>;

/** Input of the platform that creates a key for a user. The result is an ordinary key of that user. */
export const provisionInput = fields({ user_id: userId, name: displayName });

export const MAX_KEYS_PER_USER = 100;

/** Prefix of user-created and of provisioned keys. Partner keys have the prefix `svcp_`, which does not match it. */
export const API_KEY_PREFIX = "svc_";
const API_KEY = /^svc_[0-9a-f]{64}$/;
const SECRET_BYTES = 32;
const SHOWN_CHARACTERS = 12;

/** Number of random bytes for one key: 32 for its secret part, 16 for its id. */
export const API_KEY_RANDOM_BYTES = SECRET_BYTES + 16;

/**
 * Creates a key of 256 random bits.
 * @param random `API_KEY_RANDOM_BYTES` bytes
 * @returns the item to store, and the only copy of the key
 */
export function createApiKey(
  owner: string,
  { name }: ApiKeyInput,
  now: Date,
  random: Buffer,
): { apiKey: ApiKey; key: string } {
  const key = API_KEY_PREFIX + random.subarray(0, SECRET_BYTES).toString("hex");
  const apiKey = {
    id: timeOrderedUuid(now.getTime(), random.subarray(SECRET_BYTES)),
    user_id: owner,
    name,
    key_prefix: key.slice(0, SHOWN_CHARACTERS),
    key_hash: hashApiKey(key),
    created_at: now.toISOString(),
  };
  return { apiKey, key };
}

/** Returns whether a token has the format of a key. Exact match: no trimming, case folding or decoding. */
export const isApiKey = (token: string): boolean => API_KEY.test(token);

/**
 * Returns the SHA-256 hash of the whole key, in hex. A slow password hash is not needed: 256 random bits cannot be
 * guessed.
 */
export const hashApiKey = (key: string): string => createHash("sha256").update(key).digest("hex");

/** Returns whether `last_used_at` is old enough to be written again. */
export function isLastUsedStale({ last_used_at }: ApiKey, now: Date, resolutionSeconds: number): boolean {
  return last_used_at === undefined || now.getTime() - Date.parse(last_used_at) >= resolutionSeconds * 1000;
}

/** Returns the fields of a key in a list. */
export function toListItem({ id, name, key_prefix, last_used_at, created_at }: ApiKey) {
  return { id, name, key_prefix, last_used_at: last_used_at ?? null, created_at };
}

/** Returns the fields of a new key. No other response contains `key`. */
export function toCreated({ id, name, key_prefix, created_at }: ApiKey, key: string) {
  return { id, name, key, key_prefix, created_at };
}
export type CreatedApiKey = ReturnType<typeof toCreated>;

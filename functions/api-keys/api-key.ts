import { createHash } from "node:crypto";
import type * as z from "zod/mini";
import { timeOrderedUuid } from "../platform/uuid.ts";
import { fields, label, userId } from "../schema/input.ts";

/** What is kept of a key. The key itself is not: it is shown once and only its hash is stored. */
export interface ApiKey {
  id: string;
  user_id: string;
  name: string;
  key_prefix: string;
  key_hash: string;
  created_at: string;
  /** Absent until the first use. */
  last_used_at?: string;
}

export const apiKeyInput = fields({ name: label });
export type ApiKeyInput = z.infer<typeof apiKeyInput>;

/** A key that the platform makes for a user. It is an ordinary key of that user. */
export const provisionInput = fields({ user_id: userId, name: label });

export const MAX_KEYS_PER_USER = 100;

/** User-created and provisioned keys alike. `svcp_`, the prefix of partner keys, does not start with it. */
export const API_KEY_PREFIX = "svc_";
const API_KEY = /^svc_[0-9a-f]{64}$/;
const SECRET_BYTES = 32;
const SHOWN_CHARACTERS = 12;

/** Random bytes that one key takes: 32 for its secret part, 16 for its id. */
export const API_KEY_RANDOM_BYTES = SECRET_BYTES + 16;

/** Makes a key of 256 random bits. `key` is the only copy of it. */
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

/** Whether a token can be a key at all. Exact: nothing is trimmed, folded or decoded. */
export const isApiKey = (token: string): boolean => API_KEY.test(token);

/**
 * SHA-256 over the whole key, in hex. A fast hash is right here: the key is 256 random bits, so there is nothing to guess
 * as there is with a password.
 */
export const hashApiKey = (key: string): string => createHash("sha256").update(key).digest("hex");

/** Whether `last_used_at` is old enough to be written again. */
export function isLastUsedStale({ last_used_at }: ApiKey, now: Date, resolutionSeconds: number): boolean {
  return last_used_at === undefined || now.getTime() - Date.parse(last_used_at) >= resolutionSeconds * 1000;
}

/** The fields of a key as the list shows them. */
export function toListItem({ id, name, key_prefix, last_used_at, created_at }: ApiKey) {
  return { id, name, key_prefix, last_used_at: last_used_at ?? null, created_at };
}

/** The fields of a key as its creator gets them, this once. */
export function toCreated({ id, name, key_prefix, created_at }: ApiKey, key: string) {
  return { id, name, key, key_prefix, created_at };
}
export type CreatedApiKey = ReturnType<typeof toCreated>;

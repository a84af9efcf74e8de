import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import * as z from "zod/mini";
import type { Identity } from "../access/identity.ts";
import { type Permission, permissions } from "../manifest/endpoints.ts";
import { timeOrderedUuid } from "../platform/uuid.ts";
import { displayName, fields, invalidField, isoTime, orRequired, setOf, userId, uuid } from "../schema/input.ts";

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
  /** What the key may do; absent = all that its user may. */
  permissions?: Permission[];
  /** The projects that the key can see; absent = all of its user. */
  project_ids?: string[];
  /** The first moment at which the key is rejected; absent = valid until it is deleted. */
  expires_at?: string;
}

/** More would not fit into the context that the authorizer passes to the endpoints. */
export const MAX_PROJECTS_PER_KEY = 20;
const MAX_LIFETIME_DAYS = 366;

const keyFields = {
  name: displayName,
  permissions: z.optional(
    setOf(z.enum(permissions, orRequired(`must be one of ${permissions.join(", ")}`)), permissions.length),
  ),
  project_ids: z.optional(setOf(uuid, MAX_PROJECTS_PER_KEY)),
  expires_at: z.optional(isoTime),
};

export const apiKeyInput = fields(keyFields);
export type ApiKeyInput = z.infer<typeof apiKeyInput>;

/** Input of the platform that creates a key for a user. The result is an ordinary key of that user. */
export const provisionInput = fields({ user_id: userId, ...keyFields });

export const MAX_KEYS_PER_USER = 100;

/** Prefix of user-created and of provisioned keys. Partner keys have the prefix `svcp_`, which does not match it. */
export const API_KEY_PREFIX = "svc_";
const API_KEY = /^svc_[0-9a-f]{64}$/;
const SECRET_BYTES = 28;
const CHECKSUM_CHARACTERS = 8;
const SHOWN_CHARACTERS = 12;

/** Number of random bytes for one key: 28 for its secret part, 16 for its id. */
export const API_KEY_RANDOM_BYTES = SECRET_BYTES + 16;

/**
 * Creates a key: `svc_`, 224 random bits and a CRC-32 checksum, 64 hex characters in total.
 * @param random `API_KEY_RANDOM_BYTES` bytes
 * @returns the item to store, and the only copy of the key
 * @throws ApiError `validation_error` when `expires_at` is in the past, or more than 366 days from now
 */
export function createApiKey(
  owner: string,
  { name, permissions, project_ids, expires_at }: ApiKeyInput,
  now: Date,
  random: Buffer,
): { apiKey: ApiKey; key: string } {
  const body = API_KEY_PREFIX + random.subarray(0, SECRET_BYTES).toString("hex");
  const key = body + checksum(body);
  const apiKey = {
    id: timeOrderedUuid(now.getTime(), random.subarray(SECRET_BYTES)),
    user_id: owner,
    name,
    key_prefix: key.slice(0, SHOWN_CHARACTERS),
    key_hash: hashApiKey(key),
    created_at: now.toISOString(),
    ...(permissions && { permissions }),
    ...(project_ids && { project_ids }),
    ...(expires_at && { expires_at: validExpiry(expires_at, now).toISOString() }),
  };
  return { apiKey, key };
}

function validExpiry(expiresAt: Date, now: Date): Date {
  const lifetimeDays = (expiresAt.getTime() - now.getTime()) / 86_400_000;
  if (lifetimeDays <= 0) throw invalidField("expires_at", "must be in the future");
  if (lifetimeDays > MAX_LIFETIME_DAYS)
    throw invalidField("expires_at", `must be at most ${MAX_LIFETIME_DAYS} days from now`);
  return expiresAt;
}

/** Returns whether the key is no longer valid because of its `expires_at`. */
export const isExpired = ({ expires_at }: ApiKey, now: Date): boolean =>
  expires_at !== undefined && now.getTime() >= Date.parse(expires_at);

/**
 * Returns whether a token has the format and the checksum of a key. Exact match: no trimming, case folding or decoding.
 * The checksum is no secret. It rejects typing errors and made-up keys without a read, and lets secret scanners tell a
 * key from similar text.
 */
export const isApiKey = (token: string): boolean =>
  API_KEY.test(token) && token.endsWith(checksum(token.slice(0, -CHECKSUM_CHARACTERS)));

/** Returns the CRC-32 (ISO 3309, as in zlib and gzip) of a text: 8 hex characters. */
const checksum = (text: string): string => crc32(text).toString(16).padStart(CHECKSUM_CHARACTERS, "0");

/**
 * Returns the SHA-256 hash of the whole key, in hex. A slow password hash is not needed: 224 random bits cannot be
 * guessed.
 */
export const hashApiKey = (key: string): string => createHash("sha256").update(key).digest("hex");

/** Returns whether `last_used_at` is old enough to be written again. */
export function isLastUsedStale({ last_used_at }: ApiKey, now: Date, resolutionSeconds: number): boolean {
  return last_used_at === undefined || now.getTime() - Date.parse(last_used_at) >= resolutionSeconds * 1000;
}

/** Returns the fields of a key in a list. */
export function toListItem(apiKey: ApiKey) {
  const { id, name, key_prefix, last_used_at, created_at } = apiKey;
  return { id, name, key_prefix, last_used_at: last_used_at ?? null, created_at, ...limitsOf(apiKey) };
}

/** Returns the fields of a new key. No other response contains `key`. */
export function toCreated(apiKey: ApiKey, key: string) {
  const { id, name, key_prefix, created_at } = apiKey;
  return { id, name, key, key_prefix, created_at, ...limitsOf(apiKey) };
}

/** Returns the limits of a key. A key without limits has none of these fields. */
function limitsOf({ permissions, project_ids, expires_at }: ApiKey) {
  return {
    ...(permissions && { permissions }),
    ...(project_ids && { project_ids }),
    ...(expires_at && { expires_at }),
  };
}
export type CreatedApiKey = ReturnType<typeof toCreated>;

/**
 * Returns what a credential may do. `null` = not limited: all permissions, all projects, no end that the service sets.
 * @param apiKey absent for a JWT
 */
export function toCurrent({ userId, authType, ...limits }: Identity, apiKey: ApiKey | undefined) {
  return {
    type: authType,
    user_id: userId,
    api_key: apiKey ? { id: apiKey.id, name: apiKey.name, key_prefix: apiKey.key_prefix } : null,
    permissions: limits.permissions ?? null,
    project_ids: limits.projectIds ?? null,
    expires_at: limits.expiresAt ?? null,
  };
}

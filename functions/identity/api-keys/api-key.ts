import type { Identity } from "../../foundation/access/identity.ts";
import type { PlatformPermission } from "../../foundation/manifest/permissions.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { present } from "../../foundation/platform/present.ts";
import { sha256Hex } from "../../foundation/platform/sha256.ts";
import { addSeconds } from "../../foundation/platform/time.ts";
import { timeOrderedUuid } from "../../foundation/platform/uuid.ts";
import { invalidField, shownText } from "../../foundation/schema/input.ts";
import type { ApiKeyInput, ApiKeyPatch, ImportedKeyInput } from "./api-key-input.ts";
import { API_KEY_PREFIX, checksum } from "./key-format.ts";

/** A stored API key. The key itself is returned once, on creation; only its hash is stored. */
export interface ApiKey {
  id: string;
  user_id: string;
  /** The project of the service account that owns the key, which sees its audit events; absent = a person owns it. */
  project_id?: string;
  name: string;
  key_prefix: string;
  key_hash: string;
  created_at: string;
  /** Absent before the first use. */
  last_used_at?: string;
  last_used_ip?: string | null;
  last_used_user_agent?: string | null;
  /** Permissions of the key, of this API and of the platform; absent = the same as its user. */
  permissions?: string[];
  /** The projects that the key can see; absent = all of its user. */
  project_ids?: string[];
  /** The first moment at which the key is rejected; absent = valid until it is deleted. */
  expires_at?: string;
  /** End of the overlap after a roll, ISO 8601: a previous secret of the key is rejected from then on; absent = current. */
  ends_at?: string;
  /** When DynamoDB deletes a previous secret, in epoch seconds; absent = never. */
  delete_after?: number;
}

/** A previous secret of a key. It is valid until the end of its overlap. */
export interface PreviousSecret {
  key_hash: string;
  ends_at: string;
}

/** The entry of a key in the list of its user. It names the records of its secrets. */
export interface KeyEntry {
  user_id: string;
  id: string;
  project_id?: string;
  key_hash: string;
  /** Newest first; absent = the key was never rolled. */
  previous?: PreviousSecret[];
}

/** The attribute of each field that a user can change. A roll keeps them; a new field does not compile without its row. */
export const changeable = { name: "name" } satisfies { [Field in keyof ApiKeyPatch]-?: Field & keyof ApiKey };

const MAX_LIFETIME_DAYS = 366;

export const MAX_KEYS_PER_USER = 100;

/** Upper bound on the previous secrets of one key that are valid at the same time. */
export const MAX_PREVIOUS_SECRETS = 3;

const SECRET_BYTES = 28;
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
  input: ApiKeyInput,
  now: Date,
  random: Buffer,
): { apiKey: ApiKey; key: string } {
  const { key, ...secret } = generateKey(random);
  const apiKey = {
    id: timeOrderedUuid(now.getTime(), random.subarray(SECRET_BYTES)),
    user_id: owner,
    name: input.name,
    ...secret,
    created_at: now.toISOString(),
    ...present(input, ["permissions", "project_ids"]),
    ...(input.expires_at && { expires_at: validExpiry(input.expires_at, now).toISOString() }),
  };
  return { apiKey, key };
}

/**
 * Returns the item to store for a key of an earlier service. Its secret part is known to its holder only.
 * @param random 16 bytes
 * @throws ApiError `validation_error` when it has expired, or was created in the future or before 1970
 */
export function importApiKey(
  { hash, user_id, name, key_prefix, created_at, expires_at, permissions }: ImportedKeyInput,
  now: Date,
  random: Buffer,
): ApiKey {
  const createdAt = created_at ?? now;
  if (createdAt > now) throw invalidField("created_at", "must not be in the future");
  if (createdAt.getTime() < 0) throw invalidField("created_at", "must not be before 1970");
  if (expires_at && expires_at <= now)
    throw invalidField("expires_at", "must be in the future: leave expired keys out");
  return {
    id: timeOrderedUuid(createdAt.getTime(), random),
    user_id,
    name,
    key_prefix,
    key_hash: hash,
    created_at: createdAt.toISOString(),
    ...(permissions && { permissions }),
    ...(expires_at && { expires_at: expires_at.toISOString() }),
  };
}

function generateKey(random: Buffer): { key: string } & Pick<ApiKey, "key_prefix" | "key_hash"> {
  const body = API_KEY_PREFIX + random.subarray(0, SECRET_BYTES).toString("hex");
  const key = body + checksum(body);
  return { key, key_prefix: key.slice(0, SHOWN_CHARACTERS), key_hash: hashApiKey(key) };
}

/**
 * Returns a key with a new secret, and the only copy of that: same id, name, limits and times.
 * @param random `API_KEY_RANDOM_BYTES` bytes
 * @throws ApiError `conflict` when the key has expired: the new secret would never be valid
 */
export function rollApiKey(apiKey: ApiKey, now: Date, random: Buffer): { apiKey: ApiKey; key: string } {
  if (isExpired(apiKey, now)) throw new ApiError("conflict", "The API key has expired. Create another one.");
  const { key, ...secret } = generateKey(random);
  return { apiKey: { ...apiKey, ...secret }, key };
}

/**
 * Decides which previous secrets of a key stay valid after a roll.
 * @param overlapSeconds for the replaced secret; 0 ends all previous ones too
 * @returns `kept`: the valid ones, newest first; `removed`: the hashes of all others
 */
export function secretsAfterRoll(
  { key_hash, previous = [] }: KeyEntry,
  now: Date,
  overlapSeconds: number,
): { kept: PreviousSecret[]; removed: string[] } {
  const all = [{ key_hash, ends_at: addSeconds(now, overlapSeconds) }, ...previous];
  const valid = overlapSeconds === 0 ? [] : all.filter((secret) => !isReplaced(secret, now));
  const kept = valid.slice(0, MAX_PREVIOUS_SECRETS);
  return { kept, removed: all.filter((secret) => !kept.includes(secret)).map(({ key_hash }) => key_hash) };
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

/** Returns whether a roll has replaced this secret of a key, and the overlap is over. It is then like a deleted key. */
export const isReplaced = ({ ends_at }: Pick<ApiKey, "ends_at">, now: Date): boolean =>
  ends_at !== undefined && now.getTime() >= Date.parse(ends_at);

/** Returns the first moment at which a secret of a key is rejected; undefined = none. */
export const endOf = ({ expires_at, ends_at }: ApiKey): string | undefined =>
  [expires_at, ends_at].filter(isSet).sort()[0];

const isSet = (text: string | undefined): text is string => text !== undefined;

/**
 * Returns the SHA-256 hash of the whole key, in hex. A slow password hash is not needed: 224 random bits cannot be
 * guessed.
 */
export const hashApiKey = sha256Hex;

/** Returns whether `last_used_at` is old enough to be written again. */
export function isLastUsedStale({ last_used_at }: ApiKey, now: Date, resolutionSeconds: number): boolean {
  return last_used_at === undefined || now.getTime() - Date.parse(last_used_at) >= resolutionSeconds * 1000;
}

/** The last use of a key; `null` = the request did not say. */
export interface LastUse {
  last_used_at: string;
  last_used_ip: string | null;
  last_used_user_agent: string | null;
}

const MAX_USER_AGENT_CHARACTERS = 200;
/** Longer than any IPv6 address. */
const MAX_IP_CHARACTERS = 45;

/**
 * Returns a use of a key. The client chooses its user agent, so that is limited in length and in characters.
 * @param ip the address of the client, or of the last proxy before the API
 */
export const useOf = (now: Date, ip: string | undefined, userAgent: string | undefined): LastUse => ({
  last_used_at: now.toISOString(),
  last_used_ip: shownText(ip ?? "", MAX_IP_CHARACTERS) || null,
  last_used_user_agent: shownText(userAgent ?? "", MAX_USER_AGENT_CHARACTERS) || null,
});

/** Returns the latest use of several secrets of one key. */
export function lastUseOf(secrets: ApiKey[]): Partial<LastUse> {
  const [latest] = secrets.toSorted((a, b) => ((a.last_used_at ?? "") < (b.last_used_at ?? "") ? 1 : -1));
  if (latest?.last_used_at === undefined) return {};
  const { last_used_at, last_used_ip = null, last_used_user_agent = null } = latest;
  return { last_used_at, last_used_ip, last_used_user_agent };
}

/** Returns the fields of a key in a list. @param include also the address and the agent of the last use */
export function toListItem(apiKey: ApiKey, include?: "last_use") {
  const { id, name, key_prefix, created_at } = apiKey;
  const { last_used_at = null, last_used_ip = null, last_used_user_agent = null } = apiKey;
  const lastUse: Partial<Omit<LastUse, "last_used_at">> =
    include === "last_use" ? { last_used_ip, last_used_user_agent } : {};
  return { id, name, key_prefix, last_used_at, ...lastUse, created_at, ...limitsOf(apiKey) };
}

/** Returns the fields of a new key. No other response contains `key`. */
export function toCreated(apiKey: ApiKey, key: string) {
  const { id, name, key_prefix, created_at } = apiKey;
  return { id, name, key, key_prefix, created_at, ...limitsOf(apiKey) };
}

/** Returns the limits of a key. A key without limits has none of these fields. */
const limitsOf = (apiKey: ApiKey) => present(apiKey, ["permissions", "project_ids", "expires_at"]);
export type CreatedApiKey = ReturnType<typeof toCreated>;

/**
 * Returns what a credential may do. `null` = not limited: all permissions, all projects, no end that the service sets.
 * @param apiKey absent for a JWT
 * @param platformPermissions those that the platform adds in this stage
 */
export function toCurrent(
  { userId, authType, keyPrefix, ...limits }: Identity,
  apiKey: ApiKey | undefined,
  platformPermissions: PlatformPermission[] = [],
) {
  return {
    type: authType,
    user_id: userId,
    api_key: apiKey ? { id: apiKey.id, name: apiKey.name, key_prefix: keyPrefix ?? apiKey.key_prefix } : null,
    permissions: limits.permissions ?? null,
    project_ids: limits.projectIds ?? null,
    expires_at: limits.expiresAt ?? null,
    ...(platformPermissions.length > 0 && { platform_permissions: platformPermissions }),
  };
}

import type { Identity } from "../../foundation/access/identity.ts";
import { settings } from "../../foundation/platform/env.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { log } from "../../foundation/platform/log.ts";
import { endOf, isExpired, isLastUsedStale, isReplaced } from "../api-keys/api-key.ts";
import * as apiKeys from "../api-keys/api-key-store.ts";
import { kindOfKey } from "../api-keys/imported-keys.ts";
import { API_KEY_PREFIX } from "../api-keys/key-format.ts";
import { storedHashOf } from "../api-keys/stored-hash.ts";
import type { Accepted, IdentityRequest } from "./credential-kind.ts";

/** A key of this service, or of an earlier one whose keys the stage imports, by its prefix. */
export function apiKeyCredential(token: string): Accepted | undefined {
  const isKey = token.startsWith(API_KEY_PREFIX) || kindOfKey(token) !== undefined;
  return isKey ? { authType: "api_key", identify: (request) => identifyByKey(token, request) } : undefined;
}

async function identifyByKey(token: string, { lastUse, now }: IdentityRequest): Promise<Identity> {
  const hash = await storedHashOf(token);
  const apiKey = hash === undefined ? undefined : await apiKeys.findByHash(hash);
  // Unknown, malformed, deleted and replaced keys get the same error, which must not reveal which keys exist or existed.
  if (!apiKey || isReplaced(apiKey, now))
    throw new ApiError("invalid_api_key", "The API key is not valid. Check it, or use another one.");
  if (isExpired(apiKey, now)) throw new ApiError("api_key_expired", "The API key has expired. Use another one.");
  if (isLastUsedStale(apiKey, now, settings.lastUsedResolutionSeconds())) {
    // Best effort: the request succeeds even if the time of last use cannot be written.
    await apiKeys
      .updateLastUsed(apiKey, lastUse(), AbortSignal.timeout(1_000))
      .catch((error: unknown) => log.error("last_used_at not written", error, { key_id: apiKey.id }));
  }
  const { user_id, id, key_prefix, permissions, project_ids } = apiKey;
  return {
    userId: user_id,
    authType: "api_key",
    keyId: id,
    keyPrefix: key_prefix,
    permissions,
    projectIds: project_ids,
    expiresAt: endOf(apiKey),
  };
}

import type { Identity } from "../../foundation/access/identity.ts";
import { settings } from "../../foundation/platform/env.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { log } from "../../foundation/platform/log.ts";
import { endOf, isExpired, isLastUsedStale, isReplaced, type LastUse } from "../api-keys/api-key.ts";
import * as apiKeys from "../api-keys/api-key-store.ts";
import { storedHashOf } from "../api-keys/stored-hash.ts";
import type { Credential } from "./credential.ts";
import { verifyJwt } from "./verify-jwt.ts";
import { identifyWorkflow, workflowIssuerOf } from "./workflow-identity.ts";

/**
 * Verifies a credential and returns its caller: for the authorizer, and for other services of the platform.
 * @param projectId the project that the request is for, on which the permissions of a workflow depend; undefined = none
 * @param lastUse returns what is stored as the last use of an API key; called only if it is written
 * @throws ApiError with the status 401 when the credential is not valid; another error when it could not be checked, such as
 *   an outage
 */
export async function identify(
  { kind, token }: Credential,
  projectId: string | undefined,
  lastUse: () => LastUse,
  now: Date,
): Promise<Identity> {
  if (kind === "api_key") return identifyByKey(token, lastUse, now);
  // The issuer that a token names chooses how it is verified. A token of a CI system never signs in a user.
  const issuer = workflowIssuerOf(token);
  if (issuer === undefined) return { userId: await verifyJwt(token, now), authType: "jwt" };
  return identifyWorkflow(token, issuer, projectId, now);
}

async function identifyByKey(token: string, lastUse: () => LastUse, now: Date): Promise<Identity> {
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

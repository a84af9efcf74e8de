import * as z from "zod/mini";
import type { Identity } from "../../foundation/access/identity.ts";
import type { Role } from "../../foundation/access/member.ts";
import { withPlatformPermissions } from "../../foundation/access/platform-permissions.ts";
import { requireAccess } from "../../foundation/access/require-access.ts";
import { permissions } from "../../foundation/manifest/permissions.ts";
import { ApiError, type ErrorCode } from "../../foundation/platform/errors.ts";
import { log } from "../../foundation/platform/log.ts";
import { allEnded } from "../../foundation/platform/parallel.ts";
import { fields, invalidField, listOf, orRequired, parse, uuid } from "../../foundation/schema/input.ts";
import { useOf } from "../api-keys/api-key.ts";
import { type Credential, readCredential } from "../authentication/credential.ts";
import { expiryOf, KeyNotLookedUpError } from "../authentication/jwt.ts";

const MAX_CREDENTIALS = 100;

/** Each entry is checked by itself: one that is malformed does not affect the others. */
const batchInput = fields({ credentials: listOf(z.unknown(), MAX_CREDENTIALS) });

const entryInput = () =>
  fields({
    token: z.string(orRequired("must be a string")),
    project_id: z.optional(uuid),
    permission: z.optional(z.enum(withPlatformPermissions(permissions))),
  });

/** The code of each error that is about an entry. Any other error is one of the whole call. */
const codes = {
  validation_error: "malformed",
  invalid_api_key: "invalid_api_key",
  api_key_expired: "api_key_expired",
  invalid_token: "invalid_token",
  token_expired: "token_expired",
  workflow_not_trusted: "invalid_token",
  insufficient_permission: "forbidden",
  not_found: "not_found",
} as const satisfies Partial<Record<ErrorCode, string>>;

export type Verification =
  | { valid: false; code: (typeof codes)[keyof typeof codes] }
  | {
      valid: true;
      type: Identity["authType"];
      user_id: string;
      /** Id of the API key; null for a JWT and a workflow. */
      key_id: string | null;
      /** null = all of the user. */
      permissions: string[] | null;
      /** null = all of the user. */
      project_ids: string[] | null;
      /** The role in the project that the entry names; null = it names none, or the caller is a workflow. */
      role: Role | null;
      /** The first moment at which the credential is rejected; null = none. */
      expires_at: string | null;
    };

/**
 * Verifies credentials that other services of the platform receive, as the authorizer does: a deleted key is invalid at
 * once. A use counts for `last_used_at`. The platform invokes this function with IAM credentials.
 * @param input `{credentials: [{token, project_id, permission}]}`, at most 100. Without `project_id`, no role is checked;
 *   without `permission`, no permission is.
 * @returns one result for each credential, in the same order
 * @throws Error when a credential cannot be checked, such as during an outage: it may be valid. A code for that entry would make a
 *   caller that treats every invalid result as a 401 sign users out
 */
export async function handler(input: unknown): Promise<{ results: Verification[] }> {
  const { credentials } = parse(batchInput, input);
  const now = new Date();
  const schema = entryInput();
  const identities = new Map<string, Promise<Identity>>();
  /** Several entries with the same credential cause one read. What a workflow may do depends on the project. */
  const identityOf = (credential: Credential, projectId: string | undefined): Promise<Identity> => {
    const { authType, token } = credential;
    const key = authType === "workflow" ? `${token} ${projectId}` : token;
    const known = identities.get(key);
    const lastUse = () => useOf(now, undefined, undefined);
    const identity = known ?? credential.identify({ projectId, lastUse, now });
    if (!known) identities.set(key, identity);
    return identity;
  };
  const results = await allEnded(credentials.map((entry) => verify(() => parse(schema, entry), identityOf)));
  const rejected = results.filter(({ valid }) => !valid).length;
  if (rejected > 0) log.info("credentials rejected", { rejected, verified: results.length });
  return { results };
}

async function verify(
  readEntry: () => z.output<ReturnType<typeof entryInput>>,
  identityOf: (credential: Credential, projectId: string | undefined) => Promise<Identity>,
): Promise<Verification> {
  try {
    const { token, project_id, permission = "none" } = readEntry();
    const credential = readCredential({ authorization: [`Bearer ${token}`] });
    // Spaces around it would be further forms of one token, each with a place in the caches of other services.
    if (credential?.token !== token) throw invalidField("token", "is not a bearer token");
    const identity = await identityOf(credential, project_id);
    const access = project_id === undefined ? "user" : "viewer";
    const params: Record<string, string> = project_id === undefined ? {} : { project_id };
    const role = await requireAccess({ access, permission }, identity, params);
    return toVerification(identity, token, role);
  } catch (error) {
    // Not an error of the call: strangers who invent keys would make the checks of all other credentials fail.
    if (error instanceof KeyNotLookedUpError) return { valid: false, code: "invalid_token" };
    const code = error instanceof ApiError && isOfEntry(error.code) ? codes[error.code] : undefined;
    if (code === undefined) throw error;
    return { valid: false, code };
  }
}

const isOfEntry = (code: ErrorCode): code is keyof typeof codes => code in codes;

function toVerification(
  { authType, userId, keyId, permissions, projectIds, expiresAt }: Identity,
  token: string,
  role: Role | undefined,
): Verification {
  return {
    valid: true,
    type: authType,
    user_id: userId,
    key_id: keyId ?? null,
    permissions: permissions ?? null,
    project_ids: projectIds ?? null,
    // In its projects, only its permissions limit a workflow.
    role: authType === "workflow" ? null : (role ?? null),
    expires_at: authType === "api_key" ? (expiresAt ?? null) : expiryOf(token),
  };
}

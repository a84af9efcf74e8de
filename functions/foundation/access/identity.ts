import * as z from "zod/mini";

/**
 * The authenticated caller. Endpoints read it only from the request context, which the authorizer writes.
 */
export interface Identity {
  userId: string;
  /**
   * Kind of the credential. An API key never has more permissions than its user. A workflow is no user: it has exactly
   * `permissions` in exactly `projectIds`.
   */
  authType: "jwt" | "api_key" | "workflow";
  /** Id of the API key; absent for a JWT. */
  keyId?: string | undefined;
  /** Prefix of the secret that was sent, which may be a previous one of the key; absent for a JWT. */
  keyPrefix?: string | undefined;
  /** The permissions of a scoped credential; absent = all of the user. */
  permissions?: string[] | undefined;
  /** The only projects that a scoped credential can see; absent = all of the user. */
  projectIds?: string[] | undefined;
  /** Expiry of the credential, ISO 8601; absent for a JWT, and for an API key without one. A previous secret expires with its overlap. */
  expiresAt?: string | undefined;
  /** Issuer and numeric id of the repository of a workflow: `<iss>#<id>`. Absent for a user. */
  repositoryId?: string | undefined;
  /** Where a workflow runs, for logs: name of the repository, ref and id of the run. Absent unless the token names them. */
  repository?: string | undefined;
  ref?: string | undefined;
  runId?: string | undefined;
}

/** Upper bound on `projectIds`: more would not fit into the context that the authorizer passes to the endpoints. */
export const MAX_PROJECTS_PER_CREDENTIAL = 20;

/** Beginnings of user ids that this service gives itself. No identity provider can sign in such a user. */
export const reservedUserIds = { workflow: "workflow:", serviceAccount: "service-account:" } as const;

const words = z.pipe(
  z.string(),
  z.transform((text: string) => text.split(" ").filter((word) => word !== "")),
);

/** The authorizer may be of a later release. A kind it added has what a workflow has: the listed permissions and projects only. */
const authType = z.pipe(
  z.string(),
  z.transform((text: string) => (text === "jwt" || text === "api_key" ? text : "workflow")),
);

/** The authorizer context as API Gateway passes it: all values are text, and API Gateway adds its own entries. */
export const identityContext = z.object({
  userId: z.string(),
  authType,
  keyId: z.optional(z.string()),
  keyPrefix: z.optional(z.string()),
  permissions: z.optional(words),
  projectIds: z.optional(words),
  expiresAt: z.optional(z.string()),
  repositoryId: z.optional(z.string()),
  repository: z.optional(z.string()),
  ref: z.optional(z.string()),
  runId: z.optional(z.string()),
});

/** Converts the caller to the authorizer's context, whose values must be text. `identityContext` reads it. */
export function toContext({ permissions, projectIds, ...identity }: Identity): Record<string, string> {
  const texts = { ...identity, permissions: permissions?.join(" "), projectIds: projectIds?.join(" ") };
  const context: Record<string, string> = {};
  for (const [name, text] of Object.entries(texts)) if (text !== undefined) context[name] = text;
  return context;
}

/**
 * Returns whether the credential may do less than its user. It then manages no API key but itself: the leaked key of one job
 * must not delete those of the others.
 */
export const isScoped = ({ permissions, projectIds }: Identity): boolean =>
  permissions !== undefined || projectIds !== undefined;

/**
 * Returns whose requests a limit counts together: those of a user with all credentials, because a user can create a hundred keys, and
 * those of all workflows of a repository, because any project can trust it again.
 */
export const callerOf = ({ userId, repositoryId }: Identity): string =>
  repositoryId === undefined ? userId : `${reservedUserIds.workflow}${repositoryId}`;

/**
 * Returns the scope of an `Idempotency-Key`: a user, a scoped key, or the workflows of a repository in a project. A scoped
 * key has a scope of its own, because a repeat returns what was created. The trusted workflow that a workflow matches is not part of
 * it, so a repeat is recognized after trusted workflows were added or deleted.
 */
export function idempotencyScopeOf(identity: Identity, projectId: string | undefined): string {
  const { userId, keyId, repositoryId } = identity;
  if (repositoryId !== undefined) return `${callerOf(identity)}#${projectId ?? ""}`;
  // No user id contains a line break.
  return isScoped(identity) ? `${userId}\n${keyId}` : userId;
}

/** Returns the user id of a service account. No identity provider may issue it: see identity/authentication/jwt.ts. */
export const serviceAccountUserId = (id: string): string => reservedUserIds.serviceAccount + id;

import * as z from "zod/mini";
import { type WorkflowPermission, workflowPermissions } from "../manifest/endpoints.ts";
import { timeOrderedUuid } from "../platform/uuid.ts";
import { displayName, fields, orRequired, printableText, setOf } from "../schema/input.ts";
import { ISSUER_NAME, type WorkflowIssuer } from "./workflow-issuer.ts";

/** A workflow of a CI system that may act in a project. A workflow without a stored secret: its token is the credential. */
export interface TrustedWorkflow {
  id: string;
  project_id: string;
  name?: string;
  /** Name of the issuer when the trust was created. */
  issuer: string;
  /**
   * The claim `iss`. A trust belongs to this issuer, and not to its name: the name may later be given to another issuer.
   */
  issuer_url: string;
  repository_id: string;
  /** Absent = any. */
  repository_owner_id?: string;
  /** Full name of a branch, tag or pull request; absent = any. */
  ref?: string;
  /** Absent = any, and jobs without an environment. */
  environment?: string;
  permissions: WorkflowPermission[];
  created_at: string;
}

export const MAX_TRUSTED_WORKFLOWS_PER_PROJECT = 50;
const MAX_CLAIM_CHARACTERS = 255;

/**
 * A numeric id of a repository or its owner, as text. A name is not accepted: when a repository is renamed or deleted,
 * someone else may take its name.
 */
const numericId = z
  .string(orRequired("must be a string of digits"))
  .check(z.regex(/^[1-9]\d{0,19}$/, "must be the numeric id as a string of digits, because a name can be taken over"));

const exactText = printableText.check(
  z.minLength(1, "must not be empty"),
  z.maxLength(MAX_CLAIM_CHARACTERS, `must be at most ${MAX_CLAIM_CHARACTERS} characters long`),
);

// https://git-scm.com/docs/git-check-ref-format: the wildcards are not allowed in a ref.
const REF = /^refs\/[^*?[]+$/;

export const trustedWorkflowInput = fields({
  name: z.optional(displayName),
  issuer: z.string(orRequired("must be a string")).check(z.regex(ISSUER_NAME, "must be the name of an issuer")),
  repository_id: numericId,
  repository_owner_id: z.optional(numericId),
  ref: z.optional(
    exactText.check(z.regex(REF, "must be a full ref such as refs/heads/main; wildcards are not accepted")),
  ),
  environment: z.optional(exactText),
  permissions: setOf(
    z.enum(workflowPermissions, orRequired(`must be one of ${workflowPermissions.join(", ")}`)),
    workflowPermissions.length,
  ),
});
export type TrustedWorkflowInput = z.infer<typeof trustedWorkflowInput>;

export const TRUSTED_WORKFLOW_RANDOM_BYTES = 16;

/** @param random `TRUSTED_WORKFLOW_RANDOM_BYTES` bytes */
export function createTrustedWorkflow(
  input: TrustedWorkflowInput,
  { issuer }: Pick<WorkflowIssuer, "issuer">,
  projectId: string,
  now: Date,
  random: Buffer,
): TrustedWorkflow {
  const { name, repository_owner_id, ref, environment } = input;
  return {
    id: timeOrderedUuid(now.getTime(), random),
    project_id: projectId,
    ...(name !== undefined && { name }),
    issuer: input.issuer,
    issuer_url: issuer,
    repository_id: input.repository_id,
    ...(repository_owner_id !== undefined && { repository_owner_id }),
    ...(ref !== undefined && { ref }),
    ...(environment !== undefined && { environment }),
    permissions: input.permissions,
    created_at: now.toISOString(),
  };
}

/** Returns the fields of a trust in a response. */
export function toResponse(trust: TrustedWorkflow) {
  const { id, project_id, issuer, repository_id, permissions, created_at } = trust;
  return {
    id,
    project_id,
    name: trust.name ?? null,
    issuer,
    repository_id,
    repository_owner_id: trust.repository_owner_id ?? null,
    ref: trust.ref ?? null,
    environment: trust.environment ?? null,
    permissions,
    created_at,
  };
}

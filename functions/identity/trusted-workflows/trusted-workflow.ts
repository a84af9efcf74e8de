import { timeOrderedUuid } from "../../foundation/platform/uuid.ts";
import type { TrustedWorkflowInput } from "./trusted-workflow-input.ts";
import type { WorkflowIssuer } from "./workflow-issuer.ts";

/** A workflow of a CI system that may act in a project. A workflow without a stored secret: its token is the credential. */
export interface TrustedWorkflow {
  id: string;
  project_id: string;
  name?: string;
  /** Name of the issuer when the trusted workflow was created. */
  issuer: string;
  /**
   * The claim `iss`. A trusted workflow belongs to this issuer, and not to its name: the name may later be given to another issuer.
   */
  issuer_url: string;
  repository_id: string;
  /** Absent = any. */
  repository_owner_id?: string;
  /** Full name of a branch, tag or pull request; absent = any. */
  ref?: string;
  /** Absent = any, and jobs without an environment. */
  environment?: string;
  /** File of the workflow with the ref that it is read from; absent = any. */
  job_workflow_ref?: string;
  /** What started the workflow, such as `push`; absent = anything. */
  event_name?: string;
  /** Names of permissions of this API (`workflowPermissions`) and of the platform. */
  permissions: string[];
  created_at: string;
}

/** With `MAX_PROJECTS_PER_CREDENTIAL`, bounds what the authorizer reads for a request without a project. */
export const MAX_TRUSTED_WORKFLOWS_PER_PROJECT = 10;

export const TRUSTED_WORKFLOW_RANDOM_BYTES = 16;

/** @param random `TRUSTED_WORKFLOW_RANDOM_BYTES` bytes */
export function createTrustedWorkflow(
  input: TrustedWorkflowInput,
  { issuer }: Pick<WorkflowIssuer, "issuer">,
  projectId: string,
  now: Date,
  random: Buffer,
): TrustedWorkflow {
  return {
    ...input,
    id: timeOrderedUuid(now.getTime(), random),
    project_id: projectId,
    issuer_url: issuer,
    created_at: now.toISOString(),
  };
}

/** Returns the fields of a trusted workflow in a response. */
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
    job_workflow_ref: trust.job_workflow_ref ?? null,
    event_name: trust.event_name ?? null,
    permissions,
    created_at,
  };
}

import { type WorkflowPermission, workflowPermissions } from "../manifest/endpoints.ts";
import type { TrustedWorkflow } from "./trusted-workflow.ts";

/** What the token of a workflow says about it. Absent = the token has no such claim, or not as printable text. */
export interface Workflow {
  repositoryId: string;
  ownerId?: string | undefined;
  ref?: string | undefined;
  environment?: string | undefined;
  /** Display name of the repository, which may belong to another repository later. Only for logs. */
  repository?: string | undefined;
  /** Id of the run or pipeline. Only for logs. */
  runId?: string | undefined;
}

/** Returns whether all fields that are set in a trust of the workflow's repository equal its claims. */
export function isTrusted(workflow: Workflow, trust: TrustedWorkflow): boolean {
  const isEqual = (wanted: string | undefined, claim: string | undefined) => wanted === undefined || wanted === claim;
  return (
    trust.repository_id === workflow.repositoryId &&
    isEqual(trust.repository_owner_id, workflow.ownerId) &&
    isEqual(trust.ref, workflow.ref) &&
    isEqual(trust.environment, workflow.environment)
  );
}

export interface Grant {
  /** Id of the oldest trust that gives it. */
  trustId: string;
  projectIds: string[];
  permissions: WorkflowPermission[];
}

/** More would not fit into the context that the authorizer passes to the endpoints. */
const MAX_PROJECTS = 20;

/**
 * Returns what the trusts of a workflow allow it in a request.
 *
 * The trusts of the requested project decide alone: their permissions are added up. A request without a project in its
 * path, or for a project that does not trust the workflow, is made in all projects that let it list them, with the
 * permissions that each of these gives. A stranger can trust any repository, so a trust that gives less than that must
 * not take anything away.
 * @param trusts all trusts that the workflow matches
 * @param projectId the project in the path; undefined = none
 * @returns undefined when there are no trusts
 */
export function grantOf(trusts: TrustedWorkflow[], projectId: string | undefined): Grant | undefined {
  const byProject = Map.groupBy(trusts, ({ project_id }) => project_id);
  const requested = projectId === undefined ? undefined : byProject.get(projectId);
  const groups = [...byProject.values()];
  const listing = groups.filter((group) => group.some(({ permissions }) => permissions.includes("projects:read")));
  const chosen = requested ? [requested] : (listing.length > 0 ? listing : groups).slice(0, MAX_PROJECTS);
  const oldest = chosen.flat().toSorted((a, b) => (a.id < b.id ? -1 : 1))[0];
  if (oldest === undefined) return undefined;
  const permissionsOf = chosen.map((group) => new Set(group.flatMap(({ permissions }) => permissions)));
  return {
    trustId: oldest.id,
    projectIds: chosen.flatMap(([first]) => first?.project_id ?? []),
    permissions: workflowPermissions.filter((name) => permissionsOf.every((names) => names.has(name))),
  };
}

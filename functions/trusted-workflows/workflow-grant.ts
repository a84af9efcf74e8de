import { MAX_PROJECTS_PER_CREDENTIAL } from "../access/identity.ts";
import { workflowPermissions } from "../manifest/permissions.ts";
import type { TrustedWorkflow } from "./trusted-workflow.ts";

/** What the token of a workflow says about it. Absent = the token has no such claim, or not as printable text. */
export interface Workflow {
  repositoryId: string;
  ownerId?: string | undefined;
  ref?: string | undefined;
  environment?: string | undefined;
  /** File of the workflow, `@`, and the ref that it is read from. */
  workflowFile?: string | undefined;
  /** What started the workflow. */
  event?: string | undefined;
  /** Display name of the repository, which may belong to another repository later. Only for logs. */
  repository?: string | undefined;
  /** Id of the run or pipeline. Only for logs. */
  runId?: string | undefined;
}

/** Returns whether all fields that are set in a trusted workflow of the workflow's repository equal its claims. */
export function isTrusted(workflow: Workflow, trust: TrustedWorkflow): boolean {
  const isEqual = (wanted: string | undefined, claim: string | undefined) => wanted === undefined || wanted === claim;
  return (
    trust.repository_id === workflow.repositoryId &&
    isEqual(trust.repository_owner_id, workflow.ownerId) &&
    isEqual(trust.ref, workflow.ref) &&
    isEqual(trust.environment, workflow.environment) &&
    isEqual(trust.job_workflow_ref, workflow.workflowFile) &&
    isEqual(trust.event_name, workflow.event)
  );
}

export interface Grant {
  /** Id of the oldest trusted workflow that gives it. */
  trustId: string;
  projectIds: string[];
  permissions: string[];
}

/**
 * Returns what the trusted workflows of one project allow: their permissions are added up.
 * @param trusts those of the requested project that the workflow matches
 * @returns undefined when there are none
 */
export function grantIn(trusts: TrustedWorkflow[]): Grant | undefined {
  return grantFrom([trusts]);
}

/**
 * Returns the grant for a request without a project in its path, or with one that does not trust the workflow: in the 20 projects
 * with the oldest trusted workflows that allow listing, with the permissions that they have in common. A stranger can trust any
 * repository, so one that allows less must not take anything away.
 * @param trusts those of all projects that the workflow matches, oldest first
 * @returns undefined when there are none
 */
export function grantWithoutProject(trusts: TrustedWorkflow[]): Grant | undefined {
  const groups = [...Map.groupBy(trusts, ({ project_id }) => project_id).values()];
  const listing = groups.filter((group) => group.some(({ permissions }) => permissions.includes("projects:read")));
  const chosen = (listing.length > 0 ? listing : groups).slice(0, MAX_PROJECTS_PER_CREDENTIAL);
  return grantFrom(chosen);
}

/** @param projects the trusted workflows of each project @returns undefined when there are none */
function grantFrom(projects: TrustedWorkflow[][]): Grant | undefined {
  const [oldest] = projects.flat().toSorted((a, b) => (a.id < b.id ? -1 : 1));
  if (oldest === undefined) return undefined;
  // Those of this API first, in their order. The authorizer does not need the list of the platform's.
  const names = new Set([...workflowPermissions, ...projects.flat().flatMap(({ permissions }) => permissions)]);
  const permissionsOf = projects.map((group) => new Set(group.flatMap(({ permissions }) => permissions)));
  return {
    trustId: oldest.id,
    projectIds: projects.flatMap(([first]) => first?.project_id ?? []),
    permissions: [...names].filter((name) => permissionsOf.every((held) => held.has(name))),
  };
}

import { createHash } from "node:crypto";
import { MAX_PROJECTS_PER_CREDENTIAL } from "../../foundation/access/identity.ts";
import { workflowPermissions } from "../../foundation/manifest/permissions.ts";
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

/** The fields of a trusted workflow that are conditions, with the claim that each must equal. */
const claimOf = {
  repository_owner_id: "ownerId",
  ref: "ref",
  environment: "environment",
  job_workflow_ref: "workflowFile",
  event_name: "event",
} as const satisfies Partial<Record<keyof TrustedWorkflow, keyof Workflow>>;
type Condition = keyof typeof claimOf;
const allConditions = Object.keys(claimOf) as Condition[];

/**
 * What decides about a request without a project: small, because a stranger chooses how many of them a request reads. Without the
 * id of the repository, so that releases that do not know the digest do not take it for a trusted workflow without conditions.
 */
export type TrustDigest = Pick<TrustedWorkflow, "id" | "project_id" | "permissions"> & {
  conditions: Condition[];
  digest: string;
};

export function trustDigest(trust: TrustedWorkflow): TrustDigest {
  const { id, project_id, permissions } = trust;
  const conditions = allConditions.filter((name) => trust[name] !== undefined);
  return { id, project_id, permissions, conditions, digest: digestOf(conditions.map((name) => trust[name])) };
}

/** 132 bits of SHA-256. */
const digestOf = (values: (string | undefined)[]): string =>
  createHash("sha256").update(JSON.stringify(values)).digest("base64url").slice(0, 22);

/** Returns whether all conditions of a trusted workflow of the workflow's repository equal its claims. */
export function isTrusted(workflow: Workflow, trust: TrustedWorkflow | TrustDigest): boolean {
  if ("digest" in trust) return trust.digest === digestOf(trust.conditions.map((name) => workflow[claimOf[name]]));
  const isMet = (name: Condition) => trust[name] === undefined || trust[name] === workflow[claimOf[name]];
  return trust.repository_id === workflow.repositoryId && allConditions.every(isMet);
}

type Trust = Pick<TrustDigest, "id" | "project_id" | "permissions">;

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
export function grantIn(trusts: Trust[]): Grant | undefined {
  return grantFrom([trusts]);
}

/**
 * Returns the grant for a request without a project in its path, or with one that does not trust the workflow: in the 20 projects
 * with the oldest trusted workflows that allow listing, with the permissions that they have in common. A stranger can trust any
 * repository, so one that allows less must not take anything away.
 * @param trusts those of all projects that the workflow matches, oldest first
 * @returns undefined when there are none
 */
export function grantWithoutProject(trusts: Trust[]): Grant | undefined {
  const groups = [...Map.groupBy(trusts, ({ project_id }) => project_id).values()];
  const listing = groups.filter((group) => group.some(({ permissions }) => permissions.includes("projects:read")));
  const chosen = (listing.length > 0 ? listing : groups).slice(0, MAX_PROJECTS_PER_CREDENTIAL);
  return grantFrom(chosen);
}

/** @param projects the trusted workflows of each project @returns undefined when there are none */
function grantFrom(projects: Trust[][]): Grant | undefined {
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

import type { Actor } from "../../foundation/access/actor.ts";
import { MAX_PROJECTS_PER_CREDENTIAL } from "../../foundation/access/identity.ts";
import type { Project } from "../../foundation/access/member.ts";
import type { TransactItem } from "../../foundation/platform/aws.ts";
import {
  countDown,
  insertCounted,
  readItem,
  readItems,
  readMany,
  transactIf,
} from "../../foundation/platform/dynamo.ts";
import { tableName } from "../../foundation/platform/env.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { onlyIf, when } from "../../foundation/platform/expression.ts";
import { projectAudit } from "../../foundation/records/audit-store.ts";
import { revocationPut } from "../../foundation/records/revocation-store.ts";
import { MAX_TRUSTED_WORKFLOWS_PER_PROJECT, type TrustedWorkflow } from "./trusted-workflow.ts";
import { type TrustDigest, trustDigest } from "./workflow-grant.ts";

/*
 * A trusted workflow consists of three items, written in one transaction and never changed: one in the list of its project, and two in
 * lists of its repository, which the authorizer reads: by project, and by age with what matching needs (`TrustDigest`). All reads are strongly consistent, so a change
 * applies from the next request on.
 */

/** Sort key of the item of a project that counts its trusted workflows and holds its name. It sorts before all ids. */
const PROJECT = "#project";

type Repository = Pick<TrustedWorkflow, "issuer_url" | "repository_id">;

const projectKey = (project_id: string, entry: string) => ({ listed_under: `project#${project_id}`, entry });

const repositoryKey = ({ issuer_url, repository_id }: Repository, entry: string) => ({
  listed_under: `repository#${issuer_url}#${repository_id}`,
  entry,
});

const repositoryByAgeKey = ({ issuer_url, repository_id }: Repository, entry: string) => ({
  listed_under: `repository-by-age#${issuer_url}#${repository_id}`,
  entry,
});

const counterOf = (projectId: string) => ({
  key: { TableName: tableName("trustedWorkflows"), Key: projectKey(projectId, PROJECT) },
  attribute: "trust_count",
});

/** Returns the keys of all items of a trusted workflow. */
const keysOf = (trust: Repository & Pick<TrustedWorkflow, "project_id" | "id">) => ({
  ofProject: projectKey(trust.project_id, trust.id),
  ofRepository: repositoryKey(trust, `${trust.project_id}#${trust.id}`),
  // Ids are time-ordered.
  ofRepositoryByAge: repositoryByAgeKey(trust, trust.id),
});

/**
 * Stores a new trusted workflow.
 * @param projectName what `GET /v1/projects` shows to the workflow, which is not a member
 * @throws ApiError `trusted_workflow_limit_reached` when the project has the maximum number of trusted workflows, also under
 * concurrent creates
 */
export async function insert(
  trust: TrustedWorkflow,
  projectName: string,
  by: Actor,
  more: Record<string, TransactItem> = {},
): Promise<void> {
  const TableName = tableName("trustedWorkflows");
  const { project_id, created_at } = trust;
  const keys = keysOf(trust);
  const limit = MAX_TRUSTED_WORKFLOWS_PER_PROJECT;
  const message = `The limit of ${limit} trusted workflows per project is reached. Delete one first.`;
  const onFull = (cause: Error) => new ApiError("trusted_workflow_limit_reached", message, { cause });
  const set = { name: projectName, created_at: when`if_not_exists(created_at, ${created_at})` };
  await insertCounted(
    { ...counterOf(project_id), limit, set, onFull },
    {
      ofProject: { Put: { TableName, Item: { ...keys.ofProject, ...trust } } },
      ofRepository: { Put: { TableName, Item: { ...keys.ofRepository, ...trust } } },
      ofRepositoryByAge: { Put: { TableName, Item: { ...keys.ofRepositoryByAge, ...trustDigest(trust) } } },
      audit: projectAudit("trusted_workflow.created", by, trust, detailsOf(trust)),
      ...more,
    },
  );
}

/** Everything that decides what is trusted: all but the ids, the time and the keys of the item. */
function detailsOf(trust: TrustedWorkflow & Partial<ReturnType<typeof projectKey>>) {
  const { id, project_id, issuer_url, created_at, listed_under, entry, ...details } = trust;
  return details;
}

/** Returns the trusted workflows of a project, oldest first. */
export function list(projectId: string): Promise<TrustedWorkflow[]> {
  const { listed_under, entry } = projectKey(projectId, PROJECT);
  return readItems("trustedWorkflows", when`listed_under = ${listed_under} AND entry > ${entry}`);
}

/**
 * Upper bound on the trusted workflows of a repository that are read for a request without a project: those of as many projects as it
 * can see. Strangers may trust any repository in their own projects, and no budget is charged.
 */
const MAX_READ_TRUSTS = MAX_PROJECTS_PER_CREDENTIAL * MAX_TRUSTED_WORKFLOWS_PER_PROJECT;

/** Returns the trusted workflows of a repository in one project, also those for other refs and environments. One read. */
export function listOfRepositoryIn(projectId: string, repository: Repository): Promise<TrustedWorkflow[]> {
  const { listed_under, entry } = repositoryKey(repository, `${projectId}#`);
  return readItems("trustedWorkflows", when`listed_under = ${listed_under} AND begins_with(entry, ${entry})`);
}

/**
 * Returns the trusted workflows of a repository in all projects, also those for other refs and environments: the oldest
 * `MAX_READ_TRUSTS`, oldest first, so that a trusted workflow is not hidden by those that strangers add later. One read.
 */
export function listOfRepository(repository: Repository): Promise<(TrustedWorkflow | TrustDigest)[]> {
  const { listed_under } = repositoryByAgeKey(repository, "");
  // They fit into one page of 1 MB: one is smaller than 5 KB, also of an earlier release, which stored all fields here.
  return readItems("trustedWorkflows", when`listed_under = ${listed_under}`, { Limit: MAX_READ_TRUSTS });
}

/**
 * Returns the projects with these ids that trust or have trusted a workflow, in the order of the ids. `created_at` is the
 * time of the first trusted workflow, and `name` that of the project at the time of the last one.
 * @param projectIds at most 100
 */
export async function projectsWith(projectIds: string[]): Promise<Omit<Project, "role">[]> {
  const keys = projectIds.map((id) => projectKey(id, PROJECT));
  const items = await readMany<Record<string, unknown>>("trustedWorkflows", keys);
  const byKey = new Map(items.map((item) => [item.listed_under, item]));
  return projectIds.flatMap((id) => {
    const { name, created_at } = byKey.get(projectKey(id, PROJECT).listed_under) ?? {};
    return typeof name === "string" && typeof created_at === "string" ? [{ id, name, created_at }] : [];
  });
}

const notFound = () => new ApiError("not_found", "No trusted workflow with this id exists.");

/**
 * Deletes a trusted workflow. After this returns, requests of the workflow are rejected.
 * @throws ApiError `not_found` when the project has no trust with this id
 */
export async function remove(projectId: string, id: string, by: Actor): Promise<void> {
  const TableName = tableName("trustedWorkflows");
  const Key = projectKey(projectId, id);
  const trust = await readItem<TrustedWorkflow>({ TableName, Key });
  if (!trust) throw notFound();
  const keys = keysOf(trust);
  const isDeleted = await transactIf({
    ofProject: { Delete: { TableName, Key, ...onlyIf(when`attribute_exists(entry)`) } },
    ofRepository: { Delete: { TableName, Key: keys.ofRepository } },
    ofRepositoryByAge: { Delete: { TableName, Key: keys.ofRepositoryByAge } },
    counter: countDown(counterOf(projectId)),
    revocation: revocationPut({ project_id: projectId }, "trusted_workflow_deleted"),
    audit: projectAudit("trusted_workflow.deleted", by, trust, detailsOf(trust)),
  });
  // A concurrent request deleted the trusted workflow.
  if (!isDeleted) throw notFound();
}

import { GetCommand, QueryCommand } from "@aws-sdk/lib-dynamodb";
import type { Actor } from "../access/actor.ts";
import { MAX_PROJECTS_PER_CREDENTIAL } from "../access/identity.ts";
import type { Project } from "../access/membership.ts";
import { auditPut } from "../audit/audit-store.ts";
import { batchGet, ConditionsFailedError, dynamo, type TransactItem, transact } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import { ApiError } from "../platform/errors.ts";
import { MAX_TRUSTED_WORKFLOWS_PER_PROJECT, type TrustedWorkflow } from "./trusted-workflow.ts";

/*
 * A trust consists of three items, written in one transaction and never changed: one in the list of its project, and two in
 * lists of its repository, which the authorizer reads: by project, and by age. All reads are strongly consistent, so a change
 * applies from the next request on.
 */

/** Sort key of the item of a project that counts its trusts and holds its name. It sorts before all ids. */
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

/** Returns the keys of all items of a trust. */
const keysOf = (trust: Repository & Pick<TrustedWorkflow, "project_id" | "id">) => ({
  ofProject: projectKey(trust.project_id, trust.id),
  ofRepository: repositoryKey(trust, `${trust.project_id}#${trust.id}`),
  // Ids are time-ordered.
  ofRepositoryByAge: repositoryByAgeKey(trust, trust.id),
});

/**
 * Stores a new trust.
 * @param projectName what `GET /v1/projects` shows to the workflow, which is not a member
 * @throws ApiError `trusted_workflow_limit_reached` when the project has the maximum number of trusts, also under
 * concurrent creates
 */
export async function insert(
  trust: TrustedWorkflow,
  projectName: string,
  by: Actor,
  more: Record<string, TransactItem> = {},
): Promise<void> {
  const TableName = tableName("trustedWorkflows");
  const { id, project_id } = trust;
  const keys = keysOf(trust);
  try {
    await transact({
      counter: {
        Update: {
          TableName,
          Key: projectKey(trust.project_id, PROJECT),
          UpdateExpression: "SET #name = :name, created_at = if_not_exists(created_at, :now) ADD trust_count :one",
          ConditionExpression: "attribute_not_exists(trust_count) OR trust_count < :limit",
          ExpressionAttributeNames: { "#name": "name" },
          ExpressionAttributeValues: {
            ":name": projectName,
            ":now": trust.created_at,
            ":one": 1,
            ":limit": MAX_TRUSTED_WORKFLOWS_PER_PROJECT,
          },
        },
      },
      ofProject: { Put: { TableName, Item: { ...keys.ofProject, ...trust } } },
      ofRepository: { Put: { TableName, Item: { ...keys.ofRepository, ...trust } } },
      ofRepositoryByAge: { Put: { TableName, Item: { ...keys.ofRepositoryByAge, ...trust } } },
      audit: auditPut({
        scope: `project:${project_id}`,
        action: "trusted_workflow.created",
        actor: by,
        resource_id: id,
        details: detailsOf(trust),
      }),
      ...more,
    });
  } catch (error) {
    if (error instanceof ConditionsFailedError && error.items.includes("counter")) {
      const limit = MAX_TRUSTED_WORKFLOWS_PER_PROJECT;
      const message = `The limit of ${limit} trusted workflows per project is reached. Delete one first.`;
      throw new ApiError("trusted_workflow_limit_reached", message, { cause: error });
    }
    throw error;
  }
}

const detailsOf = (trust: TrustedWorkflow) => {
  const { name, issuer, repository_id, repository_owner_id, ref, environment, permissions } = trust;
  const { job_workflow_ref, event_name } = trust;
  return {
    ...(name !== undefined && { name }),
    issuer,
    repository_id,
    ...(repository_owner_id !== undefined && { repository_owner_id }),
    ...(ref !== undefined && { ref }),
    ...(environment !== undefined && { environment }),
    ...(job_workflow_ref !== undefined && { job_workflow_ref }),
    ...(event_name !== undefined && { event_name }),
    permissions,
  };
};

/** Returns the trusts of a project, oldest first. */
export async function list(projectId: string): Promise<TrustedWorkflow[]> {
  // The list fits into one page of 1 MB because the number of trusts is limited.
  const { Items } = await dynamo().send(
    new QueryCommand({
      TableName: tableName("trustedWorkflows"),
      ConsistentRead: true,
      KeyConditionExpression: "listed_under = :project AND entry > :counter",
      ExpressionAttributeValues: { ":project": projectKey(projectId, "").listed_under, ":counter": PROJECT },
    }),
  );
  return (Items ?? []) as TrustedWorkflow[];
}

/**
 * Upper bound on the trusts of a repository that are read for a request without a project: those of as many projects as it
 * can see. Strangers may trust any repository in their own projects, and no budget is charged.
 */
const MAX_READ_TRUSTS = MAX_PROJECTS_PER_CREDENTIAL * MAX_TRUSTED_WORKFLOWS_PER_PROJECT;

/** Returns the trusts of a repository in one project, also those for other refs and environments. One read. */
export async function listOfRepositoryIn(projectId: string, repository: Repository): Promise<TrustedWorkflow[]> {
  const { listed_under, entry } = repositoryKey(repository, `${projectId}#`);
  const { Items } = await dynamo().send(
    new QueryCommand({
      TableName: tableName("trustedWorkflows"),
      ConsistentRead: true,
      KeyConditionExpression: "listed_under = :repository AND begins_with(entry, :project)",
      ExpressionAttributeValues: { ":repository": listed_under, ":project": entry },
    }),
  );
  return (Items ?? []) as TrustedWorkflow[];
}

/**
 * Returns the trusts of a repository in all projects, also those for other refs and environments: the oldest
 * `MAX_READ_TRUSTS`, oldest first, so that a trust is not hidden by those that strangers add later. One read.
 */
export async function listOfRepository(repository: Repository): Promise<TrustedWorkflow[]> {
  // They fit into one page of 1 MB: a trust has less than 5 KB.
  const { Items } = await dynamo().send(
    new QueryCommand({
      TableName: tableName("trustedWorkflows"),
      ConsistentRead: true,
      Limit: MAX_READ_TRUSTS,
      KeyConditionExpression: "listed_under = :repository",
      ExpressionAttributeValues: { ":repository": repositoryByAgeKey(repository, "").listed_under },
    }),
  );
  return (Items ?? []) as TrustedWorkflow[];
}

/**
 * Returns the projects with these ids that trust or have trusted a workflow, in the order of the ids. `created_at` is the
 * time of the first trust, and `name` that of the project at the time of the last one.
 * @param projectIds at most 100
 */
export async function projectsWith(projectIds: string[]): Promise<Omit<Project, "role">[]> {
  if (projectIds.length === 0) return [];
  const table = tableName("trustedWorkflows");
  const { [table]: items = [] } = await batchGet({ [table]: projectIds.map((id) => projectKey(id, PROJECT)) });
  const byKey = new Map(items.map((item) => [item.listed_under, item]));
  return projectIds.flatMap((id) => {
    const { name, created_at } = byKey.get(projectKey(id, PROJECT).listed_under) ?? {};
    return typeof name === "string" && typeof created_at === "string" ? [{ id, name, created_at }] : [];
  });
}

const notFound = () => new ApiError("not_found", "No trusted workflow with this id exists.");

/**
 * Deletes a trust. After this returns, requests of the workflow are rejected.
 * @throws ApiError `not_found` when the project has no trust with this id
 */
export async function remove(projectId: string, id: string, by: Actor): Promise<void> {
  const TableName = tableName("trustedWorkflows");
  const Key = projectKey(projectId, id);
  const { Item } = await dynamo().send(new GetCommand({ TableName, Key, ConsistentRead: true }));
  if (!Item) throw notFound();
  const trust = Item as TrustedWorkflow;
  const keys = keysOf(trust);
  try {
    await transact({
      ofProject: { Delete: { TableName, Key, ConditionExpression: "attribute_exists(entry)" } },
      ofRepository: { Delete: { TableName, Key: keys.ofRepository } },
      ofRepositoryByAge: { Delete: { TableName, Key: keys.ofRepositoryByAge } },
      counter: {
        Update: {
          TableName,
          Key: projectKey(projectId, PROJECT),
          UpdateExpression: "ADD trust_count :minusOne",
          ExpressionAttributeValues: { ":minusOne": -1 },
        },
      },
      audit: auditPut({
        scope: `project:${projectId}`,
        action: "trusted_workflow.deleted",
        actor: by,
        resource_id: id,
        details: detailsOf(trust),
      }),
    });
  } catch (error) {
    // A concurrent request deleted the trust.
    if (error instanceof ConditionsFailedError && error.items.includes("ofProject")) throw notFound();
    throw error;
  }
}

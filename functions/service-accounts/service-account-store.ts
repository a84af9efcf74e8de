import { GetCommand, QueryCommand } from "@aws-sdk/lib-dynamodb";
import type { Actor } from "../access/actor.ts";
import { serviceAccountUserId } from "../access/identity.ts";
import type { ApiKey } from "../api-keys/api-key.ts";
import * as apiKeys from "../api-keys/api-key-store.ts";
import type { AuditAction } from "../audit/audit-event.ts";
import { auditPut } from "../audit/audit-store.ts";
import { ConditionsFailedError, dynamo, type TransactItem, transact } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import { ApiError } from "../platform/errors.ts";
import { MAX_SERVICE_ACCOUNTS_PER_PROJECT, type ServiceAccount } from "./service-account.ts";

/** Sort key of the item that counts the service accounts of a project. It sorts before all ids. */
const COUNTER = "#count";

const accountKey = (project_id: string, id: string) => ({
  TableName: tableName("serviceAccounts"),
  Key: { project_id, id },
});

/** Returns the audit event of a change of a service account, for its transaction. */
const audit = (action: AuditAction, actor: Actor, projectId: string, resource_id: string, details: object = {}) =>
  auditPut({ scope: `project:${projectId}`, action, actor, resource_id, details: { ...details } });

/**
 * Stores a new service account and its membership in the project.
 * @param projectName as in the memberships of people
 * @throws ApiError `service_account_limit_reached` when the project has the maximum number, also under concurrent creates
 */
export async function insert(
  account: ServiceAccount,
  projectName: string,
  by: Actor,
  more: Record<string, TransactItem> = {},
): Promise<void> {
  const { id, project_id, name, role, created_at } = account;
  try {
    await transact({
      counter: {
        Update: {
          ...accountKey(project_id, COUNTER),
          UpdateExpression: "ADD account_count :one",
          ConditionExpression: "attribute_not_exists(account_count) OR account_count < :limit",
          ExpressionAttributeValues: { ":one": 1, ":limit": MAX_SERVICE_ACCOUNTS_PER_PROJECT },
        },
      },
      account: {
        Put: {
          TableName: tableName("serviceAccounts"),
          Item: account,
          ConditionExpression: "attribute_not_exists(id)",
        },
      },
      membership: {
        Put: {
          TableName: tableName("projects"),
          Item: { user_id: serviceAccountUserId(id), project_id, name: projectName, role, created_at },
        },
      },
      audit: audit("service_account.created", by, project_id, id, { name, role }),
      ...more,
    });
  } catch (error) {
    if (error instanceof ConditionsFailedError && error.items.includes("counter")) {
      const message = `The limit of ${MAX_SERVICE_ACCOUNTS_PER_PROJECT} service accounts per project is reached. Delete one first.`;
      throw new ApiError("service_account_limit_reached", message, { cause: error });
    }
    throw error;
  }
}

/** Returns the service accounts of a project, oldest first, also those whose removal has begun. */
export async function list(projectId: string): Promise<ServiceAccount[]> {
  // The list fits into one page of 1 MB because the number of service accounts is limited.
  const { Items } = await dynamo().send(
    new QueryCommand({
      TableName: tableName("serviceAccounts"),
      ConsistentRead: true,
      KeyConditionExpression: "project_id = :project AND id > :counter",
      ExpressionAttributeValues: { ":project": projectId, ":counter": COUNTER },
    }),
  );
  return (Items ?? []) as ServiceAccount[];
}

const notFound = (cause?: unknown) => new ApiError("not_found", "No service account with this id exists.", { cause });

/** @throws ApiError `not_found` when the project has no service account with this id */
export async function requireAccount(projectId: string, id: string): Promise<void> {
  const { Item } = await dynamo().send(new GetCommand({ ...accountKey(projectId, id), ConsistentRead: true }));
  if (!Item) throw notFound();
}

/**
 * Stores a new key of a service account. A key is never created after the removal of the account has begun.
 * @throws ApiError `not_found` when the project has no service account with this id, or `api_key_limit_reached`
 */
export async function insertKey(
  projectId: string,
  id: string,
  apiKey: ApiKey,
  by: Actor,
  more: Record<string, TransactItem> = {},
): Promise<void> {
  const account = {
    Update: {
      ...accountKey(projectId, id),
      UpdateExpression: "SET key_created_at = :now",
      ConditionExpression: "attribute_exists(id) AND attribute_not_exists(removing_at)",
      ExpressionAttributeValues: { ":now": apiKey.created_at },
    },
  };
  try {
    await apiKeys.insert({ ...apiKey, project_id: projectId }, by, { account, ...more });
  } catch (error) {
    if (error instanceof ConditionsFailedError && error.items.includes("account")) throw notFound(error);
    throw error;
  }
}

/**
 * Begins the removal of a service account: ends its membership, so that its keys can do nothing from the next request on,
 * and no key is created after this. Does nothing if the removal has begun. Has an audit event of its own, because a removal
 * that is cut off later has revoked all access already.
 * @throws ApiError `not_found` when the project has no service account with this id
 */
export async function beginRemoval(projectId: string, id: string, at: string, by: Actor): Promise<void> {
  try {
    await transact({
      account: {
        Update: {
          ...accountKey(projectId, id),
          UpdateExpression: "SET removing_at = :at",
          ConditionExpression: "attribute_exists(id) AND attribute_not_exists(removing_at)",
          ExpressionAttributeValues: { ":at": at },
        },
      },
      membership: {
        Delete: {
          TableName: tableName("projects"),
          Key: { user_id: serviceAccountUserId(id), project_id: projectId },
        },
      },
      audit: audit("service_account.removal_begun", by, projectId, id),
    });
  } catch (error) {
    if (!(error instanceof ConditionsFailedError)) throw error;
    await requireAccount(projectId, id);
  }
}

/** Deletes a service account whose keys are deleted. Does nothing if a concurrent request has deleted it. */
export async function endRemoval(projectId: string, id: string, by: Actor): Promise<void> {
  try {
    await transact({
      account: { Delete: { ...accountKey(projectId, id), ConditionExpression: "attribute_exists(id)" } },
      counter: {
        Update: {
          ...accountKey(projectId, COUNTER),
          UpdateExpression: "ADD account_count :minusOne",
          ExpressionAttributeValues: { ":minusOne": -1 },
        },
      },
      audit: audit("service_account.deleted", by, projectId, id),
      keyCounter: apiKeys.counterRemoval(serviceAccountUserId(id)),
    });
  } catch (error) {
    if (!(error instanceof ConditionsFailedError)) throw error;
  }
}

import type { Actor } from "../../foundation/access/actor.ts";
import { serviceAccountUserId } from "../../foundation/access/identity.ts";
import { ConditionsFailedError, type TransactItem } from "../../foundation/platform/aws.ts";
import {
  COUNTER,
  countDown,
  insertCounted,
  readItem,
  readItems,
  transactIf,
  updateIf,
} from "../../foundation/platform/dynamo.ts";
import { tableName } from "../../foundation/platform/env.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { changing, isAsRead, onlyIf, when } from "../../foundation/platform/expression.ts";
import { projectAudit } from "../../foundation/records/audit-store.ts";
import { revocationPut } from "../../foundation/records/revocation-store.ts";
import type { ApiKey } from "../api-keys/api-key.ts";
import * as apiKeys from "../api-keys/api-key-store.ts";
import { MAX_SERVICE_ACCOUNTS_PER_PROJECT, type ServiceAccount } from "./service-account.ts";

const accountKey = (project_id: string, id: string) => ({
  TableName: tableName("serviceAccounts"),
  Key: { project_id, id },
});

const counterOf = (project_id: string) => ({ key: accountKey(project_id, COUNTER), attribute: "account_count" });

/**
 * Stores a new service account as a member of the project.
 * @param projectName as it is stored for people
 * @throws ApiError `service_account_limit_reached` when the project has the maximum number, also under concurrent creates
 */
export async function insert(
  account: ServiceAccount,
  projectName: string,
  by: Actor,
  more: Record<string, TransactItem> = {},
): Promise<void> {
  const { id, project_id, name, role, created_at } = account;
  const limit = MAX_SERVICE_ACCOUNTS_PER_PROJECT;
  const message = `The limit of ${limit} service accounts per project is reached. Delete one first.`;
  const onFull = (cause: Error) => new ApiError("service_account_limit_reached", message, { cause });
  await insertCounted(
    { ...counterOf(project_id), limit, onFull },
    {
      account: {
        Put: { TableName: tableName("serviceAccounts"), Item: account, ...onlyIf(when`attribute_not_exists(id)`) },
      },
      member: {
        Put: {
          TableName: tableName("projects"),
          Item: { user_id: serviceAccountUserId(id), project_id, name: projectName, role, created_at },
        },
      },
      audit: projectAudit("service_account.created", by, account, { name, role }),
      ...more,
    },
  );
}

/** Returns the service accounts of a project, oldest first, also those whose removal has begun. */
export const list = (projectId: string): Promise<ServiceAccount[]> =>
  readItems("serviceAccounts", when`project_id = ${projectId} AND id > ${COUNTER}`);

const notFound = (cause?: unknown) => new ApiError("not_found", "No service account with this id exists.", { cause });

/**
 * Returns the user id that owns the keys of a service account.
 * @throws ApiError `not_found` when the project has no service account with this id
 */
export async function keyOwner(account: { project_id: string; service_account_id: string }): Promise<string> {
  await requireAccount(account.project_id, account.service_account_id);
  return serviceAccountUserId(account.service_account_id);
}

async function requireAccount(projectId: string, id: string): Promise<ServiceAccount> {
  const account = await readItem<ServiceAccount>(accountKey(projectId, id));
  if (!account) throw notFound();
  return account;
}

/** Returns the change of an account that exists and whose removal has not begun, for a transaction. */
const changeUnlessRemoving = (projectId: string, id: string, set: Record<string, string>): TransactItem => ({
  Update: {
    ...accountKey(projectId, id),
    ...changing({ set, when: when`attribute_exists(id) AND attribute_not_exists(removing_at)` }),
  },
});

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
  const account = changeUnlessRemoving(projectId, id, { key_created_at: apiKey.created_at });
  try {
    await apiKeys.insert({ ...apiKey, project_id: projectId }, by, { account, ...more });
  } catch (error) {
    if (error instanceof ConditionsFailedError && error.items.includes("account")) throw notFound(error);
    throw error;
  }
}

/** Longer than the function of a removal runs: after this time, a removal that has not ended was cut off. */
const REMOVAL_MS = 30_000;

/**
 * Begins the removal of a service account: removes it from the project, so that its keys can do nothing from the next request on,
 * and no key is created after this. Has an audit event of its own, because a removal that is cut off later has revoked all
 * access already. Continues a removal that was cut off.
 * @throws ApiError `not_found` when the project has no service account with this id, `conflict` while another request removes it
 */
export async function beginRemoval(projectId: string, id: string, now: Date, by: Actor): Promise<void> {
  const at = now.toISOString();
  const isBegun = await transactIf({
    account: changeUnlessRemoving(projectId, id, { removing_at: at }),
    member: {
      Delete: { TableName: tableName("projects"), Key: { user_id: serviceAccountUserId(id), project_id: projectId } },
    },
    revocation: revocationPut({ user_id: serviceAccountUserId(id) }, "service_account_deleted"),
    audit: projectAudit("service_account.removal_begun", by, { project_id: projectId, id }),
  });
  if (isBegun) return;
  const { removing_at = at } = await requireAccount(projectId, id);
  const isCutOff = now.getTime() - Date.parse(removing_at) >= REMOVAL_MS;
  const change = changing({ set: { removing_at: at }, when: isAsRead("removing_at", removing_at) });
  if (isCutOff && (await updateIf(accountKey(projectId, id), change))) return;
  const advice = `If it is still listed in ${REMOVAL_MS / 1000} seconds, repeat the request.`;
  throw new ApiError("conflict", `Another request is deleting the service account. ${advice}`);
}

/** Deletes a service account whose keys are deleted. Does nothing if a concurrent request has deleted it. */
export async function endRemoval(projectId: string, id: string, by: Actor): Promise<void> {
  await transactIf({
    account: { Delete: { ...accountKey(projectId, id), ...onlyIf(when`attribute_exists(id)`) } },
    counter: countDown(counterOf(projectId)),
    audit: projectAudit("service_account.deleted", by, { project_id: projectId, id }),
    keyCounter: apiKeys.counterRemoval(serviceAccountUserId(id)),
  });
}

import { DeleteCommand, ScanCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../../../functions/platform/aws.ts";
import { tableName } from "../../../functions/platform/env.ts";
import { interceptDynamo, isCall, restoreAws } from "../../support/aws-calls.ts";
import { notificationsAbout } from "../../support/notifications.ts";
import { useService } from "../../support/service.ts";
import { newServiceAccount } from "../../support/service-accounts.ts";

const service = useService();

const everything = async (accountId: string) => {
  const userId = `service-account:${accountId}`;
  const found = await Promise.all(
    (["apiKeys", "userApiKeys", "projects", "serviceAccounts"] as const).map(async (table) => {
      const { Items = [] } = await dynamo().send(new ScanCommand({ TableName: tableName(table) }));
      return Items.filter((item) => item.user_id === userId || item.id === accountId);
    }),
  );
  return found.flat();
};

test("rejects its keys from the next request on, and leaves nothing of it", async () => {
  const { admin, accounts, path, accountId, createKey } = await newServiceAccount(service);
  const keys = [await createKey(), await createKey()];
  expect(await everything(accountId)).not.toEqual([]);
  expect((await admin.api.delete(path)).status).toBe(204);
  for (const { as } of [...keys, ...keys])
    expect((await as.get("/v1/projects")).body.error.code).toBe("invalid_api_key");
  expect(await everything(accountId)).toEqual([]);
  expect((await admin.api.get(accounts)).body.data).toEqual([]);
  expect((await admin.api.delete(path)).status).toBe(404);
});

test("after a failure its keys can do nothing, and a repetition completes the removal", async () => {
  const { admin, accounts, path, accountId, createKey, projectId } = await newServiceAccount(service);
  const { as } = await createKey();
  interceptDynamo(async ({ command }, send) => {
    if (command === "QueryCommand") throw Object.assign(new Error("connection lost"), { code: "ECONNRESET" });
    return send();
  });
  expect((await admin.api.delete(path)).status).toBe(503);
  restoreAws();
  expect((await as.get(`/v1/projects/${projectId}/webhooks`)).status).toBe(404);
  expect((await as.get("/v1/projects")).body.data).toEqual([]);
  expect((await admin.api.post(`${path}/api-keys`, { name: "late" })).status).toBe(404);
  expect((await admin.api.get(accounts)).body.data).toMatchObject([{ id: accountId }]);
  expect((await admin.api.delete(path)).status).toBe(204);
  expect(await everything(accountId)).toEqual([]);
});

test("a removal that is cut off twice is in the audit log: once begun, and once ended", async () => {
  const { admin, path, projectId, createKey } = await newServiceAccount(service);
  const [first, second] = [await createKey(), await createKey()];
  const actions = async () =>
    (await admin.api.get(`/v1/projects/${projectId}/audit-events`)).body.data.map(
      ({ action, resource_id }: Record<string, string>) =>
        action?.startsWith("api_key") ? `${action} ${resource_id}` : action,
    );
  const before = await actions();
  const cutOffAfter = async (transactions: number) => {
    let left = transactions;
    interceptDynamo(async ({ command }, send) => {
      if (!command.startsWith("TransactWrite")) return send();
      if (left === 0) throw Object.assign(new Error("connection lost"), { code: "ECONNRESET" });
      left--;
      return send();
    });
    expect((await admin.api.delete(path)).status).toBe(503);
    restoreAws();
  };
  await cutOffAfter(1);
  expect(await actions()).toEqual(["service_account.removal_begun", ...before]);
  // The first transaction of a repetition begins nothing: the removal has begun.
  await cutOffAfter(2);
  expect((await admin.api.delete(path)).status).toBe(204);
  expect(await actions()).toEqual([
    "service_account.deleted",
    `api_key.deleted ${second.id}`,
    `api_key.deleted ${first.id}`,
    "service_account.removal_begun",
    ...before,
  ]);
});

test("no key survives that is created at the same time", async () => {
  for (let round = 0; round < 3; round++) {
    const { admin, path, accountId, createKey } = await newServiceAccount(service);
    await createKey();
    const creates = Array.from({ length: 4 }, () => admin.api.post(`${path}/api-keys`, { name: "racing" }));
    const [removed, ...created] = await Promise.all([admin.api.delete(path), ...creates]);
    expect(removed?.status).toBe(204);
    expect(created.every(({ status }) => status === 201 || status === 404)).toBe(true);
    expect(await everything(accountId)).toEqual([]);
  }
});

test("the other keys end too when one is deleted meanwhile", async () => {
  const { admin, path, accountId, createKey } = await newServiceAccount(service);
  const [first] = [await createKey(), await createKey()];
  interceptDynamo(async (call, send) => {
    if (isCall(call, "GetItem", "user-api-keys")) {
      restoreAws();
      await admin.api.delete(`${path}/api-keys/${first.id}`);
    }
    return send();
  });
  expect((await admin.api.delete(path)).status).toBe(204);
  expect(await everything(accountId)).toEqual([]);
});

test("the audit log of the project shows the account and its keys", async () => {
  const { admin, projectId, path, accountId, createKey } = await newServiceAccount(service);
  const { id } = await createKey();
  await admin.api.delete(path);
  const { data } = (await admin.api.get(`/v1/projects/${projectId}/audit-events`)).body;
  expect(data.slice(0, 5)).toMatchObject([
    { action: "service_account.deleted", resource_id: accountId, actor: { user_id: admin.userId } },
    { action: "api_key.deleted", resource_id: id, details: { reason: "service_account_deleted" } },
    { action: "service_account.removal_begun", resource_id: accountId, actor: { user_id: admin.userId } },
    { action: "api_key.created", resource_id: id, actor: { user_id: admin.userId } },
    { action: "service_account.created", resource_id: accountId, details: { name: "deploy", role: "admin" } },
  ]);
});

test("stays when the user who created it leaves the project", async () => {
  const { admin, projectId, createKey } = await newServiceAccount(service);
  const { as } = await createKey();
  const Key = { user_id: admin.userId, project_id: projectId };
  await dynamo().send(new DeleteCommand({ TableName: tableName("projects"), Key }));
  expect((await as.get(`/v1/projects/${projectId}/webhooks`)).status).toBe(200);
});

test("notifies the project of each key that ends with it", async () => {
  const { admin, path, createKey, projectId } = await newServiceAccount(service);
  const key = await createKey();
  await admin.api.delete(path);
  expect(await notificationsAbout(key.id)).toMatchObject([
    { type: "api_key.revoked", project_id: projectId, data: { reason: "service_account_deleted", name: "ci" } },
  ]);
});

import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../../../functions/platform/aws.ts";
import { tableName } from "../../../functions/platform/env.ts";
import { interceptDynamo, isCall, restoreAws } from "../../support/aws-calls.ts";
import { useService } from "../../support/service.ts";
import { newServiceAccount } from "../../support/service-accounts.ts";
import { itemsOf } from "../../support/stored-items.ts";

const service = useService();

test("a key sees this project only, with the role of the service account", async () => {
  const { projectId, createKey } = await newServiceAccount(service, "viewer");
  const { as } = await createKey();
  expect((await as.get("/v1/projects")).body.data.map(({ id }: { id: string }) => id)).toEqual([projectId]);
  expect((await as.get(`/v1/projects/${projectId}/webhooks`)).status).toBe(200);
  const hook = { url: "https://example.com/hook", events: ["deploy.failed"] };
  expect((await as.post(`/v1/projects/${projectId}/webhooks`, hook)).body.error.code).toBe("forbidden");
  const elsewhere = await service.project(service.user().userId);
  expect((await as.get(`/v1/projects/${elsewhere}/webhooks`)).status).toBe(404);
});

test("a key accepts the limits of API keys, for its own project", async () => {
  const { admin, path, projectId, createKey } = await newServiceAccount(service);
  const { as } = await createKey({ permissions: ["webhooks:read"], project_ids: [projectId] });
  expect((await as.get(`/v1/projects/${projectId}/webhooks`)).status).toBe(200);
  expect((await as.get("/v1/projects")).body.error.code).toBe("insufficient_permission");
  const elsewhere = await service.project(admin.userId);
  const { body } = await admin.api.post(`${path}/api-keys`, { name: "ci", project_ids: [projectId, elsewhere] });
  expect(body.error).toMatchObject({ code: "validation_error", details: [{ path: "project_ids.1" }] });
});

test("50 are allowed per project, also under concurrent creates, and another one after a delete", async () => {
  const { admin, accounts, path } = await newServiceAccount(service);
  const create = async () => (await admin.api.post(accounts, { name: "one of many", role: "viewer" })).status;
  const statuses = await Promise.all(Array.from({ length: 52 }, create));
  expect(statuses.filter((status) => status === 201)).toHaveLength(49);
  expect(await create()).toBe(409);
  expect((await admin.api.delete(path)).status).toBe(204);
  expect(await create()).toBe(201);
});

test("no key survives that is rolled while the account is removed", async () => {
  const { admin, path, createKey } = await newServiceAccount(service);
  const { id, as } = await createKey();
  const rolls = Array.from({ length: 3 }, () => admin.api.post(`${path}/api-keys/${id}/roll`, {}));
  const [removed, ...rolled] = await Promise.all([admin.api.delete(path), ...rolls]);
  expect(removed?.status).toBe(204);
  for (const { status, body } of rolled) {
    expect([200, 404]).toContain(status);
    if (status === 200) expect((await service.as(body.data.key).get("/v1/projects")).status).toBe(401);
  }
  expect((await as.get("/v1/projects")).status).toBe(401);
});

describe("a removal", () => {
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
    const [{ id, removing_at }] = (await admin.api.get(accounts)).body.data;
    expect({ id, removing_at }).toEqual({ id: accountId });
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

  test("is counted once when another request makes it meanwhile", async () => {
    const { admin, path, projectId } = await newServiceAccount(service);
    interceptDynamo(async ({ command }, send) => {
      if (command === "QueryCommand") {
        restoreAws();
        await admin.api.delete(path);
      }
      return send();
    });
    expect((await admin.api.delete(path)).status).toBe(204);
    expect(await itemsOf("serviceAccounts", { project_id: projectId })).toMatchObject([{ account_count: 0 }]);
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
});

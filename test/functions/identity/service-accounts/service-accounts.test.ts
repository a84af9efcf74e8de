import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import { platform } from "../../../../functions/foundation/access/actor.ts";
import { dynamo } from "../../../../functions/foundation/platform/aws.ts";
import { tableName } from "../../../../functions/foundation/platform/env.ts";
import { beginRemoval } from "../../../../functions/identity/service-accounts/service-account-store.ts";
import { type AwsCall, interceptDynamo, restoreAws } from "../../../support/aws-calls.ts";
import { fakeDate } from "../../../support/fake-date.ts";
import { useService } from "../../../support/service.ts";
import { newServiceAccount } from "../../../support/service-accounts.ts";
import { itemsOf } from "../../../support/stored-items.ts";

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
    fakeDate().advance(30);
    expect((await admin.api.delete(path)).status).toBe(204);
    expect(await everything(accountId)).toEqual([]);
  });

  test("a removal that is cut off twice is in the audit log: once begun, and once ended", async () => {
    const { admin, path, projectId, createKey } = await newServiceAccount(service);
    const [first, second] = [await createKey(), await createKey()];
    const clock = fakeDate();
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
      clock.advance(30);
    };
    await cutOffAfter(1);
    expect(await actions()).toEqual(["service_account.removal_begun", ...before]);
    // The first transaction of a repetition begins nothing: the removal has begun.
    await cutOffAfter(1);
    expect((await admin.api.delete(path)).status).toBe(204);
    const added = (await actions()).filter((action: string) => !before.includes(action));
    // The clock stands still, so the order of the last ones is not defined.
    expect(added.sort()).toEqual([
      ...[first, second].map(({ id }) => `api_key.deleted ${id}`).sort(),
      "service_account.deleted",
      "service_account.removal_begun",
    ]);
  });

  test("is counted once when another request continues it after 30 seconds, and the first one runs on", async () => {
    const { admin, path, projectId, createKey } = await newServiceAccount(service);
    const keys = [await createKey(), await createKey()];
    const clock = fakeDate();
    interceptDynamo(async ({ command }, send) => {
      if (command === "BatchGetItemCommand") {
        restoreAws();
        clock.advance(30);
        expect((await admin.api.delete(path)).status).toBe(204);
      }
      return send();
    });
    expect((await admin.api.delete(path)).status).toBe(204);
    expect(await itemsOf("serviceAccounts", { project_id: projectId })).toMatchObject([{ account_count: 0 }]);
    for (const { as } of keys) expect((await as.get("/v1/projects")).status).toBe(401);
  });

  test("is refused with 409 while another request makes it, without further work, and 404 after it", async () => {
    const { admin, path, createKey } = await newServiceAccount(service);
    await createKey();
    const calls: AwsCall[] = [];
    const refused: object[] = [];
    interceptDynamo(async (call, send) => {
      if (call.command !== "BatchGetItemCommand") return send();
      interceptDynamo(async (each, next) => {
        calls.push(each);
        return next();
      });
      for (let count = 0; count < 3; count++) {
        const { status, body } = await admin.api.delete(path);
        refused.push([status, body.error.code, body.error.message]);
      }
      restoreAws();
      return send();
    });
    expect((await admin.api.delete(path)).status).toBe(204);
    const message =
      "Another request is deleting the service account. If it is still listed in 30 seconds, repeat the request.";
    expect(refused).toEqual(Array(3).fill([409, "conflict", message]));
    // Each: the role of the caller, the transaction that begins nothing, and the account.
    expect(calls).toHaveLength(9);
    expect((await admin.api.delete(path)).status).toBe(404);
  });

  test("that was cut off is continued by one of two requests at once", async () => {
    const { projectId, accountId } = await newServiceAccount(service);
    const now = new Date();
    await beginRemoval(projectId, accountId, now, platform);
    // Both have read the account before one of them continues.
    const { promise: bothHaveRead, resolve } = Promise.withResolvers<void>();
    let reads = 0;
    interceptDynamo(async ({ command }, send) => {
      const output = await send();
      if (command !== "GetItemCommand") return output;
      if (++reads === 2) resolve();
      return bothHaveRead.then(() => output);
    });
    const begin = () => beginRemoval(projectId, accountId, new Date(now.getTime() + 30_000), platform);
    const results = await Promise.allSettled([begin(), begin()]);
    expect(results.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  });

  test("of a hundred keys takes few calls, and leaves nothing", async () => {
    const { admin, path, accountId, createKey } = await newServiceAccount(service);
    const keys = await Promise.all(Array.from({ length: 100 }, () => createKey()));
    let calls = 0;
    interceptDynamo(async (_, send) => {
      calls += 1;
      return send();
    });
    expect((await admin.api.delete(path)).status).toBe(204);
    restoreAws();
    expect(calls).toBeLessThanOrEqual(25);
    expect(await everything(accountId)).toEqual([]);
    expect(await itemsOf("userApiKeys", { user_id: `service-account:${accountId}` })).toEqual([]);
    for (const { as } of keys.slice(0, 3)) expect((await as.get("/v1/projects")).status).toBe(401);
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
      if (call.command === "BatchGetItemCommand") {
        restoreAws();
        await admin.api.delete(`${path}/api-keys/${first.id}`);
      }
      return send();
    });
    expect((await admin.api.delete(path)).status).toBe(204);
    expect(await everything(accountId)).toEqual([]);
  });
});

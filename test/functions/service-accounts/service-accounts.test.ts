import { DeleteCommand, ScanCommand } from "@aws-sdk/lib-dynamodb";
import { mintToken } from "../../../bin/local/mint-token.ts";
import { dynamo } from "../../../functions/platform/aws.ts";
import { tableName } from "../../../functions/platform/env.ts";
import { createServiceAccount, toListItem } from "../../../functions/service-accounts/service-account.ts";
import { interceptDynamo, restoreAws } from "../../support/aws-calls.ts";
import { notificationsAbout } from "../../support/notifications.ts";
import { givenUsedReads } from "../../support/request-budget.ts";
import { errorOf } from "../../support/scenario.ts";
import { type Api, type Response, useService } from "../../support/service.ts";
import { newServiceAccount } from "../../support/service-accounts.ts";

const service = useService();

describe("a service account", () => {
  const now = new Date("2026-03-01T12:00:00.000Z");

  test("a service account has the user id of its own id, and shows nothing of its removal", () => {
    const input = { name: "deploy", role: "viewer" } as const;
    const account = createServiceAccount(input, "project-1", "user-1", now, Buffer.alloc(16, 1));
    expect(account.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-/);
    expect(toListItem({ ...account, removing_at: now.toISOString() })).toEqual({
      id: account.id,
      project_id: "project-1",
      user_id: `service-account:${account.id}`,
      name: "deploy",
      role: "viewer",
      created_at: now.toISOString(),
      created_by: "user-1",
    });
  });
});

describe("creating a service account", () => {
  test("returns the service account, which is a member of this project only, with its role", async () => {
    const { admin, projectId, accounts, createKey, accountId } = await newServiceAccount(service, "viewer");
    const { data } = (await admin.api.get(accounts)).body;
    expect(data).toEqual([
      {
        id: accountId,
        project_id: projectId,
        user_id: `service-account:${accountId}`,
        name: "deploy",
        role: "viewer",
        created_at: expect.stringMatching(/Z$/),
        created_by: admin.userId,
      },
    ]);
    const { as } = await createKey();
    expect((await as.get("/v1/projects")).body.data).toMatchObject([
      { id: projectId, name: "Project", role: "viewer" },
    ]);
  });

  test("a JWT with the user id of a service account is rejected", async () => {
    const { accountId } = await newServiceAccount(service);
    const token = mintToken(process.env.JWT_SECRET ?? "", `service-account:${accountId}`);
    expect((await service.as(token).get("/v1/projects")).body.error.code).toBe("invalid_token");
  });

  test.each([
    [{ name: "x" }, "role"],
    [{ name: "x", role: "owner" }, "role"],
    [{ role: "admin" }, "name"],
    [{ name: "", role: "admin" }, "name"],
    [{ name: "x", role: "admin", user_id: "user-1" }, "user_id"],
  ])("rejects the body %j", async (body, path) => {
    const { admin, accounts } = await newServiceAccount(service);
    const response = await admin.api.post(accounts, body);
    expect(response.body.error).toMatchObject({ code: "validation_error", details: [{ path }] });
  });

  test("allows 50 per project, also under concurrent creates, and another one after a delete", async () => {
    const { admin, accounts, path } = await newServiceAccount(service);
    const create = async () => (await admin.api.post(accounts, { name: "one of many", role: "viewer" })).status;
    const statuses = await Promise.all(Array.from({ length: 52 }, create));
    expect(statuses.filter((status) => status === 201)).toHaveLength(49);
    expect(await create()).toBe(409);
    expect((await admin.api.delete(path)).status).toBe(204);
    expect(await create()).toBe(201);
  });
});

describe("listing service accounts", () => {
  test("lists the service accounts of the project, oldest first", async () => {
    const { admin, accounts } = await newServiceAccount(service);
    for (const name of ["second", "third"]) await admin.api.post(accounts, { name, role: "viewer" });
    const { status, body } = await admin.api.get(accounts);
    expect(status).toBe(200);
    expect(body.data.map(({ name }: { name: string }) => name)).toEqual(["deploy", "second", "third"]);
  });

  test("returns no service account of another project", async () => {
    await newServiceAccount(service);
    const admin = service.user();
    const other = await service.project(admin.userId);
    expect((await admin.api.get(`/v1/projects/${other}/service-accounts`)).body).toEqual({ data: [] });
  });
});

describe("deleting a service account", () => {
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

  test("returns 404 for the service account of another project, which stays", async () => {
    const [one, other] = [await newServiceAccount(service), await newServiceAccount(service)];
    expect((await other.admin.api.delete(`${other.accounts}/${one.accountId}`)).status).toBe(404);
    expect((await one.admin.api.get(one.accounts)).body.data).toHaveLength(1);
  });

  test("notifies the project of each key that ends with it", async () => {
    const { admin, path, createKey, projectId } = await newServiceAccount(service);
    const key = await createKey();
    await admin.api.delete(path);
    expect(await notificationsAbout(key.id)).toMatchObject([
      { type: "api_key.revoked", project_id: projectId, data: { reason: "service_account_deleted", name: "ci" } },
    ]);
  });
});

describe("creating a key", () => {
  test("returns a key that sees this project only, with the role of the service account", async () => {
    const { projectId, createKey, accountId } = await newServiceAccount(service, "viewer");
    const { key, as } = await createKey();
    expect(key).toMatch(/^svc_[0-9a-f]{64}$/);
    expect((await as.get("/v1/projects")).body.data.map(({ id }: { id: string }) => id)).toEqual([projectId]);
    expect((await as.get(`/v1/projects/${projectId}/webhooks`)).status).toBe(200);
    const hook = { url: "https://example.com/hook", events: ["deploy.failed"] };
    expect((await as.post(`/v1/projects/${projectId}/webhooks`, hook)).body.error.code).toBe("forbidden");
    const elsewhere = await service.project(service.user().userId);
    expect((await as.get(`/v1/projects/${elsewhere}/webhooks`)).status).toBe(404);
    const current = (await as.get("/v1/api-keys/current")).body.data;
    expect(current).toMatchObject({ type: "api_key", user_id: `service-account:${accountId}` });
  });

  test("accepts the limits of API keys, for its own project", async () => {
    const { admin, path, projectId, createKey } = await newServiceAccount(service);
    const { as } = await createKey({ permissions: ["webhooks:read"], project_ids: [projectId] });
    expect((await as.get(`/v1/projects/${projectId}/webhooks`)).status).toBe(200);
    expect((await as.get("/v1/projects")).body.error.code).toBe("insufficient_permission");
    const elsewhere = await service.project(admin.userId);
    const { body } = await admin.api.post(`${path}/api-keys`, { name: "ci", project_ids: [projectId, elsewhere] });
    expect(body.error).toMatchObject({ code: "validation_error", details: [{ path: "project_ids.1" }] });
  });

  test("its key creates no further credential: no key, no service account", async () => {
    const { path, accounts, createKey } = await newServiceAccount(service, "admin");
    const { as } = await createKey();
    for (const [target, body] of [
      ["/v1/api-keys", { name: "more" }],
      [`${path}/api-keys`, { name: "more" }],
      [accounts, { name: "more", role: "admin" }],
    ] as const) {
      expect((await as.post(target, body)).body.error.code).toBe("session_required");
    }
  });

  test("returns 404 for a service account of another project", async () => {
    const [one, other] = [await newServiceAccount(service), await newServiceAccount(service)];
    const path = `${other.accounts}/${one.accountId}/api-keys`;
    expect((await other.admin.api.post(path, { name: "ci" })).status).toBe(404);
    expect((await one.admin.api.get(`${one.path}/api-keys`)).body.data).toEqual([]);
  });
});

describe("listing keys", () => {
  test("lists the keys of the service account only, without the keys themselves", async () => {
    const { admin, path, createKey } = await newServiceAccount(service);
    await admin.api.post("/v1/api-keys", { name: "of the admin" });
    const { id, key } = await createKey();
    const { body } = await admin.api.get(`${path}/api-keys`);
    expect(body.data).toMatchObject([{ id, name: "ci", key_prefix: key.slice(0, 12), last_used_at: null }]);
    expect(JSON.stringify(body)).not.toContain(key);
  });

  test("returns address and user agent with include=last_use, and rejects other parameters", async () => {
    const { admin, path, createKey } = await newServiceAccount(service);
    await (await createKey()).as.get("/v1/projects");
    const [shown] = (await admin.api.get(`${path}/api-keys?include=last_use`)).body.data;
    expect(shown).toMatchObject({ last_used_ip: "127.0.0.1", last_used_user_agent: "node" });
    expect((await admin.api.get(`${path}/api-keys?limit=1`)).status).toBe(400);
  });

  test("returns 404 for a service account of another project", async () => {
    const [one, other] = [await newServiceAccount(service), await newServiceAccount(service)];
    expect((await other.admin.api.get(`${other.accounts}/${one.accountId}/api-keys`)).status).toBe(404);
  });

  test("is rejected with 429 beyond the project's budget of reads", async () => {
    const { admin, path, projectId } = await newServiceAccount(service);
    await givenUsedReads(projectId, 5_000);
    expect(errorOf(await admin.api.get(`${path}/api-keys`))).toEqual({ status: 429, code: "rate_limited" });
  });
});

describe("renaming a key", () => {
  test("changes the name and nothing else, and the audit log of the project shows it", async () => {
    const { admin, projectId, path, createKey } = await newServiceAccount(service);
    const { id, as } = await createKey();
    const [before] = (await admin.api.get(`${path}/api-keys`)).body.data;
    const { status, body } = await admin.api.patch(`${path}/api-keys/${id}`, { name: "deploy job" });
    expect({ status, data: body.data }).toEqual({ status: 200, data: { ...before, name: "deploy job" } });
    expect((await admin.api.get(`${path}/api-keys`)).body.data).toEqual([{ ...before, name: "deploy job" }]);
    expect((await as.get("/v1/projects")).status).toBe(200);
    const [event] = (await admin.api.get(`/v1/projects/${projectId}/audit-events`)).body.data;
    expect(event).toMatchObject({ action: "api_key.renamed", resource_id: id, details: { name: "deploy job" } });
  });

  test("rejects a name that is not valid with 400", async () => {
    const { admin, path, createKey } = await newServiceAccount(service);
    const { id } = await createKey();
    for (const body of [{}, { name: "" }, { name: "ci", permissions: ["keys:read"] }]) {
      expect((await admin.api.patch(`${path}/api-keys/${id}`, body)).body.error.code).toBe("validation_error");
    }
  });
});

describe("rolling a key", () => {
  test("returns a new key with the same id and limits, and the earlier one works until the end of the overlap", async () => {
    const { admin, projectId, path, accountId, createKey } = await newServiceAccount(service);
    const limits = { permissions: ["projects:read"], project_ids: [projectId] };
    const earlier = await createKey(limits);
    const { status, body } = await admin.api.post(`${path}/api-keys/${earlier.id}/roll`, { overlap_seconds: 600 });
    expect(status).toBe(200);
    expect(body.data).toMatchObject({ id: earlier.id, name: "ci", ...limits });
    expect(body.data.key).not.toBe(earlier.key);
    for (const as of [service.as(body.data.key), earlier.as]) expect((await as.get("/v1/projects")).status).toBe(200);
    const current = (await service.as(body.data.key).get("/v1/api-keys/current")).body.data;
    expect(current.user_id).toBe(`service-account:${accountId}`);
    const [event] = (await admin.api.get(`/v1/projects/${projectId}/audit-events`)).body.data;
    expect(event).toMatchObject({
      action: "api_key.rolled",
      resource_id: earlier.id,
      actor: { user_id: admin.userId },
      details: { key_prefix: body.data.key_prefix, overlap_seconds: 600 },
    });
  });

  test("without an overlap ends all earlier keys at once", async () => {
    const { admin, path, createKey } = await newServiceAccount(service);
    const first = await createKey();
    const second = (await admin.api.post(`${path}/api-keys/${first.id}/roll`, {})).body.data;
    const third = (await admin.api.post(`${path}/api-keys/${first.id}/roll`, { overlap_seconds: 0 })).body.data;
    for (const as of [first.as, service.as(second.key)]) {
      expect((await as.get("/v1/projects")).body.error.code).toBe("invalid_api_key");
    }
    expect((await service.as(third.key).get("/v1/projects")).status).toBe(200);
  });

  test("needs the JWT of an admin: a key, also one of the account itself, and a viewer are rejected", async () => {
    const { projectId, path, createKey } = await newServiceAccount(service);
    const { id, as } = await createKey();
    expect((await as.post(`${path}/api-keys/${id}/roll`, {})).body.error.code).toBe("session_required");
    const viewer = service.user();
    await service.project(viewer.userId, { projectId, role: "viewer" });
    expect((await viewer.api.post(`${path}/api-keys/${id}/roll`, {})).body.error.code).toBe("forbidden");
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
});

describe("deleting a key", () => {
  test("rejects the key from the next request on, and keeps the others", async () => {
    const { admin, path, createKey } = await newServiceAccount(service);
    const [deleted, kept] = [await createKey(), await createKey()];
    expect((await admin.api.delete(`${path}/api-keys/${deleted.id}`)).status).toBe(204);
    expect((await deleted.as.get("/v1/projects")).body.error.code).toBe("invalid_api_key");
    expect((await kept.as.get("/v1/projects")).status).toBe(200);
    expect((await admin.api.delete(`${path}/api-keys/${deleted.id}`)).status).toBe(404);
  });
});

test.each<[string, (api: Api, path: string) => Promise<Response>]>([
  ["renaming", (api, path) => api.patch(path, { name: "taken" })],
  ["rolling", (api, path) => api.post(`${path}/roll`, { overlap_seconds: 0 })],
  ["deleting", (api, path) => api.delete(path)],
])("%s returns 404 for a key of a user, of another service account, and through another project", async (_, change) => {
  const [one, other] = [await newServiceAccount(service), await newServiceAccount(service)];
  const own = (await one.admin.api.post("/v1/api-keys", { name: "own" })).body.data;
  const foreign = await other.createKey();
  const { id, as } = await one.createKey();
  for (const wrong of [own.id, foreign.id]) {
    expect((await change(one.admin.api, `${one.path}/api-keys/${wrong}`)).status).toBe(404);
  }
  const through = `${other.accounts}/${one.accountId}/api-keys/${id}`;
  expect((await change(other.admin.api, through)).status).toBe(404);
  for (const api of [service.as(own.key), foreign.as, as]) expect((await api.get("/v1/projects")).status).toBe(200);
  expect((await one.admin.api.get(`${one.path}/api-keys`)).body.data).toMatchObject([{ name: "ci" }]);
});

import { interceptDynamo, restoreAws } from "../../support/aws-calls.ts";
import { expectPages } from "../../support/pages.ts";
import { useService } from "../../support/service.ts";

const service = useService();
afterEach(restoreAws);

const path = "/v1/audit-events";
type Entry = { id: string; action: string; resource_id: string };

test("shows the creation and the deletion of a key, newest first, with who did it", async () => {
  const { api, userId, token } = service.user();
  const { id, key, key_prefix } = (await api.post("/v1/api-keys", { name: "ci" })).body.data;
  await fetch(`${service.baseUrl}/v1/api-keys/${id}`, {
    method: "DELETE",
    headers: { authorization: `Bearer ${key}`, "user-agent": "deploy-script/1.0" },
  });
  const { data } = (await service.as(token).get(path)).body;
  const common = { id: expect.any(String), at: expect.stringMatching(/Z$/), resource_id: id };
  const actor = { user_id: userId, address: "127.0.0.1", request_id: expect.any(String) };
  expect(data).toEqual([
    {
      ...common,
      action: "api_key.deleted",
      actor: { ...actor, type: "api_key", credential_id: id, user_agent: "deploy-script/1.0" },
      details: {},
    },
    {
      ...common,
      action: "api_key.created",
      actor: { ...actor, type: "jwt", user_agent: expect.any(String) },
      details: { name: "ci", key_prefix },
    },
  ]);
  expect(JSON.stringify(data)).not.toContain(key.slice(12));
});

test("has no entry for a request that failed", async () => {
  const { api } = service.user();
  const { id } = (await api.post("/v1/api-keys", { name: "ci" })).body.data;
  await api.delete(`/v1/api-keys/${id}`);
  expect((await api.delete(`/v1/api-keys/${id}`)).status).toBe(404);
  expect((await api.post("/v1/api-keys", { name: "" })).status).toBe(400);
  expect((await api.get(path)).body.data.map(({ action }: Entry) => action)).toEqual([
    "api_key.deleted",
    "api_key.created",
  ]);
});

test("and the change are written together or not at all", async () => {
  const { api } = service.user();
  interceptDynamo(({ command, input }, send) => {
    if (!command.startsWith("TransactWrite")) return send();
    const items = (input.TransactItems ?? []) as { Put?: { TableName: string } }[];
    expect(items.filter(({ Put }) => Put?.TableName.endsWith("audit-events"))).toHaveLength(1);
    throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
  });
  expect((await api.post("/v1/api-keys", { name: "ci" })).status).toBe(503);
  restoreAws();
  expect((await api.get(path)).body).toEqual({ data: [] });
  expect((await api.get("/v1/api-keys")).body).toEqual({ data: [] });
});

test("contains no change by another user", async () => {
  const [one, two] = [service.user(), service.user()];
  await one.api.post("/v1/api-keys", { name: "of one" });
  expect((await two.api.get(path)).body.data).toEqual([]);
});

test("is returned in pages that follow each other", async () => {
  const { api } = service.user();
  const keys: string[] = [];
  for (let count = 0; count < 7; count++) keys.unshift((await api.post("/v1/api-keys", { name: "ci" })).body.data.id);
  await expectPages(api, path, keys, "resource_id");
});

test("is closed to a key that is limited to projects, whatever its permissions", async () => {
  const { api, userId } = service.user();
  const project_ids = [await service.project(userId)];
  for (const limits of [{ project_ids }, { project_ids, permissions: ["audit:read"] }]) {
    const { key } = (await api.post("/v1/api-keys", { name: "ci", ...limits })).body.data;
    const { status, body } = await service.as(key).get(path);
    expect({ status, code: body.error.code }).toEqual({ status: 403, code: "insufficient_permission" });
  }
  const { key } = (await api.post("/v1/api-keys", { name: "ci", permissions: ["audit:read"] })).body.data;
  expect((await service.as(key).get(path)).status).toBe(200);
});

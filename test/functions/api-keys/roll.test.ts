import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { hashApiKey } from "../../../functions/api-keys/api-key.ts";
import { dynamo } from "../../../functions/platform/aws.ts";
import { tableName } from "../../../functions/platform/env.ts";
import { changeKey } from "../../support/api-keys.ts";
import { errorOf } from "../../support/scenario.ts";
import { type TestService, useService } from "../../support/service.ts";

const service = useService();

type User = ReturnType<TestService["user"]>;

const create = async ({ api }: User, limits: object = {}) =>
  (await api.post("/v1/api-keys", { name: "ci", ...limits })).body.data as { id: string; key: string };
const roll = ({ api }: User, id: string, body?: object) => api.post(`/v1/api-keys/${id}/roll`, body);
const rolledKey = async (user: User, id: string, overlap_seconds?: number): Promise<string> => {
  const { status, body } = await roll(user, id, { ...(overlap_seconds !== undefined && { overlap_seconds }) });
  expect(status).toBe(200);
  return body.data.key;
};
const record = (key: string) => ({ TableName: tableName("apiKeys"), Key: { key_hash: hashApiKey(key) } });
const recordOf = async (key: string) =>
  (await dynamo().send(new GetCommand({ ...record(key), ConsistentRead: true }))).Item;

/** Returns for each key whether the service accepts it. */
const areAccepted = (keys: string[]) =>
  Promise.all(
    keys.map(async (key) => {
      const { status, body } = await service.as(key).get("/v1/projects");
      if (status !== 200) expect(body.error.code).toBe("invalid_api_key");
      return status === 200;
    }),
  );

test("returns the same id, name, limits and times with another key, which the list shows", async () => {
  const user = service.user();
  const limits = {
    permissions: ["projects:read"],
    project_ids: [await service.project(user.userId)],
    expires_at: new Date(Date.now() + 3600_000).toISOString(),
  };
  const { key, ...created } = await create(user, limits);
  const { status, body } = await roll(user, created.id, {});
  expect(status).toBe(200);
  const next: string = body.data.key;
  expect(next).toMatch(/^svc_[0-9a-f]{64}$/);
  expect(next).not.toBe(key);
  expect(body).toEqual({ data: { ...created, key: next, key_prefix: next.slice(0, 12) } });
  const { data } = (await user.api.get("/v1/api-keys")).body;
  expect(data).toEqual([{ ...created, key_prefix: next.slice(0, 12), last_used_at: null }]);
  expect(await recordOf(next)).not.toHaveProperty("ends_at");
  const current = (await service.as(next).get("/v1/api-keys/current")).body.data;
  expect(current).toMatchObject(limits);
});

test("keeps the earlier key for a day by default, and DynamoDB deletes it after that", async () => {
  const user = service.user();
  const { id, key } = await create(user);
  const before = Date.now();
  const next = await rolledKey(user, id);
  expect(await areAccepted([key, next])).toEqual([true, true]);
  const { ends_at, delete_after } = (await recordOf(key)) ?? {};
  expect(Math.abs(Date.parse(ends_at) - before - 86_400_000)).toBeLessThan(10_000);
  expect(delete_after).toBe(Math.ceil(Date.parse(ends_at) / 1000));
  const current = (await service.as(key).get("/v1/api-keys/current")).body.data;
  expect(current).toMatchObject({ api_key: { id }, expires_at: ends_at });
});

test("with an overlap of 0 rejects the earlier key in every request after the response", async () => {
  const user = service.user();
  for (let round = 0; round < 5; round++) {
    const { id, key } = await create(user);
    expect(await areAccepted([key])).toEqual([true]);
    const next = await rolledKey(user, id, 0);
    expect(await areAccepted([...Array(20).fill(key), next])).toEqual([...Array(20).fill(false), true]);
    expect(await recordOf(key)).toBeUndefined();
  }
});

test("rejects the earlier key like a deleted one when the overlap is over, although its record still exists", async () => {
  const user = service.user();
  const { id, key } = await create(user);
  const next = await rolledKey(user, id, 60);
  const now = new Date().toISOString();
  await changeKey(key, { ends_at: now, expires_at: now });
  expect(await areAccepted([key, next])).toEqual([false, true]);
  expect(errorOf(await service.as(key).get("/v1/projects"))).toEqual({ status: 401, code: "invalid_api_key" });
});

test("keeps three earlier keys, and ends the oldest at once when a fourth is added", async () => {
  const user = service.user();
  const { id, key } = await create(user);
  const keys = [key];
  for (let rolls = 0; rolls < 4; rolls++) keys.push(await rolledKey(user, id, 600));
  expect(await areAccepted(keys)).toEqual([false, true, true, true, true]);
  expect(await recordOf(key)).toBeUndefined();
});

test("with an overlap of 0 ends all earlier keys", async () => {
  const user = service.user();
  const { id, key } = await create(user);
  const keys = [key, await rolledKey(user, id, 600), await rolledKey(user, id, 600), await rolledKey(user, id, 0)];
  expect(await areAccepted(keys)).toEqual([false, false, false, true]);
});

test("counts the key once, and a delete ends all of its secrets", async () => {
  const user = service.user();
  const { id, key } = await create(user);
  const keys = [key, await rolledKey(user, id, 600), await rolledKey(user, id, 600)];
  expect((await user.api.get("/v1/api-keys")).body.data).toHaveLength(1);
  expect((await service.as(key).delete(`/v1/api-keys/${id}`)).status).toBe(204);
  expect(await areAccepted([...keys, ...keys])).toEqual(Array(6).fill(false));
  for (const each of keys) expect(await recordOf(each)).toBeUndefined();
  expect((await user.api.get("/v1/api-keys")).body.data).toEqual([]);
});

test("the audit log shows rolls, renames and the end of an earlier key, without a key", async () => {
  const user = service.user();
  const { id, key } = await create(user);
  const next = await rolledKey(user, id, 600);
  await user.api.patch(`/v1/api-keys/${id}`, { name: "renamed" });
  await user.api.post("/v1/credentials/revoke", { credentials: [key] });
  await user.api.post("/v1/credentials/revoke", { credentials: [next] });
  const { data } = (await user.api.get("/v1/audit-events")).body;
  expect(data).toMatchObject([
    { action: "api_key.deleted", resource_id: id, actor: { type: "anonymous" }, details: { reason: "leaked" } },
    {
      action: "api_key.earlier_ended",
      resource_id: id,
      actor: { type: "anonymous" },
      details: { reason: "leaked", key_prefix: key.slice(0, 12) },
    },
    { action: "api_key.renamed", resource_id: id, actor: { type: "jwt" }, details: { name: "renamed" } },
    { action: "api_key.rolled", details: { key_prefix: next.slice(0, 12), overlap_seconds: 600 } },
    { action: "api_key.created" },
  ]);
  expect(JSON.stringify(data)).not.toContain(next);
});

test("the list shows the last use of an earlier key", async () => {
  const user = service.user();
  const { id, key } = await create(user);
  await rolledKey(user, id, 600);
  await service.as(key).get("/v1/projects");
  const { last_used_at } = (await recordOf(key)) ?? {};
  expect((await user.api.get("/v1/api-keys")).body.data).toMatchObject([{ id, last_used_at }]);
});

test("accepts every new key of concurrent rolls that has not been rolled out of the three", async () => {
  const user = service.user();
  const { id, key } = await create(user);
  const keys = await Promise.all([600, 600, 600].map((overlap) => rolledKey(user, id, overlap)));
  expect(await areAccepted([key, ...keys])).toEqual([true, true, true, true]);
});

test("returns 409 for a key that has expired", async () => {
  const user = service.user();
  const { id, key } = await create(user);
  await changeKey(key, { expires_at: new Date(0).toISOString() });
  const { status, body } = await roll(user, id, {});
  expect({ status, code: body.error.code }).toEqual({ status: 409, code: "conflict" });
});

test("returns 404 for the key of another user and for a deleted key", async () => {
  const [owner, other] = [service.user(), service.user()];
  const { id, key } = await create(owner);
  expect((await roll(other, id, {})).status).toBe(404);
  await owner.api.delete(`/v1/api-keys/${id}`);
  expect((await roll(owner, id, {})).status).toBe(404);
  expect(await areAccepted([key])).toEqual([false]);
});

test.each([-1, 604_801, 1.5, "60", null])("rejects an overlap of %j", async (overlap_seconds) => {
  const user = service.user();
  const { id, key } = await create(user);
  const { status, body } = await roll(user, id, { overlap_seconds });
  expect({ status, path: body.error.details[0].path }).toEqual({ status: 400, path: "overlap_seconds" });
  expect(await areAccepted([key])).toEqual([true]);
});

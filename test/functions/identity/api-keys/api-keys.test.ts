import { createHash, randomUUID } from "node:crypto";
import {
  type BatchGetCommandInput,
  type BatchGetCommandOutput,
  ScanCommand,
  UpdateCommand,
} from "@aws-sdk/lib-dynamodb";
import { type TableKey, tables } from "../../../../functions/foundation/manifest/tables.ts";
import { dynamo } from "../../../../functions/foundation/platform/aws.ts";
import { tableName } from "../../../../functions/foundation/platform/env.ts";
import { handler as provision } from "../../../../functions/identity/api-keys/provision.ts";
import { interceptDynamo, restoreAws, watchDynamo } from "../../../support/aws-calls.ts";
import { givenUsedReads, usedReads } from "../../../support/request-budget.ts";
import { errorOf } from "../../../support/scenario.ts";
import { type TestService, useService } from "../../../support/service.ts";

const service = useService();

type User = ReturnType<TestService["user"]>;

const create = async ({ api }: User, limits: object = {}) =>
  (await api.post("/v1/api-keys", { name: "ci", ...limits })).body.data as { id: string; key: string };
const namesOf = async ({ api }: Pick<User, "api">) =>
  (await api.get("/v1/api-keys")).body.data.map(({ name }: { name: string }) => name);
const statusWith = async (key: string) => (await service.as(key).get("/v1/projects")).status;

/** Returns the content of all tables as text. */
async function storedText(): Promise<string> {
  const scans = Object.keys(tables).map((key) =>
    dynamo().send(new ScanCommand({ TableName: tableName(key as TableKey), ConsistentRead: true })),
  );
  const pages = await Promise.all(scans);
  expect(pages.map(({ LastEvaluatedKey }) => LastEvaluatedKey)).toEqual(pages.map(() => undefined));
  return JSON.stringify(pages.map(({ Items }) => Items));
}

test("stores the SHA-256 hash of a key, not the key", async () => {
  const { key } = (await service.user().api.post("/v1/api-keys", { name: "ci" })).body.data;
  await service.as(key).get("/v1/projects");
  const stored = await storedText();
  expect(stored).toContain(createHash("sha256").update(key).digest("hex"));
  // No table contains 16 consecutive characters of the key.
  for (let start = 0; start + 16 <= key.length; start++) expect(stored).not.toContain(key.slice(start, start + 16));
});

test("returns 409 after 100 keys of a user, with 110 concurrent requests", async () => {
  const { api } = service.user();
  const responses = await Promise.all(
    Array.from({ length: 110 }, (_, index) => api.post("/v1/api-keys", { name: `key ${index}` })),
  );
  const created = responses.filter(({ status }) => status === 201);
  const rejected = responses.filter(({ status }) => status !== 201);
  expect(created).toHaveLength(100);
  expect(rejected).toHaveLength(10);
  for (const { status, body } of rejected) {
    expect({ status, code: body.error.code }).toEqual({ status: 409, code: "api_key_limit_reached" });
  }
  const listed = (await api.get("/v1/api-keys")).body.data.map(({ id }: { id: string }) => id);
  expect(listed.toSorted()).toEqual(created.map(({ body }) => body.data.id).toSorted());
  expect((await service.user().api.post("/v1/api-keys", { name: "other user" })).status).toBe(201);
});

async function userWithKeys(names: string[]): Promise<User & { created: Record<string, string>[] }> {
  const user = service.user();
  const created: Record<string, string>[] = [];
  for (const name of names) created.push((await user.api.post("/v1/api-keys", { name })).body.data);
  return { ...user, created };
}

test("the list has all keys in order when DynamoDB returns unordered parts of a batch", async () => {
  const names = ["1", "2", "3", "4", "5"];
  const { api } = await userWithKeys(names);
  const table = tableName("apiKeys");
  let requests = 0;
  interceptDynamo(async ({ command, input }, send) => {
    if (command !== "BatchGetItemCommand") return send();
    requests++;
    const { Keys = [], ...rest } = (input as BatchGetCommandInput).RequestItems?.[table] ?? {};
    // Two items per response, in reverse order.
    const { Responses } = await send({ RequestItems: { [table]: { ...rest, Keys: Keys.slice(0, 2) } } });
    const items = (Responses as BatchGetCommandOutput["Responses"])?.[table] ?? [];
    const left = { [table]: { ...rest, Keys: Keys.slice(2) } };
    return { Responses: { [table]: items.toReversed() }, UnprocessedKeys: Keys.length > 2 ? left : {} };
  });
  const { data } = (await api.get("/v1/api-keys")).body;
  expect(data.map(({ name }: { name: string }) => name)).toEqual(names);
  expect(requests).toBe(3);
});

test("a scoped key reads its own items only, however many keys its user has", async () => {
  const { api } = await userWithKeys(["one", "two", "three", "four"]);
  const { id, key } = (await api.post("/v1/api-keys", { name: "scoped", permissions: ["keys:read"] })).body.data;
  const calls = watchDynamo();
  const { body } = await service.as(key).get("/v1/api-keys");
  restoreAws();
  expect(body.data.map((listed: { id: string }) => listed.id)).toEqual([id]);
  const reads = calls.filter(({ command }) => /^(Query|BatchGetItem)/.test(command));
  expect(reads.map(({ units }) => units)).toEqual([1, 1]);
});

test("the list reads a previous secret during its overlap only, at half the units of a current one", async () => {
  const { userId, api, created } = await userWithKeys(["one", "two", "three", "four"]);
  for (const { id } of created) await api.post(`/v1/api-keys/${id}/roll`, {});
  for (const { id } of created.slice(0, 2)) {
    await dynamo().send(
      new UpdateCommand({
        TableName: tableName("userApiKeys"),
        Key: { user_id: userId, id },
        UpdateExpression: "SET previous[0].ends_at = :past",
        ExpressionAttributeValues: { ":past": new Date().toISOString() },
      }),
    );
  }
  const calls = watchDynamo();
  expect((await api.get("/v1/api-keys")).body.data).toHaveLength(4);
  restoreAws();
  const reads = calls.filter(({ command }) => /^(Query|BatchGetItem)/.test(command));
  expect(reads.map(({ units }) => units).sort()).toEqual([1, 1, 4]);
});

test("a list of 30 keys is charged to its user, not shown beyond the budget of reads, and a short one costs no write", async () => {
  const names = Array.from({ length: 30 }, (_, index) => `key ${index}`);
  const { userId, api } = await userWithKeys(names);
  const other = await userWithKeys(["one", "two"]);
  expect((await api.get("/v1/api-keys")).body.data).toHaveLength(30);
  // The records, and two for the entries.
  expect(await usedReads(`user:${userId}`)).toBe(32);
  const calls = watchDynamo();
  await other.api.get("/v1/api-keys");
  restoreAws();
  expect(calls.filter(({ command }) => command.startsWith("Update"))).toEqual([]);
  await givenUsedReads(`user:${userId}`, 5_000);
  const response = await api.get("/v1/api-keys");
  expect(errorOf(response)).toEqual({ status: 429, code: "rate_limited" });
  expect(response.headers.get("retry-after")).toMatch(/^([1-9]|[12]\d|30)$/);
  expect((await other.api.get("/v1/api-keys")).status).toBe(200);
});

test("a key that a user has rolled deletes another key of the user and itself", async () => {
  const user = service.user();
  const [other, own] = [await create(user), await create(user)];
  await user.api.post(`/v1/api-keys/${own.id}/roll`, { overlap_seconds: 600 });
  const api = service.as(own.key);
  expect((await api.delete(`/v1/api-keys/${other.id}`)).status).toBe(204);
  expect((await api.delete(`/v1/api-keys/${own.id}`)).status).toBe(204);
  expect((await api.delete(`/v1/api-keys/${own.id}`)).status).toBe(401);
  expect(await namesOf(user)).toEqual([]);
});

test.each<[string, (project: string) => object]>([
  ["permissions", () => ({ permissions: ["keys:read", "keys:write"] })],
  ["projects", (project) => ({ project_ids: [project] })],
])(
  "a key that is limited to %s lists, renames and deletes only itself; another key of the user is a 404",
  async (_, limits) => {
    const user = service.user();
    const scoped = await create(user, limits(await service.project(user.userId)));
    const other = await create(user);
    const api = service.as(scoped.key);
    expect((await api.patch(`/v1/api-keys/${other.id}`, { name: "taken" })).status).toBe(404);
    expect((await api.delete(`/v1/api-keys/${other.id}`)).status).toBe(404);
    expect((await api.patch(`/v1/api-keys/${scoped.id}`, { name: "mine" })).status).toBe(200);
    expect([await namesOf({ ...user, api }), await namesOf(user)]).toEqual([["mine"], ["mine", "ci"]]);
    expect((await api.delete(`/v1/api-keys/${scoped.id}`)).status).toBe(204);
  },
);

test("a key is not limited to a project that its user does not see, neither created nor provisioned", async () => {
  const { api, userId: user_id } = service.user();
  const [own, foreign] = [await service.project(user_id), await service.project(service.user().userId)];
  for (const [project_ids, path] of [
    [[foreign, own], "project_ids.0"],
    [[own, randomUUID()], "project_ids.1"],
  ] as const) {
    const refused = { code: "validation_error", details: [{ path, message: "is not a project of the user" }] };
    expect((await api.post("/v1/api-keys", { name: "ci", project_ids })).body.error).toMatchObject(refused);
    await expect(provision({ user_id, name: "ci", project_ids })).rejects.toMatchObject(refused);
  }
  expect(await namesOf({ api })).toEqual([]);
});

test("a key of another user and a deleted key are the same 404 for every change, and keep what they are", async () => {
  const [owner, other] = [service.user(), service.user()];
  const foreign = await create(owner);
  const deleted = await create(other);
  await other.api.delete(`/v1/api-keys/${deleted.id}`);
  const error = { code: "not_found", message: "No API key with this id exists." };
  for (const path of [foreign.id, deleted.id, randomUUID()].map((id) => `/v1/api-keys/${id}`)) {
    expect((await other.api.patch(path, { name: "taken" })).body.error).toMatchObject(error);
    expect((await other.api.post(`${path}/roll`, {})).body.error).toMatchObject(error);
    expect((await other.api.delete(path)).body.error).toMatchObject(error);
  }
  expect([await namesOf(owner), await namesOf(other), await statusWith(foreign.key)]).toEqual([["ci"], [], 200]);
});

test("the list shows the last use of an earlier key", async () => {
  const user = service.user();
  const { id, key } = await create(user);
  await user.api.post(`/v1/api-keys/${id}/roll`, { overlap_seconds: 600 });
  const before = new Date().toISOString();
  await statusWith(key);
  const [{ last_used_at }] = (await user.api.get("/v1/api-keys")).body.data;
  expect(last_used_at >= before).toBe(true);
});

test.each([
  ["undefined", undefined, ""],
  ["no user", { name: "ci" }, "user_id"],
  ["a service account", { user_id: "service-account:1", name: "ci" }, "user_id"],
  ["no name", { user_id: "u" }, "name"],
  ["an unknown field", { user_id: "u", name: "ci", key: "svc_mine" }, "key"],
])("provision throws validation_error for %s with the path of the field", async (_title, input, path) => {
  await expect(provision(input)).rejects.toMatchObject({ code: "validation_error", details: [{ path }] });
});

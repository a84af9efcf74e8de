import { type BatchGetCommandInput, type BatchGetCommandOutput, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../../../functions/platform/aws.ts";
import { tableName } from "../../../functions/platform/env.ts";
import { interceptDynamo, restoreAws, watchDynamo } from "../../support/aws-calls.ts";
import { givenUsedReads, usedReads } from "../../support/request-budget.ts";
import { errorOf } from "../../support/scenario.ts";
import { type TestService, useService } from "../../support/service.ts";

const service = useService();
afterEach(restoreAws);

type User = ReturnType<TestService["user"]>;

async function userWithKeys(names: string[]): Promise<User & { created: Record<string, string>[] }> {
  const user = service.user();
  const created: Record<string, string>[] = [];
  for (const name of names) created.push((await user.api.post("/v1/api-keys", { name })).body.data);
  return { ...user, created };
}

test("returns an empty array for a user without keys", async () => {
  const { status, body } = await service.user().api.get("/v1/api-keys");
  expect({ status, body }).toEqual({ status: 200, body: { data: [] } });
});

test("returns exactly the fields of the contract, without the key", async () => {
  const { api, created } = await userWithKeys(["ci"]);
  const [{ key, ...shown } = {}] = created;
  const { status, body } = await api.get("/v1/api-keys");
  expect(status).toBe(200);
  expect(body).toEqual({ data: [{ ...shown, last_used_at: null }] });
  expect(Object.keys(body.data[0]).sort()).toEqual(["created_at", "id", "key_prefix", "last_used_at", "name"]);
  expect(JSON.stringify(body)).not.toContain(key);
});

test("returns the time of last use after the first use, in ISO 8601 UTC", async () => {
  const { api, created } = await userWithKeys(["used", "unused"]);
  const before = Date.now();
  await service.as(created[0]?.key ?? "").get("/v1/projects");
  const [used, unused] = (await api.get("/v1/api-keys")).body.data;
  expect(used.last_used_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  expect(Date.parse(used.last_used_at)).toBeGreaterThanOrEqual(before);
  expect(Date.parse(used.last_used_at)).toBeLessThanOrEqual(Date.now());
  expect(unused.last_used_at).toBeNull();
});

test("returns address and user agent of the last use only with include=last_use", async () => {
  const { api, created } = await userWithKeys(["used", "unused"]);
  await service.as(created[0]?.key ?? "").get("/v1/projects");
  const [used, unused] = (await api.get("/v1/api-keys?include=last_use")).body.data;
  expect(used).toMatchObject({ last_used_ip: "127.0.0.1", last_used_user_agent: "node" });
  expect(unused).toMatchObject({ last_used_at: null, last_used_ip: null, last_used_user_agent: null });
  const [plain] = (await api.get("/v1/api-keys")).body.data;
  expect(Object.keys(plain).sort()).toEqual(["created_at", "id", "key_prefix", "last_used_at", "name"]);
});

test.each(["include=secrets", "include=", "include=last_use,key", "limit=5"])("rejects the query %s", async (query) => {
  const { status, body } = await service.user().api.get(`/v1/api-keys?${query}`);
  expect({ status, code: body.error.code }).toEqual({ status: 400, code: "validation_error" });
});

test("returns the keys in order of creation", async () => {
  const names = ["c", "a", "d", "b", "f", "e"];
  const { api, created } = await userWithKeys(names);
  const { data } = (await api.get("/v1/api-keys")).body;
  expect(data.map(({ name }: { name: string }) => name)).toEqual(names);
  expect(data.map(({ id }: { id: string }) => id)).toEqual(created.map(({ id }) => id));
});

test("returns no key of another user", async () => {
  const one = await userWithKeys(["of one"]);
  const two = await userWithKeys(["of two"]);
  const namesOf = async ({ api }: User) =>
    (await api.get("/v1/api-keys")).body.data.map(({ name }: { name: string }) => name);
  expect([await namesOf(one), await namesOf(two)]).toEqual([["of one"], ["of two"]]);
});

test("returns all keys in order when DynamoDB returns unordered parts of a batch", async () => {
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

test("reads a previous secret during its overlap only, at half the units of a current one", async () => {
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

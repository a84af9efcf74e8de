import { randomUUID } from "node:crypto";
import { jest } from "@jest/globals";
import { logSink } from "../../../functions/platform/log.ts";
import { unknownApiKey } from "../../support/api-keys.ts";
import { type AwsCall, beforeTransaction, failDynamo, interceptDynamo, restoreAws } from "../../support/aws-calls.ts";
import { fakeDate } from "../../support/fake-date.ts";
import { givenUsedBudget, usedBudget } from "../../support/request-budget.ts";
import { send, type TestService, useService } from "../../support/service.ts";
import { itemsOf } from "../../support/stored-items.ts";

const logged: object[] = [];
const service = useService();
beforeAll(async () => {
  logSink.write = (_level, line) => void logged.push(line);
});
afterEach(() => {
  jest.useRealTimers();
  restoreAws();
});

type User = ReturnType<TestService["user"]>;

const create = async ({ api }: User) =>
  (await api.post("/v1/api-keys", { name: "ci" })).body.data as { id: string; key: string };
const rolledKey = async ({ api }: User, id: string): Promise<string> =>
  (await api.post(`/v1/api-keys/${id}/roll`, { overlap_seconds: 600 })).body.data.key;
const revoke = (credentials: unknown) =>
  send(`${service.baseUrl}/v1/credentials/revoke`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ credentials }),
  });
const statusWith = async (key: string) => (await service.as(key).get("/v1/projects")).status;

test("without a credential ends a key from the next request on, and logs why for its owner", async () => {
  const user = service.user();
  const [{ id, key }, kept] = [await create(user), await create(user)];
  const { status, body } = await revoke([key]);
  expect({ status, body }).toEqual({ status: 202, body: { data: { received: 1 } } });
  expect(await Promise.all([key, ...Array(10).fill(key), kept.key].map(statusWith))).toEqual([
    ...Array(11).fill(401),
    200,
  ]);
  expect((await user.api.get("/v1/api-keys")).body.data).toMatchObject([{ id: kept.id }]);
  expect(logged).toContainEqual(
    expect.objectContaining({ message: "api key removed", user_id: user.userId, key_id: id, reason: "leaked" }),
  );
});

test("returns the same response for keys that exist, that do not, that were deleted, and for other texts", async () => {
  const user = service.user();
  const [existing, deleted] = [await create(user), await create(user)];
  await user.api.delete(`/v1/api-keys/${deleted.id}`);
  const texts = [existing.key, deleted.key, unknownApiKey(), `svc_${"0".repeat(64)}`, "", user.token, "\ud800", "x\0"];
  const responses = await Promise.all(texts.map((text) => revoke([text])));
  for (const { status, headers, body } of responses) {
    const { "x-request-id": _, date: __, ...rest } = Object.fromEntries(headers);
    const { "x-request-id": ___, date: ____, ...first } = Object.fromEntries(responses[0]?.headers ?? []);
    expect({ status, headers: rest, body }).toEqual({ status: 202, headers: first, body: { data: { received: 1 } } });
  }
  expect(await statusWith(existing.key)).toBe(401);
});

test("does not answer faster for a key that does not exist", async () => {
  const startedAt = performance.now();
  await revoke([unknownApiKey()]);
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(99);
});

/** The budget of the address from which the tests send. */
const ADDRESS = "address:127.0.0.1";

test("text without the checksum of a key causes no read or write, and uses nothing of the limit of its address", async () => {
  const { key } = await create(service.user());
  const usedBefore = await usedBudget(ADDRESS);
  const calls: AwsCall[] = [];
  interceptDynamo(async (call, sendCall) => {
    calls.push(call);
    return sendCall();
  });
  const wrongChecksum = key.replace(/.$/, (last) => (last === "0" ? "1" : "0"));
  const garbage = Array.from({ length: 100 }, (_, index) => [wrongChecksum, "", `svc_${index}`][index % 3]);
  for (let count = 0; count < 20; count++) expect((await revoke(garbage)).status).toBe(202);
  expect(calls).toEqual([]);
  restoreAws();
  expect(await usedBudget(ADDRESS)).toBe(usedBefore);
});

test("an address that has sent 1,000 keys in a minute gets 429, other text excepted, and nothing is revoked", async () => {
  const { key } = await create(service.user());
  await givenUsedBudget(ADDRESS, 999);
  const { status, headers, body } = await revoke([key, unknownApiKey(), "text"]);
  expect({ status, code: body.error.code }).toEqual({ status: 429, code: "rate_limited" });
  const seconds = Number(headers.get("retry-after"));
  expect(seconds).toBeGreaterThanOrEqual(1);
  expect(seconds).toBeLessThanOrEqual(60);
  expect(body.error.message).toBe(
    `This address has sent 1000 API keys in a minute. Nothing was revoked. Try again in ${seconds} s.`,
  );
  expect(await statusWith(key)).toBe(200);
  expect((await revoke(["text"])).status).toBe(202);
  expect((await revoke([key, key, "text"])).status).toBe(202);
  expect(await statusWith(key)).toBe(401);
  await givenUsedBudget(ADDRESS, 0);
});

test("returns 503 when a key or an earlier one cannot be ended, and a repeat ends it", async () => {
  const user = service.user();
  const { id, key } = await create(user);
  const next = await rolledKey(user, id);
  failDynamo(({ command }) => command === "TransactWriteItemsCommand");
  for (const each of [key, next]) expect((await revoke([each])).status).toBe(503);
  restoreAws();
  await revoke([key, next]);
  expect(await Promise.all([key, next].map(statusWith))).toEqual([401, 401]);
});

test("ends an earlier key alone", async () => {
  const user = service.user();
  const { id, key } = await create(user);
  const next = await rolledKey(user, id);
  const last = await rolledKey(user, id);
  await revoke([next]);
  expect(await Promise.all([key, next, last].map(statusWith))).toEqual([200, 401, 200]);
  expect((await user.api.get("/v1/api-keys")).body.data).toMatchObject([{ id }]);
});

test("an earlier key whose overlap is over is not reported to its owner, although its record still exists", async () => {
  const clock = fakeDate();
  const user = service.user();
  const { id, key } = await create(user);
  await rolledKey(user, id);
  clock.advance(601);
  expect((await revoke([key])).status).toBe(202);
  const { data } = (await user.api.get("/v1/audit-events")).body;
  const actions = data.map(({ action }: { action: string }) => action);
  // The clock stands still, so their order is not defined.
  expect(actions.sort()).toEqual(["api_key.created", "api_key.rolled"]);
});

test("ends the current key with its earlier ones", async () => {
  const user = service.user();
  const { id, key } = await create(user);
  const next = await rolledKey(user, id);
  await revoke([next]);
  expect(await Promise.all([key, next].map(statusWith))).toEqual([401, 401]);
  expect((await user.api.get("/v1/api-keys")).body.data).toEqual([]);
});

test("a key that is rolled meanwhile ends, and the new one stays", async () => {
  const user = service.user();
  const { id, key } = await create(user);
  let next = "";
  beforeTransaction(async () => (next = await rolledKey(user, id)));
  await revoke([key]);
  expect(await Promise.all([key, next].map(statusWith))).toEqual([401, 200]);
});

/** API Gateway ends a request after this time. */
const API_TIMEOUT_MS = 29_000;

test("ends a hundred keys of one user, and their limit is free again", async () => {
  const user = service.user();
  const keys = await Promise.all(Array.from({ length: 100 }, () => create(user)));
  const startedAt = performance.now();
  expect((await revoke(keys.map(({ key }) => key))).status).toBe(202);
  expect(performance.now() - startedAt).toBeLessThan(API_TIMEOUT_MS);
  expect((await user.api.get("/v1/api-keys")).body.data).toEqual([]);
  expect((await user.api.post("/v1/api-keys", { name: "again" })).status).toBe(201);
});

test("concurrent calls with the same keys end each once", async () => {
  const user = service.user();
  const keys = await Promise.all(Array.from({ length: 5 }, () => create(user)));
  const credentials = keys.flatMap(({ key }) => [key, key]);
  const statuses = await Promise.all(Array.from({ length: 4 }, async () => (await revoke(credentials)).status));
  expect(statuses).toEqual([202, 202, 202, 202]);
  const [count] = await itemsOf("userApiKeys", { user_id: user.userId });
  expect(count).toMatchObject({ id: "#count", key_count: 0 });
});

test("ignores a credential in the header, whatever it is", async () => {
  const user = service.user();
  const { key } = await create(user);
  const response = await send(`${service.baseUrl}/v1/credentials/revoke`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${randomUUID()}` },
    body: JSON.stringify({ credentials: [key] }),
  });
  expect([response.status, await statusWith(key)]).toEqual([202, 401]);
});

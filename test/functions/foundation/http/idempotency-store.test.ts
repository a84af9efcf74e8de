import { findEarlier, outcomePut, repeatableRequest } from "../../../../functions/foundation/http/idempotency-store.ts";
import { transact } from "../../../../functions/foundation/platform/aws.ts";
import { interceptDynamo, loseNextResponse, restoreAws } from "../../../support/aws-calls.ts";
import { fakeDate } from "../../../support/fake-date.ts";
import { givenUsedBudget } from "../../../support/request-budget.ts";
import { type Response, send, type TestService, useService } from "../../../support/service.ts";

const service = useService();

type User = ReturnType<TestService["user"]>;

const create = ({ token }: Pick<User, "token">, body: object, key?: string, path = "/v1/api-keys"): Promise<Response> =>
  send(`${service.baseUrl}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      ...(key !== undefined && { "idempotency-key": key }),
    },
    body: JSON.stringify(body),
  });

const codeOf = ({ status, body }: Response) => [status, body.error?.code];
const keysOf = async ({ api }: User): Promise<unknown[]> => (await api.get("/v1/api-keys")).body.data;

test("a repeat creates nothing and returns 409 with the id, because the secret is shown once, also beyond the user's budget", async () => {
  const user = service.user();
  const first = await create(user, { name: "ci" }, "run-1");
  await givenUsedBudget(`credentials:${user.userId}`, 120);
  const repeat = await create(user, { name: "ci" }, "run-1");
  expect([codeOf(first), codeOf(repeat)]).toEqual([
    [201, undefined],
    [409, "already_created"],
  ]);
  expect(repeat.body.error.details).toEqual([{ path: "id", message: first.body.data.id }]);
  expect(JSON.stringify(repeat.body)).not.toContain(first.body.data.key.slice(12));
  expect(await keysOf(user)).toHaveLength(1);
});

test("twenty concurrent requests with one key create one resource", async () => {
  const user = service.user();
  const responses = await Promise.all(Array.from({ length: 20 }, () => create(user, { name: "ci" }, "run-1")));
  const created = responses.filter(({ status }) => status === 201);
  expect(created).toHaveLength(1);
  const ids = responses.flatMap(({ body }) => body.data?.id ?? body.error.details[0].message);
  expect(new Set(ids)).toEqual(new Set([created[0]?.body.data.id]));
  expect(await keysOf(user)).toHaveLength(1);
});

test("the same key with another body or for another path is rejected with 422", async () => {
  const user = service.user();
  const project = await service.project(user.userId);
  await create(user, { name: "ci" }, "run-1");
  expect(codeOf(await create(user, { name: "other" }, "run-1"))).toEqual([422, "idempotency_key_reused"]);
  const hook = { url: "https://hooks.example.com/", events: ["deploy.failed"] };
  const path = `/v1/projects/${project}/webhooks`;
  expect(codeOf(await create(user, hook, "run-1", path))).toEqual([422, "idempotency_key_reused"]);
  expect((await user.api.get(path)).body.data).toEqual([]);
});

test("the same key and body for another endpoint or for another project are rejected with 422", async () => {
  const user = service.user();
  const [one, two] = [await service.project(user.userId), await service.project(user.userId)];
  const account = { name: "ci", role: "viewer" };
  const accounts = `/v1/projects/${one}/service-accounts`;
  const { id } = (await create(user, account, "account", accounts)).body.data;
  const codes = [
    await create(user, { name: "ci" }, "key"),
    await create(user, { name: "ci" }, "key", `${accounts}/${id}/api-keys`),
    await create(user, account, "account", `/v1/projects/${two}/service-accounts`),
  ].map(codeOf);
  expect(codes).toEqual([
    [201, undefined],
    [422, "idempotency_key_reused"],
    [422, "idempotency_key_reused"],
  ]);
  expect((await user.api.get(`${accounts}/${id}/api-keys`)).body.data).toEqual([]);
});

test("a repeat may write the ids of the path in upper case", async () => {
  const user = service.user();
  const project = await service.project(user.userId);
  const hook = { url: "https://hooks.example.com/", events: ["deploy.failed"] };
  expect((await create(user, hook, "run-1", `/v1/projects/${project}/webhooks`)).status).toBe(201);
  const repeat = await create(user, hook, "run-1", `/v1/projects/${project.toUpperCase()}/webhooks`);
  expect(codeOf(repeat)).toEqual([409, "already_created"]);
});

test("concurrent requests that create a record without a secret all return the same record", async () => {
  const user = service.user();
  const accounts = `/v1/projects/${await service.project(user.userId)}/service-accounts`;
  const account = { name: "ci", role: "viewer" };
  const responses = await Promise.all(Array.from({ length: 10 }, () => create(user, account, "run-1", accounts)));
  const [listed, ...others] = (await user.api.get(accounts)).body.data;
  expect(others).toEqual([]);
  expect(responses.map(({ status, body }) => ({ status, data: body.data }))).toEqual(
    Array(10).fill({ status: 201, data: listed }),
  );
});

test("spaces and the order of the fields do not make another body", async () => {
  const user = service.user();
  const project = await service.project(user.userId);
  const path = `/v1/projects/${project}/webhooks`;
  const url = "https://hooks.example.com/";
  expect((await create(user, { url, events: ["deploy.failed"] }, "run-1", path)).status).toBe(201);
  const reordered = await create(user, { events: ["deploy.failed"], url }, "run-1", path);
  expect(codeOf(reordered)).toEqual([409, "already_created"]);
});

test("keys of different users are independent, and requests without a key are not repeats", async () => {
  const [one, two] = [service.user(), service.user()];
  const longest = "k".repeat(255);
  const statuses = [await create(one, { name: "ci" }, longest), await create(two, { name: "ci" }, longest)];
  statuses.push(await create(one, { name: "ci" }), await create(one, { name: "ci" }));
  expect(statuses.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
});

test("scoped keys of a user share no Idempotency-Key with each other or with their user", async () => {
  const user = service.user();
  const project = await service.project(user.userId);
  const path = `/v1/projects/${project}/webhooks`;
  const scoped = { name: "ci", permissions: ["webhooks:write"], project_ids: [project] };
  const keyOf = async (body: object) => ({ token: (await create(user, body)).body.data.key as string });
  const [one, two, whole] = [await keyOf(scoped), await keyOf(scoped), await keyOf({ name: "whole" })];
  const hook = { url: "https://hooks.example.com/", events: ["deploy.failed"] };
  const codes = [];
  for (const caller of [user, whole, one, one, two]) codes.push(codeOf(await create(caller, hook, "run-1", path)));
  const [first, repeat] = [
    [201, undefined],
    [409, "already_created"],
  ];
  expect(codes).toEqual([first, repeat, first, repeat, first]);
});

test("the header is ignored by an endpoint that creates nothing", async () => {
  const user = service.user();
  const { id } = (await create(user, { name: "ci" }, "run-1")).body.data;
  for (let rolls = 0; rolls < 2; rolls++) {
    expect((await create(user, {}, "run-1", `/v1/api-keys/${id}/roll`)).status).toBe(200);
  }
});

test("a request that failed can be repeated with the same key", async () => {
  const user = service.user();
  interceptDynamo(({ command }, sendCall) => {
    if (!command.startsWith("TransactWrite")) return sendCall();
    throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
  });
  expect((await create(user, { name: "ci" }, "run-1")).status).toBe(503);
  restoreAws();
  expect((await create(user, { name: "ci" }, "run-1")).status).toBe(201);
});

test("a write that the SDK sends again, because its response was lost, is no repeat", async () => {
  const sent = loseNextResponse("TransactWriteItemsCommand");
  expect((await create(service.user(), { name: "ci" }, "run-1")).status).toBe(201);
  expect(sent.requests).toBe(2);
});

test("a repeat at the limit returns what it created, not that the limit is reached", async () => {
  const user = service.user();
  const fill = Array.from({ length: 99 }, (_, index) => create(user, { name: `key ${index}` }));
  await Promise.all(fill);
  const responses = await Promise.all(Array.from({ length: 5 }, () => create(user, { name: "last" }, "run-1")));
  const codes = responses.map(({ status, body }) => body.error?.code ?? status).sort();
  expect(codes).toEqual([201, ...Array(4).fill("already_created")]);
});

test.each([
  ["empty", ""],
  ["256 characters", "x".repeat(256)],
  ["a space", "a b"],
  ["a character that is not ASCII", "caf\u00e9"],
])("a key that is %s is rejected", async (_, key) => {
  const { status, body } = await create(service.user(), { name: "ci" }, key);
  expect({ status, path: body.error.details?.[0].path }).toEqual({ status: 400, path: "Idempotency-Key" });
});

describe("an outcome", () => {
  const request = (userId: string) =>
    repeatableRequest("run-1", { userId, route: "POST /v1/things", input: { name: "a" } }) as NonNullable<
      ReturnType<typeof repeatableRequest>
    >;

  test("without a secret is returned to a repeat", async () => {
    const { userId } = service.user();
    const data = { id: "thing-1", name: "a" };
    await transact({ outcome: outcomePut(request(userId), { created_id: "thing-1", data }, new Date()) });
    expect(await findEarlier(request(userId), new Date())).toEqual(data);
  });

  test("ends after 24 hours, also while DynamoDB has not deleted it", async () => {
    const user = service.user();
    const clock = fakeDate();
    const now = () => new Date();
    const put = () => transact({ outcome: outcomePut(request(user.userId), { created_id: "thing-1" }, now()) });
    await put();
    clock.advance(24 * 3600 - 1);
    await expect(findEarlier(request(user.userId), now())).rejects.toMatchObject({ code: "already_created" });
    await expect(put()).rejects.toMatchObject({ items: ["outcome"] });
    clock.advance(1);
    expect(await findEarlier(request(user.userId), now())).toBeUndefined();
    await put();
  });
});

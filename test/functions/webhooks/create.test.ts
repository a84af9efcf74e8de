import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import { type TableKey, tables } from "../../../functions/manifest/tables.ts";
import { dynamo } from "../../../functions/platform/aws.ts";
import { tableName } from "../../../functions/platform/env.ts";
import { useService } from "../../support/service.ts";

const service = useService();
afterEach(() => {
  process.env.WEBHOOK_ALLOW_CIDRS = "127.0.0.0/8,::1/128";
});

const url = "https://example.com/hook";
const events = ["deploy.failed"];

async function projectOfAdmin() {
  const { api, userId } = service.user();
  const project = await service.project(userId);
  const path = `/v1/projects/${project}/webhooks`;
  return { api, project, path, create: (body: unknown = { url, events }) => api.post(path, body) };
}

test("creates a webhook that is listed at once, and returns its secret", async () => {
  const { api, project, path, create } = await projectOfAdmin();
  const { status, headers, body } = await create({ url, events: ["deploy.failed", "deploy.started"] });
  expect(status).toBe(201);
  expect(Object.keys(body)).toEqual(["data"]);
  const { id, secret, created_at, ...rest } = body.data;
  expect(rest).toEqual({ project_id: project, url, events: ["deploy.failed", "deploy.started"] });
  expect(id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  expect(secret).toMatch(/^whsec_[0-9a-f]{64}$/);
  expect(new Date(created_at).toISOString()).toBe(created_at);
  expect(Math.abs(Date.parse(created_at) - Date.now())).toBeLessThan(5_000);
  expect(headers.get("cache-control")).toBe("no-store");
  expect((await api.get(path)).body.data).toMatchObject([{ id, created_at, ...rest }]);
});

test("creates a webhook with a name, which its responses and the audit log have", async () => {
  const { api, project, path, create } = await projectOfAdmin();
  const name = "Chat of the shop ☕";
  const { status, body } = await create({ url, events, name });
  expect({ status, name: body.data.name }).toEqual({ status: 201, name });
  expect((await api.get(path)).body.data).toMatchObject([{ name }]);
  expect((await api.get(`${path}/${body.data.id}`)).body.data).toMatchObject({ name });
  const [entry] = (await api.get(`/v1/projects/${project}/audit-events`)).body.data;
  expect(entry).toMatchObject({ action: "webhook.created", details: { name } });
});

test.each([
  ["null", null, "must be a string"],
  ["empty", "", "must not be blank"],
  ["blank", " \u200b", "must not be blank"],
  ["longer than 100 characters", "é".repeat(101), "must be at most 100 characters long"],
  ["with a line break", "a\nb", "must not contain control characters"],
])("rejects a name that is %s with 400 validation_error", async (_, name, message) => {
  const { create } = await projectOfAdmin();
  const { status, body } = await create({ url, events, name });
  expect({ status, ...body.error }).toMatchObject({
    ...{ status: 400, code: "validation_error", details: [{ path: "name", message }] },
  });
});

const filter = { environment: ["production"], branch: ["main", "release/*"] };

test("creates a webhook with a filter, which its responses and the audit log have", async () => {
  const { api, project, path, create } = await projectOfAdmin();
  const { status, body } = await create({ url, events, filter });
  expect({ status, filter: body.data.filter }).toEqual({ status: 201, filter });
  expect((await api.get(path)).body.data).toMatchObject([{ filter }]);
  expect((await api.get(`${path}/${body.data.id}`)).body.data).toMatchObject({ filter });
  expect((await api.post(`${path}/${body.data.id}/rotate-secret`, {})).body.data).toMatchObject({ filter });
  const { data: entries } = (await api.get(`/v1/projects/${project}/audit-events`)).body;
  expect(entries).toContainEqual(
    expect.objectContaining({ action: "webhook.created", details: expect.objectContaining({ filter }) }),
  );
});

test("creates the same webhook with the filter null as without one: no response has the field", async () => {
  const { api, project, path, create } = await projectOfAdmin();
  const [without, withNull] = [await create(), await create({ url, events, filter: null })];
  expect(Object.keys(withNull.body.data)).toEqual(Object.keys(without.body.data));
  for (const where of [path, `${path}/${withNull.body.data.id}`, `/v1/projects/${project}/audit-events`]) {
    expect(JSON.stringify((await api.get(where)).body)).not.toContain("filter");
  }
});

const VALUES = Array.from({ length: 20 }, (_, index) => `value ${index}`);

test.each<[string, object]>([
  ["five fields of twenty values", Object.fromEntries(["a", "b", "c", "d", "e"].map((name) => [name, VALUES]))],
  ["a value of 255 characters", { branch: ["é".repeat(255)] }],
  ["a name of 100 characters", { ["é".repeat(100)]: ["x"] }],
  ["a name that objects inherit", { toString: ["x"] }],
  ["* alone", { branch: ["*"] }],
])("accepts a filter with %s", async (_, accepted) => {
  const { create } = await projectOfAdmin();
  const { status, body } = await create({ url, events, filter: accepted });
  expect({ status, filter: body.data?.filter }).toEqual({ status: 201, filter: accepted });
});

test("removes duplicate values of a filter", async () => {
  const { create } = await projectOfAdmin();
  const { body } = await create({ url, events, filter: { branch: ["main", "next", "main"] } });
  expect(body.data.filter).toEqual({ branch: ["main", "next"] });
});

const AN_OBJECT = "must be an object with a list of values for each field";
const NAMES =
  "must have fields with names of 1 to 100 characters, without control characters, other than __proto__ and constructor";

test.each<[string, unknown, string, string]>([
  ["a text", "production", "filter", AN_OBJECT],
  ["a list", [["production"]], "filter", AN_OBJECT],
  ["without fields", {}, "filter", "must have 1 to 5 fields, or be null"],
  [
    "of six fields",
    { a: ["1"], b: ["1"], c: ["1"], d: ["1"], e: ["1"], f: ["1"] },
    "filter",
    "must have 1 to 5 fields, or be null",
  ],
  ["with a field without a name", { "": ["x"] }, "filter", NAMES],
  ["with a name of 101 characters", { ["é".repeat(101)]: ["x"] }, "filter", NAMES],
  ["with a line break in a name", { "a\nb": ["x"] }, "filter", NAMES],
  ["with the field constructor", { constructor: ["x"] }, "filter", NAMES],
  ["with the field __proto__", JSON.parse('{"a":["x"],"__proto__":["x"]}'), "filter", NAMES],
  ["with a text instead of a list", { branch: "main" }, "filter.branch", "must be an array"],
  ["with an empty list", { branch: [] }, "filter.branch", "must not be empty"],
  ["with 21 values", { branch: [...VALUES, "21"] }, "filter.branch", "must have at most 20 entries"],
  ["with a number", { pr: [42] }, "filter.pr.0", "must be a string"],
  ["with an empty value", { branch: ["main", ""] }, "filter.branch.1", "must have 1 to 255 characters"],
  ["with a value of 256 characters", { branch: ["é".repeat(256)] }, "filter.branch.0", "must have 1 to 255 characters"],
  ["with a control character", { branch: ["ma\nin"] }, "filter.branch.0", "must not contain control characters"],
  ["with * at the beginning", { branch: ["*main"] }, "filter.branch.0", "must have * only at its end"],
  ["with two *", { branch: ["release/**"] }, "filter.branch.0", "must have * only at its end"],
  [
    "of 4,097 bytes",
    { a: VALUES.map((text) => text.padEnd(201, "x")).with(0, "x".repeat(211)) },
    "filter",
    "must have at most 4096 bytes as JSON",
  ],
])("rejects a filter %s with 400 validation_error", async (_, rejected, at, message) => {
  const { create } = await projectOfAdmin();
  const { status, body } = await create({ url, events, filter: rejected });
  expect({ status, ...body.error }).toMatchObject({
    ...{ status: 400, code: "validation_error", details: [{ path: at, message }] },
  });
});

test("accepts a filter of 4,096 bytes", async () => {
  const { create } = await projectOfAdmin();
  const filter = { a: VALUES.map((text) => text.padEnd(201, "x")).with(0, "x".repeat(210)) };
  expect(Buffer.byteLength(JSON.stringify(filter))).toBe(4096);
  expect((await create({ url, events, filter })).status).toBe(201);
});

test("stores the secret only in the table of secrets", async () => {
  const { create } = await projectOfAdmin();
  const { secret } = (await create()).body.data;
  const found: string[] = [];
  for (const key of Object.keys(tables) as TableKey[]) {
    const { Items, LastEvaluatedKey } = await dynamo().send(new ScanCommand({ TableName: tableName(key) }));
    expect(LastEvaluatedKey).toBeUndefined();
    if (JSON.stringify(Items).includes(secret.slice("whsec_".length))) found.push(key);
  }
  expect(found).toEqual(["webhookSecrets"]);
});

test("creates a different secret for each webhook, also for the same URL", async () => {
  const { create } = await projectOfAdmin();
  const created = await Promise.all([1, 2, 3].map(() => create()));
  expect(new Set(created.map(({ body }) => body.data.secret)).size).toBe(3);
  expect(new Set(created.map(({ body }) => body.data.id)).size).toBe(3);
});

test("removes duplicate events", async () => {
  const { create } = await projectOfAdmin();
  const { body } = await create({ url, events: ["deploy.failed", "deploy.failed"] });
  expect(body.data.events).toEqual(["deploy.failed"]);
});

test.each([
  ["HTTPS://Example.com:443/a/../b?x=%7e#part", "https://example.com/b?x=%7e#part"],
  ["https://example.com\\@8.8.8.8/", "https://example.com/@8.8.8.8/"],
  ["https://0x8.0x8.2056/hook", "https://8.8.8.8/hook"],
  ["https://example.com/hook", "https://example.com/hook"],
  ["https://example.com", "https://example.com"],
])("stores and returns %s as it is requested: %s", async (sent, expected) => {
  const { create } = await projectOfAdmin();
  expect((await create({ url: sent, events })).body.data.url).toBe(expected);
});

test("converts the id of the project in the path to lower case", async () => {
  const { api, project, path } = await projectOfAdmin();
  const { body } = await api.post(`/v1/projects/${project.toUpperCase()}/webhooks`, { url, events });
  expect(body.data.project_id).toBe(project);
  expect((await api.get(path)).body.data).toHaveLength(1);
});

test("returns 409 after 20 webhooks of a project, with 40 concurrent requests", async () => {
  const { api, userId } = service.user();
  const [full, other] = [await service.project(userId), await service.project(userId)];
  const create = (project: string) => api.post(`/v1/projects/${project}/webhooks`, { url, events });
  const responses = await Promise.all(Array.from({ length: 40 }, () => create(full)));
  const created = responses.filter(({ status }) => status === 201);
  expect(created).toHaveLength(20);
  for (const { status, body } of responses.filter((response) => !created.includes(response))) {
    expect({ status, code: body.error.code }).toEqual({ status: 409, code: "webhook_limit_reached" });
  }
  const listed = (await api.get(`/v1/projects/${full}/webhooks`)).body.data.map(({ id }: { id: string }) => id);
  expect(listed.toSorted()).toEqual(created.map(({ body }) => body.data.id).toSorted());
  expect((await create(other)).status).toBe(201);
});

test("returns 400 with all invalid fields and creates nothing", async () => {
  const { api, path, create } = await projectOfAdmin();
  const { status, body } = await create({ url: "https://example.com:6379", events: [], mode: "off" });
  expect({ status, code: body.error.code }).toEqual({ status: 400, code: "validation_error" });
  expect(body.error.details.map(({ path }: { path: string }) => path)).toEqual(["url", "events", "mode"]);
  expect((await api.get(path)).body.data).toEqual([]);
});

test.each([
  ["127.0.0.0/8,::1/128", 201],
  [" 10.0.0.0/8 , 127.0.0.1/32 ", 201],
  ["10.0.0.0/8", 400],
  ["", 400],
  [undefined, 400],
])("with WEBHOOK_ALLOW_CIDRS=%j, returns %i for a receiver on this machine", async (cidrs, status) => {
  const { create } = await projectOfAdmin();
  if (cidrs === undefined) delete process.env.WEBHOOK_ALLOW_CIDRS;
  else process.env.WEBHOOK_ALLOW_CIDRS = cidrs;
  expect((await create({ url: "http://127.0.0.1:8080/hook", events })).status).toBe(status);
  expect((await create()).status).toBe(201);
});

test("returns 500 without details when WEBHOOK_ALLOW_CIDRS is invalid", async () => {
  const { create } = await projectOfAdmin();
  process.env.WEBHOOK_ALLOW_CIDRS = "127.0.0.0";
  const { status, body } = await create();
  expect({ status, code: body.error.code }).toEqual({ status: 500, code: "internal_error" });
  expect(JSON.stringify(body)).not.toMatch(/127\.|CIDR/);
});

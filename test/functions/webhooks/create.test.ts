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

import { createHash } from "node:crypto";
import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import { type TableKey, tables } from "../../../functions/manifest/tables.ts";
import { dynamo } from "../../../functions/platform/aws.ts";
import { tableName } from "../../../functions/platform/env.ts";
import { useService } from "../../support/service.ts";

const service = useService();

/** Returns the content of all tables as text. */
async function storedText(): Promise<string> {
  const scans = Object.keys(tables).map((key) =>
    dynamo().send(new ScanCommand({ TableName: tableName(key as TableKey), ConsistentRead: true })),
  );
  const pages = await Promise.all(scans);
  expect(pages.map(({ LastEvaluatedKey }) => LastEvaluatedKey)).toEqual(pages.map(() => undefined));
  return JSON.stringify(pages.map(({ Items }) => Items));
}

test("creates a key that is accepted and listed at once", async () => {
  const { api } = service.user();
  const { status, headers, body } = await api.post("/v1/api-keys", { name: "ci" });
  expect(status).toBe(201);
  expect(Object.keys(body)).toEqual(["data"]);
  expect(Object.keys(body.data).sort()).toEqual(["created_at", "id", "key", "key_prefix", "name"]);
  expect(body.data).toMatchObject({ name: "ci", key_prefix: body.data.key.slice(0, 12) });
  expect(body.data.key).toMatch(/^svc_[0-9a-f]{64}$/);
  expect(body.data.id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  expect(new Date(body.data.created_at).toISOString()).toBe(body.data.created_at);
  expect(Math.abs(Date.parse(body.data.created_at) - Date.now())).toBeLessThan(5_000);
  expect(headers.get("cache-control")).toBe("no-store");
  expect((await service.as(body.data.key).get("/v1/projects")).status).toBe(200);
  expect((await api.get("/v1/api-keys")).body.data).toHaveLength(1);
});

test("stores the SHA-256 hash of a key, not the key", async () => {
  const { key } = (await service.user().api.post("/v1/api-keys", { name: "ci" })).body.data;
  await service.as(key).get("/v1/projects");
  const stored = await storedText();
  expect(stored).toContain(createHash("sha256").update(key).digest("hex"));
  // No table contains 16 consecutive characters of the key.
  for (let start = 0; start + 16 <= key.length; start++) expect(stored).not.toContain(key.slice(start, start + 16));
});

test("returns the key once: no later response contains it", async () => {
  const { api } = service.user();
  const { id, key } = (await api.post("/v1/api-keys", { name: "ci" })).body.data;
  const responses = [
    await api.get("/v1/api-keys"),
    await api.get(`/v1/api-keys/${id}`),
    await service.as(key).get("/v1/api-keys"),
    await service.as(key).post("/v1/api-keys", { name: "other" }),
    await api.delete(`/v1/api-keys/${id}`),
    await service.as(key).get("/v1/api-keys"),
  ];
  expect(responses.map(({ status }) => status)).toEqual([200, 405, 200, 403, 204, 401]);
  expect(JSON.stringify(responses.map(({ body }) => body ?? null))).not.toContain(key.slice(12));
});

test("creates two keys for two requests with the same name", async () => {
  const { api } = service.user();
  const [first, second] = await Promise.all([1, 2].map(() => api.post("/v1/api-keys", { name: "ci" })));
  expect(first?.body.data.key).not.toBe(second?.body.data.key);
  expect(first?.body.data.id).not.toBe(second?.body.data.id);
  expect((await api.get("/v1/api-keys")).body.data).toHaveLength(2);
});

test("creates a key with the permissions of its creator only", async () => {
  const creator = service.user();
  const own = await service.project(creator.userId);
  const seen = await service.project(creator.userId, { role: "viewer" });
  const foreign = await service.project(service.user().userId);
  const key = service.as((await creator.api.post("/v1/api-keys", { name: "ci" })).body.data.key);
  const webhook = { url: "https://example.com/hook", events: ["deploy.failed"] };
  const statuses = [own, seen, foreign].map(async (project) => [
    (await key.get(`/v1/projects/${project}/webhooks`)).status,
    (await key.post(`/v1/projects/${project}/webhooks`, webhook)).status,
  ]);
  expect(await Promise.all(statuses)).toEqual([
    [200, 201],
    [200, 403],
    [404, 404],
  ]);
  expect((await key.get("/v1/projects")).body).toEqual((await creator.api.get("/v1/projects")).body);
});

test("creates a key that loses a permission when its creator loses it", async () => {
  const creator = service.user();
  const project = await service.project(creator.userId);
  const key = service.as((await creator.api.post("/v1/api-keys", { name: "ci" })).body.data.key);
  await service.project(creator.userId, { projectId: project, role: "viewer" });
  const webhook = { url: "https://example.com/hook", events: ["deploy.failed"] };
  expect((await key.post(`/v1/projects/${project}/webhooks`, webhook)).status).toBe(403);
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

test("returns 400 with the rule that the name violates", async () => {
  const { api } = service.user();
  const { status, body } = await api.post("/v1/api-keys", { name: "\ud800" });
  expect(status).toBe(400);
  expect(body.error).toMatchObject({
    code: "validation_error",
    details: [{ path: "name", message: "must be valid Unicode" }],
  });
  expect((await api.get("/v1/api-keys")).body.data).toEqual([]);
});

test("returns the name unchanged", async () => {
  const { api } = service.user();
  const name = '  \u{1F680} Ключ "ci" \\ <b>  ';
  expect((await api.post("/v1/api-keys", { name })).body.data.name).toBe(name);
  expect((await api.get("/v1/api-keys")).body.data[0].name).toBe(name);
});

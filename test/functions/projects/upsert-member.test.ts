import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { handler as upsertMember } from "../../../functions/projects/upsert-member.ts";
import { loseNextResponse, restoreAws } from "../../support/aws-calls.ts";
import { useService } from "../../support/service.ts";

const service = useService();
afterEach(restoreAws);

const webhook = { url: "https://example.com/hook", events: ["deploy.failed"] };

test("adds a user to a project, by default as an admin", async () => {
  const { api, userId } = service.user();
  const project_id = randomUUID();
  const project = await upsertMember({ user_id: userId, project_id, name: "Shop" });
  expect(project).toEqual({ id: project_id, name: "Shop", role: "admin", created_at: expect.any(String) });
  expect((await api.get("/v1/projects")).body.data).toEqual([project]);
  expect((await api.post(`/v1/projects/${project_id}/webhooks`, webhook)).status).toBe(201);
});

test("changes nothing when it is called again", async () => {
  const { api, userId } = service.user();
  const input = { user_id: userId, project_id: randomUUID(), name: "Shop", role: "viewer" };
  const first = await upsertMember(input);
  await sleep(5);
  expect(await upsertMember(input)).toEqual(first);
  expect((await api.get("/v1/projects")).body.data).toEqual([first]);
});

test("returns the project when the response of the table is lost and the SDK sends the write again", async () => {
  const { api, userId } = service.user();
  const sent = loseNextResponse("TransactWriteItemsCommand");
  const project = await upsertMember({ user_id: userId, project_id: randomUUID(), name: "Shop" });
  expect(sent.requests).toBe(2);
  expect((await api.get("/v1/projects")).body.data).toEqual([project]);
});

test("changes name and role, and keeps the time of joining", async () => {
  const { api, userId } = service.user();
  const input = { user_id: userId, project_id: randomUUID(), name: "Shop", role: "viewer" };
  const { created_at } = await upsertMember(input);
  await sleep(5);
  const changed = { id: input.project_id, name: "Store", role: "admin", created_at };
  expect(await upsertMember({ ...input, name: "Store", role: "admin" })).toEqual(changed);
  expect((await api.get("/v1/projects")).body.data).toEqual([changed]);
});

test("applies a new role from the next request on, for JWTs and API keys", async () => {
  const { api, userId } = service.user();
  const { key } = (await api.post("/v1/api-keys", { name: "ci" })).body.data;
  const project_id = randomUUID();
  const create = async (caller: typeof api) =>
    (await caller.post(`/v1/projects/${project_id}/webhooks`, webhook)).status;
  const statuses = async () => [await create(api), await create(service.as(key))];
  expect(await statuses()).toEqual([404, 404]);
  for (const [role, status] of [
    ["admin", 201],
    ["viewer", 403],
    ["admin", 201],
    ["viewer", 403],
  ] as const) {
    await upsertMember({ user_id: userId, project_id, name: "Shop", role });
    expect(await statuses()).toEqual([status, status]);
  }
});

test("sets the role of one member only", async () => {
  const [one, two] = [service.user(), service.user()];
  const project_id = await service.project(one.userId);
  await upsertMember({ user_id: two.userId, project_id, name: "Project", role: "viewer" });
  const path = `/v1/projects/${project_id}/webhooks`;
  expect((await two.api.post(path, webhook)).status).toBe(403);
  expect((await one.api.post(path, webhook)).status).toBe(201);
});

test("converts the id of the project to lower case", async () => {
  const { api, userId } = service.user();
  const project_id = randomUUID();
  expect((await upsertMember({ user_id: userId, project_id: project_id.toUpperCase(), name: "Shop" })).id).toBe(
    project_id,
  );
  await upsertMember({ user_id: userId, project_id, name: "Shop" });
  expect((await api.get("/v1/projects")).body.data).toHaveLength(1);
  expect((await api.get(`/v1/projects/${project_id.toUpperCase()}/webhooks`)).status).toBe(200);
});

const valid = { user_id: "user-1", project_id: randomUUID(), name: "Shop", role: "admin" };

test.each([
  ["undefined", undefined, ""],
  ["an array", [valid], ""],
  ["no user", { ...valid, user_id: undefined }, "user_id"],
  ["an empty user", { ...valid, user_id: "" }, "user_id"],
  ["a user of 256 characters", { ...valid, user_id: "u".repeat(256) }, "user_id"],
  ["a user that is not valid Unicode", { ...valid, user_id: "\ud800" }, "user_id"],
  ["a service account", { ...valid, user_id: "service-account:1" }, "user_id"],
  ["a workflow", { ...valid, user_id: "workflow:1" }, "user_id"],
  ["no project", { ...valid, project_id: undefined }, "project_id"],
  ["a project that is not a UUID", { ...valid, project_id: "shop" }, "project_id"],
  ["a project that is an array", { ...valid, project_id: [valid.project_id] }, "project_id"],
  ["no name", { ...valid, name: undefined }, "name"],
  ["a blank name", { ...valid, name: " " }, "name"],
  ["an unknown role", { ...valid, role: "owner" }, "role"],
  ["a role in upper case", { ...valid, role: "ADMIN" }, "role"],
  ["the role null", { ...valid, role: null }, "role"],
  ["an unknown field", { ...valid, admin: true }, "admin"],
])("throws validation_error for %s with the path of the field", async (_title, input, path) => {
  await expect(upsertMember(input)).rejects.toMatchObject({
    code: "validation_error",
    details: [{ path, message: expect.any(String) }],
  });
});

import { randomUUID } from "node:crypto";
import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../../../functions/platform/aws.ts";
import { tableName } from "../../../functions/platform/env.ts";
import { handler as removeMember } from "../../../functions/projects/remove-member.ts";
import { loseNextResponse, restoreAws } from "../../support/aws-calls.ts";
import { newScenario } from "../../support/scenario.ts";
import { useService } from "../../support/service.ts";

const service = useService();
afterEach(restoreAws);

test("removes a member, whose next request is not found, with a JWT and with an API key", async () => {
  const { api, userId } = service.user();
  const [project_id, other] = [await service.project(userId), await service.project(userId)];
  const { key } = (await api.post("/v1/api-keys", { name: "ci" })).body.data;
  const statuses = (project: string) =>
    Promise.all(
      [api, service.as(key)].map(async (each) => (await each.get(`/v1/projects/${project}/webhooks`)).status),
    );
  expect(await statuses(project_id)).toEqual([200, 200]);
  expect(await removeMember({ user_id: userId, project_id })).toEqual({ removed: true });
  expect(await statuses(project_id)).toEqual([404, 404]);
  expect(await statuses(other)).toEqual([200, 200]);
  expect((await api.get("/v1/projects")).body.data).toMatchObject([{ id: other }]);
});

test("answers whether there was a membership, and can be repeated", async () => {
  const { userId } = service.user();
  const project_id = await service.project(userId);
  const upperCase = { user_id: userId, project_id: project_id.toUpperCase() };
  expect(await removeMember(upperCase)).toEqual({ removed: true });
  expect(await removeMember({ user_id: userId, project_id })).toEqual({ removed: false });
  expect(await removeMember({ user_id: "unknown", project_id: randomUUID() })).toEqual({ removed: false });
});

test("the version is kept: for 60 days, or if the member is added again", async () => {
  const { userId } = service.user();
  const project_id = await service.project(userId);
  const Key = { shard: project_id.slice(-1), member: `${project_id}#${userId}` };
  const get = new GetCommand({ TableName: tableName("memberVersions"), Key });
  const stored = async () => (await dynamo().send(get)).Item;
  await removeMember({ user_id: userId, project_id });
  const { version = "", ...removed } = (await stored()) ?? {};
  const delete_after = Math.ceil(Date.parse(version) / 1000) + 60 * 86_400;
  expect(removed).toEqual({ ...Key, removed: true, delete_after });
  await service.project(userId, { projectId: project_id });
  expect(await stored()).toEqual({ ...Key, version: expect.any(String) });
});

test("a write that the SDK sends again, because its response was lost, still answers true", async () => {
  const { userId } = service.user();
  const project_id = await service.project(userId);
  const sent = loseNextResponse("TransactWriteItemsCommand");
  expect(await removeMember({ user_id: userId, project_id })).toEqual({ removed: true });
  expect(sent.requests).toBe(2);
});

test("removes one member only, and leaves the webhooks of the project", async () => {
  const { api, viewer, projectId, path } = await newScenario(service);
  const { userId } = service.user();
  await service.project(userId, { projectId });
  await removeMember({ user_id: userId, project_id: projectId });
  for (const member of [api, viewer]) expect((await member.get(path)).status).toBe(200);
});

test("a removed member can be added again, with another role", async () => {
  const { api, userId } = service.user();
  const projectId = await service.project(userId);
  await removeMember({ user_id: userId, project_id: projectId });
  await service.project(userId, { projectId, role: "viewer" });
  expect((await api.get("/v1/projects")).body.data).toMatchObject([{ id: projectId, role: "viewer" }]);
});

test.each([
  ["undefined", undefined, ""],
  ["no user", { project_id: randomUUID() }, "user_id"],
  ["an empty user", { user_id: "", project_id: randomUUID() }, "user_id"],
  ["no project", { user_id: "u" }, "project_id"],
  ["a project that is not a UUID", { user_id: "u", project_id: "7" }, "project_id"],
  ["an unknown field", { user_id: "u", project_id: randomUUID(), role: "admin" }, "role"],
])("throws validation_error for %s with the path of the field", async (_title, input, path) => {
  await expect(removeMember(input)).rejects.toMatchObject({
    code: "validation_error",
    details: [{ path, message: expect.any(String) }],
  });
});

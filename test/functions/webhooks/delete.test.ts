import { randomUUID } from "node:crypto";
import { GetCommand, QueryCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../../../functions/platform/aws.ts";
import { tableName } from "../../../functions/platform/env.ts";
import { findSecrets } from "../../support/deliveries.ts";
import { startTestService, type TestService } from "../../support/service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

const webhook = { url: "https://example.com/hook", events: ["deploy.failed"] };

async function projectOfAdmin(user = service.user()) {
  const { api } = user;
  const project = await service.project(user.userId);
  const path = `/v1/projects/${project}/webhooks`;
  return {
    user,
    project,
    path,
    create: async (): Promise<string> => (await api.post(path, webhook)).body.data.id,
    remove: (id: string) => api.delete(`${path}/${id}`),
    count: async () => (await api.get(path)).body.data.length,
  };
}

test("answers 204 with an empty body and leaves neither the webhook nor its secret behind", async () => {
  const { project, create, remove } = await projectOfAdmin();
  const id = await create();
  expect(await findSecrets(id)).toMatchObject({ current: expect.stringMatching(/^whsec_/) });
  const { status, headers, body } = await remove(id);
  expect({ status, body }).toEqual({ status: 204, body: undefined });
  expect(headers.has("content-type")).toBe(false);
  expect(await findSecrets(id)).toBeUndefined();
  const { Items } = await dynamo().send(
    new QueryCommand({
      TableName: tableName("webhooks"),
      KeyConditionExpression: "project_id = :project",
      ExpressionAttributeValues: { ":project": project },
    }),
  );
  expect(Items).toEqual([{ project_id: project, id: "#count", webhook_count: 0 }]);
});

test("leaves the project's other webhooks and their secrets alone", async () => {
  const { user, path, create, remove } = await projectOfAdmin();
  const [gone, kept] = [await create(), await create()];
  await remove(gone);
  expect((await user.api.get(path)).body.data).toMatchObject([{ id: kept }]);
  expect(await findSecrets(kept)).toBeDefined();
});

test("may be asked with an API key of an admin", async () => {
  const { user, path, create, count } = await projectOfAdmin();
  const { key } = (await user.api.post("/v1/api-keys", { name: "ci" })).body.data;
  expect((await service.as(key).delete(`${path}/${await create()}`)).status).toBe(204);
  expect(await count()).toBe(0);
});

test("takes the ids in upper case too", async () => {
  const { user, project, create, count } = await projectOfAdmin();
  const id = await create();
  const { status } = await user.api.delete(`/v1/projects/${project.toUpperCase()}/webhooks/${id.toUpperCase()}`);
  expect(status).toBe(204);
  expect(await count()).toBe(0);
});

test("finds a webhook under its own project alone, even for an admin of both, and leaves it alone", async () => {
  const here = await projectOfAdmin();
  const there = await projectOfAdmin(here.user);
  const [id, deleted] = [await there.create(), await here.create()];
  await here.remove(deleted);
  const answers = await Promise.all([id, deleted, randomUUID()].map((each) => here.remove(each)));
  for (const { status, body } of answers) {
    expect({ status, code: body.error.code }).toEqual({ status: 404, code: "not_found" });
    expect(body.error.message).toBe(answers[0]?.body.error.message);
  }
  expect(await there.count()).toBe(1);
  expect(await findSecrets(id)).toBeDefined();
});

test("is refused to a viewer, who may see the webhook", async () => {
  const { project, path, create, count } = await projectOfAdmin();
  const id = await create();
  const viewer = service.user();
  await service.project(viewer.userId, { projectId: project, role: "viewer" });
  const { status, body } = await viewer.api.delete(`${path}/${id}`);
  expect({ status, code: body.error.code }).toEqual({ status: 403, code: "forbidden" });
  expect(await count()).toBe(1);
});

test("of one webhook by many at once succeeds for one of them", async () => {
  const { create, remove } = await projectOfAdmin();
  for (let round = 0; round < 5; round++) {
    const id = await create();
    const statuses = await Promise.all(Array.from({ length: 10 }, async () => (await remove(id)).status));
    expect(statuses.toSorted()).toEqual([204, ...Array.from({ length: 9 }, () => 404)]);
  }
});

test("makes room under the cap, once per webhook", async () => {
  const { user, path, project, create, remove, count } = await projectOfAdmin();
  const ids = await Promise.all(Array.from({ length: 20 }, create));
  const post = async () => (await user.api.post(path, webhook)).status;
  expect(await post()).toBe(409);
  const [first, second] = ids.map(String);
  // Deletes that find nothing give no room.
  await Promise.all([first, first, first, second, second, randomUUID()].map((id) => remove(String(id))));
  const again = await Promise.all(Array.from({ length: 5 }, post));
  expect(again.toSorted()).toEqual([201, 201, 409, 409, 409]);
  expect(await count()).toBe(20);
  const counter = { TableName: tableName("webhooks"), Key: { project_id: project, id: "#count" } };
  expect((await dynamo().send(new GetCommand(counter))).Item).toMatchObject({ webhook_count: 20 });
});

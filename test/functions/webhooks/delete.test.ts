import { randomUUID } from "node:crypto";
import { findSecrets } from "../../support/deliveries.ts";
import { useService } from "../../support/service.ts";
import { itemsOf } from "../../support/stored-items.ts";

const service = useService();

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

test("returns 204 with an empty body and removes the webhook and its secret", async () => {
  const { project, create, remove } = await projectOfAdmin();
  const id = await create();
  expect(await findSecrets(id)).toMatchObject({ current: expect.stringMatching(/^whsec_/) });
  const { status, headers, body } = await remove(id);
  expect({ status, body }).toEqual({ status: 204, body: undefined });
  expect(headers.has("content-type")).toBe(false);
  expect(await findSecrets(id)).toBeUndefined();
  const items = await itemsOf("webhooks", { project_id: project });
  expect(items).toEqual([{ project_id: project, id: "#count", webhook_count: 0 }]);
});

test("keeps the other webhooks of the project and their secrets", async () => {
  const { user, path, create, remove } = await projectOfAdmin();
  const [deleted, kept] = [await create(), await create()];
  await remove(deleted);
  expect((await user.api.get(path)).body.data).toMatchObject([{ id: kept }]);
  expect(await findSecrets(kept)).toBeDefined();
});

test("accepts the ids in upper case", async () => {
  const { user, project, create, count } = await projectOfAdmin();
  const id = await create();
  const { status } = await user.api.delete(`/v1/projects/${project.toUpperCase()}/webhooks/${id.toUpperCase()}`);
  expect(status).toBe(204);
  expect(await count()).toBe(0);
});

test("returns the same 404 for a webhook of another project, a deleted and an unknown webhook", async () => {
  const here = await projectOfAdmin();
  const there = await projectOfAdmin(here.user);
  const [id, deleted] = [await there.create(), await here.create()];
  await here.remove(deleted);
  const responses = await Promise.all([id, deleted, randomUUID()].map((each) => here.remove(each)));
  for (const { status, body } of responses) {
    expect({ status, code: body.error.code }).toEqual({ status: 404, code: "not_found" });
    expect(body.error.message).toBe(responses[0]?.body.error.message);
  }
  expect(await there.count()).toBe(1);
  expect(await findSecrets(id)).toBeDefined();
});

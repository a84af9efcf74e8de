import { randomUUID } from "node:crypto";
import { type TestService, useService } from "../../support/service.ts";

const service = useService();

type User = ReturnType<TestService["user"]>;

const create = async ({ api }: Pick<User, "api">, name = "ci") =>
  (await api.post("/v1/api-keys", { name })).body.data as { id: string; key: string };
const remove = ({ api }: Pick<User, "api">, id: string) => api.delete(`/v1/api-keys/${id}`);
const count = async ({ api }: User) => (await api.get("/v1/api-keys")).body.data.length;

test("returns 204 with an empty body", async () => {
  const user = service.user();
  const { id } = await create(user);
  const { status, headers, body } = await remove(user, id);
  expect({ status, body }).toEqual({ status: 204, body: undefined });
  expect(headers.has("content-type")).toBe(false);
  expect(headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
});

test("revokes the key from the next request on", async () => {
  const user = service.user();
  for (let round = 0; round < 20; round++) {
    const { id, key } = await create(user);
    expect((await service.as(key).get("/v1/projects")).status).toBe(200);
    await remove(user, id);
    const { status, body } = await service.as(key).get("/v1/projects");
    expect({ status, code: body.error?.code }).toEqual({ status: 401, code: "invalid_api_key" });
  }
});

test("keeps the other keys of the user", async () => {
  const user = service.user();
  const [deleted, kept] = [await create(user, "deleted"), await create(user, "kept")];
  await remove(user, deleted.id);
  expect((await service.as(kept.key).get("/v1/projects")).status).toBe(200);
  expect((await user.api.get("/v1/api-keys")).body.data).toMatchObject([{ id: kept.id, name: "kept" }]);
});

test("accepts an API key, which can delete another key and itself", async () => {
  const user = service.user();
  const [first, second] = [await create(user), await create(user)];
  const self = { api: service.as(second.key) };
  expect((await remove(self, first.id)).status).toBe(204);
  expect((await remove(self, second.id)).status).toBe(204);
  expect((await remove(self, second.id)).status).toBe(401);
  expect(await count(user)).toBe(0);
});

test("accepts the id in upper case", async () => {
  const user = service.user();
  const { id } = await create(user);
  expect((await remove(user, id.toUpperCase())).status).toBe(204);
  expect(await count(user)).toBe(0);
});

test("returns the same 404 for the key of another user, a deleted and an unknown key", async () => {
  const [owner, other] = [service.user(), service.user()];
  const foreign = await create(owner);
  const deleted = await create(other);
  await remove(other, deleted.id);
  const responses = await Promise.all([foreign.id, deleted.id, randomUUID()].map((id) => remove(other, id)));
  for (const { status, body } of responses) {
    const { code, message } = body.error;
    expect({ status, code }).toEqual({ status: 404, code: "not_found" });
    expect(message).toBe(responses[0]?.body.error.message);
  }
  expect((await service.as(foreign.key).get("/v1/projects")).status).toBe(200);
});

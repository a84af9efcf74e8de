import { type TestService, useService } from "../../support/service.ts";

const service = useService();

type User = ReturnType<TestService["user"]>;

const create = async ({ api }: User, limits: object = {}) =>
  (await api.post("/v1/api-keys", { name: "ci", ...limits })).body.data as { id: string; key: string };
const namesOf = async ({ api }: User) =>
  (await api.get("/v1/api-keys")).body.data.map(({ name }: { name: string }) => name);

test("changes the name, returns the key as in the list, and the key stays valid", async () => {
  const user = service.user();
  const { id, key } = await create(user);
  const { status, body } = await user.api.patch(`/v1/api-keys/${id}`, { name: "the shop's CI" });
  expect(status).toBe(200);
  expect(body.data).toMatchObject({ id, name: "the shop's CI", last_used_at: null });
  expect((await user.api.get("/v1/api-keys")).body.data).toEqual([body.data]);
  expect((await service.as(key).get("/v1/api-keys/current")).body.data.api_key.name).toBe("the shop's CI");
});

test("renames a key that was rolled", async () => {
  const user = service.user();
  const { id } = await create(user);
  await user.api.post(`/v1/api-keys/${id}/roll`, { overlap_seconds: 600 });
  await user.api.patch(`/v1/api-keys/${id}`, { name: "after" });
  expect(await namesOf(user)).toEqual(["after"]);
});

test.each<[string, (project: string) => object]>([
  ["permissions", () => ({ permissions: ["keys:read", "keys:write"] })],
  ["projects", (project) => ({ project_ids: [project] })],
])(
  "a key that is limited to %s lists, renames and deletes only itself; another key of the user is a 404",
  async (_, limits) => {
    const user = service.user();
    const scoped = await create(user, limits(await service.project(user.userId)));
    const other = await create(user);
    const api = service.as(scoped.key);
    expect((await api.patch(`/v1/api-keys/${other.id}`, { name: "taken" })).status).toBe(404);
    expect((await api.delete(`/v1/api-keys/${other.id}`)).status).toBe(404);
    expect((await api.patch(`/v1/api-keys/${scoped.id}`, { name: "mine" })).status).toBe(200);
    expect([await namesOf({ ...user, api }), await namesOf(user)]).toEqual([["mine"], ["mine", "ci"]]);
    expect((await api.delete(`/v1/api-keys/${scoped.id}`)).status).toBe(204);
  },
);

test("returns 404 for the key of another user and for a deleted key, which it does not recreate", async () => {
  const [owner, other] = [service.user(), service.user()];
  const { id } = await create(owner);
  expect((await other.api.patch(`/v1/api-keys/${id}`, { name: "taken" })).status).toBe(404);
  expect(await namesOf(owner)).toEqual(["ci"]);
  await owner.api.delete(`/v1/api-keys/${id}`);
  expect((await owner.api.patch(`/v1/api-keys/${id}`, { name: "back" })).status).toBe(404);
  expect(await namesOf(owner)).toEqual([]);
});

test.each([{}, { name: "" }, { name: "a\0b" }, { name: 1 }, { name: "ok", key: "svc_mine" }])(
  "rejects the body %j",
  async (body) => {
    const user = service.user();
    const { id } = await create(user);
    expect((await user.api.patch(`/v1/api-keys/${id}`, body)).body.error.code).toBe("validation_error");
    expect(await namesOf(user)).toEqual(["ci"]);
  },
);

import { useService } from "../../support/service.ts";

const service = useService();

const unlimited = { permissions: null, project_ids: null, expires_at: null };

test("for a JWT returns the user without limits", async () => {
  const { api, userId } = service.user();
  const { status, body } = await api.get("/v1/api-keys/current");
  expect(status).toBe(200);
  expect(body).toEqual({ data: { type: "jwt", user_id: userId, api_key: null, ...unlimited } });
});

test("for an API key returns its id, name and prefix, without the key", async () => {
  const { api, userId } = service.user();
  const { id, key, key_prefix } = (await api.post("/v1/api-keys", { name: "ci" })).body.data;
  const { body } = await service.as(key).get("/v1/api-keys/current");
  expect(body).toEqual({
    data: { type: "api_key", user_id: userId, api_key: { id, name: "ci", key_prefix }, ...unlimited },
  });
});

test("for a scoped key returns its limits, and needs no permission", async () => {
  const { api, userId } = service.user();
  const project = await service.project(userId);
  const limits = {
    permissions: ["deliveries:read"],
    project_ids: [project],
    expires_at: new Date(Date.now() + 60_000).toISOString(),
  };
  const { key } = (await api.post("/v1/api-keys", { name: "ci", ...limits })).body.data;
  expect((await service.as(key).get("/v1/api-keys/current")).body.data).toMatchObject(limits);
});

test("for a previous secret of a rolled key returns the prefix of that secret and its end", async () => {
  const { api } = service.user();
  const earlier = (await api.post("/v1/api-keys", { name: "ci" })).body.data;
  const next = (await api.post(`/v1/api-keys/${earlier.id}/roll`, { overlap_seconds: 600 })).body.data;
  const [before, after] = [
    (await service.as(earlier.key).get("/v1/api-keys/current")).body.data,
    (await service.as(next.key).get("/v1/api-keys/current")).body.data,
  ];
  expect(before.api_key).toEqual({ id: earlier.id, name: "ci", key_prefix: earlier.key_prefix });
  expect(Date.parse(before.expires_at) - Date.now()).toBeGreaterThan(500_000);
  expect(after).toMatchObject({ api_key: { key_prefix: next.key_prefix }, expires_at: null });
});

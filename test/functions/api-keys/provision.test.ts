import { randomUUID } from "node:crypto";
import { handler as provision } from "../../../functions/api-keys/provision.ts";
import { useService } from "../../support/service.ts";

const service = useService();

test("creates a key with the same fields as a key that the user creates", async () => {
  const { api, userId } = service.user();
  const provisioned = await provision({ user_id: userId, name: "partner" });
  const { data: own } = (await api.post("/v1/api-keys", { name: "own" })).body;
  expect(Object.keys(provisioned)).toEqual(Object.keys(own));
  expect(provisioned).toMatchObject({ name: "partner", key_prefix: provisioned.key.slice(0, 12) });
  expect(provisioned.key).toMatch(/^svc_[0-9a-f]{64}$/);
  const { key, ...shown } = provisioned;
  expect((await api.get("/v1/api-keys")).body.data[0]).toEqual({ ...shown, last_used_at: null });
});

test("creates a key with the permissions of the user, which cannot create keys", async () => {
  const { userId } = service.user();
  const project = await service.project(userId);
  const api = service.as((await provision({ user_id: userId, name: "partner" })).key);
  expect((await api.get("/v1/projects")).body.data).toMatchObject([{ id: project, role: "admin" }]);
  const webhook = { url: "https://example.com/hook", events: ["deploy.failed"] };
  expect((await api.post(`/v1/projects/${project}/webhooks`, webhook)).status).toBe(201);
  expect((await api.post("/v1/api-keys", { name: "more" })).body.error.code).toBe("session_required");
});

test("creates a key that the user can delete", async () => {
  const { api, userId } = service.user();
  const { id, key } = await provision({ user_id: userId, name: "partner" });
  expect((await api.delete(`/v1/api-keys/${id}`)).status).toBe(204);
  expect((await service.as(key).get("/v1/projects")).body.error.code).toBe("invalid_api_key");
});

test("throws when the user has 100 keys, both provisioned and created", async () => {
  const { api, userId } = service.user();
  await Promise.all(Array.from({ length: 99 }, () => provision({ user_id: userId, name: "partner" })));
  expect((await api.post("/v1/api-keys", { name: "the hundredth" })).status).toBe(201);
  await expect(provision({ user_id: userId, name: "too many" })).rejects.toMatchObject({
    code: "api_key_limit_reached",
  });
  expect((await api.post("/v1/api-keys", { name: "too many" })).body.error.code).toBe("api_key_limit_reached");
});

const user_id = `user-${randomUUID()}`;

test.each([
  ["undefined", undefined, ""],
  ["null", null, ""],
  ["an array", [], ""],
  ["no user", { name: "ci" }, "user_id"],
  ["an empty user", { user_id: "", name: "ci" }, "user_id"],
  ["a service account", { user_id: "service-account:1", name: "ci" }, "user_id"],
  ["a blank user", { user_id: " ", name: "ci" }, "user_id"],
  ["a user that is a number", { user_id: 42, name: "ci" }, "user_id"],
  ["a user of 256 characters", { user_id: "u".repeat(256), name: "ci" }, "user_id"],
  ["no name", { user_id }, "name"],
  ["an empty name", { user_id, name: "" }, "name"],
  ["a name with a control character", { user_id, name: "a\0b" }, "name"],
  ["an unknown field", { user_id, name: "ci", key: "svc_mine" }, "key"],
])("throws validation_error for %s with the path of the field", async (_title, input, path) => {
  await expect(provision(input)).rejects.toMatchObject({
    code: "validation_error",
    details: [{ path, message: expect.any(String) }],
  });
});

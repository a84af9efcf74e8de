import { randomUUID } from "node:crypto";
import { platformPermissions } from "../../../../functions/foundation/access/platform-permissions.ts";
import { permissions, workflowPermissions } from "../../../../functions/foundation/manifest/permissions.ts";
import { SettingError } from "../../../../functions/foundation/platform/errors.ts";
import { call } from "../../../support/call.ts";
import { startCiSystem } from "../../../support/ci-system.ts";
import { startTestService, type TestService } from "../../../support/service.ts";
import { newServiceAccount } from "../../../support/service-accounts.ts";

const registry = [
  { name: "registry:push", description: "push images" },
  { name: "registry:pull", description: "pull images" },
];
const setPermissions = (list: unknown) => {
  process.env.PERMISSIONS = JSON.stringify(list);
};
afterEach(() => {
  delete process.env.PERMISSIONS;
});

describe("the setting PERMISSIONS", () => {
  test("is a list of names with descriptions, and empty by default", () => {
    expect(platformPermissions()).toEqual([]);
    setPermissions(registry);
    expect(platformPermissions()).toEqual(registry);
  });

  const entry = (name: unknown, description: unknown = "push images") => [{ name, description }];
  test.each([
    ["text that is no JSON", "registry:push", "It is not JSON"],
    ["an object", JSON.stringify({}), "must be a list"],
    ["a name of this API", JSON.stringify(entry("webhooks:read")), "0.name must be at most 40 characters"],
    ["a new name for a resource of this API", JSON.stringify(entry("events:write")), "0.name must be at most 40"],
    ["a name without a colon", JSON.stringify(entry("registry")), "0.name must be at most 40"],
    ["a name with a space", JSON.stringify(entry("registry:push all")), "0.name must be at most 40"],
    ["a name of 41 characters", JSON.stringify(entry(`registry:${"p".repeat(32)}`)), "0.name must be at most 40"],
    ["a name that is a number", JSON.stringify(entry(5)), "0.name must be at most 40"],
    ["no description", JSON.stringify([{ name: "registry:push" }]), "0.description must be text of at most 100"],
    ["a blank description", JSON.stringify(entry("registry:push", " ")), "0.description must be text of at most 100"],
    ["a long description", JSON.stringify(entry("registry:push", "p".repeat(101))), "must be text of at most 100"],
    ["an unknown field", JSON.stringify([{ ...registry[0], role: "admin" }]), "0.role is not a known field"],
    ["a name twice", JSON.stringify([registry[0], registry[0]]), "must have different names"],
    [
      "21 permissions",
      JSON.stringify(Array.from({ length: 21 }, (_, index) => ({ ...registry[0], name: `registry:push-${index}` }))),
      "must have at most 20 entries",
    ],
  ])("is rejected with %s", (_title, setting, message) => {
    process.env.PERMISSIONS = setting;
    expect(platformPermissions).toThrow(SettingError);
    expect(platformPermissions).toThrow(message);
  });
});

describe("a permission of the platform", () => {
  let service: TestService;
  let trust: (permissions: string[]) => Promise<{ body: { data: object }; token: string; path: string }>;

  beforeAll(async () => {
    const ci = await startCiSystem("ci");
    service = await startTestService();
    trust = async (held) => {
      const { api, userId } = service.user();
      const path = `/v1/projects/${await service.project(userId)}/trusted-workflows`;
      const repository_id = String(Math.ceil(Math.random() * 2 ** 40));
      const { body } = await api.post(path, { ...ci.trust, repository_id, permissions: held });
      return { body, token: ci.token({ repository_id }), path };
    };
  });
  beforeEach(() => setPermissions(registry));
  afterAll(() => service.stop());

  const verify = async (token: string, permission: string) =>
    (await call<{ results: object[] }>("credentials-verify", { credentials: [{ token, permission }] })).results[0];

  test("is listed with its description beside what the credential may do; without any, the field is absent", async () => {
    const { api } = service.user();
    const current = async () => (await api.get("/v1/api-keys/current")).body.data;
    expect((await current()).platform_permissions).toEqual(registry);
    delete process.env.PERMISSIONS;
    expect(await current()).not.toHaveProperty("platform_permissions");
  });

  const held = ["webhooks:read", "registry:push"];

  test.each([
    [
      "a user",
      async () => (await service.user().api.post("/v1/api-keys", { name: "ci", permissions: held })).body.data,
    ],
    ["a service account", async () => (await newServiceAccount(service)).createKey({ permissions: held })],
    [
      "a partner",
      async () => call<{ key: string }>("api-keys-provision", { user_id: randomUUID(), name: "ci", permissions: held }),
    ],
  ])("is held by a key of %s, and verified", async (_title, create) => {
    const { key } = await create();
    const { body } = await service.as(key).get("/v1/api-keys/current");
    expect(body.data.permissions).toEqual(held);
    expect(await verify(key, "registry:push")).toMatchObject({ valid: true, permissions: held });
    expect(await verify(key, "registry:pull")).toEqual({ valid: false, code: "forbidden" });
  });

  test("is held by a workflow, which stays a viewer by it", async () => {
    setPermissions([...registry, { name: "registry:write", description: "change settings" }]);
    const given = ["registry:write", "projects:read"];
    const { body, token } = await trust(given);
    expect(body.data).toMatchObject({ permissions: given });
    expect(await verify(token, "registry:write")).toMatchObject({ permissions: ["projects:read", "registry:write"] });
    expect(await verify(token, "registry:pull")).toEqual({ valid: false, code: "forbidden" });
    expect((await service.as(token).get("/v1/projects")).body.data).toMatchObject([{ role: "viewer" }]);
  });

  test("gives no access to this API", async () => {
    const { api } = service.user();
    const { key } = (await api.post("/v1/api-keys", { name: "ci", permissions: ["registry:push"] })).body.data;
    expect((await service.as(key).get("/v1/projects")).body.error.code).toBe("insufficient_permission");
  });

  test("may be given together with all others", async () => {
    const all = [...permissions, "registry:push", "registry:pull"];
    const { body } = await service.user().api.post("/v1/api-keys", { name: "ci", permissions: all });
    expect(body.data.permissions).toEqual(all);
  });

  test("that does not exist is refused with the list of those that do", async () => {
    const { api } = service.user();
    const { status, body } = await api.post("/v1/api-keys", { name: "ci", permissions: ["registry:delete"] });
    const list = [...permissions, "registry:push", "registry:pull"].join(", ");
    const details = [{ path: "permissions.0", message: `must be one of ${list}` }];
    expect([status, body.error]).toMatchObject([400, { code: "validation_error", details }]);
    expect((await trust(["registry:delete"])).body).toMatchObject({
      error: {
        code: "validation_error",
        details: [
          { message: `must be one of ${[...workflowPermissions, "registry:push", "registry:pull"].join(", ")}` },
        ],
      },
    });
    const partner = { user_id: "alice", name: "ci", permissions: ["registry:delete"] };
    await expect(call("api-keys-provision", partner)).rejects.toMatchObject({ code: "validation_error", details });
  });

  test("that the stage no longer has is kept by its keys, and cannot be given or verified", async () => {
    const { api } = service.user();
    const input = { name: "ci", permissions: ["registry:push"] };
    const { key } = (await api.post("/v1/api-keys", input)).body.data;
    delete process.env.PERMISSIONS;
    expect((await service.as(key).get("/v1/api-keys/current")).body.data.permissions).toEqual(["registry:push"]);
    expect((await api.post("/v1/api-keys", input)).body.error.code).toBe("validation_error");
    expect(await verify(key, "registry:push")).toEqual({ valid: false, code: "malformed" });
  });
});

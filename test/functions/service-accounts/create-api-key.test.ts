import { useService } from "../../support/service.ts";
import { newServiceAccount } from "../../support/service-accounts.ts";

const service = useService();

test("returns a key that sees this project only, with the role of the service account", async () => {
  const { projectId, createKey, accountId } = await newServiceAccount(service, "viewer");
  const { key, as } = await createKey();
  expect(key).toMatch(/^svc_[0-9a-f]{64}$/);
  expect((await as.get("/v1/projects")).body.data.map(({ id }: { id: string }) => id)).toEqual([projectId]);
  expect((await as.get(`/v1/projects/${projectId}/webhooks`)).status).toBe(200);
  const hook = { url: "https://example.com/hook", events: ["deploy.failed"] };
  expect((await as.post(`/v1/projects/${projectId}/webhooks`, hook)).body.error.code).toBe("forbidden");
  const elsewhere = await service.project(service.user().userId);
  expect((await as.get(`/v1/projects/${elsewhere}/webhooks`)).status).toBe(404);
  const current = (await as.get("/v1/api-keys/current")).body.data;
  expect(current).toMatchObject({ type: "api_key", user_id: `service-account:${accountId}` });
});

test("accepts the limits of API keys, for its own project", async () => {
  const { admin, path, projectId, createKey } = await newServiceAccount(service);
  const { as } = await createKey({ permissions: ["webhooks:read"], project_ids: [projectId] });
  expect((await as.get(`/v1/projects/${projectId}/webhooks`)).status).toBe(200);
  expect((await as.get("/v1/projects")).body.error.code).toBe("insufficient_permission");
  const elsewhere = await service.project(admin.userId);
  const { body } = await admin.api.post(`${path}/api-keys`, { name: "ci", project_ids: [projectId, elsewhere] });
  expect(body.error).toMatchObject({ code: "validation_error", details: [{ path: "project_ids.1" }] });
});

test("its key creates no further credential: no key, no service account", async () => {
  const { path, accounts, createKey } = await newServiceAccount(service, "admin");
  const { as } = await createKey();
  for (const [target, body] of [
    ["/v1/api-keys", { name: "more" }],
    [`${path}/api-keys`, { name: "more" }],
    [accounts, { name: "more", role: "admin" }],
  ] as const) {
    expect((await as.post(target, body)).body.error.code).toBe("session_required");
  }
});

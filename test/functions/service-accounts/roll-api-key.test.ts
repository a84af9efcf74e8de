import { useService } from "../../support/service.ts";
import { newServiceAccount } from "../../support/service-accounts.ts";

const service = useService();

test("returns a new key with the same id and limits, and the earlier one works until the end of the overlap", async () => {
  const { admin, projectId, path, accountId, createKey } = await newServiceAccount(service);
  const limits = { permissions: ["projects:read"], project_ids: [projectId] };
  const earlier = await createKey(limits);
  const { status, body } = await admin.api.post(`${path}/api-keys/${earlier.id}/roll`, { overlap_seconds: 600 });
  expect(status).toBe(200);
  expect(body.data).toMatchObject({ id: earlier.id, name: "ci", ...limits });
  expect(body.data.key).not.toBe(earlier.key);
  for (const as of [service.as(body.data.key), earlier.as]) expect((await as.get("/v1/projects")).status).toBe(200);
  const current = (await service.as(body.data.key).get("/v1/api-keys/current")).body.data;
  expect(current.user_id).toBe(`service-account:${accountId}`);
  const [event] = (await admin.api.get(`/v1/projects/${projectId}/audit-events`)).body.data;
  expect(event).toMatchObject({
    action: "api_key.rolled",
    resource_id: earlier.id,
    actor: { user_id: admin.userId },
    details: { key_prefix: body.data.key_prefix, overlap_seconds: 600 },
  });
});

test("no key survives that is rolled while the account is removed", async () => {
  const { admin, path, createKey } = await newServiceAccount(service);
  const { id, as } = await createKey();
  const rolls = Array.from({ length: 3 }, () => admin.api.post(`${path}/api-keys/${id}/roll`, {}));
  const [removed, ...rolled] = await Promise.all([admin.api.delete(path), ...rolls]);
  expect(removed?.status).toBe(204);
  for (const { status, body } of rolled) {
    expect([200, 404]).toContain(status);
    if (status === 200) expect((await service.as(body.data.key).get("/v1/projects")).status).toBe(401);
  }
  expect((await as.get("/v1/projects")).status).toBe(401);
});

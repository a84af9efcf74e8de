import { randomUUID } from "node:crypto";
import { useCiSystem } from "../../support/ci-system.ts";
import { useService } from "../../support/service.ts";

const ci = useCiSystem("ci");
const service = useService();

async function givenProject() {
  const { api, userId, token } = service.user();
  const projectId = await service.project(userId);
  return { api, userId, token, projectId, path: `/v1/projects/${projectId}/trusted-workflows` };
}

test("returns the trust, with null for each field that is not set", async () => {
  const { api, projectId, path } = await givenProject();
  const input = { issuer: "ci", repository_id: "74", permissions: ["webhooks:read"] };
  const { status, body } = await api.post(path, input);
  expect(status).toBe(201);
  expect(body.data).toEqual({
    ...input,
    id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
    project_id: projectId,
    name: null,
    repository_owner_id: null,
    ref: null,
    environment: null,
    job_workflow_ref: null,
    event_name: null,
    created_at: expect.stringMatching(/Z$/),
  });
  const all = {
    name: "shop",
    repository_owner_id: "65",
    ref: "refs/heads/main",
    environment: "prod",
    job_workflow_ref: "acme/shop/.github/workflows/deploy.yml@refs/heads/main",
    event_name: "push",
  };
  expect((await api.post(path, { ...input, ...all })).body.data).toMatchObject({ ...input, ...all });
});

test("accepts only the issuers of the stage, and names them", async () => {
  const { api, path } = await givenProject();
  const { status, body } = await api.post(path, { ...ci.trust, issuer: "gitlab" });
  expect(status).toBe(400);
  expect(body.error).toMatchObject({
    code: "validation_error",
    message: "The input is not valid: issuer must be one of github, ci.",
    details: [{ path: "issuer", message: "must be one of github, ci" }],
  });
  const given = process.env.OIDC_ISSUERS;
  delete process.env.OIDC_ISSUERS;
  try {
    const none = await api.post(path, ci.trust);
    expect(none.body.error.message).toContain(
      "issuer is not accepted: this service accepts no workflows until its operator sets OIDC_ISSUERS",
    );
  } finally {
    process.env.OIDC_ISSUERS = given;
  }
});

test("is written to the audit log of the project, and so is its end", async () => {
  const { api, userId, projectId, path } = await givenProject();
  const { id } = (await api.post(path, { ...ci.trust, name: "shop", ref: "refs/heads/main" })).body.data;
  await api.delete(`${path}/${id}`);
  const { body } = await api.get(`/v1/projects/${projectId}/audit-events`);
  const details = { ...ci.trust, name: "shop", ref: "refs/heads/main" };
  const event = { resource_id: id, actor: expect.objectContaining({ type: "jwt", user_id: userId }), details };
  expect(body.data.slice(0, 2)).toEqual([
    expect.objectContaining({ ...event, action: "trusted_workflow.deleted" }),
    expect.objectContaining({ ...event, action: "trusted_workflow.created" }),
  ]);
});

test("is refused above 10 trusts per project, also for concurrent requests, until one is deleted", async () => {
  const { api, path } = await givenProject();
  const create = () => api.post(path, ci.trust);
  const responses = await Promise.all(Array.from({ length: 15 }, create));
  const created = responses.filter(({ status }) => status === 201);
  expect(created).toHaveLength(10);
  const refused = responses.find(({ status }) => status !== 201);
  expect(refused?.body.error.code).toBe("trusted_workflow_limit_reached");
  await api.delete(`${path}/${created[0]?.body.data.id}`);
  expect((await create()).status).toBe(201);
  expect((await create()).status).toBe(409);
});

test("is only for admins who have signed in", async () => {
  const { api, projectId, path } = await givenProject();
  const viewer = service.user();
  await service.project(viewer.userId, { projectId, role: "viewer" });
  expect((await viewer.api.post(path, ci.trust)).body.error.code).toBe("forbidden");
  expect((await service.user().api.post(path, ci.trust)).body.error.code).toBe("not_found");
  expect((await api.post(`/v1/projects/${randomUUID()}/trusted-workflows`, ci.trust)).body.error.code).toBe(
    "not_found",
  );
  const { key } = (await api.post("/v1/api-keys", { name: "ci" })).body.data;
  expect((await service.as(key).post(path, ci.trust)).body.error.code).toBe("session_required");
  await api.post(path, ci.trust);
  expect((await service.as(ci.token()).post(path, ci.trust)).body.error).toMatchObject({
    code: "session_required",
    message: "This endpoint does not accept workflows. Sign in and send a JWT.",
  });
});

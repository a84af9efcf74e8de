import { randomUUID } from "node:crypto";
import { beforeTransaction } from "../../../support/aws-calls.ts";
import { useCiSystem } from "../../../support/ci-system.ts";
import { useService } from "../../../support/service.ts";

const ci = useCiSystem("ci");
const service = useService();

async function givenProject() {
  const { api, userId } = service.user();
  const projectId = await service.project(userId);
  return { api, userId, projectId, path: `/v1/projects/${projectId}/trusted-workflows` };
}

async function givenTrust(conditions: object = {}) {
  const project = await givenProject();
  return { ...project, id: (await project.api.post(project.path, { ...ci.trust, ...conditions })).body.data.id };
}

test("a trust accepts only the issuers of the stage, and names them", async () => {
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

test("a trust is refused above 10 per project, also for concurrent requests, until one is deleted", async () => {
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

test("a delete ends the trust: the very next request of the workflow is rejected, and the list is empty", async () => {
  const { api, projectId, path, id } = await givenTrust({ repository_id: "99" });
  const workflow = service.as(ci.token({ repository_id: "99" }));
  expect((await workflow.get(`/v1/projects/${projectId}/webhooks`)).status).toBe(200);
  expect(await api.delete(`${path}/${id}`)).toMatchObject({ status: 204, body: undefined });
  const { status, body } = await workflow.get(`/v1/projects/${projectId}/webhooks`);
  expect([status, body.error.code]).toEqual([401, "workflow_not_trusted"]);
  expect((await api.get(path)).body.data).toEqual([]);
});

test("a delete returns 404 for a trust that is unknown, of another project, or deleted by a concurrent request, and deletes nothing", async () => {
  const { api, userId, path, id } = await givenTrust();
  const other = `/v1/projects/${await service.project(userId)}/trusted-workflows`;
  for (const target of [`${other}/${id}`, `${path}/${randomUUID()}`]) {
    expect((await api.delete(target)).body.error).toMatchObject({
      code: "not_found",
      message: "No trusted workflow with this id exists.",
    });
  }
  expect((await service.user().api.delete(`${path}/${id}`)).status).toBe(404);
  expect((await service.as(ci.token()).delete(`${path}/${id}`)).body.error.code).toBe("session_required");
  expect((await api.get(path)).body.data).toHaveLength(1);
  beforeTransaction(() => api.delete(`${path}/${id}`));
  expect((await api.delete(`${path}/${id}`)).status).toBe(404);
});

test("a refusal names the role or the kind of credential that is required", async () => {
  const { projectId, path } = await givenTrust();
  const viewer = service.user();
  await service.project(viewer.userId, { projectId, role: "viewer" });
  const messageFor = async ({ api }: Pick<typeof viewer, "api">) => (await api.get(path)).body.error.message;
  expect([await messageFor(viewer), await messageFor({ api: service.as(ci.token()) })]).toEqual([
    "This requires the role admin in the project, and yours is viewer. Ask an admin of the project.",
    "This endpoint does not accept workflows. Sign in and send a JWT.",
  ]);
});

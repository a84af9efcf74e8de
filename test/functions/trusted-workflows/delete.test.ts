import { randomUUID } from "node:crypto";
import { beforeTransaction, restoreAws } from "../../support/aws-calls.ts";
import { useCiSystem } from "../../support/ci-system.ts";
import { useService } from "../../support/service.ts";

const ci = useCiSystem("ci");
const service = useService();
afterEach(restoreAws);

async function givenTrust() {
  const { api, userId } = service.user();
  const projectId = await service.project(userId);
  const path = `/v1/projects/${projectId}/trusted-workflows`;
  return { api, userId, projectId, path, id: (await api.post(path, ci.trust)).body.data.id };
}

test("ends the trust: the very next request of the workflow is rejected, and the list is empty", async () => {
  const { api, projectId, path, id } = await givenTrust();
  const workflow = service.as(ci.token());
  expect((await workflow.get(`/v1/projects/${projectId}/webhooks`)).status).toBe(200);
  expect(await api.delete(`${path}/${id}`)).toMatchObject({ status: 204, body: undefined });
  const { status, body } = await workflow.get(`/v1/projects/${projectId}/webhooks`);
  expect([status, body.error.code]).toEqual([401, "workflow_not_trusted"]);
  expect((await api.get(path)).body.data).toEqual([]);
});

test("returns 404 for a trust that is unknown, of another project, or deleted by a concurrent request, and deletes nothing", async () => {
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

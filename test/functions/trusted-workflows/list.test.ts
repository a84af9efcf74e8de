import { useCiSystem } from "../../support/ci-system.ts";
import { useService } from "../../support/service.ts";

const ci = useCiSystem("ci");
const service = useService();

test("returns the trusts of the project alone, oldest first, as they were created", async () => {
  const { api, userId } = service.user();
  const [path = "", other = ""] = await Promise.all(
    [0, 1].map(async () => `/v1/projects/${await service.project(userId)}/trusted-workflows`),
  );
  expect((await api.get(path)).body).toEqual({ data: [] });
  const created = [];
  for (const ref of ["refs/heads/a", "refs/heads/b", undefined]) {
    created.push((await api.post(path, { ...ci.trust, ref })).body.data);
  }
  await api.post(other, ci.trust);
  expect(await api.get(path)).toMatchObject({ status: 200, body: { data: created } });
  expect((await api.get(other)).body.data).toHaveLength(1);
});

test("is only for admins who have signed in", async () => {
  const { api, userId } = service.user();
  const projectId = await service.project(userId);
  const path = `/v1/projects/${projectId}/trusted-workflows`;
  await api.post(path, ci.trust);
  const viewer = service.user();
  await service.project(viewer.userId, { projectId, role: "viewer" });
  // The message also fits a read.
  expect((await viewer.api.get(path)).body.error).toMatchObject({
    code: "forbidden",
    message: "This requires the role admin in the project, and yours is viewer. Ask an admin of the project.",
  });
  expect((await service.user().api.get(path)).body.error.code).toBe("not_found");
  expect((await service.as(ci.token()).get(path)).body.error.code).toBe("session_required");
});

import { randomUUID } from "node:crypto";
import { handler as removeMember } from "../../../../functions/identity/members/remove-member.ts";
import { handler as upsertMember } from "../../../../functions/identity/members/upsert-member.ts";
import { errorOf } from "../../../support/scenario.ts";
import { useService } from "../../../support/service.ts";

/* Who is a member of a project. */

const service = useService();

test("members see the people of their project, admins first, without service accounts, removed members and other projects", async () => {
  const [viewer, admin, gone] = [service.user(), service.user(), service.user()];
  const project_id = await service.project(viewer.userId, { role: "viewer" });
  // The next id in the same part of the table.
  const other = `${project_id.slice(0, -2)}${project_id.at(-2) === "0" ? "1" : "0"}${project_id.at(-1)}`;
  for (const user_id of [admin.userId, gone.userId]) await upsertMember({ project_id, user_id, name: "Shop" });
  await upsertMember({ project_id: other, user_id: gone.userId, name: "Other" });
  await removeMember({ project_id, user_id: gone.userId });
  await admin.api.post(`/v1/projects/${project_id}/service-accounts`, { name: "ci", role: "admin" });
  const { status, body } = await viewer.api.get(`/v1/projects/${project_id}/members`);
  expect({ status, body }).toEqual({
    status: 200,
    body: {
      data: [
        { user_id: admin.userId, role: "admin", created_at: expect.any(String) },
        { user_id: viewer.userId, role: "viewer", created_at: expect.any(String) },
      ],
    },
  });
});

test("others do not see them", async () => {
  const project = await service.project(service.user().userId);
  const response = await service.user().api.get(`/v1/projects/${project}/members`);
  expect(errorOf(response)).toEqual({ status: 404, code: "not_found" });
  expect((await service.user().api.get(`/v1/projects/${randomUUID()}/members`)).status).toBe(404);
});

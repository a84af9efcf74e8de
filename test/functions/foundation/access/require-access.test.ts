import type { Identity } from "../../../../functions/foundation/access/identity.ts";
import { requireAccess } from "../../../../functions/foundation/access/require-access.ts";

/* The rules for workflows, which need no read. Those for people are tested for every endpoint. */

const row = { access: "admin", permission: "webhooks:write" } as const;
const workflow: Identity = {
  userId: "workflow:1",
  authType: "workflow",
  permissions: ["webhooks:write"],
  projectIds: ["p1"],
};
const access = (changes: Partial<Identity> = {}, wanted: Parameters<typeof requireAccess>[0] = row) =>
  requireAccess(wanted, { ...workflow, ...changes }, { project_id: "p1" });

test("a workflow is allowed what an admin is, with the permission, in its project", async () => {
  await expect(access()).resolves.toBe("admin");
});

test.each<[string, Partial<Identity>, string]>([
  ["in another project", { projectIds: ["p2"] }, "not_found"],
  ["without a list of projects", { projectIds: undefined }, "not_found"],
  ["with an empty list of projects", { projectIds: [] }, "not_found"],
  ["without the permission", { permissions: ["webhooks:read"] }, "insufficient_permission"],
  ["with no permissions", { permissions: [] }, "insufficient_permission"],
  ["without a list of permissions", { permissions: undefined }, "insufficient_permission"],
  ["in another project and without the permission", { projectIds: ["p2"], permissions: [] }, "not_found"],
])("a workflow %s is refused", async (_title, changes, code) => {
  await expect(access(changes)).rejects.toMatchObject({ code });
});

test.each([
  [[], "The credential does not have the permission webhooks:write. It has none."],
  [
    ["webhooks:read", "projects:read"],
    "The credential does not have the permission webhooks:write. It has: webhooks:read, projects:read.",
  ],
])("the message for a credential with the permissions %j names the missing one", async (permissions, message) => {
  await expect(access({ permissions })).rejects.toMatchObject({ message });
});

test.each(["session", "admin_session"] as const)("a workflow is refused where the access is %s", async (wanted) => {
  await expect(access({}, { access: wanted, permission: "none" })).rejects.toMatchObject({ code: "session_required" });
});

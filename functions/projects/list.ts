import type { Identity } from "../access/identity.ts";
import type { Project } from "../access/membership.ts";
import * as memberships from "../access/membership-store.ts";
import { defineEndpoint, ok } from "../http/define-endpoint.ts";
import * as trustedWorkflows from "../trusted-workflows/trusted-workflow-store.ts";

/** Lists the projects of the caller, or those of them that a narrow credential can see. */
export const handler = defineEndpoint("GET /v1/projects", {
  async run({ identity }) {
    if (identity.authType === "workflow") return ok(await projectsOfWorkflow(identity));
    const { userId, projectIds } = identity;
    const projects = await memberships.projectsOf(userId);
    return ok(projects.filter(({ id }) => projectIds?.includes(id) ?? true));
  },
});

/** A workflow is not a member. Its permissions are the same in all projects that it sees. */
async function projectsOfWorkflow({ projectIds = [], permissions = [] }: Identity): Promise<Project[]> {
  const role = permissions.some((permission) => permission.endsWith(":write")) ? "admin" : "viewer";
  const projects = await trustedWorkflows.projectsWith(projectIds);
  return projects.map(({ id, name, created_at }) => ({ id, name, role, created_at }));
}

import * as memberships from "../access/membership-store.ts";
import { defineEndpoint, ok } from "../http/define-endpoint.ts";

/** Lists the projects of the caller, or those of them that a narrow credential can see. */
export const handler = defineEndpoint("GET /v1/projects", {
  async run({ identity }) {
    const { userId, projectIds } = identity;
    const projects = await memberships.projectsOf(userId);
    return ok(projects.filter(({ id }) => projectIds?.includes(id) ?? true));
  },
});

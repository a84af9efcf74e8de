import * as memberships from "../access/membership-store.ts";
import { defineEndpoint, ok } from "../http/define-endpoint.ts";

/** Lists the projects of the caller. */
export const handler = defineEndpoint("GET /v1/projects", {
  async run({ identity }) {
    return ok(await memberships.projectsOf(identity.userId));
  },
});

import * as memberships from "../access/membership-store.ts";
import { defineEndpoint, ok } from "../http/define-endpoint.ts";

/** The caller's projects. */
export const handler = defineEndpoint("GET /v1/projects", {
  async run({ identity }) {
    return ok(await memberships.projectsOf(identity.userId));
  },
});

import { endpoint, ok } from "../endpoint.ts";
import * as projects from "./project-store.ts";

/** The caller's projects. */
export const handler = endpoint("GET /v1/projects", {
  async run({ identity }) {
    return ok(await projects.listOf(identity.userId));
  },
});

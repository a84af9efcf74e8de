import { defineEndpoint, ok } from "../http/define-endpoint.ts";
import { toResponse } from "./trusted-workflow.ts";
import * as trustedWorkflows from "./trusted-workflow-store.ts";

/** Lists the workflows that a project trusts, oldest first. */
export const handler = defineEndpoint("GET /v1/projects/{project_id}/trusted-workflows", {
  async run({ params }) {
    return ok((await trustedWorkflows.list(params.project_id)).map(toResponse));
  },
});

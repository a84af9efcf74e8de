import { defineEndpoint, ok } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { toResponse } from "./trusted-workflow.ts";
import * as trustedWorkflows from "./trusted-workflow-store.ts";

/** Lists the workflows that a project trusts, oldest first. */
export const handler = defineEndpoint(endpoints.listTrustedWorkflows, {
  async run({ params }) {
    return ok((await trustedWorkflows.list(params.project_id)).map(toResponse));
  },
});

import { defineEndpoint, noContent } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import * as trustedWorkflows from "./trusted-workflow-store.ts";

/** Deletes a trusted workflow. Its next request is rejected. */
export const handler = defineEndpoint(endpoints.deleteTrustedWorkflow, {
  async run({ params, actor }) {
    await trustedWorkflows.remove(params.project_id, params.trusted_workflow_id, actor);
    return noContent();
  },
});

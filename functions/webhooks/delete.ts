import { defineEndpoint, noContent } from "../http/define-endpoint.ts";
import * as webhooks from "./webhook-store.ts";

/** Stops telling a URL about a project's deployments. Deliveries that still wait are cancelled. */
export const handler = defineEndpoint("DELETE /v1/projects/{project_id}/webhooks/{webhook_id}", {
  async run({ params }) {
    await webhooks.remove(params.project_id, params.webhook_id);
    return noContent();
  },
});

import { defineEndpoint, ok } from "../http/define-endpoint.ts";
import { toDetail } from "./webhook.ts";
import * as webhooks from "./webhook-store.ts";

/** Returns one webhook, with its state and, if it is disabled, the time and the reason. */
export const handler = defineEndpoint("GET /v1/projects/{project_id}/webhooks/{webhook_id}", {
  async run({ params }) {
    return ok(toDetail(await webhooks.get(params.project_id, params.webhook_id)));
  },
});

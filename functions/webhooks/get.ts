import { endpoint, ok } from "../endpoint.ts";
import { withState } from "./webhook.ts";
import * as webhooks from "./webhook-store.ts";

/** One webhook, with whether it is enabled and, if not, since when and why. */
export const handler = endpoint("GET /v1/projects/{project_id}/webhooks/{webhook_id}", {
  async run({ params }) {
    return ok(withState(await webhooks.get(params.project_id, params.webhook_id)));
  },
});

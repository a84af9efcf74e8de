import { endpoint, ok } from "../endpoint.ts";
import { settings } from "../platform/env.ts";
import { parseCidrs } from "./receiver-address.ts";
import { webhookChanges, withState } from "./webhook.ts";
import * as webhooks from "./webhook-store.ts";

/** Changes URL or events, disables or enables. Enabling sends nothing by itself: recover does. */
export const handler = endpoint("PATCH /v1/projects/{project_id}/webhooks/{webhook_id}", {
  input: () => webhookChanges(parseCidrs(settings.webhookAllowCidrs())),
  async run({ params, input, now }) {
    return ok(withState(await webhooks.update(params.project_id, params.webhook_id, input, now.toISOString())));
  },
});

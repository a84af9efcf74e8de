import { chargeRequest } from "../access/request-budget-store.ts";
import { defineEndpoint, ok } from "../http/define-endpoint.ts";
import { settings } from "../platform/env.ts";
import { parseCidrs } from "../receivers/receiver-address.ts";
import { readHealth } from "./health-store.ts";
import { toDetail, webhookPatch } from "./webhook.ts";
import * as webhooks from "./webhook-store.ts";

/** Changes the URL or the events of a webhook, enables or disables it. Enabling does not send held deliveries. */
export const handler = defineEndpoint("PATCH /v1/projects/{project_id}/webhooks/{webhook_id}", {
  input: () => webhookPatch(parseCidrs(settings.webhookAllowCidrs())),
  async run({ params, input, actor, now }) {
    const { project_id, webhook_id } = params;
    if (input.enabled !== undefined) await chargeRequest(project_id, "toggle", now);
    const webhook = await webhooks.update(project_id, webhook_id, input, now.toISOString(), actor);
    return ok(toDetail(webhook, await readHealth(webhook, now)));
  },
});

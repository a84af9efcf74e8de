import { meteredReads } from "../../foundation/budgets/metered-reads-store.ts";
import { defineEndpoint, ok } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { readHealth } from "./health-store.ts";
import { toDetail } from "./webhook.ts";
import * as webhooks from "./webhook-store.ts";

/** Returns one webhook, with its health and, if it is disabled, the time and the reason. */
export const handler = defineEndpoint(endpoints.getWebhook, {
  async run({ params, identity, now }) {
    const webhook = await webhooks.get(params.project_id, params.webhook_id);
    const health = await meteredReads({ project: webhook.project_id, caller: identity }, now, (reads) =>
      readHealth(webhook, now, reads),
    );
    return ok(toDetail(webhook, health));
  },
});

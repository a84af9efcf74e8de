import type { Identity } from "../../foundation/access/identity.ts";
import { meteredReads } from "../../foundation/budgets/metered-reads-store.ts";
import { chargeToggle } from "../../foundation/budgets/request-budget-store.ts";
import { defineEndpoint, ok } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { settings } from "../../foundation/platform/env.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { parseCidrs } from "../receiver/receiver-address.ts";
import { type Health, healthOf } from "./health.ts";
import { NOTHING_READ, readHealth } from "./health-store.ts";
import { toDetail, type Webhook, webhookPatch } from "./webhook.ts";
import * as webhooks from "./webhook-store.ts";
import { catchUp } from "./worker-call.ts";

/** Changes the URL, the name or the events of a webhook, enables or disables it. Enabling does not send held deliveries. */
export const handler = defineEndpoint(endpoints.updateWebhook, {
  input: () => webhookPatch(parseCidrs(settings.webhookAllowCidrs())),
  async run({ params, input, identity, actor, now }) {
    const { project_id, webhook_id } = params;
    await chargeToggle(project_id, now);
    const webhook = await webhooks.update(project_id, webhook_id, input, now.toISOString(), actor);
    // What waits is sent to the webhook as it is now, not at the time that was planned for the one before.
    const isOther = input.url !== undefined || input.mode !== undefined || input.enabled;
    if (isOther && webhook.mode !== "shadow") await catchUp(webhook, now);
    return ok(toDetail(webhook, await healthAfterChange(webhook, identity, now)));
  },
});

/** Returns the health, of the webhook's own row alone if the read budget of the project is used up: the change is made. */
async function healthAfterChange(webhook: Webhook, caller: Identity, now: Date): Promise<Health> {
  try {
    return await meteredReads({ project: webhook.project_id, caller }, now, (reads) => readHealth(webhook, now, reads));
  } catch (error) {
    if (error instanceof ApiError && error.code === "rate_limited") return healthOf(webhook, NOTHING_READ, now);
    throw error;
  }
}

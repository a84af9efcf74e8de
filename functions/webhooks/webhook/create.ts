import { randomBytes } from "node:crypto";
import { created, defineEndpoint } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { settings } from "../../foundation/platform/env.ts";
import { parseCidrs } from "../receiver/receiver-address.ts";
import { createWebhook, toCreated, WEBHOOK_RANDOM_BYTES, webhookInput } from "./webhook.ts";
import * as webhooks from "./webhook-store.ts";

/** Creates a webhook of a project. This is the only response that contains the signing secret. */
export const handler = defineEndpoint(endpoints.createWebhook, {
  input: () => webhookInput(parseCidrs(settings.webhookAllowCidrs())),
  async run({ input, params, actor, onceOnly, now }) {
    const webhook = createWebhook(input, params.project_id, now, randomBytes(WEBHOOK_RANDOM_BYTES));
    const response = toCreated(webhook.webhook, webhook.secret);
    await webhooks.insert(webhook, actor, onceOnly(response));
    return created(response);
  },
});

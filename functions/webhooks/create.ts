import { randomBytes } from "node:crypto";
import { created, endpoint } from "../endpoint.ts";
import { settings } from "../platform/env.ts";
import { parseCidrs } from "./receiver-address.ts";
import { newWebhook, openWebhook, WEBHOOK_RANDOM_BYTES, withSecret } from "./webhook.ts";
import * as webhooks from "./webhook-store.ts";

/** Starts telling a URL about a project's deployments. This response is the only one that ever carries the secret. */
export const handler = endpoint("POST /v1/projects/{project_id}/webhooks", {
  input: () => newWebhook(parseCidrs(settings.webhookAllowCidrs())),
  async run({ input, params, now }) {
    const { webhook, secret } = openWebhook(input, params.project_id, now, randomBytes(WEBHOOK_RANDOM_BYTES));
    await webhooks.insert(webhook, secret);
    return created(withSecret(webhook, secret));
  },
});

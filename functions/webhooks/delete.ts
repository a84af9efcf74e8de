import { defineEndpoint, noContent } from "../http/define-endpoint.ts";
import { endpoints } from "../manifest/endpoints.ts";
import * as webhooks from "./webhook-store.ts";

/** Deletes a webhook. Its pending deliveries are canceled. */
export const handler = defineEndpoint(endpoints.deleteWebhook, {
  async run({ params, actor }) {
    await webhooks.remove(params.project_id, params.webhook_id, actor);
    return noContent();
  },
});

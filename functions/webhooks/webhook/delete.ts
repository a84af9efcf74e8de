import { defineEndpoint, noContent } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import * as webhooks from "./webhook-store.ts";

/** Deletes a webhook. Its pending deliveries are canceled. */
export const handler = defineEndpoint(endpoints.deleteWebhook, {
  async run({ params, actor }) {
    await webhooks.remove(params.project_id, params.webhook_id, actor);
    return noContent();
  },
});

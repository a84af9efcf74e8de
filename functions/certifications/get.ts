import { defineEndpoint, ok } from "../http/define-endpoint.ts";
import { requireNotSuspended } from "../webhooks/suspension.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { toResponse } from "./certification-presenter.ts";
import * as certifications from "./certification-store.ts";

/** Returns a certification, with its report when it has finished. */
export const handler = defineEndpoint(
  "GET /v1/projects/{project_id}/webhooks/{webhook_id}/certifications/{certification_id}",
  {
    async run({ params, now }) {
      const webhook = await webhooks.get(params.project_id, params.webhook_id);
      requireNotSuspended(webhook);
      return ok(toResponse(await certifications.get(webhook.id, params.certification_id), now));
    },
  },
);

import { defineEndpoint, ok } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import * as webhooks from "../../webhooks/webhook/webhook-store.ts";
import { toResponse } from "./certification-presenter.ts";
import * as certifications from "./certification-store.ts";

/** Returns a certification, with its report when it has finished. */
export const handler = defineEndpoint(endpoints.getCertification, {
  async run({ params, now }) {
    const webhook = await webhooks.getUnsuspended(params);
    return ok(toResponse(await certifications.get(webhook.id, params.certification_id), now));
  },
});

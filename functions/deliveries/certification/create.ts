import { randomBytes } from "node:crypto";
import { chargeRequest } from "../../foundation/budgets/request-budget-store.ts";
import { accepted, defineEndpoint } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { recordRequest } from "../../foundation/records/audit-store.ts";
import { requireOwn } from "../../webhooks/subscription/require-own.ts";
import * as webhooks from "../../webhooks/webhook/webhook-store.ts";
import { enqueue } from "../line/delivery-queue.ts";
import { createCertification } from "./certification.ts";
import { toResponse } from "./certification-presenter.ts";
import * as certifications from "./certification-store.ts";

/**
 * Starts the certification of a receiver, also of a disabled webhook. The slow sender sends the probes, because only
 * senders may read signing secrets.
 */
export const handler = defineEndpoint(endpoints.certifyWebhook, {
  async run({ params, actor, now }) {
    const webhook = await webhooks.getUnsuspended(params);
    requireOwn(webhook);
    await chargeRequest(webhook.project_id, "certify", now);
    const certification = createCertification(webhook.id, now, randomBytes(16));
    const details = { certification_id: certification.id };
    await recordRequest("webhook.certification_requested", actor, webhook, details, now);
    await certifications.insert(certification);
    const ids = { project_id: webhook.project_id, webhook_id: webhook.id, certification_id: certification.id };
    const refused = await enqueue([{ kind: "certify", ...ids }]);
    // Unlike a delivery, nothing would find the row later.
    if (refused.length > 0)
      throw new ApiError("service_unavailable", "The certification could not be started. Try again.");
    return accepted(toResponse(certification, now));
  },
});

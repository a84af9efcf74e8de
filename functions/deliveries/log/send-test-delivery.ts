import { randomUUID } from "node:crypto";
import { chargeRequest } from "../../foundation/budgets/request-budget-store.ts";
import { sampleWebhookEvent } from "../../foundation/events/sample-event.ts";
import { accepted, defineEndpoint } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { recordRequest } from "../../foundation/records/audit-store.ts";
import { requireOwn } from "../../webhooks/subscription/require-own.ts";
import * as webhooks from "../../webhooks/webhook/webhook-store.ts";
import { enter } from "../line/backlog.ts";
import { createDelivery } from "../line/delivery.ts";
import { testDeliveryInput, testedEvent, toListItem } from "./delivery-presenter.ts";

/**
 * Sends a sample of an event to which the webhook subscribes, in one attempt, even if it is disabled. The signature is
 * valid, so the signed body says that it is a test.
 */
export const handler = defineEndpoint(endpoints.sendTestDelivery, {
  input: testDeliveryInput,
  async run({ params, input, actor, now }) {
    const webhook = await webhooks.getUnsuspended(params);
    requireOwn(webhook);
    const name = testedEvent(input, webhook);
    await chargeRequest(webhook.project_id, "test", now);
    const sample = { projectId: webhook.project_id, id: randomUUID(), now };
    const event = sampleWebhookEvent(name, sample, { ...input.data, test: true });
    const delivery = createDelivery(event, webhook, now);
    const details = { delivery_id: delivery.id, event: delivery.event };
    await recordRequest("webhook.test_requested", actor, webhook, details, now);
    await enter(webhook, [{ delivery, due: now, isAsked: true }]);
    return accepted(toListItem({ ...delivery, next_attempt_at: now.toISOString() }, webhook, now));
  },
});

import { randomUUID } from "node:crypto";
import { chargeRequest } from "../access/request-budget-store.ts";
import { recordRequest } from "../audit/audit-store.ts";
import { sampleWebhookEvent } from "../deployments/sample-webhook-event.ts";
import { accepted, defineEndpoint } from "../http/define-endpoint.ts";
import { endpoints } from "../manifest/endpoints.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { enter, enteringNew } from "./backlog.ts";
import { createDelivery } from "./delivery.ts";
import { testDeliveryInput, testedEvent, toListItem } from "./delivery-presenter.ts";

/**
 * Sends a sample of an event to which the webhook subscribes, in one attempt, even if it is disabled. The signature is
 * valid, so the signed body says that it is a test.
 */
export const handler = defineEndpoint(endpoints.sendTestDelivery, {
  input: testDeliveryInput,
  async run({ params, input, actor, now }) {
    const webhook = await webhooks.getUnsuspended(params);
    const name = testedEvent(input, webhook);
    await chargeRequest(webhook.project_id, "test", now);
    const sample = { projectId: webhook.project_id, id: randomUUID(), now };
    const event = sampleWebhookEvent(name, sample, { test: true });
    const delivery = createDelivery(event, webhook, now);
    const details = { delivery_id: delivery.id, event: delivery.event };
    await recordRequest("webhook.test_requested", actor, webhook, details, now);
    await enter(webhook, [enteringNew(delivery, now, true)]);
    return accepted(toListItem({ ...delivery, next_attempt_at: now.toISOString() }, webhook, now));
  },
});

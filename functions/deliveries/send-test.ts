import { randomUUID } from "node:crypto";
import { deploymentEvent } from "../deployments/deployment-event.ts";
import { sampleEvent } from "../deployments/sample-event.ts";
import { accepted, endpoint } from "../endpoint.ts";
import { settings } from "../platform/env.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { openDelivery } from "./delivery.ts";
import { enqueue } from "./delivery-queue.ts";
import { testDelivery, toRecord } from "./delivery-resource.ts";
import * as deliveries from "./delivery-store.ts";

/** Sends a sample event to one webhook, whatever it subscribed to and even while it is disabled: one attempt, now. */
export const handler = endpoint("POST /v1/projects/{project_id}/webhooks/{webhook_id}/test", {
  input: testDelivery,
  async run({ params, input, now }) {
    const webhook = await webhooks.get(params.project_id, params.webhook_id);
    const sample = sampleEvent(input.event, { projectId: webhook.project_id, deploymentId: randomUUID(), now });
    const event = deploymentEvent(sample);
    const delivery = openDelivery(event, webhook, now, settings.deliveryGraceSeconds(), "test");
    await deliveries.insert(delivery);
    await enqueue([delivery]);
    return accepted(toRecord(delivery));
  },
});

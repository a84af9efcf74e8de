import { setTimeout as sleep } from "node:timers/promises";
import type { SQSBatchResponse, SQSEvent } from "aws-lambda";
import { type DeploymentEvent, readDeploymentEvent } from "../deployments/deployment-event.ts";
import { reject } from "../deployments/events-dlq.ts";
import { settings } from "../platform/env.ts";
import { log } from "../platform/log.ts";
import { sqsConsumer } from "../platform/sqs-consumer.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { createDelivery, type Delivery } from "./delivery.ts";
import { enqueue } from "./delivery-queue.ts";
import * as deliveries from "./delivery-store.ts";

/**
 * Turns each deployment event into one delivery per webhook that subscribed to it. Rows first, then messages, for all events
 * of a batch together (a message by itself costs as much as ten); the events are deleted only after both.
 */
export async function handler(batch: SQSEvent): Promise<SQSBatchResponse> {
  const inserted: Delivery[] = [];
  const work = sqsConsumer(async ({ body, messageId, attributes }) => {
    const message = readDeploymentEvent(body);
    if (message.ok) return fanOut(message.event, new Date(Number(attributes.SentTimestamp)), inserted);
    // It would fail the same way every time: straight to the dead letter queue, and out of the way of the others.
    await reject(body, message.reason);
    log.warn("event rejected", { message_id: messageId, reason: message.reason }, { rejectedEvents: 1 });
  })(batch);
  const send = () => enqueue(inserted.splice(0).filter(({ status }) => status === "pending"));
  // One project whose table is busy holds up the messages of the others for so long and no longer.
  await Promise.race([work, sleep(PATIENCE_MS, undefined, { ref: false })]);
  await send();
  const response = await work;
  await send();
  return response;
}

const PATIENCE_MS = 1_000;

/**
 * A row that exists already belongs to an event that was here before: its message is on its way, or the sweep will see that it
 * is missing.
 * @param inserted takes up the rows that were written, those of an event that fails and comes back too
 */
async function fanOut(event: DeploymentEvent, arrivedAt: Date, inserted: Delivery[]): Promise<void> {
  log.tag({ project_id: event.project_id, event: event.event, deployment_id: event.deployment_id });
  const graceSeconds = settings.deliveryGraceSeconds();
  const subscribed = (await webhooks.list(event.project_id)).filter(({ events }) => events.includes(event.event));
  const inserts = await Promise.allSettled(
    subscribed.map(async (webhook) => {
      const opened = createDelivery(event, webhook, new Date(), graceSeconds);
      const delivery = { ...opened, arrived_at: arrivedAt.toISOString() };
      if (await deliveries.insert(delivery)) inserted.push(delivery);
    }),
  );
  const failure = inserts.find((insert) => insert.status === "rejected");
  if (failure) throw failure.reason;
}

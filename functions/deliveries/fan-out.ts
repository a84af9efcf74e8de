import { setTimeout as sleep } from "node:timers/promises";
import type { SQSBatchResponse, SQSEvent } from "aws-lambda";
import { type DeploymentEvent, parseDeploymentEvent } from "../deployments/deployment-event.ts";
import { moveToDeadLetterQueue } from "../deployments/events-dlq.ts";
import { settings } from "../platform/env.ts";
import { log } from "../platform/log.ts";
import { sqsConsumer } from "../platform/sqs-consumer.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { createDelivery, type Delivery } from "./delivery.ts";
import { enqueue } from "./delivery-queue.ts";
import * as deliveries from "./delivery-store.ts";

/**
 * Creates one delivery for each deployment event and subscribed webhook. Inserts the rows first, then enqueues the
 * messages of all events of the batch together, because one message costs as much as ten. The events are deleted only
 * after both.
 */
export async function handler(batch: SQSEvent): Promise<SQSBatchResponse> {
  const inserted: Delivery[] = [];
  const work = sqsConsumer(async ({ body, messageId, attributes }) => {
    const message = parseDeploymentEvent(body);
    if (message.ok) {
      const receivedAt = new Date(Number(attributes.SentTimestamp));
      return fanOut(message.event, receivedAt, (delivery) => inserted.push(delivery));
    }
    // An invalid event would fail every time. Move it to the dead-letter queue at once, so that it does not delay
    // others.
    await moveToDeadLetterQueue(body, message.reason);
    log.warn("event rejected", { message_id: messageId, reason: message.reason }, { rejectedEvents: 1 });
  })(batch);
  const enqueueInserted = () => enqueue(inserted.splice(0).filter(({ status }) => status === "pending"));
  // Upper bound on how long an event with slow reads or writes delays the messages of the other events.
  await Promise.race([work, sleep(MAX_ENQUEUE_DELAY_MS, undefined, { ref: false })]);
  await enqueueInserted();
  const response = await work;
  await enqueueInserted();
  return response;
}

const MAX_ENQUEUE_DELAY_MS = 1_000;

/**
 * Inserts the deliveries of an event. A row that already exists was inserted for the same event before: its message is
 * already enqueued, or the sweep will enqueue it.
 * @param onInsert called for each inserted row, also when the insert of another row fails and the event is retried
 */
async function fanOut(event: DeploymentEvent, receivedAt: Date, onInsert: (delivery: Delivery) => void): Promise<void> {
  log.tag({ project_id: event.project_id, event: event.event, deployment_id: event.deployment_id });
  const graceSeconds = settings.deliveryGraceSeconds();
  const subscribed = (await webhooks.list(event.project_id)).filter(({ events }) => events.includes(event.event));
  const inserts = await Promise.allSettled(
    subscribed.map(async (webhook) => {
      const created = createDelivery(event, webhook, new Date(), graceSeconds);
      const delivery = { ...created, event_received_at: receivedAt.toISOString() };
      if (await deliveries.insert(delivery)) onInsert(delivery);
    }),
  );
  const failure = inserts.find((insert) => insert.status === "rejected");
  if (failure) throw failure.reason;
}

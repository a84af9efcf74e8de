import type { SQSBatchResponse, SQSEvent } from "aws-lambda";
import { type DeploymentEvent, parseDeploymentEvent } from "../deployments/deployment-event.ts";
import { moveToDeadLetterQueue } from "../deployments/events-dlq.ts";
import { settings } from "../platform/env.ts";
import { log } from "../platform/log.ts";
import { sqsConsumer } from "../platform/sqs-consumer.ts";
import { checkCircuit } from "../webhooks/circuit-breaker.ts";
import type { Webhook } from "../webhooks/webhook.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { createDelivery } from "./delivery.ts";
import { fitsInMessage, laneOf } from "./delivery-queue.ts";
import * as deliveries from "./delivery-store.ts";
import * as events from "./event-store.ts";
import { Outbox, type Outgoing } from "./outbox.ts";
import { ensureWakeUp } from "./parking-store.ts";

/**
 * Creates one delivery for each deployment event and subscribed webhook. The event is deleted only when its row exists
 * and each delivery is in a queue or in the table.
 */
export async function handler(batch: SQSEvent): Promise<SQSBatchResponse> {
  const outbox = new Outbox(batch.Records.length);
  return sqsConsumer(async ({ body, messageId, attributes }) => {
    const message = parseDeploymentEvent(body);
    if (!message.ok) {
      outbox.skip();
      // An invalid event would fail every time. Move it to the dead-letter queue at once, so that it does not delay
      // others.
      await moveToDeadLetterQueue(body, message.reason);
      log.warn("event rejected", { message_id: messageId, reason: message.reason }, { rejectedEvents: 1 });
      return;
    }
    const receipt = {
      receivedAt: new Date(Number(attributes.SentTimestamp)),
      messageId,
      isFirst: !(Number(attributes.ApproximateReceiveCount) > 1),
    };
    const [planned] = await Promise.allSettled([fanOut(message.event, receipt)]);
    const { outgoing, failure } =
      planned.status === "fulfilled" ? planned.value : { outgoing: [], failure: { error: planned.reason as unknown } };
    await outbox.add(outgoing);
    if (failure) throw failure.error;
  })(batch);
}

/** How the event arrived. */
interface Receipt {
  /** When SQS received the event, by the clock of SQS. */
  receivedAt: Date;
  messageId: string;
  /** Whether this is the first receive of the message. */
  isFirst: boolean;
}

/**
 * How long a delivery waits whose event was handed over before. Its first message usually ends it in this time, so that
 * a duplicate event leads to no second request.
 */
const DUPLICATE_DELAY_SECONDS = 30;

interface FanOut {
  /** The messages to send, also when the delivery to another webhook failed. */
  outgoing: Outgoing[];
  /** The first error; absent when all deliveries are planned. */
  failure?: { error: unknown };
}

/** Plans the deliveries of an event. */
async function fanOut(event: DeploymentEvent, { receivedAt, messageId, isFirst }: Receipt): Promise<FanOut> {
  log.tag({ project_id: event.project_id, event: event.event, deployment_id: event.deployment_id });
  const [found, row] = await Promise.all([
    webhooks.list(event.project_id),
    events.insert(event, receivedAt, messageId),
  ]);
  // The SDK may have repeated the insert. After another receive or with another message, deliveries may have been sent.
  const isNew = row === "inserted" || (row === "same message" && isFirst);
  const planned = await Promise.allSettled(
    found
      .filter(({ events: names }) => names.includes(event.event))
      .map((webhook) => planDelivery(event, webhook, receivedAt, isNew)),
  );
  const failure = planned.find((each) => each.status === "rejected");
  return {
    outgoing: planned.flatMap((each) => (each.status === "fulfilled" ? each.value : [])),
    ...(failure && { failure: { error: failure.reason as unknown } }),
  };
}

/**
 * Plans the delivery of an event to a webhook. A healthy webhook gets a message that carries the delivery. In all other
 * cases the row comes first. A row that exists already was inserted for the same event before: its message is enqueued,
 * or the sweep will enqueue it.
 */
async function planDelivery(
  event: DeploymentEvent,
  webhook: Webhook,
  receivedAt: Date,
  isNew: boolean,
): Promise<Outgoing[]> {
  const now = new Date();
  const delaySeconds = isNew ? 0 : DUPLICATE_DELAY_SECONDS;
  const created = createDelivery(event, webhook, now, settings.deliveryGraceSeconds() + delaySeconds);
  const delivery = { ...created, event_received_at: receivedAt.toISOString() };
  if (webhook.disabled_at !== undefined) {
    const result = await deliveries.insertHeld(delivery, webhook);
    if (result !== "changed") return [];
    const current = (await webhooks.list(webhook.project_id)).find(({ id }) => id === webhook.id);
    return current ? planDelivery(event, current, receivedAt, isNew) : [];
  }
  const circuit = checkCircuit(webhook, now);
  if (circuit.kind === "open") {
    await deliveries.insertParked(delivery, circuit.probeAt.toISOString());
    // Also for a row that exists: a crash after its insert left it without a wake-up.
    await ensureWakeUp(webhook, circuit.probeAt);
    return [];
  }
  const lane = laneOf(webhook);
  if (isNew && lane === "normal" && fitsInMessage(delivery)) return [{ kind: "first", delivery }];
  return (await deliveries.insert(delivery)) ? [{ kind: "due", delivery, lane, delaySeconds }] : [];
}

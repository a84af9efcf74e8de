import type { SQSBatchResponse, SQSEvent } from "aws-lambda";
import type { DeploymentEvent } from "../../foundation/events/deployment-event.ts";
import { moveToDeadLetterQueue } from "../../foundation/events/events-dlq.ts";
import { parseDeploymentEvent } from "../../foundation/events/parse-deployment-event.ts";
import { log } from "../../foundation/platform/log.ts";
import { allEnded } from "../../foundation/platform/parallel.ts";
import { sqsConsumer } from "../../foundation/platform/sqs-consumer.ts";
import { hasEnded } from "../../webhooks/subscription/subscription-store.ts";
import { receives } from "../../webhooks/webhook/event-filter.ts";
import * as webhooks from "../../webhooks/webhook/webhook-store.ts";
import * as events from "../feed/event-store.ts";
import { Outbox } from "./outbox.ts";
import { type PlannedDelivery, planDelivery } from "./plan-delivery.ts";

/**
 * Creates one delivery for each deployment event and webhook that receives it. The event is deleted only when its row exists
 * and each delivery is in a queue or in the table.
 */
export async function handler(batch: SQSEvent): Promise<SQSBatchResponse> {
  const outbox = new Outbox(batch.Records.length);
  const webhooksOf = oncePerProject(webhooks.list);
  return sqsConsumer(async ({ body, messageId, attributes }) => {
    const receivedAt = new Date(Number(attributes.SentTimestamp));
    const message = parseDeploymentEvent(body, receivedAt);
    if (!message.ok) {
      outbox.skip();
      // An invalid event would fail every time. Move it to the dead-letter queue at once, so that it does not delay
      // others.
      await moveToDeadLetterQueue(body, message.reason);
      log.warn("event rejected", { message_id: messageId, reason: message.reason }, { rejectedEvents: 1 });
      return;
    }
    const { changed } = message;
    if (changed !== undefined) log.warn("event changed", { message_id: messageId, changed });
    await outbox.add(plan(message.event, receivedAt, messageId, webhooksOf));
  })(batch);
}

/** Reads once for all events of a project in a batch. They were received before it, so none misses a webhook that existed then. */
function oncePerProject<Found>(read: (projectId: string) => Promise<Found>) {
  const found = new Map<string, Promise<Found>>();
  return (projectId: string): Promise<Found> => {
    const reading = found.get(projectId) ?? read(projectId);
    found.set(projectId, reading);
    return reading;
  };
}

/**
 * Stores an event and plans its deliveries.
 * @param receivedAt when SQS received the event, by the clock of SQS
 * @param webhooksOf reads the webhooks of a project
 */
async function plan(
  event: DeploymentEvent,
  receivedAt: Date,
  messageId: string,
  webhooksOf: typeof webhooks.list,
): Promise<PlannedDelivery[]> {
  log.tag({ project_id: event.project_id, event: event.event, deployment_id: event.deployment_id });
  const [found, isNew] = await allEnded([webhooksOf(event.project_id), events.insert(event, receivedAt, messageId)]);
  const now = new Date();
  const receivers = found.filter((webhook) => receives(webhook, event) && !hasEnded(webhook, now));
  return allEnded(receivers.map((webhook) => planDelivery(event, webhook, receivedAt, isNew ? "no" : "perhaps")));
}

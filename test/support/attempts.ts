import type { SQSEvent } from "aws-lambda";
import type { AttemptRequest } from "../../functions/attempts/attempt.ts";
import { createDelivery, type Delivery, type PendingDelivery } from "../../functions/deliveries/delivery.ts";
import type { DeliveryMessage, FirstAttempt, Lane } from "../../functions/deliveries/delivery-queue.ts";
import * as deliveries from "../../functions/deliveries/delivery-store.ts";
import { ensureWakeUp } from "../../functions/deliveries/parking-store.ts";
import { parseDeploymentEvent } from "../../functions/deployments/deployment-event.ts";
import { queueUrl } from "../../functions/platform/env.ts";
import type { Webhook } from "../../functions/webhooks/webhook.ts";
import { interceptDynamo, interceptSqs, type QueueBatch } from "./aws-calls.ts";
import { eventOf, sqsEvent } from "./deliveries.ts";

/** Returns the request for an attempt of a row, as the sender reads it from its message. */
export function attemptOf({ project_id, webhook_id, id, due_at }: Delivery, attempt = 1): AttemptRequest {
  return { project_id, webhook_id, delivery_id: id, attempt, ...(due_at !== undefined && { validUntil: due_at }) };
}

/** Creates a delivery that has no row, as fan-out puts it into a message. */
export function carriedDelivery(webhook: Webhook, at = new Date()): PendingDelivery {
  const message = parseDeploymentEvent(JSON.stringify(eventOf(webhook.project_id, { timestamp: at.toISOString() })));
  if (!message.ok) throw new Error(message.reason);
  return { ...createDelivery(message.event, webhook, at, 120), event_received_at: at.toISOString() };
}

/** Returns the message that carries a delivery. */
export const firstAttempt = (delivery: PendingDelivery): FirstAttempt => ({ kind: "first", delivery });

/** Returns the event of a message that is received for the second time. */
export function receivedAgain(message: unknown): SQSEvent {
  const { Records } = sqsEvent(message);
  return {
    Records: Records.map((record) => ({
      ...record,
      attributes: { ...record.attributes, ApproximateReceiveCount: "2" },
    })),
  };
}

export interface SentMessage {
  lane: Lane;
  delaySeconds: number;
  group: string;
  message: DeliveryMessage;
}

/** Records the messages to the senders that SQS accepts from now on, in order. */
export function watchMessages(): SentMessage[] {
  const seen: SentMessage[] = [];
  interceptSqs(async ({ command, input }, send) => {
    const output = await send();
    if (command !== "SendMessageBatchCommand") return output;
    const { QueueUrl, Entries } = input as unknown as QueueBatch & { QueueUrl: string };
    for (const { MessageBody, DelaySeconds, MessageGroupId } of Entries) {
      seen.push({
        lane: QueueUrl === queueUrl("slowDeliveries") ? "slow" : "normal",
        delaySeconds: DelaySeconds,
        group: MessageGroupId,
        message: JSON.parse(MessageBody),
      });
    }
    return output;
  });
  return seen;
}

/** Runs `before` in front of each write that records an attempt. It may throw. */
export function beforeRecords(before: () => Promise<void> | void): void {
  interceptDynamo(async ({ command, input }, send) => {
    const isUpdate = command === "UpdateItemCommand" && String(input.UpdateExpression).includes("attempts = :attempts");
    const isInsert = command === "PutItemCommand" && "attempts" in (input.Item as object);
    if (isUpdate || isInsert) await before();
    return send();
  });
}

/** Makes each write that records an attempt fail from now on. */
export const failRecords = (): void =>
  beforeRecords(() => {
    throw new Error("DynamoDB is unavailable");
  });

/** Stores parked deliveries of a webhook, planned a second apart, and its wake-up for `at`. @returns oldest first */
export async function givenParked(webhook: Webhook, count: number, at: Date): Promise<PendingDelivery[]> {
  const planned = Array.from({ length: count }, (_, index) =>
    carriedDelivery(webhook, new Date(Date.now() - 1_000 * (count - index))),
  );
  await Promise.all(planned.map((delivery) => deliveries.insertParked(delivery, at.toISOString())));
  await ensureWakeUp(webhook, at);
  return planned;
}

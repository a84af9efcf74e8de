import type { SQSEvent } from "aws-lambda";
import { enter } from "../../functions/deliveries/line/backlog.ts";
import type { Delivery } from "../../functions/deliveries/line/delivery.ts";
import type { DeliveryMessage, FirstAttempt } from "../../functions/deliveries/line/delivery-queue.ts";
import { readForRequest } from "../../functions/deliveries/line/delivery-store.ts";
import { newRequest, requested } from "../../functions/deliveries/line/delivery-transitions.ts";
import { makeAttempt } from "../../functions/deliveries/sending/attempt.ts";
import { handler as send } from "../../functions/deliveries/sending/send.ts";
import { handler as sendSlow } from "../../functions/deliveries/sending/send-slow.ts";
import type { QueueKey } from "../../functions/foundation/manifest/queues.ts";
import { queueUrl } from "../../functions/foundation/platform/env.ts";
import type { Webhook } from "../../functions/webhooks/webhook/webhook.ts";
import * as webhooks from "../../functions/webhooks/webhook/webhook-store.ts";
import { interceptDynamo, interceptSqs, type QueueBatch } from "./aws-calls.ts";
import { newDelivery, rowOf, sqsEvent, workCall } from "./deliveries.ts";

/** Returns the message that carries a delivery. */
export const firstAttempt = (delivery: Delivery): FirstAttempt => ({ kind: "first", delivery });

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

const left = (ms: number) => ({ getRemainingTimeInMillis: () => ms });

/** Passes messages to the sender of carried deliveries. Expects that none goes back to the queue. */
export async function carry(event: SQSEvent | Delivery, remainingMs = 60_000): Promise<void> {
  const batch = "Records" in event ? event : sqsEvent(firstAttempt(event));
  expect(await send(batch, left(remainingMs))).toEqual({ batchItemFailures: [] });
}

/** Calls the worker of a webhook. Expects that its message does not go back to the queue. */
export async function visitLine(webhook: Pick<Webhook, "project_id" | "id">, remainingMs = 60_000): Promise<void> {
  expect(await sendSlow(sqsEvent(workCall(webhook)), left(remainingMs))).toEqual({ batchItemFailures: [] });
}

/** Makes an attempt of a delivery now, as when its message carries it, whatever the state of its webhook. */
export async function attempt(delivery: Delivery): Promise<"accepted" | "failed" | "unrecorded"> {
  const { row, webhook, secrets } = await readForRequest(
    { webhook_id: delivery.webhook_id, id: delivery.id },
    delivery,
  );
  if (!webhook) throw new Error("The webhook is deleted.");
  return makeAttempt(row ?? delivery, webhook, secrets);
}

export interface SentMessage {
  queue: QueueKey;
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
        queue: QueueUrl === queueUrl("slowDeliveries") ? "slowDeliveries" : "deliveries",
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
    if (command === "PutItemCommand" && "attempts" in (input.Item as object)) await before();
    return send();
  });
}

/** Makes each write that records an attempt fail from now on, by default as in an outage. */
export const failRecords = (
  error: Error = Object.assign(new Error("DynamoDB is unavailable"), { $fault: "server" }),
): void =>
  beforeRecords(() => {
    throw error;
  });

/** Lets deliveries of a webhook wait that were planned a second apart, the last one a second ago. @returns oldest first */
export async function givenLine(webhook: Webhook, count: number): Promise<Delivery[]> {
  const planned = Array.from({ length: count }, (_, index) =>
    newDelivery(webhook, new Date(Date.now() - 1_000 * (count - index))),
  );
  const entering = planned.map((delivery) => ({ delivery, due: new Date(delivery.created_at) }));
  return (await enter(webhook, entering)).flatMap(({ row }) => row ?? []);
}

/** Requests a delivery again, as a user does. Returns its row. */
export async function requestAgain(
  delivery: Delivery,
  trigger: "redeliver" | "recover" = "redeliver",
): Promise<Delivery> {
  const webhook = await webhooks.get(delivery.project_id, delivery.webhook_id);
  const now = new Date();
  const transition = requested(trigger, newRequest(now));
  const [change] = await enter(webhook, [
    { delivery: await rowOf(delivery), due: now, isAsked: trigger === "redeliver", transition },
  ]);
  if (!change?.row) throw new Error("The delivery has no row.");
  return change.row;
}

import { randomBytes, randomUUID } from "node:crypto";
import { DeleteMessageBatchCommand, ReceiveMessageCommand, SendMessageCommand } from "@aws-sdk/client-sqs";
import { BatchWriteCommand, DeleteCommand, GetCommand, QueryCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import type { SQSEvent, SQSRecord } from "aws-lambda";
import { createDelivery, type Delivery, type PendingDelivery } from "../../functions/deliveries/delivery.ts";
import {
  type DeliveryMessage,
  type DueAttempt,
  readDeliveryMessage,
} from "../../functions/deliveries/delivery-queue.ts";
import * as deliveries from "../../functions/deliveries/delivery-store.ts";
import { findDue } from "../../functions/deliveries/due-index.ts";
import type { WakeUp } from "../../functions/deliveries/parking-store.ts";
import { parseDeploymentEvent } from "../../functions/deployments/deployment-event.ts";
import type { WebhookEventName } from "../../functions/deployments/webhook-event.ts";
import type { QueueKey } from "../../functions/manifest/queues.ts";
import { dynamo, sqs } from "../../functions/platform/aws.ts";
import { deadLetterUrl, queueUrl, tableName } from "../../functions/platform/env.ts";
import { logSink } from "../../functions/platform/log.ts";
import { messageBody } from "../../functions/platform/message-body.ts";
import { createWebhook, type Webhook } from "../../functions/webhooks/webhook.ts";
import { type SigningSecrets, signingSecrets } from "../../functions/webhooks/webhook-secret-store.ts";
import * as webhooks from "../../functions/webhooks/webhook-store.ts";
import { freshResources } from "./resources.ts";

/** Creates tables and queues for fan-out, send and sweep, and allows receivers on this machine. For `beforeAll`. */
export async function prepareDeliveries(): Promise<void> {
  await freshResources();
  logSink.write = () => {};
  process.env.WEBHOOK_ALLOW_CIDRS = "127.0.0.0/8,::1/128";
}

/** Stores a webhook and its secret. Defaults: a new project, the event `deploy.started`. */
export async function givenWebhook({
  url = "http://127.0.0.1:1/",
  projectId = randomUUID() as string,
  events = ["deploy.started"] as WebhookEventName[],
} = {}): Promise<{ webhook: Webhook; secret: string }> {
  const { webhook, secret } = createWebhook({ url, events }, projectId, new Date(), randomBytes(48));
  // Owners are notified at once that it is disabled only if it is older than ten minutes.
  const older = { ...webhook, created_at: "2026-01-01T00:00:00.000Z" };
  await webhooks.insert(older, secret);
  return { webhook: older, secret };
}

/** Writes attributes of a webhook directly, without validation. */
export async function changeWebhook(
  { project_id, id }: Pick<Webhook, "project_id" | "id">,
  values: Partial<Webhook>,
): Promise<void> {
  await setAttributes(tableName("webhooks"), { project_id, id }, values);
}

/**
 * Writes attributes of a webhook's secrets (`current`, `previous_1`, `previous_1_expires_at`, …), as a rotation would.
 */
export async function changeSecrets({ id }: Pick<Webhook, "id">, values: Record<string, string>): Promise<void> {
  await setAttributes(tableName("webhookSecrets"), { webhook_id: id }, values);
}

/** Writes attributes of a delivery directly, without conditions. */
export async function changeDelivery(
  { webhook_id, id }: Pick<Delivery, "webhook_id" | "id">,
  values: Partial<Delivery>,
): Promise<void> {
  await setAttributes(tableName("deliveries"), { webhook_id, id }, values);
}

/** Writes attributes of the wake-up of a webhook directly, without conditions. */
export async function changeWakeUp({ id }: Pick<Webhook, "id">, values: Partial<WakeUp>): Promise<void> {
  await setAttributes(tableName("deliveries"), { webhook_id: `wake-up:${id}`, id }, values);
}

async function setAttributes(TableName: string, Key: Record<string, string>, values: object): Promise<void> {
  const names = Object.keys(values);
  await dynamo().send(
    new UpdateCommand({
      TableName,
      Key,
      UpdateExpression: `SET ${names.map((_, index) => `#n${index} = :v${index}`).join(", ")}`,
      ExpressionAttributeNames: Object.fromEntries(names.map((name, index) => [`#n${index}`, name])),
      ExpressionAttributeValues: Object.fromEntries(Object.values(values).map((value, index) => [`:v${index}`, value])),
    }),
  );
}

/** Returns a deployment event as the pipeline sends it. */
export function eventOf(projectId: string, changes: object = {}): Record<string, unknown> {
  return {
    event: "deploy.started",
    project_id: projectId,
    deployment_id: randomUUID(),
    timestamp: new Date().toISOString(),
    data: { commit: "c0ffee" },
    ...changes,
  };
}

/** Returns a delivery as fan-out creates it at the time `at`. */
export function newDelivery(webhook: Webhook, at = new Date()): PendingDelivery {
  const message = parseDeploymentEvent(JSON.stringify(eventOf(webhook.project_id, { timestamp: at.toISOString() })));
  if (!message.ok) throw new Error(message.reason);
  return createDelivery(message.event, webhook, at, 120);
}

/**
 * Stores a delivery as fan-out would have done at the time `at`. With a status other than pending it has no due time,
 * as after its last attempt.
 */
export async function givenDelivery(
  webhook: Webhook,
  { at = new Date(), ...changes }: Partial<Delivery> & { at?: Date } = {},
) {
  const { next_attempt_at, due_at, due_shard, ...created } = newDelivery(webhook, at);
  const isFinished = changes.status !== undefined && changes.status !== "pending";
  const delivery: Delivery = { ...created, ...(!isFinished && { next_attempt_at, due_at, due_shard }), ...changes };
  await insert(delivery);
  return delivery;
}

/** Rows to be written, with the functions that settle their promises. */
const waiting: { delivery: Delivery; resolve: () => void; reject: (error: unknown) => void }[] = [];

/** Inserts a delivery. Those of concurrent calls are written in batches, for less CPU. */
function insert(delivery: Delivery): Promise<void> {
  return new Promise((resolve, reject) => {
    if (waiting.length === 0) setImmediate(flush);
    waiting.push({ delivery, resolve, reject });
  });
}

async function flush(): Promise<void> {
  const batch = waiting.splice(0, MAX_BATCH);
  if (waiting.length > 0) setImmediate(flush);
  try {
    await write(batch.map(({ delivery }) => delivery));
    for (const { resolve } of batch) resolve();
  } catch (error) {
    for (const { reject } of batch) reject(error);
  }
}

/** https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html */
const MAX_BATCH = 25;

async function write(rows: Delivery[]): Promise<void> {
  const [only] = rows;
  if (only && rows.length === 1) return void (await deliveries.insert(only));
  const RequestItems = { [tableName("deliveries")]: rows.map((Item) => ({ PutRequest: { Item } })) };
  const { UnprocessedItems = {} } = await dynamo().send(new BatchWriteCommand({ RequestItems }));
  if (Object.keys(UnprocessedItems).length > 0) throw new Error("Deliveries were not written.");
}

/** Sends an event to the events queue, as the pipeline does. */
export async function publish(event: object): Promise<void> {
  await sqs().send(new SendMessageCommand({ QueueUrl: queueUrl("events"), MessageBody: messageBody(event) }));
}

/** Returns the queue message for an attempt. */
export function dueAttempt({ project_id, webhook_id, id, due_at = "" }: Delivery, attempt = 1): DueAttempt {
  return { kind: "due", project_id, webhook_id, delivery_id: id, attempt, valid_until: due_at };
}

/**
 * Returns the event that Lambda passes to a queue's consumer. Texts are bodies, other values become JSON. Ids: `m0`, …
 */
export function sqsEvent(...messages: unknown[]): SQSEvent {
  const records = messages.map((message, index) => ({
    messageId: `m${index}`,
    body: typeof message === "string" ? message : JSON.stringify(message),
    attributes: {
      SentTimestamp: String(Date.now()),
      ApproximateFirstReceiveTimestamp: String(Date.now()),
      ApproximateReceiveCount: "1",
    },
  }));
  return { Records: records } as unknown as SQSEvent;
}

/** Returns the event that Lambda passes to fan-out for messages of the pipeline, each with an id of its own. */
export const pipelineBatch = (...events: unknown[]): SQSEvent => ({
  Records: events.map((event) => pipelineRecord(event)),
});

/**
 * Returns the record of one message of the pipeline.
 * @param receives how often SQS has delivered the message, this time included
 */
export function pipelineRecord(event: unknown, { messageId = randomUUID() as string, receives = 1 } = {}): SQSRecord {
  const [record] = sqsEvent(event).Records;
  if (!record) throw new Error("no record");
  return {
    ...record,
    messageId,
    attributes: { ...record.attributes, ApproximateReceiveCount: String(receives) },
  };
}

/** Reads the signing secrets of a webhook. */
export async function findSecrets(webhook_id: string): Promise<SigningSecrets | undefined> {
  const secret = { TableName: tableName("webhookSecrets"), Key: { webhook_id } };
  const { Item } = await dynamo().send(new GetCommand({ ...secret, ConsistentRead: true }));
  return Item && signingSecrets(Item);
}

export async function rowOf({ webhook_id, id }: Pick<Delivery, "webhook_id" | "id">): Promise<Delivery> {
  const row = await deliveries.find(webhook_id, id);
  if (!row) throw new Error(`No delivery has the id ${id}.`);
  return row;
}

/** Reads all delivery rows of a webhook. */
export async function rowsOf({ id }: Pick<Webhook, "id">): Promise<Delivery[]> {
  const { Items } = await dynamo().send(
    new QueryCommand({
      TableName: tableName("deliveries"),
      KeyConditionExpression: "webhook_id = :id",
      ExpressionAttributeValues: { ":id": id },
      ConsistentRead: true,
    }),
  );
  return Items as Delivery[];
}

/** Reads the wake-up of a webhook; undefined when it has none. */
export async function wakeUpOf({ id }: Pick<Webhook, "id">): Promise<WakeUp | undefined> {
  const wakeUp = { TableName: tableName("deliveries"), Key: { webhook_id: `wake-up:${id}`, id } };
  return (await dynamo().send(new GetCommand({ ...wakeUp, ConsistentRead: true }))).Item as WakeUp | undefined;
}

/** Deletes the wake-up of a webhook, so that later sweeps do not find it. */
export async function removeWakeUp({ id }: Pick<Webhook, "id">): Promise<void> {
  const Key = { webhook_id: `wake-up:${id}`, id };
  await dynamo().send(new DeleteCommand({ TableName: tableName("deliveries"), Key }));
}

/** Reads the ids of the rows of a shard in the `due` index. */
export async function dueIds(shard: number): Promise<string[]> {
  const farAhead = new Date("2999-01-01T00:00:00Z");
  return (await findDue(shard, farAhead, 1_000)).rows.map(({ id }) => id);
}

export interface QueueMessage {
  body: string;
  reason?: string | undefined;
}

/** Receives and deletes all visible messages of a queue. */
export async function takeMessages(queue: QueueKey, from: "queue" | "dead letters" = "queue"): Promise<QueueMessage[]> {
  const QueueUrl = from === "queue" ? queueUrl(queue) : deadLetterUrl(queue);
  const taken: QueueMessage[] = [];
  while (true) {
    const { Messages = [] } = await sqs().send(
      new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10, MessageAttributeNames: ["All"] }),
    );
    if (Messages.length === 0) return taken;
    taken.push(
      ...Messages.map(({ Body = "", MessageAttributes }) => ({
        body: Body,
        reason: MessageAttributes?.reason?.StringValue,
      })),
    );
    const Entries = Messages.map(({ ReceiptHandle }, index) => ({ Id: String(index), ReceiptHandle }));
    await sqs().send(new DeleteMessageBatchCommand({ QueueUrl, Entries }));
  }
}

/** Receives and deletes all visible messages of the senders' queues. */
export async function takeDeliveryMessages(): Promise<DeliveryMessage[]> {
  const taken = await Promise.all([takeMessages("deliveries"), takeMessages("slowDeliveries")]);
  return taken.flat().map(({ body }) => readDeliveryMessage(body));
}

/** Receives and deletes all visible messages of the senders' queues, which are for rows only. */
export async function takeDueAttempts(): Promise<DueAttempt[]> {
  const messages = [...(await takeMessages("deliveries")), ...(await takeMessages("slowDeliveries"))];
  return messages.map(({ body }) => JSON.parse(body));
}

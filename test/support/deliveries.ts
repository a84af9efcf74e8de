import { randomBytes, randomUUID } from "node:crypto";
import {
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
} from "@aws-sdk/client-sqs";
import { GetCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import type { SQSEvent, SQSRecord } from "aws-lambda";
import * as events from "../../functions/deliveries/feed/event-store.ts";
import { enter } from "../../functions/deliveries/line/backlog.ts";
import { type Place, placeOf, placePages, putPlace } from "../../functions/deliveries/line/backlog-store.ts";
import { change } from "../../functions/deliveries/line/change-delivery.ts";
import { createDelivery, type Delivery } from "../../functions/deliveries/line/delivery.ts";
import { type DeliveryMessage, readDeliveryMessage } from "../../functions/deliveries/line/delivery-queue.ts";
import * as deliveries from "../../functions/deliveries/line/delivery-store.ts";
import type { DeploymentEvent } from "../../functions/foundation/events/deployment-event.ts";
import { parseDeploymentEvent } from "../../functions/foundation/events/parse-deployment-event.ts";
import type { WebhookEventName } from "../../functions/foundation/events/webhook-event.ts";
import type { QueueKey } from "../../functions/foundation/manifest/queues.ts";
import { dynamo, sqs } from "../../functions/foundation/platform/aws.ts";
import { deadLetterUrl, queueUrl, tableName } from "../../functions/foundation/platform/env.ts";
import { logSink } from "../../functions/foundation/platform/log.ts";
import { messageBody } from "../../functions/foundation/platform/message-body.ts";
import type { EventFilter } from "../../functions/webhooks/webhook/event-filter.ts";
import type { WakeUp } from "../../functions/webhooks/webhook/wake-up-store.ts";
import { createWebhook, type Webhook } from "../../functions/webhooks/webhook/webhook.ts";
import { type SigningSecrets, signingSecrets } from "../../functions/webhooks/webhook/webhook-secret-store.ts";
import * as webhooks from "../../functions/webhooks/webhook/webhook-store.ts";
import type { WorkCall } from "../../functions/webhooks/webhook/worker-call.ts";
import { putAll } from "./put-all.ts";
import { freshResources } from "./resources.ts";
import { changeItem, itemsOf } from "./stored-items.ts";

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
  filter = undefined as EventFilter | undefined,
} = {}): Promise<{ webhook: Webhook; secret: string }> {
  const { webhook, secret } = createWebhook({ url, events, filter }, projectId, new Date(), randomBytes(48));
  // Owners are notified at once that it is disabled only if it is older than ten minutes.
  const older = { ...webhook, created_at: "2026-01-01T00:00:00.000Z" };
  await webhooks.insert({ webhook: older, secret });
  return { webhook: older, secret };
}

/** Writes attributes of a webhook directly, without validation. */
export async function changeWebhook(
  { project_id, id }: Pick<Webhook, "project_id" | "id">,
  values: Partial<Webhook>,
): Promise<void> {
  await changeItem("webhooks", { project_id, id }, values);
}

/**
 * Writes attributes of a webhook's secrets (`current`, `previous_1`, `previous_1_expires_at`, …), as a rotation would.
 */
export async function changeSecrets({ id }: Pick<Webhook, "id">, values: Record<string, string>): Promise<void> {
  await changeItem("webhookSecrets", { webhook_id: id }, values);
}

/** Writes attributes of the wake-up of a webhook directly, without conditions. */
export async function changeWakeUp(
  { project_id, id }: Pick<Webhook, "project_id" | "id">,
  values: Partial<WakeUp>,
): Promise<void> {
  await changeItem("backlog", { line: `wake-up#${id}`, entry: project_id }, values);
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

/** Returns an event as fan-out reads it. */
function parsed(event: object): DeploymentEvent {
  const message = parseDeploymentEvent(JSON.stringify(event));
  if (!message.ok) throw new Error(message.reason);
  return message.event;
}

/** Stores an event as fan-out does, without deliveries: as if their messages had been lost. */
export const givenEvent = (event: object, { receivedAt = new Date(), storedAt = new Date() } = {}): Promise<boolean> =>
  events.insert(parsed(event), receivedAt, randomUUID(), storedAt);

/** Returns a delivery as fan-out creates it at the time `at`. It has no row. */
export function newDelivery(webhook: Webhook, at = new Date()): Delivery {
  const event = parsed(eventOf(webhook.project_id, { timestamp: at.toISOString() }));
  return createDelivery(event, webhook, at, at);
}

/** Stores a delivery that was created at the time `at` and does not wait. Default status: succeeded. */
export async function givenDelivery(
  webhook: Webhook,
  { at = new Date(), ...changes }: Partial<Delivery> & { at?: Date } = {},
): Promise<Delivery> {
  const delivery: Delivery = { ...newDelivery(webhook, at), status: "succeeded", version: "given", ...changes };
  await insert(delivery);
  return delivery;
}

/**
 * Lets a delivery wait in the backlog, due at `due`. Its message to the worker is in the queue.
 * @param at when it was created; default: `due`
 */
export async function givenWaiting(
  webhook: Webhook,
  { due = new Date(), at = due, ...changes }: Partial<Delivery> & { due?: Date; at?: Date } = {},
): Promise<Delivery> {
  const delivery = { ...newDelivery(webhook, at), ...changes };
  const [entered] = await enter(webhook, [{ delivery, due }]);
  if (!entered?.row) throw new Error("The delivery has no row.");
  return entered.row;
}

/** Rows to be written, with the functions that settle their promises. */
const waiting: { delivery: Delivery; resolve: () => void; reject: (error: unknown) => void }[] = [];

/** Inserts a delivery. Those of concurrent calls are written together. */
function insert(delivery: Delivery): Promise<void> {
  return new Promise((resolve, reject) => {
    if (waiting.length === 0) setImmediate(flush);
    waiting.push({ delivery, resolve, reject });
  });
}

async function flush(): Promise<void> {
  const written = waiting.splice(0);
  try {
    await putAll(
      "deliveries",
      written.map(({ delivery }) => delivery),
    );
    for (const { resolve } of written) resolve();
  } catch (error) {
    for (const { reject } of written) reject(error);
  }
}

/** Sends an event to the events queue, as the pipeline does. */
export async function publish(event: object): Promise<void> {
  await sqs().send(new SendMessageCommand({ QueueUrl: queueUrl("events"), MessageBody: messageBody(event) }));
}

/** Returns the message that calls the worker of a webhook. */
export const workCall = ({ project_id, id }: Pick<Webhook, "project_id" | "id">): WorkCall => ({
  kind: "work",
  project_id,
  webhook_id: id,
});

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
  return (await itemsOf("deliveries", { webhook_id: id })) as Delivery[];
}

/** Reads the wake-up of a webhook; undefined when it has none. */
export async function wakeUpOf({ project_id, id }: Pick<Webhook, "project_id" | "id">): Promise<WakeUp | undefined> {
  const wakeUp = { TableName: tableName("backlog"), Key: { line: `wake-up#${id}`, entry: project_id } };
  return (await dynamo().send(new GetCommand({ ...wakeUp, ConsistentRead: true }))).Item as WakeUp | undefined;
}

/** Reads the places in the line of a webhook, in order. */
export async function placesOf({ id }: Pick<Webhook, "id">): Promise<Place[]> {
  const places: Place[] = [];
  for await (const page of placePages(id, 1_000)) places.push(...page);
  return places;
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

/** Makes all rows of a line due, and its wake-up if it has one, without a lease: as if their time had passed. */
export async function makeDue(webhook: Pick<Webhook, "project_id" | "id">): Promise<void> {
  const past = new Date(Date.now() - 60_000);
  for (const row of (await rowsOf(webhook)).filter(({ status }) => status === "pending")) {
    const place = placeOf(row, past);
    await putPlace(place);
    await change(row, (now) => now && { ...now, place: place.entry, next_attempt_at: place.due });
  }
  const wakeUp = await wakeUpOf(webhook);
  if (!wakeUp) return;
  const { lease_until, lease_id, ...rest } = wakeUp;
  await dynamo().send(new PutCommand({ TableName: tableName("backlog"), Item: { ...rest, due: past.toISOString() } }));
}

/** Counts the messages in the senders' queues: visible, delayed and in flight. */
export async function messagesLeft(): Promise<number> {
  const counts = await Promise.all(
    (["deliveries", "slowDeliveries"] as const).map(async (queue) => {
      const { Attributes = {} } = await sqs().send(
        new GetQueueAttributesCommand({ QueueUrl: queueUrl(queue), AttributeNames: ["All"] }),
      );
      const counted = Object.entries(Attributes).filter(([name]) => name.startsWith("ApproximateNumberOf"));
      return counted.reduce((sum, [, count]) => sum + Number(count), 0);
    }),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { DeleteMessageBatchCommand, ReceiveMessageCommand } from "@aws-sdk/client-sqs";
import { QueryCommand } from "@aws-sdk/lib-dynamodb";
import { createGateway } from "../bin/local/gateway.ts";
import { fromSources, invoke, type LambdaHandler } from "../bin/local/lambda.ts";
import { mintToken } from "../bin/local/mint-token.ts";
import { API_KEY_RANDOM_BYTES, createApiKey } from "../functions/api-keys/api-key.ts";
import * as apiKeys from "../functions/api-keys/api-key-store.ts";
import { createDelivery, DUE_SHARDS, type PendingDelivery } from "../functions/deliveries/delivery.ts";
import * as deliveries from "../functions/deliveries/delivery-store.ts";
import { scheduleDrain } from "../functions/deliveries/parking-store.ts";
import { createDeploymentEvent } from "../functions/deployments/deployment-event.ts";
import { metrics } from "../functions/manifest/metrics.ts";
import type { QueueKey } from "../functions/manifest/queues.ts";
import { type WorkerRow, workers } from "../functions/manifest/workers.ts";
import { dynamo, isConditionFailed, sqs } from "../functions/platform/aws.ts";
import { queueUrl, settings, tableName } from "../functions/platform/env.ts";
import { logSink } from "../functions/platform/log.ts";
import { handler as upsertMember } from "../functions/projects/upsert-member.ts";
import type { Webhook } from "../functions/webhooks/webhook.ts";
import * as webhooks from "../functions/webhooks/webhook-store.ts";
import { interceptDynamo, interceptSqs } from "../test/support/aws-calls.ts";
import { changeWebhook, dueAttempt, givenWebhook, publish, sqsEvent } from "../test/support/deliveries.ts";
import { freshResources } from "../test/support/resources.ts";
import { median } from "./harness.ts";
import { startEngines } from "./receivers.ts";

/*
 * Counts what the functions consume on AWS per call, while the real handlers run over the embedded engines:
 *
 *     node bench/units.ts     counts and writes bench/units.json
 *
 * Units of DynamoDB are those that the engine reports; test/bench/units.test.ts checks them against the rules of AWS. Requests
 * to SQS are counted as AWS bills them, by 64 KB of payload. Time is measured, on one thread, and is a lower bound of the
 * billed time of a Lambda.
 */

/** The usage of one call of a function. */
export interface Usage {
  /** DynamoDB request units: read, written to tables, written to indexes. */
  reads: number;
  writes: number;
  indexWrites: number;
  /** Requests to SQS by the function itself. */
  queueRequests: number;
  logLines: number;
  /** Log bytes as CloudWatch counts them, and the part of them that only serves the metrics. */
  logBytes: number;
  metricBytes: number;
  /** How often the function waits for AWS. Concurrent calls count once. */
  waits: number;
  /** CPU time of this thread; the median of all repeats. */
  cpuMs: number;
}

/** https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html: CloudWatch adds this to each event. */
export const LOG_EVENT_OVERHEAD_BYTES = 26;
const QUEUE_CHUNK_BYTES = 64 * 1024;

/** The fields of a log line that only serve its metrics. */
const METRIC_FIELDS = new Set(["_aws", "stage", ...Object.values(metrics).map(({ name }) => name as string)]);

const meters = new AsyncLocalStorage<Meter>();

class Meter {
  readonly usage: Usage = {
    ...{ reads: 0, writes: 0, indexWrites: 0, queueRequests: 0, logLines: 0, logBytes: 0, metricBytes: 0 },
    ...{ waits: 0, cpuMs: 0 },
  };
  #inFlight = 0;

  async wait<Result>(call: () => Promise<Result>): Promise<Result> {
    if (this.#inFlight === 0) this.usage.waits += 1;
    this.#inFlight += 1;
    try {
      return await call();
    } finally {
      this.#inFlight -= 1;
    }
  }

  count(command: string, consumed: Consumed[]): void {
    const isRead = /^(Get|BatchGet|Query)/.test(command);
    for (const { Table, GlobalSecondaryIndexes = {} } of consumed) {
      const inTable = Table?.CapacityUnits ?? 0;
      const inIndexes = Object.values(GlobalSecondaryIndexes).reduce((sum, index) => sum + index.CapacityUnits, 0);
      if (isRead) this.usage.reads += inTable + inIndexes;
      else this.usage.writes += inTable;
      if (!isRead) this.usage.indexWrites += inIndexes;
    }
  }

  countLine(line: object): void {
    const bytes = Buffer.byteLength(JSON.stringify(line));
    const plain = Object.entries(line).filter(([name]) => !METRIC_FIELDS.has(name));
    this.usage.logLines += 1;
    this.usage.logBytes += bytes + LOG_EVENT_OVERHEAD_BYTES;
    this.usage.metricBytes += bytes - Buffer.byteLength(JSON.stringify(Object.fromEntries(plain)));
  }
}

interface Consumed {
  Table?: { CapacityUnits: number };
  GlobalSecondaryIndexes?: Record<string, { CapacityUnits: number }>;
}

let isMetered = false;

function meterClients(): void {
  if (isMetered) return;
  isMetered = true;
  interceptDynamo(async ({ command, input }, send) => {
    const meter = meters.getStore();
    if (!meter) return send();
    try {
      const output = await meter.wait(() => send({ ...input, ReturnConsumedCapacity: "INDEXES" }));
      const { ConsumedCapacity } = output as { ConsumedCapacity?: Consumed | Consumed[] };
      if (!ConsumedCapacity) throw new Error("The DynamoDB engine did not report the consumed capacity");
      meter.count(command, [ConsumedCapacity].flat());
      return output;
    } catch (error) {
      // Any other failed call consumes units too. None should fail here.
      if (!isConditionFailed(error)) throw new Error(`${command} failed during the count`, { cause: error });
      // A write whose condition fails consumes the units of the stored item, at least one, and the error does not
      // report them. The only item here is at most the wake-up of a webhook, far smaller than 1 KB.
      meter.usage.writes += 1;
      throw error;
    }
  });
  interceptSqs(async ({ input }, send) => {
    const meter = meters.getStore();
    if (!meter) return send();
    const { Entries = [] } = input as { Entries?: { MessageBody?: string }[] };
    const bytes = Entries.reduce((sum, { MessageBody = "" }) => sum + Buffer.byteLength(MessageBody), 0);
    meter.usage.queueRequests += queueRequestsFor(bytes);
    return meter.wait(send);
  });
}

/** Returns the number of billed SQS requests for a payload: one per 64 KB, at least one. */
export const queueRequestsFor = (bytes: number): number => Math.max(1, Math.ceil(bytes / QUEUE_CHUNK_BYTES));

/** The function calls since the list was last cleared. */
const calls: { usage: Usage; eventBytes: number }[] = [];

const meteredLoad = async (file: string): Promise<LambdaHandler> => {
  const handler = await fromSources(file);
  return async (event, context) => {
    const { result, usage } = await measureUsage(() => handler(event, context));
    calls.push({ usage, eventBytes: Buffer.byteLength(JSON.stringify(event)) });
    return result;
  };
};

/**
 * Runs a function and counts its usage. The time is correct only when nothing else runs on this thread.
 * @returns the result of the function, and its usage
 */
export async function measureUsage<Result>(run: () => Promise<Result>): Promise<{ result: Result; usage: Usage }> {
  const meter = new Meter();
  const before = process.threadCpuUsage();
  const startedAt = performance.now();
  const result = await meters.run(meter, run);
  const { user, system } = process.threadCpuUsage(before);
  // The CPU clock of a thread is too coarse for a call that does not wait.
  meter.usage.cpuMs = meter.usage.waits === 0 ? performance.now() - startedAt : (user + system) / 1000;
  return { result, usage: meter.usage };
}

export type Units = Awaited<ReturnType<typeof countUnits>>;
export type RequestUnits = Units["requests"][number];

/**
 * Counts all units over the engines of AWS_ENDPOINT_URL_DYNAMODB and AWS_ENDPOINT_URL_SQS, in new tables.
 * @param receiverUrl of a receiver that responds with the status in the path
 * @param repeats how often each call is made. Counts must be equal each time; times are the median
 * @throws Error when two repeats of one call consume different units
 */
export async function countUnits({ receiverUrl, repeats }: { receiverUrl: string; repeats: number }) {
  // Loaded here because the CDK is large and most importers of this module do not need it.
  const { accessLogLine, countStage } = await import("./stage-units.ts");
  const { write } = logSink;
  await prepare();
  try {
    const requests = await countRequests(repeats, accessLogLine);
    const { fanOut, send, sizes } = await countDeliveries(receiverUrl, repeats);
    const { usage: rowFirst, sizes: rowFirstSizes } = await countRowFirst(receiverUrl, repeats);
    const parking = await countParking(receiverUrl);
    return {
      countedOn: new Date().toISOString().slice(0, 10),
      ...requests,
      fanOut,
      send,
      rowFirst,
      failedAttempts: await countFailures(receiverUrl),
      recovered: await countRecovery(receiverUrl),
      sweep: [await countSweep(0), await countSweep(10 * DUE_SHARDS)],
      parking,
      sizes: { ...sizes, ...rowFirstSizes, requestBytes: await countWireBytes() },
      stage: countStage(),
    };
  } finally {
    logSink.write = write;
  }
}

/** Creates tables and queues, applies the settings of a function on AWS, and counts log lines instead of writing them. */
export async function prepare(): Promise<void> {
  await freshResources();
  process.env.JWT_SECRET ??= randomBytes(32).toString("hex");
  process.env.STAGE = "prod";
  // Allows receivers on this machine, with plain http.
  process.env.WEBHOOK_ALLOW_CIDRS = "127.0.0.0/8,::1/128";
  meterClients();
  logSink.write = (level, line) => {
    const stamp = { timestamp: new Date().toISOString(), level: level.toUpperCase() };
    meters.getStore()?.countLine({ ...stamp, ...line });
  };
}

/** The one request that is priced. A new endpoint needs no entry here. */
export const PRICED_ROUTE = "GET /v1/projects";

/** A user with three projects and an API key, as a small customer has. */
interface Customer {
  token: string;
  key: string;
}

const PROJECTS = 3;

type AccessLogLine = (values: Record<string, string>) => string;

/** Counts the priced request with both credentials, and the authorizer when it also updates `last_used_at`. */
async function countRequests(repeats: number, accessLogLine: AccessLogLine) {
  const gateway = await createGateway(meteredLoad);
  gateway.listen(0, "127.0.0.1");
  await once(gateway, "listening");
  const baseUrl = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`;
  const count = (customer: Customer, credential: "jwt" | "key") =>
    countRequest(baseUrl, customer, credential, accessLogLine);
  try {
    const counted: Awaited<ReturnType<typeof countRequest>>[][] = [[], []];
    const firstUses: Usage[] = [];
    for (let repeat = 0; repeat < repeats; repeat++) {
      const customer = await createCustomer();
      firstUses.push((await count(customer, "key")).authorizer);
      counted[0]?.push(await count(customer, "jwt"));
      counted[1]?.push(await count(customer, "key"));
    }
    const requests = counted.map(([first, ...others]) => {
      if (!first) throw new Error("No request was counted");
      const all = [first, ...others];
      return {
        ...first,
        authorizer: medianOf(all.map(({ authorizer }) => authorizer)),
        endpoint: medianOf(all.map(({ endpoint }) => endpoint)),
      };
    });
    return { requests, keyFirstUse: medianOf(firstUses) };
  } finally {
    gateway.closeAllConnections();
    gateway.close();
  }
}

async function createCustomer(): Promise<Customer> {
  const userId = `user-${randomUUID()}`;
  for (let count = 0; count < PROJECTS; count++) {
    await upsertMember({ user_id: userId, project_id: randomUUID(), name: "Web shop, production", role: "admin" });
  }
  const random = randomBytes(API_KEY_RANDOM_BYTES);
  const { key, apiKey } = createApiKey(userId, { name: "deploy from CI" }, new Date(), random);
  await apiKeys.insert(apiKey);
  return { token: mintToken(process.env.JWT_SECRET ?? "", userId), key };
}

export const addWebhook = async (projectId: string, url: string): Promise<Webhook> =>
  (await givenWebhook({ projectId, url, events: ["deploy.succeeded", "deploy.failed"] })).webhook;

/** Returns a deployment event as the pipeline sends it. */
export function newEvent(projectId: string) {
  return {
    event: "deploy.succeeded" as const,
    project_id: projectId,
    deployment_id: randomUUID(),
    timestamp: new Date().toISOString(),
    data: { url: "https://web-shop-production.apps.example.com", status: "running" },
  };
}

/** Returns a delivery as fan-out creates it. */
export function newDelivery(webhook: Webhook, at = new Date()): PendingDelivery {
  const event = createDeploymentEvent(newEvent(webhook.project_id));
  const created = createDelivery(event, webhook, at, settings.deliveryGraceSeconds());
  return { ...created, event_received_at: at.toISOString() };
}

/** Returns the message of a first attempt, which carries the delivery. */
export const firstAttempt = (delivery: PendingDelivery) => ({ kind: "first", delivery });

/** Sends the priced request and counts what the authorizer and the endpoint use. */
async function countRequest(
  baseUrl: string,
  { token, key }: Customer,
  credential: "jwt" | "key",
  accessLogLine: AccessLogLine,
) {
  const [method = "", path = ""] = PRICED_ROUTE.split(" ");
  calls.length = 0;
  const response = await fetch(`${baseUrl}${path}`, {
    method,
    headers: { authorization: `Bearer ${credential === "jwt" ? token : key}` },
  });
  const text = await response.text();
  const [authorizer, endpoint] = calls.splice(0);
  if (!response.ok || !authorizer || !endpoint) throw new Error(`${PRICED_ROUTE} failed: ${text}`);
  const head = [...response.headers].reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0);
  const line = accessLogLine({
    httpMethod: method,
    resourcePath: path,
    path: `/prod${path}`,
    status: String(response.status),
    responseLength: String(Buffer.byteLength(text)),
    "authorizer.userId": `user-${randomUUID()}`,
    "authorizer.authType": credential === "jwt" ? "jwt" : "api_key",
    "authorizer.keyId": credential === "jwt" ? "-" : randomUUID(),
  });
  return {
    route: PRICED_ROUTE,
    credential,
    status: response.status,
    authorizer: authorizer.usage,
    endpoint: endpoint.usage,
    /** Status line, headers and body, without TLS and what API Gateway adds. */
    responseBytes: "HTTP/1.1 200 OK\r\n\r\n".length + head + Buffer.byteLength(text),
    /** The line of the access log. */
    accessLogBytes: Buffer.byteLength(line) + LOG_EVENT_OVERHEAD_BYTES,
    /** The event as JSON: the cost of logging it. */
    eventBytes: endpoint.eventBytes,
  };
}

const FAN_OUTS = [1, 10].flatMap((events) => [1, 10].map((webhooks) => ({ events, webhooks })));

/** Counts fan-outs, and successful first attempts of deliveries that their messages carry, by messages in the batch. */
async function countDeliveries(receiverUrl: string, repeats: number) {
  const fanOuts = FAN_OUTS.map((size) => ({ size, usage: [] as Usage[] }));
  const sends = [1, 10].map((messages) => ({ messages, usage: [] as Usage[] }));
  // Bytes of an event's message and row, of a message that carries a delivery, and of its row after its success.
  const sizes = { eventMessageBytes: 0, carriedMessageBytes: 0, eventRowBytes: 0, succeededRowBytes: 0 };
  for (let repeat = 0; repeat < repeats; repeat++) {
    for (const { size, usage } of fanOuts) {
      const projectId = randomUUID();
      const created = [];
      for (let count = 0; count < size.webhooks; count++)
        created.push(await addWebhook(projectId, `${receiverUrl}/200`));
      sizes.eventMessageBytes = await publishTo(projectId, size.events);
      usage.push((await consumeBatch("events")).usage);
      sizes.eventRowBytes = await rowBytes("events", "project_id", projectId);
      for (const batch of await drainQueue("deliveries")) {
        sends.find(({ messages }) => messages === batch.messages)?.usage.push(batch.usage);
        sizes.carriedMessageBytes = Math.round(batch.bytes / batch.messages);
      }
      sizes.succeededRowBytes = await rowBytes("deliveries", "webhook_id", created[0]?.id ?? "");
    }
  }
  return {
    fanOut: fanOuts.map(({ size, usage }) => ({ ...size, usage: medianOf(usage) })),
    send: sends.map(({ messages, usage }) => ({ messages, usage: medianOf(usage) })),
    sizes,
  };
}

/** Sends new events to the events queue, as the pipeline does. @returns the size of one, in bytes */
async function publishTo(projectId: string, count: number): Promise<number> {
  for (let sent = 0; sent < count; sent++) await publish(newEvent(projectId));
  return Buffer.byteLength(JSON.stringify(newEvent(projectId)));
}

/** Counts ten deliveries of a slow webhook: their rows are written first, and the slow senders send them. */
async function countRowFirst(receiverUrl: string, repeats: number) {
  const usage = { fanOut: [] as Usage[], send: [] as Usage[] };
  const sizes = { pendingRowBytes: 0, dueMessageBytes: 0 };
  for (let repeat = 0; repeat < repeats; repeat++) {
    const webhook = await addWebhook(randomUUID(), `${receiverUrl}/200`);
    await webhooks.markSlow(webhook, new Date().toISOString());
    await publishTo(webhook.project_id, 10);
    usage.fanOut.push((await consumeBatch("events")).usage);
    sizes.pendingRowBytes = await rowBytes("deliveries", "webhook_id", webhook.id);
    const batch = await consumeBatch("slowDeliveries");
    usage.send.push(batch.usage);
    sizes.dueMessageBytes = Math.round(batch.bytes / batch.messages);
  }
  return { usage: { fanOut: medianOf(usage.fanOut), send: medianOf(usage.send) }, sizes };
}

const PARKED_ROWS = 100;

/**
 * Counts the parking of a webhook that has failed for an hour, and what happens to it once the receiver is back: a fan-out of
 * one event that creates the wake-up, one of ten events, a probe that fails, a wake-up that sends all, and one that finds none.
 */
async function countParking(receiverUrl: string) {
  const webhook = await addWebhook(randomUUID(), `${receiverUrl}/500`);
  const { project_id, id } = webhook;
  await webhooks.markFailing(webhook, new Date(Date.now() - 3_600_000).toISOString());
  const fanOut = async (events: number) => {
    await publishTo(project_id, events);
    return (await consumeBatch("events")).usage;
  };
  const first = await fanOut(1);
  const more: Usage[] = [];
  for (let parked = 0; parked < PARKED_ROWS; parked += 10) more.push(await fanOut(10));
  const probe = (await consumeBatch("slowDeliveries")).usage;
  // A new URL closes the circuit. The first row is no longer parked: the probe was its attempt.
  await webhooks.update(project_id, id, { url: `${receiverUrl}/200` }, new Date().toISOString());
  const wakeUp = async () => {
    await scheduleDrain(webhook, new Date());
    return (await consumeBatch("slowDeliveries")).usage;
  };
  const drain = { rows: PARKED_ROWS, usage: await wakeUp() };
  return { first, fanOut: medianOf(more), probe, drain, empty: await wakeUp() };
}

interface Batch {
  messages: number;
  bytes: number;
  usage: Usage;
}

/** Passes all messages of a queue to its consumer in batches, as Lambda does, and deletes them. */
async function drainQueue(queue: QueueKey): Promise<Batch[]> {
  const row = (workers as readonly WorkerRow[]).find(
    ({ trigger }) => trigger.kind === "queue" && trigger.queue === queue,
  );
  if (row?.trigger.kind !== "queue") throw new Error(`No worker consumes ${queue}`);
  const QueueUrl = queueUrl(queue);
  const MaxNumberOfMessages = row.trigger.batchSize;
  const batches: Batch[] = [];
  while (true) {
    const receive = new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages, MessageSystemAttributeNames: ["All"] });
    const { Messages = [] } = await sqs().send(receive);
    if (Messages.length === 0) return batches;
    const texts = Messages.map(({ Body = "" }) => Body);
    batches.push({
      messages: Messages.length,
      bytes: texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0),
      usage: await call(row.file, sqsEvent(...texts)),
    });
    const Entries = Messages.map(({ ReceiptHandle }, index) => ({ Id: String(index), ReceiptHandle }));
    await sqs().send(new DeleteMessageBatchCommand({ QueueUrl, Entries }));
  }
}

/** Like `drainQueue`. @throws Error unless all messages are in one batch */
async function consumeBatch(queue: QueueKey): Promise<Batch> {
  const [batch, ...others] = await drainQueue(queue);
  if (!batch || others.length > 0)
    throw new Error(`Expected one batch of ${queue}, got ${others.length + (batch ? 1 : 0)}`);
  return batch;
}

/**
 * Calls a worker as Lambda does.
 * @returns its usage
 * @throws Error when it reports messages as failed
 */
export async function call(file: WorkerRow["file"], event: unknown): Promise<Usage> {
  const { timeoutSeconds = 0 } = (workers as readonly WorkerRow[]).find((row) => row.file === file) ?? {};
  calls.length = 0;
  const result = await invoke(await meteredLoad(file), event, { functionName: file, timeoutSeconds });
  const { batchItemFailures = [] } = (result ?? {}) as { batchItemFailures?: unknown[] };
  if (batchItemFailures.length > 0) throw new Error(`${file} failed on ${batchItemFailures.length} messages`);
  const [counted] = calls.splice(0);
  if (!counted) throw new Error(`${file} was not counted`);
  return counted.usage;
}

/** Returns the size of the first row of a partition, in bytes. */
async function rowBytes(table: "events" | "deliveries", partitionKey: string, value: string): Promise<number> {
  const { Items: [row] = [] } = await dynamo().send(
    new QueryCommand({
      TableName: tableName(table),
      KeyConditionExpression: `${partitionKey} = :value`,
      ExpressionAttributeValues: { ":value": value },
      Limit: 1,
      ConsistentRead: true,
    }),
  );
  if (!row) throw new Error(`The table ${table} has no row of ${value}`);
  return itemBytes(row);
}

/**
 * Computes the size of an item in DynamoDB, in bytes: names and values in UTF-8, numbers by their digits, three bytes for a list
 * or map and one for each of its members.
 * https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
 */
export function itemBytes(item: Record<string, unknown>): number {
  return Object.entries(item).reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + valueBytes(value), 0);
}

function valueBytes(value: unknown): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  if (typeof value === "number") return Math.ceil(String(Math.abs(value)).replace(/\.|0+$/g, "").length / 2) + 1;
  if (Array.isArray(value)) return value.reduce((sum: number, each) => sum + 1 + valueBytes(each), 3);
  if (typeof value === "object" && value !== null) return 3 + itemBytes(value as never) + Object.keys(value).length;
  return 1;
}

/** Counts all attempts of a delivery that always fails, each in a batch of one, without the waits of the schedule. */
async function countFailures(receiverUrl: string): Promise<Usage[]> {
  const delivery = newDelivery(await addWebhook(randomUUID(), `${receiverUrl}/500`));
  const usage: Usage[] = [];
  let message: object = firstAttempt(delivery);
  for (let attempt = 1; ; attempt++) {
    usage.push(await call("attempts/send", sqsEvent(message)));
    const row = await deliveries.find(delivery.webhook_id, delivery.id);
    if (row?.attempt_count !== attempt) throw new Error(`Attempt ${attempt} was not recorded`);
    if (row.status !== "pending") return usage;
    message = dueAttempt(row, attempt + 1);
  }
}

/** Counts a second attempt that succeeds. */
async function countRecovery(receiverUrl: string): Promise<Usage> {
  const webhook = await addWebhook(randomUUID(), `${receiverUrl}/500`);
  const delivery = newDelivery(webhook);
  await call("attempts/send", sqsEvent(firstAttempt(delivery)));
  // Changes the row directly: an update by the API would also mark the webhook as healthy.
  await changeWebhook(webhook, { url: `${receiverUrl}/200` });
  return call("attempts/send", sqsEvent(dueAttempt(delivery, 2)));
}

/** Counts a sweep that finds `rows` due rows, spread evenly over the shards. */
async function countSweep(rows: number) {
  const webhook = await addWebhook(randomUUID(), "https://hooks.example.com/deployments/production");
  const anHourAgo = new Date(Date.now() - 3_600_000);
  for (let count = 0; count < rows; count++) {
    await deliveries.insert({ ...newDelivery(webhook, anHourAgo), due_shard: count % DUE_SHARDS });
  }
  return { rows, usage: await call("deliveries/sweep", {}) };
}

/** Counts the bytes of one request to a receiver, without TLS. */
async function countWireBytes(): Promise<number> {
  let bytes = 0;
  const receiver = http.createServer((request, response) => {
    request.resume().once("end", () => {
      bytes = request.socket.bytesRead;
      response.end("ok");
    });
  });
  receiver.listen(0, "127.0.0.1");
  await once(receiver, "listening");
  const { port } = receiver.address() as AddressInfo;
  const webhook = await addWebhook(randomUUID(), `http://127.0.0.1:${port}/deployments/production`);
  await call("attempts/send", sqsEvent(firstAttempt(newDelivery(webhook))));
  receiver.closeAllConnections();
  receiver.close();
  return bytes;
}

/** Returns the counts with the median time. @throws Error when the counts differ */
function medianOf(usage: Usage[]): Usage {
  const [first] = usage;
  if (!first) throw new Error("No call was counted");
  for (const each of usage.slice(1)) {
    for (const name of ["reads", "writes", "indexWrites", "queueRequests", "logLines"] as const) {
      if (each[name] !== first[name]) throw new Error(`Equal calls consumed ${first[name]} and ${each[name]} ${name}`);
    }
  }
  return { ...first, cpuMs: Number(median(usage.map(({ cpuMs }) => cpuMs)).toFixed(2)) };
}

const unitsFile = join(import.meta.dirname, "units.json");

export const readUnits = (): Units => JSON.parse(readFileSync(unitsFile, "utf8"));

const REPEATS = 15;

if (import.meta.main) {
  const engines = await startEngines();
  try {
    const units = await countUnits({ receiverUrl: engines.origin, repeats: REPEATS });
    writeFileSync(unitsFile, `${JSON.stringify(units, undefined, 2)}\n`);
    console.log("Wrote bench/units.json.");
  } finally {
    await engines.end();
  }
}

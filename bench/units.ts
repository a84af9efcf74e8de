import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { DeleteMessageBatchCommand, ReceiveMessageCommand } from "@aws-sdk/client-sqs";
import { mintToken } from "../bin/command/mint-token.ts";
import { createGateway } from "../bin/emulator/gateway.ts";
import { fromSources, invoke, type LambdaHandler } from "../bin/emulator/lambda.ts";
import { placeOf, putPlace } from "../functions/deliveries/line/backlog-store.ts";
import { change } from "../functions/deliveries/line/change-delivery.ts";
import { createDelivery, type Delivery } from "../functions/deliveries/line/delivery.ts";
import * as deliveryStore from "../functions/deliveries/line/delivery-store.ts";
import { createDeploymentEvent } from "../functions/foundation/events/deployment-event.ts";
import type { QueueKey } from "../functions/foundation/manifest/queues.ts";
import { type WorkerRow, workerRows } from "../functions/foundation/manifest/workers.ts";
import { isConditionFailed, sqs } from "../functions/foundation/platform/aws.ts";
import { queueUrl } from "../functions/foundation/platform/env.ts";
import { logSink } from "../functions/foundation/platform/log.ts";
import { inParallel } from "../functions/foundation/platform/parallel.ts";
import { API_KEY_RANDOM_BYTES, createApiKey } from "../functions/identity/api-keys/api-key.ts";
import * as apiKeys from "../functions/identity/api-keys/api-key-store.ts";
import { handler as upsertMember } from "../functions/identity/members/upsert-member.ts";
import * as receiverState from "../functions/webhooks/webhook/receiver-state-store.ts";
import { DUE_SHARDS, wake } from "../functions/webhooks/webhook/wake-up-store.ts";
import type { Webhook } from "../functions/webhooks/webhook/webhook.ts";
import * as webhooks from "../functions/webhooks/webhook/webhook-store.ts";
import { interceptDynamo, interceptSqs } from "../test/support/aws-calls.ts";
import { changeWebhook, givenWebhook, publish, sqsEvent } from "../test/support/deliveries.ts";
import { freshResources } from "../test/support/resources.ts";
import { median } from "./harness.ts";
import { startEngines } from "./receivers.ts";
import written from "./units.json" with { type: "json" };

/*
 * Counts what the functions consume on AWS per call, while the real handlers run over the embedded engines:
 *
 *     node bench/units.ts     counts and writes bench/units.json
 *
 * Units of DynamoDB are those that the engine reports; test/cost/units.test.ts checks them against the rules of AWS. Requests
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
  /** Log bytes as CloudWatch counts them. */
  logBytes: number;
  /** How often the function waits for AWS. Concurrent calls count once. */
  waits: number;
  /** CPU time of this thread; the median of all repeats. */
  cpuMs: number;
}

/** The counted units. The names of the calls are those of the flows below. */
export type Units = typeof written;

export const readUnits = (): Units => written;

/** Returns the usage of all attempts of a delivery that is given up, in their order. */
export const failedAttempts = ({ calls }: Units): Usage[] =>
  Object.entries(calls).flatMap(([name, usage]) => (/^fail\d+$/.test(name) ? [usage] : []));

/** https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html: CloudWatch adds this to each event. */
export const LOG_EVENT_OVERHEAD_BYTES = 26;
const QUEUE_CHUNK_BYTES = 64 * 1024;

const meters = new AsyncLocalStorage<Meter>();

class Meter {
  readonly usage: Usage = {
    ...{ reads: 0, writes: 0, indexWrites: 0, queueRequests: 0, logBytes: 0, waits: 0, cpuMs: 0 },
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
    // On a busy machine a receiver may take two seconds, which marks its webhook as slow. That is part of no flow, and the
    // deliveries that follow would wait.
    if (String(input.UpdateExpression).includes("slow_since")) return {};
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

/** The usage of the function calls since the list was last cleared. */
const calls: Usage[] = [];

/** Loads a function. Its calls are counted; the time is correct only when nothing else runs on this thread. */
const meteredLoad = async (id: string): Promise<LambdaHandler> => {
  const handler = await fromSources(id);
  return async (event, context) => {
    const meter = new Meter();
    const before = process.threadCpuUsage();
    const startedAt = performance.now();
    const result = await meters.run(meter, () => handler(event, context));
    const { user, system } = process.threadCpuUsage(before);
    // The CPU clock of a thread is too coarse for a call that does not wait.
    meter.usage.cpuMs = meter.usage.waits === 0 ? performance.now() - startedAt : (user + system) / 1000;
    calls.push(meter.usage);
    return result;
  };
};

/**
 * Counts all units over the engines of AWS_ENDPOINT_URL_DYNAMODB and _SQS, in new tables.
 * @param receiverUrl of a receiver that responds with the status in the path
 * @param repeats how often each flow that is not slow runs. Counts must be equal each time; times are the median
 * @throws Error when two repeats of one call consume different units
 */
export async function countUnits({ receiverUrl, repeats }: { receiverUrl: string; repeats: number }) {
  // Loaded here because the CDK is large and most importers of this module do not need it.
  const { countStage } = await import("./stage-units.ts");
  const { write } = logSink;
  const samples: Record<string, Usage[]> = {};
  const sizes: Record<string, number> = {};
  const tally: Tally = {
    count(call, usage) {
      samples[call] = [...(samples[call] ?? []), usage];
    },
    size(what, bytes) {
      sizes[what] = bytes;
    },
  };
  await prepare();
  try {
    // First, while no other wake-up exists.
    await sweeps(tally, receiverUrl);
    for (const flow of [requests, deliveries, waiting, recovery])
      for (let repeat = 0; repeat < repeats; repeat++) await flow(tally, receiverUrl);
    for (const flow of [failures, wireBytes]) await flow(tally, receiverUrl);
    const counted = Object.entries(samples).map(([name, usage]) => [name, medianOf(name, usage)] as const);
    const countedOn = new Date().toISOString().slice(0, 10);
    return { countedOn, calls: Object.fromEntries(counted), sizes, stage: countStage() };
  } finally {
    logSink.write = write;
  }
}

/** Creates tables and queues, applies the settings of a function on AWS, and counts log lines instead of writing them. */
async function prepare(): Promise<void> {
  await freshResources();
  process.env.JWT_SECRET ??= randomBytes(32).toString("hex");
  process.env.STAGE = "prod";
  // Allows receivers on this machine, with plain http.
  process.env.WEBHOOK_ALLOW_CIDRS = "127.0.0.0/8,::1/128";
  meterClients();
  logSink.write = (level, line) => {
    const meter = meters.getStore();
    const stamped = { timestamp: new Date().toISOString(), level: level.toUpperCase(), ...line };
    if (meter) meter.usage.logBytes += Buffer.byteLength(JSON.stringify(stamped)) + LOG_EVENT_OVERHEAD_BYTES;
  };
}

/** What a flow reports: the usage of calls, and sizes in bytes. */
interface Tally {
  count(call: string, usage: Usage): void;
  size(what: string, bytes: number): void;
}

/** Makes calls of functions as they happen on AWS. */
type Flow = (tally: Tally, receiverUrl: string) => Promise<void>;

/** The one request that is priced. A new endpoint needs no entry here. */
const PRICED_PATH = "/v1/projects";

/** The priced request of a user with three projects, as a small customer has, with both credentials. */
const requests: Flow = async ({ count, size }) => {
  const { accessLogLine } = await import("./stage-units.ts");
  const userId = `user-${randomUUID()}`;
  for (let project = 0; project < 3; project++)
    await upsertMember({ user_id: userId, project_id: randomUUID(), name: "Web shop, production", role: "admin" });
  const random = randomBytes(API_KEY_RANDOM_BYTES);
  const { key, apiKey } = createApiKey(userId, { name: "deploy from CI" }, new Date(), random);
  await apiKeys.insert(apiKey);
  const gateway = (await createGateway(meteredLoad)).listen(0, "127.0.0.1");
  await once(gateway, "listening");
  const { port } = gateway.address() as AddressInfo;
  const send = async (credential: string) => {
    calls.length = 0;
    const headers = { authorization: `Bearer ${credential}` };
    const response = await fetch(`http://127.0.0.1:${port}${PRICED_PATH}`, { headers });
    const text = await response.text();
    const [authorizer, endpoint] = calls;
    if (!response.ok || !authorizer || !endpoint) throw new Error(`${PRICED_PATH} failed: ${text}`);
    return { authorizer, endpoint, response, bodyBytes: Buffer.byteLength(text) };
  };
  try {
    // The first use of a key is written. It is not priced.
    await send(key);
    for (const [name, credential] of [
      ["jwt", mintToken(process.env.JWT_SECRET ?? "", userId)],
      ["key", key],
    ] as const) {
      const { authorizer, endpoint, response, bodyBytes } = await send(credential);
      count(`${name}Authorizer`, authorizer);
      count(`${name}Endpoint`, endpoint);
      const head = [...response.headers].reduce((sum, [header, value]) => sum + header.length + value.length + 4, 0);
      // Status line, headers and body, without TLS and what API Gateway adds.
      size("responseBytes", "HTTP/1.1 200 OK\r\n\r\n".length + head + bodyBytes);
      const line = accessLogLine({
        resourcePath: PRICED_PATH,
        path: `/prod${PRICED_PATH}`,
        responseLength: String(bodyBytes),
        "authorizer.userId": userId,
        "authorizer.authType": name === "jwt" ? "jwt" : "api_key",
        "authorizer.keyId": name === "jwt" ? "-" : apiKey.id,
      });
      size(`${name}AccessLogBytes`, Buffer.byteLength(line) + LOG_EVENT_OVERHEAD_BYTES);
    }
  } finally {
    gateway.closeAllConnections();
    gateway.close();
  }
};

const addWebhook = async (projectId: string, url: string): Promise<Webhook> =>
  (await givenWebhook({ projectId, url, events: ["deploy.succeeded", "deploy.failed"] })).webhook;

/** Returns a deployment event as the pipeline sends it. */
const newEvent = (projectId: string) => ({
  event: "deploy.succeeded" as const,
  project_id: projectId,
  deployment_id: randomUUID(),
  timestamp: new Date().toISOString(),
  data: { url: "https://web-shop-production.apps.example.com", status: "running" },
});

/** Returns a delivery as fan-out creates it. */
function newDelivery(webhook: Webhook): Delivery {
  const at = new Date();
  return createDelivery(createDeploymentEvent(newEvent(webhook.project_id)), webhook, at, at);
}

/** Returns the message of a first attempt, which carries the delivery. */
const firstAttempt = (delivery: Delivery) => ({ kind: "first", delivery });

/** Sends new events to the events queue, as the pipeline does, and calls fan-out. */
async function fanOut(projectId: string, events: number): Promise<Usage> {
  for (let sent = 0; sent < events; sent++) await publish(newEvent(projectId));
  return consumeBatch("events");
}

/** Fan-outs, and successful first attempts of deliveries that their messages carry; last, an event that no filter matches. */
const deliveries: Flow = async ({ count }, receiverUrl) => {
  for (const size of ["1x1", "1x10", "10x1", "10x10"]) {
    const [events = 0, webhookCount = 0] = size.split("x").map(Number);
    const projectId = randomUUID();
    for (let webhook = 0; webhook < webhookCount; webhook++) await addWebhook(projectId, `${receiverUrl}/200`);
    count(`fanOut${size}`, await fanOut(projectId, events));
    const sent = await drainQueue("deliveries");
    // Which webhooks share a batch of a hundred deliveries depends on the queue.
    if (size === "10x10") continue;
    for (const { messages, usage } of sent) count(size === "10x1" ? "send10OfOne" : `send${messages}`, usage);
  }
  const filtered = await addWebhook(randomUUID(), `${receiverUrl}/200`);
  await changeWebhook(filtered, { filter: { environment: ["production"] } });
  count("fanOutFiltered", await fanOut(filtered.project_id, 1));
};

/** Lets the worker of a webhook look at its line. Messages that call it are not consumed: many of them are delayed. */
const visit = ({ project_id, id }: Webhook): Promise<Usage> =>
  call("attempts-send-slow", sqsEvent({ kind: "work", project_id, webhook_id: id }));

/** Deliveries of a slow webhook, which wait in its line: one that nothing precedes, and ten while a look is planned. */
const waiting: Flow = async ({ count }, receiverUrl) => {
  const webhook = await addWebhook(randomUUID(), `${receiverUrl}/200`);
  await receiverState.markSlow(webhook, new Date().toISOString());
  count("quietFanOut", await fanOut(webhook.project_id, 1));
  count("work1", await visit(webhook));
  await wake(webhook, new Date());
  count("waitingFanOut", await fanOut(webhook.project_id, 10));
  count("work10", await visit(webhook));
};

/** The deliveries that `work100` sends. */
export const DRAINED = 100;

/** A webhook whose owners know that it fails: fan-outs of ten events, a probe, and a visit once the receiver is back. */
const recovery: Flow = async ({ count }, receiverUrl) => {
  const webhook = await addWebhook(randomUUID(), `${receiverUrl}/500`);
  const { project_id, id } = webhook;
  await receiverState.markFailing(webhook, new Date(Date.now() - 3_600_000).toISOString());
  await changeWebhook(webhook, { failing_notified_at: new Date().toISOString() });
  // Creates the wake-up. It is not priced: there is one for each webhook that fails.
  await fanOut(project_id, 1);
  // The first row waits for its retry, because the probe was its attempt: for longer than the visit takes on a busy machine, which
  // would make it too.
  process.env.RETRY_SCHEDULE = "600";
  for (let added = 0; added < DRAINED; added += 10) await fanOut(project_id, 10);
  count("probe", await visit(webhook));
  // A new URL closes the circuit.
  await webhooks.update(project_id, id, { url: `${receiverUrl}/200` }, new Date().toISOString());
  await wake(webhook, new Date());
  count(`work${DRAINED}`, await visit(webhook));
  delete process.env.RETRY_SCHEDULE;
};

/** All attempts of a delivery that always fails, and a retry that succeeds, without the waits of the schedule. */
const failures: Flow = async ({ count }, receiverUrl) => {
  const webhook = await addWebhook(randomUUID(), `${receiverUrl}/500`);
  // Longer: else the digits of a duration decide whether its row needs another write unit.
  const planned = newDelivery(webhook);
  const delivery = { ...planned, body: planned.body.padEnd(planned.body.length + 60) };
  count("fail1", await call("attempts-send", sqsEvent(firstAttempt(delivery))));
  for (let attempt = 2; await makeDue(webhook, delivery); attempt++) count(`fail${attempt}`, await visit(webhook));
  const other = await addWebhook(webhook.project_id, `${receiverUrl}/500`);
  const failed = newDelivery(other);
  await call("attempts-send", sqsEvent(firstAttempt(failed)));
  await changeWebhook(other, { url: `${receiverUrl}/200` });
  await makeDue(other, failed);
  count("retry", await visit(other));
};

/** Lets a delivery that waits for its retry be due now. @returns false when it does not wait */
async function makeDue(webhook: Webhook, { webhook_id, id }: Delivery): Promise<boolean> {
  const row = await deliveryStore.find(webhook_id, id);
  if (row?.status !== "pending") return false;
  const place = placeOf(row, new Date());
  await putPlace(place);
  await change(row, (stored) => stored && { ...stored, place: place.entry, next_attempt_at: place.due });
  await wake(webhook, new Date());
  return true;
}

/** The overdue wake-ups that `sweep320` finds, spread evenly over the shards. */
export const SWEPT = 10 * DUE_SHARDS;

/** Writes overdue wake-ups, spread evenly over the shards of the index. */
async function seedWakeUps(count: number): Promise<void> {
  const project_id = randomUUID();
  const anHourAgo = new Date(Date.now() - 3_600_000);
  const suffixOf = (index: number) => index.toString(16).padStart(8, "0");
  const wakeUps = Array.from({ length: count }, (_, index) => `${randomUUID().slice(0, -8)}${suffixOf(index)}`);
  await inParallel(wakeUps, 25, (id) => wake({ project_id, id }, anHourAgo));
}

const sweeps: Flow = async ({ count }) => {
  count("publishNothing", await call("deliveries-publish-notifications", {}));
  count("sweepNothing", await call("deliveries-sweep", {}));
  await seedWakeUps(SWEPT);
  count(`sweep${SWEPT}`, await call("deliveries-sweep", {}));
};

/** The bytes of one request to a receiver, without TLS. */
const wireBytes: Flow = async ({ size }) => {
  const receiver = http.createServer((request, response) => {
    request.resume().once("end", () => {
      size("requestBytes", request.socket.bytesRead);
      response.end("ok");
    });
  });
  receiver.listen(0, "127.0.0.1");
  await once(receiver, "listening");
  const { port } = receiver.address() as AddressInfo;
  const webhook = await addWebhook(randomUUID(), `http://127.0.0.1:${port}/deployments/production`);
  await call("attempts-send", sqsEvent(firstAttempt(newDelivery(webhook))));
  receiver.closeAllConnections();
  receiver.close();
};

const rows = workerRows;

/** Passes all messages of a queue to its consumer in batches, as Lambda does, and deletes them. */
async function drainQueue(queue: QueueKey): Promise<{ messages: number; usage: Usage }[]> {
  const row = rows.find(({ trigger }) => trigger.kind === "queue" && trigger.queue === queue);
  if (row?.trigger.kind !== "queue") throw new Error(`No worker consumes ${queue}`);
  const QueueUrl = queueUrl(queue);
  const MaxNumberOfMessages = row.trigger.batchSize;
  const batches = [];
  while (true) {
    const receive = new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages, MessageSystemAttributeNames: ["All"] });
    const { Messages = [] } = await sqs().send(receive);
    if (Messages.length === 0) return batches;
    const usage = await call(row.id, sqsEvent(...Messages.map(({ Body = "" }) => Body)));
    batches.push({ messages: Messages.length, usage });
    const Entries = Messages.map(({ ReceiptHandle }, index) => ({ Id: String(index), ReceiptHandle }));
    await sqs().send(new DeleteMessageBatchCommand({ QueueUrl, Entries }));
  }
}

/** Like `drainQueue`. @throws Error unless all messages are in one batch */
async function consumeBatch(queue: QueueKey): Promise<Usage> {
  const [batch, ...others] = await drainQueue(queue);
  if (!batch || others.length > 0)
    throw new Error(`Expected one batch of ${queue}, got ${others.length + (batch ? 1 : 0)}`);
  return batch.usage;
}

/**
 * Calls a worker as Lambda does.
 * @returns its usage
 * @throws Error when it reports messages as failed
 */
async function call(id: WorkerRow["id"], event: unknown): Promise<Usage> {
  const { timeoutSeconds = 0 } = rows.find((row) => row.id === id) ?? {};
  calls.length = 0;
  const result = await invoke(await meteredLoad(id), event, { functionName: id, timeoutSeconds });
  const { batchItemFailures = [] } = (result ?? {}) as { batchItemFailures?: unknown[] };
  if (batchItemFailures.length > 0) throw new Error(`${id} failed on ${batchItemFailures.length} messages`);
  const [usage] = calls;
  if (!usage) throw new Error(`${id} was not counted`);
  return usage;
}

/**
 * Returns whether two counts of reads are equal, to one in a hundred. A visit of a hundred deliveries may read its next page before the
 * last places of the one before are removed, and the page then has them too.
 */
export const isEqualReads = (one: number, other: number): boolean => Math.abs(one - other) <= one / 100;

/** Returns the counts with the median time. @throws Error when the counts differ */
function medianOf(call: string, usage: Usage[]): Usage {
  const [first] = usage;
  if (!first) throw new Error(`${call} was not counted`);
  for (const each of usage.slice(1)) {
    for (const name of ["reads", "writes", "indexWrites", "queueRequests"] as const) {
      const isEqual = name === "reads" ? isEqualReads(each.reads, first.reads) : each[name] === first[name];
      if (!isEqual) throw new Error(`Equal calls of ${call} consumed ${first[name]} and ${each[name]} ${name}`);
    }
  }
  return { ...first, cpuMs: Number(median(usage.map(({ cpuMs }) => cpuMs)).toFixed(2)) };
}

const REPEATS = 15;

if (import.meta.main) {
  const engines = await startEngines();
  try {
    const units = await countUnits({ receiverUrl: engines.origin, repeats: REPEATS });
    writeFileSync(join(import.meta.dirname, "units.json"), `${JSON.stringify(units, undefined, 2)}\n`);
    console.log("Wrote bench/units.json.");
  } finally {
    await engines.end();
  }
}

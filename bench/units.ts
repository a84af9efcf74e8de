import { AsyncLocalStorage } from "node:async_hooks";
import { spawn } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { DeleteMessageBatchCommand, ReceiveMessageCommand, SendMessageCommand } from "@aws-sdk/client-sqs";
import { QueryCommand } from "@aws-sdk/lib-dynamodb";
import type { SQSEvent } from "aws-lambda";
import { startDynamo } from "../bin/local/engines.ts";
import { createGateway } from "../bin/local/gateway.ts";
import { fromSources, invoke, type LambdaHandler } from "../bin/local/lambda.ts";
import { mintToken } from "../bin/local/mint-token.ts";
import { createQueues, createTables } from "../bin/local/resources.ts";
import { type Attempt, createDelivery, type Delivery, DUE_SHARDS } from "../functions/deliveries/delivery.ts";
import * as deliveries from "../functions/deliveries/delivery-store.ts";
import { deploymentEvent } from "../functions/deployments/deployment-event.ts";
import type { endpoints } from "../functions/manifest/endpoints.ts";
import { metrics } from "../functions/manifest/metrics.ts";
import type { QueueKey } from "../functions/manifest/queues.ts";
import { type WorkerRow, workers } from "../functions/manifest/workers.ts";
import { dynamo, sqs } from "../functions/platform/aws.ts";
import { queueUrl, settings, tableName } from "../functions/platform/env.ts";
import { logSink } from "../functions/platform/log.ts";
import { handler as putMember } from "../functions/projects/upsert-member.ts";
import { createWebhook, type Webhook } from "../functions/webhooks/webhook.ts";
import * as webhooks from "../functions/webhooks/webhook-store.ts";
import { median } from "./harness.ts";
import type { Loopback } from "./loopback.ts";
import type { StageUnits } from "./stage-units.ts";

/*
 * What each function takes of AWS in one call, counted while the real handlers run over the embedded engines:
 *
 *     node bench/units.ts     counts anew and writes bench/units.json
 *
 * Units of DynamoDB are those that the engine reports; test/bench/units.test.ts holds them against AWS's rules. Requests to
 * SQS are counted as they are billed, by 64 KB of payload. Time is not counted but measured, on one thread, and no more than a
 * lower bound of what a Lambda would be billed for.
 */

/** Of one call of a function. */
export interface Taken {
  /** DynamoDB request units: read, written to tables, written to indexes. */
  reads: number;
  writes: number;
  indexWrites: number;
  /** Requests to SQS that the function itself makes. */
  queueRequests: number;
  logLines: number;
  /** As CloudWatch counts them, and the part of them that is there for the metrics. */
  logBytes: number;
  metricBytes: number;
  /** How many times it waits for AWS: calls that are under way together count once. */
  waits: number;
  /** Of this thread; the median of all repeats. */
  cpuMs: number;
}

export interface RequestUnits {
  route: string;
  credential: "jwt" | "key";
  status: number;
  authorizer: Taken;
  endpoint: Taken;
  /** Status line, headers and body, without TLS and what API Gateway adds. */
  responseBytes: number;
  /** The line of the access log. */
  accessLogBytes: number;
  /** The event in JSON, which a careless function logs. */
  eventBytes: number;
}

export interface FanOutUnits {
  events: number;
  webhooks: number;
  taken: Taken;
}

export interface Units {
  countedOn: string;
  requests: RequestUnits[];
  /** The authorizer when `last_used_at` is due, and when the credential is refused. */
  keyFirstUse: Taken;
  refused: Taken;
  fanOut: FanOutUnits[];
  /** Successful sends, by messages in the batch. */
  send: { messages: number; taken: Taken }[];
  /** A delivery that always fails: its attempts from the first to the last, each in a batch of its own. */
  failedAttempts: Taken[];
  /** A success after a failure. */
  recovered: Taken;
  sweep: { rows: number; taken: Taken }[];
  sizes: {
    eventMessageBytes: number;
    attemptMessageBytes: number;
    /** One delivery on the wire, without TLS. */
    requestBytes: number;
    /** A delivery row as DynamoDB counts it: as fan-out wrote it, after the attempt that succeeded, and its entry in the index. */
    pendingRowBytes: number;
    succeededRowBytes: number;
  };
  stage: StageUnits;
}

/** https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html: each event weighs this much more. */
export const LOG_EVENT_OVERHEAD_BYTES = 26;
const QUEUE_CHUNK_BYTES = 64 * 1024;

const meters = new AsyncLocalStorage<Meter>();

class Meter {
  readonly taken: Taken = {
    reads: 0,
    writes: 0,
    indexWrites: 0,
    queueRequests: 0,
    logLines: 0,
    logBytes: 0,
    metricBytes: 0,
    waits: 0,
    cpuMs: 0,
  };
  #underWay = 0;

  async wait<Result>(call: () => Promise<Result>): Promise<Result> {
    if (this.#underWay === 0) this.taken.waits += 1;
    this.#underWay += 1;
    try {
      return await call();
    } finally {
      this.#underWay -= 1;
    }
  }

  count(command: string, consumed: Consumed[]): void {
    const isRead = /^(Get|BatchGet|Query)/.test(command);
    for (const { Table, GlobalSecondaryIndexes = {} } of consumed) {
      const inTable = Table?.CapacityUnits ?? 0;
      const inIndexes = Object.values(GlobalSecondaryIndexes).reduce((sum, index) => sum + index.CapacityUnits, 0);
      if (isRead) this.taken.reads += inTable + inIndexes;
      else this.taken.writes += inTable;
      if (!isRead) this.taken.indexWrites += inIndexes;
    }
  }

  countLine(line: object): void {
    const bytes = Buffer.byteLength(JSON.stringify(line));
    const plain = Object.entries(line).filter(([name]) => !METRIC_FIELDS.has(name));
    this.taken.logLines += 1;
    this.taken.logBytes += bytes + LOG_EVENT_OVERHEAD_BYTES;
    this.taken.metricBytes += bytes - Buffer.byteLength(JSON.stringify(Object.fromEntries(plain)));
  }
}

/** What a line has only because metrics are made of it. */
const METRIC_FIELDS = new Set(["_aws", "stage", ...Object.values(metrics).map(({ name }) => name as string)]);

interface Consumed {
  Table?: { CapacityUnits: number };
  GlobalSecondaryIndexes?: Record<string, { CapacityUnits: number }>;
}

type Next = (args: { input: object }) => Promise<{ output: unknown; response: unknown }>;
type Middleware = (next: Next, context: { commandName?: string }) => Next;

const countCapacity: Middleware =
  (next, { commandName = "" }) =>
  async (args) => {
    const meter = meters.getStore();
    if (!meter) return next(args);
    try {
      const result = await meter.wait(() => next({ input: { ...args.input, ReturnConsumedCapacity: "INDEXES" } }));
      const { ConsumedCapacity } = result.output as { ConsumedCapacity?: Consumed | Consumed[] };
      if (!ConsumedCapacity) throw new Error(`The DynamoDB engine does not say what ${commandName} consumed`);
      meter.count(commandName, [ConsumedCapacity].flat());
      return result;
    } catch (error) {
      // It costs units as well, of which the answer says nothing. Nothing here is done twice, so none should fail.
      throw new Error(`${commandName} failed while it was counted`, { cause: error });
    }
  };

const countQueueRequests: Middleware = (next) => async (args) => {
  const meter = meters.getStore();
  if (!meter) return next(args);
  meter.taken.queueRequests += queueRequestsFor(payloadBytes(args.input));
  return meter.wait(() => next(args));
};

const queueRequestsFor = (bytes: number): number => Math.max(1, Math.ceil(bytes / QUEUE_CHUNK_BYTES));

function payloadBytes({ Entries = [] }: { Entries?: { MessageBody?: string }[] }): number {
  return Entries.reduce((sum, { MessageBody = "" }) => sum + Buffer.byteLength(MessageBody), 0);
}

let isMetered = false;

function meterClients(): void {
  if (isMetered) return;
  isMetered = true;
  const first = { step: "initialize", priority: "high" } as const;
  type Stack = { add(middleware: Middleware, options: typeof first): void };
  (dynamo().middlewareStack as unknown as Stack).add(countCapacity, first);
  (sqs().middlewareStack as unknown as Stack).add(countQueueRequests, first);
}

interface Call {
  file: string;
  taken: Taken;
  eventBytes: number;
}

/** The calls of functions since it was emptied last. */
const calls: Call[] = [];

const meteredLoad = async (file: string): Promise<LambdaHandler> => {
  const handler = await fromSources(file);
  return async (event, context) => {
    const { answer, taken } = await takenBy(() => handler(event, context));
    calls.push({ file, taken, eventBytes: Buffer.byteLength(JSON.stringify(event)) });
    return answer;
  };
};

/** Runs something and counts what it takes. Its time is right only when nothing else runs meanwhile. */
export async function takenBy<Answer>(run: () => Promise<Answer>): Promise<{ answer: Answer; taken: Taken }> {
  const meter = new Meter();
  const before = process.threadCpuUsage();
  const startedAt = performance.now();
  const answer = await meters.run(meter, run);
  const { user, system } = process.threadCpuUsage(before);
  // The clock of a thread is too coarse for a call that is over at once. Such a one has waited for nothing.
  meter.taken.cpuMs = meter.taken.waits === 0 ? performance.now() - startedAt : (user + system) / 1000;
  return { answer, taken: meter.taken };
}

interface Options {
  /** Answers with the status in its path. */
  receiverUrl: string;
  /** How often each call is made: counts must be the same each time, times are the median. */
  repeats: number;
}

/**
 * Counts over the engines of the environment (AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL_SQS), in tables of its own.
 * @throws Error when two repeats of one call do not take the same
 */
export async function countUnits({ receiverUrl, repeats }: Options): Promise<Units> {
  // The CDK weighs more than all functions together: only who counts a stage has to carry it.
  const { accessLogLine, countStage } = await import("./stage-units.ts");
  const { write } = logSink;
  await prepare();
  try {
    const { requests, keyFirstUse, refused } = await countRequests(repeats, accessLogLine);
    const { fanOut, send, sizes } = await countDeliveries(receiverUrl, repeats);
    return {
      countedOn: new Date().toISOString().slice(0, 10),
      requests,
      keyFirstUse,
      refused,
      fanOut,
      send,
      failedAttempts: await countFailures(receiverUrl),
      recovered: await countRecovery(receiverUrl),
      sweep: [await countSweep(0), await countSweep(10 * DUE_SHARDS)],
      sizes: { ...sizes, requestBytes: await countWireBytes() },
      stage: countStage(),
    };
  } finally {
    logSink.write = write;
  }
}

/** Tables and queues that nobody else uses, the settings of a function on AWS, and log lines that are counted, not written. */
export async function prepare(): Promise<void> {
  const prefix = `bench-${randomUUID().slice(0, 8)}-`;
  const urlOf = (name: string) => `${process.env.AWS_ENDPOINT_URL_SQS}/000000000000/${name}`;
  Object.assign(
    process.env,
    await createTables(dynamo(), prefix),
    await createQueues(sqs(), { prefix, urlOf }),
    { JWT_SECRET: process.env.JWT_SECRET ?? randomBytes(32).toString("hex"), STAGE: "prod" },
    // Receivers on this machine, by plain http.
    { WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8,::1/128" },
  );
  meterClients();
  logSink.write = (level, line) => {
    const stamp = { timestamp: new Date().toISOString(), level: level.toUpperCase() };
    meters.getStore()?.countLine({ ...stamp, ...line });
  };
}

/** Engines for one bench, in memory and in processes of their own; the environment leads to them. */
export async function startEngines(): Promise<{ receiverUrl: string; stop(): Promise<void> }> {
  const dynamoEngine = await startDynamo(undefined, () => {
    throw new Error("The DynamoDB engine has ended");
  });
  const child = spawn(process.execPath, [join(import.meta.dirname, "loopback.ts")], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const [page] = (await once(child.stdout, "data")) as [Buffer];
  const { sqsEndpoint, receiverUrl }: Loopback = JSON.parse(page.toString());
  Object.assign(process.env, {
    AWS_ENDPOINT_URL_DYNAMODB: dynamoEngine.endpoint,
    AWS_ENDPOINT_URL_SQS: sqsEndpoint,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "bench",
    AWS_SECRET_ACCESS_KEY: "bench",
  });
  return {
    receiverUrl,
    async stop() {
      const ended = once(child, "exit");
      child.stdin.end();
      await ended;
      await dynamoEngine.stop();
    },
  };
}

type RouteOf<Row> = Row extends { method: infer Method extends string; path: infer Path extends string }
  ? `${Method} ${Path}`
  : never;
type Route = RouteOf<(typeof endpoints)[number]>;

/** A user with projects, keys, webhooks and deliveries: as many as a small customer has. */
interface Scene {
  token: string;
  key: string;
  /** Ids by the name of their parameter. */
  ids: { id: string; project_id: string; webhook_id: string; delivery_id: string };
}

const CUSTOMER = { keys: 3, projects: 3, webhooks: 3, deliveries: 25 };

/** The bodies and queries of all endpoints; what is read comes before what changes it. */
const bodies: Record<Route, object | undefined> = {
  "GET /v1/projects": undefined,
  "GET /v1/api-keys": undefined,
  "GET /v1/projects/{project_id}/webhooks": undefined,
  "GET /v1/projects/{project_id}/webhooks/{webhook_id}": undefined,
  "GET /v1/projects/{project_id}/webhooks/{webhook_id}/deliveries": undefined,
  "GET /v1/projects/{project_id}/webhooks/{webhook_id}/deliveries/{delivery_id}": undefined,
  "POST /v1/api-keys": { name: "deploy from CI" },
  "POST /v1/projects/{project_id}/webhooks": {
    url: "https://hooks.example.com/deployments/production",
    events: ["deploy.succeeded", "deploy.failed"],
  },
  "PATCH /v1/projects/{project_id}/webhooks/{webhook_id}": { events: ["deploy.succeeded", "deploy.failed"] },
  "POST /v1/projects/{project_id}/webhooks/{webhook_id}/rotate-secret": {},
  "POST /v1/projects/{project_id}/webhooks/{webhook_id}/test": {},
  "POST /v1/projects/{project_id}/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver": undefined,
  "POST /v1/projects/{project_id}/webhooks/{webhook_id}/recover": { since: "2000-01-01T00:00:00Z" },
  "DELETE /v1/projects/{project_id}/webhooks/{webhook_id}": undefined,
  "DELETE /v1/api-keys/{id}": undefined,
};

type AccessLogLine = (values: Record<string, string>) => string;

async function countRequests(
  repeats: number,
  accessLogLine: AccessLogLine,
): Promise<Pick<Units, "requests" | "keyFirstUse" | "refused">> {
  const gateway = await createGateway(meteredLoad);
  gateway.listen(0, "127.0.0.1");
  await once(gateway, "listening");
  const baseUrl = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`;
  try {
    const seen = new Map<string, RequestUnits[]>();
    const firstUses: Taken[] = [];
    const refusals: Taken[] = [];
    for (let repeat = 0; repeat < repeats; repeat++) {
      for (const credential of ["jwt", "key"] as const) {
        const scene = await setUpScene(baseUrl);
        const { authorizer } = await request(baseUrl, "GET /v1/projects", scene, "key", accessLogLine);
        firstUses.push(authorizer);
        for (const route of Object.keys(bodies) as Route[]) {
          if (route === "POST /v1/api-keys" && credential === "key") continue;
          const units = await request(baseUrl, route, scene, credential, accessLogLine);
          const name = `${credential} ${route}`;
          seen.set(name, [...(seen.get(name) ?? []), units]);
        }
        // Its last request has deleted the key.
        if (credential === "key")
          refusals.push((await request(baseUrl, "GET /v1/projects", scene, "key", accessLogLine)).authorizer);
      }
    }
    return {
      requests: [...seen.values()].map(middleRequest),
      keyFirstUse: middle(firstUses),
      refused: middle(refusals),
    };
  } finally {
    gateway.closeAllConnections();
    gateway.close();
  }
}

async function setUpScene(baseUrl: string): Promise<Scene> {
  const userId = `user-${randomUUID()}`;
  const token = mintToken(process.env.JWT_SECRET ?? "", userId);
  const create = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const response = await fetch(`${baseUrl}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    return ((await response.json()) as { data: { id: string; key: string } }).data;
  };
  const projectIds = Array.from({ length: CUSTOMER.projects }, () => randomUUID());
  for (const project_id of projectIds) {
    await putMember({ user_id: userId, project_id, name: "Web shop, production", role: "admin" });
  }
  const [project_id = ""] = projectIds;
  let last = { id: "", key: "" };
  for (let count = 0; count < CUSTOMER.keys; count++) last = await create("/v1/api-keys", { name: "deploy from CI" });
  let webhook: Webhook | undefined;
  for (let count = 0; count < CUSTOMER.webhooks; count++) {
    webhook = await addWebhook(project_id, "https://hooks.example.com/deployments/production");
  }
  if (!webhook) throw new Error("no webhook");
  let delivery_id = "";
  for (let count = 0; count < CUSTOMER.deliveries; count++) {
    // One to send again, one to recover.
    delivery_id = (await addEnded(webhook, count < CUSTOMER.deliveries - 2 ? "succeeded" : "failed")).id;
  }
  return { token, key: last.key, ids: { id: last.id, project_id, webhook_id: webhook.id, delivery_id } };
}

export async function addWebhook(projectId: string, url: string): Promise<Webhook> {
  const input = { url, events: ["deploy.succeeded" as const, "deploy.failed" as const] };
  const { webhook, secret } = createWebhook(input, projectId, new Date(), randomBytes(48));
  await webhooks.insert(webhook, secret);
  return webhook;
}

/** As the pipeline writes it. */
export function newEvent(projectId: string) {
  return {
    event: "deploy.succeeded" as const,
    project_id: projectId,
    deployment_id: randomUUID(),
    timestamp: new Date().toISOString(),
    data: { url: "https://web-shop-production.apps.example.com", status: "running" },
  };
}

export function newDelivery(webhook: Webhook, at = new Date()): Delivery {
  const event = deploymentEvent(newEvent(webhook.project_id));
  return createDelivery(event, webhook, at, settings.deliveryGraceSeconds());
}

async function addEnded(webhook: Webhook, status: "succeeded" | "failed"): Promise<Delivery> {
  const { next_attempt_at, due_at, due_shard, ...opened } = newDelivery(webhook);
  const attempt: Attempt = {
    number: 1,
    at: new Date().toISOString(),
    duration_ms: 184,
    status_code: status === "succeeded" ? 200 : 500,
    ...(status === "failed" && { error_code: "http_status" as const }),
    response_excerpt: "ok",
    trigger: "schedule",
  };
  const delivery = { ...opened, status, attempt_count: 1, attempts: [attempt] };
  await deliveries.insert(delivery);
  return delivery;
}

async function request(
  baseUrl: string,
  route: Route,
  { token, key, ids }: Scene,
  credential: "jwt" | "key",
  accessLogLine: AccessLogLine,
): Promise<RequestUnits> {
  const [method = "", template = ""] = route.split(" ");
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: keyof Scene["ids"]) => ids[name]);
  const body = bodies[route];
  calls.length = 0;
  const response = await fetch(`${baseUrl}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${credential === "jwt" ? token : key}`,
      ...(body && { "content-type": "application/json" }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const [authorizer, endpoint] = calls.splice(0);
  if (!authorizer) throw new Error(`${route} was answered without the authorizer: ${text}`);
  if (!response.ok && endpoint) throw new Error(`${route} failed: ${text}`);
  const head = [...response.headers].reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0);
  const responseBytes = "HTTP/1.1 200 OK\r\n\r\n".length + head + Buffer.byteLength(text);
  const line = accessLogLine({
    httpMethod: method,
    resourcePath: template,
    path: `/prod${path}`,
    status: String(response.status),
    responseLength: String(Buffer.byteLength(text)),
    "authorizer.userId": `user-${randomUUID()}`,
    "authorizer.authType": credential === "jwt" ? "jwt" : "api_key",
    "authorizer.keyId": credential === "jwt" ? "-" : randomUUID(),
  });
  return {
    route,
    credential,
    status: response.status,
    authorizer: authorizer.taken,
    endpoint: endpoint?.taken ?? new Meter().taken,
    responseBytes,
    accessLogBytes: Buffer.byteLength(line) + LOG_EVENT_OVERHEAD_BYTES,
    eventBytes: endpoint?.eventBytes ?? 0,
  };
}

const FAN_OUTS = [
  { events: 1, webhooks: 1 },
  { events: 1, webhooks: 10 },
  { events: 1, webhooks: 20 },
  { events: 10, webhooks: 1 },
  { events: 10, webhooks: 10 },
];

async function countDeliveries(
  receiverUrl: string,
  repeats: number,
): Promise<Pick<Units, "fanOut" | "send"> & { sizes: Omit<Units["sizes"], "requestBytes"> }> {
  const fanOuts = FAN_OUTS.map((size) => ({ size, taken: [] as Taken[] }));
  const sends = new Map<number, Taken[]>([
    [1, []],
    [10, []],
  ]);
  const sizes = { eventMessageBytes: 0, attemptMessageBytes: 0, pendingRowBytes: 0, succeededRowBytes: 0 };
  // What the endpoints have asked to be sent.
  await workOff("deliveries");
  for (let repeat = 0; repeat < repeats; repeat++) {
    for (const { size, taken } of fanOuts) {
      const projectId = randomUUID();
      const made = [];
      for (let count = 0; count < size.webhooks; count++) {
        made.push(await addWebhook(projectId, `${receiverUrl}/200`));
      }
      for (let count = 0; count < size.events; count++) {
        const MessageBody = JSON.stringify(newEvent(projectId));
        sizes.eventMessageBytes = Buffer.byteLength(MessageBody);
        await sqs().send(new SendMessageCommand({ QueueUrl: queueUrl("events"), MessageBody }));
      }
      const batches = await workOff("events");
      if (batches.length !== 1) throw new Error(`${batches.length} batches of events where there should be one`);
      taken.push(...batches.map((batch) => batch.taken));
      const [webhook] = made;
      if (webhook) sizes.pendingRowBytes = await rowBytes(webhook);
      for (const { messages, bytes, taken } of await workOff("deliveries")) {
        sends.get(messages)?.push(taken);
        sizes.attemptMessageBytes = Math.round(bytes / messages);
      }
      if (webhook) sizes.succeededRowBytes = await rowBytes(webhook);
    }
  }
  return {
    fanOut: fanOuts.map(({ size, taken }) => ({ ...size, taken: middle(taken) })),
    send: [...sends].map(([messages, taken]) => ({ messages, taken: middle(taken) })),
    sizes,
  };
}

interface Batch {
  messages: number;
  bytes: number;
  taken: Taken;
}

/** Takes what a queue has to its consumer in batches, as Lambda does, and deletes what is done. */
async function workOff(queue: QueueKey): Promise<Batch[]> {
  const row = (workers as readonly WorkerRow[]).find(
    ({ trigger }) => trigger.kind === "queue" && trigger.queue === queue,
  );
  if (row?.trigger.kind !== "queue") throw new Error(`Nothing consumes ${queue}`);
  const QueueUrl = queueUrl(queue);
  const batches: Batch[] = [];
  while (true) {
    const { Messages = [] } = await sqs().send(
      new ReceiveMessageCommand({
        QueueUrl,
        MaxNumberOfMessages: row.trigger.batchSize,
        MessageSystemAttributeNames: ["All"],
      }),
    );
    if (Messages.length === 0) return batches;
    const texts = Messages.map(({ Body = "" }) => Body);
    batches.push({
      messages: Messages.length,
      bytes: texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0),
      taken: await call(row.file, queueEvent(texts)),
    });
    const Entries = Messages.map(({ ReceiptHandle }, index) => ({ Id: String(index), ReceiptHandle }));
    await sqs().send(new DeleteMessageBatchCommand({ QueueUrl, Entries }));
  }
}

export const queueEvent = (texts: string[]): SQSEvent =>
  ({
    Records: texts.map((body, index) => ({
      messageId: `m${index}`,
      body,
      attributes: { SentTimestamp: String(Date.now()) },
    })),
  }) as SQSEvent;

/** Calls a worker as Lambda does. @throws Error when it reports messages as failed */
export async function call(file: WorkerRow["file"], event: unknown): Promise<Taken> {
  const { timeoutSeconds = 0 } = (workers as readonly WorkerRow[]).find((row) => row.file === file) ?? {};
  calls.length = 0;
  const answer = await invoke(await meteredLoad(file), event, { functionName: file, timeoutSeconds });
  const { batchItemFailures = [] } = (answer ?? {}) as { batchItemFailures?: unknown[] };
  if (batchItemFailures.length > 0) throw new Error(`${file} failed on ${batchItemFailures.length} messages`);
  const [made] = calls.splice(0);
  if (!made) throw new Error(`${file} was not counted`);
  return made.taken;
}

async function rowBytes({ id }: Webhook): Promise<number> {
  const { Items = [] } = await dynamo().send(
    new QueryCommand({
      TableName: tableName("deliveries"),
      KeyConditionExpression: "webhook_id = :id",
      ExpressionAttributeValues: { ":id": id },
      Limit: 1,
      ConsistentRead: true,
    }),
  );
  return itemBytes(Items[0] ?? {});
}

/**
 * The size of an item as DynamoDB counts it: names and values in UTF-8, numbers by their digits, three bytes around a list or a
 * map and one for each of its members.
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

export const dueAttempt = ({ project_id, webhook_id, id }: Delivery, attempt: number): string =>
  JSON.stringify({ project_id, webhook_id, delivery_id: id, attempt });

/** The attempts as the schedule makes them, though without its waits. */
async function countFailures(receiverUrl: string): Promise<Taken[]> {
  const delivery = newDelivery(await addWebhook(randomUUID(), `${receiverUrl}/500`));
  await deliveries.insert(delivery);
  const taken: Taken[] = [];
  for (let attempt = 1; ; attempt++) {
    taken.push(await call("attempts/send", queueEvent([dueAttempt(delivery, attempt)])));
    const row = await deliveries.find(delivery.webhook_id, delivery.id);
    if (row?.attempt_count !== attempt) throw new Error(`Attempt ${attempt} was not made`);
    if (row.status !== "pending") return taken;
  }
}

async function countRecovery(receiverUrl: string): Promise<Taken> {
  const webhook = await addWebhook(randomUUID(), `${receiverUrl}/200`);
  await webhooks.markFailing(webhook, new Date().toISOString());
  const delivery = newDelivery(webhook);
  await deliveries.insert(delivery);
  return call("attempts/send", queueEvent([dueAttempt(delivery, 1)]));
}

/** A sweep that finds so many rows, as many in each shard. */
async function countSweep(rows: number): Promise<{ rows: number; taken: Taken }> {
  const webhook = await addWebhook(randomUUID(), "https://hooks.example.com/deployments/production");
  const anHourAgo = new Date(Date.now() - 3_600_000);
  for (let count = 0; count < rows; count++) {
    await deliveries.insert({ ...newDelivery(webhook, anHourAgo), due_shard: count % DUE_SHARDS });
  }
  return { rows, taken: await call("deliveries/sweep", {}) };
}

/** One delivery as it goes over the wire. */
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
  const delivery = newDelivery(
    await addWebhook(
      randomUUID(),
      `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/deployments/production`,
    ),
  );
  await deliveries.insert(delivery);
  await call("attempts/send", queueEvent([dueAttempt(delivery, 1)]));
  receiver.closeAllConnections();
  receiver.close();
  return bytes;
}

/** The one in the middle by time; all must have taken the same otherwise. */
function middle(taken: Taken[]): Taken {
  const [first] = taken;
  if (!first) throw new Error("nothing was counted");
  for (const each of taken.slice(1)) {
    for (const name of ["reads", "writes", "indexWrites", "queueRequests", "logLines"] as const) {
      if (each[name] !== first[name])
        throw new Error(`One call took ${first[name]} ${name}, the next one ${each[name]}`);
    }
  }
  return { ...first, cpuMs: Number(median(taken.map(({ cpuMs }) => cpuMs)).toFixed(2)) };
}

function middleRequest(requests: RequestUnits[]): RequestUnits {
  const [first] = requests;
  if (!first) throw new Error("no request was made");
  return {
    ...first,
    authorizer: middle(requests.map(({ authorizer }) => authorizer)),
    endpoint: middle(requests.map(({ endpoint }) => endpoint)),
  };
}

export const unitsFile = join(import.meta.dirname, "units.json");

const REPEATS = 15;

if (import.meta.main) {
  const engines = await startEngines();
  try {
    const units = await countUnits({ receiverUrl: engines.receiverUrl, repeats: REPEATS });
    writeFileSync(unitsFile, `${JSON.stringify(units, undefined, 2)}\n`);
    console.log(`${units.requests.length} kinds of requests counted; all is in bench/units.json`);
  } finally {
    await engines.stop();
  }
}

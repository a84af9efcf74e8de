import { randomUUID } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { SendMessageBatchCommand, SQSClient } from "@aws-sdk/client-sqs";
import { paginateQuery } from "@aws-sdk/lib-dynamodb";
import type { Attempt } from "../../functions/deliveries/line/delivery.ts";
import { dynamo } from "../../functions/foundation/platform/aws.ts";
import { inParallel } from "../../functions/foundation/platform/parallel.ts";
import { eventually } from "../support/eventually.ts";
import {
  type HostileReceiver,
  type Misbehaving,
  misbehaviors,
  type SteadyReceiver,
  startHostileReceiver,
  startSteadyReceiver,
} from "../support/hostile-receivers.ts";
import { freshDataDir, type LocalRun, startLocalRun } from "../support/local-run.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { send } from "../support/service.ts";

/*
 * The whole service, as a process, against hostile receivers: a project at its cap of 20 webhooks, and then a flood of
 * events. Only 127.0.0.2 is allowed, so that `localhost` is a name that the create endpoint accepts and whose address
 * is blocked at connect time, as after a DNS change.
 */

const ALLOWED = "127.0.0.2";
const CAP = 20;
/** Events that are published at once. */
const FLOOD = 60;
/** More than the service needs for a flood, and far less than a hostile receiver sends until the deadline. */
const MAX_GROWTH_MB = 150;
const VERBOSE_BODY_BYTES = 250_000;

let run: LocalRun;
let memoryBeforeMb: number;
/** Responds as a receiver should. */
let honest: SteadyReceiver;
/** Responds with a long body. */
let verbose: SteadyReceiver;
/** Listens on an address that is not allowed. */
let forbidden: Receiver;
const logPath = () => join(dataDir, "service.log");
const dataDir = freshDataDir();
const hostile = new Map<Misbehaving, HostileReceiver>();
/** Webhook ids, by the behavior of the receiver. */
const webhookOf = new Map<string, string>();

const headers = () => ({ authorization: `Bearer ${run.token}`, "content-type": "application/json" });
const webhooksPath = () => `${run.baseUrl}/v1/projects/${run.projectId}/webhooks`;
const get = async (path: string) => (await send(`${webhooksPath()}/${path}`, { headers: headers() })).body.data;

const subscribe = (url: string, event: string) =>
  send(webhooksPath(), { method: "POST", headers: headers(), body: JSON.stringify({ url, events: [event] }) });

async function publish(event: string, count: number): Promise<void> {
  const { eventsQueueUrl: QueueUrl, projectId: project_id } = run;
  const sqs = new SQSClient({ endpoint: new URL(QueueUrl).origin });
  const batches = Array.from({ length: Math.ceil(count / 10) }, (_, batch) => Math.min(10, count - 10 * batch));
  await inParallel(batches, 5, (size) => {
    const Entries = Array.from({ length: size }, (_, index) => {
      const content = { event, project_id, deployment_id: randomUUID(), timestamp: new Date().toISOString() };
      return { Id: String(index), MessageBody: JSON.stringify(content) };
    });
    return sqs.send(new SendMessageBatchCommand({ QueueUrl, Entries }));
  });
}

/** Returns the resident memory of the service, in MB. */
const memoryMb = () =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${run.process.pid}/status`, "utf8"))?.[1]) / 1024;

beforeAll(async () => {
  honest = await startSteadyReceiver(ALLOWED, 200, "thanks");
  verbose = await startSteadyReceiver(ALLOWED, 200, "x".repeat(VERBOSE_BODY_BYTES));
  forbidden = await startReceiver();
  run = await startLocalRun({
    DATA_DIR: dataDir,
    WEBHOOK_ALLOW_CIDRS: `${ALLOWED}/32`,
    RETRY_SCHEDULE: "3600",
  });
  process.env.AWS_ENDPOINT_URL_DYNAMODB = run.dynamoEndpoint;
  for (const kind of Object.keys(misbehaviors) as Misbehaving[]) {
    const receiver = await startHostileReceiver(kind, ALLOWED);
    hostile.set(kind, receiver);
    webhookOf.set(kind, (await subscribe(receiver.url, "deploy.failed")).body.data.id);
  }
  const moved = forbidden.url.replace("127.0.0.1", "localhost");
  webhookOf.set("a name that moved", (await subscribe(moved, "deploy.failed")).body.data.id);
  webhookOf.set("honest", (await subscribe(honest.url, "deploy.started")).body.data.id);
  webhookOf.set("verbose", (await subscribe(verbose.url, "deploy.started")).body.data.id);
  while (webhookOf.size < CAP) {
    webhookOf.set(`idle ${webhookOf.size}`, (await subscribe(honest.url, "deploy.succeeded")).body.data.id);
  }
  memoryBeforeMb = memoryMb();
  await publish("deploy.failed", 1);
});
afterAll(async () => {
  await run.end("SIGKILL");
  for (const receiver of hostile.values()) receiver.close();
  honest.close();
  verbose.close();
  await forbidden.close();
});

test("create returns 409 when the project has 20 webhooks", async () => {
  expect(await subscribe(honest.url, "deploy.failed")).toMatchObject({
    status: 409,
    body: { error: { code: "webhook_limit_reached" } },
  });
});

describe("a flood of events at once, while other receivers hang,", () => {
  let logBytesBefore: number;
  let attempts: Attempt[];
  beforeAll(async () => {
    logBytesBefore = statSync(logPath()).size;
    await publish("deploy.started", FLOOD);
    await eventually(() => expect(honest.arrivals.size + verbose.arrivals.size).toBe(2 * FLOOD));
    attempts = await eventually(async () => {
      const recorded = (await Promise.all(["honest", "verbose"].map((name) => attemptsOf(name)))).flat();
      expect(recorded.length).toBe(2 * FLOOD);
      return recorded;
    });
  });

  test("is sent once to each receiver, and every request and outcome is recorded", () => {
    for (const { arrivals } of [honest, verbose]) expect(arrivals.size).toBe(FLOOD);
    const arrived = [honest, verbose].flatMap(({ arrivals }) => [...arrivals.values()]).reduce((sum, n) => sum + n);
    // Of an attempt with two requests, because its connection was stale, one or both have arrived.
    const sentAgain = attempts.filter(({ request_count }) => request_count === 2).length;
    expect(arrived).toBeGreaterThanOrEqual(2 * FLOOD);
    expect(arrived).toBeLessThanOrEqual(2 * FLOOD + sentAgain);
    expect(attempts.filter(({ status_code, error_code }) => status_code !== 200 || error_code !== undefined)).toEqual(
      [],
    );
  });

  test("needs little memory, whatever the receivers send", () => {
    const growthMb = memoryMb() - memoryBeforeMb;
    report("memory, MB", { before: memoryBeforeMb, growthMb });
    expect(growthMb).toBeLessThan(MAX_GROWTH_MB);
  });

  test("writes a small log without errors", () => {
    const lines = readFileSync(logPath(), "utf8").trimEnd().split("\n");
    const bytesPerAttempt = (statSync(logPath()).size - logBytesBefore) / (2 * FLOOD + hostile.size);
    report("log", { lines: lines.length, bytesPerAttempt });
    expect(bytesPerAttempt).toBeLessThan(1_200);
    // On an overloaded machine a call to the engines may exceed the timeout of the SDK and is retried.
    const errors = lines.map((line) => JSON.parse(line)).filter(({ level }) => level === "error");
    expect(errors.filter(({ error }) => error?.name !== "TimeoutError")).toEqual([]);
  });

  test("keeps at most 1 KB of each response", () => {
    const longest = Math.max(...attempts.map(({ response_excerpt = "" }) => Buffer.byteLength(response_excerpt)));
    expect(longest).toBe(1_024);
  });
});

describe("the recorded attempt", () => {
  test.each<[Misbehaving | "a name that moved", object]>([
    ["an endless body", { status: "succeeded", attempts: [{ status_code: 200, response_excerpt: "x".repeat(1_024) }] }],
    ["a dripping body", { attempts: [{ status_code: 200, error_code: "timeout" }] }],
    ["dripping headers", { attempts: [{ status_code: null, error_code: "timeout" }] }],
    ["no response", { attempts: [{ status_code: null, error_code: "timeout" }] }],
    [
      "a huge body",
      { attempts: [{ status_code: 500, error_code: "http_status", response_excerpt: "e".repeat(1_024) }] },
    ],
    ["a gzip bomb", { status: "succeeded" }],
    ["invalid UTF-8", { attempts: [{ status_code: 400, response_excerpt: "\ufffd\ufffdA\ufffd(" }] }],
    ["a flood of headers", { attempts: [{ status_code: null, error_code: "invalid_response" }] }],
    ["a redirect to itself", { attempts: [{ status_code: 302, hint: expect.stringContaining("302 to http://") }] }],
    ["malformed Retry-After", { waits: "scheduled" }],
    ["negative Retry-After", { waits: "scheduled" }],
    ["Retry-After with 400 digits", { waits: "scheduled", waiting_for: "recovery" }],
    ["Retry-After in the year 9999", { waits: "scheduled", waiting_for: "recovery" }],
    ["a name that moved", { attempts: [{ status_code: null, error_code: "address_blocked" }] }],
  ])("for %s has the outcome and the data that arrived", async (name, expected) => {
    const delivery = await eventually(async () => {
      const [latest] = await get(`${webhookOf.get(name)}/deliveries`);
      expect(latest).toMatchObject({ attempt_count: 1 });
      return get(`${webhookOf.get(name)}/deliveries/${latest.id}`);
    });
    const [{ at, response_excerpt }] = delivery.attempts;
    const waitSeconds = (Date.parse(delivery.next_attempt_at) - Date.parse(at)) / 1_000;
    const waits = waitSeconds > 40_000 ? "12 h" : "scheduled";
    expect({ ...delivery, waits }).toMatchObject({ status: "pending", ...expected });
    expect(Buffer.byteLength(response_excerpt ?? "")).toBeLessThanOrEqual(1_024);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these characters must not be stored
    expect(response_excerpt ?? "").not.toMatch(/[\x00-\x08\x0b-\x1f\x7f]/);
    const requests = hostile.get(name as Misbehaving)?.requests ?? 0;
    expect(requests).toBe(name === "a name that moved" ? 0 : 1);
  });

  test("sends no request to the new address of a name that moved", () => {
    expect(forbidden.received).toEqual([]);
  });
});

/**
 * Reads the attempts of all deliveries of a webhook from the table; the API returns them for one delivery at a time.
 */
async function attemptsOf(name: string): Promise<Attempt[]> {
  const pages = paginateQuery(
    { client: dynamo() },
    {
      TableName: "deliveries",
      KeyConditionExpression: "webhook_id = :webhook",
      ExpressionAttributeValues: { ":webhook": webhookOf.get(name) },
      ProjectionExpression: "attempts",
    },
  );
  const attempts: Attempt[] = [];
  for await (const { Items = [] } of pages) attempts.push(...Items.flatMap((row) => (row.attempts ?? []) as Attempt[]));
  return attempts;
}

function report(title: string, figures: object): void {
  if (process.env.FAULT_REPORT) console.log(title, figures);
}

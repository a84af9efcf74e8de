import { randomUUID } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { SendMessageBatchCommand, SQSClient } from "@aws-sdk/client-sqs";
import { paginateQuery } from "@aws-sdk/lib-dynamodb";
import type { Attempt } from "../../functions/deliveries/delivery.ts";
import { dynamo } from "../../functions/platform/aws.ts";
import { inParallel } from "../../functions/platform/parallel.ts";
import { eventually } from "../support/eventually.ts";
import {
  type FlatReceiver,
  type HostileReceiver,
  type Misbehaving,
  misbehaviours,
  startFlatReceiver,
  startHostileReceiver,
} from "../support/hostile-receivers.ts";
import { freshDataDir, type LocalRun, startLocalRun } from "../support/local-run.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { send } from "../support/service.ts";

/*
 * The whole service as a process of its own against the worst receivers we can think of, on a project at its cap of 20
 * webhooks, and then a flood of events beside them. Only 127.0.0.2 is allowed, so that `localhost` is a name that create
 * accepts and whose address is refused at the dial, as after a change in DNS.
 */

const ALLOWED = "127.0.0.2";
const CAP = 20;
const FLOOD = 1_000;
const WARM_UP = 100;
const MAX_GROWTH_MB = 150;

let run: LocalRun;
let honest: FlatReceiver;
/** Honest too, and answers at length. */
let verbose: FlatReceiver;
/** Honest too, but where nobody may send to. */
let forbidden: Receiver;
const logPath = () => join(dataDir, "service.log");
const dataDir = freshDataDir();
const hostile = new Map<Misbehaving, HostileReceiver>();
/** Webhook ids, by what their receiver does. */
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

/** Resident memory of the service, in MB. */
const memoryMb = () =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${run.process.pid}/status`, "utf8"))?.[1]) / 1024;

beforeAll(async () => {
  honest = await startFlatReceiver(ALLOWED, 200, "thanks");
  verbose = await startFlatReceiver(ALLOWED, 200, "thank you ".repeat(25_000));
  forbidden = await startReceiver();
  run = await startLocalRun({
    DATA_DIR: dataDir,
    WEBHOOK_ALLOW_CIDRS: `${ALLOWED}/32`,
    RETRY_SCHEDULE: "3600",
    DELIVERY_GRACE_SECONDS: "60",
    // Room for what is in work; what is kept and should not be does not fit.
    NODE_OPTIONS: "--max-old-space-size=128",
  });
  process.env.AWS_ENDPOINT_URL_DYNAMODB = run.dynamoEndpoint;
  for (const kind of Object.keys(misbehaviours) as Misbehaving[]) {
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
  await publish("deploy.failed", 1);
});
afterAll(async () => {
  await run.end("SIGKILL");
  for (const receiver of hostile.values()) receiver.close();
  honest.close();
  verbose.close();
  await forbidden.close();
});

test("a project at its cap takes no webhook more", async () => {
  expect(await subscribe(honest.url, "deploy.failed")).toMatchObject({
    status: 409,
    body: { error: { code: "webhook_limit_reached" } },
  });
});

describe("1,000 events at once, while others hang,", () => {
  let before: number;
  let logBefore: number;
  let attempts: Attempt[];
  beforeAll(async () => {
    // The first hundred warm the process up.
    await publish("deploy.started", WARM_UP);
    await eventually(() => expect(honest.arrivals.size + verbose.arrivals.size).toBe(2 * WARM_UP), 20_000);
    before = memoryMb();
    logBefore = statSync(logPath()).size;
    await publish("deploy.started", FLOOD);
    await eventually(() => expect(honest.arrivals.size + verbose.arrivals.size).toBe(2 * (WARM_UP + FLOOD)), 60_000);
    attempts = await eventually(async () => {
      const rows = (await Promise.all(["honest", "verbose"].map((name) => attemptsOf(name)))).flat();
      expect(rows).toHaveLength(2 * (WARM_UP + FLOOD));
      return rows;
    });
  }, 90_000);

  test("are all sent once, and every outcome is recorded", () => {
    for (const { arrivals } of [honest, verbose]) {
      expect(arrivals.size).toBe(WARM_UP + FLOOD);
      expect(Math.max(...arrivals.values())).toBe(1);
    }
    expect(attempts.filter(({ status_code, error_code }) => status_code !== 200 || error_code !== undefined)).toEqual(
      [],
    );
  });

  test("leave the memory flat", () => {
    report("memory, MB", { before, after: memoryMb() });
    expect(memoryMb() - before).toBeLessThan(MAX_GROWTH_MB);
  });

  test("make a small log without errors", () => {
    const lines = readFileSync(logPath(), "utf8").trimEnd().split("\n");
    const bytesPerAttempt = (statSync(logPath()).size - logBefore) / (2 * FLOOD);
    report("log", { lines: lines.length, bytesPerAttempt });
    expect(bytesPerAttempt).toBeLessThan(1_200);
    expect(lines.filter((line) => JSON.parse(line).level === "error")).toEqual([]);
  });

  test("keep no more than 1 KB of any answer", () => {
    const longest = Math.max(...attempts.map(({ response_excerpt = "" }) => Buffer.byteLength(response_excerpt)));
    expect(longest).toBe(1_024);
  });
});

describe("what was recorded of", () => {
  test.each<[Misbehaving | "a name that moved", object]>([
    ["an endless body", { status: "succeeded", attempts: [{ status_code: 200, response_excerpt: "x".repeat(1_024) }] }],
    ["a dripping body", { attempts: [{ status_code: 200, error_code: "timeout" }] }],
    ["dripping headers", { attempts: [{ status_code: null, error_code: "timeout" }] }],
    ["no answer", { attempts: [{ status_code: null, error_code: "timeout" }] }],
    [
      "a huge body",
      { attempts: [{ status_code: 500, error_code: "http_status", response_excerpt: "e".repeat(1_024) }] },
    ],
    ["a gzip bomb", { status: "succeeded" }],
    ["invalid UTF-8", { attempts: [{ status_code: 400, response_excerpt: "\ufffd\ufffdA\ufffd(" }] }],
    ["a flood of headers", { attempts: [{ status_code: null, error_code: "invalid_response" }] }],
    ["a redirect to itself", { attempts: [{ status_code: 302, hint: expect.stringContaining("register http://") }] }],
    ["Retry-After with junk", { waits: "scheduled" }],
    ["Retry-After below zero", { waits: "scheduled" }],
    ["Retry-After beyond all numbers", { waits: "scheduled" }],
    ["Retry-After in another era", { waits: "12 h" }],
    ["a name that moved", { attempts: [{ status_code: null, error_code: "address_blocked" }] }],
  ])("%s is one attempt, with what there was to know", async (name, expected) => {
    const delivery = await eventually(async () => {
      const [latest] = await get(`${webhookOf.get(name)}/deliveries`);
      expect(latest).toMatchObject({ attempt_count: 1 });
      return get(`${webhookOf.get(name)}/deliveries/${latest.id}`);
    }, 20_000);
    const [{ at, response_excerpt }] = delivery.attempts;
    const waitSeconds = (Date.parse(delivery.next_attempt_at) - Date.parse(at)) / 1_000;
    const waits = waitSeconds > 40_000 ? "12 h" : "scheduled";
    expect({ status: "pending", ...delivery, waits }).toMatchObject(expected);
    expect(Buffer.byteLength(response_excerpt ?? "")).toBeLessThanOrEqual(1_024);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what must not be there
    expect(response_excerpt ?? "").not.toMatch(/[\x00-\x08\x0b-\x1f\x7f]/);
    const requests = hostile.get(name as Misbehaving)?.requests ?? 0;
    expect(requests).toBe(name === "a name that moved" ? 0 : 1);
  });

  test("a name that moved is nothing that its new address could have seen", () => {
    expect(forbidden.received).toEqual([]);
  });
});

/** The attempts of a webhook's deliveries, read past the API, which gives them one by one. */
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

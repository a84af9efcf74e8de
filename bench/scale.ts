import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { join } from "node:path";
import { BatchWriteCommand } from "@aws-sdk/lib-dynamodb";
import type { APIGatewayProxyResult } from "aws-lambda";
import { fromSources } from "../bin/local/lambda.ts";
import { createApiKey } from "../functions/api-keys/api-key.ts";
import * as apiKeys from "../functions/api-keys/api-key-store.ts";
import { type Delivery, DUE_SHARDS, parkingShardOf } from "../functions/deliveries/delivery.ts";
import { ensureWakeUp } from "../functions/deliveries/parking-store.ts";
import { dynamo } from "../functions/platform/aws.ts";
import { settings, tableName } from "../functions/platform/env.ts";
import { inParallel } from "../functions/platform/parallel.ts";
import { handler as upsertMember } from "../functions/projects/upsert-member.ts";
import type { Webhook } from "../functions/webhooks/webhook.ts";
import * as webhooks from "../functions/webhooks/webhook-store.ts";
import { startChild } from "./child.ts";
import type { Bench, Result, Table, Target } from "./harness.ts";
import type { FromSender, ToSender } from "./scale/sender.ts";
import {
  addWebhook,
  call,
  firstAttempt,
  measureUsage,
  newDelivery,
  newEvent,
  prepare,
  queueEvent,
  startEngines,
  type Usage,
} from "./units.ts";

/*
 * Measures how cost grows with size: the exponent of a power law fitted to counted units. 0 is constant and 1 is linear; nothing
 * here may grow faster.
 */

/** Fits a straight line to the logarithms by least squares. Returns its slope with four digits. */
export function exponent(points: { size: number; cost: number }[]): number {
  const xs = points.map(({ size }) => Math.log(size));
  const ys = points.map(({ cost }) => Math.log(cost));
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [mean(xs), mean(ys)];
  const covariance = xs.reduce((sum, each, index) => sum + (each - x) * ((ys[index] ?? y) - y), 0);
  const slope = covariance / xs.reduce((sum, each) => sum + (each - x) ** 2, 0);
  return Math.round(slope * 10_000) / 10_000;
}

interface Series {
  name: string;
  /** The name of its target. */
  target: string;
  /** The maximum exponent: 0 or 1. */
  maxExponent: 0 | 1;
  points: { size: number; cost: number; also: string }[];
}

/** What noise and rounding may add to an exponent. */
const TOLERANCE = 0.05;

const seriesTable = ({ name, points }: Series): Table => ({
  title: `${name}: exponent ${exponent(points).toFixed(2)}`,
  columns: ["size", "cost", "also"],
  rows: points.map(({ size, cost, also }) => [size, cost, also]),
});

const seriesTarget = ({ target, maxExponent, points }: Series): Target => ({
  name: `${target}: exponent`,
  value: exponent(points),
  bound: maxExponent + TOLERANCE,
});

const describeUsage = ({ reads, writes, indexWrites, queueRequests, cpuMs }: Usage): string =>
  [
    `${reads} reads`,
    `${writes} + ${indexWrites} writes`,
    `${queueRequests} queue requests`,
    `${cpuMs.toFixed(1)} ms of CPU`,
  ].join(", ");

/** Calls an endpoint as the gateway does after the authorizer. */
async function callEndpoint(
  file: string,
  userId: string,
  pathParameters: Record<string, string> | null,
  queryStringParameters: Record<string, string> | null = null,
): Promise<{ usage: Usage; data: unknown[]; bytes: number }> {
  const event = {
    headers: {},
    pathParameters,
    queryStringParameters,
    body: null,
    requestContext: {
      requestId: randomUUID(),
      authorizer: { userId, authType: "jwt" },
      domainName: "api.example.com",
      path: "/prod/v1",
    },
  };
  const handler = await fromSources(file);
  const { result, usage } = await measureUsage(() => handler(event, {} as never));
  const { statusCode, body } = result as APIGatewayProxyResult;
  assert.equal(statusCode, 200, body);
  return { usage, data: JSON.parse(body).data, bytes: Buffer.byteLength(body) };
}

const KEYS = [1, 10, 100];

async function listKeys(): Promise<Series> {
  const points = [];
  for (const size of KEYS) {
    const userId = randomUUID();
    for (let count = 0; count < size; count++) {
      await apiKeys.insert(createApiKey(userId, { name: "deploy from CI" }, new Date(), randomBytes(48)).apiKey);
    }
    await callEndpoint("api-keys/list", userId, null);
    const { usage, data, bytes } = await callEndpoint("api-keys/list", userId, null);
    assert.equal(data.length, size);
    points.push({ size, cost: usage.reads, also: `${describeUsage(usage)}, ${bytes} bytes` });
  }
  return { name: "List of keys, by number of keys: reads", target: "list of keys, reads", maxExponent: 1, points };
}

const WEBHOOKS = [1, 10, 20];

/** @param isSlow the webhooks are marked as slow, so that their rows are written first */
async function fanOut(isSlow: boolean): Promise<Series> {
  const points = [];
  for (const size of WEBHOOKS) {
    const projectId = randomUUID();
    for (let count = 0; count < size; count++) {
      const webhook = await addWebhook(projectId, "https://hooks.example.com/");
      if (isSlow) await webhooks.markSlow(webhook, new Date().toISOString());
    }
    const once = () => call("deliveries/fan-out", queueEvent([JSON.stringify(newEvent(projectId))]));
    await once();
    const usage = await once();
    assert.equal(usage.writes, isSlow ? 1 + size : 1);
    points.push({ size, cost: usage.writes + usage.indexWrites, also: describeUsage(usage) });
  }
  return isSlow
    ? { name: "Fan-out to slow webhooks: writes", target: "fan-out to slow webhooks, writes", maxExponent: 1, points }
    : { name: "Fan-out, by number of webhooks: writes", target: "fan-out, writes", maxExponent: 0, points };
}

const PARKED = [10, 100, 1_000];

/** Counts a probe of a receiver that is down, by the number of deliveries that wait for it. */
async function probe(receiverUrl: string): Promise<Series> {
  const anHourAgo = new Date(Date.now() - 3_600_000);
  const points = [];
  for (const size of PARKED) {
    const webhook = await addWebhook(randomUUID(), `${receiverUrl}/500`);
    await webhooks.markFailing(webhook, anHourAgo.toISOString());
    const due_shard = parkingShardOf(webhook.id);
    await seed(Array.from({ length: size }, () => ({ ...newDelivery(webhook, anHourAgo), due_shard })));
    // Enqueues the first wake-up call of the webhook. The call below is the same.
    await ensureWakeUp(webhook, new Date());
    const wakeUp = { kind: "wake-up", project_id: webhook.project_id, webhook_id: webhook.id, generation: 1 };
    const usage = await call("attempts/send-slow", queueEvent([JSON.stringify(wakeUp)]));
    assert.equal(usage.logLines, 1, "one probe is sent");
    const cost = usage.reads + usage.writes + usage.indexWrites;
    points.push({ size, cost, also: describeUsage(usage) });
  }
  return {
    name: "Probe of a receiver that is down, by number of parked deliveries: reads and writes",
    target: "probe, reads and writes",
    maxExponent: 0,
    points,
  };
}

/** Writes rows directly, 25 per request. */
async function seed(rows: Iterable<Delivery>): Promise<void> {
  const table = tableName("deliveries");
  const batches: Delivery[][] = [];
  for (const row of rows) {
    const last = batches.at(-1);
    if (last && last.length < 25) last.push(row);
    else batches.push([row]);
  }
  await inParallel(batches, 8, async (batch) => {
    const { UnprocessedItems } = await dynamo().send(
      new BatchWriteCommand({ RequestItems: { [table]: batch.map((Item) => ({ PutRequest: { Item } })) } }),
    );
    assert.deepEqual(UnprocessedItems ?? {}, {});
  });
}

/** Yields rows of one webhook without a planned attempt. */
function* finished(webhook: Webhook, count: number): Generator<Delivery> {
  for (let index = 0; index < count; index++) {
    const { next_attempt_at, due_shard, due_at, ...delivery } = newDelivery(webhook);
    yield { ...delivery, status: "succeeded" };
  }
}

const LOGS = [100, 10_000, 100_000];

async function deliveryLog(): Promise<Series[]> {
  const userId = randomUUID();
  const project_id = randomUUID();
  await upsertMember({ user_id: userId, project_id, name: "Web shop", role: "admin" });

  const first = [];
  const failed: Series["points"] = [];
  for (const size of LOGS) {
    const webhook = await addWebhook(project_id, "https://hooks.example.com/");
    await seed(finished(webhook, size));
    const params = { project_id, webhook_id: webhook.id };
    await callEndpoint("deliveries/list", userId, params);
    const page = await callEndpoint("deliveries/list", userId, params);
    assert.equal(page.data.length, 20);
    first.push({ size, cost: page.usage.reads, also: describeUsage(page.usage) });
    // No row matches, so the search reads as many rows as it may.
    const none = await callEndpoint("deliveries/list", userId, params, { status: "failed", limit: "20" });
    assert.equal(none.data.length, 0);
    failed.push({
      size: Math.min(size, MAX_ROWS_READ),
      cost: none.usage.reads,
      also: `${size} rows, ${describeUsage(none.usage)}`,
    });
  }
  return [
    {
      name: "First page of a delivery log, by number of deliveries: reads",
      target: "delivery log page, reads",
      maxExponent: 0,
      points: first,
    },
    {
      name: `Search for a status that no row has, by number of rows read (at most ${MAX_ROWS_READ}): reads`,
      target: "delivery log search, reads",
      maxExponent: 1,
      points: failed.filter(({ size }, index) => failed.findIndex((each) => each.size === size) === index),
    },
  ];
}

const MAX_ROWS_READ = 1_000;

/** Numbers of due rows. The second is more than a run can enqueue in its time here. */
const DUE = [1_000, 20_000];
/** A run enqueues at most a thousand rows of one webhook. */
const DUE_PER_WEBHOOK = 200;
const SWEEP_MS = 12_000;
/** A sweep starts no page in its last five seconds. */
const SWEEP_RESERVE_MS = 5_000;

async function sweep(): Promise<Series> {
  const points = [];
  for (const rows of DUE) points.push(await sweepOnce(rows));
  return {
    name: "Sweep, by number of enqueued rows: writes per row",
    target: "sweep, writes per row",
    maxExponent: 0,
    points,
  };
}

/** Sweeps rows that have been due for an hour, spread evenly over the shards. */
async function sweepOnce(rows: number): Promise<{ size: number; cost: number; also: string }> {
  const anHourAgo = new Date(Date.now() - 3_600_000);
  for (let seeded = 0; seeded < rows; seeded += DUE_PER_WEBHOOK) {
    const webhook = await addWebhook(randomUUID(), "https://hooks.example.com/");
    await seed(
      Array.from({ length: DUE_PER_WEBHOOK }, (_, index) => {
        return { ...newDelivery(webhook, anHourAgo), due_shard: index % DUE_SHARDS };
      }),
    );
  }
  const endsAt = performance.now() + SWEEP_MS;
  const handler = await fromSources("deliveries/sweep");
  const context = { getRemainingTimeInMillis: () => endsAt - performance.now() } as never;
  const startedAt = performance.now();
  const { usage } = await measureUsage(() => handler({}, context));
  const seconds = (performance.now() - startedAt) / 1000;
  const enqueued = usage.writes;
  const ranOutOfTime = seconds * 1000 > SWEEP_MS - SWEEP_RESERVE_MS - 1_000;
  assert.ok(enqueued > 0 && (ranOutOfTime || enqueued === rows), `${enqueued} of ${rows} rows were enqueued`);
  return {
    size: enqueued,
    cost: (usage.writes + usage.indexWrites) / enqueued,
    also: `${describeUsage(usage)}; ${Math.round(enqueued / seconds)} rows per second here${ranOutOfTime ? ", then it ran out of time" : ""}`,
  };
}

/** The numbers of deliveries after which the memory of the sender is measured. */
const SENT = [1_000, 2_000, 4_000, 8_000];
/** Points that have not started by then are left out. */
const SENDER_MS = 20_000;

/** The memory of the sender in its row. The flags are those of Lambda's runtime. */
const SENDER_MB = 256;
const heapFlags = [
  `--max-old-space-size=${Math.floor(SENDER_MB * 0.9)}`,
  `--max-semi-space-size=${Math.floor(SENDER_MB * 0.05)}`,
];

/** Measures the heap of the sender after garbage collection. It has a process of its own. */
async function senderMemory(receiverUrl: string): Promise<Series> {
  const sender = await startChild<"ready">(join(import.meta.dirname, "scale", "sender.ts"), {
    execArgv: ["--expose-gc", ...heapFlags],
  });
  const request = <Reply extends FromSender>(message: ToSender): Promise<Reply> => sender.request(message);
  try {
    const receiving = await Promise.all(
      Array.from({ length: 20 }, () => addWebhook(randomUUID(), `${receiverUrl}/200`)),
    );
    const points: Series["points"] = [];
    const startedAt = performance.now();
    let sent = 0;
    for (const size of SENT) {
      // The next point takes as long as all points before it.
      if (performance.now() - startedAt > SENDER_MS / 2) break;
      while (sent < size) {
        const some = Array.from({ length: 500 }, (_, index) => newDelivery(receiving[index % 20] as Webhook));
        for (let first = 0; first < some.length; first += 10) {
          const batch = queueEvent(some.slice(first, first + 10).map(firstAttempt));
          assert.deepEqual(await request({ batch }), { attempts: 10 });
        }
        sent += some.length;
      }
      const { heapMb, residentMb } = await request<Extract<FromSender, { heapMb: number }>>("measure");
      points.push({ size, cost: heapMb, also: `${Math.round(residentMb)} MB resident maximum` });
    }
    assert.ok(points.length >= 2, "a slope needs two points");
    return {
      name: `Sender with ${SENDER_MB} MB, by number of deliveries: MB of heap`,
      target: "memory of the sender",
      maxExponent: 0,
      points,
    };
  } finally {
    await sender.end();
  }
}

export const bench: Bench = {
  name: "scale",
  about: "how cost grows with size",
  async run(): Promise<Result> {
    const engines = await startEngines();
    try {
      await prepare();
      assert.equal(settings.deliveryGraceSeconds(), 120);
      const all = [
        await senderMemory(engines.receiverUrl),
        await listKeys(),
        await fanOut(false),
        await fanOut(true),
        await probe(engines.receiverUrl),
        ...(await deliveryLog()),
        await sweep(),
      ];
      return {
        tables: all.map(seriesTable),
        targets: all.map(seriesTarget),
        notes: ["Reads and writes are units of DynamoDB; their duration here is not that of AWS."],
        data: all,
      };
    } finally {
      await engines.stop();
    }
  },
};

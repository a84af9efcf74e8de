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
import { workers } from "../functions/manifest/workers.ts";
import { dynamo } from "../functions/platform/aws.ts";
import { tableName } from "../functions/platform/env.ts";
import { inParallel } from "../functions/platform/parallel.ts";
import { handler as upsertMember } from "../functions/projects/upsert-member.ts";
import * as webhooks from "../functions/webhooks/webhook-store.ts";
import { sqsEvent } from "../test/support/deliveries.ts";
import { startChild, withStarted } from "./child.ts";
import type { Bench, Result, Table, Target } from "./harness.ts";
import { startEngines } from "./receivers.ts";
import type { Sent } from "./sender.ts";
import { addWebhook, call, measureUsage, newDelivery, newEvent, prepare, type Usage } from "./units.ts";

/*
 * Measures how cost grows with size: the exponent of a power law fitted to counted units. 0 is constant and 1 is linear; nothing
 * here may grow faster. Then the memory of the sender over many deliveries, and the rate of the sweep over many due rows: as many
 * as fit into the time.
 */

export interface Plan {
  /** Sizes of lists: of keys, of the webhooks of an event, of parked deliveries, of a delivery log. */
  keys: number[];
  webhooks: number[];
  parked: number[];
  log: number[];
  /** How long the sender runs, and how often its memory is measured in that time. */
  senderMs: number;
  senderPoints: number;
  /** Max due rows, max time to write them, and max time to sweep them. */
  due: number;
  seedMs: number;
  sweepMs: number;
}

const full: Plan = {
  keys: [1, 10, 100],
  webhooks: [1, 10, 20],
  parked: [10, 100, 1_000],
  log: [100, 1_000, 10_000],
  senderMs: 90_000,
  senderPoints: 6,
  due: 100_000,
  seedMs: 60_000,
  sweepMs: 100_000,
};

/** What noise and rounding may add to an exponent. */
const TOLERANCE = 0.05;
const WRITES_PER_SWEPT_ROW = 3;
const SWEPT_PER_SECOND = 1_000;

interface Point {
  size: number;
  cost: number;
  also: string;
}

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

/** Measures one size after the other. @param cost of a usage, reads and writes unless given */
async function grow(
  sizes: number[],
  measure: (size: number) => Promise<Usage>,
  cost = ({ reads, writes, indexWrites }: Usage) => reads + writes + indexWrites,
): Promise<Point[]> {
  const points: Point[] = [];
  for (const size of sizes) {
    const usage = await measure(size);
    const { reads, writes, indexWrites, queueRequests, cpuMs } = usage;
    const also = `${reads} reads, ${writes} + ${indexWrites} writes, ${queueRequests} queue requests, ${cpuMs.toFixed(1)} ms`;
    points.push({ size, cost: cost(usage), also });
  }
  return points;
}

/** Calls an endpoint as the gateway does after the authorizer. Returns its usage and the number of items in its list. */
async function callList(
  file: string,
  userId: string,
  pathParameters: Record<string, string> | null,
  queryStringParameters: Record<string, string> | null = null,
): Promise<{ usage: Usage; items: number }> {
  const asUser = { authorizer: { userId, authType: "jwt" }, domainName: "api.example.com", path: "/prod/v1" };
  const requestContext = { requestId: randomUUID(), ...asUser };
  const handler = await fromSources(file);
  const event = { headers: {}, pathParameters, queryStringParameters, body: null, requestContext };
  const { result, usage } = await measureUsage(() => handler(event, {} as never));
  const { statusCode, body } = result as APIGatewayProxyResult;
  assert.equal(statusCode, 200, body);
  return { usage, items: JSON.parse(body).data.length };
}

async function listKeys(size: number): Promise<Usage> {
  const userId = randomUUID();
  for (let count = 0; count < size; count++) {
    await apiKeys.insert(createApiKey(userId, { name: "deploy from CI" }, new Date(), randomBytes(48)).apiKey);
  }
  const { usage, items } = await callList("api-keys/list", userId, null);
  assert.equal(items, size);
  return usage;
}

/** @param isSlow the webhooks are marked as slow, so that their rows are written first */
const fanOut = (isSlow: boolean) => async (size: number) => {
  const projectId = randomUUID();
  for (let count = 0; count < size; count++) {
    const webhook = await addWebhook(projectId, "https://hooks.example.com/");
    if (isSlow) await webhooks.markSlow(webhook, new Date().toISOString());
  }
  return call("deliveries/fan-out", sqsEvent(newEvent(projectId)));
};

/** Counts a probe of a receiver that is down, by the number of deliveries that wait for it. */
const probe = (receiverUrl: string) => async (size: number) => {
  const anHourAgo = new Date(Date.now() - 3_600_000);
  const webhook = await addWebhook(randomUUID(), `${receiverUrl}/500`);
  await webhooks.markFailing(webhook, anHourAgo.toISOString());
  const due_shard = parkingShardOf(webhook.id);
  await seed(Array.from({ length: size }, () => ({ ...newDelivery(webhook, anHourAgo), due_shard })));
  // Enqueues the first wake-up call of the webhook. The call below is the same.
  await ensureWakeUp(webhook, new Date());
  const wakeUp = { kind: "wake-up", project_id: webhook.project_id, webhook_id: webhook.id, generation: 1 };
  return call("attempts/send-slow", sqsEvent(wakeUp));
};

/** @param query a search that no row matches reads as many rows as it may */
const deliveryLog = (query: Record<string, string> | null) => async (size: number) => {
  const userId = randomUUID();
  const webhook = await addWebhook(randomUUID(), "https://hooks.example.com/");
  await upsertMember({ user_id: userId, project_id: webhook.project_id, name: "Web shop", role: "admin" });
  await seed(
    Array.from({ length: size }, () => {
      const { next_attempt_at, due_shard, due_at, ...delivery } = newDelivery(webhook);
      return { ...delivery, status: "succeeded" as const };
    }),
  );
  const params = { project_id: webhook.project_id, webhook_id: webhook.id };
  return (await callList("deliveries/list", userId, params, query)).usage;
};

/** Writes rows directly, 25 per request. */
async function seed(rows: Delivery[]): Promise<void> {
  const table = tableName("deliveries");
  const batches = Array.from({ length: Math.ceil(rows.length / 25) }, (_, index) =>
    rows.slice(25 * index, 25 * index + 25),
  );
  await inParallel(batches, 8, async (batch) => {
    const RequestItems = { [table]: batch.map((Item) => ({ PutRequest: { Item } })) };
    const { UnprocessedItems = {} } = await dynamo().send(new BatchWriteCommand({ RequestItems }));
    assert.deepEqual(UnprocessedItems, {});
  });
}

/** A run enqueues at most a thousand rows of one webhook. */
const DUE_PER_WEBHOOK = 200;

/** Sweeps rows that have been due for an hour, spread evenly over the shards, in runs as long as on AWS. */
async function sweep({ due, seedMs, sweepMs }: Plan): Promise<{ table: Table; targets: Target[] }> {
  const anHourAgo = new Date(Date.now() - 3_600_000);
  const seededUntil = performance.now() + seedMs;
  let rows = 0;
  for (; rows < due && performance.now() < seededUntil; rows += DUE_PER_WEBHOOK) {
    const webhook = await addWebhook(randomUUID(), "https://hooks.example.com/");
    const delivery = (_: unknown, index: number) => ({
      ...newDelivery(webhook, anHourAgo),
      due_shard: index % DUE_SHARDS,
    });
    await seed(Array.from({ length: DUE_PER_WEBHOOK }, delivery));
  }
  const timeoutMs = (workers.find(({ file }) => file === "deliveries/sweep")?.timeoutSeconds ?? 0) * 1000;
  const handler = await fromSources("deliveries/sweep");
  const startedAt = performance.now();
  const sums = { runs: 0, rows: 0, writes: 0, queueRequests: 0 };
  for (let isDone = false; !isDone && performance.now() < startedAt + sweepMs; ) {
    const runEndsAt = Math.min(performance.now() + timeoutMs, startedAt + sweepMs);
    const context = { getRemainingTimeInMillis: () => runEndsAt - performance.now() } as never;
    const { usage } = await measureUsage(() => handler({}, context));
    sums.runs += 1;
    sums.rows += usage.writes;
    sums.writes += usage.writes + usage.indexWrites;
    sums.queueRequests += usage.queueRequests;
    isDone = sums.rows >= rows || usage.writes === 0;
  }
  const seconds = (performance.now() - startedAt) / 1000;
  assert.ok(sums.rows > 0 && sums.rows <= rows, `${sums.rows} of ${rows} due rows were enqueued`);
  const perSecond = sums.rows / seconds;
  return {
    table: {
      title: "Sweep",
      columns: ["due rows", "enqueued", "runs", "writes per row", "queue requests", "rows per second"],
      rows: [[rows, sums.rows, sums.runs, sums.writes / sums.rows, sums.queueRequests, perSecond]],
    },
    targets: [
      { name: "sweep, writes per row", value: sums.writes / sums.rows, bound: WRITES_PER_SWEPT_ROW },
      { name: "sweep, rows per second", value: perSecond, bound: SWEPT_PER_SECOND, atLeast: true },
    ],
  };
}

/** The memory of the sender in its row. The flags are those of Lambda's runtime. */
const SENDER_MB = 256;
const heapFlags = [
  `--max-old-space-size=${Math.floor(SENDER_MB * 0.9)}`,
  `--max-semi-space-size=${Math.floor(SENDER_MB * 0.05)}`,
];

/** Measures the heap of the sender after garbage collection. The first part warms it up and is left out. */
async function senderMemory(receiverUrl: string, { senderMs, senderPoints }: Plan): Promise<Point[]> {
  const { request, end } = await startChild<"ready">(join(import.meta.dirname, "sender.ts"), {
    args: [`${receiverUrl}/ok`],
    execArgv: ["--expose-gc", ...heapFlags],
    timeoutMs: 2 * senderMs + 30_000,
  });
  try {
    const points: Point[] = [];
    for (let part = 0; part <= senderPoints; part++) {
      const { deliveries, heapMb, residentMb } = await request<Sent>({ forMs: senderMs / (senderPoints + 1) });
      if (part > 0)
        points.push({ size: deliveries, cost: heapMb, also: `${Math.round(residentMb)} MB resident maximum` });
    }
    return points;
  } finally {
    await end();
  }
}

export function measureScale(plan: Plan): Promise<Result> {
  return withStarted(async (start) => {
    const { origin } = await start(startEngines());
    await prepare();
    const writes = (usage: Usage) => usage.writes + usage.indexWrites;
    /** Name, max exponent and points of each series. */
    const all: [name: string, max: 0 | 1, points: Point[]][] = [
      [`memory of the sender (${SENDER_MB} MB), MB of heap`, 0, await senderMemory(origin, plan)],
      ["list of keys, reads", 1, await grow(plan.keys, listKeys)],
      ["fan-out, writes", 0, await grow(plan.webhooks, fanOut(false), writes)],
      ["fan-out to slow webhooks, writes", 1, await grow(plan.webhooks, fanOut(true), writes)],
      ["probe, reads and writes", 0, await grow(plan.parked, probe(origin))],
      ["delivery log page, reads", 0, await grow(plan.log, deliveryLog(null))],
      ["delivery log search, reads", 1, await grow(plan.log, deliveryLog({ status: "failed", limit: "20" }))],
    ];
    const swept = await sweep(plan);
    return {
      tables: [
        ...all.map(([name, , points]) => ({
          title: `${name}: exponent ${exponent(points).toFixed(2)}`,
          columns: ["size", "cost", "also"],
          rows: points.map(({ size, cost, also }) => [size, cost, also]),
        })),
        swept.table,
      ],
      targets: [
        ...all.map(([name, max, points]) => ({
          name: `${name}: exponent`,
          value: exponent(points),
          bound: max + TOLERANCE,
        })),
        ...swept.targets,
      ],
      notes: ["Reads and writes are units of DynamoDB; their duration here is not that of AWS."],
      data: all,
    };
  });
}

export const bench: Bench = {
  name: "scale",
  about: "how cost grows with size, the memory of the sender, and the rate of the sweep",
  run: () => measureScale(full),
};

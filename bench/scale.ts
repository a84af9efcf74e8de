import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { BatchWriteCommand } from "@aws-sdk/lib-dynamodb";
import type { APIGatewayProxyResult } from "aws-lambda";
import { fromSources } from "../bin/local/lambda.ts";
import { type Delivery, DUE_SHARDS, parkingShardOf } from "../functions/deliveries/delivery.ts";
import { ensureWakeUp } from "../functions/deliveries/parking-store.ts";
import { workers } from "../functions/manifest/workers.ts";
import { dynamo } from "../functions/platform/aws.ts";
import { tableName } from "../functions/platform/env.ts";
import { inParallel } from "../functions/platform/parallel.ts";
import { handler as upsertMember } from "../functions/projects/upsert-member.ts";
import * as webhooks from "../functions/webhooks/webhook-store.ts";
import { restoreAws, watchDynamo } from "../test/support/aws-calls.ts";
import { sqsEvent } from "../test/support/deliveries.ts";
import { startChild, withStarted } from "./child.ts";
import type { Bench, Result, Table, Target } from "./harness.ts";
import { startEngines } from "./receivers.ts";
import type { Sent } from "./sender.ts";
import { addWebhook, call, measureUsage, newDelivery, prepare, type Usage } from "./units.ts";

/*
 * Measures how cost grows with size: the exponent of a power law fitted to counted units. 0 is constant and 1 is linear; nothing
 * here may grow faster. Then the memory of the sender over many deliveries, and the rate of the sweep over many due rows: as many
 * as fit into the time.
 */

export interface Plan {
  /** Numbers of parked deliveries, and of deliveries in a log. */
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
  parked: [10, 100, 1_000],
  log: [100, 1_000, 10_000],
  senderMs: 90_000,
  senderPoints: 6,
  due: 100_000,
  seedMs: 60_000,
  sweepMs: 100_000,
};

/** Tolerance for noise and rounding of an exponent. */
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

/** Counts one size after the other. The cost is that in reads and writes. */
async function grow(sizes: number[], measure: (size: number) => Promise<Usage>): Promise<Point[]> {
  const points: Point[] = [];
  for (const size of sizes) {
    const { reads, writes, indexWrites, queueRequests } = await measure(size);
    const also = `${reads} reads, ${writes} + ${indexWrites} writes, ${queueRequests} queue requests`;
    points.push({ size, cost: reads + writes + indexWrites, also });
  }
  return points;
}

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
  const event = {
    headers: {},
    pathParameters: { project_id: webhook.project_id, webhook_id: webhook.id },
    queryStringParameters: query,
    body: null,
    requestContext: {
      requestId: randomUUID(),
      ...{ authorizer: { userId, authType: "jwt" }, domainName: "api.example.com", path: "/prod/v1" },
    },
  };
  const handler = await fromSources("deliveries/list");
  const { result, usage } = await measureUsage(() => handler(event, {} as never));
  assert.equal((result as APIGatewayProxyResult).statusCode, 200);
  return usage;
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
  const calls = watchDynamo();
  const updates = () => calls.filter(({ command }) => command === "UpdateItemCommand");
  const startedAt = performance.now();
  const endsAt = startedAt + sweepMs;
  const isOver = () => updates().length >= rows || performance.now() > endsAt;
  let runs = 0;
  let failures = 0;
  for (let before = -1; updates().length > before && !isOver(); runs++) {
    before = updates().length;
    const runEndsAt = Math.min(performance.now() + timeoutMs, endsAt);
    const context = { getRemainingTimeInMillis: () => runEndsAt - performance.now() } as never;
    // A call that times out on a busy machine fails the run. The next one continues, as on AWS.
    await handler({}, context).catch(() => failures++);
  }
  const seconds = (performance.now() - startedAt) / 1000;
  const enqueued = updates().length;
  const writes = updates().reduce((sum, { units }) => sum + units, 0) / enqueued;
  restoreAws();
  assert.ok(enqueued > 0 && enqueued <= rows + DUE_PER_WEBHOOK, `${enqueued} of ${rows} due rows were enqueued`);
  return {
    table: {
      title: "Sweep",
      columns: ["due rows", "enqueued", "runs", "failed runs", "writes per row", "rows per second"],
      rows: [[rows, enqueued, runs, failures, writes, enqueued / seconds]],
    },
    targets: [
      { name: "sweep, writes per row", value: writes, bound: WRITES_PER_SWEPT_ROW },
      { name: "sweep, rows per second", value: enqueued / seconds, bound: SWEPT_PER_SECOND, atLeast: true },
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
    /** Name, max exponent and points of each series. */
    const all: [name: string, max: 0 | 1, points: Point[]][] = [
      [`memory of the sender (${SENDER_MB} MB), MB of heap`, 0, await senderMemory(origin, plan)],
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

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { BatchWriteCommand } from "@aws-sdk/lib-dynamodb";
import { fromSources } from "../bin/local/lambda.ts";
import { type Delivery, DUE_SHARDS } from "../functions/deliveries/delivery.ts";
import { workers } from "../functions/manifest/workers.ts";
import { dynamo } from "../functions/platform/aws.ts";
import { tableName } from "../functions/platform/env.ts";
import { inParallel } from "../functions/platform/parallel.ts";
import { restoreAws, watchDynamo } from "../test/support/aws-calls.ts";
import { startChild, withStarted } from "./child.ts";
import { type Bench, median, type Result, tableOf } from "./harness.ts";
import { startEngines } from "./receivers.ts";
import type { Sent } from "./sender.ts";
import { addWebhook, newDelivery, prepare } from "./units.ts";

/* Measures the memory of the sender over many deliveries, and the rate of the sweep over many due rows: as many as fit into the time. */

const full = {
  /** How long the sender runs, and how often its memory is measured in that time. */
  senderMs: 190_000,
  senderPoints: 6,
  /** Max due rows, max time to write them, and max time to sweep them. */
  due: 100_000,
  seedMs: 60_000,
  sweepMs: 100_000,
};

type Plan = typeof full;

/** Heap of the second half of the deliveries, compared with the first half. */
const MAX_HEAP_GROWTH = 1.05;
/** Deliveries of the sender, and due rows of the sweep. */
const DELIVERIES = 100_000;
const WRITES_PER_SWEPT_ROW = 3;
const SWEPT_PER_SECOND = 1_000;

/** Writes rows directly, 25 per request. */
async function seed(rows: Delivery[]): Promise<void> {
  const batches = Array.from({ length: Math.ceil(rows.length / 25) }, (_, index) =>
    rows.slice(25 * index).slice(0, 25),
  );
  await inParallel(batches, 8, async (batch) => {
    const RequestItems = { [tableName("deliveries")]: batch.map((Item) => ({ PutRequest: { Item } })) };
    const { UnprocessedItems = {} } = await dynamo().send(new BatchWriteCommand({ RequestItems }));
    assert.deepEqual(UnprocessedItems, {});
  });
}

/** A run enqueues at most a thousand rows of one webhook. */
const DUE_PER_WEBHOOK = 200;

/** Sweeps rows that have been due for an hour, spread evenly over the shards, in runs as long as on AWS. */
async function sweep({ due, seedMs, sweepMs }: Plan): Promise<Result> {
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
    tables: [
      tableOf("Sweep", [
        {
          ...{ "due rows": rows, enqueued, runs, "failed runs": failures },
          ...{ "writes per row": writes, "rows per second": enqueued / seconds },
        },
      ]),
    ],
    targets: [
      { name: "due rows swept", value: enqueued, bound: DELIVERIES, atLeast: true },
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
function senderMemory(receiverUrl: string, { senderMs, senderPoints }: Plan): Promise<Result> {
  return withStarted(async (start) => {
    const { request } = await start(
      startChild<"ready">(join(import.meta.dirname, "sender.ts"), {
        args: [`${receiverUrl}/ok`],
        execArgv: ["--expose-gc", ...heapFlags],
        timeoutMs: 2 * senderMs + 30_000,
      }),
    );
    const points: Sent[] = [];
    for (let part = 0; part <= senderPoints; part++)
      points.push(await request<Sent>({ forMs: senderMs / (senderPoints + 1) }));
    points.shift();
    const heaps = points.map(({ heapMb }) => heapMb);
    const half = heaps.length / 2;
    const deliveries = points.at(-1)?.deliveries ?? 0;
    return {
      tables: [
        tableOf(
          `memory of the sender (${SENDER_MB} MB)`,
          points.map((point) => ({ ...point })),
        ),
      ],
      targets: [
        {
          name: "sender's heap, second half / first half of the deliveries",
          value: median(heaps.slice(Math.floor(half))) / median(heaps.slice(0, Math.ceil(half))),
          bound: MAX_HEAP_GROWTH,
        },
        { name: "deliveries of the sender", value: deliveries, bound: DELIVERIES, atLeast: true },
      ],
    };
  });
}

export function measureScale(plan: Plan): Promise<Result> {
  return withStarted(async (start) => {
    const { origin } = await start(startEngines());
    await prepare();
    const [memory, swept] = [await senderMemory(origin, plan), await sweep(plan)];
    return {
      tables: [...memory.tables, ...swept.tables],
      targets: [...memory.targets, ...swept.targets],
      notes: ["Writes are units of DynamoDB; their duration here is not that of AWS."],
    };
  });
}

export const bench: Bench = {
  name: "scale",
  about: "the memory of the sender over many deliveries, and the rate of the sweep",
  run: () => measureScale(full),
};

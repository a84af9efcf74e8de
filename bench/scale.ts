import assert from "node:assert/strict";
import { join } from "node:path";
import { fromSources } from "../bin/local/lambda.ts";
import { workers } from "../functions/manifest/workers.ts";
import { restoreAws, watchDynamo, watchQueue } from "../test/support/aws-calls.ts";
import { startChild, withStarted } from "./child.ts";
import { type Bench, median, type Result, tableOf } from "./harness.ts";
import { startEngines } from "./receivers.ts";
import type { Sent } from "./sender.ts";
import { prepare, seedWakeUps } from "./units.ts";

/*
 * Measures the memory of the sender over many deliveries, and the rate of the sweep over many overdue wake-ups: as many as fit
 * into the time.
 */

const full = {
  /** How long the sender runs, and how often its memory is measured in that time. */
  senderMs: 190_000,
  senderPoints: 6,
  /** Max overdue wake-ups, max time to write them, and max time to sweep them. */
  due: 20_000,
  seedMs: 60_000,
  sweepMs: 100_000,
};

type Plan = typeof full;

/** Heap of the second half of the deliveries, compared with the first half. */
const MAX_HEAP_GROWTH = 1.05;
/** Deliveries of the sender. */
const DELIVERIES = 100_000;
/** Wake-ups of one webhook each, in a run of a minute. */
const CALLED_IN_A_RUN = 20_000;
/** A page of a hundred wake-ups is about 20 KB, read with half a unit for 4 KB. Empty shards count as well. */
const READS_PER_WAKE_UP = 0.05;
const SWEPT_PER_SECOND = 1_000;
/** Wake-ups that are written before the time is checked again. */
const PER_SEED = 400;

/** Calls the workers of webhooks whose wake-up has been due for an hour, in runs as long as on AWS. */
async function sweep({ due, seedMs, sweepMs }: Plan): Promise<Result> {
  const seededUntil = performance.now() + seedMs;
  let wakeUps = 0;
  for (; wakeUps < due && performance.now() < seededUntil; wakeUps += PER_SEED) await seedWakeUps(PER_SEED);
  const timeoutMs = (workers.find(({ file }) => file === "deliveries/sweep")?.timeoutSeconds ?? 0) * 1000;
  const handler = await fromSources("deliveries/sweep");
  const [calls, batches] = [watchDynamo(), watchQueue()];
  const startedAt = performance.now();
  const endsAt = startedAt + Math.min(timeoutMs, sweepMs);
  // One run: the next one would call for the same webhooks again, because nothing has looked at their lines.
  await handler({}, { getRemainingTimeInMillis: () => endsAt - performance.now() } as never);
  const seconds = (performance.now() - startedAt) / 1000;
  const called = batches.reduce((sum, { Entries }) => sum + Entries.length, 0);
  const reads = calls.reduce((sum, { units }) => sum + units, 0) / called;
  restoreAws();
  assert.ok(called > 0 && called <= wakeUps, `${called} of ${wakeUps} workers were called`);
  return {
    tables: [
      tableOf("Sweep", [
        { "overdue wake-ups": wakeUps, called, "reads per wake-up": reads, "wake-ups per second": called / seconds },
      ]),
    ],
    targets: [
      { name: "sweep, workers called in a run", value: called, bound: CALLED_IN_A_RUN, atLeast: true },
      { name: "sweep, reads per wake-up", value: reads, bound: READS_PER_WAKE_UP },
      { name: "sweep, wake-ups per second", value: called / seconds, bound: SWEPT_PER_SECOND, atLeast: true },
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
      notes: ["Reads are units of DynamoDB; their duration here is not that of AWS."],
    };
  });
}

export const bench: Bench = {
  name: "scale",
  about: "the memory of the sender over many deliveries, and the rate of the sweep",
  run: () => measureScale(full),
};

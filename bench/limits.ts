import { DEFAULT_SCHEDULE } from "../functions/attempts/retry.ts";
import { DUE_SHARDS } from "../functions/deliveries/delivery.ts";
import type { QueueKey } from "../functions/manifest/queues.ts";
import { type WorkerRow, workers } from "../functions/manifest/workers.ts";
import { stageNamed } from "../lib/stages.ts";
import { type Assumptions, asDeployed, assumed, billedMs, MB_PER_VCPU } from "./billed-time.ts";
import type { Table } from "./harness.ts";
import type { Units } from "./units.ts";

/*
 * Which limit is hit first when deliveries grow: quotas of AWS and settings of ours, divided by what a delivery takes of them
 * as counted. Computed, never driven on AWS.
 */

/** Default quotas, and where they stand. A new account may have less. */
const quotas = {
  /** Writes and reads a second for one partition key value. */
  partitionWrites: 1_000,
  partitionReads: 3_000,
  /** Writes a second that a new on-demand table takes at once; after that, twice its last peak every 30 minutes. */
  newTableWrites: 4_000,
  /** Writes a second of one table, and apart from them of one index. */
  tableWrites: 40_000,
  concurrency: 1_000,
  /** Requests a second of all APIs of an account and region. */
  apiRequests: 10_000,
} as const;

const RATES = [1, 100, 10_000];
/** An attempt that hangs is given up after this long (functions/deliveries/receiver-client.ts). */
const HANGING_MS = 15_000;
/** The share that fails for good in the row about the sweep. */
const FAILING = 0.05;

export interface Limit {
  name: string;
  /** Deliveries a second that it carries, one webhook an event. */
  carries: number;
  raise: string;
}

const workerFor = (file: WorkerRow["file"]): WorkerRow => {
  const row = (workers as readonly WorkerRow[]).find((worker) => worker.file === file);
  if (!row) throw new Error(`There is no worker ${file}`);
  return row;
};

function mappingOf(file: WorkerRow["file"]): { queue: QueueKey; batchSize: number; maxConcurrency: number } {
  const { trigger } = workerFor(file);
  if (trigger.kind !== "queue") throw new Error(`${file} has no queue`);
  return trigger;
}

/** All limits, the lowest first. */
export function limitsOf(units: Units, given: Assumptions = assumed): Limit[] {
  const config = asDeployed(units);
  const [fanOut] = units.fanOut.filter(({ events, webhooks }) => events === 10 && webhooks === 1);
  const [alone] = units.fanOut.filter(({ events, webhooks }) => events === 1 && webhooks === 1);
  const send = units.send.find(({ messages }) => messages === 10)?.taken;
  const sendAlone = units.send.find(({ messages }) => messages === 1)?.taken;
  const swept = units.sweep.find(({ rows }) => rows > 0);
  const idle = units.sweep.find(({ rows }) => rows === 0)?.taken;
  if (!fanOut || !alone || !send || !sendAlone || !swept || !idle) throw new Error("Not all of it was counted");

  const setup = (file: string) => ({ memoryMb: config.memoryMb(file), cpu: "arm" as const, hasSystemLines: true });
  const sender = mappingOf("attempts/send");
  const fanner = mappingOf("deliveries/fan-out");
  const sendMs = (receiverMs: number) =>
    billedMs(send, sendAlone.waits, receiverMs, setup("attempts/send"), { ...given, coldShare: 0 });
  const fanOutMs = billedMs(fanOut.taken, alone.taken.waits, 0, setup("deliveries/fan-out"), {
    ...given,
    coldShare: 0,
  });
  /** By Little's law: so many at work at once, each so long, with ten deliveries. */
  const carriedBy = (atOnce: number, ms: number, batchSize: number) => (atOnce * batchSize * 1000) / ms;
  const writes = alone.taken.writes + sendAlone.writes;
  const indexWrites = alone.taken.indexWrites + sendAlone.indexWrites;
  /** CPU alone: the calls to AWS of a page are made together. */
  const sweepMs =
    ((swept.taken.cpuMs - idle.cpuMs) / swept.rows) *
    given.cpuFactor *
    (MB_PER_VCPU / setup("deliveries/sweep").memoryMb);
  const sweepRow = workerFor("deliveries/sweep");
  const sweptASecond = ((sweepRow.timeoutSeconds - 5) * 1000) / sweepMs / 60;
  const sweepsPerFailure = DEFAULT_SCHEDULE.filter((seconds) => seconds > 900).length;

  const limits: Limit[] = [
    {
      name: `senders, ${sender.maxConcurrency} at once, every receiver hangs for 15 s`,
      carries: carriedBy(sender.maxConcurrency, sendMs(HANGING_MS), sender.batchSize),
      raise:
        "`maxConcurrency` of `attempts/send` in functions/manifest/workers.ts; nothing is lost, deliveries wait on the queue",
    },
    {
      name: `senders, ${sender.maxConcurrency} at once, receivers answer in ${given.receiverMs} ms`,
      carries: carriedBy(sender.maxConcurrency, sendMs(given.receiverMs), sender.batchSize),
      raise: "the same, up to 1,000, the most that a mapping takes; then AWS Support or provisioned pollers",
    },
    {
      name: "one webhook: writes of its partition in `deliveries`",
      carries: quotas.partitionWrites / writes,
      raise: "the key schema: a webhook would have to be spread over several keys, and its log read from all of them",
    },
    {
      name: "one project: reads of its partition in `webhooks`",
      carries: quotas.partitionReads / 2,
      raise: "eventually consistent reads double it",
    },
    {
      name: "the table `deliveries` as it was made",
      carries: quotas.newTableWrites / writes,
      raise: "nothing, or warm throughput of the table before a launch; it doubles by itself within 30 minutes",
    },
    {
      name: `the sweep, when ${FAILING * 100} % of all deliveries fail for good`,
      carries: sweptASecond / (FAILING * sweepsPerFailure),
      raise: "`memoryMb` of `deliveries/sweep` in functions/manifest/workers.ts: 1,769 is three times as fast",
    },
    {
      name: `fan-outs, ${fanner.maxConcurrency} at once`,
      carries: carriedBy(fanner.maxConcurrency, fanOutMs, fanner.batchSize),
      raise: "`maxConcurrency` of `deliveries/fan-out` in functions/manifest/workers.ts",
    },
    {
      name: `the index \`due\`: its ${DUE_SHARDS} partitions`,
      carries: (quotas.partitionWrites * DUE_SHARDS) / indexWrites,
      raise: "`DUE_SHARDS` in functions/deliveries/delivery.ts: more at any time, fewer only when the index is empty",
    },
    {
      name: "the table `deliveries`, and apart from it its index",
      carries: quotas.tableWrites / Math.max(writes, indexWrites),
      raise: "Service Quotas, DynamoDB, *Table-level write throughput limit*",
    },
    {
      name: `the account's Lambdas, ${quotas.concurrency.toLocaleString("en")} at once, receivers answer in ${given.receiverMs} ms`,
      carries:
        quotas.concurrency / (sendMs(given.receiverMs) / 1000 / sender.batchSize + fanOutMs / 1000 / fanner.batchSize),
      raise: "Service Quotas, Lambda, *Concurrent executions*; before `maxConcurrency` beyond some 800",
    },
  ];
  return limits.sort((a, b) => a.carries - b.carries);
}

const rounded = (value: number): number => Number(value.toPrecision(2));

const share = (rate: number, carries: number): string => {
  const percent = (100 * rate) / carries;
  return percent > 100 ? "**over**" : percent < 1 ? "< 1 %" : `${Math.round(percent)} %`;
};

export function limitsTable(units: Units): Table {
  return {
    title: "Limits of the delivery pipeline, the lowest first",
    columns: [
      "limit",
      "deliveries a second",
      ...RATES.map((rate) => `at ${rate.toLocaleString("en")}/s`),
      "what to raise",
    ],
    rows: limitsOf(units).map(({ name, carries, raise }) => [
      name,
      rounded(carries).toLocaleString("en"),
      ...RATES.map((rate) => share(rate, carries)),
      raise,
    ]),
  };
}

/** The front door on its own: requests, not deliveries. */
export function frontDoorTable(units: Units): Table {
  const { throttle } = stageNamed("prod");
  const config = asDeployed(units);
  const [request] = units.requests.filter(
    ({ route, credential }) => route === "GET /v1/projects" && credential === "key",
  );
  if (!request) throw new Error("GET /v1/projects was not counted");
  const msOf = (file: string, taken: typeof request.endpoint) =>
    billedMs(
      taken,
      taken.waits,
      0,
      { memoryMb: config.memoryMb(file), cpu: "arm", hasSystemLines: true },
      { ...assumed, coldShare: 0 },
    );
  const busyMs = msOf("auth/authorizer", request.authorizer) + msOf("projects/list", request.endpoint);
  const rows: [string, number, string][] = [
    ["throttle of the stage prod", throttle.requestsPerSecond, "`throttle` in lib/stages.ts"],
    ["one API key, or one user's list: reads of a partition", quotas.partitionReads, "nothing: it is one caller"],
    ["API Gateway, the whole account", quotas.apiRequests, "Service Quotas, API Gateway, *Throttle rate*"],
    [
      `the account's Lambdas: ${busyMs} ms for authorizer and endpoint of a request`,
      (quotas.concurrency * 1000) / busyMs,
      "Service Quotas, Lambda, *Concurrent executions*",
    ],
  ];
  return {
    title: "Limits of the API, the lowest first",
    columns: ["limit", "requests a second", "what to raise"],
    rows: rows
      .sort(([, a], [, b]) => a - b)
      .map(([name, carries, raise]) => [name, rounded(carries).toLocaleString("en"), raise]),
  };
}

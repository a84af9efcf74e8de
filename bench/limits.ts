import { DEFAULT_SCHEDULE } from "../functions/attempts/retry.ts";
import { DUE_SHARDS } from "../functions/deliveries/delivery.ts";
import { type EndpointRow, endpoints } from "../functions/manifest/endpoints.ts";
import type { QueueKey } from "../functions/manifest/queues.ts";
import { type WorkerRow, workers } from "../functions/manifest/workers.ts";
import { reservedConcurrencyOf } from "../lib/stage.ts";
import { stageNamed } from "../lib/stages.ts";
import { type Assumptions, asDeployed, assumed, billedMs, MB_PER_VCPU } from "./billed-time.ts";
import type { Table } from "./harness.ts";
import type { Units } from "./units.ts";

/*
 * Computes which limit is reached first as the number of deliveries grows: quotas of AWS and our own settings, divided by the
 * counted usage of a delivery. Not measured on AWS.
 */

/** Default quotas of an AWS account. A new account may have lower ones. */
const quotas = {
  /** Write and read units per second for one partition key value. */
  partitionWrites: 1_000,
  partitionReads: 3_000,
  /** Write units per second of a new on-demand table. It doubles its last peak every 30 minutes. */
  newTableWrites: 4_000,
  /** Write units per second of one table; an index has the same limit on its own. */
  tableWrites: 40_000,
  concurrency: 1_000,
  /** Requests per second to all APIs of an account and region. */
  apiRequests: 10_000,
} as const;

/** Concurrent executions that the stage prod reserves for single functions. No other function can use them. */
const reserved = reservedConcurrencyOf(stageNamed("prod"));
const unreserved = quotas.concurrency - Object.values(reserved).reduce((sum, each) => sum + each, 0);
/** Concurrent executions for the endpoints, the sweep and other services of the account. */
const NOT_FOR_QUEUES = 100;

const RATES = [1, 100, 10_000];
/** Timeout of an attempt (functions/receivers/receiver-client.ts). */
const HANGING_MS = 15_000;
/** Share of deliveries that are given up, in the rows about the sweep and the index. */
const FAILING = 0.05;

export interface Limit {
  name: string;
  /** Deliveries per second up to the limit, with one webhook per event. */
  maxPerSecond: number;
  /** The setting or quota that raises the limit. */
  raise: string;
}

const workerFor = (file: WorkerRow["file"]): WorkerRow => {
  const row = (workers as readonly WorkerRow[]).find((worker) => worker.file === file);
  if (!row) throw new Error(`No worker row has the file ${file}`);
  return row;
};

function mappingOf(file: WorkerRow["file"]): { queue: QueueKey; batchSize: number; maxConcurrency: number } {
  const { trigger } = workerFor(file);
  if (trigger.kind !== "queue") throw new Error(`${file} is not triggered by a queue`);
  return trigger;
}

/** Returns all limits of the delivery pipeline, lowest first. */
export function limitsOf(units: Units, given: Assumptions = assumed): Limit[] {
  const config = asDeployed(units);
  const [fanOut] = units.fanOut.filter(({ events, webhooks }) => events === 10 && webhooks === 1);
  const [alone] = units.fanOut.filter(({ events, webhooks }) => events === 1 && webhooks === 1);
  const send = units.send.find(({ messages }) => messages === 10)?.usage;
  const sendAlone = units.send.find(({ messages }) => messages === 1)?.usage;
  const swept = units.sweep.find(({ rows }) => rows > 0);
  const idle = units.sweep.find(({ rows }) => rows === 0)?.usage;
  if (!fanOut || !alone || !send || !sendAlone || !swept || !idle)
    throw new Error("bench/units.json does not have all counts. Run: npm run cost");

  const setup = (file: string) => ({ memoryMb: config.memoryMb(file), cpu: "arm" as const, hasSystemLines: true });
  const sender = mappingOf("attempts/send");
  const slowSender = mappingOf("attempts/send-slow");
  const fanOutMapping = mappingOf("deliveries/fan-out");
  const warm = { ...given, coldShare: 0 };
  const sendMs = (receiverMs: number) => billedMs(send, sendAlone.waits, receiverMs, setup("attempts/send"), warm);
  const slowMs = billedMs(units.rowFirst.send, sendAlone.waits + 1, HANGING_MS, setup("attempts/send-slow"), warm);
  const fanOutMs = billedMs(fanOut.usage, alone.usage.waits, 0, setup("deliveries/fan-out"), warm);
  const { drain } = units.parking;
  // A drain sends ten deliveries at once.
  const drainMs = billedMs(
    drain.usage,
    drain.usage.waits,
    (drain.rows / 10) * given.receiverMs,
    setup("attempts/send-slow"),
    warm,
  );
  /** Little's law: concurrency divided by duration, times the batch size. */
  const throughputOf = (atOnce: number, ms: number, batchSize: number) => (atOnce * batchSize * 1000) / ms;
  const eventWrites = alone.usage.writes;
  const rowWrites = sendAlone.writes;
  /** CPU time only: the sweep makes the calls of a page concurrently. */
  const sweepMs =
    ((swept.usage.cpuMs - idle.cpuMs) / swept.rows) *
    given.cpuFactor *
    (MB_PER_VCPU / setup("deliveries/sweep").memoryMb);
  const sweepRow = workerFor("deliveries/sweep");
  const sweptPerSecond = ((sweepRow.timeoutSeconds - 5) * 1000) / sweepMs / 60;
  const sweepsPerFailure = DEFAULT_SCHEDULE.filter((seconds) => seconds > 900).length;
  const indexWritesPerFailure =
    units.failedAttempts.reduce((sum, { indexWrites }) => sum + indexWrites, 0) +
    (sweepsPerFailure * swept.usage.indexWrites) / swept.rows;
  const indexWrites = FAILING * indexWritesPerFailure;
  const parkedIndexWrites = units.parking.fanOut.indexWrites / 10;

  const limits: Limit[] = [
    {
      name: `one webhook whose receiver is back and responds in ${given.receiverMs} ms: its parked deliveries`,
      maxPerSecond: (drain.rows * 1000) / drainMs,
      raise: "`MAX_PER_WEBHOOK` in functions/attempts/slots.ts; new events of the webhook do not wait for them",
    },
    {
      name: `slow lane, ${slowSender.maxConcurrency} concurrent, every receiver hangs for 15 s`,
      maxPerSecond: throughputOf(slowSender.maxConcurrency, slowMs, slowSender.batchSize),
      raise:
        "`maxConcurrency` of `attempts/send-slow` in functions/manifest/workers.ts; nothing is lost, slow webhooks wait for each other in their queue",
    },
    {
      name: `senders, ${sender.maxConcurrency} concurrent, every receiver hangs for 15 s and none is marked as slow yet`,
      maxPerSecond: throughputOf(sender.maxConcurrency, sendMs(HANGING_MS), sender.batchSize),
      raise: "the mark raises it: two seconds after its first request, a webhook moves to the slow lane",
    },
    {
      name: `senders, ${sender.maxConcurrency} concurrent, receivers respond in ${given.receiverMs} ms`,
      maxPerSecond: throughputOf(sender.maxConcurrency, sendMs(given.receiverMs), sender.batchSize),
      raise:
        "`maxConcurrency` of `attempts/send`, up to 1,000, the maximum of an event source mapping; then AWS Support or provisioned pollers",
    },
    {
      name: "one webhook: writes to its partition of `deliveries`",
      maxPerSecond: quotas.partitionWrites / rowWrites,
      raise: "the key schema: spread a webhook over several partition keys and read its log from all of them",
    },
    {
      name: "one project: writes to its partition of `events`",
      maxPerSecond: quotas.partitionWrites / eventWrites,
      raise: "the key schema: spread a project over several partition keys and read its events from all of them",
    },
    {
      name: "one webhook whose circuit is open: writes to its partition of the index `due`",
      maxPerSecond: quotas.partitionWrites / parkedIndexWrites,
      raise: "the key schema of the parking; above it, fan-out repeats the events, and they wait in the queue",
    },
    {
      name: "one project: reads of its partition of `webhooks`",
      maxPerSecond: quotas.partitionReads / 2,
      raise: "eventually consistent reads double the limit",
    },
    {
      name: "the tables `events` and `deliveries` when new, each",
      maxPerSecond: quotas.newTableWrites / Math.max(eventWrites, rowWrites),
      raise: "warm throughput of the tables before a launch; otherwise they double by themselves within 30 minutes",
    },
    {
      name: `the sweep, when ${FAILING * 100} % of all deliveries are given up`,
      maxPerSecond: sweptPerSecond / (FAILING * sweepsPerFailure),
      raise: "`memoryMb` of `deliveries/sweep` in functions/manifest/workers.ts: 1,769 makes it three times as fast",
    },
    {
      name: `fan-outs, ${fanOutMapping.maxConcurrency} concurrent`,
      maxPerSecond: throughputOf(fanOutMapping.maxConcurrency, fanOutMs, fanOutMapping.batchSize),
      raise: "`maxConcurrency` of `deliveries/fan-out` in functions/manifest/workers.ts",
    },
    {
      name: `the ${DUE_SHARDS} partitions of the index \`due\`, when ${FAILING * 100} % of all deliveries are given up`,
      maxPerSecond: (quotas.partitionWrites * DUE_SHARDS) / indexWrites,
      raise:
        "`DUE_SHARDS` in functions/deliveries/delivery.ts: increase at any time, decrease only when the index is empty",
    },
    {
      name: "the tables `events` and `deliveries`, each",
      maxPerSecond: quotas.tableWrites / Math.max(eventWrites, rowWrites),
      raise: "Service Quotas, DynamoDB, *Table-level write throughput limit*",
    },
    {
      name: `the account's Lambdas, ${quotas.concurrency.toLocaleString("en")} concurrent, of which ${unreserved} are not reserved, receivers respond in ${given.receiverMs} ms`,
      maxPerSecond:
        unreserved / (sendMs(given.receiverMs) / 1000 / sender.batchSize + fanOutMs / 1000 / fanOutMapping.batchSize),
      raise: `Service Quotas, Lambda, *Concurrent executions*; raise it before all \`maxConcurrency\` together exceed ${unreserved - NOT_FOR_QUEUES}`,
    },
  ];
  return limits.sort((a, b) => a.maxPerSecond - b.maxPerSecond);
}

const rounded = (value: number): number => Number(value.toPrecision(2));

const share = (rate: number, maxPerSecond: number): string => {
  const percent = (100 * rate) / maxPerSecond;
  return percent > 100 ? "**over**" : percent < 1 ? "< 1 %" : `${Math.round(percent)} %`;
};

export function limitsTable(units: Units): Table {
  return {
    title: "Limits of the delivery pipeline, lowest first",
    columns: [
      "limit",
      "deliveries per second",
      ...RATES.map((rate) => `at ${rate.toLocaleString("en")}/s`),
      "how to raise it",
    ],
    rows: limitsOf(units).map(({ name, maxPerSecond, raise }) => [
      name,
      rounded(maxPerSecond).toLocaleString("en"),
      ...RATES.map((rate) => share(rate, maxPerSecond)),
      raise,
    ]),
  };
}

const ownThrottles = (): [string, number, string][] =>
  (endpoints as readonly EndpointRow[]).flatMap(({ path, throttle }) =>
    throttle
      ? [
          [
            `throttle of \`${path.slice(path.lastIndexOf("/") + 1)}\`, all callers together`,
            throttle.requestsPerSecond,
            "`throttle` of its row in functions/manifest/endpoints.ts",
          ],
        ]
      : [],
  );

/** Returns the limits of the API, in requests per second. */
export function frontDoorTable(units: Units): Table {
  const { throttle } = stageNamed("prod");
  const config = asDeployed(units);
  const request = units.requests.find(({ credential }) => credential === "key");
  if (!request) throw new Error("bench/units.json has no request with a key");
  const msOf = (file: string, usage: typeof request.endpoint) =>
    billedMs(
      usage,
      usage.waits,
      0,
      { memoryMb: config.memoryMb(file), cpu: "arm", hasSystemLines: true },
      { ...assumed, coldShare: 0 },
    );
  const authorizerMs = msOf("auth/authorizer", request.authorizer);
  const endpointMs = msOf("projects/list", request.endpoint);
  const forAuthorizer = reserved["auth/authorizer"] ?? quotas.concurrency;
  const rows: [string, number, string][] = [
    ...ownThrottles(),
    ["throttle of the stage prod", throttle.requestsPerSecond, "`throttle` in lib/stages.ts"],
    [
      "one API key, or the list of one user: reads of a partition",
      quotas.partitionReads,
      "not needed: it is one caller",
    ],
    ["API Gateway, the whole account", quotas.apiRequests, "Service Quotas, API Gateway, *Throttle rate*"],
    [
      `the authorizer: ${forAuthorizer} concurrent, ${authorizerMs} ms for a request`,
      (forAuthorizer * 1000) / authorizerMs,
      "`reservedConcurrency.authorizer` in lib/stages.ts",
    ],
    [
      `the account's Lambdas: ${unreserved} that are not reserved, ${endpointMs} ms for the endpoint of a request`,
      (unreserved * 1000) / endpointMs,
      "Service Quotas, Lambda, *Concurrent executions*",
    ],
  ];
  return {
    title: "Limits of the API, lowest first",
    columns: ["limit", "requests per second", "how to raise it"],
    rows: rows
      .sort(([, a], [, b]) => a - b)
      .map(([name, maxPerSecond, raise]) => [name, rounded(maxPerSecond).toLocaleString("en"), raise]),
  };
}

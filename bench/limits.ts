import { DEFAULT_SCHEDULE } from "../functions/attempts/retry.ts";
import { DUE_SHARDS } from "../functions/deliveries/delivery.ts";
import { type EndpointRow, endpoints } from "../functions/manifest/endpoints.ts";
import { type WorkerRow, workers } from "../functions/manifest/workers.ts";
import { reservedConcurrencyOf } from "../lib/stage.ts";
import { stageNamed } from "../lib/stages.ts";
import { type Assumptions, asDeployed, assumed, billedMs, MB_PER_VCPU } from "./billed-time.ts";
import type { Table } from "./harness.ts";
import { type LaneOptions, type Outcome, simulate } from "./simulation.ts";
import texts from "./texts.json" with { type: "json" };
import type { Units, Usage } from "./units.ts";

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

type LimitKey = keyof typeof texts.limits;
/** Limits that hold for all customers together, whatever their receivers do. */
const SHARED: readonly LimitKey[] = ["newTables", "fanOuts", "tables", "lambdas"];

export interface Limit {
  key: LimitKey;
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

function mappingOf(file: WorkerRow["file"]): { batchSize: number; maxConcurrency: number } {
  const { trigger } = workerFor(file);
  if (trigger.kind !== "queue") throw new Error(`${file} is not triggered by a queue`);
  return trigger;
}

/** Returns the inputs of the limits and the simulation: the counts of a batch, and the billed time of each call. */
function capacityOf(units: Units, given: Assumptions) {
  const config = asDeployed(units);
  const [fanOut] = units.fanOut.filter(({ events, webhooks }) => events === 10 && webhooks === 1);
  const [alone] = units.fanOut.filter(({ events, webhooks }) => events === 1 && webhooks === 1);
  const send = units.send.find(({ messages }) => messages === 10)?.usage;
  const sendAlone = units.send.find(({ messages }) => messages === 1)?.usage;
  const swept = units.sweep.find(({ rows }) => rows > 0);
  const idle = units.sweep.find(({ rows }) => rows === 0)?.usage;
  if (!fanOut || !alone || !send || !sendAlone || !swept || !idle)
    throw new Error("bench/units.json does not have all counts. Run: npm run cost");

  const warm = { ...given, coldShare: 0 };
  /** Milliseconds of a call of a function. */
  const msOf = (file: WorkerRow["file"], usage: Usage, waits: number, receiverMs = 0) =>
    billedMs(usage, waits, receiverMs, config.memoryMb(file), warm);
  return {
    ...{ fanOut, alone, send, sendAlone, swept, idle, msOf },
    sendMs: (receiverMs: number) => msOf("attempts/send", send, sendAlone.waits, receiverMs),
    slowMs: (receiverMs: number) => msOf("attempts/send-slow", units.rowFirst.send, sendAlone.waits + 1, receiverMs),
    fanOutMs: msOf("deliveries/fan-out", fanOut.usage, alone.usage.waits),
    sweepMemoryMb: config.memoryMb("deliveries/sweep"),
  };
}

/** Returns all limits of the delivery pipeline, lowest first. */
export function limitsOf(units: Units, given: Assumptions = assumed): Limit[] {
  const { alone, sendAlone, swept, idle, msOf, sendMs, slowMs, fanOutMs, sweepMemoryMb } = capacityOf(units, given);
  const sender = mappingOf("attempts/send");
  const slowSender = mappingOf("attempts/send-slow");
  const fanOut = mappingOf("deliveries/fan-out");
  const { drain } = units.parking;
  // A drain sends ten deliveries at once.
  const drainMs = msOf("attempts/send-slow", drain.usage, drain.usage.waits, (drain.rows / 10) * given.receiverMs);
  /** Little's law: concurrency divided by duration, times the batch size. */
  const throughputOf = ({ maxConcurrency, batchSize }: typeof sender, ms: number) =>
    (maxConcurrency * batchSize * 1000) / ms;
  const eventWrites = alone.usage.writes;
  const rowWrites = sendAlone.writes;
  /** CPU time only: the sweep makes the calls of a page concurrently. */
  const sweepMs = ((swept.usage.cpuMs - idle.cpuMs) / swept.rows) * given.cpuFactor * (MB_PER_VCPU / sweepMemoryMb);
  const sweptPerSecond = ((workerFor("deliveries/sweep").timeoutSeconds - 5) * 1000) / sweepMs / 60;
  const sweepsPerFailure = DEFAULT_SCHEDULE.filter((seconds) => seconds > 900).length;
  const indexWritesPerFailure =
    units.failedAttempts.reduce((sum, { indexWrites }) => sum + indexWrites, 0) +
    (sweepsPerFailure * swept.usage.indexWrites) / swept.rows;
  const indexWrites = FAILING * indexWritesPerFailure;
  const parkedIndexWrites = units.parking.fanOut.indexWrites / 10;
  const tableWrites = Math.max(eventWrites, rowWrites);
  const perSecond: Record<LimitKey, number> = {
    drain: (drain.rows * 1000) / drainMs,
    slowLane: throughputOf(slowSender, slowMs(HANGING_MS)),
    hanging: throughputOf(sender, sendMs(HANGING_MS)),
    senders: throughputOf(sender, sendMs(given.receiverMs)),
    webhookWrites: quotas.partitionWrites / rowWrites,
    projectWrites: quotas.partitionWrites / eventWrites,
    parkingWrites: quotas.partitionWrites / parkedIndexWrites,
    projectReads: quotas.partitionReads / 2,
    newTables: quotas.newTableWrites / tableWrites,
    sweep: sweptPerSecond / (FAILING * sweepsPerFailure),
    fanOuts: throughputOf(fanOut, fanOutMs),
    index: (quotas.partitionWrites * DUE_SHARDS) / indexWrites,
    tables: quotas.tableWrites / tableWrites,
    lambdas: (unreserved * 1000) / (sendMs(given.receiverMs) / sender.batchSize + fanOutMs / fanOut.batchSize),
  };
  const values: Record<string, string | number> = {
    ...{ receiverMs: given.receiverMs, failing: FAILING * 100, shards: DUE_SHARDS },
    ...{ senders: sender.maxConcurrency, slowSenders: slowSender.maxConcurrency, fanOuts: fanOut.maxConcurrency },
    ...{ concurrency: quotas.concurrency.toLocaleString("en"), unreserved, forQueues: unreserved - NOT_FOR_QUEUES },
  };
  const filled = (text = "") => text.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(values[name]));
  return (Object.keys(perSecond) as LimitKey[])
    .map((key) => {
      const [name, raise] = texts.limits[key];
      return { key, name: filled(name), raise: filled(raise), maxPerSecond: perSecond[key] };
    })
    .sort((a, b) => a.maxPerSecond - b.maxPerSecond);
}

/** Response time of the slow receivers of the simulation: they respond just before the deadline, so no circuit opens. */
const SLOW_MS = 14_000;
/** Webhooks of the simulation; the slow ones are their share of them. */
const WEBHOOKS = 1_000;
/**
 * A mapping begins with five concurrent batches and adds 300 per minute.
 * https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
 */
const RAMP = { from: 5, perSecond: 5 };

/**
 * Simulates the lanes of a stage for a minute. More than a thousand deliveries a second are simulated at a tenth of their size:
 * a tenth of the deliveries, of the slow webhooks and of the senders.
 * @param concurrency of both lanes; absent means those of the rows, which AWS reaches step by step
 */
function simulateStage(
  units: Units,
  perSecond: number,
  slowShare: number,
  concurrency?: Record<Lane, number>,
): Outcome {
  const { send, sendAlone, msOf } = capacityOf(units, assumed);
  const scale = perSecond > 1_000 ? 10 : 1;
  const laneOf = (file: "attempts/send" | "attempts/send-slow", lane: Lane): LaneOptions => {
    const { batchSize, maxConcurrency } = mappingOf(file);
    const [one, ten] = [sendAlone, send].map((usage) => msOf(file, usage, sendAlone.waits)) as [number, number];
    const ramp = { from: RAMP.from / scale, perSecond: RAMP.perSecond / scale };
    return {
      ...(concurrency ? {} : { ramp }),
      concurrency: Math.ceil((concurrency?.[lane] ?? maxConcurrency) / scale),
      batchSize,
      overheadMs: (messages) => one + ((ten - one) * (messages - 1)) / 9,
    };
  };
  const { waiting, busy, ...outcome } = simulate({
    ...{ seed: 1, seconds: 60, perSecond: perSecond / scale, receiverMs: assumed.receiverMs },
    ...{ slowShare, slowWebhooks: Math.max(1, (slowShare * WEBHOOKS) / scale), slowMs: SLOW_MS },
    normal: laneOf("attempts/send", "normal"),
    slow: laneOf("attempts/send-slow", "slow"),
  });
  const grown = ({ normal, slow }: Record<Lane, number>) => ({ normal: normal * scale, slow: slow * scale });
  return { ...outcome, waiting: grown(waiting), busy: grown(busy) };
}

type Lane = keyof Outcome["busy"];
const SLOW_SHARES = [0, 0.01, 0.05];
/** A fifth more than what the deliveries need at an even pace. */
const HEADROOM = 1.2;

/** Returns which limit comes first at each rate, from the simulation of the lanes and from the limits that all customers share. */
export function simulationTable(units: Units): Table {
  const { sendMs, slowMs } = capacityOf(units, assumed);
  const configured = {
    normal: mappingOf("attempts/send").maxConcurrency,
    slow: mappingOf("attempts/send-slow").maxConcurrency,
  };
  const rowOf = (rate: number, share: number, raised?: typeof configured): string[] => {
    const { waiting, busy, p99Ms } = simulateStage(units, rate, share, raised);
    const of = raised ?? configured;
    // A second of deliveries that wait at the end: the lane does not keep up.
    const isOver = { normal: waiting.normal > rate * (1 - share), slow: waiting.slow > Math.max(10, rate * share) };
    const shared = limitsOf(units).filter(({ key, maxPerSecond }) => SHARED.includes(key) && maxPerSecond < rate);
    const reached = [
      ...(isOver.slow ? ["slow lane"] : []),
      ...(isOver.normal ? ["senders"] : []),
      ...shared.map(({ name }) => name.replace(/, .*/, "")),
    ];
    return [
      `${rate.toLocaleString("en")}${raised ? ", raised" : ""}`,
      `${share * 100} %`,
      `${Math.min(busy.normal, of.normal)} of ${of.normal}`,
      `${Math.min(busy.slow, of.slow)} of ${of.slow}`,
      `${rounded(waiting.normal).toLocaleString("en")}, ${rounded(waiting.slow).toLocaleString("en")}`,
      `${rounded(p99Ms / 1000)} s`,
      reached.join("; ") || "none",
    ];
  };
  const neededFor = (rate: number, share: number) => ({
    normal: Math.max(configured.normal, Math.ceil((HEADROOM * rate * sendMs(assumed.receiverMs)) / 10_000)),
    slow: Math.max(configured.slow, Math.ceil((HEADROOM * rate * share * slowMs(SLOW_MS)) / 10_000)),
  });
  const top = RATES.at(-1) ?? 0;
  return {
    title: "Simulated lanes with slow receivers",
    columns: [
      "deliveries per second",
      "to receivers that take 14 s",
      "senders busy",
      "slow senders busy",
      "waiting at the end: normal, slow",
      "p99 wait of the others",
      "limits reached",
    ],
    rows: [
      ...RATES.flatMap((rate) => SLOW_SHARES.map((share) => rowOf(rate, share))),
      ...SLOW_SHARES.map((share) => rowOf(top, share, neededFor(top, share))),
    ],
  };
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
  const msOf = (file: string, usage: Usage) =>
    billedMs(usage, usage.waits, 0, config.memoryMb(file), { ...assumed, coldShare: 0 });
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

import { AT_ONCE } from "../functions/deliveries/sending/work.ts";
import { DEFAULT_SCHEDULE } from "../functions/foundation/manifest/retry-schedule.ts";
import { type WorkerRow, workerRows } from "../functions/foundation/manifest/workers.ts";
import { DUE_SHARDS } from "../functions/webhooks/webhook/wake-up-store.ts";
import { reservedConcurrencyOf } from "../lib/stage.ts";
import { stageNamed } from "../lib/stages.ts";
import { type Assumptions, asDeployed, assumed, billedMs, MB_PER_VCPU } from "./billed-time.ts";
import type { Table } from "./harness.ts";
import texts from "./texts.json" with { type: "json" };
import { DRAINED, failedAttempts, SWEPT, type Units, type Usage } from "./units.ts";

/*
 * Computes which limit is reached first as the number of deliveries grows: quotas of AWS and our own settings, divided by the
 * counted usage of a delivery. Not measured on AWS.
 */

/** Default quotas of an AWS account, in units or requests per second. A new account may have lower ones. */
const { quotas } = texts;

/** Concurrent executions that the stage prod reserves for single functions. No other function can use them. */
const reserved = Object.values(reservedConcurrencyOf(stageNamed("prod")));
const unreserved = quotas.concurrency - reserved.reduce((sum, each) => sum + each, 0);
/** Concurrent executions for the endpoints, the sweep and other services of the account. */
const NOT_FOR_QUEUES = 100;

/** Waits for AWS of each round of a visit: a read, the record, the removal of a place. */
export const WAITS_PER_ROUND = 3;
const RATES = [1, 100, 10_000];
/** Timeout of an attempt (functions/webhooks/receiver/receiver-client.ts). */
const HANGING_MS = 15_000;
/** A delivery that waits is written to three partitions: its event's, its line's and its row's. */
const PARTITIONS_OF_A_ROW = 3;
/** Share of deliveries that are given up, in the rows about the sweep and the index. */
const FAILING = 0.05;

type LimitKey = keyof typeof texts.limits;

export interface Limit {
  name: string;
  /** Deliveries per second up to the limit, with one webhook per event. */
  maxPerSecond: number;
  /** The setting or quota that raises the limit. */
  raise: string;
}

/** Replaces each `{name}` in a text by the value with that name. */
export const filled = (text: string, values: Record<string, unknown>): string =>
  text.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(values[name]));

const workerFor = (id: WorkerRow["id"]): WorkerRow => {
  const row = (workerRows as readonly WorkerRow[]).find((worker) => worker.id === id);
  if (!row) throw new Error(`No worker row has the id ${id}`);
  return row;
};

function mappingOf(id: WorkerRow["id"]): { batchSize: number; maxConcurrency: number } {
  const { trigger } = workerFor(id);
  if (trigger.kind !== "queue") throw new Error(`${id} is not triggered by a queue`);
  return trigger;
}

/** Returns the milliseconds of a warm call of a function. */
function callMs(units: Units, given: Assumptions) {
  const { memoryMb } = asDeployed(units);
  return (id: string, usage: Usage, waits = usage.waits, receiverMs = 0) =>
    billedMs(usage, waits, receiverMs, memoryMb(id), { ...given, coldShare: 0 });
}

/** Returns the milliseconds of a full batch of each sender. In a batch, waits are those of a call with one message. */
function sendersMs(units: Units, given: Assumptions) {
  const { send1, send10, work1, work100 } = units.calls;
  const msOf = callMs(units, given);
  return {
    normal: (receiverMs: number) => msOf("attempts-send", send10, send1.waits, receiverMs),
    /** Visits that send a hundred deliveries each, fifty at once. `lines`: the webhooks that one sender works on. */
    visit(receiverMs: number, lines = 1) {
      const rounds = DRAINED / AT_ONCE;
      const waits = work1.waits + WAITS_PER_ROUND * (rounds - 1);
      return msOf("attempts-send-slow", { ...work100, cpuMs: lines * work100.cpuMs }, waits, rounds * receiverMs);
    },
  };
}

/** Returns all limits of the delivery pipeline, lowest first. */
export function limitsOf(units: Units, given: Assumptions = assumed): Limit[] {
  const { fanOut1x1, fanOut10x1, send1, sweepNothing, sweep320, waitingFanOut } = units.calls;
  const msOf = callMs(units, given);
  const sendMs = sendersMs(units, given);
  const sender = mappingOf("attempts-send");
  const slowSender = mappingOf("attempts-send-slow");
  const fanOut = mappingOf("deliveries-fan-out");
  const fanOutMs = msOf("deliveries-fan-out", fanOut10x1, fanOut1x1.waits);
  /** Deliveries that one worker sends per second. */
  const lineOf = (receiverMs: number, lines?: number) => (DRAINED * 1000) / sendMs.visit(receiverMs, lines);
  /** Little's law: concurrency divided by duration, times the batch size. */
  const throughputOf = ({ maxConcurrency, batchSize }: typeof sender, ms: number) =>
    (maxConcurrency * batchSize * 1000) / ms;
  /** CPU time only: the sweep makes the calls of a page concurrently. */
  const cores = asDeployed(units).memoryMb("deliveries-sweep") / MB_PER_VCPU;
  const sweepMs = (((sweep320.cpuMs - sweepNothing.cpuMs) / SWEPT) * given.cpuFactor) / cores;
  const sweptPerSecond = ((workerFor("deliveries-sweep").timeoutSeconds - 5) * 1000) / sweepMs / 60;
  const sweepsPerFailure = DEFAULT_SCHEDULE.filter((seconds) => seconds > 900).length;
  const indexWritesPerFailure = failedAttempts(units).reduce((sum, { indexWrites }) => sum + indexWrites, 0);
  const tableWrites = Math.max(fanOut1x1.writes, send1.writes);
  const perSecond: Record<LimitKey, number> = {
    hangingLine: lineOf(HANGING_MS),
    line: lineOf(given.receiverMs),
    slowLane: slowSender.maxConcurrency * slowSender.batchSize * lineOf(HANGING_MS, slowSender.batchSize),
    hanging: throughputOf(sender, sendMs.normal(HANGING_MS)),
    senders: throughputOf(sender, sendMs.normal(given.receiverMs)),
    webhookWrites: quotas.partitionWrites / send1.writes,
    projectWrites: quotas.partitionWrites / fanOut1x1.writes,
    lineWrites: (10 * quotas.partitionWrites) / Math.floor(waitingFanOut.writes / PARTITIONS_OF_A_ROW),
    projectReads: quotas.partitionReads / 2,
    newTables: quotas.newTableWrites / tableWrites,
    sweep: sweptPerSecond / (FAILING * sweepsPerFailure),
    fanOuts: throughputOf(fanOut, fanOutMs),
    index: (quotas.partitionWrites * DUE_SHARDS) / (FAILING * indexWritesPerFailure),
    tables: quotas.tableWrites / tableWrites,
    lambdas: (unreserved * 1000) / (sendMs.normal(given.receiverMs) / sender.batchSize + fanOutMs / fanOut.batchSize),
  };
  const values: Record<string, string | number> = {
    ...{ requests: AT_ONCE, atOnce: (AT_ONCE * 1000) / given.receiverMs },
    ...{ receiverMs: given.receiverMs, failing: FAILING * 100, shards: DUE_SHARDS },
    ...{ senders: sender.maxConcurrency, slowSenders: slowSender.maxConcurrency, fanOuts: fanOut.maxConcurrency },
    ...{ concurrency: quotas.concurrency.toLocaleString("en"), unreserved, forQueues: unreserved - NOT_FOR_QUEUES },
  };
  return (Object.keys(perSecond) as LimitKey[])
    .map((key) => {
      const [name = "", raise = ""] = texts.limits[key];
      return { name: filled(name, values), raise: filled(raise, values), maxPerSecond: perSecond[key] };
    })
    .sort((a, b) => a.maxPerSecond - b.maxPerSecond);
}

/** Formats a number with two significant digits. */
const inText = (value: number): string => Number(value.toPrecision(2)).toLocaleString("en");

const share = (rate: number, maxPerSecond: number): string => {
  const percent = (100 * rate) / maxPerSecond;
  return percent > 100 ? "**over**" : percent < 1 ? "< 1 %" : `${Math.round(percent)} %`;
};

export const limitsTable = (units: Units): Table => ({
  title: "Limits of the delivery pipeline, lowest first",
  columns: ["limit", "deliveries per second", ...RATES.map((rate) => `at ${inText(rate)}/s`), "how to raise it"],
  rows: limitsOf(units).map(({ name, maxPerSecond, raise }) => [
    ...[name, inText(maxPerSecond), ...RATES.map((rate) => share(rate, maxPerSecond)), raise],
  ]),
});

import { setTimeout as sleep } from "node:timers/promises";
import { withStarted } from "./child.ts";
import { type Bench, interleave, median, percentile, type Result, ratios, spread, type Table } from "./harness.ts";
import { type Ledger, type OurPipe, type Pipe, passage, startInMemory, startOurs } from "./pipe/pipes.ts";
import { stations } from "./pipe/trace.ts";
import { type Arrival, clock, type Receivers, startReceivers } from "./receivers.ts";

/*
 * Measures the latency from an event to the first byte at the receiver: the whole service on its embedded engines, compared with
 * an HTTP server that has a queue in memory. Both get the same events at the same rate, even when they cannot keep up, and send
 * to the same receiver. Only the service keeps its events over a crash; the benchmark measures the price of that.
 */

export interface Plan {
  /** Offered loads, in events per second. */
  loads: number[];
  secondsEach: number;
  rounds: number;
  warmUpEvents: number;
  /** Events published at once, to measure throughput. */
  burst: number;
  /** Events that their receiver rejects: still pending at the end. */
  rejected: number;
  /** Test deliveries that the receiver rejects: failed after one attempt. */
  samples: number;
}

const full: Plan = {
  loads: [20, 50, 100],
  secondsEach: 3,
  rounds: 3,
  warmUpEvents: 200,
  burst: 200,
  rejected: 20,
  samples: 5,
};

const BOUND = 4;
/** Max wait without a further arrival. */
const MAX_QUIET_MS = 30_000;

export const bench: Bench = {
  name: "pipe",
  about: "event → first byte at the receiver, compared with a queue in memory",
  run: () => measurePipe(full),
};

export async function measurePipe(plan: Plan): Promise<Result> {
  return withStarted(async (start) => {
    const receivers = await start(startReceivers(1));
    const ours = await start(startOurs(receivers));
    const inMemory = await start(startInMemory(receivers));
    return compare(plan, receivers, ours, inMemory);
  });
}

/** When a series of events was published and delivered. */
interface DeliveryTimes {
  /** Times of `clock`, by deployment id. */
  publishedAt: Map<string, number>;
  arrivals: Arrival[];
  /** Time from publication to arrival, per event. */
  latenciesMs: number[];
  perSecond: number;
}

async function compare(plan: Plan, receivers: Receivers, ours: OurPipe, inMemory: Pipe): Promise<Result> {
  const all = new Map<Pipe, DeliveryTimes[]>([
    [ours, []],
    [inMemory, []],
  ]);
  const send = async (pipe: Pipe, count: number, perSecond: number): Promise<DeliveryTimes> => {
    const times = await offer(pipe, receivers, count, perSecond);
    all.get(pipe)?.push(times);
    return times;
  };
  /** Runs both pipes in turns. The last `rounds` results of each are measured. */
  const race = async (count: number, perSecond: number, figureOf: (times: DeliveryTimes) => number) => {
    const run = (pipe: Pipe) => async () => figureOf(await send(pipe, count, perSecond));
    const samples = await interleave({ ours: run(ours), inMemory: run(inMemory) }, plan.rounds);
    const lastOf = (pipe: Pipe) => all.get(pipe)?.slice(-plan.rounds) ?? [];
    return { samples, ours: lastOf(ours), inMemory: lastOf(inMemory) };
  };

  for (const pipe of [ours, inMemory]) await send(pipe, plan.warmUpEvents, 100);
  const runs = [];
  for (const load of plan.loads) {
    runs.push({ load, ...(await race(load * plan.secondsEach, load, ({ latenciesMs }) => median(latenciesMs))) });
  }
  const burst = await race(plan.burst, Number.POSITIVE_INFINITY, ({ perSecond }) => perSecond);
  const ledger = await balance(plan, receivers, ours, all.get(ours) ?? []);
  const hops = await hopsOf(ours, runs);

  const latency: Table = {
    title: "publish → first byte at the receiver, ms (p50: median of the rounds and range; p99: all rounds together)",
    columns: [
      "events/s",
      "ours p50",
      "ours p99",
      "in memory p50",
      "in memory p99",
      "p50 ratio",
      "ours /s",
      "in memory /s",
    ],
    rows: runs.map(({ load, samples, ...of }) => [
      load,
      spread(samples.ours),
      p99(of.ours),
      spread(samples.inMemory),
      p99(of.inMemory),
      spread(ratios(samples.ours, samples.inMemory)),
      median(of.ours.map(({ perSecond }) => perSecond)),
      median(of.inMemory.map(({ perSecond }) => perSecond)),
    ]),
  };
  const bursts: Table = {
    title: `${plan.burst} events at once, delivered per second`,
    columns: ["ours", "in memory", "ratio"],
    rows: [
      [
        spread(burst.samples.ours),
        spread(burst.samples.inMemory),
        spread(ratios(burst.samples.ours, burst.samples.inMemory)),
      ],
    ],
  };
  return {
    tables: [latency, hops, bursts, ledger],
    targets: runs.map(({ load, samples }) => ({
      name: `pipe.p50@${load}`,
      value: median(ratios(samples.ours, samples.inMemory)),
      bound: BOUND,
    })),
    notes: [
      "Each event has one webhook. Both send to the same receiver, which verifies every signature.",
      "Our service survives kill -9 at any point. The queue in memory does not, and does not retry.",
      "Our engines, gateway and workers share one process and one thread here. SQS and DynamoDB on AWS were not measured.",
    ],
    data: { runs: runs.map(({ load, samples }) => ({ load, p50: samples })), burst: burst.samples },
  };
}

/**
 * Publishes events at a constant rate, independent of earlier arrivals, and waits until all have arrived.
 * @throws Error when an event does not arrive or a signature is not valid
 */
async function offer(pipe: Pipe, receivers: Receivers, count: number, perSecond: number): Promise<DeliveryTimes> {
  const secrets = { [pipe.path]: pipe.secret };
  await receivers.take(secrets);
  const publishedAt = new Map<string, number>();
  const published: Promise<unknown>[] = [];
  const startedAt = clock();
  for (let number = 0; number < count; number++) {
    const waitMs = startedAt + (number * 1000) / perSecond - clock();
    if (waitMs > 0) await sleep(waitMs);
    const event = pipe.newEvent();
    publishedAt.set(event.deployment_id, clock());
    published.push(pipe.publish(event));
  }
  await Promise.all(published);
  const arrivals = await arrivalsOf(receivers, pipe.path, new Set(publishedAt.keys()), secrets);
  const firstAt = new Map<string, number>();
  for (const { event, at } of arrivals) if (!firstAt.has(event)) firstAt.set(event, at);
  const latenciesMs = [...publishedAt].map(([event, at]) => (firstAt.get(event) ?? Number.NaN) - at);
  return {
    publishedAt,
    arrivals,
    latenciesMs,
    perSecond: (count * 1000) / (Math.max(...firstAt.values()) - startedAt),
  };
}

/** Waits until all events have arrived at the path, as long as events keep arriving. */
async function arrivalsOf(
  receivers: Receivers,
  path: string,
  events: Set<string>,
  secrets: Record<string, string>,
): Promise<Arrival[]> {
  const waiting = new Set(events);
  const arrivals: Arrival[] = [];
  let lastArrivalAt = Date.now();
  while (waiting.size > 0) {
    if (Date.now() > lastArrivalAt + MAX_QUIET_MS) {
      throw new Error(`${waiting.size} of ${events.size} events did not arrive at ${path}.`);
    }
    const received = await receivers.take(secrets);
    if (received.invalid.length > 0) throw new Error(`Invalid signature: ${received.invalid[0]}`);
    const here = received.arrivals.filter((arrival) => arrival.path === path);
    if (secrets[path] && received.verified !== here.length) {
      throw new Error(`Not all signatures of requests to ${path} were verified.`);
    }
    if (here.length > 0) lastArrivalAt = Date.now();
    arrivals.push(...here);
    for (const { event } of here) waiting.delete(event);
    if (waiting.size > 0) await sleep(50);
  }
  return arrivals;
}

/**
 * Compares the events sent with the deliveries in the service and with the requests at the receivers.
 * @throws Error when they differ
 */
async function balance(plan: Plan, receivers: Receivers, ours: OurPipe, all: DeliveryTimes[]): Promise<Table> {
  const rejected = Array.from({ length: plan.rejected }, () => ours.newEvent("deploy.failed"));
  await Promise.all(rejected.map((event) => ours.publish(event)));
  for (let sample = 0; sample < plan.samples; sample++) await ours.sendSample();
  await arrivalsOf(receivers, "/broken", new Set(rejected.map(({ deployment_id }) => deployment_id)), {});

  const arrivals = all.flatMap(({ arrivals }) => arrivals);
  const delivered = new Set(arrivals.map(({ id }) => id));
  const events = all.reduce((sum, { publishedAt }) => sum + publishedAt.size, 0);
  const sent = events + plan.rejected + plan.samples;
  const expected: Ledger = { succeeded: events, failed: plan.samples, pending: plan.rejected };
  const { counts, succeeded } = await settledLedger(ours, expected);
  reconcile(expected, counts, succeeded, delivered);
  return {
    title: "ledger of our service: sent = succeeded + failed + pending",
    columns: ["sent", "succeeded", "failed", "pending", "duplicates"],
    rows: [[sent, events, plan.samples, plan.rejected, arrivals.length - delivered.size]],
  };
}

/**
 * Compares the expected number of deliveries per status with the actual one, and succeeded deliveries with requests.
 * @throws Error when they differ
 */
export function reconcile(expected: Ledger, counts: Ledger, succeeded: Set<string>, delivered: Set<string>): void {
  const statuses = Object.keys({ ...expected, ...counts });
  const isSame = statuses.every((status) => (counts[status] ?? 0) === (expected[status] ?? 0));
  const isSeen = succeeded.size === delivered.size && [...succeeded].every((id) => delivered.has(id));
  if (isSame && isSeen) return;
  const figures = `${JSON.stringify(expected)} sent, ${JSON.stringify(counts)} in the rows, ${delivered.size} arrived`;
  throw new Error(`The ledger does not balance: ${figures}.`);
}

/** Waits until the last deliveries are recorded: the receiver gets a request before the row has its result. */
async function settledLedger(ours: OurPipe, expected: Ledger) {
  const endsAt = Date.now() + MAX_QUIET_MS;
  for (;;) {
    const ledger = await ours.ledger();
    const isSettled = ledger.counts.pending === expected.pending && ledger.counts.failed === expected.failed;
    if (isSettled || Date.now() > endsAt) return ledger;
    await sleep(100);
  }
}

const hopNames: Record<(typeof stations)[number], string> = {
  received: "publish → received by fan-out",
  written: "→ event row written",
  queued: "→ queued",
  "handed over": "→ received by sender",
  read: "→ webhook and secret read",
};

/** Returns the time of each hop: medians over all events of a load. They need not add up to the median of the total. */
async function hopsOf(ours: OurPipe, runs: { load: number; ours: DeliveryTimes[] }[]): Promise<Table> {
  const passages = await ours.passages();
  const rows = runs.map(({ load, ours: all }) => {
    const journeys = all.flatMap(({ publishedAt, arrivals }) =>
      arrivals.map(({ at, event, id }) => {
        const passed = stations.map((station) => passages.get(passage(station, station === "read" ? id : event)));
        return [publishedAt.get(event), ...passed, at].map((time) => time ?? Number.NaN);
      }),
    );
    const legs = journeys.map((times) => times.slice(1).map((time, leg) => time - (times[leg] ?? Number.NaN)));
    if (legs.flat().some(Number.isNaN)) throw new Error("An event arrived that did not pass all stations.");
    return [load, ...(legs[0] ?? []).map((_, leg) => median(legs.map((each) => each[leg] ?? Number.NaN)))];
  });
  return {
    title: "time of each hop in our service, ms (median)",
    columns: ["events/s", ...stations.map((station) => hopNames[station]), "→ first byte"],
    rows,
  };
}

const p99 = (all: DeliveryTimes[]): number =>
  percentile(
    99,
    all.flatMap(({ latenciesMs }) => latenciesMs),
  );

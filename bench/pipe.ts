import { setTimeout as sleep } from "node:timers/promises";
import { type Bench, figure, interleave, median, type Result, ratios, spread, type Table } from "./harness.ts";
import { type Ledger, type OurPipe, type Pipe, passage, startInMemory, startOurs } from "./pipe/pipes.ts";
import { stations } from "./pipe/trace.ts";
import { type Arrival, clock, type Receivers, startReceivers } from "./receivers.ts";

/*
 * From the event to the first byte at the receiver: the whole service on its embedded engines against the simplest thing that
 * tells anybody anything, an HTTP server with a queue in memory. Both get the same events at the same pace, whether or not
 * they keep up, and tell the same receiver. Only one of them still knows its events after a crash: what that costs is what is
 * measured.
 */

export interface Plan {
  /** Events per second that are offered. */
  loads: number[];
  secondsEach: number;
  rounds: number;
  warmUpEvents: number;
  /** Events published all at once, to see how fast they go out. */
  burst: number;
  /** Events that their receiver refuses: still due at the end. */
  refused: number;
  /** Samples that it refuses: attempted once, so over. */
  samples: number;
}

const full: Plan = {
  loads: [20, 50, 100],
  secondsEach: 3,
  rounds: 3,
  warmUpEvents: 200,
  burst: 200,
  refused: 20,
  samples: 5,
};

const BOUND = 3;
const PATIENCE_MS = 20_000;

export const bench: Bench = {
  name: "pipe",
  about: "event → first byte at the receiver, against a queue in memory",
  run: () => measurePipe(full),
};

export async function measurePipe(plan: Plan): Promise<Result> {
  const receivers = await startReceivers(1);
  const [ours, inMemory] = await Promise.all([startOurs(receivers), startInMemory(receivers)]);
  try {
    return await compare(plan, receivers, ours, inMemory);
  } finally {
    await Promise.all([ours.end(), inMemory.end(), receivers.end()]);
  }
}

/** What became of some events. */
interface DeliveryTimes {
  /** By deployment, on the `clock`. */
  publishedAt: Map<string, number>;
  arrivals: Arrival[];
  /** From the publication of each to its arrival. */
  latenciesMs: number[];
  perSecond: number;
}

async function compare(plan: Plan, receivers: Receivers, ours: OurPipe, inMemory: Pipe): Promise<Result> {
  const all = new Map<Pipe, DeliveryTimes[]>([
    [ours, []],
    [inMemory, []],
  ]);
  const tell = async (pipe: Pipe, count: number, perSecond: number): Promise<DeliveryTimes> => {
    const told = await offer(pipe, receivers, count, perSecond);
    all.get(pipe)?.push(told);
    return told;
  };
  /** Both in turns; the last `rounds` of each are what was measured. */
  const race = async (count: number, perSecond: number, figureOf: (told: DeliveryTimes) => number) => {
    const run = (pipe: Pipe) => async () => figureOf(await tell(pipe, count, perSecond));
    const samples = await interleave({ ours: run(ours), inMemory: run(inMemory) }, plan.rounds);
    const lastOf = (pipe: Pipe) => all.get(pipe)?.slice(-plan.rounds) ?? [];
    return { samples, ours: lastOf(ours), inMemory: lastOf(inMemory) };
  };

  for (const pipe of [ours, inMemory]) await tell(pipe, plan.warmUpEvents, 100);
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
      percentile(99, of.ours),
      spread(samples.inMemory),
      percentile(99, of.inMemory),
      spread(ratios(samples.ours, samples.inMemory)),
      median(of.ours.map(({ perSecond }) => perSecond)),
      median(of.inMemory.map(({ perSecond }) => perSecond)),
    ]),
  };
  const bursts: Table = {
    title: `${plan.burst} events at once, told per second`,
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
      "Each event has one subscriber. Both senders dial the same receiver, which verifies every signature.",
      "Ours survives kill -9 at any point. The queue in memory does not, and does not try again.",
      "Engines, gateway and workers of ours share one process and one thread here. SQS and DynamoDB on AWS were not measured.",
    ],
    data: { runs: runs.map(({ load, samples }) => ({ load, p50: samples })), burst: burst.samples },
  };
}

/**
 * Publishes events at their pace, whether or not those before have arrived, and waits for all of them.
 * @throws Error when one does not arrive, or with a signature that does not hold
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

/** Waits until each of the events has come to the path. */
async function arrivalsOf(
  receivers: Receivers,
  path: string,
  events: Set<string>,
  secrets: Record<string, string>,
): Promise<Arrival[]> {
  const waiting = new Set(events);
  const arrivals: Arrival[] = [];
  const endsAt = Date.now() + PATIENCE_MS;
  while (waiting.size > 0) {
    if (Date.now() > endsAt) throw new Error(`${waiting.size} of ${events.size} events have not come to ${path}.`);
    const taken = await receivers.take(secrets);
    if (taken.refused.length > 0) throw new Error(`Signatures do not hold: ${taken.refused[0]}`);
    const here = taken.arrivals.filter((arrival) => arrival.path === path);
    if (secrets[path] && taken.verified !== here.length) throw new Error(`Not all that came to ${path} was verified.`);
    arrivals.push(...here);
    for (const { event } of here) waiting.delete(event);
    if (waiting.size > 0) await sleep(50);
  }
  return arrivals;
}

/**
 * Every event is accounted for, by what the service says and by what the receivers have seen.
 * @throws Error when it is not
 */
async function balance(plan: Plan, receivers: Receivers, ours: OurPipe, told: DeliveryTimes[]): Promise<Table> {
  const refused = Array.from({ length: plan.refused }, () => ours.newEvent("deploy.failed"));
  await Promise.all(refused.map((event) => ours.publish(event)));
  for (let sample = 0; sample < plan.samples; sample++) await ours.sendSample();
  await arrivalsOf(receivers, "/broken", new Set(refused.map(({ deployment_id }) => deployment_id)), {});

  const arrivals = told.flatMap(({ arrivals }) => arrivals);
  const delivered = new Set(arrivals.map(({ id }) => id));
  const events = told.reduce((sum, { publishedAt }) => sum + publishedAt.size, 0);
  const sent = events + plan.refused + plan.samples;
  const expected: Ledger = { succeeded: events, failed: plan.samples, pending: plan.refused };
  const { counts, succeeded } = await settled(ours, expected);
  reconcile(expected, counts, succeeded, delivered);
  return {
    title: "ledger of ours: sent = ok + failed + pending",
    columns: ["sent", "ok", "failed", "pending", "came twice"],
    rows: [[sent, events, plan.samples, plan.refused, arrivals.length - delivered.size]],
  };
}

/**
 * What was sent is what the service says, status by status, and what it says has succeeded is what the receiver has seen.
 * @throws Error when it is not so
 */
export function reconcile(expected: Ledger, counts: Ledger, succeeded: Set<string>, delivered: Set<string>): void {
  const statuses = Object.keys({ ...expected, ...counts });
  const isSame = statuses.every((status) => (counts[status] ?? 0) === (expected[status] ?? 0));
  const isSeen = succeeded.size === delivered.size && [...succeeded].every((id) => delivered.has(id));
  if (isSame && isSeen) return;
  const figures = `${JSON.stringify(expected)} sent, ${JSON.stringify(counts)} in the rows, ${delivered.size} arrived`;
  throw new Error(`The ledger does not balance: ${figures}.`);
}

/** The receiver knows of a delivery before its row does: waits for the last ones to be recorded. */
async function settled(ours: OurPipe, expected: Ledger) {
  const endsAt = Date.now() + PATIENCE_MS;
  for (;;) {
    const ledger = await ours.ledger();
    const isSettled = ledger.counts.pending === expected.pending && ledger.counts.failed === expected.failed;
    if (isSettled || Date.now() > endsAt) return ledger;
    await sleep(100);
  }
}

const hopNames: Record<(typeof stations)[number], string> = {
  received: "publish → fan-out has it",
  written: "→ row written",
  queued: "→ queued",
  "handed over": "→ sender has it",
  read: "→ row read",
};

/** What each hop of ours takes: medians over all events of a load, which need not add up to the median of the whole. */
async function hopsOf(ours: OurPipe, runs: { load: number; ours: DeliveryTimes[] }[]): Promise<Table> {
  const passages = await ours.passages();
  const rows = runs.map(({ load, ours: told }) => {
    const journeys = told.flatMap(({ publishedAt, arrivals }) =>
      arrivals.map(({ at, event, id }) => {
        const passed = stations.map((station) => passages.get(passage(station, station === "received" ? event : id)));
        return [publishedAt.get(event), ...passed, at].map((time) => time ?? Number.NaN);
      }),
    );
    const legs = journeys.map((times) => times.slice(1).map((time, leg) => time - (times[leg] ?? Number.NaN)));
    if (legs.flat().some(Number.isNaN)) throw new Error("An event has arrived that did not pass all stations.");
    return [load, ...(legs[0] ?? []).map((_, leg) => median(legs.map((each) => each[leg] ?? Number.NaN)))];
  });
  return {
    title: "the price of each hop of ours, ms (median)",
    columns: ["events/s", ...stations.map((station) => hopNames[station]), "→ first byte"],
    rows,
  };
}

function percentile(percent: number, told: DeliveryTimes[]): string {
  const sorted = told.flatMap(({ latenciesMs }) => latenciesMs).sort((one, other) => one - other);
  return figure(sorted[Math.ceil((percent / 100) * sorted.length) - 1] ?? Number.NaN);
}

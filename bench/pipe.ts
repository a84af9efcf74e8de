import { randomBytes, randomUUID } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startChild, withStarted } from "./child.ts";
import { type Bench, interleave, median, percentile, type Result, ratios, spread, tableOf } from "./harness.ts";
import { clock, type Receivers, startReceivers } from "./receivers.ts";
import { type Journal, offer, startJournal, startTraffic } from "./traffic.ts";

/*
 * Measures the latency from an event to the first byte at the receiver: the whole service on its embedded engines, compared with
 * an HTTP server that has a queue in memory. Both get the same events at the same rate, even when they cannot keep up, and send
 * to the same receiver. Only the service keeps its events over a crash; the benchmark measures the price of that.
 */

const full = {
  /** Offered loads, in events per second. */
  loads: [20, 50, 100],
  roundSeconds: 3,
  rounds: { forMs: 18_000 },
  warmUpSeconds: 3,
};

type Plan = typeof full;

const P50_BOUND = 6;
const P99_BOUND = 6;
const THROUGHPUT_BOUND = 250;
/** The load of the promise. */
const PROMISED_LOAD = 50;
const MAX_WAIT_MS = 30_000;

export const bench: Bench = {
  name: "pipe",
  about: "event → first byte at the receiver, compared with a queue in memory",
  run: () => measurePipe(full),
};

type PipeName = "ours" | "inMemory";
/** Accepts an event; resolves when it was accepted. */
type Publish = (event: string) => Promise<unknown>;

export function measurePipe(plan: Plan): Promise<Result> {
  return withStarted(async (start) => {
    const receivers = await start(startReceivers());
    const ours = await startTraffic(start, {}, receivers);
    const inMemory = await start(startInMemory(receivers));
    const journal = await startJournal(receivers, { [ours.path]: ours.secret, [inMemory.path]: inMemory.secret });
    return compare(plan, journal, { ours: ours.publish, inMemory: inMemory.publish });
  });
}

/** Starts the server with a queue in memory, in its own process. */
async function startInMemory({ origin }: Receivers) {
  const path = "/ok/in-memory";
  const secret = `whsec_${randomBytes(32).toString("hex")}`;
  const file = join(import.meta.dirname, "in-memory.ts");
  const { ready: address, end } = await startChild<string>(file, { args: [`${origin}${path}`, secret] });
  const publish: Publish = async (deployment_id) => {
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ event: "deploy.started", deployment_id, timestamp: new Date().toISOString() });
    await (await fetch(`${address}/events`, { method: "POST", headers, body })).text();
  };
  return { path, secret, publish, end };
}

async function compare(plan: Plan, journal: Journal, publishers: Record<PipeName, Publish>): Promise<Result> {
  const send = async (pipe: PipeName, perSecond: number, seconds: number): Promise<number[]> => {
    const turn = await offer(publishers[pipe], { perSecond, seconds });
    const { missing } = await journal.arrivalsOf([turn], MAX_WAIT_MS);
    if (missing > 0) throw new Error(`${missing} of ${turn.size} events did not arrive (${pipe}).`);
    return [...turn].map(([event, at]) => (journal.firstAt.get(event) ?? Number.NaN) - at);
  };
  for (const pipe of ["ours", "inMemory"] as const) await send(pipe, PROMISED_LOAD, plan.warmUpSeconds);

  const runs = [];
  for (const load of plan.loads) {
    const all: Record<PipeName, number[]> = { ours: [], inMemory: [] };
    const round = (pipe: PipeName) => async () => {
      const latenciesMs = await send(pipe, load, plan.roundSeconds);
      all[pipe].push(...latenciesMs);
      return median(latenciesMs);
    };
    const p50 = await interleave({ ours: round("ours"), inMemory: round("inMemory") }, plan.rounds);
    runs.push({
      load,
      p50,
      ratio: median(ratios(p50.ours, p50.inMemory)),
      p99: { ours: p99(all.ours), inMemory: p99(all.inMemory) },
    });
  }
  const saturated = (pipe: PipeName) => () => saturate(publishers[pipe], journal, plan.roundSeconds);
  const perSecond = await interleave({ ours: saturated("ours"), inMemory: saturated("inMemory") }, plan.rounds);
  const promised = runs.find(({ load }) => load === PROMISED_LOAD) ?? runs[0];
  return {
    tables: [
      tableOf(
        "publish → first byte at the receiver, ms (p50: median of the rounds and range; p99: all rounds together)",
        runs.map(({ load, p50, p99 }) => ({
          ...{ "events/s": load, "ours p50": spread(p50.ours), "ours p99": p99.ours },
          ...{ "in memory p50": spread(p50.inMemory), "in memory p99": p99.inMemory },
          "p50 ratio": spread(ratios(p50.ours, p50.inMemory)),
        })),
      ),
      tableOf(`delivered per second, with ${OUTSTANDING} events outstanding`, [
        { ours: spread(perSecond.ours), "in memory": spread(perSecond.inMemory) },
      ]),
    ],
    targets: [
      ...runs.map(({ load, ratio }) => ({
        name: `p50 / in memory at ${load} a second`,
        value: ratio,
        bound: P50_BOUND,
      })),
      {
        name: `p99 / in memory at ${promised?.load} a second`,
        value: (promised?.p99.ours ?? Number.NaN) / (promised?.p99.inMemory ?? Number.NaN),
        bound: P99_BOUND,
      },
      { name: "events per second", value: median(perSecond.ours), bound: THROUGHPUT_BOUND, atLeast: true },
    ],
    notes: [
      "Each event has one webhook. Both send to the same receiver, which verifies every signature.",
      "Our service survives kill -9 at any point. The queue in memory does not, and does not retry.",
      "Our gateway and workers share one thread here; the queue engine has another one. SQS and DynamoDB on AWS were not measured.",
    ],
  };
}

const p99 = (latenciesMs: number[]): number => percentile(99, latenciesMs);

/** Events that are published and have not arrived, while throughput is measured. */
const OUTSTANDING = 100;

/** Keeps events outstanding for some time, and waits for all of them. Returns the arrivals per second until the last one. */
async function saturate(publish: Publish, journal: Journal, seconds: number): Promise<number> {
  const turn = new Map<string, number>();
  const startedAt = clock();
  while (clock() < startedAt + seconds * 1000) {
    await journal.update();
    const arrived = [...turn.keys()].filter((event) => journal.firstAt.has(event)).length;
    const events = Array.from({ length: OUTSTANDING - (turn.size - arrived) }, () => randomUUID());
    for (const event of events) turn.set(event, clock());
    await Promise.all(events.map(publish));
    if (events.length === 0) await sleep(10);
  }
  const { missing } = await journal.arrivalsOf([turn], MAX_WAIT_MS);
  if (missing > 0) throw new Error(`${missing} of ${turn.size} events did not arrive.`);
  const lastAt = Math.max(...[...turn.keys()].map((event) => journal.firstAt.get(event) ?? Number.NaN));
  return (turn.size * 1000) / (lastAt - startedAt);
}

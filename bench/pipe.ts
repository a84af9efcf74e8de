import { randomBytes, randomUUID } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Start, startChild, withStarted } from "./child.ts";
import { type Bench, interleave, median, percentile, type Result, ratios, spread, tableOf } from "./harness.ts";
import { newDataDir, removeDataDir } from "./local-service.ts";
import { clock, type Receivers, startReceivers } from "./receivers.ts";
import { eventsQueueOf, type Journal, offer, startJournal, startTraffic } from "./traffic.ts";

/*
 * Measures the latency from an event to the first byte at the receiver: the whole service on its embedded engines, compared with
 * an HTTP server that has a queue in memory, and with a program that makes the same calls to the same engines and nothing else. All
 * get the same events at the same rate, even when they cannot keep up, and send to the same receiver. Only the service keeps its
 * events over a crash. The first ratio is the price of that on this machine, where a call may take long; the second is what the
 * service does beside its calls.
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
const CALLS_P50_BOUND = 3;
const CALLS_THROUGHPUT_BOUND = 0.4;
/** The load of the promise. */
const PROMISED_LOAD = 50;
const MAX_WAIT_MS = 30_000;

export const bench: Bench = {
  name: "pipe",
  about: "event → first byte at the receiver, compared with a queue in memory",
  run: () => measurePipe(full),
};

const pipes = ["ours", "sameCalls", "inMemory"] as const;
type PipeName = (typeof pipes)[number];
/** Accepts an event; resolves when it was accepted. */
type Publish = (event: string) => Promise<unknown>;

export function measurePipe(plan: Plan): Promise<Result> {
  return withStarted(async (start) => {
    const receivers = await start(startReceivers());
    const ours = await startTraffic(start, {}, receivers);
    const inMemory = await start(startInMemory(receivers));
    const sameCalls = await startSameCalls(start, receivers);
    const compared = [ours, sameCalls, inMemory];
    const journal = await startJournal(receivers, Object.fromEntries(compared.map((each) => [each.path, each.secret])));
    return compare(plan, journal, {
      ours: ours.publish,
      sameCalls: sameCalls.publish,
      inMemory: inMemory.publish,
    });
  });
}

/** Starts a program with its own process and webhook. */
async function startProgram(name: string, { origin }: Receivers, ...args: string[]) {
  const path = `/ok/${name}`;
  const secret = `whsec_${randomBytes(32).toString("hex")}`;
  const file = join(import.meta.dirname, `${name}.ts`);
  return { path, secret, ...(await startChild<string>(file, { args: [`${origin}${path}`, secret, ...args] })) };
}

/** Starts the program that only makes the calls. */
async function startSameCalls(start: Start, receivers: Receivers) {
  const dataDir = newDataDir();
  await start({ end: async () => removeDataDir(dataDir) });
  const projectId = randomUUID();
  const program = await start(startProgram("same-calls", receivers, dataDir, projectId));
  const events = await start(eventsQueueOf({ eventsQueueUrl: program.ready }));
  return { ...program, publish: (event: string) => events.publish(projectId, [event]) };
}

/** Starts the server with a queue in memory. */
async function startInMemory(receivers: Receivers) {
  const program = await startProgram("in-memory", receivers);
  const publish: Publish = async (deployment_id) => {
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ event: "deploy.started", deployment_id, timestamp: new Date().toISOString() });
    await (await fetch(`${program.ready}/events`, { method: "POST", headers, body })).text();
  };
  return { ...program, publish };
}

async function compare(plan: Plan, journal: Journal, publishers: Record<PipeName, Publish>): Promise<Result> {
  const send = async (pipe: PipeName, perSecond: number, seconds: number): Promise<number[]> => {
    const turn = await offer(publishers[pipe], { perSecond, seconds });
    const { missing } = await journal.arrivalsOf([turn], MAX_WAIT_MS);
    if (missing > 0) throw new Error(`${missing} of ${turn.size} events did not arrive (${pipe}).`);
    return [...turn].map(([event, at]) => (journal.firstAt.get(event) ?? Number.NaN) - at);
  };
  for (const pipe of pipes) await send(pipe, PROMISED_LOAD, plan.warmUpSeconds);

  const runs = [];
  for (const load of plan.loads) {
    const all: Record<PipeName, number[]> = { ours: [], sameCalls: [], inMemory: [] };
    const round = (pipe: PipeName) => async () => {
      const latenciesMs = await send(pipe, load, plan.roundSeconds);
      all[pipe].push(...latenciesMs);
      return median(latenciesMs);
    };
    const p50 = await interleave(ofEach(round), plan.rounds);
    runs.push({ load, p50, p99: ofEach((pipe) => percentile(99, all[pipe])) });
  }
  const saturated = (pipe: PipeName) => () => saturate(publishers[pipe], journal, plan.roundSeconds);
  const perSecond = await interleave(ofEach(saturated), plan.rounds);
  const promised = runs.find(({ load }) => load === PROMISED_LOAD) ?? runs[0];
  return {
    tables: [
      tableOf(
        "publish → first byte at the receiver, ms (p50: median of the rounds and range; p99: all rounds together)",
        runs.map(({ load, p50, p99 }) => ({
          ...{ "events/s": load, "ours p50": spread(p50.ours), "ours p99": p99.ours },
          ...{ "same calls p50": spread(p50.sameCalls), "same calls p99": p99.sameCalls },
          ...{ "in memory p50": spread(p50.inMemory), "in memory p99": p99.inMemory },
          "ours / same calls": spread(ratios(p50.ours, p50.sameCalls)),
          "ours / in memory": spread(ratios(p50.ours, p50.inMemory)),
        })),
      ),
      tableOf(`delivered per second, with ${OUTSTANDING} events outstanding`, [
        {
          ...{ ours: spread(perSecond.ours), "same calls": spread(perSecond.sameCalls) },
          ...{ "in memory": spread(perSecond.inMemory) },
        },
      ]),
    ],
    targets: [
      ...runs.flatMap(({ load, p50 }) => [
        {
          name: `p50 / in memory at ${load} a second`,
          value: median(ratios(p50.ours, p50.inMemory)),
          bound: P50_BOUND,
        },
        {
          name: `p50 / same calls at ${load} a second`,
          value: median(ratios(p50.ours, p50.sameCalls)),
          bound: CALLS_P50_BOUND,
        },
      ]),
      {
        name: `p99 / in memory at ${promised?.load} a second`,
        value: (promised?.p99.ours ?? Number.NaN) / (promised?.p99.inMemory ?? Number.NaN),
        bound: P99_BOUND,
      },
      {
        name: "events per second / same calls",
        value: median(ratios(perSecond.ours, perSecond.sameCalls)),
        bound: CALLS_THROUGHPUT_BOUND,
        atLeast: true,
      },
    ],
    notes: [
      "Each event has one webhook. All send to the same receiver, which verifies every signature.",
      "Our service survives kill -9 at any point. The others do not, and do not retry.",
      "Our gateway and workers share one thread here; the queue engine has another one. SQS and DynamoDB on AWS were not measured.",
    ],
  };
}

/** Returns a value for each of the three that are compared. */
const ofEach = <Value>(get: (pipe: PipeName) => Value): Record<PipeName, Value> => ({
  ours: get("ours"),
  sameCalls: get("sameCalls"),
  inMemory: get("inMemory"),
});

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

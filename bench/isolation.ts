import { withStarted } from "./child.ts";
import { type Bench, figure, type Result, type Table, type Target, tableOf } from "./harness.ts";
import { withNewProject } from "./local-service.ts";
import type { Case, Plan } from "./neighbours.ts";
import * as neighbours from "./neighbours.ts";
import { IN_TIME_MS, type Measured, offer, startTraffic, type Traffic, type Turn } from "./traffic.ts";

/*
 * Measures how much a project disturbs another one: the latency from an event to its healthy receiver while receivers of the other
 * project are slow, dead or hang. Two services get the same healthy traffic in turns, so that other load on the machine affects
 * both; only one of them has the other project. Deliveries are handled in batches of ten, as on AWS. Each case starts a new
 * disturbed service, so that the queues of one case do not affect the next.
 */

const P99_BOUND = 2;
/** In the first seconds of a disturbance, before slow webhooks are known. */
const ONSET_BOUND = 5;
const THROUGHPUT_BOUND = 0.9;
const WARM_UP_SECONDS = 2;

export const bench: Bench = {
  name: "isolation",
  about: "event → healthy receiver, while another project is slow, dead or busy",
  run: () => measureIsolation(neighbours.full),
};

/** The result of one case. */
export interface Run {
  name: string;
  alone: Measured;
  /** The first seconds of the disturbance. */
  onset: Measured;
  disturbed: Measured;
  /** The load of the other project, in words. */
  what: string;
}

export function measureIsolation(plan: Plan): Promise<Result> {
  return withStarted(async (start) => {
    const alone = await startTraffic(start);
    await warmUp(alone, plan);
    const runs: Run[] = [];
    for (const [name, prepare] of Object.entries(neighbours.cases))
      runs.push(await runCase(name, prepare, alone, plan));
    return {
      tables: [tableOfRuns(runs)],
      targets: runs.flatMap(targetsOf),
      notes: [
        `Two services, one of them without the other project, get ${plan.perSecond} events per second in ${plan.turns} turns of ${plan.turnSeconds} s each.`,
        `Both services share this machine, so CPU time that the other project takes slows both.`,
        `An event that has not arrived ${plan.maxWaitMs / 1000} s after the last one counts with the time until then.`,
        `Throughput counts the events that arrived until ${IN_TIME_MS / 1000} s after the end of their turn.`,
        ...busyNotes(runs),
      ],
    };
  });
}

/** Max wait for healthy events that nothing disturbs. */
const MAX_WAIT_ALONE_MS = 30_000;

/** @throws Error unless all events arrived */
function mustArrive({ missing, sent }: Measured): void {
  if (missing > 0) throw new Error(`${missing} of ${sent} events that nothing disturbed did not arrive.`);
}

/** Sends healthy traffic until hot code is compiled. */
async function warmUp({ publish, journal }: Traffic, { perSecond }: Plan): Promise<void> {
  const turn = await offer(publish, { perSecond, seconds: WARM_UP_SECONDS });
  mustArrive(await journal.arrivalsOf([turn], MAX_WAIT_ALONE_MS));
}

function runCase(name: string, prepare: Case, alone: Traffic, plan: Plan): Promise<Run> {
  return withStarted(async (start) => {
    const dns = await start(neighbours.startSilentDns());
    const traffic = await startTraffic(start, { DNS_SERVERS: dns.address });
    await warmUp(traffic, plan);
    const other = await withNewProject(traffic.service);
    const disturbance = await prepare({ plan, other, traffic, dns });
    disturbance.begin();
    const { perSecond, onsetSeconds } = plan;
    const first = await offer(traffic.publish, { perSecond, seconds: onsetSeconds });
    const pair = [alone, traffic];
    const turns = new Map(pair.map((each): [Traffic, Turn[]] => [each, []]));
    for (let turn = 0; turn < plan.turns; turn++) {
      for (const each of turn % 2 === 0 ? pair : pair.toReversed()) {
        turns.get(each)?.push(await offer(each.publish, { perSecond, seconds: plan.turnSeconds }));
      }
    }
    const onset = await traffic.journal.arrivalsOf([first], plan.maxWaitMs);
    const disturbed = await traffic.journal.arrivalsOf(turns.get(traffic) ?? [], plan.maxWaitMs);
    const undisturbed = await alone.journal.arrivalsOf(turns.get(alone) ?? [], MAX_WAIT_ALONE_MS);
    mustArrive(undisturbed);
    return { name, alone: undisturbed, onset, disturbed, what: await disturbance.end() };
  }).catch((error: unknown) => {
    throw new Error(`${name}: ${(error as Error).message}`, { cause: error });
  });
}

/** Alone, a healthy event takes 20 to 100 ms at most, unless other programs use the machine. */
const BUSY_P99_MS = 200;

export const busyNotes = (runs: Run[]): string[] =>
  runs
    .filter(({ alone }) => alone.p99Ms > BUSY_P99_MS)
    .map(
      ({ name, alone }) =>
        `The machine was busy (p99 alone ${figure(alone.p99Ms)} ms), so these ratios say little: ${name}.`,
    );

const p99Ratio = ({ alone, disturbed }: Run): number => disturbed.p99Ms / alone.p99Ms;
const onsetRatio = ({ alone, onset }: Run): number => onset.p99Ms / alone.p99Ms;
const throughputRatio = ({ alone, disturbed }: Run): number => disturbed.inTime / alone.inTime;

function tableOfRuns(runs: Run[]): Table {
  const beside = ({ alone, onset, disturbed }: Run, of: "p50Ms" | "p99Ms" | "maxMs") =>
    [alone, onset, disturbed].map((each) => figure(each[of])).join(" → ");
  return tableOf(
    "event → first byte at the healthy receiver, ms: alone → in the first seconds of the disturbance → later",
    runs.map((run) => ({
      ...{ "the other project": run.name, did: run.what },
      ...{ p50: beside(run, "p50Ms"), p99: beside(run, "p99Ms"), max: beside(run, "maxMs") },
      ...{ "p99 ratio": p99Ratio(run), "at first": onsetRatio(run), "throughput ratio": throughputRatio(run) },
      "not arrived": `${run.onset.missing + run.disturbed.missing} of ${run.onset.sent + run.disturbed.sent}`,
    })),
  );
}

export const targetsOf = (run: Run): Target[] => [
  { name: `p99 / alone: ${run.name}`, value: p99Ratio(run), bound: P99_BOUND },
  { name: `p99 at first / alone: ${run.name}`, value: onsetRatio(run), bound: ONSET_BOUND },
  { name: `throughput / alone: ${run.name}`, value: throughputRatio(run), bound: THROUGHPUT_BOUND, atLeast: true },
];

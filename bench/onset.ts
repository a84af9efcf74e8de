import { SLOW_AFTER_MS } from "../functions/attempts/slow-mark.ts";
import { asDeployed, assumed } from "./billed-time.ts";
import type { Table, Target } from "./harness.ts";
import { callMs, mappingOf, RAMP } from "./limits.ts";
import { full } from "./neighbours.ts";
import { type LaneOptions, type Outcome, type Scenario, simulate } from "./simulation.ts";
import type { Units } from "./units.ts";

/*
 * Simulates how much a project disturbs another one on AWS, from the first second of a quiet stage on: the cases of neighbours.ts,
 * with the counted times of a batch and the documented growth of event source mappings.
 */

/** How the mappings grow: as Lambda does it, and with the pollers of the stage option `eventPollers: 2`. */
const growths = {
  "from 5 batches, 5 a second more": RAMP,
  // Each poller has ten batches; a thousand more a minute. https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
  "2 event pollers": { from: 20, perSecond: 1000 / 60 },
};

type Disturbance = Pick<Scenario, "slowWebhooks" | "slowMs"> & Partial<Scenario> & { disturbedPerSecond: number };

const none: Disturbance = { disturbedPerSecond: 0, slowWebhooks: 0, slowMs: 0 };
const hang = Number.POSITIVE_INFINITY;

const disturbances: Record<string, Disturbance> = {
  "receivers that hang get 10 %": { disturbedPerSecond: full.perSecond / 9, slowWebhooks: 6, slowMs: hang },
  "200 projects whose receivers hang": {
    ...{ disturbedPerSecond: 20, slowMs: hang },
    ...{ slowWebhooks: full.hangingProjects, slowProjects: full.hangingProjects },
  },
  "20 webhooks that take 1.9 s": { disturbedPerSecond: 200, slowWebhooks: 20, slowMs: SLOW_AFTER_MS - 100 },
  "receivers that take 10 ms and 3 s in turns": { disturbedPerSecond: 100, slowWebhooks: 10, slowMs: [10, 3_000] },
  "5,000 events at once": { ...none, burst: full.burst },
};

/** Returns the p99 from the event to the request, in the first 15 seconds and later. */
function p99Of(units: Units, ramp: LaneOptions["ramp"], { disturbedPerSecond, ...disturbance }: Disturbance) {
  const msOf = callMs(units, assumed);
  const { send1, send10, work1, fanOut1x1, fanOut10x1 } = units.calls;
  const laneOf = (file: Parameters<typeof mappingOf>[0], oneMs: number, tenMs: number): LaneOptions => {
    const { batchSize, maxConcurrency } = mappingOf(file);
    const overheadMs = (messages: number) => oneMs + ((tenMs - oneMs) * (messages - 1)) / 9;
    return { concurrency: maxConcurrency, batchSize, overheadMs, isFair: true, ...(ramp && { ramp }) };
  };
  const fanOutMs = msOf("deliveries/fan-out", fanOut1x1);
  const sendMs = msOf("attempts/send", send1);
  const visitMs = msOf("attempts/send-slow", work1);
  const perSecond = full.perSecond + disturbedPerSecond;
  const { onsetP99Ms, laterP99Ms }: Outcome = simulate({
    ...{ seed: 1, seconds: 60, perSecond, receiverMs: asDeployed(units).receiverMs },
    ...{ slowShare: disturbedPerSecond / perSecond, ...disturbance },
    fanOut: laneOf("deliveries/fan-out", fanOutMs, msOf("deliveries/fan-out", fanOut10x1, fanOut1x1.waits)),
    normal: laneOf("attempts/send", sendMs, msOf("attempts/send", send10, send1.waits)),
    slow: laneOf("attempts/send-slow", visitMs, visitMs),
  });
  const undisturbedMs = fanOutMs + sendMs;
  return { onset: undisturbedMs + onsetP99Ms, later: undisturbedMs + laterP99Ms };
}

/** Returns the ratio of each p99 to that of the project alone. */
function ratiosOf(units: Units, ramp: LaneOptions["ramp"]) {
  const alone = p99Of(units, ramp, none).later;
  return Object.entries(disturbances).map(([name, disturbance]) => {
    const { onset, later } = p99Of(units, ramp, disturbance);
    return { name, onset: onset / alone, later: later / alone };
  });
}

export function onsetTable(units: Units): Table {
  const columns = Object.entries(growths).map(([growth, ramp]) => ({ growth, ratios: ratiosOf(units, ramp) }));
  return {
    title: "Simulated neighbours",
    columns: ["the other project", ...columns.flatMap(({ growth }) => [`${growth}: first 15 s`, "later"])],
    rows: Object.keys(disturbances).map((name, index) => [
      name,
      ...columns.flatMap(({ ratios }) => [ratios[index]?.onset ?? 0, ratios[index]?.later ?? 0].map(inText)),
    ]),
  };
}

const inText = (ratio: number): string => ratio.toFixed(ratio < 10 ? 1 : 0);

/** The worst of all cases, for each way in which mappings grow. */
export const onsetTargets = (units: Units): Target[] =>
  Object.entries(growths).flatMap(([growth, ramp]) => {
    const ratios = ratiosOf(units, ramp);
    return [
      {
        name: `simulated p99 at first / alone, ${growth}`,
        value: Math.max(...ratios.map(({ onset }) => onset)),
        bound: 5,
      },
      {
        name: `simulated p99 later / alone, ${growth}`,
        value: Math.max(...ratios.map(({ later }) => later)),
        bound: 2,
      },
    ];
  });

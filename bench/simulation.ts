import { SLOW_AFTER_MS } from "../functions/attempts/slow-mark.ts";
import { OPEN_AFTER_SECONDS } from "../functions/webhooks/circuit-breaker.ts";

/*
 * A discrete simulation of the two lanes of deliveries: queues, batches, senders, the mark of slow webhooks, slots and the circuit
 * breaker. Pure: a seed instead of randomness, and a clock of its own. The parameters are measured or those of the rows; see
 * limits.ts. Not simulated: fan-out, DynamoDB, the drain of parked deliveries, and retries after the second attempt.
 */

/** A queue and the senders that consume it. */
export interface LaneOptions {
  /** Max batches at once. */
  concurrency: number;
  /** Batches at once at the start, and how many are added per second; absent means all from the start. */
  ramp?: { from: number; perSecond: number };
  /** Max messages of a batch. A batch has what waits when it begins, and lasts as long as its slowest message. */
  batchSize: number;
  /** Time of a batch beside the requests to receivers. */
  overheadMs(messages: number): number;
}

export interface Scenario {
  seed: number;
  /** How long deliveries arrive. */
  seconds: number;
  /** Deliveries per second, at random moments. */
  perSecond: number;
  /** Response time of a healthy receiver, connection included. */
  receiverMs: number;
  /** Share of the deliveries to slow receivers, of which there are so many, and their response time. */
  slowShare: number;
  slowWebhooks: number;
  slowMs: number;
  /** Max requests in flight to one webhook in all senders together; absent means no limit beside that of a batch. */
  maxPerWebhook?: number;
  normal: LaneOptions;
  slow: LaneOptions;
}

export interface Outcome {
  /** Deliveries to healthy receivers whose request began, and their wait until then. */
  healthy: number;
  p50Ms: number;
  p99Ms: number;
  /** Requests to slow receivers. */
  slowRequests: number;
  parked: number;
  /** Messages in each queue at the end, and the maximum number of batches at once. */
  waiting: { normal: number; slow: number };
  busy: { normal: number; slow: number };
}

/** Deadline of a request (functions/receivers/receiver-client.ts). */
const DEADLINE_MS = 15_000;
/** Wait for a slot, and the time after which a delivery without one is tried again (functions/attempts/). */
const PATIENCE_MS = 1_000;
const BUSY_DELAY_MS = 5_000;
/** Time between the first and the second attempt. */
const RETRY_MS = 5_000;

interface Message {
  /** Undefined for a healthy receiver. */
  webhook: SlowWebhook | undefined;
  at: number;
  attempt: number;
}

interface SlowWebhook {
  isMarked: boolean;
  failingSince?: number;
  inFlight: number;
}

interface Lane {
  options: LaneOptions;
  queue: Message[];
  /** Index of the oldest message of `queue`. */
  head: number;
  busy: number;
  mostBusy: number;
}

export function simulate(scenario: Scenario): Outcome {
  const { seconds, perSecond, receiverMs, slowShare, slowMs, maxPerWebhook = Number.POSITIVE_INFINITY } = scenario;
  const endsAt = seconds * 1000;
  const random = randomOf(scenario.seed);
  const timeline = new Timeline();
  const webhooks = Array.from({ length: scenario.slowWebhooks }, (): SlowWebhook => ({ isMarked: false, inFlight: 0 }));
  const laneOf = (options: LaneOptions): Lane => ({ options, queue: [], head: 0, busy: 0, mostBusy: 0 });
  const lanes = { normal: laneOf(scenario.normal), slow: laneOf(scenario.slow) };
  const waits: number[] = [];
  let slowRequests = 0;
  let parked = 0;

  const isParked = ({ failingSince }: SlowWebhook): boolean =>
    failingSince !== undefined && timeline.now >= failingSince + OPEN_AFTER_SECONDS * 1000;

  function arrive(): void {
    const index = random() < slowShare ? Math.floor(random() * webhooks.length) : -1;
    const webhook = webhooks[index];
    if (webhook && isParked(webhook)) parked += 1;
    else enqueue(webhook?.isMarked ? lanes.slow : lanes.normal, { webhook, at: timeline.now, attempt: 1 });
    const nextAt = timeline.now - (Math.log(1 - random()) * 1000) / perSecond;
    if (nextAt < endsAt) timeline.add(nextAt, arrive);
  }

  function enqueue(lane: Lane, message: Message): void {
    lane.queue.push(message);
    dispatch(lane);
  }

  function dispatch(lane: Lane): void {
    const { concurrency, ramp, batchSize, overheadMs } = lane.options;
    const ramped = ramp ? ramp.from + (ramp.perSecond * timeline.now) / 1000 : concurrency;
    while (lane.busy < Math.min(concurrency, Math.floor(ramped)) && lane.head < lane.queue.length) {
      const batch = lane.queue.slice(lane.head, lane.head + batchSize);
      lane.head += batch.length;
      lane.busy += 1;
      lane.mostBusy = Math.max(lane.mostBusy, lane.busy);
      const lastsMs = Math.max(...batch.map((message) => attempt(lane, message)));
      timeline.add(timeline.now + overheadMs(batch.length) + lastsMs, () => {
        lane.busy -= 1;
        dispatch(lane);
      });
    }
  }

  /** Begins a request, or plans it for later. Returns how long it takes. */
  function attempt(lane: Lane, message: Message): number {
    const { webhook } = message;
    if (!webhook) {
      waits.push(timeline.now - message.at);
      return receiverMs;
    }
    if (isParked(webhook)) {
      parked += 1;
      return 0;
    }
    if (lane === lanes.normal && webhook.isMarked) {
      timeline.add(timeline.now, () => enqueue(lanes.slow, message));
      return 0;
    }
    if (webhook.inFlight >= maxPerWebhook) {
      timeline.add(timeline.now + PATIENCE_MS + BUSY_DELAY_MS, () => enqueue(lanes.slow, message));
      return PATIENCE_MS;
    }
    return request(webhook, message);
  }

  function request(webhook: SlowWebhook, message: Message): number {
    const takesMs = Math.min(slowMs, DEADLINE_MS);
    webhook.inFlight += 1;
    slowRequests += 1;
    if (takesMs >= SLOW_AFTER_MS) timeline.add(timeline.now + SLOW_AFTER_MS, () => (webhook.isMarked = true));
    timeline.add(timeline.now + takesMs, () => {
      webhook.inFlight -= 1;
      if (slowMs < DEADLINE_MS) return;
      webhook.failingSince ??= timeline.now;
      if (message.attempt > 1) return;
      timeline.add(timeline.now + RETRY_MS, () => enqueue(lanes.slow, { ...message, attempt: 2 }));
    });
    return takesMs;
  }

  timeline.add(0, arrive);
  timeline.run(endsAt);
  waits.sort((one, other) => one - other);
  const quantile = (share: number) => waits[Math.ceil(share * waits.length) - 1] ?? Number.NaN;
  const left = ({ queue, head }: Lane) => queue.length - head;
  return {
    healthy: waits.length,
    p50Ms: quantile(0.5),
    p99Ms: quantile(0.99),
    slowRequests,
    parked,
    waiting: { normal: left(lanes.normal), slow: left(lanes.slow) },
    busy: { normal: lanes.normal.mostBusy, slow: lanes.slow.mostBusy },
  };
}

/** Events in order of their time. There are never more than a few thousand, so that a sorted list is fast enough. */
class Timeline {
  now = 0;
  /** The last one is the next to run. */
  readonly #events: { at: number; run: () => void }[] = [];

  add(at: number, run: () => void): void {
    let [low, high] = [0, this.#events.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#events[middle]?.at ?? 0) > at) low = middle + 1;
      else high = middle;
    }
    this.#events.splice(low, 0, { at, run });
  }

  /** Runs all events until a time. */
  run(until: number): void {
    for (let next = this.#events.pop(); next && next.at <= until; next = this.#events.pop()) {
      this.now = next.at;
      next.run();
    }
  }
}

/** Returns a generator of numbers from 0 to 1, the same for the same seed: the minimal standard generator of Park and Miller. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

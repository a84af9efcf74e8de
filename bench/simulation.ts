import { SLOW_AFTER_MS } from "../functions/attempts/slow-mark.ts";
import { AT_ONCE } from "../functions/attempts/work.ts";
import { OPEN_AFTER_SECONDS } from "../functions/webhooks/circuit-breaker.ts";

/*
 * A discrete simulation of the two roads of deliveries: carried by messages, or waiting in the line of a webhook, which one
 * worker visits; with queues, batches, senders, the mark of slow webhooks and the circuit breaker. Pure: a seed instead of
 * randomness, and a clock of its own. The parameters are measured or those of the rows; see limits.ts. Not simulated:
 * DynamoDB, probes, and retries after the second attempt.
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
  /** Whether it takes the messages of the project first that has the fewest in flight, as the fair queues of SQS do. */
  isFair?: boolean;
}

export interface Scenario {
  seed: number;
  /** How long deliveries arrive. */
  seconds: number;
  /** Deliveries per second, at random moments. */
  perSecond: number;
  /** Response time of a healthy receiver, connection included. */
  receiverMs: number;
  /** Share of the deliveries to slow receivers, of which there are so many, and the response time of each request in turn. */
  slowShare: number;
  slowWebhooks: number;
  slowMs: number | readonly number[];
  /** The projects of the slow webhooks; absent = one. */
  slowProjects?: number;
  /** Deliveries of another project with a healthy receiver, all at the start; absent = none. */
  burst?: number;
  /** What each event passes before its delivery is sent; absent = it takes no time. */
  fanOut?: LaneOptions;
  normal: LaneOptions;
  slow: LaneOptions;
}

export interface Outcome {
  /** Deliveries to healthy receivers whose request began, and their wait until then. */
  healthy: number;
  p50Ms: number;
  p99Ms: number;
  /** The wait of those that arrived in the first 15 seconds, and of the others. */
  onsetP99Ms: number;
  laterP99Ms: number;
  /** Requests to slow receivers. */
  slowRequests: number;
  /** Deliveries of webhooks whose circuit is open. */
  behindProbe: number;
  /** Deliveries in the first queue and in lines at the end, and the maximum number of batches at once. */
  waiting: { normal: number; slow: number };
  busy: { normal: number; slow: number };
}

/** Deadline of a request (functions/receivers/receiver-client.ts). */
const DEADLINE_MS = 15_000;
/** A visit begins requests in this time: its process lives for a minute, and keeps 45 s for one (functions/attempts/). */
const VISIT_MS = 15_000;
/** A visit stops after so many failures in a row. The next one begins after the pause. */
const MAX_FAILURES = 3;
const FAILING_PAUSE_MS = 10_000;
/** Time between the first and the second attempt. */
const RETRY_MS = 5_000;

/** The onset of a disturbance. */
const ONSET_MS = 15_000;
/** The project whose wait is measured. */
const MEASURED = 0;

interface Message {
  project: number;
  /** Undefined for a healthy receiver. */
  webhook: SlowWebhook | undefined;
  at: number;
  attempt: number;
}

interface SlowWebhook {
  project: number;
  isMarked: boolean;
  failingSince?: number;
  /** What waits, oldest first. */
  line: Message[];
  /** A message calls the worker, or it visits the line. */
  isCalled: boolean;
}

interface Lane<Item extends { project: number }> {
  options: LaneOptions;
  queue: WaitingItems<Item>;
  busy: number;
  mostBusy: number;
  /** Begins to process a message, and runs `done` at the end. */
  begin(item: Item, done: () => void): void;
}

export function simulate(scenario: Scenario): Outcome {
  const { seconds, perSecond, receiverMs, slowShare, slowProjects = 1, burst = 0 } = scenario;
  const endsAt = seconds * 1000;
  const random = randomOf(scenario.seed);
  const timeline = new Timeline();
  const webhooks = Array.from(
    { length: scenario.slowWebhooks },
    (_, index): SlowWebhook => ({ project: 2 + (index % slowProjects), isMarked: false, line: [], isCalled: false }),
  );
  const laneOf = <Item extends { project: number }>(options: LaneOptions, begin: Lane<Item>["begin"]): Lane<Item> => ({
    ...{ options, begin, busy: 0, mostBusy: 0 },
    queue: new WaitingItems(options.isFair ?? false),
  });
  const carried = laneOf(scenario.normal, send);
  const calls = laneOf(scenario.slow, visit);
  const events = scenario.fanOut && laneOf(scenario.fanOut, fanOut);
  const waits: { at: number; ms: number }[] = [];
  const slowMs = [scenario.slowMs].flat();
  let slowRequests = 0;

  const isOpen = ({ failingSince }: SlowWebhook): boolean =>
    failingSince !== undefined && timeline.now >= failingSince + OPEN_AFTER_SECONDS * 1000;

  function arrive(): void {
    const index = random() < slowShare ? Math.floor(random() * webhooks.length) : -1;
    const webhook = webhooks[index];
    publish({ project: webhook?.project ?? MEASURED, webhook, at: timeline.now, attempt: 1 });
    const nextAt = timeline.now - (Math.log(1 - random()) * 1000) / perSecond;
    if (nextAt < endsAt) timeline.add(nextAt, arrive);
  }

  function publish(message: Message): void {
    if (events) enqueue(events, message);
    else fanOut(message, () => {});
  }

  function fanOut(message: Message, done: () => void): void {
    const { webhook } = message;
    if (webhook && (webhook.isMarked || isOpen(webhook))) enter(webhook, message);
    else enqueue(carried, message);
    timeline.add(timeline.now, done);
  }

  function enter(webhook: SlowWebhook, message: Message): void {
    webhook.line.push(message);
    callWorker(webhook, 0);
  }

  /** What waits for a probe calls no worker. */
  function callWorker(webhook: SlowWebhook, delayMs: number): void {
    if (webhook.isCalled || isOpen(webhook) || webhook.line.length === 0) return;
    webhook.isCalled = true;
    timeline.add(timeline.now + delayMs, () => enqueue(calls, webhook));
  }

  function enqueue<Item extends { project: number }>(lane: Lane<Item>, item: Item): void {
    lane.queue.push(item);
    dispatch(lane);
  }

  function dispatch<Item extends { project: number }>(lane: Lane<Item>): void {
    const { concurrency, ramp, batchSize, overheadMs } = lane.options;
    const ramped = ramp ? ramp.from + (ramp.perSecond * timeline.now) / 1000 : concurrency;
    while (lane.busy < Math.min(concurrency, Math.floor(ramped)) && lane.queue.length > 0) {
      const batch = lane.queue.take(batchSize);
      lane.busy += 1;
      lane.mostBusy = Math.max(lane.mostBusy, lane.busy);
      let left = batch.length;
      const done = () => {
        left -= 1;
        if (left > 0) return;
        timeline.add(timeline.now + overheadMs(batch.length), () => {
          lane.busy -= 1;
          lane.queue.end(batch);
          dispatch(lane);
        });
      };
      for (const item of batch) lane.begin(item, done);
    }
  }

  /** Sends what a message carries. */
  function send(message: Message, done: () => void): void {
    const { webhook } = message;
    if (!webhook) {
      if (message.project === MEASURED) waits.push({ at: message.at, ms: timeline.now - message.at });
      timeline.add(timeline.now + receiverMs, done);
    } else if (webhook.isMarked || isOpen(webhook)) {
      enter(webhook, message);
      timeline.add(timeline.now, done);
    } else {
      request(webhook, message, done);
    }
  }

  /**
   * One worker per webhook sends what waits in its line: one at a time to a receiver that fails until it accepts one, otherwise
   * several.
   */
  function visit(webhook: SlowWebhook, done: () => void): void {
    const until = timeline.now + VISIT_MS;
    let inFlight = 0;
    let failures = 0;
    let severalAtOnce = false;
    const next = () => {
      const isStopped = timeline.now >= until || failures >= MAX_FAILURES || isOpen(webhook);
      severalAtOnce ||= webhook.failingSince === undefined;
      while (!isStopped && inFlight < (severalAtOnce ? AT_ONCE : 1)) {
        const message = webhook.line.shift();
        if (!message) break;
        inFlight += 1;
        request(webhook, message, (isSuccess) => {
          inFlight -= 1;
          severalAtOnce ||= isSuccess;
          failures = isSuccess ? 0 : failures + 1;
          next();
        });
      }
      if (inFlight > 0) return;
      webhook.isCalled = false;
      callWorker(webhook, failures >= MAX_FAILURES ? FAILING_PAUSE_MS : 0);
      done();
    };
    timeline.add(timeline.now, next);
  }

  function request(webhook: SlowWebhook, message: Message, done: (isSuccess: boolean) => void): void {
    const respondsMs = slowMs[slowRequests % slowMs.length] ?? Number.POSITIVE_INFINITY;
    const takesMs = Math.min(respondsMs, DEADLINE_MS);
    const isSuccess = respondsMs < DEADLINE_MS;
    slowRequests += 1;
    if (takesMs >= SLOW_AFTER_MS) timeline.add(timeline.now + SLOW_AFTER_MS, () => (webhook.isMarked = true));
    timeline.add(timeline.now + takesMs, () => {
      if (!isSuccess) webhook.failingSince ??= timeline.now;
      const retry = { ...message, attempt: 2 };
      if (!isSuccess && message.attempt === 1) timeline.add(timeline.now + RETRY_MS, () => enter(webhook, retry));
      done(isSuccess);
    });
  }

  const ofBurst = { project: MEASURED + 1, webhook: undefined, at: 0, attempt: 1 };
  timeline.add(0, () => Array.from({ length: burst }, () => publish(ofBurst)));
  timeline.add(0, arrive);
  timeline.run(endsAt);
  waits.sort((one, other) => one.ms - other.ms);
  const quantile = (share: number, of = waits) => of[Math.ceil(share * of.length) - 1]?.ms ?? Number.NaN;
  const [onset = [], later = []] = [true, false].map((isOnset) => waits.filter(({ at }) => at < ONSET_MS === isOnset));
  const lines = webhooks.map((webhook) => ({ length: webhook.line.length, isOpen: isOpen(webhook) }));
  const inLines = (ofOpen: boolean) => lines.reduce((sum, line) => sum + (line.isOpen === ofOpen ? line.length : 0), 0);
  return {
    healthy: waits.length,
    p50Ms: quantile(0.5),
    p99Ms: quantile(0.99),
    onsetP99Ms: quantile(0.99, onset),
    laterP99Ms: quantile(0.99, later),
    slowRequests,
    behindProbe: inLines(true),
    waiting: { normal: carried.queue.length, slow: inLines(false) },
    busy: { normal: carried.mostBusy, slow: calls.mostBusy },
  };
}

/** What waits in a queue, oldest first, or oldest first of the project that has the fewest in flight. */
class WaitingItems<Item extends { project: number }> {
  readonly #isFair: boolean;
  /** By project; all of them under 0 unless the queue is fair. */
  readonly #groups = new Map<number, { items: Item[]; head: number; inFlight: number }>();
  length = 0;

  constructor(isFair: boolean) {
    this.#isFair = isFair;
  }

  push(item: Item): void {
    this.#groupOf(item).items.push(item);
    this.length += 1;
  }

  take(count: number): Item[] {
    const batch: Item[] = [];
    for (; batch.length < count && this.length > 0; this.length -= 1) {
      const waiting = [...this.#groups.values()].filter(({ items, head }) => head < items.length);
      const quietest = waiting.reduce((one, other) => (other.inFlight < one.inFlight ? other : one));
      const item = quietest.items[quietest.head] as Item;
      quietest.head += 1;
      quietest.inFlight += 1;
      batch.push(item);
    }
    return batch;
  }

  /** The items of a batch are no longer in flight. */
  end(batch: readonly Item[]): void {
    for (const item of batch) this.#groupOf(item).inFlight -= 1;
  }

  #groupOf({ project }: Item) {
    const key = this.#isFair ? project : 0;
    const group = this.#groups.get(key) ?? { items: [], head: 0, inFlight: 0 };
    this.#groups.set(key, group);
    return group;
  }
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

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { GetQueueAttributesCommand, SendMessageBatchCommand, SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { type Endable, endAll } from "../child.ts";
import { percentile } from "../harness.ts";
import { type Service, startService, subscribe } from "../local-service.ts";
import { clock, type Receivers, startReceivers } from "../receivers.ts";

/* A service whose healthy webhook gets events at a constant rate. */

export const eventNames = ["deploy.started", "deploy.succeeded", "deploy.failed"] as const;
export type EventName = (typeof eventNames)[number];

/** The events queue of a service. */
export interface EventsQueue extends Endable {
  /** Resolves when the event is queued. */
  publish(projectId: string, deploymentId: string, event?: EventName): Promise<void>;
  /** Publishes up to ten events. */
  publishMany(projectId: string, count: number): Promise<void>;
  /** Returns the number of events that fan-out has not handled yet. */
  depth(): Promise<number>;
}

function eventsQueueOf({ eventsQueueUrl: QueueUrl }: Service): EventsQueue {
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const sqs = new SQSClient({ endpoint: new URL(QueueUrl).origin, region: "us-east-1", credentials });
  const bodyOf = (project_id: string, deployment_id: string, event: EventName) =>
    JSON.stringify({ event, project_id, deployment_id, timestamp: new Date().toISOString() });
  const AttributeNames = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"] as const;
  return {
    async publish(projectId, deploymentId, event = "deploy.started") {
      const MessageBody = bodyOf(projectId, deploymentId, event);
      await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody }));
    },
    async publishMany(projectId, count) {
      const Entries = Array.from({ length: count }, (_, index) => ({
        Id: String(index),
        MessageBody: bodyOf(projectId, randomUUID(), "deploy.started"),
      }));
      await sqs.send(new SendMessageBatchCommand({ QueueUrl, Entries }));
    },
    async depth() {
      const request = { QueueUrl, AttributeNames: [...AttributeNames] };
      const { Attributes = {} } = await sqs.send(new GetQueueAttributesCommand(request));
      return AttributeNames.reduce((sum, name) => sum + Number(Attributes[name]), 0);
    },
    async end() {
      sqs.destroy();
    },
  };
}

interface Rate {
  perSecond: number;
  /** The number of calls; unlimited unless given. */
  count?: number;
  /** Stops before the next call. */
  signal?: AbortSignal;
}

/**
 * Calls at a constant rate, independent of how long the calls take. Resolves when all calls have ended.
 * @throws the first error of a call, which also stops the others
 */
export async function atRate(
  { perSecond, count = Number.POSITIVE_INFINITY, signal }: Rate,
  call: (number: number) => Promise<unknown>,
): Promise<void> {
  const failures: unknown[] = [];
  const calls = new Set<Promise<unknown>>();
  const startedAt = clock();
  for (let number = 0; number < count && failures.length === 0; number++) {
    const waitMs = startedAt + (number * 1000) / perSecond - clock();
    if (waitMs > 0) await sleep(waitMs, undefined, { signal }).catch(() => {});
    if (signal?.aborted) break;
    const running = call(number)
      .catch((error: unknown) => failures.push(error))
      .finally(() => calls.delete(running));
    calls.add(running);
  }
  await Promise.all(calls);
  if (failures.length > 0) throw failures[0];
}

/** A service with a healthy webhook, and its receivers. */
export interface Traffic extends Endable {
  service: Service;
  events: EventsQueue;
  /** Origin of the receivers: see ../receivers/serve.ts. */
  origin: string;
  /** Publishes events for the healthy webhook at a constant rate. */
  publish(perSecond: number, seconds: number): Promise<Turn>;
  /**
   * Waits until the events of all turns have arrived, or until the wait is over.
   * @throws Error for a signature that is not valid
   */
  arrivalsOf(turns: Turn[], maxWaitMs: number): Promise<Measured>;
  /** Returns the number of requests to other receivers so far. */
  otherRequests(): number;
}

/** When each event of a series was published, on the clock of ../receivers.ts. */
export type Turn = ReadonlyMap<string, number>;

export interface Measured {
  sent: number;
  /** Events that had not arrived when the wait was over. They count with the time until then. */
  missing: number;
  /** Events that arrived during their turn or soon after. */
  inTime: number;
  /** Requests that repeated an event. */
  repeats: number;
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
}

const PATH = "/ok/healthy";

/** Starts a service with these settings. */
export async function startTraffic(settings: Record<string, string>): Promise<Traffic> {
  const running: Endable[] = [];
  const end = () => endAll(running);
  try {
    const receivers = await startReceivers(1);
    running.unshift(receivers);
    const service = await startService(settings);
    running.unshift(service);
    const events = eventsQueueOf(service);
    running.unshift(events);
    const [origin = ""] = receivers.origins;
    const { secret } = await subscribe(service, `${origin}${PATH}`);
    const journal = await startJournal(receivers, PATH, secret);
    return {
      service,
      events,
      origin,
      async publish(perSecond, seconds) {
        const publishedAt = new Map<string, number>();
        await atRate({ perSecond, count: Math.round(perSecond * seconds) }, async () => {
          const event = randomUUID();
          publishedAt.set(event, clock());
          await events.publish(service.projectId, event);
        });
        return publishedAt;
      },
      arrivalsOf: (turns, maxWaitMs) => arrivalsOf(journal, turns, maxWaitMs),
      otherRequests: () => journal.others,
      end,
    };
  } catch (error) {
    await end();
    throw error;
  }
}

async function arrivalsOf(journal: Journal, turns: Turn[], maxWaitMs: number): Promise<Measured> {
  const repeatsBefore = journal.repeats;
  const events = turns.flatMap((turn) => [...turn.keys()]);
  const endsAt = clock() + maxWaitMs;
  await journal.update();
  while (events.some((event) => !journal.firstAt.has(event)) && clock() < endsAt) {
    await sleep(50);
    await journal.update();
  }
  return { ...measured(turns, journal.firstAt, clock()), repeats: journal.repeats - repeatsBefore };
}

/** An event counts for throughput until this long after the last one of its turn was published. */
export const IN_TIME_MS = 1_000;

/**
 * Computes latencies and throughput. All times are those of one clock, in milliseconds.
 * @param firstAt when an event arrived for the first time; other events are ignored
 * @param waitedUntil counts as the arrival of an event that has not arrived
 */
export function measured(
  turns: Turn[],
  firstAt: ReadonlyMap<string, number>,
  waitedUntil: number,
): Omit<Measured, "repeats"> {
  const events = turns.flatMap((turn) => {
    const inTimeUntil = Math.max(...turn.values()) + IN_TIME_MS;
    return [...turn].map(([event, at]) => ({ at, inTimeUntil, arrivedAt: firstAt.get(event) }));
  });
  const latenciesMs = events.map(({ at, arrivedAt = waitedUntil }) => arrivedAt - at);
  return {
    sent: events.length,
    missing: events.filter(({ arrivedAt }) => arrivedAt === undefined).length,
    inTime: events.filter(({ arrivedAt = Number.POSITIVE_INFINITY, inTimeUntil }) => arrivedAt <= inTimeUntil).length,
    p50Ms: percentile(50, latenciesMs),
    p99Ms: percentile(99, latenciesMs),
    maxMs: percentile(100, latenciesMs),
  };
}

/** What arrived at the receivers. */
interface Journal {
  /** When each event arrived for the first time at the healthy receiver. */
  firstAt: Map<string, number>;
  /** Requests that repeated an event at the healthy receiver. */
  repeats: number;
  /** Requests at all other receivers. */
  others: number;
  /** Adds the requests since the last call. @throws Error for a signature that is not valid */
  update(): Promise<void>;
}

/**
 * Starts a journal.
 * @param path of the healthy receiver
 * @param secret of its webhook
 */
async function startJournal(receivers: Receivers, path: string, secret: string): Promise<Journal> {
  const secrets = { [path]: secret };
  await receivers.take(secrets);
  const journal: Journal = {
    firstAt: new Map(),
    repeats: 0,
    others: 0,
    async update() {
      const { arrivals, invalid, verified } = await receivers.take(secrets);
      if (invalid.length > 0) throw new Error(`A signature is not valid: ${invalid[0]}`);
      const healthy = arrivals.filter((arrival) => arrival.path === path);
      if (verified !== healthy.length) throw new Error(`${verified} of ${healthy.length} requests were verified.`);
      for (const { event, at } of healthy) {
        if (journal.firstAt.has(event)) journal.repeats += 1;
        else journal.firstAt.set(event, at);
      }
      journal.others += arrivals.length - healthy.length;
    },
  };
  return journal;
}

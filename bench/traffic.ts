import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { GetQueueAttributesCommand, SendMessageBatchCommand, SQSClient } from "@aws-sdk/client-sqs";
import type { EventName } from "../functions/foundation/events/deployment-event.ts";
import { withoutUnused } from "../functions/foundation/platform/aws.ts";
import type { Endable, Start } from "./child.ts";
import { percentile } from "./harness.ts";
import { type Service, startService, subscribe } from "./local-service.ts";
import { clock, type Receivers, startReceivers } from "./receivers.ts";

/* Events at a constant rate to one receiver, and when they arrive there. */

/** The events queue of a service. */
export interface EventsQueue extends Endable {
  /** Publishes up to ten events. Resolves when the queue has accepted them. */
  publish(projectId: string, deploymentIds: string[], event?: EventName, timestamp?: string): Promise<void>;
  /** Returns the number of events that fan-out has not handled yet. */
  depth(): Promise<number>;
}

/** `deploy.succeeded` requires it. */
const data = { url: "https://shop.example.com", status: "running" };

export function eventsQueueOf({ eventsQueueUrl: QueueUrl }: Pick<Service, "eventsQueueUrl">): EventsQueue {
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const options = { endpoint: new URL(QueueUrl).origin, region: "us-east-1", credentials, cacheMiddleware: true };
  const sqs = withoutUnused(new SQSClient(options));
  const AttributeNames = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"] as const;
  return {
    async publish(project_id, deploymentIds, event = "deploy.started", timestamp = new Date().toISOString()) {
      const Entries = deploymentIds.map((deployment_id, index) => {
        return { Id: `${index}`, MessageBody: JSON.stringify({ event, project_id, deployment_id, timestamp, data }) };
      });
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

/** When each event of a series was published, on the clock of receivers.ts. */
export type Turn = ReadonlyMap<string, number>;

/** Publishes new events at a constant rate. */
export async function offer(
  publish: (event: string) => Promise<unknown>,
  { perSecond, seconds }: { perSecond: number; seconds: number },
): Promise<Turn> {
  const publishedAt = new Map<string, number>();
  await atRate({ perSecond, count: Math.round(perSecond * seconds) }, async () => {
    const event = randomUUID();
    publishedAt.set(event, clock());
    await publish(event);
  });
  return publishedAt;
}

/** The requests that arrived at the receivers. */
export interface Journal {
  /** When each event arrived for the first time at a watched path. */
  firstAt: Map<string, number>;
  /** Requests that repeated an event at a watched path. */
  repeats: number;
  /** Requests at all other paths. */
  others: number;
  /** Adds the requests since the last call. @throws Error for a signature that is not valid */
  update(): Promise<void>;
  /** Waits until the events of all turns have arrived, or until the wait is over. */
  arrivalsOf(turns: Turn[], maxWaitMs: number): Promise<Measured>;
}

/**
 * Starts a journal of the receivers.
 * @param secrets secrets by path, of the webhooks that are watched
 */
export async function startJournal(receivers: Receivers, secrets: Record<string, string>): Promise<Journal> {
  await receivers.take(secrets);
  const journal: Journal = {
    firstAt: new Map(),
    repeats: 0,
    others: 0,
    async update() {
      const { arrivals, invalid, verified } = await receivers.take(secrets);
      if (invalid.length > 0) throw new Error(`A signature is not valid: ${invalid[0]}`);
      const watched = arrivals.filter(({ path }) => secrets[path] !== undefined);
      if (verified !== watched.length) throw new Error(`${verified} of ${watched.length} requests were verified.`);
      for (const { event, at } of watched) {
        if (journal.firstAt.has(event)) journal.repeats += 1;
        else journal.firstAt.set(event, at);
      }
      journal.others += arrivals.length - watched.length;
    },
    async arrivalsOf(turns, maxWaitMs) {
      const events = turns.flatMap((turn) => [...turn.keys()]);
      const endsAt = clock() + maxWaitMs;
      await journal.update();
      while (events.some((event) => !journal.firstAt.has(event)) && clock() < endsAt) {
        await sleep(50);
        await journal.update();
      }
      return measured(turns, journal.firstAt, clock());
    },
  };
  return journal;
}

export interface Measured {
  sent: number;
  /** Events that had not arrived when the wait was over. They count with the time until then. */
  missing: number;
  /** Events that arrived during their turn or soon after. */
  inTime: number;
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
}

/** An event counts for throughput until this long after the last one of its turn was published. */
export const IN_TIME_MS = 1_000;

/**
 * Computes latencies and throughput. All times are those of one clock, in milliseconds.
 * @param firstAt when an event arrived for the first time; other events are ignored
 * @param waitedUntil counts as the arrival of an event that has not arrived
 */
export function measured(turns: Turn[], firstAt: ReadonlyMap<string, number>, waitedUntil: number): Measured {
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

/** A service with a healthy webhook, and its receivers. */
export interface Traffic {
  service: Service;
  events: EventsQueue;
  receivers: Receivers;
  journal: Journal;
  /** Path and secret of the healthy webhook. */
  path: string;
  secret: string;
  /** Publishes an event for the healthy webhook. */
  publish(event: string): Promise<void>;
}

/**
 * Starts a service with these settings and a healthy webhook.
 * @param given receivers to be used; absent means new ones
 */
export async function startTraffic(
  start: Start,
  settings: Record<string, string> = {},
  given?: Receivers,
): Promise<Traffic> {
  const receivers = given ?? (await start(startReceivers()));
  const service = await start(startService(settings));
  const events = await start(eventsQueueOf(service));
  const path = "/ok/healthy";
  const { secret } = await subscribe(service, `${receivers.origin}${path}`);
  const journal = await startJournal(receivers, { [path]: secret });
  const publish = (event: string) => events.publish(service.projectId, [event]);
  return { service, events, receivers, journal, path, secret, publish };
}

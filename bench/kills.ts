import { randomUUID } from "node:crypto";
import { once } from "node:events";
import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { SendMessageBatchCommand, SQSClient } from "@aws-sdk/client-sqs";
import type { Bench, Result } from "./harness.ts";
import { deliveriesOf, newDataDir, removeDataDir, type Service, startService, subscribe } from "./local-service.ts";
import { type Arrival, clock, type Receivers, startReceivers } from "./receivers.ts";

/*
 * Kills the whole service with SIGKILL at random moments while events are published, starts it again, and compares at the end what
 * was published, what the receiver got, and what the log of deliveries says. The engines are killed too: they run in the service or
 * end with it, and keep their data on disk.
 */

export interface Plan {
  kills: number;
  events: number;
  /** Shortest and longest time between a start and the next kill. */
  minUpMs: number;
  maxUpMs: number;
  /** How long the receiver takes to respond, so that requests are in flight when the service is killed. */
  responseMs: number;
  /** Pause between two batches of ten events. */
  publishPauseMs: number;
  /** Max wait without a further arrival after the last kill. */
  maxQuietMs: number;
}

const full: Plan = {
  kills: 100,
  events: 10_000,
  minUpMs: 200,
  maxUpMs: 2_500,
  responseMs: 20,
  publishPauseMs: 100,
  maxQuietMs: 90_000,
};

export const bench: Bench = {
  name: "kills",
  about: "what is lost and what is repeated when the service is killed again and again",
  run: () => measureKills(full),
};

/** The same ports at every start, so that publishing goes on after a restart. */
async function freePorts(): Promise<{ PORT: string; SQS_PORT: string }> {
  const probes = [net.createServer().listen(0, "127.0.0.1"), net.createServer().listen(0, "127.0.0.1")];
  await Promise.all(probes.map((probe) => once(probe, "listening")));
  const [api, queues] = probes.map((probe) => String((probe.address() as net.AddressInfo).port));
  await Promise.all(probes.map((probe) => once(probe.close(), "close")));
  return { PORT: api ?? "", SQS_PORT: queues ?? "" };
}

export async function measureKills(plan: Plan): Promise<Result> {
  const dataDir = newDataDir();
  const ports = await freePorts();
  const receivers = await startReceivers(1);
  let service: Service | undefined;
  try {
    service = await startService(ports, dataDir);
    const { id, secret } = await subscribe(service, `${receivers.origins[0]}/after/${plan.responseMs}/kills`);
    await receivers.take({ [`/after/${plan.responseMs}/kills`]: secret });
    const published = publish(plan, service);
    const killedAt: number[] = [];
    while (killedAt.length < plan.kills) {
      await sleep(plan.minUpMs + Math.random() * (plan.maxUpMs - plan.minUpMs));
      killedAt.push(clock());
      await service.end();
      service = await startService(ports, dataDir);
    }
    const events = await published;
    const arrivals = await arrivalsOf(plan, receivers, secret, events);
    return resultOf(plan, { events, arrivals, killedAt, logged: await logOf(plan, service, id) });
  } finally {
    await service?.end();
    await receivers.end();
    removeDataDir(dataDir);
  }
}

/** Publishes all events, each batch until the queue has accepted it. Returns the ids of their deployments. */
async function publish({ events, publishPauseMs }: Plan, service: Service): Promise<Set<string>> {
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const { origin } = new URL(service.eventsQueueUrl);
  const sqs = new SQSClient({ endpoint: origin, region: "us-east-1", credentials, maxAttempts: 1 });
  const published = new Set<string>();
  try {
    while (published.size < events) {
      const batch = Array.from({ length: Math.min(10, events - published.size) }, () => randomUUID());
      const Entries = batch.map((deployment_id, index) => {
        const timestamp = new Date().toISOString();
        const event = { event: "deploy.started", project_id: service.projectId, deployment_id, timestamp };
        return { Id: String(index), MessageBody: JSON.stringify(event) };
      });
      await untilAccepted(() => sqs.send(new SendMessageBatchCommand({ QueueUrl: service.eventsQueueUrl, Entries })));
      for (const id of batch) published.add(id);
      await sleep(publishPauseMs);
    }
    return published;
  } finally {
    sqs.destroy();
  }
}

/** Longer than a restart on a slow machine. */
const MAX_REFUSED_MS = 60_000;

async function untilAccepted(send: () => Promise<unknown>): Promise<void> {
  const endsAt = Date.now() + MAX_REFUSED_MS;
  for (;;) {
    try {
      await send();
      return;
    } catch (error) {
      if (Date.now() > endsAt) throw error;
      await sleep(50);
    }
  }
}

/** Waits until all events have arrived, or none arrives any more. */
async function arrivalsOf(
  { maxQuietMs, responseMs }: Plan,
  receivers: Receivers,
  secret: string,
  events: Set<string>,
): Promise<Arrival[]> {
  const arrivals: Arrival[] = [];
  const missing = new Set(events);
  let lastArrivalAt = Date.now();
  while (missing.size > 0 && Date.now() < lastArrivalAt + maxQuietMs) {
    const received = await receivers.take({ [`/after/${responseMs}/kills`]: secret });
    if (received.invalid.length > 0) throw new Error(`Invalid signature: ${received.invalid[0]}`);
    if (received.arrivals.length > 0) lastArrivalAt = Date.now();
    arrivals.push(...received.arrivals);
    for (const { event } of received.arrivals) missing.delete(event);
    await sleep(200);
  }
  return arrivals;
}

interface Log {
  byStatus: Record<string, number>;
  attempts: number;
}

/**
 * Reads the log of deliveries once all of them have succeeded, or after the longest wait. A delivery whose request was
 * sent just before a kill has no row before its message is received again.
 */
async function logOf({ maxQuietMs, events }: Plan, service: Service, webhookId: string): Promise<Log> {
  const endsAt = Date.now() + maxQuietMs;
  for (;;) {
    const log: Log = { byStatus: {}, attempts: 0 };
    for await (const { status, attempt_count } of deliveriesOf(service, webhookId)) {
      log.byStatus[status] = (log.byStatus[status] ?? 0) + 1;
      log.attempts += attempt_count;
    }
    if ((log.byStatus.succeeded ?? 0) >= events || Date.now() > endsAt) return log;
    await sleep(2_000);
  }
}

interface Measured {
  /** The ids of the published deployments. */
  events: Set<string>;
  arrivals: Arrival[];
  /** Times of `clock`. */
  killedAt: number[];
  logged: Log;
}

/** Requests that one process has in flight to one webhook (functions/attempts/slots.ts). */
const MAX_IN_FLIGHT = 10;

/** @throws Error when an event was lost, was not published, or is missing in the log */
export function resultOf({ responseMs }: Plan, { events, arrivals, killedAt, logged }: Measured): Result {
  const arrived = new Set(arrivals.map(({ event }) => event));
  const lost = [...events].filter((event) => !arrived.has(event)).length;
  const { succeeded = 0, ...others } = logged.byStatus;
  const isLogged = succeeded === events.size && Object.keys(others).length === 0;
  const figures = `${events.size} events, ${arrived.size} arrived, in the log: ${JSON.stringify(logged.byStatus)}`;
  if (lost > 0 || arrived.size > events.size || !isLogged) throw new Error(`The ledger does not balance: ${figures}.`);
  if (logged.attempts > arrivals.length) throw new Error("The log has more attempts than the receiver got requests.");
  const repeats = arrivals.length - arrived.size;
  const openAt = (at: number) => arrivals.filter((each) => each.at <= at && each.at > at - responseMs).length;
  const open = killedAt.reduce((sum, at) => sum + openAt(at), 0);
  const perKill = (count: number) => Number((count / killedAt.length).toFixed(2));
  return {
    tables: [
      {
        title: "events published while the service was killed",
        columns: [
          "kills",
          "events",
          "lost",
          "requests",
          "repeated",
          "repeated per kill",
          "open at a kill",
          "not in the log",
        ],
        rows: [
          [
            killedAt.length,
            events.size,
            lost,
            arrivals.length,
            repeats,
            perKill(repeats),
            perKill(open),
            arrivals.length - logged.attempts,
          ],
        ],
      },
    ],
    targets: [
      { name: "kills.lost", value: lost, bound: 0 },
      { name: "kills.repeatedPerKill", value: perKill(repeats), bound: MAX_IN_FLIGHT },
    ],
    notes: [
      "Open at a kill: requests that the receiver had not answered. Requests whose answer was not yet recorded are in flight too.",
      "A request that is not in the log was sent just before a kill, and sent again after it.",
    ],
    data: { events: events.size, requests: arrivals.length, killedAt: killedAt.length, logged },
  };
}

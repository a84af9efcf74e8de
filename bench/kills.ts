import { randomUUID } from "node:crypto";
import { once } from "node:events";
import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Bench, Result } from "./harness.ts";
import { deliveriesOf, newDataDir, removeDataDir, type Service, startService, subscribe } from "./local-service.ts";
import { type Arrival, clock, type Receivers, startReceivers } from "./receivers.ts";
import { eventsQueueOf } from "./traffic.ts";

/*
 * Kills the whole service with SIGKILL at random moments while events are published, starts it again, and compares at the end what
 * was published, what the receiver got, and what the log of deliveries says. The engines are killed too: they run in the service or
 * end with it, and keep their data on disk.
 */

export interface Plan {
  /** No further kill, and no further event, after this time. */
  forMs: number;
  /** Max kills and events, if the time is enough for them. */
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
  forMs: 220_000,
  kills: 100,
  events: 10_000,
  minUpMs: 200,
  maxUpMs: 2_000,
  responseMs: 20,
  publishPauseMs: 50,
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
  const receivers = await startReceivers();
  let service: Service | undefined;
  try {
    service = await startService(ports, dataDir);
    const { id, secret } = await subscribe(service, `${receivers.origin}${pathOf(plan)}`);
    await receivers.take({ [pathOf(plan)]: secret });
    const stopping = new AbortController();
    const published = publish(plan, service, stopping.signal);
    const killedAt: number[] = [];
    const endsAt = clock() + plan.forMs;
    while (killedAt.length < plan.kills && clock() < endsAt) {
      await sleep(plan.minUpMs + Math.random() * (plan.maxUpMs - plan.minUpMs));
      killedAt.push(clock());
      await service.end();
      service = await startService(ports, dataDir);
    }
    stopping.abort();
    const events = await published;
    const arrivals = await arrivalsOf(plan, receivers, secret, events);
    return resultOf(plan, { events, arrivals, killedAt, logged: await logOf(plan, service, id, events.size) });
  } finally {
    await service?.end();
    await receivers.end();
    removeDataDir(dataDir);
  }
}

/** The path of the receiver. */
const pathOf = ({ responseMs }: Plan): string => `/after/${responseMs}/kills`;

/** Publishes events until the kills are over, each batch until the queue has accepted it. Returns the ids of their deployments. */
async function publish({ events, publishPauseMs }: Plan, service: Service, isOver: AbortSignal): Promise<Set<string>> {
  const queue = eventsQueueOf(service);
  const published = new Set<string>();
  try {
    while (published.size < events && !isOver.aborted) {
      const batch = Array.from({ length: Math.min(10, events - published.size) }, () => randomUUID());
      await untilAccepted(() => queue.publish(service.projectId, batch));
      for (const id of batch) published.add(id);
      await sleep(publishPauseMs);
    }
    return published;
  } finally {
    await queue.end();
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
async function arrivalsOf(plan: Plan, receivers: Receivers, secret: string, events: Set<string>): Promise<Arrival[]> {
  const arrivals: Arrival[] = [];
  const missing = new Set(events);
  let lastArrivalAt = Date.now();
  while (missing.size > 0 && Date.now() < lastArrivalAt + plan.maxQuietMs) {
    const received = await receivers.take({ [pathOf(plan)]: secret });
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
async function logOf({ maxQuietMs }: Plan, service: Service, webhookId: string, events: number): Promise<Log> {
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
  if (killedAt.length === 0)
    throw new Error("The service was not killed: its start took longer than the time of the run.");
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
      { name: "events lost", value: lost, bound: 0 },
      { name: "requests repeated per kill", value: perKill(repeats), bound: MAX_IN_FLIGHT },
    ],
    notes: [
      `${killedAt.length} kills while ${events.size} events were published.`,
      "Open at a kill: requests that the receiver had not answered. Requests whose answer was not yet recorded are in flight too.",
      "A request that is not in the log was sent just before a kill, and sent again after it.",
    ],
    data: { events: events.size, requests: arrivals.length, killedAt: killedAt.length, logged },
  };
}

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { withStarted } from "./child.ts";
import { type Bench, type Result, tableOf } from "./harness.ts";
import { deliveriesOf, newDataDir, removeDataDir, type Service, startService, subscribe } from "./local-service.ts";
import { clock, startReceivers } from "./receivers.ts";
import { eventsQueueOf, startJournal, type Turn } from "./traffic.ts";

/*
 * Kills the whole service with SIGKILL at random moments while events are published, starts it again, and compares at the end what
 * was published, what the receiver got, and what the log of deliveries says. The SQS engine is a thread of the service and dies with
 * it. The DynamoDB engine is a process that gets SIGTERM then. Both keep their data on disk.
 */

const full = {
  /** No further kill, and no further event, after this time. */
  forMs: 230_000,
  /** Max kills and events, if the time is enough for them. */
  kills: 100,
  events: 10_000,
  /** Shortest and longest time between a start and the next kill. */
  minUpMs: 200,
  maxUpMs: 2_000,
  /** How long the receiver takes to respond, so that requests are in flight when the service is killed. */
  responseMs: 20,
  /** Pause between two batches of ten events. */
  publishPauseMs: 50,
  /** Max wait without a further arrival after the last kill: after 120 s the sweep finds what a killed sender had claimed. */
  maxQuietMs: 150_000,
};

export type Plan = typeof full;

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

export function measureKills(plan: Plan): Promise<Result> {
  return withStarted(async (start) => {
    const dataDir = newDataDir();
    await start({ end: async () => removeDataDir(dataDir) });
    const ports = await freePorts();
    const receivers = await start(startReceivers());
    let service = await startService(ports, dataDir);
    await start({ end: () => service.end() });
    const path = `/after/${plan.responseMs}/kills`;
    const { id, secret } = await subscribe(service, `${receivers.origin}${path}`);
    const journal = await startJournal(receivers, { [path]: secret });
    const stopping = new AbortController();
    const publishing = publish(plan, service, stopping.signal);
    let kills = 0;
    for (const endsAt = clock() + plan.forMs; kills < plan.kills && clock() < endsAt; kills++) {
      await sleep(plan.minUpMs + Math.random() * (plan.maxUpMs - plan.minUpMs));
      await service.end();
      service = await startService(ports, dataDir);
    }
    stopping.abort();
    const turn = await publishing;
    for (let arrived = -1; arrived < journal.firstAt.size && journal.firstAt.size < turn.size; ) {
      arrived = journal.firstAt.size;
      await journal.arrivalsOf([turn], plan.maxQuietMs);
    }
    const logged = await logOf(plan, service, id, turn.size);
    await journal.update();
    const { firstAt, repeats } = journal;
    return resultOf({ events: new Set(turn.keys()), arrived: new Set(firstAt.keys()), repeats, kills, logged });
  });
}

/** Publishes events until the kills are over, each batch until the queue has accepted it. */
async function publish({ events, publishPauseMs }: Plan, service: Service, isOver: AbortSignal): Promise<Turn> {
  const queue = eventsQueueOf(service);
  const published = new Map<string, number>();
  try {
    while (published.size < events && !isOver.aborted) {
      const batch = Array.from({ length: Math.min(10, events - published.size) }, () => randomUUID());
      const timestamp = new Date().toISOString();
      await untilAccepted(() => queue.publish(service.projectId, batch, "deploy.started", timestamp));
      for (const id of batch) published.set(id, clock());
      await sleep(publishPauseMs);
    }
    return published;
  } finally {
    await queue.end();
  }
}

/** Longer than a restart on a slow machine. */
const MAX_REFUSED_MS = 60_000;

/** Calls until the service responds. @throws the last error when it does not for a minute */
async function untilAccepted<Sent>(send: () => Promise<Sent>): Promise<Sent> {
  const endsAt = Date.now() + MAX_REFUSED_MS;
  for (;;) {
    try {
      return await send();
    } catch (error) {
      if (Date.now() > endsAt) throw error;
      await sleep(50);
    }
  }
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
  /** The deployments that were published, and those of which a request arrived. */
  events: Set<string>;
  arrived: Set<string>;
  /** Requests that repeated an event. */
  repeats: number;
  kills: number;
  logged: Log;
}

/**
 * Requests that may be in flight when a process is killed, each of which is sent again. A local run has at most seven in
 * flight for one project, and starts more while their outcomes are recorded.
 */
const MAX_IN_FLIGHT = 10;

/** @throws Error when an event was lost, was not published, or is missing in the log */
export function resultOf({ events, arrived, repeats, kills, logged }: Measured): Result {
  const lost = [...events].filter((event) => !arrived.has(event)).length;
  const requests = arrived.size + repeats;
  const { succeeded = 0, ...others } = logged.byStatus;
  const isLogged = succeeded === events.size && Object.keys(others).length === 0;
  const figures = `${events.size} events, ${arrived.size} arrived, in the log: ${JSON.stringify(logged.byStatus)}`;
  if (lost > 0 || arrived.size > events.size || !isLogged) throw new Error(`The ledger does not balance: ${figures}.`);
  if (logged.attempts > requests) throw new Error("The log has more attempts than the receiver got requests.");
  if (kills === 0) throw new Error("The service was not killed: its start took longer than the time of the run.");
  const perKill = Number((repeats / kills).toFixed(2));
  return {
    tables: [
      tableOf("events published while the service was killed", [
        {
          ...{ kills, events: events.size, lost, requests, repeated: repeats, "repeated per kill": perKill },
          "not in the log": requests - logged.attempts,
        },
      ]),
    ],
    targets: [
      { name: "events lost", value: lost, bound: 0, of: `of ${events.size} events` },
      { name: "requests repeated per kill", value: perKill, bound: MAX_IN_FLIGHT, of: `in ${kills} kills` },
    ],
    notes: ["A request that is not in the log was sent just before a kill, and sent again after it."],
  };
}

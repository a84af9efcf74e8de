import { createSocket } from "node:dgram";
import { once } from "node:events";
import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { inParallel } from "../../functions/platform/parallel.ts";
import type { Endable } from "../child.ts";
import { deliveriesOf, requestApi, type Service, subscribe, withNewProject } from "../local-service.ts";
import { atRate, type EventName, eventNames, type Traffic } from "./traffic.ts";

/* The cases of bench/isolation.ts: what another project does while the healthy traffic is measured. */

export interface Plan {
  /** Healthy events per second. */
  perSecond: number;
  /** How often each of the two services gets healthy events, and for how long each time. */
  turns: number;
  turnSeconds: number;
  /** Max wait for events that have not arrived when the measurement of a case is over. */
  maxWaitMs: number;
  /** After how long the slow receivers respond. The measurement starts that long after their first request. */
  slowMs: number;
  /** How long names that do not resolve are used before the measurement. */
  leadMs: number;
  /** After how long without a success the circuit of the dead webhook is open. */
  circuitOpensAfterMs: number;
  /** Events for the dead webhook. A slow machine publishes fewer. */
  backlog: number;
  /** After how long the first of these deliveries are handled again. The measurement starts then. */
  backlogReturnsAfterMs: number;
  /** Test calls to receivers that hang. */
  tests: number;
}

/** What a case works with. */
export interface Scene {
  plan: Plan;
  /** The service, with the project that disturbs. */
  other: Service;
  traffic: Traffic;
  dns: SilentDns;
}

export interface Disturbance {
  /** Resolves when the healthy traffic is to be measured. */
  begin(): Promise<void>;
  /** Stops, and describes what was done. @throws Error if nothing was disturbed */
  end(): Promise<string>;
}

/** Prepares a disturbance. */
export type Case = (scene: Scene) => Promise<Disturbance>;

/** The share of all messages that go to slow receivers. */
const SLOW_SHARE = 0.05;

/** Each event has one slow webhook of six, in two projects: messages of one event would share a batch. */
async function slowReceivers({ plan, other, traffic }: Scene): Promise<Disturbance> {
  const slow: { project: Service; event: EventName }[] = [];
  for (const project of [other, await withNewProject(other)]) {
    for (const event of eventNames) {
      await subscribe(project, `${traffic.origin}/after/${plan.slowMs}/${slow.length}`, event);
      slow.push({ project, event });
    }
  }
  const publishing = repeated((plan.perSecond * SLOW_SHARE) / (1 - SLOW_SHARE), async (number) => {
    const { project, event } = slow[number % slow.length] ?? { project: other, event: eventNames[0] };
    await traffic.events.publish(project.projectId, crypto.randomUUID(), event);
  });
  return {
    async begin() {
      publishing.start();
      await sleep(plan.slowMs);
    },
    async end() {
      await publishing.stop();
      if (traffic.otherRequests() === 0) throw new Error("No request arrived at the slow receivers.");
      return `${traffic.otherRequests()} slow requests`;
    },
  };
}

const NAMES = 5;
const EVENTS_PER_SECOND = 2;

async function namesThatNeverResolve({ plan, other, traffic, dns }: Scene): Promise<Disturbance> {
  for (let number = 0; number < NAMES; number++) await subscribe(other, `https://never-${number}.example.com/`);
  const publishing = repeated(EVENTS_PER_SECOND, () => traffic.events.publish(other.projectId, crypto.randomUUID()));
  return {
    async begin() {
      publishing.start();
      await sleep(plan.leadMs);
    },
    async end() {
      await publishing.stop();
      if (dns.queries() === 0) throw new Error("The DNS server got no query.");
      return `${dns.queries()} DNS queries without a response`;
    },
  };
}

/** Max events per request to SQS. */
const BATCH = 10;
/** Max time in which the backlog is published, and then handled by fan-out. */
const MAX_PUBLISH_MS = 15_000;
const MAX_FAN_OUT_MS = 25_000;

async function deadWebhook({ plan, other, traffic }: Scene): Promise<Disturbance> {
  const { id } = await subscribe(other, `${await unusedOrigin()}/`);
  await traffic.events.publish(other.projectId, crypto.randomUUID());
  const opensAt = Date.now() + plan.circuitOpensAfterMs;
  return {
    async begin() {
      await sleep(Math.max(0, opensAt - Date.now()));
      const startedAt = Date.now();
      const elapsedMs = () => Date.now() - startedAt;
      for (let left = plan.backlog; left > 0 && elapsedMs() < MAX_PUBLISH_MS; left -= BATCH) {
        await traffic.events.publishMany(other.projectId, Math.min(left, BATCH));
      }
      while ((await traffic.events.depth()) > 0 && elapsedMs() < MAX_PUBLISH_MS + MAX_FAN_OUT_MS) await sleep(200);
      await sleep(Math.max(0, plan.backlogReturnsAfterMs - elapsedMs()));
    },
    async end() {
      const counts: Record<string, number> = {};
      for await (const { status } of deliveriesOf(other, id)) counts[status] = (counts[status] ?? 0) + 1;
      if (!counts.pending) throw new Error(`No delivery of the dead webhook is pending: ${JSON.stringify(counts)}.`);
      return `${counts.pending} deliveries pending`;
    },
  };
}

const HANGING = 5;
const PARALLEL_CALLS = 20;
/** Above the throttle of the endpoint, so that the project gets all that the endpoint accepts during the measurement. */
const CALLS_PER_SECOND = 10;

async function testCalls({ plan, other, traffic }: Scene): Promise<Disturbance> {
  const webhooks: string[] = [];
  for (let number = 0; number < HANGING; number++) {
    webhooks.push((await subscribe(other, `${traffic.origin}/hang/${number}`)).id);
  }
  const statuses: Record<number, number> = {};
  const callTest = async (number: number): Promise<void> => {
    const response = await requestApi(other, `${webhooks[number % HANGING]}/test`, { event: "deploy.started" });
    const text = await response.text();
    if (response.status !== 202 && response.status !== 429) throw new Error(`${response.status}: ${text}`);
    statuses[response.status] = (statuses[response.status] ?? 0) + 1;
  };
  const calling = repeated(CALLS_PER_SECOND, callTest);
  return {
    async begin() {
      await inParallel([...Array(plan.tests).keys()], PARALLEL_CALLS, callTest);
      calling.start();
    },
    async end() {
      await calling.stop();
      if (traffic.otherRequests() === 0) throw new Error("No request arrived at the receivers that hang.");
      return `${statuses[202] ?? 0} test calls accepted, ${statuses[429] ?? 0} rejected with 429`;
    },
  };
}

export const cases: Record<string, Case> = {
  "5 % to slow receivers": slowReceivers,
  "5 names that never resolve": namesThatNeverResolve,
  "dead webhook with a backlog": deadWebhook,
  "tests to receivers that hang": testCalls,
};

/** Calls at a constant rate between start and stop. */
function repeated(perSecond: number, call: (number: number) => Promise<unknown>) {
  const stopping = new AbortController();
  let running: Promise<void> | undefined;
  return {
    start() {
      running = atRate({ perSecond, signal: stopping.signal }, call);
      // Reported by `stop`.
      running.catch(() => {});
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** Returns an origin without a listener. */
async function unusedOrigin(): Promise<string> {
  const server = net.createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as net.AddressInfo;
  server.close();
  await once(server, "close");
  return `http://127.0.0.1:${port}`;
}

/** A DNS server that never responds. */
export interface SilentDns extends Endable {
  /** For the setting DNS_SERVERS. */
  address: string;
  queries(): number;
}

export async function startSilentDns(): Promise<SilentDns> {
  const socket = createSocket("udp4");
  let count = 0;
  socket.on("message", () => {
    count += 1;
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return {
    address: `127.0.0.1:${socket.address().port}`,
    queries: () => count,
    async end() {
      socket.close();
      await once(socket, "close");
    },
  };
}

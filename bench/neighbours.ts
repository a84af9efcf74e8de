import { randomUUID } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { eventNames } from "../functions/deployments/deployment-event.ts";
import type { Endable } from "./child.ts";
import { deliveriesOf, projectPath, request, type Service, subscribe, withNewProject } from "./local-service.ts";
import { atRate, type Traffic } from "./traffic.ts";

/* The cases of isolation.ts: what another project does while the healthy traffic is measured. */

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
  /** Max time in which the hanging receivers use up their patience before the measurement. */
  leadMs: number;
  /** After how long without a success the circuit of the dead webhook is open. */
  circuitOpensAfterMs: number;
  /** Events for the dead webhook. A slow machine publishes fewer. */
  backlog: number;
  /** How long a test call or a request with one key is repeated as fast as the service answers, before the measurement. */
  floodMs: number;
}

/** The inputs of a case. */
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

/**
 * Each event has one slow webhook of six, in two projects: messages of one event would share a batch.
 * @param share of all messages
 */
const slowReceivers =
  (share: number, pathOf: (plan: Plan) => string, leadMsOf: (plan: Plan) => number): Case =>
  async ({ plan, other, traffic }) => {
    const slow: { project: Service; event: (typeof eventNames)[number] }[] = [];
    for (const project of [other, await withNewProject(other)]) {
      for (const event of eventNames) {
        await subscribe(project, `${traffic.receivers.origin}${pathOf(plan)}/${slow.length}`, event);
        slow.push({ project, event });
      }
    }
    const publishing = repeated((plan.perSecond * share) / (1 - share), async (number) => {
      const { project, event } = slow[number % slow.length] ?? { project: other, event: eventNames[0] };
      await traffic.events.publish(project.projectId, [randomUUID()], event);
    });
    return {
      async begin() {
        publishing.start();
        await sleep(leadMsOf(plan));
      },
      async end() {
        await publishing.stop();
        if (traffic.journal.others === 0) throw new Error("No request arrived at the slow receivers.");
        return `${traffic.journal.others} slow requests`;
      },
    };
  };

const NAMES = 5;
const EVENTS_PER_SECOND = 2;

async function namesThatNeverResolve({ plan, other, traffic, dns }: Scene): Promise<Disturbance> {
  for (let number = 0; number < NAMES; number++) await subscribe(other, `https://never-${number}.example.com/`);
  const publishing = repeated(EVENTS_PER_SECOND, () => traffic.events.publish(other.projectId, [randomUUID()]));
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

/** Max time in which the backlog is published, and then handled by fan-out. */
const MAX_PUBLISH_MS = 15_000;
const MAX_FAN_OUT_MS = 25_000;

async function deadWebhook({ plan, other, traffic }: Scene): Promise<Disturbance> {
  const { id } = await subscribe(other, `${await unusedOrigin()}/`);
  const publishTen = () =>
    traffic.events.publish(
      other.projectId,
      Array.from({ length: 10 }, () => randomUUID()),
    );
  await publishTen();
  const opensAt = Date.now() + plan.circuitOpensAfterMs;
  return {
    async begin() {
      await sleep(Math.max(0, opensAt - Date.now()));
      const startedAt = Date.now();
      const isWithin = (ms: number) => Date.now() - startedAt < ms;
      for (let left = plan.backlog; left > 0 && isWithin(MAX_PUBLISH_MS); left -= 10) await publishTen();
      while ((await traffic.events.depth()) > 0 && isWithin(MAX_PUBLISH_MS + MAX_FAN_OUT_MS)) await sleep(200);
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
const TESTS_PER_SECOND = 10;

async function testCalls({ plan, other, traffic }: Scene): Promise<Disturbance> {
  const webhooks: string[] = [];
  for (let number = 0; number < HANGING; number++) {
    webhooks.push((await subscribe(other, `${traffic.receivers.origin}/hang/${number}`)).id);
  }
  const callTest = (number: number) =>
    request(other, projectPath(other, `webhooks/${webhooks[number % HANGING]}/test`), { event: "deploy.started" });
  return flood(plan, TESTS_PER_SECOND, callTest, [202, 429], () => {
    if (traffic.journal.others === 0) throw new Error("No request arrived at the receivers that hang.");
  });
}

/** The rate that the firewall of a stage allows: 3,000 requests a minute of one credential. */
const FIREWALL_PER_SECOND = 50;

/** The local run has no firewall, so the flood has the rate that a stage would allow. */
const oneKeyFloods: Case = async ({ plan, other }) => {
  const created = await request(other, "/v1/api-keys", { name: "flood" });
  const { key }: { key: string } = ((await created.json()) as { data: { key: string } }).data;
  const withKey = { ...other, token: key };
  return flood({ ...plan, floodMs: 0 }, FIREWALL_PER_SECOND, () => request(withKey, "/v1/projects"), [200, 429]);
};

const MAX_FLOOD_IN_FLIGHT = 50;
/** Used as the status of a request without a response: the connection or the response took too long. */
const UNANSWERED = 0;

/** Repeats a request as fast as the service answers, and then at a constant rate until the end of the measurement. */
function flood(
  { floodMs }: Plan,
  perSecond: number,
  send: (number: number) => Promise<Response>,
  expected: number[],
  check = () => {},
): Disturbance {
  const statuses: Record<string, number> = {};
  let inFlight = 0;
  const call = async (number: number): Promise<void> => {
    // A service that does not keep up gets no more at once.
    if (inFlight >= MAX_FLOOD_IN_FLIGHT) return;
    inFlight += 1;
    const status = await send(number)
      .then(({ status, body }) => body?.cancel().then(() => status) ?? status)
      .catch(() => UNANSWERED)
      .finally(() => inFlight--);
    if (status !== UNANSWERED && !expected.includes(status)) throw new Error(`A request of the flood got ${status}.`);
    statuses[status] = (statuses[status] ?? 0) + 1;
  };
  const calling = repeated(perSecond, call);
  return {
    async begin() {
      const endsAt = Date.now() + floodMs;
      const caller = async (first: number) => {
        for (let number = first; Date.now() < endsAt; number += PARALLEL_CALLS) await call(number);
      };
      await Promise.all(Array.from({ length: PARALLEL_CALLS }, (_, number) => caller(number)));
      calling.start();
    },
    async end() {
      await calling.stop();
      check();
      if (!statuses[expected[0] ?? 0]) throw new Error(`No request was accepted: ${JSON.stringify(statuses)}.`);
      return `${statuses[expected[0] ?? 0]} requests accepted, ${statuses[429] ?? 0} rejected with 429, ${statuses[UNANSWERED] ?? 0} not answered`;
    },
  };
}

/** The case that simulation.ts reproduces, and the webhooks of a case with slow receivers: one per event in two projects. */
export const HANGING_CASE = "10 % to receivers that hang";
export const HANGING_SHARE = 0.1;
export const HANGING_WEBHOOKS = 2 * eventNames.length;

export const cases: Record<string, Case> = {
  "5 % to receivers that take 14 s": slowReceivers(
    0.05,
    ({ slowMs }) => `/after/${slowMs}`,
    ({ slowMs }) => slowMs,
  ),
  [HANGING_CASE]: slowReceivers(
    HANGING_SHARE,
    () => "/hang",
    ({ leadMs }) => leadMs,
  ),
  "5 names that never resolve": namesThatNeverResolve,
  "dead webhook with a backlog": deadWebhook,
  "floods of tests to receivers that hang": testCalls,
  "one key sends 50 requests a second": oneKeyFloods,
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

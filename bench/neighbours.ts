import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { eventNames } from "../functions/deployments/deployment-event.ts";
import { type DnsServer, startDnsServer } from "../test/support/dns-server.ts";
import type { Endable } from "./child.ts";
import { deliveriesOf, projectPath, request, type Service, subscribe, withNewProject } from "./local-service.ts";
import { atRate, type Traffic } from "./traffic.ts";

/* The cases of isolation.ts: what another project does while the healthy traffic is measured. */

export const full = {
  /** Healthy events per second. */
  perSecond: 40,
  /** How often each of the two services gets healthy events, and for how long each time. */
  turns: 3,
  turnSeconds: 4,
  /** Max wait for events that have not arrived when the measurement of a case is over. */
  maxWaitMs: 8_000,
  /** After how long the slow receivers respond. */
  slowMs: 14_000,
  /** Events of the project that publishes many at once. */
  burst: 5_000,
  /** Projects whose receivers hang. */
  hangingProjects: 200,
  /** The first seconds of a disturbance, which are measured by themselves. */
  onsetSeconds: 15,
  /** After how long without a success the circuit of the dead webhook is open. */
  circuitOpensAfterMs: 31_000,
  /** Events for the dead webhook. A slow machine publishes fewer. */
  backlog: 3_000,
};

export type Plan = typeof full;

/** What a case works with. */
export interface Scene {
  plan: Plan;
  /** The service, with the project that disturbs. */
  other: Service;
  traffic: Traffic;
  dns: DnsServer;
}

export interface Disturbance {
  begin(): void;
  /** Stops, and describes what was done. @throws Error if nothing was disturbed */
  end(): Promise<string>;
}

/** Prepares a disturbance. */
export type Case = (scene: Scene) => Promise<Disturbance>;

/**
 * Repeats a call at a constant rate.
 * @param done returns what was done, how often, and more about it
 */
function repeated(
  perSecond: number,
  call: (number: number) => Promise<unknown>,
  done: () => { count: number; what: string },
): Disturbance {
  const stopping = new AbortController();
  let running: Promise<void> | undefined;
  return {
    begin() {
      running = atRate({ perSecond, signal: stopping.signal }, call);
      // Reported by `end`.
      running.catch(() => {});
    },
    async end() {
      stopping.abort();
      await running;
      const { count, what } = done();
      if (count === 0) throw new Error(`The other project disturbed nothing: 0 ${what}.`);
      return `${count} ${what}`;
    },
  };
}

/**
 * Each event has one slow webhook of six, in two projects: messages of one event would share a batch.
 * @param share of all messages
 */
const slowReceivers =
  (share: number, pathOf: (plan: Plan) => string): Case =>
  async ({ plan, other, traffic }) => {
    const slow: { project: Service; event: (typeof eventNames)[number] }[] = [];
    for (const project of [other, await withNewProject(other)]) {
      for (const event of eventNames) {
        await subscribe(project, `${traffic.receivers.origin}${pathOf(plan)}/${slow.length}`, event);
        slow.push({ project, event });
      }
    }
    const publish = async (number: number) => {
      const { project, event } = slow[number % slow.length] ?? { project: other, event: eventNames[0] };
      await traffic.events.publish(project.projectId, [randomUUID()], event);
    };
    const done = () => ({ count: traffic.journal.others, what: "slow requests" });
    return repeated((plan.perSecond * share) / (1 - share), publish, done);
  };

const names = Array.from({ length: 5 }, (_, number) => `never-${number}.example.com`);
const EVENTS_PER_SECOND = 2;

/** Starts a DNS server that never responds to queries for these names. */
export async function startSilentDns(): Promise<DnsServer & Endable> {
  const dns = await startDnsServer(Object.fromEntries(names.map((name) => [name, { silent: true }])));
  return { ...dns, end: dns.close };
}

const namesThatNeverResolve: Case = async ({ other, traffic, dns }) => {
  for (const name of names) await subscribe(other, `https://${name}/`);
  const publish = () => traffic.events.publish(other.projectId, [randomUUID()]);
  const done = () => ({ count: dns.questions.length, what: "DNS queries without a response" });
  return repeated(EVENTS_PER_SECOND, publish, done);
};

/** Max time in which a backlog or a burst is published. */
const MAX_PUBLISH_MS = 15_000;
/** An origin without a listener. */
const DEAD = "http://127.0.0.1:1";

/** Publishes so many events of the other project, ten at a time. @param inParallel calls at the same time */
async function publishMany({ other, traffic }: Scene, count: number, inParallel = 1): Promise<void> {
  const endsAt = Date.now() + MAX_PUBLISH_MS;
  let left = count;
  const publish = async () => {
    while (left > 0 && Date.now() < endsAt) {
      left -= 10;
      await traffic.events.publish(
        other.projectId,
        Array.from({ length: 10 }, () => randomUUID()),
      );
    }
  };
  await Promise.all(Array.from({ length: inParallel }, publish));
}

/** Its circuit is open when the backlog is published. */
const deadWebhook: Case = async (scene) => {
  const { plan, other } = scene;
  const { id } = await subscribe(other, `${DEAD}/`);
  await publishMany(scene, 10);
  await sleep(plan.circuitOpensAfterMs);
  let publishing: Promise<void> | undefined;
  return {
    begin() {
      publishing = publishMany(scene, plan.backlog);
    },
    async end() {
      await publishing;
      const counts: Record<string, number> = {};
      for await (const { status } of deliveriesOf(other, id)) counts[status] = (counts[status] ?? 0) + 1;
      if (!counts.pending) throw new Error(`No delivery of the dead webhook is pending: ${JSON.stringify(counts)}.`);
      return `${counts.pending} deliveries pending`;
    },
  };
};

/** The receivers of the other project are healthy. */
const burst: Case = async (scene) => {
  const { plan, other, traffic } = scene;
  await subscribe(other, `${traffic.receivers.origin}/ok/burst`);
  let publishing: Promise<void> | undefined;
  return {
    begin() {
      publishing = publishMany(scene, plan.burst, 10);
    },
    async end() {
      await publishing;
      await traffic.journal.update();
      if (traffic.journal.others === 0) throw new Error("No event of the burst was sent.");
      return `${traffic.journal.others} events of ${plan.burst} sent`;
    },
  };
};

/** Each event goes to all webhooks of the other project. @param urlsOf the webhooks */
const everyWebhook =
  (perSecond: number, urlsOf: (scene: Scene) => string[]): Case =>
  async (scene) => {
    const { other, traffic } = scene;
    for (const url of urlsOf(scene)) await subscribe(other, url);
    let count = 0;
    const publish = async () => {
      await traffic.events.publish(other.projectId, [randomUUID()]);
      count += 1;
    };
    return repeated(perSecond, publish, () => ({ count, what: "events" }));
  };

/** So many webhooks of the receivers, with this path. */
const webhooksAt =
  (count: number, path: string) =>
  ({ traffic }: Scene): string[] =>
    Array.from({ length: count }, (_, number) => `${traffic.receivers.origin}${path}/${number}`);

/** Just below the time after which a webhook is slow. */
const NEARLY_SLOW_MS = 1_900;

const HANGING_EVENTS_PER_SECOND = 20;

const manyProjectsHang: Case = async ({ plan, other, traffic }) => {
  const projects: Service[] = [];
  while (projects.length < plan.hangingProjects) {
    const project = await withNewProject(other);
    await subscribe(project, `${traffic.receivers.origin}/hang/${projects.length}`);
    projects.push(project);
  }
  const publish = async (number: number) => {
    const { projectId } = projects[number % projects.length] ?? other;
    await traffic.events.publish(projectId, [randomUUID()]);
  };
  const done = () => ({ count: traffic.journal.others, what: "requests that hang" });
  return repeated(HANGING_EVENTS_PER_SECOND, publish, done);
};

/** Receivers that accept connections and do not speak TLS, and receivers that send one byte of a response a second. */
const noTlsAndDrip: Case = async (scene) => {
  const sockets = new Set<Socket>();
  const silent = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  }).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  const withoutTls = Array.from({ length: HANGING }, (_, number) => `https://127.0.0.1:${port}/${number}`);
  const { begin, end } = await everyWebhook(4, () => [...withoutTls, ...webhooksAt(HANGING, "/drip")(scene)])(scene);
  return {
    begin,
    end: async () => {
      for (const socket of sockets) socket.destroy();
      silent.close();
      return `${await end()}, ${sockets.size} connections without TLS`;
    },
  };
};

const HANGING = 5;
/** Twice what the throttle of the endpoint lets through. */
const TESTS_PER_SECOND = 10;

const testCalls: Case = async ({ other, traffic }) => {
  const webhooks: string[] = [];
  while (webhooks.length < HANGING)
    webhooks.push((await subscribe(other, `${traffic.receivers.origin}/hang/${webhooks.length}`)).id);
  const callTest = (number: number) =>
    request(other, projectPath(other, `webhooks/${webhooks[number % HANGING]}/test`), { event: "deploy.started" });
  return flood(TESTS_PER_SECOND, callTest, 202);
};

/** What the firewall of a stage lets through, which a local run does not have: 3,000 requests a minute of one credential. */
const FIREWALL_PER_SECOND = 50;

const oneKeyFloods: Case = async ({ other }) => {
  const created = await request(other, "/v1/api-keys", { name: "flood" });
  const { key }: { key: string } = ((await created.json()) as { data: { key: string } }).data;
  return flood(FIREWALL_PER_SECOND, () => request({ ...other, token: key }, "/v1/projects"), 200);
};

const MAX_FLOOD_IN_FLIGHT = 50;
/** Stands for a status: the connection or the response took too long. */
const UNANSWERED = 0;

/** Repeats a request. A service that does not keep up gets no more at once. */
function flood(perSecond: number, send: (number: number) => Promise<Response>, accepted: number): Disturbance {
  const statuses: Record<string, number> = {};
  let inFlight = 0;
  const call = async (number: number): Promise<void> => {
    if (inFlight >= MAX_FLOOD_IN_FLIGHT) return;
    inFlight += 1;
    const status = await send(number)
      .then(({ status, body }) => body?.cancel().then(() => status) ?? status)
      .catch(() => UNANSWERED)
      .finally(() => inFlight--);
    if (![UNANSWERED, accepted, 429].includes(status)) throw new Error(`A request of the flood got ${status}.`);
    statuses[status] = (statuses[status] ?? 0) + 1;
  };
  return repeated(perSecond, call, () => {
    const { [accepted]: count = 0, 429: rejected = 0, [UNANSWERED]: unanswered = 0 } = statuses;
    return { count, what: `requests accepted, ${rejected} rejected with 429, ${unanswered} not answered` };
  });
}

/** The case that simulation.ts reproduces, and the webhooks of a case with slow receivers: one per event in two projects. */
export const HANGING_CASE = "10 % to receivers that hang";
export const HANGING_SHARE = 0.1;
export const HANGING_WEBHOOKS = 2 * eventNames.length;

const after = ({ slowMs }: Plan) => `/after/${slowMs}`;
const hang = () => "/hang";

export const cases: Record<string, Case> = {
  "5 % to receivers that take 14 s": slowReceivers(0.05, after),
  [HANGING_CASE]: slowReceivers(HANGING_SHARE, hang),
  "5 names that never resolve": namesThatNeverResolve,
  "dead webhook with a backlog": deadWebhook,
  "floods of tests to receivers that hang": testCalls,
  "one key sends 50 requests a second": oneKeyFloods,
  "20 webhooks that take 1.9 s": everyWebhook(10, webhooksAt(20, `/after/${NEARLY_SLOW_MS}`)),
  "200 projects whose receivers hang": manyProjectsHang,
  "5,000 events at once": burst,
  "receivers that take 10 ms and 3 s in turns": everyWebhook(10, webhooksAt(10, "/alternate/3000")),
  "receivers without TLS, or one byte a second": noTlsAndDrip,
};

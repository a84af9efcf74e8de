import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { eventNames } from "../functions/foundation/manifest/events.ts";
import { type DnsServer, startDnsServer } from "../test/support/dns-server.ts";
import type { Endable } from "./child.ts";
import { deliveriesOf, request, type Service, subscribe, withNewProject } from "./local-service.ts";
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
  /** Events of the project that publishes many at once. */
  burst: 5_000,
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

const HANGING_SHARE = 0.1;

/** Each event has one webhook, of several in two projects: messages of one event would share a batch. */
const hangingReceivers: Case = async ({ plan, other, traffic }) => {
  const hanging: { project: Service; event: (typeof eventNames)[number] }[] = [];
  for (const project of [other, await withNewProject(other)]) {
    for (const event of eventNames) {
      await subscribe(project, `${traffic.receivers.origin}/hang/${hanging.length}`, event);
      hanging.push({ project, event });
    }
  }
  const publish = async (number: number) => {
    const { project, event } = hanging[number % hanging.length] ?? { project: other, event: eventNames[0] };
    await traffic.events.publish(project.projectId, [randomUUID()], event);
  };
  const done = () => ({ count: traffic.journal.others, what: "requests that hang" });
  return repeated((plan.perSecond * HANGING_SHARE) / (1 - HANGING_SHARE), publish, done);
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

/** Just below the time after which a webhook is slow. */
const NEARLY_SLOW_MS = 1_900;

/** Each of ten events a second goes to all webhooks, so that 380 requests are in flight. */
const nearlySlow: Case = async ({ other, traffic }) => {
  for (let number = 0; number < 20; number++)
    await subscribe(other, `${traffic.receivers.origin}/after/${NEARLY_SLOW_MS}/${number}`);
  let count = 0;
  const publish = async () => {
    await traffic.events.publish(other.projectId, [randomUUID()]);
    count += 1;
  };
  return repeated(10, publish, () => ({ count, what: "events" }));
};

/** What the firewall of a stage lets through, which a local run does not have: 3,000 requests a minute of one credential. */
const FIREWALL_PER_SECOND = 50;

const MAX_FLOOD_IN_FLIGHT = 50;

/** A service that does not keep up gets no more at once. */
const oneKeyFloods: Case = async ({ other }) => {
  const created = await request(other, "/v1/api-keys", { name: "flood" });
  const { key }: { key: string } = ((await created.json()) as { data: { key: string } }).data;
  const statuses: Record<string, number> = {};
  let inFlight = 0;
  const call = async (): Promise<void> => {
    if (inFlight >= MAX_FLOOD_IN_FLIGHT) return;
    inFlight += 1;
    const status = await request({ ...other, token: key }, "/v1/projects")
      .then(({ status, body }) => body?.cancel().then(() => status) ?? status)
      .catch(() => UNANSWERED)
      .finally(() => inFlight--);
    if (![UNANSWERED, 200, 429].includes(status)) throw new Error(`A request of the flood got ${status}.`);
    statuses[status] = (statuses[status] ?? 0) + 1;
  };
  return repeated(FIREWALL_PER_SECOND, call, () => {
    const { 200: count = 0, 429: rejected = 0, [UNANSWERED]: unanswered = 0 } = statuses;
    return { count, what: `requests accepted, ${rejected} rejected with 429, ${unanswered} not answered` };
  });
};

/** Stands for a status: the connection or the response took too long. */
const UNANSWERED = 0;

export const cases: Record<string, Case> = {
  "10 % to receivers that hang": hangingReceivers,
  "5 names that never resolve": namesThatNeverResolve,
  "dead webhook with a backlog": deadWebhook,
  "one key sends 50 requests a second": oneKeyFloods,
  "20 webhooks that take 1.9 s": nearlySlow,
  "5,000 events at once": burst,
};

import { createHash, randomBytes, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { demoUser } from "../bin/local/demo-user.ts";
import { withStarted } from "./child.ts";
import { type Bench, type Result, tableOf } from "./harness.ts";
import { freePorts, untilAccepted } from "./kills.ts";
import {
  callApi,
  deliveriesOf,
  newDataDir,
  removeDataDir,
  request,
  type Service,
  startService,
} from "./local-service.ts";
import { type Arrival, clock, startReceivers } from "./receivers.ts";
import { eventsQueueOf } from "./traffic.ts";

/*
 * Moves webhooks and keys in, and switches webhooks from shadow to live while events are published, imported keys are used, and the
 * whole service is killed with SIGKILL again and again. At the end, what was published is compared with what the receivers got and
 * with the log of deliveries.
 */

const full = {
  webhooks: 20_000,
  webhooksPerProject: 10,
  keys: 100_000,
  keysPerUser: 100,
  /** Projects whose webhooks are switched, and which get events. */
  activeProjects: 10,
  eventsPerSecond: 10,
  /** Loops that send one request after the other, each with another key. */
  keyUsers: 4,
  /** Shortest and longest time between a start and the next kill. */
  minUpMs: 500,
  maxUpMs: 3_000,
  /** How long events are published in shadow mode, during the switch, and afterwards. */
  phaseMs: 30_000,
  /** Max wait without progress after the last kill: a message that was in flight may be received again after six minutes. */
  maxQuietMs: 400_000,
};

export type Plan = typeof full;

export const bench: Bench = {
  name: "cutover",
  about: "what is lost, sent too early or rejected when a platform moves in while the service is killed",
  run: () => measureCutover(full),
};

/** Upper bound on the rows of a call, so that it ends in time on a slow machine too. */
const BATCH = 500;
const SETTINGS = { IMPORTED_KEYS: '[{"prefix":"acme_","hash":"sha256"}]' };

export interface ActiveWebhook {
  id: string;
  path: string;
  /** When the first request of the switch began, and when it was accepted; infinite until then. */
  switchBeganAt: number;
  liveAt: number;
  /** The deployments of its project, with the time at which they were published. */
  events: ReadonlyMap<string, number>;
}

export function measureCutover(plan: Plan): Promise<Result> {
  return withStarted(async (start) => {
    const dataDir = newDataDir();
    await start({ end: async () => removeDataDir(dataDir) });
    const settings = { ...(await freePorts()), ...SETTINGS };
    const receivers = await start(startReceivers());
    let service = await startService(settings, dataDir);
    await start({ end: () => service.end() });
    let kills = 0;
    const kill = async () => {
      kills += 1;
      await service.end();
      // On a busy machine a start may fail, because its engines respond too late.
      service = await untilAccepted(() => startService(settings, dataDir));
    };
    /** Invokes a function until the service has responded. */
    const invoke = (name: string, input: object) => untilAccepted(() => invokeOnce(service, name, input));

    const projectIds = Array.from({ length: plan.webhooks / plan.webhooksPerProject }, () => randomUUID());
    const active = projectIds.slice(0, plan.activeProjects).map((id) => ({ id, events: new Map<string, number>() }));
    const secrets: Record<string, string> = {};
    const rows = Array.from({ length: plan.webhooks }, (_, index) => {
      const path = `/ok/${index}`;
      const secret = `secret of ${randomUUID()}`;
      secrets[path] = secret;
      const project_id = projectIds[Math.floor(index / plan.webhooksPerProject)] ?? "";
      return { project_id, url: `${receivers.origin}${path}`, events: ["deploy.started"], secret, mode: "shadow" };
    });
    const keys = Array.from({ length: plan.keys }, () => `acme_${randomBytes(24).toString("hex")}`);
    const keyRows = keys.map((key, index) => {
      const user_id = `user-${Math.floor(index / plan.keysPerUser)}`;
      return { hash: createHash("sha256").update(key).digest("hex"), user_id, name: "ci", key_prefix: key.slice(0, 9) };
    });
    /** Imports all rows. The service is killed during the batch in the middle, which is repeated. */
    const importAll = async (name: string, field: string, all: object[]): Promise<number> => {
      const startedAt = clock();
      const batches = Array.from({ length: Math.ceil(all.length / BATCH) }, (_, number) =>
        all.slice(number * BATCH, (number + 1) * BATCH),
      );
      for (const [number, batch] of batches.entries()) {
        if (number === Math.floor(batches.length / 2)) {
          const interrupted = invokeOnce(service, name, { [field]: batch }).catch(() => undefined);
          await sleep(plan.minUpMs);
          await kill();
          await interrupted;
        }
        requireAll(await invoke(name, { [field]: batch }), batch.length);
        if (number === batches.length - 1) requireAll(await invoke(name, { [field]: batch }), 0, batch.length);
      }
      return (clock() - startedAt) / 1000;
    };
    const webhookSeconds = await importAll("webhooks-import", "webhooks", rows);
    const keySeconds = await importAll("api-keys-import", "keys", keyRows);

    const webhooks: ActiveWebhook[] = [];
    for (const { id: project_id, events } of active) {
      const membership = { user_id: demoUser.userId, project_id, name: "Shop", role: "admin" };
      await invoke("projects-upsert-member", membership);
      const listed = await untilAccepted(() => callApi(service, `/v1/projects/${project_id}/webhooks`));
      for (const { id, url } of ((await listed.json()) as { data: { id: string; url: string }[] }).data) {
        const path = new URL(url).pathname;
        webhooks.push({ id, path, events, switchBeganAt: Number.POSITIVE_INFINITY, liveAt: Number.POSITIVE_INFINITY });
      }
    }
    const projectOf = (webhook: ActiveWebhook) => active.find(({ events }) => events === webhook.events)?.id ?? "";
    const logs = new Map<string, Record<string, string>>();
    /** Reads the log of deliveries of each webhook. @returns the statuses */
    const readLogs = async (): Promise<string[]> => {
      for (const webhook of webhooks) {
        const logOfWebhook = () => logOf({ ...service, projectId: projectOf(webhook) }, webhook);
        logs.set(webhook.id, await untilAccepted(logOfWebhook));
      }
      return [...logs.values()].flatMap(Object.values);
    };

    await receivers.take(secrets);
    const stopping = new AbortController();
    const { signal } = stopping;
    const publishing = publish(plan, () => service, active, signal);
    const used = { accepted: 0, rejected: 0 };
    const using = Array.from({ length: plan.keyUsers }, () => useKeys(() => service, keys, used, signal));
    const killing = killRepeatedly(plan, kill, signal);
    await sleep(plan.phaseMs);
    // On a busy machine the service may have been killed before it delivered anything.
    while (!(await readLogs()).includes("shadowed")) await sleep(200);
    for (const webhook of webhooks) {
      webhook.switchBeganAt = clock();
      const path = `/v1/projects/${projectOf(webhook)}/webhooks/${webhook.id}`;
      await untilAccepted(() => callApi(service, path, { mode: "live" }, "PATCH"));
      webhook.liveAt = clock();
      await sleep(plan.phaseMs / webhooks.length);
    }
    await sleep(plan.phaseMs);
    stopping.abort();
    await Promise.all([publishing, killing, ...using]);

    const expected = webhooks.reduce((sum, { events }) => sum + events.size, 0);
    let done = -1;
    for (let quietSince = clock(); done < expected && clock() - quietSince < plan.maxQuietMs; await sleep(2_000)) {
      const doneNow = (await readLogs()).filter((status) => status !== "pending").length;
      if (doneNow > done) [done, quietSince] = [doneNow, clock()];
    }
    const { arrivals, invalid } = await receivers.take(secrets);
    if (invalid.length > 0) throw new Error(`A signature is not valid: ${invalid[0]}`);
    const ledger = balance(webhooks, arrivals, logs);
    return resultOf(plan, { ...ledger, ...used, kills, webhookSeconds, keySeconds });
  });
}

interface ImportResult {
  imported: number;
  unchanged: number;
  refused: object[];
}

async function invokeOnce(service: Service, name: string, input: object): Promise<ImportResult> {
  const response = await callApi(service, `/2015-03-31/functions/${name}/invocations`, input);
  if (response.headers.has("x-amz-function-error")) throw new Error(`${name} failed: ${await response.text()}`);
  return (await response.json()) as ImportResult;
}

/** @throws Error unless all rows are known, and at most `imported` of them are new */
function requireAll(result: ImportResult, imported: number, unchanged = 0): void {
  const { refused } = result;
  const isAll = result.imported + result.unchanged === imported + unchanged && result.unchanged >= unchanged;
  if (!isAll || refused.length > 0)
    throw new Error(`An import is not complete: ${JSON.stringify(result).slice(0, 500)}`);
}

/** Publishes events of random projects until the end, each until the queue has accepted it. */
async function publish(
  { eventsPerSecond }: Plan,
  service: () => Service,
  projects: { id: string; events: Map<string, number> }[],
  signal: AbortSignal,
): Promise<void> {
  const queue = eventsQueueOf(service());
  try {
    while (!signal.aborted) {
      const project = projects[Math.floor(Math.random() * projects.length)];
      if (!project) return;
      const deployment = randomUUID();
      const [at, timestamp] = [clock(), new Date().toISOString()];
      await untilAccepted(() => queue.publish(project.id, [deployment], "deploy.started", timestamp));
      project.events.set(deployment, at);
      await sleep(1_000 / eventsPerSecond);
    }
  } finally {
    await queue.end();
  }
}

/** Uses imported keys. A request that gets no response because the service was killed counts neither way. */
async function useKeys(
  service: () => Service,
  keys: readonly string[],
  used: { accepted: number; rejected: number },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const token = keys[Math.floor(Math.random() * keys.length)] ?? "";
    const response = await request({ ...service(), token }, "/v1/projects").catch(() => undefined);
    await response?.text().catch(() => "");
    if (response?.status === 200) used.accepted += 1;
    if (response?.status === 401 || response?.status === 403) used.rejected += 1;
    await sleep(20);
  }
}

async function killRepeatedly(
  { minUpMs, maxUpMs }: Plan,
  kill: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await sleep(minUpMs + Math.random() * (maxUpMs - minUpMs), undefined, { signal }).catch(() => undefined);
    if (!signal.aborted) await kill();
  }
}

/** Returns the status of each delivery of a webhook. */
async function logOf(service: Service, { id }: ActiveWebhook): Promise<Record<string, string>> {
  const log: Record<string, string> = {};
  for await (const delivery of deliveriesOf(service, id)) log[delivery.id] = delivery.status;
  return log;
}

interface Ledger {
  deliveries: number;
  sent: number;
  shadowed: number;
  /** Requests that repeated a delivery. */
  repeats: number;
  /** Deliveries that are neither sent nor shadowed, or were shadowed although their event is later than the switch. */
  lost: number;
  /** Requests before the switch of their webhook began. */
  early: number;
}

/** Compares what was published with what arrived, and with the log: the status of each delivery by webhook. */
export function balance(
  webhooks: readonly ActiveWebhook[],
  arrivals: readonly Pick<Arrival, "at" | "path" | "id" | "event">[],
  logs: ReadonlyMap<string, Record<string, string>>,
): Ledger {
  const ledger: Ledger = { deliveries: 0, sent: 0, shadowed: 0, repeats: 0, lost: 0, early: 0 };
  const byPath = Map.groupBy(arrivals, ({ path }) => path);
  for (const { id, path, events, switchBeganAt, liveAt } of webhooks) {
    const arrived = byPath.get(path) ?? [];
    const deliveries = new Set(arrived.map((each) => each.id));
    const arrivedEvents = new Set(arrived.map(({ event }) => event));
    const statuses = Object.entries(logs.get(id) ?? {});
    const sent = statuses.filter(([delivery, status]) => status === "succeeded" && deliveries.has(delivery)).length;
    const shadowed = statuses.filter(([, status]) => status === "shadowed").length;
    const late = [...events].filter(([event, publishedAt]) => publishedAt > liveAt && !arrivedEvents.has(event));
    ledger.deliveries += events.size;
    ledger.sent += sent;
    ledger.shadowed += shadowed;
    ledger.repeats += arrived.length - deliveries.size;
    ledger.lost += Math.max(events.size - sent - shadowed, late.length);
    ledger.early += arrived.filter(({ at }) => at < switchBeganAt).length;
  }
  return ledger;
}

interface Measured extends Ledger {
  accepted: number;
  rejected: number;
  kills: number;
  webhookSeconds: number;
  keySeconds: number;
}

/** @throws Error when a delivery was lost or sent too early, when a key was rejected, or when nothing was tried */
export function resultOf({ webhooks, keys }: Pick<Plan, "webhooks" | "keys">, measured: Measured): Result {
  const { deliveries, sent, shadowed, repeats, lost, early, accepted, rejected, kills } = measured;
  const wrong = lost + early + rejected;
  if (wrong > 0 || sent === 0 || shadowed === 0 || accepted === 0 || kills === 0) {
    throw new Error(`The cutover is not as promised: ${JSON.stringify(measured)}.`);
  }
  const seconds = (value: number) => Number(value.toFixed(1));
  return {
    tables: [
      tableOf("imports, each with a kill in the middle", [
        { rows: "webhooks", count: webhooks, seconds: seconds(measured.webhookSeconds) },
        { rows: "keys", count: keys, seconds: seconds(measured.keySeconds) },
      ]),
      tableOf("a cutover while the service is killed", [
        { kills, deliveries, shadowed, sent, "repeated requests": repeats, lost, "sent in shadow mode": early },
      ]),
      tableOf("requests with imported keys", [{ accepted, rejected }]),
    ],
    targets: [
      {
        name: "lost, sent in shadow mode, or rejected",
        value: wrong,
        bound: 0,
        of: `of ${deliveries} deliveries and ${accepted} requests`,
      },
    ],
    notes: ["Responses that a kill cut off count neither way: their requests were sent again."],
  };
}

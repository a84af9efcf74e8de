import { randomBytes } from "node:crypto";
import { once } from "node:events";
import net from "node:net";
import { type Engine, startDynamo } from "../bin/local/engines.ts";
import { type Bench, interleave, median, type Result, ratios, spread, type Table } from "./harness.ts";
import { type Receivers, startReceivers } from "./receivers.ts";
import { isolation } from "./send/isolation.ts";
import { BODY, type Done, type Job, type Target } from "./send/way.ts";
import { startWorker, type Worker } from "./send/workers.ts";

/*
 * Measures the CPU time per delivery in the sending process, compared with other ways of sending the same bodies to the same
 * receivers, and how much slow receivers delay the others in the whole service.
 */

export interface Plan {
  rounds: number;
  /** Numbers of concurrent deliveries. */
  concurrencies: number[];
  /** Deliveries per round. */
  count: number;
  /** Whole attempts per round; one takes many times as long as a delivery. */
  attempts: number;
  /** Deliveries before the first round, until hot code is compiled. */
  warmUp: number;
  /** Deliveries per concurrent delivery in rounds with slow receivers. */
  slowShare: number;
  /** Events per round through the whole service. */
  events: number;
  /** Events through the whole service before each of its rounds. */
  warmUpEvents: number;
}

const full: Plan = {
  rounds: 3,
  concurrencies: [50, 200],
  count: 8_000,
  attempts: 150,
  warmUp: 20_000,
  slowShare: 4,
  events: 30,
  warmUpEvents: 10,
};

const HOSTS = 10;
const PATHS = 5;
const LEAD_SHARE = 5;
const CPU_BOUND = 0.3;
const ISOLATION_BOUND = 0.9;

export const bench: Bench = {
  name: "send",
  about: "CPU time per delivery, and the effect of slow receivers on the others",
  run: () => measureSend(full),
};

/** The files of the ways to send. */
const ways = { ours: "ours", "fetch + svix": "fetch-svix", "node:http": "node-http", "raw TCP": "raw-tcp" } as const;
const names = Object.keys(ways) as (keyof typeof ways)[];
const NAIVE = "fetch + svix";
/** The whole attempt, shown for comparison and not part of a ratio. */
const WITH_ROWS = "whole attempt";

/** Worker processes by the name of the way. */
type Workers = Record<string, Worker>;

/** The receivers of a round, and the share of deliveries that fail. */
interface Mix {
  name: string;
  targets: Target[];
  dead: number;
}

/** Results for one concurrency, by the name of the way. */
interface Row {
  concurrency: number;
  mix: Mix;
  dones: Record<string, Done[]>;
}

export async function measureSend(plan: Plan): Promise<Result> {
  const receivers = await startReceivers(HOSTS);
  const workers: Workers = {};
  let engine: Engine | undefined;
  try {
    engine = await startDynamo(undefined, () => {});
    for (const name of names) workers[name] = await startWorker(ways[name]);
    workers[WITH_ROWS] = await startWorker("with-rows", { AWS_ENDPOINT_URL_DYNAMODB: engine.endpoint });
    return await compare(plan, receivers, workers);
  } finally {
    await Promise.all(Object.values(workers).map((worker) => worker.end()));
    await Promise.all([receivers.end(), engine?.stop()]);
  }
}

async function compare(plan: Plan, receivers: Receivers, workers: Workers): Promise<Result> {
  const { rounds, concurrencies } = plan;
  const countFor = (name: string) => (name === WITH_ROWS ? plan.attempts : plan.count);
  /** Sends some deliveries before each round, because a sender that was idle has to reconnect. */
  const lead = (name: string, concurrency: number) => {
    const count = Math.ceil(countFor(name) / LEAD_SHARE);
    return counted(name, workers[name], receivers, healthy, { count, concurrency });
  };
  const healthy: Mix = { name: "all healthy", targets: targetsOf(receivers.origins, "ok"), dead: 0 };
  const { targets } = healthy;
  const dead: Mix = {
    name: "one host dead",
    targets: [...targets.slice(PATHS), ...(await deadTargets())],
    dead: 1 / HOSTS,
  };
  const slowOnes = targetsOf(receivers.origins.slice(0, 1), "slow");
  const slow: Mix = { name: "one host at 2 s", targets: [...targets.slice(PATHS), ...slowOnes], dead: 0 };

  for (const [name, worker] of Object.entries(workers)) await check(name, worker, receivers, healthy);
  await together(workers, receivers, healthy, { count: plan.warmUp, concurrency: 50 });
  const rows: Row[] = [];
  for (const concurrency of concurrencies) {
    for (const mix of [healthy, dead]) {
      const dones: Record<string, Done[]> = {};
      const timed = mix === healthy ? [...names, WITH_ROWS] : names;
      const variants = timed.map((name) => [
        name,
        async () => {
          await lead(name, concurrency);
          const done = await counted(name, workers[name], receivers, mix, { count: countFor(name), concurrency });
          dones[name] = [...(dones[name] ?? []), done];
          return cpuOf(done);
        },
      ]);
      await interleave(Object.fromEntries(variants), rounds);
      rows.push({ concurrency, mix, dones });
    }
    // With slow receivers the machine is idle, so all ways run at the same time.
    const dones: Record<string, Done[]> = {};
    for (let round = 0; round < rounds; round++) {
      const job = { count: concurrency * plan.slowShare, concurrency };
      for (const name of names) await lead(name, concurrency);
      const all = await together(workers, receivers, slow, job);
      for (const name of names) dones[name] = [...(dones[name] ?? []), all[name] as Done];
    }
    rows.push({ concurrency, mix: slow, dones });
  }
  const isolated = await isolation(rounds, plan.events, plan.warmUpEvents);

  const cpu = (row: Row, name: string) => (row.dones[name] ?? []).map(cpuOf);
  const speed = (row: Row, name: string) =>
    (row.dones[name] ?? []).map(({ accepted, wallMs }) => (accepted.length * 1000) / wallMs);
  const shown = [...names, WITH_ROWS];
  const cells = (row: Row, of: typeof cpu) => shown.map((name) => (row.dones[name] ? spread(of(row, name)) : "–"));
  const cpuTable: Table = {
    title: "CPU of the sending process, µs per delivery (user and system; median of the rounds and range)",
    columns: ["concurrent", "receivers", ...shown, `ours / ${NAIVE}`],
    rows: rows.map((row) => [
      row.concurrency,
      row.mix.name,
      ...cells(row, cpu),
      spread(ratios(cpu(row, "ours"), cpu(row, NAIVE))),
    ]),
  };
  const speedTable: Table = {
    title: "accepted deliveries per second, from one process",
    columns: ["concurrent", "receivers", ...shown],
    rows: rows.map((row) => [row.concurrency, row.mix.name, ...cells(row, speed)]),
  };
  const targetRows = rows.filter(({ mix }) => mix === healthy);
  return {
    tables: [cpuTable, speedTable, isolated.table],
    targets: [
      ...targetRows.map((row) => ({
        name: `send.cpu@${row.concurrency}`,
        value: median(ratios(cpu(row, "ours"), cpu(row, NAIVE))),
        bound: CPU_BOUND,
      })),
      { name: "send.isolation", value: isolated.ratio, bound: ISOLATION_BOUND, atLeast: true },
    ],
    notes: [
      `${HOSTS} hosts with ${PATHS} receivers each over loopback, without TLS; the body has ${BODY.length} bytes.`,
      `Ours signs twice, ${NAIVE} once. Only ours checks addresses and limits the response size.`,
      "The whole attempt adds a read of three items, a write and a log line: CPU time of the SDK, without the engine.",
    ],
    data: rows.map(({ concurrency, mix, dones }) => ({
      concurrency,
      receivers: mix.name,
      rounds: Object.fromEntries(Object.entries(dones).map(([name, all]) => [name, all.map(figuresOf)])),
    })),
  };
}

const countOf = ({ accepted, failed }: Done): number => accepted.length + failed.length;
const cpuOf = (done: Done): number => (done.cpuMs * 1000) / countOf(done);
const figuresOf = ({ cpuMs, wallMs, accepted, failed }: Done) => {
  return { cpuMs, wallMs, accepted: accepted.length, failed: failed.length };
};

/** Returns receivers that respond in this manner, each with its own path. */
function targetsOf(origins: string[], manner: "ok" | "slow"): Target[] {
  return origins.flatMap((origin, host) =>
    Array.from({ length: PATHS }, (_, path) => ({
      url: `${origin}/${manner}/${host * PATHS + path}`,
      secret: `whsec_${randomBytes(32).toString("hex")}`,
    })),
  );
}

/** Returns receivers on a port without a listener. */
async function deadTargets(): Promise<Target[]> {
  const server = net.createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as net.AddressInfo;
  server.close();
  await once(server, "close");
  return targetsOf([`http://127.0.0.1:${port}`], "ok");
}

const CHECKED = 200;

/** @throws Error unless the receivers got each delivery once, with valid signatures */
async function check(name: string, worker: Worker, receivers: Receivers, mix: Mix): Promise<void> {
  const secrets = Object.fromEntries(mix.targets.map(({ url, secret }) => [new URL(url).pathname, secret]));
  await receivers.take(secrets);
  const done = await worker.do({ targets: mix.targets, count: CHECKED, concurrency: 50 });
  const { arrivals, invalid, verified } = await receivers.take();
  if (invalid.length > 0) throw new Error(`${name}: ${invalid.length} signatures are not valid: ${invalid[0]}`);
  if (verified !== CHECKED) throw new Error(`${name}: ${verified} of ${CHECKED} deliveries were verified.`);
  reconcile(name, mix, CHECKED, [done], arrivals);
}

/** Runs one round and checks every delivery. */
async function counted(
  name: string,
  worker: Worker | undefined,
  receivers: Receivers,
  { targets, ...mix }: Mix,
  job: Omit<Job, "targets">,
): Promise<Done> {
  if (!worker) throw new Error(`There is no worker for ${name}.`);
  await receivers.take();
  const done = await worker.do({ ...job, targets });
  const { arrivals } = await receivers.take();
  reconcile(name, mix, job.count, [done], arrivals);
  return done;
}

/** Runs one round of all ways at the same time. */
async function together(
  workers: Workers,
  receivers: Receivers,
  { targets, ...mix }: Mix,
  job: Omit<Job, "targets">,
): Promise<Record<string, Done>> {
  await receivers.take();
  const dones = await Promise.all(
    names.map(async (name) => [name, await workers[name]?.do({ ...job, targets })] as const),
  );
  const { arrivals } = await receivers.take();
  reconcile(
    "all at once",
    mix,
    job.count * names.length,
    dones.flatMap(([, done]) => done ?? []),
    arrivals,
  );
  return Object.fromEntries(dones) as Record<string, Done>;
}

/**
 * Compares accepted deliveries with arrivals, each once; all others must have been sent to dead receivers.
 * @throws Error when they differ
 */
export function reconcile(
  name: string,
  mix: Omit<Mix, "targets">,
  count: number,
  dones: Pick<Done, "accepted" | "failed">[],
  arrivals: { id: string }[],
): void {
  const accepted = new Set(dones.flatMap((done) => done.accepted));
  const failed = dones.flatMap((done) => done.failed);
  const arrived = new Set(arrivals.map(({ id }) => id));
  const isSame =
    arrived.size === arrivals.length && arrived.size === accepted.size && [...arrived].every((id) => accepted.has(id));
  const isComplete = accepted.size + failed.length === count && failed.length === count * mix.dead;
  if (isSame && isComplete) return;
  const figures = `${count} sent, ${accepted.size} accepted, ${failed.length} failed, ${arrivals.length} arrived (${arrived.size} ids)`;
  throw new Error(`${name}, ${mix.name}: the ledger does not balance: ${figures}.`);
}

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import net from "node:net";
import { startDynamo } from "../bin/local/engines.ts";
import { type Bench, interleave, median, type Result, ratios, spread, type Table } from "./harness.ts";
import { type Receivers, startReceivers } from "./receivers.ts";
import { isolation } from "./send/isolation.ts";
import { BODY, type Done, type Job, type Target } from "./send/way.ts";
import { startWorker, type Worker } from "./send/workers.ts";

/*
 * What a delivery costs the process that sends it, against other ways of sending the same bodies to the same receivers; and
 * what slow receivers cost the others, through the whole service.
 */

export interface Plan {
  rounds: number;
  /** How many deliveries are in work at once. */
  concurrencies: number[];
  /** Deliveries of a round, and of whole attempts, which take many times as long. */
  count: number;
  attempts: number;
  /** Deliveries before the first round, until what runs often is compiled. */
  warmUp: number;
  /** Deliveries per one in work, in rounds with slow receivers, whose time is theirs. */
  slowShare: number;
  /** Events of a round through the whole service. */
  events: number;
}

const full: Plan = {
  rounds: 3,
  concurrencies: [50, 200],
  count: 8_000,
  attempts: 150,
  warmUp: 20_000,
  slowShare: 4,
  events: 30,
};

const HOSTS = 10;
const PATHS = 5;
const LEAD_SHARE = 5;
const CPU_BOUND = 0.3;
const ISOLATION_BOUND = 0.9;

export const bench: Bench = {
  name: "send",
  about: "CPU per delivery, and what slow receivers cost the others",
  run: () => measureSend(full),
};

/** The files of the ways of sending. */
const ways = { ours: "ours", "fetch + svix": "fetch-svix", "node:http": "node-http", "raw TCP": "raw-tcp" } as const;
const names = Object.keys(ways) as (keyof typeof ways)[];
const NAIVE = "fetch + svix";
/** The whole attempt. It stands beside the others and is in no ratio. */
const WITH_ROWS = "whole attempt";

/** By the name of a way. */
type Workers = Record<string, Worker>;

/** Whom a round sends to, and how many of the deliveries are lost on them. */
interface Mix {
  name: string;
  targets: Target[];
  dead: number;
}

/** What was measured with so many in work, by the name of a way. */
interface Row {
  concurrency: number;
  mix: Mix;
  dones: Record<string, Done[]>;
}

export async function measureSend(plan: Plan): Promise<Result> {
  const receivers = await startReceivers(HOSTS);
  const engine = await startDynamo(undefined, () => {});
  const workers: Workers = {};
  try {
    for (const name of names) workers[name] = await startWorker(ways[name]);
    workers[WITH_ROWS] = await startWorker("with-rows", { AWS_ENDPOINT_URL_DYNAMODB: engine.endpoint });
    return await compare(plan, receivers, workers);
  } finally {
    await Promise.all(Object.values(workers).map((worker) => worker.end()));
    await Promise.all([receivers.end(), engine.stop()]);
  }
}

async function compare(plan: Plan, receivers: Receivers, workers: Workers): Promise<Result> {
  const { rounds, concurrencies } = plan;
  const countFor = (name: string) => (name === WITH_ROWS ? plan.attempts : plan.count);
  /** Before each round: a sender that has just paused dials anew, which is not what it does all day. */
  const lead = (name: string, concurrency: number) => {
    const count = Math.ceil(countFor(name) / LEAD_SHARE);
    return counted(name, workers[name], receivers, healthy, { count, concurrency });
  };
  const healthy: Mix = { name: "all healthy", targets: targetsOf(receivers.origins, "ok"), dead: 0 };
  const { targets } = healthy;
  const dead: Mix = { name: "one host dead", targets: [...targets.slice(PATHS), ...(await nobody())], dead: 1 / HOSTS };
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
    // Slow receivers leave the machine idle: all ways wait for them at the same time.
    const dones: Record<string, Done[]> = {};
    for (let round = 0; round < rounds; round++) {
      const job = { count: concurrency * plan.slowShare, concurrency };
      for (const name of names) await lead(name, concurrency);
      const all = await together(workers, receivers, slow, job);
      for (const name of names) dones[name] = [...(dones[name] ?? []), all[name] as Done];
    }
    rows.push({ concurrency, mix: slow, dones });
  }
  const isolated = await isolation(rounds, plan.events);

  const cpu = (row: Row, name: string) => (row.dones[name] ?? []).map(cpuOf);
  const speed = (row: Row, name: string) =>
    (row.dones[name] ?? []).map(({ taken, wallMs }) => (taken.length * 1000) / wallMs);
  const shown = [...names, WITH_ROWS];
  const cells = (row: Row, of: typeof cpu) => shown.map((name) => (row.dones[name] ? spread(of(row, name)) : "–"));
  const cpuTable: Table = {
    title: "CPU of the sending process, µs per delivery (user and system; median of the rounds and range)",
    columns: ["in work", "receivers", ...shown, `ours / ${NAIVE}`],
    rows: rows.map((row) => [
      row.concurrency,
      row.mix.name,
      ...cells(row, cpu),
      spread(ratios(cpu(row, "ours"), cpu(row, NAIVE))),
    ]),
  };
  const speedTable: Table = {
    title: "taken by a receiver per second, from one process with so many in work",
    columns: ["in work", "receivers", ...shown],
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
      `Ours signs twice, ${NAIVE} once. Ours alone judges addresses and bounds what it reads.`,
      "The whole attempt adds a read of three items, a write and a line in the log: the SDK's CPU, without the engine's.",
    ],
    data: rows.map(({ concurrency, mix, dones }) => ({
      concurrency,
      receivers: mix.name,
      rounds: Object.fromEntries(Object.entries(dones).map(([name, all]) => [name, all.map(figuresOf)])),
    })),
  };
}

const countOf = ({ taken, refused }: Done): number => taken.length + refused.length;
const cpuOf = (done: Done): number => (done.cpuMs * 1000) / countOf(done);
const figuresOf = ({ cpuMs, wallMs, taken, refused }: Done) => {
  return { cpuMs, wallMs, taken: taken.length, refused: refused.length };
};

/** Receivers that answer in this manner, each with a path of its own. */
function targetsOf(origins: string[], manner: "ok" | "slow"): Target[] {
  return origins.flatMap((origin, host) =>
    Array.from({ length: PATHS }, (_, path) => ({
      url: `${origin}/${manner}/${host * PATHS + path}`,
      secret: `whsec_${randomBytes(32).toString("hex")}`,
    })),
  );
}

/** The receivers of a host whose port nobody listens on. */
async function nobody(): Promise<Target[]> {
  const server = net.createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as net.AddressInfo;
  server.close();
  await once(server, "close");
  return targetsOf([`http://127.0.0.1:${port}`], "ok");
}

const CHECKED = 200;

/** @throws Error unless the receivers have got each delivery once, with signatures that hold */
async function check(name: string, worker: Worker, receivers: Receivers, mix: Mix): Promise<void> {
  const secrets = Object.fromEntries(mix.targets.map(({ url, secret }) => [new URL(url).pathname, secret]));
  await receivers.take(secrets);
  const done = await worker.do({ targets: mix.targets, count: CHECKED, concurrency: 50 });
  const { arrivals, refused, verified } = await receivers.take();
  if (refused.length > 0) throw new Error(`${name}: ${refused.length} signatures do not hold: ${refused[0]}`);
  if (verified !== CHECKED) throw new Error(`${name}: ${verified} of ${CHECKED} deliveries were verified.`);
  reconcile(name, mix, CHECKED, [done], arrivals);
}

/** One round, with every delivery accounted for. */
async function counted(
  name: string,
  worker: Worker | undefined,
  receivers: Receivers,
  { targets, ...mix }: Mix,
  job: Omit<Job, "targets">,
): Promise<Done> {
  if (!worker) throw new Error(`Nobody sends with ${name}.`);
  await receivers.take();
  const done = await worker.do({ ...job, targets });
  const { arrivals } = await receivers.take();
  reconcile(name, mix, job.count, [done], arrivals);
  return done;
}

/** One round of all ways at once. */
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
 * What the sender says was taken is what has come, each once; the rest were for the dead.
 * @throws Error when it is not so
 */
export function reconcile(
  name: string,
  mix: Omit<Mix, "targets">,
  count: number,
  dones: Pick<Done, "taken" | "refused">[],
  arrivals: { id: string }[],
): void {
  const taken = new Set(dones.flatMap((done) => done.taken));
  const refused = dones.flatMap((done) => done.refused);
  const came = new Set(arrivals.map(({ id }) => id));
  const isSame = came.size === arrivals.length && came.size === taken.size && [...came].every((id) => taken.has(id));
  const isComplete = taken.size + refused.length === count && refused.length === count * mix.dead;
  if (isSame && isComplete) return;
  const figures = `${count} sent, ${taken.size} taken, ${refused.length} not, ${arrivals.length} arrived (${came.size} ids)`;
  throw new Error(`${name}, ${mix.name}: the ledger does not balance: ${figures}.`);
}

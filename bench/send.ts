import { randomBytes } from "node:crypto";
import { once } from "node:events";
import net from "node:net";
import { startDynamo } from "../bin/local/engines.ts";
import { withStarted } from "./child.ts";
import { type Bench, interleave, median, type Result, ratios, spread, type Table } from "./harness.ts";
import { type Receivers, startReceivers } from "./receivers.ts";
import { BODY, type Done, type Target } from "./send/way.ts";
import { startWorker, type Worker } from "./send/workers.ts";

/*
 * Measures the CPU time per delivery in the sending process, compared with other ways of sending the same bodies to the same
 * receivers. Every part is limited by time, so a slow machine sends less and does not take longer.
 */

export interface Plan {
  rounds: number;
  /** Numbers of concurrent deliveries. */
  concurrencies: number[];
  /** Time of a way in a round. */
  roundMs: number;
  /** Time before each round that is not counted: a sender that was idle has to reconnect. */
  leadMs: number;
  /** Time of a way before the first round, until hot code is compiled. */
  warmUpMs: number;
}

const full: Plan = { rounds: 3, concurrencies: [50, 200], roundMs: 1_000, leadMs: 150, warmUpMs: 2_000 };

const HOSTS = 10;
const PATHS = 5;
const CPU_BOUND = 0.3;
const WARM_UP_CONCURRENCY = 50;

export const bench: Bench = {
  name: "send",
  about: "CPU time per delivery, compared with other ways to send",
  run: () => measureSend(full),
};

const NAIVE = "fetch + svix";
/** The whole attempt, shown for comparison and not part of a ratio. */
const WITH_ROWS = "whole attempt";
/** The files of the ways to send. */
const ways: Record<string, string> = {
  ours: "ours",
  [NAIVE]: "fetch-svix",
  "node:http": "node-http",
  "raw TCP": "raw-tcp",
  [WITH_ROWS]: "with-rows",
};
const names = Object.keys(ways);

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
  return withStarted(async (start) => {
    const receivers = await start(startReceivers(HOSTS));
    const engine = await startDynamo(undefined, () => {});
    await start(Promise.resolve({ end: engine.stop }));
    const senders: Sender[] = [];
    for (const name of names) {
      const env = { AWS_ENDPOINT_URL_DYNAMODB: engine.endpoint };
      const worker = await start(during(`${name}, start`, () => startWorker(ways[name] ?? "", env)));
      senders.push({ name, worker, receivers });
    }
    return resultOf(await compare(plan, receivers.origins, senders));
  });
}

/** One way to send, and where it sends to. */
interface Sender {
  name: string;
  worker: Worker;
  receivers: Receivers;
}

async function compare(plan: Plan, origins: string[], senders: Sender[]): Promise<Row[]> {
  const targets = targetsOf(origins);
  const healthy: Mix = { name: "all healthy", targets, dead: 0 };
  const dead: Mix = {
    name: "one host dead",
    targets: [...targets.slice(PATHS), ...(await deadTargets())],
    dead: 1 / HOSTS,
  };
  const mixes = [
    { mix: healthy, timed: senders },
    { mix: dead, timed: senders.filter(({ name }) => name !== WITH_ROWS) },
  ];
  for (const sender of senders) await check(sender, healthy);
  for (const { mix, timed } of mixes) {
    for (const sender of timed) await send(sender, "warm-up", mix, WARM_UP_CONCURRENCY, plan.warmUpMs / mixes.length);
  }
  const rows: Row[] = [];
  for (const concurrency of plan.concurrencies) {
    for (const { mix, timed } of mixes) {
      const dones: Record<string, Done[]> = Object.fromEntries(timed.map(({ name }) => [name, []]));
      const variants = timed.map((sender) => [
        sender.name,
        async () => {
          await send(sender, `before a round of ${concurrency}`, healthy, concurrency, plan.leadMs);
          const done = await send(sender, `round of ${concurrency}`, mix, concurrency, plan.roundMs);
          dones[sender.name]?.push(done);
          return cpuOf(done);
        },
      ]);
      await interleave(Object.fromEntries(variants), plan.rounds);
      rows.push({ concurrency, mix, dones });
    }
  }
  return rows;
}

function resultOf(rows: Row[]): Result {
  const figures = (row: Row, name: string, of: (done: Done) => number) => (row.dones[name] ?? []).map(of);
  const cells = (row: Row, of: (done: Done) => number) =>
    names.map((name) => (row.dones[name] ? spread(figures(row, name, of)) : "–"));
  const shareOf = (row: Row) => ratios(figures(row, "ours", cpuOf), figures(row, NAIVE, cpuOf));
  const cpuTable: Table = {
    title: "CPU of the sending process, µs per delivery (user and system; median of the rounds and range)",
    columns: ["concurrent", "receivers", ...names, `ours / ${NAIVE}`],
    rows: rows.map((row) => [row.concurrency, row.mix.name, ...cells(row, cpuOf), spread(shareOf(row))]),
  };
  const speedTable: Table = {
    title: "accepted deliveries per second, from one process",
    columns: ["concurrent", "receivers", ...names],
    rows: rows.map((row) => [row.concurrency, row.mix.name, ...cells(row, acceptedPerSecond)]),
  };
  return {
    tables: [cpuTable, speedTable],
    targets: rows
      .filter(({ mix }) => mix.dead === 0)
      .map((row) => ({ name: `send.cpu@${row.concurrency}`, value: median(shareOf(row)), bound: CPU_BOUND })),
    notes: [
      `${HOSTS} hosts with ${PATHS} receivers each over loopback, without TLS; the body has ${BODY.length} bytes.`,
      `Ours signs twice, ${NAIVE} once. Only ours checks addresses and limits the response size.`,
      "The whole attempt adds a read of three items, a write and a log line: CPU time of the SDK, without the engine.",
    ],
    data: rows.map(({ concurrency, mix, dones }) => ({
      concurrency,
      receivers: mix.name,
      rounds: Object.fromEntries(Object.entries(dones).map(([name, all]) => [name, all.map(countsOf)])),
    })),
  };
}

const cpuOf = ({ cpuMs, sent }: Done): number => (cpuMs * 1000) / sent;
const acceptedPerSecond = ({ accepted, wallMs }: Done): number => (accepted.length * 1000) / wallMs;
const countsOf = ({ accepted, failed, ...figures }: Done) => ({
  ...figures,
  accepted: accepted.length,
  failed: failed.length,
});

/** Returns receivers that accept at once, each with its own path. */
function targetsOf(origins: string[]): Target[] {
  return origins.flatMap((origin, host) =>
    Array.from({ length: PATHS }, (_, path) => ({
      url: `${origin}/ok/${host * PATHS + path}`,
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
  return targetsOf([`http://127.0.0.1:${port}`]);
}

/** Names the part of the benchmark in the error of a part that fails. */
async function during<Result>(part: string, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    throw new Error(`${part}: ${(error as Error).message}`, { cause: error });
  }
}

/** Sends for some time and checks every delivery. */
function send(
  { name, worker, receivers }: Sender,
  phase: string,
  mix: Mix,
  concurrency: number,
  forMs: number,
): Promise<Done> {
  return during(`${name}, ${phase}, ${mix.name}`, async () => {
    await receivers.take();
    const done = await worker.do({ targets: mix.targets, concurrency, forMs });
    const { arrivals } = await receivers.take();
    reconcile(mix.dead, done, arrivals);
    return done;
  });
}

/** @throws Error unless the receivers got each delivery once, with valid signatures */
function check({ name, worker, receivers }: Sender, { targets, ...mix }: Mix): Promise<void> {
  return during(`${name}, check of signatures, ${mix.name}`, async () => {
    await receivers.take(Object.fromEntries(targets.map(({ url, secret }) => [new URL(url).pathname, secret])));
    const done = await worker.do({ targets, concurrency: WARM_UP_CONCURRENCY, forMs: 0 });
    const { arrivals, invalid, verified } = await receivers.take();
    if (invalid.length > 0) throw new Error(`${invalid.length} signatures are not valid: ${invalid[0]}`);
    if (verified !== done.sent) throw new Error(`${verified} of ${done.sent} deliveries were verified.`);
    reconcile(mix.dead, done, arrivals);
  });
}

/**
 * Compares accepted deliveries with arrivals, each once; all others must have been sent to dead receivers.
 * @param dead the share of deliveries to dead receivers
 * @throws Error when they differ
 */
export function reconcile(
  dead: number,
  { sent, accepted, failed }: Pick<Done, "sent" | "accepted" | "failed">,
  arrivals: { id: string }[],
): void {
  const expected = new Set(accepted);
  const arrived = new Set(arrivals.map(({ id }) => id));
  const isSame =
    arrived.size === arrivals.length && arrived.size === expected.size && [...arrived].every((id) => expected.has(id));
  const isComplete = accepted.length + failed.length === sent && failed.length === Math.round(sent * dead);
  if (isSame && isComplete) return;
  const figures = `${sent} sent, ${accepted.length} accepted, ${failed.length} failed, ${arrivals.length} arrived (${arrived.size} ids)`;
  throw new Error(`the ledger does not balance: ${figures}.`);
}

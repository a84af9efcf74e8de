import { randomUUID } from "node:crypto";
import type { Delivery, Done, Job, Way } from "./way.ts";

/*
 * The sending process, one per way, so that its CPU time is that of one way. The argument is the name of the file of the way in
 * this folder. Runs one job per message.
 */

/** Deliveries of a chunk, as a multiple of the concurrent ones. */
const CHUNK_SHARE = 2;

async function run(way: Way, { targets, concurrency, forMs }: Job): Promise<Done> {
  const total: Done = { sent: 0, cpuMs: 0, wallMs: 0, accepted: [], failed: [] };
  const rounds = Math.ceil((CHUNK_SHARE * concurrency) / targets.length);
  const endsAt = performance.now() + forMs;
  do {
    const chunk = Array.from({ length: rounds }, () => targets).flatMap((round) =>
      round.map((target): Delivery => ({ target, id: randomUUID() })),
    );
    await way.prepare?.(chunk);
    await send(way, chunk, concurrency, total);
  } while (performance.now() < endsAt);
  return total;
}

/** Sends the deliveries and adds to `total`. */
async function send(way: Way, deliveries: Delivery[], concurrency: number, total: Done): Promise<void> {
  const before = process.cpuUsage();
  const startedAt = performance.now();
  const queue = deliveries.values();
  const worker = async () => {
    for (const delivery of queue) ((await way.send(delivery)) ? total.accepted : total.failed).push(delivery.id);
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  const { user, system } = process.cpuUsage(before);
  total.sent += deliveries.length;
  total.cpuMs += (user + system) / 1000;
  total.wallMs += performance.now() - startedAt;
}

const [name] = process.argv.slice(2);
const { way }: { way: Way } = await import(`./${name}.ts`);
process.on("message", async (job: Job) => process.send?.(await run(way, job)));
process.on("disconnect", () => process.exit());
process.send?.("ready");

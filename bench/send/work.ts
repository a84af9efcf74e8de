import { randomUUID } from "node:crypto";
import type { Delivery, Done, Job, Way } from "./way.ts";

/*
 * The process that sends, one per way of sending, so that its CPU time is the bill of that way alone. Its argument names the
 * file beside this one that knows how. Does one job after the other, as it is told.
 */

async function run(way: Way, { targets, count, concurrency }: Job): Promise<Done> {
  const deliveries = Array.from({ length: count }, (_, number): Delivery => {
    const target = targets[number % targets.length];
    if (!target) throw new Error("There is nobody to send to.");
    return { target, id: randomUUID() };
  });
  await way.prepare?.(deliveries);
  const taken: string[] = [];
  const refused: string[] = [];
  const before = process.cpuUsage();
  const startedAt = performance.now();
  const queue = deliveries.values();
  const worker = async () => {
    for (const delivery of queue) ((await way.send(delivery)) ? taken : refused).push(delivery.id);
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  const wallMs = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(before);
  return { cpuMs: (user + system) / 1000, wallMs, taken, refused };
}

const [name] = process.argv.slice(2);
const { way }: { way: Way } = await import(`./${name}.ts`);
process.on("message", async (job: Job) => process.send?.(await run(way, job)));
process.on("disconnect", () => process.exit());
process.send?.("ready");

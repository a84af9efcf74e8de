import { randomUUID } from "node:crypto";
import type { Delivery, Done, Job, Way } from "./way.ts";

/*
 * The sending process, one per way, so that its CPU time is that of one way. The argument is the name of the file of the way in
 * this folder. Runs one job per message.
 */

async function run(way: Way, { targets, count, concurrency }: Job): Promise<Done> {
  const deliveries = Array.from({ length: count }, (_, number): Delivery => {
    const target = targets[number % targets.length];
    if (!target) throw new Error("The job has no targets.");
    return { target, id: randomUUID() };
  });
  await way.prepare?.(deliveries);
  const accepted: string[] = [];
  const failed: string[] = [];
  const before = process.cpuUsage();
  const startedAt = performance.now();
  const queue = deliveries.values();
  const worker = async () => {
    for (const delivery of queue) ((await way.send(delivery)) ? accepted : failed).push(delivery.id);
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  const wallMs = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(before);
  return { cpuMs: (user + system) / 1000, wallMs, accepted, failed };
}

const [name] = process.argv.slice(2);
const { way }: { way: Way } = await import(`./${name}.ts`);
process.on("message", async (job: Job) => process.send?.(await run(way, job)));
process.on("disconnect", () => process.exit());
process.send?.("ready");

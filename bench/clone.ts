import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { withStarted } from "./child.ts";
import { type Bench, type Result, tableOf } from "./harness.ts";
import { startService, subscribe } from "./local-service.ts";
import { startReceivers } from "./receivers.ts";
import { eventsQueueOf, startJournal } from "./traffic.ts";

/*
 * Measures the time from `npm install` in a new clone of the last commit to the first verified delivery, as a person does who
 * follows the README: install, start, create a webhook, publish an event.
 */

const BOUND_SECONDS = 120;
const MAX_INSTALL_MS = 300_000;
const MAX_DELIVERY_MS = 30_000;

export const bench: Bench = {
  name: "clone",
  about: "npm install in a new clone → first verified delivery",
  run: measureClone,
};

const root = join(import.meta.dirname, "..");
const run = promisify(execFile);

/** Runs a command until it ends, or until the process that holds the other end of its standard input has ended. */
const TIED = 'exec 3<&0; "$@" & command=$!; (cat <&3; kill $command) >/dev/null 2>&1 & wait $command';

/** Returns no target when npm cannot install: without a network, and with a package that its cache does not have. */
export function measureClone(): Promise<Result> {
  return withStarted(async (start) => {
    const clone = mkdtempSync(join(tmpdir(), "bench-clone-"));
    await start({ end: async () => rmSync(clone, { recursive: true, force: true }) });
    await run("git", ["clone", "--quiet", root, clone]);
    const receivers = await start(startReceivers());
    const startedAt = performance.now();
    const seconds = () => (performance.now() - startedAt) / 1000;
    // The cache of npm is used, as on a machine of a person who has installed it once.
    const install = ["npm", "install", "--prefer-offline", "--no-audit", "--no-fund"];
    const failure = await run("sh", ["-c", TIED, "sh", ...install], { cwd: clone, timeout: MAX_INSTALL_MS }).then(
      () => undefined,
      (error: Error) => error.message,
    );
    if (failure !== undefined)
      return { tables: [], targets: [], notes: [`Not measured, npm could not install: ${failure}`] };
    const installed = seconds();
    const service = await start(startService({}, undefined, clone));
    const ready = seconds();
    const path = "/ok/clone";
    const { secret } = await subscribe(service, `${receivers.origin}${path}`);
    const journal = await startJournal(receivers, { [path]: secret });
    const queue = await start(eventsQueueOf(service));
    const event = randomUUID();
    await queue.publish(service.projectId, [event]);
    const { missing } = await journal.arrivalsOf([new Map([[event, 0]])], MAX_DELIVERY_MS);
    if (missing > 0) throw new Error("The event did not arrive.");
    const delivered = seconds();
    return {
      tables: [tableOf("seconds since npm install", [{ installed, ready, delivered }])],
      targets: [{ name: "seconds to the first verified delivery", value: delivered, bound: BOUND_SECONDS, unit: "s" }],
      notes: ["Packages come from the cache of npm, so the time of downloads is not in the figure."],
    };
  });
}

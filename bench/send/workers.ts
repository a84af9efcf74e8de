import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Done, Job } from "./way.ts";

export interface Worker {
  do(job: Job): Promise<Done>;
  end(): Promise<void>;
}

/** Upper bound for a job; a worker that exits is reported at once. */
const TIMEOUT_MS = 150_000;

/**
 * Starts the process of one way to send.
 * @param name of the file of the way
 */
export async function startWorker(name: string, env: Record<string, string> = {}): Promise<Worker> {
  const settings = {
    WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
  };
  const child = fork(join(import.meta.dirname, "work.ts"), [name], {
    execArgv: [],
    env: { ...process.env, ...settings, ...env },
    // Log lines are written and discarded.
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const ended = once(child, "exit");
  const nextMessage = async () => {
    const end = ended.then(([code]) => {
      throw new Error(`The process of ${name} exited with ${code}.`);
    });
    return (await Promise.race([once(child, "message", { signal: AbortSignal.timeout(TIMEOUT_MS) }), end]))[0];
  };
  await nextMessage();
  return {
    do(job) {
      child.send(job);
      return nextMessage();
    },
    async end() {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}

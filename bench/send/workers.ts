import { join } from "node:path";
import { startChild } from "../child.ts";
import type { Done, Job } from "./way.ts";

export interface Worker {
  do(job: Job): Promise<Done>;
  end(): Promise<void>;
}

/**
 * Starts the process of one way to send.
 * @param name of the file of the way
 */
export async function startWorker(name: string, env: Record<string, string> = {}): Promise<Worker> {
  const { request, end } = await startChild<"ready">(join(import.meta.dirname, "work.ts"), {
    args: [name],
    env: {
      WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
      AWS_REGION: "us-east-1",
      AWS_ACCESS_KEY_ID: "local",
      AWS_SECRET_ACCESS_KEY: "local",
      ...env,
    },
    // The way with rows writes log lines.
    isQuiet: true,
  });
  return { do: (job) => request({ ...job }), end };
}

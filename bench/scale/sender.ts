import type { SQSEvent } from "aws-lambda";
import { handler } from "../../functions/attempts/send.ts";
import { logSink } from "../../functions/platform/log.ts";

/*
 * The sender on its own, one batch at a time as an environment of Lambda has it. Its parent hands it batches and asks what it
 * holds in memory.
 */

export type ToSender = { batch: SQSEvent } | "measure";
export type FromSender = { attempts: number } | { heapMb: number; residentMb: number };

const MB = 1024 ** 2;
let attempts = 0;
logSink.write = (_, { message }) => {
  if (message === "attempt") attempts += 1;
};

const say = (answer: FromSender) => process.send?.(answer);

process.on("message", async (asked: ToSender) => {
  if (asked === "measure") {
    // Twice: what the first run finalises the second one frees.
    for (let run = 0; run < 2; run++) {
      globalThis.gc?.();
      await new Promise(setImmediate);
    }
    // Kilobytes at the most so far: https://nodejs.org/api/process.html#processresourceusage
    say({ heapMb: process.memoryUsage().heapUsed / MB, residentMb: process.resourceUsage().maxRSS / 1024 });
    return;
  }
  attempts = 0;
  const { batchItemFailures } = await handler(asked.batch);
  say({ attempts: attempts - batchItemFailures.length });
});

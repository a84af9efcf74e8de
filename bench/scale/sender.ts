import type { SQSEvent } from "aws-lambda";
import { handler } from "../../functions/attempts/send.ts";
import { logSink } from "../../functions/platform/log.ts";

/*
 * Runs the sender in its own process, one batch at a time as a Lambda environment does. The parent process sends batches and
 * requests memory measurements.
 */

export type ToSender = { batch: SQSEvent } | "measure";
export type FromSender = { attempts: number } | { heapMb: number; residentMb: number };

const MB = 1024 ** 2;
let attempts = 0;
logSink.write = (_, { message }) => {
  if (message === "attempt") attempts += 1;
};

const reply = (message: FromSender) => process.send?.(message);

process.on("message", async (message: ToSender) => {
  if (message === "measure") {
    // Twice: the second run frees what the first one finalized.
    for (let run = 0; run < 2; run++) {
      globalThis.gc?.();
      await new Promise(setImmediate);
    }
    // maxRSS is the maximum so far, in kilobytes: https://nodejs.org/api/process.html#processresourceusage
    reply({ heapMb: process.memoryUsage().heapUsed / MB, residentMb: process.resourceUsage().maxRSS / 1024 });
    return;
  }
  attempts = 0;
  const { batchItemFailures } = await handler(message.batch);
  reply({ attempts: attempts - batchItemFailures.length });
});
process.on("disconnect", () => process.exit());
process.send?.("ready");

import { randomUUID } from "node:crypto";
import { handler } from "../functions/attempts/send.ts";
import { logSink } from "../functions/platform/log.ts";
import type { Webhook } from "../functions/webhooks/webhook.ts";
import { sqsEvent } from "../test/support/deliveries.ts";
import { addWebhook, firstAttempt, newDelivery, prepare } from "./units.ts";

/*
 * Runs the sender in its own process, one batch at a time as a Lambda environment does. Each message from the parent process asks
 * for deliveries for some time, and then for the memory in use. The argument is the URL of the receiver.
 */

export interface Sent {
  deliveries: number;
  heapMb: number;
  residentMb: number;
}

const MB = 1024 ** 2;
const [receiverUrl = ""] = process.argv.slice(2);
await prepare();
let attempts = 0;
logSink.write = (_, { message }) => {
  if (message === "attempt") attempts += 1;
};
const webhooks: Webhook[] = [];
for (let count = 0; count < 20; count++) webhooks.push(await addWebhook(randomUUID(), receiverUrl));
const ten = [...Array(10).keys()];

async function sendBatch(first: number): Promise<void> {
  const batch = ten.map((index) => newDelivery(webhooks[(first + index) % webhooks.length] as Webhook));
  const { batchItemFailures } = await handler(sqsEvent(...batch.map(firstAttempt)));
  if (batchItemFailures.length > 0) throw new Error(`${batchItemFailures.length} of 10 deliveries failed.`);
}

process.on("message", async ({ forMs }: { forMs: number }) => {
  const endsAt = performance.now() + forMs;
  while (performance.now() < endsAt) await sendBatch(attempts);
  // Twice: the second run frees what the first one finalized.
  for (let run = 0; run < 2; run++) {
    globalThis.gc?.();
    await new Promise(setImmediate);
  }
  // maxRSS is the maximum so far, in kilobytes: https://nodejs.org/api/process.html#processresourceusage
  const residentMb = process.resourceUsage().maxRSS / 1024;
  const sent: Sent = { deliveries: attempts, heapMb: process.memoryUsage().heapUsed / MB, residentMb };
  process.send?.(sent);
});
process.on("disconnect", () => process.exit());
process.send?.("ready");

import { setTimeout as sleep } from "node:timers/promises";
import type { Client, Delivery, WebhookPlace } from "../../client/src/client.ts";
import { deliveryLine } from "./delivery-view.ts";
import { exitCodes } from "./exit-codes.ts";
import { jsonText, note, print } from "./terminal.ts";

const POLL_MS = 400;
/** A receiver has 15 seconds; the queue in front of the attempt has some too. */
const PATIENCE_MS = 30_000;

/**
 * Waits for the next attempt of a delivery and tells what came of it; exit code 1 unless it succeeded.
 * @param before the delivery as it was asked for
 */
export async function awaitOutcome(api: Client, place: WebhookPlace, before: Delivery, json?: boolean): Promise<void> {
  const giveUpAt = Date.now() + PATIENCE_MS;
  for (;;) {
    const delivery = await api.getDelivery(place, before.id);
    const isOver = delivery.attempt_count > before.attempt_count;
    if (isOver || Date.now() > giveUpAt) {
      print(json ? jsonText(delivery) : deliveryLine(delivery, delivery.attempts.at(-1)));
      if (!isOver)
        note(`No attempt was made within ${PATIENCE_MS / 1000} s. Look again: svc deliveries show ${before.id}`);
      if (delivery.status !== "succeeded") process.exitCode = exitCodes.failed;
      return;
    }
    await sleep(POLL_MS);
  }
}

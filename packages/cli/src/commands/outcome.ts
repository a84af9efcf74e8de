import { setTimeout as sleep } from "node:timers/promises";
import type { Client, Delivery, WebhookRef } from "../../../client/src/client.ts";
import { exitCodes } from "../terminal/exit-codes.ts";
import { jsonText, note, print } from "../terminal/terminal.ts";
import { deliveryLine } from "../views/delivery-view.ts";

const POLL_INTERVAL_MS = 400;
/** A receiver has 15 seconds to respond. The rest is for the queue in front of the attempt. */
const MAX_WAIT_MS = 30_000;

/**
 * Waits for the next attempt of a delivery and prints its outcome. Sets exit code 1 unless the delivery succeeded.
 * @param requested the delivery as the service returned it when the attempt was requested
 */
export async function awaitOutcome(
  api: Client,
  webhook: WebhookRef,
  requested: Delivery,
  json?: boolean,
): Promise<void> {
  const deadline = Date.now() + MAX_WAIT_MS;
  for (;;) {
    const delivery = await api.getDelivery(webhook, requested.id);
    const isAttempted = delivery.attempt_count > requested.attempt_count || delivery.status === "shadowed";
    if (isAttempted || Date.now() > deadline) {
      print(json ? jsonText(delivery) : deliveryLine(delivery, delivery.attempts.at(-1)));
      if (!isAttempted) {
        note(
          `No attempt within ${MAX_WAIT_MS / 1000} s. Show it later: svc deliveries show ${requested.id} --project ${webhook.projectId}`,
        );
      }
      if (delivery.status === "shadowed") note("Not sent: the webhook is in shadow mode.");
      if (delivery.status !== "succeeded") process.exitCode = exitCodes.failed;
      return;
    }
    await sleep(POLL_INTERVAL_MS);
  }
}

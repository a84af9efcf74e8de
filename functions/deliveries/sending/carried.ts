import { settings } from "../../foundation/platform/env.ts";
import { log } from "../../foundation/platform/log.ts";
import { addSeconds } from "../../foundation/platform/time.ts";
import { holdsDeliveries } from "../../webhooks/webhook/suspension.ts";
import { isHealthy } from "../intake/plan-delivery.ts";
import { enter, holdNew } from "../line/backlog.ts";
import type { Delivery } from "../line/delivery.ts";
import type { readsForRequests } from "../line/delivery-store.ts";
import { makeAttempt } from "./attempt.ts";
import { NewerStates, supersede } from "./newer-states.ts";
import { hasTimeToAttempt } from "./time-left.ts";

/**
 * Makes the first attempt of a delivery that its message carries: one write, with the outcome. Lets it wait in the backlog
 * when the webhook is no longer healthy, or a request may have been sent.
 * @param isRepeated the message was received before
 * @param remainingMs returns the time until Lambda stops the function
 * @param readForRequest reads the row, its webhook and the secrets
 */
export async function sendCarried(
  delivery: Delivery,
  isRepeated: boolean,
  remainingMs: () => number,
  readForRequest: ReturnType<typeof readsForRequests>,
): Promise<void> {
  const { project_id, webhook_id, id } = delivery;
  log.tag({ project_id, webhook_id, delivery_id: id, attempt: 1 });
  const { row, webhook, secrets } = await readForRequest(delivery);
  if (!webhook) return void log.info("delivery cancelled, its webhook is deleted", { delivery_id: id });
  const now = new Date();
  const isNow = !isRepeated && isHealthy(webhook, now) && hasTimeToAttempt(remainingMs);
  if (holdsDeliveries(webhook)) {
    if (!row) await holdNew(delivery);
    return;
  }
  if (isNow && (!row || isLeftToMessage(row, now))) {
    const basis = row ?? delivery;
    if (await supersede(basis, webhook, new NewerStates(project_id))) return;
    // What is newer may have taken long to read.
    if (hasTimeToAttempt(remainingMs)) return void (await makeAttempt(basis, webhook, secrets));
  }
  // Due since its event, so that it keeps its place before later ones.
  if (!row) await enter(webhook, [{ delivery, due: new Date(delivery.created_at) }]);
}

/**
 * Returns whether a row waits for this message: a duplicate of its event has inserted it, and half of its wait is left, in
 * which this attempt is recorded. Any other row is sent by its worker.
 */
const isLeftToMessage = ({ status, attempt_count, next_attempt_at = "" }: Delivery, now: Date): boolean =>
  status === "pending" && attempt_count === 0 && next_attempt_at >= addSeconds(now, settings.duplicateSeconds() / 2);

import { addSeconds } from "../../foundation/platform/time.ts";
import { checkCircuit, nextSendAt } from "../../webhooks/webhook/circuit-breaker.ts";
import { holdsDeliveries } from "../../webhooks/webhook/suspension.ts";
import type { Webhook } from "../../webhooks/webhook/webhook.ts";
import { type Delivery, isOnRequest } from "../line/delivery.ts";

/*
 * Why a delivery waits, and until when: derived from its row and its webhook when it is read. Nothing is written for it.
 */

export type WaitingFor = "schedule" | "recovery" | "busy" | "suspended";

/** A due attempt starts within this time, unless the receiver is slow or many deliveries wait for it. */
const USUAL_START_SECONDS = 5;

/** The fields of a row that it depends on. */
type WaitingDelivery = Pick<Delivery, "status" | "trigger" | "next_attempt_at">;

type WebhookState = Pick<Webhook, "disabled_at" | "suspended_at" | "failing_since" | "probe_at" | "slow_since">;

/** Returns whether a delivery is held. A suspension holds what a user has requested too. */
export const isHeldBy = (
  webhook: Pick<Webhook, "disabled_at" | "suspended_at">,
  delivery: Pick<Delivery, "trigger">,
): boolean => (isOnRequest(delivery) ? webhook.suspended_at !== undefined : holdsDeliveries(webhook));

export interface Wait {
  /** Null = it is being sent or about to be, or no attempt follows. */
  waiting_for: WaitingFor | null;
  /** When the next attempt is planned; null when none is. For `recovery` the time of the next probe, never in the past. */
  next_attempt_at: string | null;
}

/** Returns why a delivery waits, and when its next attempt is planned. */
export function waitOf(delivery: WaitingDelivery, webhook: WebhookState, now: Date): Wait {
  const { status, next_attempt_at = null } = delivery;
  if (status === "held") return { waiting_for: "suspended", next_attempt_at };
  if (status !== "pending") return { waiting_for: null, next_attempt_at };
  if (isHeldBy(webhook, delivery)) return { waiting_for: "suspended", next_attempt_at };
  if (checkCircuit(webhook, now).kind === "open" && !isOnRequest(delivery)) {
    return { waiting_for: "recovery", next_attempt_at: nextSendAt(webhook, now, now).toISOString() };
  }
  const isPlanned = next_attempt_at !== null && next_attempt_at > now.toISOString();
  if (isPlanned) return { waiting_for: "schedule", next_attempt_at };
  const isLate = next_attempt_at !== null && next_attempt_at < addSeconds(now, -USUAL_START_SECONDS);
  return { waiting_for: isLate || webhook.slow_since !== undefined ? "busy" : null, next_attempt_at };
}

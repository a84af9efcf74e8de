import { addSeconds } from "../../foundation/platform/time.ts";
import { CATCH_UP_SECONDS, checkCircuit, type WebhookHealth } from "../../webhooks/webhook/circuit-breaker.ts";
import type { Place } from "../line/backlog-store.ts";
import { type Delivery, isOnRequest } from "../line/delivery.ts";

/** Whether a delivery that waits is sent now, and why. */
export type Turn =
  /** Sent: a user waits for it, whatever its time and the state of the receiver. */
  | { kind: "asked" }
  /** Sent, unless another worker claims the probe: the circuit is open, and one delivery shows whether the receiver is back. */
  | { kind: "probe"; probeAt: Date; nextProbeAt: string }
  /** Sent: its time has come. */
  | { kind: "due" }
  /** Sent before its time, to catch up. */
  | { kind: "catch_up" }
  /** Not sent until it is due: a message may carry this first attempt, if a duplicate of the event has inserted the row. */
  | { kind: "carried" }
  /** Not sent, and nothing else is: the circuit is open, and no probe may be sent before `probeAt`. */
  | { kind: "between_probes"; probeAt: Date }
  /** Not sent in this visit: it is not due. */
  | { kind: "later" };

/**
 * Decides whether a delivery is sent now.
 * @param place where it waits
 * @param isCatchUp all that waits is sent at once
 */
export function turnOf(
  delivery: Delivery,
  place: Pick<Place, "due">,
  webhook: WebhookHealth,
  isCatchUp: boolean,
  now: Date,
): Turn {
  if (isOnRequest(delivery)) return { kind: "asked" };
  const isDue = new Date(place.due) <= now;
  const circuit = checkCircuit(webhook, now);
  if (circuit.kind === "open") {
    const { probeAt, nextProbeAt } = circuit;
    if (delivery.attempt_count === 0 && !isDue) return { kind: "carried" };
    return probeAt <= now || isCatchUp ? { kind: "probe", probeAt, nextProbeAt } : { kind: "between_probes", probeAt };
  }
  if (isDue) return { kind: "due" };
  return isCatchUp && mayCatchUp(delivery, now) ? { kind: "catch_up" } : { kind: "later" };
}

/**
 * Returns whether a delivery is sent early to catch up. Not the first attempt, which a message may carry; and one that the
 * receiver has rejected in such attempts, while it accepts others, only after twice the time each time.
 */
const mayCatchUp = ({ attempt_count, attempts = [], rejections = 0 }: Delivery, now: Date): boolean =>
  attempt_count > 0 &&
  (rejections === 0 || addSeconds(now, -CATCH_UP_SECONDS * 2 ** rejections) >= (attempts.at(-1)?.at ?? ""));

import type { MetricValues } from "../../foundation/platform/metrics.ts";
import type { Attempt, Delivery } from "../line/delivery.ts";

/** Facts about a recorded attempt that are not in the attempt itself. */
export interface AttemptEffects {
  /** This process recorded the attempt, and no other attempt was requested while it was in flight. */
  isDecisive: boolean;
  /** No further attempt follows. */
  isLast: boolean;
  /** The webhook was disabled because of this attempt. */
  hasDisabledWebhook: boolean;
}

/**
 * Returns the metrics of one attempt. Requests are counted when they are sent, so a request repeated after a crash
 * counts twice. Each delivery is counted once, by its decisive attempt.
 *
 * Latency starts when SQS received the event, by the clock of SQS. The event's own timestamp comes from the pipeline's
 * clock, and `created_at` leaves out the time that the event waited in our queue. Latency and first-attempt metrics
 * measure this service only. They leave out redeliveries, recoveries, test deliveries and first attempts that waited
 * for a receiver that was down or slow.
 * @param delivery the row before the attempt
 * @param settleSeconds how long the state waited for a newer one, as its webhook wants
 * @param road its message carried the delivery, or it waited in the line of its webhook
 */
export function attemptMetrics(
  delivery: Delivery,
  attempt: Attempt,
  road: "carried" | "line",
  { isDecisive = false, isLast = false, hasDisabledWebhook = false }: Partial<AttemptEffects> = {},
  settleSeconds = 0,
) {
  const isSuccess = attempt.error_code === undefined;
  const isScheduled = attempt.trigger === "schedule";
  const isFirst = isScheduled && attempt.number === 1 && road === "carried" && isDecisive;
  // After a redelivery or a recovery, the time since the event depends on when the user requested it.
  const countsForLatency = isScheduled && delivery.requested_at === undefined && isDecisive;
  const untilSentMs = Math.max(
    0,
    Date.parse(attempt.at) - Date.parse(delivery.event_received_at ?? delivery.created_at) - settleSeconds * 1000,
  );
  return {
    attempts: 1,
    firstAttemptSuccess: isFirst ? Number(isSuccess) : undefined,
    eventToFirstAttempt: isFirst ? untilSentMs : undefined,
    deliveryLatency: countsForLatency && isSuccess ? untilSentMs + attempt.duration_ms : undefined,
    retries: countIf(isScheduled && attempt.number > 1),
    exhausted: countIf(isDecisive && isLast && !isSuccess && !delivery.test),
    webhooksDisabled: countIf(hasDisabledWebhook),
    blockedAddresses: countIf(attempt.error_code === "address_blocked"),
  } satisfies MetricValues;
}

const countIf = (isTrue: boolean): 1 | undefined => (isTrue ? 1 : undefined);

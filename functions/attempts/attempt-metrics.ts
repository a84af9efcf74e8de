import type { Attempt, Delivery } from "../deliveries/delivery.ts";
import type { Measured } from "../platform/metrics.ts";

/** What came of an attempt beyond its own outcome. */
export interface AttemptEffects {
  /** The attempt decided about its delivery: it was recorded, by this process, and nobody has asked for another meanwhile. */
  isDecisive: boolean;
  /** No further attempt follows. */
  isOver: boolean;
  /** The webhook was disabled because of it. */
  hasDisabled: boolean;
}

/**
 * What an attempt counts for. Requests are counted as they are made: one that is repeated after a crash counts twice.
 * Deliveries are counted once, by the attempt that decided about them.
 *
 * Times begin with the event's arrival on our queue, by the clock of SQS: the event's own timestamp is by the pipeline's
 * clock, and the row's `created_at` leaves out how long the event waited for us. What would say more about the receiver, or
 * about the person who asked, than about us is left out of what is ours: samples, redeliveries and recoveries are no first
 * attempts, nor are those that have waited for a receiver that was down or busy.
 * @param delivery the row as it was before the attempt
 * @param hasWaitedForSlot the attempt has waited for a receiver that was busy
 */
export function attemptMetrics(delivery: Delivery, attempt: Attempt, hasWaitedForSlot: boolean, came: AttemptEffects) {
  const isSuccess = attempt.error_code === undefined;
  const isScheduled = attempt.trigger === "schedule";
  const isFirst =
    isScheduled && attempt.number === 1 && !hasWaitedForSlot && !wasPostponed(delivery) && came.isDecisive;
  // Since somebody asked for an attempt, the time that has passed is theirs.
  const isOurs = isScheduled && delivery.requested_at === undefined && came.isDecisive;
  const untilSentMs = Math.max(0, Date.parse(attempt.at) - Date.parse(delivery.arrived_at ?? delivery.created_at));
  return {
    attempts: 1,
    firstAttemptSuccess: isFirst ? Number(isSuccess) : undefined,
    eventToFirstAttempt: isFirst ? untilSentMs : undefined,
    deliveryLatency: isOurs && isSuccess ? untilSentMs + attempt.duration_ms : undefined,
    retries: when(isScheduled && attempt.number > 1),
    exhausted: when(came.isDecisive && came.isOver && !isSuccess && !delivery.test),
    webhooksDisabled: when(came.hasDisabled),
    blockedAddresses: when(attempt.error_code === "address_blocked"),
  } satisfies Measured;
}

/** A delivery's first attempt is planned for the moment it is made; only the breaker moves it. */
const wasPostponed = ({ next_attempt_at, created_at }: Delivery): boolean => next_attempt_at !== created_at;

const when = (isSo: boolean): 1 | undefined => (isSo ? 1 : undefined);

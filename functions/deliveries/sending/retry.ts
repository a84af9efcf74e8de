import type { DisabledReason } from "../../webhooks/webhook/webhook.ts";

/*
 * The retry policy: the decision after a failed attempt, as a pure function. Its schedule is in foundation/manifest/retry-schedule.ts.
 */

/** Share by which waits vary, so that deliveries that failed together do not retry together. */
const JITTER = 0.2;

/** Upper bound on `Retry-After`, so that a receiver cannot postpone a retry for days. */
const MAX_RETRY_AFTER_SECONDS = 12 * 3600;

export interface RetryPolicy {
  /** Waits between attempts, in seconds. An empty schedule means a single attempt. */
  schedule: readonly number[];
  /**
   * Seconds without a success after which a webhook is disabled, once a delivery fails for the second or the last time.
   */
  disableAfterSeconds: number;
}

export interface FailedAttempt {
  /** Number of the attempt, from 1. A redelivery or a recovery restarts the count. */
  attempt: number;
  /** Absent when no response arrived. */
  statusCode?: number | undefined;
  /** The receiver's `Retry-After`; absent when it sent none. */
  retryAfterSeconds?: number | undefined;
  /** Time of the webhook's first failure after its last success; absent when this is the first. */
  failingSince?: string | undefined;
  /** It was made before its time, as a probe or to catch up; absent = no. */
  isEarly?: boolean;
}

/** `as_planned`: the attempt was early, and the planned one follows. */
export type Decision =
  | { kind: "retry"; afterSeconds: number }
  | { kind: "as_planned" }
  | { kind: "give_up"; disable?: DisabledReason };

/**
 * Decides what follows a failed attempt.
 * @param random from 0 to 1: the jitter
 */
export function decide(failed: FailedAttempt, policy: RetryPolicy, now: Date, random: number): Decision {
  const { attempt, statusCode, retryAfterSeconds = 0, failingSince, isEarly = false } = failed;
  // 410 Gone (RFC 9110, section 15.5.11): the receiver is removed permanently.
  if (statusCode === 410) return { kind: "give_up", disable: "gone" };
  const scheduled = policy.schedule[attempt - 1];
  const failingSeconds = failingSince === undefined ? 0 : (now.getTime() - Date.parse(failingSince)) / 1000;
  // A single failed first attempt does not count as a failing receiver.
  const countsAsFailing = attempt > 1 || scheduled === undefined;
  if (countsAsFailing && failingSeconds >= policy.disableAfterSeconds) return { kind: "give_up", disable: "failing" };
  if (isEarly) return { kind: "as_planned" };
  if (scheduled === undefined) return { kind: "give_up" };
  const jittered = scheduled * (1 - JITTER + 2 * JITTER * random);
  return { kind: "retry", afterSeconds: Math.max(jittered, Math.min(retryAfterSeconds, MAX_RETRY_AFTER_SECONDS)) };
}

/**
 * Parses a `Retry-After` header (RFC 9110, section 10.2.3): seconds or a date.
 * @returns seconds from `now`, 0 for a date in the past; undefined when the header is absent or not valid
 */
export function readRetryAfter(value: string | undefined, now: Date): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value)) return Math.min(Number(value), Number.MAX_SAFE_INTEGER);
  const millis = Date.parse(dateIn(value, now) ?? "");
  return Number.isNaN(millis) ? undefined : Math.max(0, Math.ceil((millis - now.getTime()) / 1000));
}

/** Returns a date in one of the three forms of RFC 9110, section 5.6.7, as text that `Date.parse` reads. */
function dateIn(text: string, now: Date): string | undefined {
  const [, day, month, year, time] =
    /^[A-Z][a-z]+, (\d\d)[ -]([A-Z][a-z]{2})[ -](\d{2}|\d{4}) ([\d:]{8}) GMT$/.exec(text) ?? [];
  // A year of two digits that would be more than 50 years ahead is in the past.
  const century = Number(`20${year}`) > now.getUTCFullYear() + 50 ? 19 : 20;
  if (year !== undefined) return `${day} ${month} ${year.length === 2 ? `${century}${year}` : year} ${time} GMT`;
  const asctime = /^[A-Z][a-z]{2} ([A-Z][a-z]{2} [ \d]\d) ([\d:]{8}) (\d{4})$/.exec(text);
  return asctime ? `${asctime[1]} ${asctime[3]} ${asctime[2]} GMT` : undefined;
}

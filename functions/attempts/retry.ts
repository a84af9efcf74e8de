import type { DisabledReason } from "../webhooks/webhook.ts";

/*
 * When to try again, as data and one pure function.
 */

/** Waits after the first, second, … failed attempt, in seconds: 8 attempts over 27.6 hours. */
export const DEFAULT_SCHEDULE: readonly number[] = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000];

/** Waits vary by this share, so that deliveries that failed together do not come back together. */
const JITTER = 0.2;

/** A receiver may ask for more time, but cannot park a delivery for days. */
const MAX_RETRY_AFTER_SECONDS = 12 * 3600;

export interface Policy {
  schedule: readonly number[];
  /** A webhook that has had no success for this long is disabled when a second attempt fails, or the last. */
  disableAfterSeconds: number;
}

export interface Failure {
  /** Number of the attempt that failed, from 1; after a redelivery it counts anew. */
  attempt: number;
  /** Absent when no response came. */
  statusCode?: number | undefined;
  /** What the receiver asked for in `Retry-After`. */
  retryAfterSeconds?: number | undefined;
  /** Start of the webhook's unbroken run of failures; absent when this is the first. */
  failingSince?: string | undefined;
}

export type Decision = { kind: "retry"; afterSeconds: number } | { kind: "give_up"; disable?: DisabledReason };

/**
 * What follows a failed attempt.
 * @param random from 0 to 1
 */
export function decide(failure: Failure, policy: Policy, now: Date, random: number): Decision {
  const { attempt, statusCode, retryAfterSeconds = 0, failingSince } = failure;
  // 410 Gone (RFC 9110, section 15.5.11): the receiver says that it will not come back.
  if (statusCode === 410) return { kind: "give_up", disable: "gone" };
  const scheduled = policy.schedule[attempt - 1];
  const failingSeconds = failingSince === undefined ? 0 : (now.getTime() - Date.parse(failingSince)) / 1000;
  // A first attempt alone proves nothing: one bad moment a week is no failing receiver.
  const isProof = attempt > 1 || scheduled === undefined;
  if (isProof && failingSeconds >= policy.disableAfterSeconds) return { kind: "give_up", disable: "failing" };
  if (scheduled === undefined) return { kind: "give_up" };
  const jittered = scheduled * (1 - JITTER + 2 * JITTER * random);
  return { kind: "retry", afterSeconds: Math.max(jittered, Math.min(retryAfterSeconds, MAX_RETRY_AFTER_SECONDS)) };
}

/** Reads `Retry-After` (RFC 9110, section 10.2.3): seconds or a date. Undefined for what is neither. */
export function readRetryAfter(value: string | undefined, now: Date): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d{1,10}$/.test(value)) return Number(value);
  const millis = /^[A-Z][a-z]{2}, .* GMT$/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(millis) ? undefined : Math.max(0, Math.ceil((millis - now.getTime()) / 1000));
}

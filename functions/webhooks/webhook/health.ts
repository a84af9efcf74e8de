import type { FailureCode } from "../../foundation/events/failure-code.ts";
import { laterOf } from "../../foundation/platform/time.ts";
import { failureHint } from "../receiver/failure-hints.ts";
import { checkCircuit } from "./circuit-breaker.ts";
import { holdsDeliveries } from "./suspension.ts";

/*
 * The health of a webhook, derived when it is read: from the webhook's row and from a few attempts. Nothing is written
 * for it while all is well.
 */

export type HealthState = "new" | "healthy" | "slow" | "failing" | "probing" | "shadow" | "disabled";

export interface Health {
  state: HealthState;
  /** Since when it has this state; null for `new`, `healthy` and `shadow`. For `probing`, since when the webhook fails. */
  since: string | null;
  /** Time of the latest success among the attempts that were read; null = none among them. */
  last_success_at: string | null;
  /** Why the latest attempt failed; null for a webhook that is not failing. */
  last_error: { error_code: FailureCode; hint: string } | null;
  /** When the next probe is due, never in the past; null when no probe is planned. */
  next_probe_at: string | null;
}

/** A failed attempt, as far as it is kept to explain it: see `detail` in functions/webhooks/receiver/failure-hints.ts. */
export interface FailedAttempt {
  at: string;
  error_code: FailureCode;
  status_code?: number | undefined;
  detail?: string | undefined;
}

/** An attempt that was read. */
export interface ReadAttempt {
  at: string;
  /** Absent for a success. */
  error_code?: FailureCode | undefined;
  status_code?: number | undefined;
  detail?: string | undefined;
  /** It sent sample data. Its failure does not make the webhook fail; its success proves that the receiver works. */
  isTest: boolean;
}

/** The fields of a webhook's row that its health depends on. */
interface WebhookState {
  mode?: "shadow";
  disabled_at?: string;
  suspended_at?: string;
  failing_since?: string;
  probe_at?: string;
  slow_since?: string;
  secret_rotated_at?: string;
  /** The failure that began `failing_since`; absent when it is not known. */
  last_error?: FailedAttempt;
}

/** Rows read for the health of a webhook. */
export interface HealthReads {
  attempts: readonly ReadAttempt[];
  /** Whether `attempts` would have a success if there was one: false if an earlier delivery may have had it. */
  isComplete: boolean;
  /** Whether deliveries wait for the next probe. */
  hasWaiting: boolean;
}

/** Derives the health of a webhook. */
export function healthOf(webhook: WebhookState, { attempts, isComplete, hasWaiting }: HealthReads, now: Date): Health {
  const { state, since, next_probe_at } = stateOf(webhook, hasWaiting, now);
  const lastSuccess = latest(attempts.filter(({ error_code }) => error_code === undefined));
  return {
    state: state === "healthy" && isComplete && !lastSuccess ? "new" : state,
    since,
    last_success_at: lastSuccess?.at ?? null,
    last_error: lastErrorOf(webhook, attempts),
    next_probe_at,
  };
}

function stateOf(
  webhook: WebhookState,
  hasWaiting: boolean,
  now: Date,
): Pick<Health, "state" | "since" | "next_probe_at"> {
  const { disabled_at, suspended_at = null, failing_since, slow_since } = webhook;
  if (holdsDeliveries(webhook)) {
    return { state: "disabled", since: disabled_at ?? suspended_at, next_probe_at: null };
  }
  if (webhook.mode === "shadow") return { state: "shadow", since: null, next_probe_at: null };
  if (failing_since !== undefined) {
    const circuit = checkCircuit(webhook, now);
    const isProbing = circuit.kind === "open" && hasWaiting;
    if (!isProbing) return { state: "failing", since: failing_since, next_probe_at: null };
    return { state: "probing", since: failing_since, next_probe_at: laterOf(circuit.probeAt, now).toISOString() };
  }
  if (slow_since !== undefined) return { state: "slow", since: slow_since, next_probe_at: null };
  return { state: "healthy", since: null, next_probe_at: null };
}

function lastErrorOf({ failing_since, last_error, secret_rotated_at }: WebhookState, attempts: readonly ReadAttempt[]) {
  if (failing_since === undefined) return null;
  // Earlier failures belong to an outage that has ended.
  const failures = attempts.filter(({ at, isTest }) => at >= failing_since && !isTest);
  const last = latest<Omit<ReadAttempt, "isTest">>([
    ...(last_error ? [last_error] : []),
    ...failures.filter(isFailure),
  ]);
  if (last?.error_code === undefined) return null;
  return { error_code: last.error_code, hint: failureHint(last, secret_rotated_at) ?? "" };
}

const isFailure = ({ error_code }: ReadAttempt): boolean => error_code !== undefined;

/** Returns the latest of some attempts; undefined when there is none. */
function latest<Item extends { at: string }>(items: readonly Item[]): Item | undefined {
  return items.reduce<Item | undefined>(
    (last, item) => (last === undefined || item.at > last.at ? item : last),
    undefined,
  );
}

/*
 * Circuit breaker per webhook. While a receiver is down, one delivery at a time probes it. The others wait without
 * using up their attempts. The state consists of two timestamps in the webhook's row.
 */

export interface WebhookHealth {
  /** Time of the first failure after the last success; absent for a healthy webhook. */
  failing_since?: string;
  /** When the next probe may be sent; absent before the first probe. */
  probe_at?: string;
}

/** The circuit opens after this many seconds of failures. The retry schedule is enough for shorter outages. */
export const OPEN_AFTER_SECONDS = 30;

/**
 * Time between two probes, and time over which the other deliveries are spread after the next probe. Both are a share
 * of the outage so far, within bounds, so that a long outage costs few requests.
 */
const PROBE_INTERVAL = { share: 0.1, minSeconds: 30, maxSeconds: 300 };
const WAIT_SPREAD = { share: 0.5, minSeconds: 30, maxSeconds: 1_800 };

export type CircuitDecision =
  | { kind: "send" }
  /** Send if no other sender has claimed this probe, that is, moved `probe_at`. */
  | { kind: "probe"; nextProbeAt: string }
  | { kind: "wait"; afterSeconds: number };

/**
 * Decides whether a delivery may be sent now.
 * @param random from 0 to 1: spreads the waiting deliveries over time
 */
export function checkCircuit({ failing_since, probe_at }: WebhookHealth, now: Date, random: number): CircuitDecision {
  if (failing_since === undefined) return { kind: "send" };
  const failingSeconds = secondsBetween(failing_since, now);
  if (failingSeconds < OPEN_AFTER_SECONDS) return { kind: "send" };
  const untilProbe = probe_at === undefined ? 0 : -secondsBetween(probe_at, now);
  if (untilProbe > 0) {
    return { kind: "wait", afterSeconds: untilProbe + random * intervalSeconds(WAIT_SPREAD, failingSeconds) };
  }
  const nextProbe = now.getTime() + intervalSeconds(PROBE_INTERVAL, failingSeconds) * 1000;
  return { kind: "probe", nextProbeAt: new Date(nextProbe).toISOString() };
}

const intervalSeconds = ({ share, minSeconds, maxSeconds }: typeof PROBE_INTERVAL, failingSeconds: number): number =>
  Math.min(maxSeconds, Math.max(minSeconds, share * failingSeconds));

const secondsBetween = (from: string, to: Date): number => (to.getTime() - Date.parse(from)) / 1000;

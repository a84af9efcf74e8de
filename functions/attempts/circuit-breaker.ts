/*
 * A webhook that keeps failing is probed, not hammered: while its receiver is down, one delivery at a time tries whether it
 * is back, and the others wait without using up their attempts. The state is two times on the webhook's row.
 */

export interface Health {
  /** Time of the first failure after the last success; absent for a healthy webhook. */
  failing_since?: string;
  /** When the next probe may go out. */
  probe_at?: string;
}

/** So long every delivery goes out: a short outage is the retry schedule's business. */
export const OPEN_AFTER_SECONDS = 30;

/** Pauses grow with the outage, so that a long one costs little: a tenth of it between probes, half of it for the others. */
const PROBE_SECONDS = { share: 0.1, min: 30, max: 300 };
const WAIT_SECONDS = { share: 0.5, min: 30, max: 1_800 };

export type CircuitDecision =
  | { kind: "send" }
  /** Send, if nobody else has moved the time of the next probe to this meanwhile. */
  | { kind: "probe"; nextProbeAt: string }
  | { kind: "wait"; afterSeconds: number };

/**
 * Whether a delivery may go out now.
 * @param random from 0 to 1: those that wait do not come back together
 */
export function checkCircuit({ failing_since, probe_at }: Health, now: Date, random: number): CircuitDecision {
  if (failing_since === undefined) return { kind: "send" };
  const failingSeconds = secondsBetween(failing_since, now);
  if (failingSeconds < OPEN_AFTER_SECONDS) return { kind: "send" };
  const untilProbe = probe_at === undefined ? 0 : -secondsBetween(probe_at, now);
  if (untilProbe > 0) return { kind: "wait", afterSeconds: untilProbe + random * pause(WAIT_SECONDS, failingSeconds) };
  const nextProbe = now.getTime() + pause(PROBE_SECONDS, failingSeconds) * 1000;
  return { kind: "probe", nextProbeAt: new Date(nextProbe).toISOString() };
}

const pause = ({ share, min, max }: typeof PROBE_SECONDS, failingSeconds: number): number =>
  Math.min(max, Math.max(min, share * failingSeconds));

const secondsBetween = (from: string, to: Date): number => (to.getTime() - Date.parse(from)) / 1000;

import { laterOf } from "../../foundation/platform/time.ts";

/*
 * Circuit breaker per webhook. While a receiver is down, one delivery at a time probes it. The others wait and
 * do not use up their attempts. The state consists of two timestamps in the webhook's row.
 */

export interface WebhookHealth {
  /** Time of the first failure after the last success; absent for a healthy webhook. */
  failing_since?: string;
  /** When the next probe may be sent; absent before the first probe. */
  probe_at?: string;
}

/** The circuit opens after this many seconds of failures. The retry schedule is enough for shorter outages. */
export const OPEN_AFTER_SECONDS = 30;

/** Upper bound on the time between two probes: a receiver that is back gets what waited within minutes. */
export const MAX_PROBE_SECONDS = 300;

/**
 * Time between two probes: the minimum in the first ten minutes of an outage, then a share of the outage so far, so that a long
 * outage costs few requests.
 */
const PROBE_INTERVAL = { share: 0.1, minSeconds: 30, maxSeconds: MAX_PROBE_SECONDS, growsAfterSeconds: 600 };

/**
 * Least time between two catch-ups of a line. A delivery that its receiver never accepts, among others that it does, is
 * sent early no more often than that.
 */
export const CATCH_UP_SECONDS = 30;

export type Circuit =
  | { kind: "closed" }
  | {
      kind: "open";
      /** When the next probe may be sent; the past when one may be sent now. */
      probeAt: Date;
      /** When the probe after that may be sent, if one is sent now. */
      nextProbeAt: string;
    };

/** Decides whether deliveries to a webhook may be sent now. */
export function checkCircuit({ failing_since, probe_at }: WebhookHealth, now: Date): Circuit {
  if (failing_since === undefined) return { kind: "closed" };
  const failingSeconds = (now.getTime() - Date.parse(failing_since)) / 1000;
  if (failingSeconds < OPEN_AFTER_SECONDS) return { kind: "closed" };
  const { share, minSeconds, maxSeconds, growsAfterSeconds } = PROBE_INTERVAL;
  const interval = failingSeconds < growsAfterSeconds ? minSeconds : Math.min(maxSeconds, share * failingSeconds);
  return {
    kind: "open",
    probeAt: probe_at === undefined ? now : new Date(probe_at),
    nextProbeAt: new Date(now.getTime() + interval * 1000).toISOString(),
  };
}

/**
 * Returns when a delivery that waits for a webhook may be sent next.
 * @param due when its attempt is planned
 * @returns while the circuit is open, the time of the next probe, which may be earlier or later than `due`
 */
export function nextSendAt(webhook: WebhookHealth, due: Date, now: Date): Date {
  const { failing_since } = webhook;
  if (failing_since === undefined) return due;
  const circuit = checkCircuit(webhook, now);
  if (circuit.kind === "open") return laterOf(circuit.probeAt, now);
  const opensAt = new Date(Date.parse(failing_since) + OPEN_AFTER_SECONDS * 1000);
  return due < opensAt ? due : opensAt;
}

/** The fields that senders write while a receiver fails. */
export const failureState = [
  "failing_since",
  "failing_notified_at",
  "probe_at",
  "probed_id",
  "last_error",
  "change_id",
];

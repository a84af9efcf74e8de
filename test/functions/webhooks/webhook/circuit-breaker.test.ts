import fc from "fast-check";
import {
  type Circuit,
  checkCircuit,
  OPEN_AFTER_SECONDS,
} from "../../../../functions/webhooks/webhook/circuit-breaker.ts";

const now = new Date("2026-01-06T00:00:00.000Z");
const after = (seconds: number) => new Date(now.getTime() + seconds * 1000);
const iso = (seconds: number) => after(seconds).toISOString();
const checkAfter = (failingSeconds: number, probeInSeconds?: number) =>
  checkCircuit(
    { failing_since: iso(-failingSeconds), ...(probeInSeconds !== undefined && { probe_at: iso(probeInSeconds) }) },
    now,
  );

const closed: Circuit = { kind: "closed" };
const open = (probeInSeconds: number, nextInSeconds: number): Extract<Circuit, { kind: "open" }> => ({
  kind: "open",
  probeAt: after(probeInSeconds),
  nextProbeAt: iso(nextInSeconds),
});

test("the circuit of a healthy webhook is closed", () => {
  expect(checkCircuit({}, now)).toEqual(closed);
});

test("the circuit of a healthy webhook with a leftover probe time is closed", () => {
  expect(checkCircuit({ probe_at: iso(60) }, now)).toEqual(closed);
});

test("the circuit opens after 30 seconds", () => {
  expect(OPEN_AFTER_SECONDS).toBe(30);
});

test.each<[string, number, number | undefined, Circuit]>([
  ["for 0 seconds: closed", 0, undefined, closed],
  ["for a millisecond less than 30 seconds: closed", 29.999, undefined, closed],
  ["for a negative time, because another machine's clock is ahead: closed", -5, undefined, closed],
  [
    "for 10 seconds, and asked for a pause of another minute: open until then",
    10,
    60,
    { ...open(60, 30), isAsked: true },
  ],
  ["for 10 seconds, after the pause that it asked for: closed", 10, 0, closed],
  ["for 30 seconds, never probed: a probe may be sent now", 30, undefined, open(0, 30)],
  ["for 30 seconds, with the probe due now: a probe may be sent now", 30, 0, open(0, 30)],
  ["for 30 seconds, with the probe due a millisecond ago: since then", 30, -0.001, open(-0.001, 30)],
  ["for 30 seconds, with the probe due in a millisecond: not before", 30, 0.001, open(0.001, 30)],
  ["for 5 minutes: a probe every 30 seconds", 300, undefined, open(0, 30)],
  ["for 10 minutes: a probe every minute", 600, undefined, open(0, 60)],
  ["for 49 minutes: a probe every tenth of that time", 2_940, undefined, open(0, 294)],
  ["for 50 minutes: a probe every 5 minutes", 3_000, undefined, open(0, 300)],
  ["for days: a probe every 5 minutes", 400_000, 20, open(20, 300)],
])("a webhook that has failed %s", (_, failingSeconds, probeInSeconds, expected) => {
  expect(checkAfter(failingSeconds, probeInSeconds)).toEqual(expected);
});

test("for any times, the circuit is open after 30 seconds and until a pause is over, and probes are 30 to 300 seconds apart", () => {
  const seconds = fc.integer({ min: -1_000_000, max: 1_000_000_000 }).map((millis) => millis / 1000);
  fc.assert(
    fc.property(seconds, fc.option(seconds, { nil: undefined }), (failingSeconds, probeInSeconds) => {
      const circuit = checkAfter(failingSeconds, probeInSeconds);
      expect(circuit.kind === "closed").toBe(failingSeconds < 30 && (probeInSeconds ?? 0) <= 0);
      if (circuit.kind === "closed") return;
      const pause = (Date.parse(circuit.nextProbeAt) - now.getTime()) / 1000;
      expect(pause).toBeGreaterThanOrEqual(30);
      expect(pause).toBeLessThanOrEqual(300);
      expect(circuit.probeAt).toEqual(after(probeInSeconds ?? 0));
    }),
  );
});

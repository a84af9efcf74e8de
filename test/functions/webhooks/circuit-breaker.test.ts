import fc from "fast-check";
import { type CircuitDecision, checkCircuit, OPEN_AFTER_SECONDS } from "../../../functions/webhooks/circuit-breaker.ts";

const now = new Date("2026-01-06T00:00:00.000Z");
const after = (seconds: number) => new Date(now.getTime() + seconds * 1000).toISOString();
const ago = (seconds: number) => after(-seconds);
const checkAfter = (failingSeconds: number, probeInSeconds?: number, random = 0) => {
  const probe = probeInSeconds === undefined ? {} : { probe_at: after(probeInSeconds) };
  return checkCircuit({ failing_since: ago(failingSeconds), ...probe }, now, random);
};

const send: CircuitDecision = { kind: "send" };
const probe = (nextInSeconds: number): CircuitDecision => ({ kind: "probe", nextProbeAt: after(nextInSeconds) });
const wait = (afterSeconds: number): CircuitDecision => ({
  kind: "wait",
  afterSeconds: expect.closeTo(afterSeconds, 6),
});

test("a healthy webhook receives every delivery", () => {
  expect(checkCircuit({}, now, 0.5)).toEqual(send);
});

test("a healthy webhook with a leftover probe time receives every delivery", () => {
  expect(checkCircuit({ probe_at: after(60) }, now, 0.5)).toEqual(send);
});

test("the circuit opens after 30 seconds", () => {
  expect(OPEN_AFTER_SECONDS).toBe(30);
});

test.each<[string, number, number | undefined, CircuitDecision]>([
  ["for 0 seconds: send", 0, undefined, send],
  ["for a millisecond less than 30 seconds: send", 29.999, undefined, send],
  ["for a negative time, because another machine's clock is ahead: send", -5, undefined, send],
  ["for 30 seconds, never probed: probe", 30, undefined, probe(30)],
  ["for 30 seconds, with the probe due now: probe", 30, 0, probe(30)],
  ["for 30 seconds, with the probe due a millisecond ago: probe", 30, -0.001, probe(30)],
  ["for 30 seconds, with the probe due in a millisecond: wait", 30, 0.001, wait(0.001)],
  ["for 5 minutes: a probe every 30 seconds", 300, undefined, probe(30)],
  ["for 10 minutes: a probe every minute", 600, undefined, probe(60)],
  ["for 49 minutes: a probe every tenth of that time", 2_940, undefined, probe(294)],
  ["for 50 minutes: a probe every 5 minutes", 3_000, undefined, probe(300)],
  ["for days: a probe every 5 minutes", 400_000, undefined, probe(300)],
])("a webhook that has failed %s", (_, failingSeconds, probeInSeconds, expected) => {
  expect(checkAfter(failingSeconds, probeInSeconds)).toEqual(expected);
});

test.each([
  ["a minute: over 30 seconds", 60, 30],
  ["ten minutes: over 5 minutes", 600, 300],
  ["an hour: over 30 minutes", 3_600, 1_800],
  ["days: over 30 minutes", 400_000, 1_800],
])("waiting deliveries spread after the next probe when the webhook has failed for %s", (_, failingSeconds, spread) => {
  expect(checkAfter(failingSeconds, 20, 0)).toEqual(wait(20));
  expect(checkAfter(failingSeconds, 20, 0.5)).toEqual(wait(20 + spread / 2));
  expect(checkAfter(failingSeconds, 20, 1)).toEqual(wait(20 + spread));
});

test("for any times, waits end at most 30 minutes after the next probe, and probes are 30 to 300 seconds apart", () => {
  const seconds = fc.integer({ min: -1_000_000, max: 1_000_000_000 }).map((millis) => millis / 1000);
  fc.assert(
    fc.property(
      seconds,
      fc.option(seconds, { nil: undefined }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (...all) => {
        const [failingSeconds, probeInSeconds, random] = all;
        const decision = checkAfter(failingSeconds, probeInSeconds, random);
        expect(decision.kind === "send").toBe(failingSeconds < OPEN_AFTER_SECONDS);
        if (decision.kind === "probe") {
          const pause = (Date.parse(decision.nextProbeAt) - now.getTime()) / 1000;
          expect(pause).toBeGreaterThanOrEqual(30);
          expect(pause).toBeLessThanOrEqual(300);
        }
        if (decision.kind === "wait") {
          expect(decision.afterSeconds).toBeGreaterThan(0);
          expect(decision.afterSeconds).toBeLessThanOrEqual((probeInSeconds ?? 0) + 1_800.001);
        }
      },
    ),
  );
});

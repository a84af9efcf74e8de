import fc from "fast-check";
import { type CircuitDecision, checkCircuit, OPEN_AFTER_SECONDS } from "../../../functions/attempts/circuit-breaker.ts";

const now = new Date("2026-01-06T00:00:00.000Z");
const after = (seconds: number) => new Date(now.getTime() + seconds * 1000).toISOString();
const ago = (seconds: number) => after(-seconds);
const judgeAfter = (failingSeconds: number, probeInSeconds?: number, random = 0) => {
  const probe = probeInSeconds === undefined ? {} : { probe_at: after(probeInSeconds) };
  return checkCircuit({ failing_since: ago(failingSeconds), ...probe }, now, random);
};

const send: CircuitDecision = { kind: "send" };
const probe = (nextInSeconds: number): CircuitDecision => ({ kind: "probe", nextProbeAt: after(nextInSeconds) });
const wait = (afterSeconds: number): CircuitDecision => ({
  kind: "wait",
  afterSeconds: expect.closeTo(afterSeconds, 6),
});

test("a healthy webhook gets every delivery", () => {
  expect(checkCircuit({}, now, 0.5)).toEqual(send);
});

test("a healthy webhook with an old probe time gets every delivery", () => {
  expect(checkCircuit({ probe_at: after(60) }, now, 0.5)).toEqual(send);
});

test("a webhook is given 30 seconds", () => {
  expect(OPEN_AFTER_SECONDS).toBe(30);
});

test.each<[string, number, number | undefined, CircuitDecision]>([
  ["since now", 0, undefined, send],
  ["for a millisecond less than 30 seconds", 29.999, undefined, send],
  ["for less than 30 seconds, by the clock of a machine that runs ahead", -5, undefined, send],
  ["for 30 seconds, never probed", 30, undefined, probe(30)],
  ["for 30 seconds, with the probe due now", 30, 0, probe(30)],
  ["for 30 seconds, with the probe due a millisecond ago", 30, -0.001, probe(30)],
  ["for 30 seconds, with the probe due in a millisecond", 30, 0.001, wait(0.001)],
  ["for 5 minutes: a probe every 30 seconds", 300, undefined, probe(30)],
  ["for 10 minutes: a probe every minute", 600, undefined, probe(60)],
  ["for 49 minutes: a probe every tenth of that", 2_940, undefined, probe(294)],
  ["for 50 minutes: a probe every 5 minutes", 3_000, undefined, probe(300)],
  ["for days: a probe every 5 minutes still", 400_000, undefined, probe(300)],
])("a webhook that has failed %s", (_, failingSeconds, probeInSeconds, expected) => {
  expect(judgeAfter(failingSeconds, probeInSeconds)).toEqual(expected);
});

test.each([
  ["a minute: over half a minute", 60, 30],
  ["ten minutes: over five", 600, 300],
  ["an hour: over half an hour", 3_600, 1_800],
  ["days: over half an hour", 400_000, 1_800],
])("those that wait spread after the next probe when it has failed for %s", (_, failingSeconds, spread) => {
  expect(judgeAfter(failingSeconds, 20, 0)).toEqual(wait(20));
  expect(judgeAfter(failingSeconds, 20, 0.5)).toEqual(wait(20 + spread / 2));
  expect(judgeAfter(failingSeconds, 20, 1)).toEqual(wait(20 + spread));
});

test("whatever the times are: nobody waits beyond the next probe by more than half an hour, and probes move on", () => {
  const seconds = fc.integer({ min: -1_000_000, max: 1_000_000_000 }).map((millis) => millis / 1000);
  fc.assert(
    fc.property(
      seconds,
      fc.option(seconds, { nil: undefined }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (...all) => {
        const [failingSeconds, probeInSeconds, random] = all;
        const verdict = judgeAfter(failingSeconds, probeInSeconds, random);
        expect(verdict.kind === "send").toBe(failingSeconds < OPEN_AFTER_SECONDS);
        if (verdict.kind === "probe") {
          const pause = (Date.parse(verdict.nextProbeAt) - now.getTime()) / 1000;
          expect(pause).toBeGreaterThanOrEqual(30);
          expect(pause).toBeLessThanOrEqual(300);
        }
        if (verdict.kind === "wait") {
          expect(verdict.afterSeconds).toBeGreaterThan(0);
          expect(verdict.afterSeconds).toBeLessThanOrEqual((probeInSeconds ?? 0) + 1_800.001);
        }
      },
    ),
  );
});

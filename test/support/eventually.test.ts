import { eventually } from "./eventually.ts";

/* On a clock that only moves while `eventually` sleeps. */

const SECOND = 1_000;
let nowMs: number;
beforeEach(() => {
  nowMs = 0;
});
const clock = {
  nowMs: () => nowMs,
  async sleep(ms: number) {
    nowMs += ms;
  },
};

/** Returns a check that fails with a message until `passesAtMs`. */
const checkThat = (passesAtMs: number, messageOf: () => string) => () => {
  if (nowMs < passesAtMs) throw new Error(messageOf());
  return "passed";
};
const seconds = () => Math.round(nowMs / SECOND);

test("returns the result of the check when it passes", async () => {
  const check = checkThat(2 * SECOND, () => "not yet");
  expect([await eventually(check, clock), seconds()]).toEqual(["passed", 2]);
});

test("waits for minutes while the failure changes", async () => {
  const check = checkThat(300 * SECOND, () => `${Math.floor(nowMs / (50 * SECOND))} of 6`);
  expect([await eventually(check, clock), seconds()]).toEqual(["passed", 300]);
});

test("throws with the last failure when it has not changed for two minutes", async () => {
  const check = checkThat(600 * SECOND, () => (nowMs < 20 * SECOND ? "1 of 3" : "2 of 3"));
  const expected = "No progress for 120 s, after waiting for 140 s. Last failure:\n\n2 of 3";
  await expect(eventually(check, clock)).rejects.toThrow(expected);
  expect(seconds()).toBe(140);
});

test("pauses twice as long as a check takes, and at most 200 ms after a fast one", async () => {
  const startedAtMs: number[] = [];
  const check = (takesMs: number) => async () => {
    startedAtMs.push(nowMs);
    nowMs += takesMs;
    if (startedAtMs.length % 10 !== 0) throw new Error("not yet");
  };
  await eventually(check(1_000), clock);
  expect((startedAtMs[9] ?? 0) - (startedAtMs[8] ?? 0)).toBe(3_000);
  await eventually(check(0), clock);
  expect((startedAtMs[19] ?? 0) - (startedAtMs[18] ?? 0)).toBe(200);
});

import fc from "fast-check";
import { decide, type FailedAttempt, readRetryAfter } from "../../../../functions/deliveries/sending/retry.ts";
import { DEFAULT_SCHEDULE } from "../../../../functions/foundation/manifest/retry-schedule.ts";

const now = new Date("2026-01-06T00:00:00Z");
const MIDDLE = 0.5;
const daysAgo = (days: number) => new Date(now.getTime() - days * 24 * 3600_000).toISOString();
const decideFor = (failed: FailedAttempt, random = MIDDLE, schedule = DEFAULT_SCHEDULE) =>
  decide(failed, { schedule, disableAfterSeconds: 5 * 24 * 3600 }, now, random);

test("the default schedule is 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 10 h: eight attempts over 27.6 hours", () => {
  expect(DEFAULT_SCHEDULE).toEqual([5, 300, 1_800, 7_200, 18_000, 36_000, 36_000]);
});

describe("a failed attempt", () => {
  test.each([
    [1, 5],
    [2, 5 * 60],
    [3, 30 * 60],
    [4, 2 * 3600],
    [5, 5 * 3600],
    [6, 10 * 3600],
    [7, 10 * 3600],
  ])("number %i is retried after %i seconds ± 20 %%", (attempt, seconds) => {
    expect(decideFor({ attempt })).toEqual({ kind: "retry", afterSeconds: seconds });
    const [shortest, longest] = [decideFor({ attempt }, 0), decideFor({ attempt }, 1)];
    expect(shortest).toEqual({ kind: "retry", afterSeconds: expect.closeTo(seconds * 0.8, 3) });
    expect(longest).toEqual({ kind: "retry", afterSeconds: expect.closeTo(seconds * 1.2, 3) });
  });

  test.each([8, 9, 1000])("number %i is the last", (attempt) => {
    expect(decideFor({ attempt })).toEqual({ kind: "give_up" });
  });

  test("waits within 20 % of the schedule for any random value", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 7 }), fc.double({ min: 0, max: 1, noNaN: true }), (attempt, random) => {
        const decision = decideFor({ attempt }, random);
        const scheduled = DEFAULT_SCHEDULE[attempt - 1] ?? Number.NaN;
        const waits = decision.kind === "retry" ? decision.afterSeconds / scheduled : Number.NaN;
        expect(waits).toBeGreaterThanOrEqual(0.8 - 1e-9);
        expect(waits).toBeLessThanOrEqual(1.2 + 1e-9);
      }),
    );
  });

  test.each<[string, number, number[], ReturnType<typeof decide>]>([
    ["the first of a schedule of zeros is retried at once", 1, [0, 0], { kind: "retry", afterSeconds: 0 }],
    ["the last of a schedule of zeros is not retried", 3, [0, 0], { kind: "give_up" }],
    ["the only one of an empty schedule is not retried", 1, [], { kind: "give_up" }],
  ])("%s", (_, attempt, schedule, expected) => {
    expect(decideFor({ attempt }, MIDDLE, schedule)).toEqual(expected);
  });
});

describe("a status code", () => {
  test("other than 2xx and 410, or none, follows the whole schedule", () => {
    const all = [undefined, ...Array.from({ length: 500 }, (_, index) => 100 + index)];
    const failures = all.filter((code) => code === undefined || code < 200 || (code > 299 && code !== 410));
    const waits = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000];
    const expected = [...waits.map((afterSeconds) => ({ kind: "retry", afterSeconds })), { kind: "give_up" }];
    for (const statusCode of failures) {
      const decisions = [1, 2, 3, 4, 5, 6, 7, 8].map((attempt) => decideFor({ attempt, statusCode }));
      expect({ statusCode, decisions }).toEqual({ statusCode, decisions: expected });
    }
  });

  test.each([
    ["at the first attempt", { attempt: 1 }],
    ["at the last", { attempt: 8 }],
    ["with Retry-After", { attempt: 1, retryAfterSeconds: 60 }],
    ["after days of failures", { attempt: 1, failingSince: daysAgo(6) }],
  ])("of 410 gives up and disables the webhook as gone: %s", (_, failure) => {
    expect(decideFor({ ...failure, statusCode: 410 })).toEqual({ kind: "give_up", disable: "gone" });
  });
});

describe("a webhook without a success", () => {
  test.each<[string, FailedAttempt, ReturnType<typeof decide>]>([
    [
      "for 0 seconds, at a first attempt: a retry",
      { attempt: 1, failingSince: now.toISOString() },
      { kind: "retry", afterSeconds: 5 },
    ],
    [
      "for 5 days, at a first attempt: a retry, because one failure does not count as failing",
      { attempt: 1, failingSince: daysAgo(5) },
      { kind: "retry", afterSeconds: 5 },
    ],
    [
      "for 5 days, at a second attempt: disabled, because the circuit breaker may delay the other attempts",
      { attempt: 2, failingSince: daysAgo(5) },
      { kind: "give_up", disable: "failing" },
    ],
    [
      "for 4 days, at a second attempt: a retry",
      { attempt: 2, failingSince: daysAgo(4) },
      { kind: "retry", afterSeconds: 300 },
    ],
    [
      "for 50 days, at the last attempt: disabled",
      { attempt: 8, failingSince: daysAgo(50), statusCode: 500 },
      { kind: "give_up", disable: "failing" },
    ],
    [
      "for a millisecond less than 5 days, at the last attempt: not disabled",
      { attempt: 8, failingSince: new Date(now.getTime() - 432_000_000 + 1).toISOString() },
      { kind: "give_up" },
    ],
    [
      "for 5 days, at the last attempt: disabled",
      { attempt: 8, failingSince: daysAgo(5) },
      { kind: "give_up", disable: "failing" },
    ],
    ["for 4 days, at the last attempt: not disabled", { attempt: 8, failingSince: daysAgo(4) }, { kind: "give_up" }],
    ["for the first time, at the last attempt: not disabled", { attempt: 8 }, { kind: "give_up" }],
  ])("%s", (_, failure, expected) => {
    expect(decideFor(failure)).toEqual(expected);
  });
});

describe("Retry-After", () => {
  test.each([
    ["longer than the schedule is used", 1, 120, 120],
    ["shorter than the schedule is ignored", 2, 120, 300],
    ["of zero is ignored", 1, 0, 5],
    ["of twelve hours is used", 1, 12 * 3600, 12 * 3600],
    ["of a week is limited to twelve hours", 1, 7 * 24 * 3600, 12 * 3600],
  ])("%s", (_, attempt, retryAfterSeconds, afterSeconds) => {
    expect(decideFor({ attempt, statusCode: 429, retryAfterSeconds })).toEqual({ kind: "retry", afterSeconds });
  });

  test("does not add attempts to the schedule", () => {
    expect(decideFor({ attempt: 8, statusCode: 429, retryAfterSeconds: 60 })).toEqual({ kind: "give_up" });
  });

  test.each<[string | undefined, number | undefined]>([
    [undefined, undefined],
    ["", undefined],
    ["0", 0],
    ["120", 120],
    ["007", 7],
    ["9999999999", 9_999_999_999],
    ["99999999999", 99_999_999_999],
    ["9".repeat(400), Number.MAX_SAFE_INTEGER],
    ["Tuesday, 06-Jan-26 00:01:00 GMT", 60],
    ["Sunday, 06-Nov-94 08:49:37 GMT", 0],
    ["Tue Jan  6 00:01:00 2026", 60],
    ["Tue Jan 06 00:01:00 2026", 60],
    ["Tue Jan  6 00:01:00 2026 GMT", undefined],
    ["Tue, 06 Jan 2026 00:01:00 UTC", undefined],
    ["Tue, 06 Jan 2026 00:01:00 +0100", undefined],
    ["120, 240", undefined],
    ["-1", undefined],
    ["1.5", undefined],
    ["1e3", undefined],
    ["0x10", undefined],
    ["120 seconds", undefined],
    ["soon", undefined],
    ["Infinity", undefined],
    ["Tue, 06 Jan 2026 00:01:00 GMT", 60],
    ["Mon, 05 Jan 2026 23:59:00 GMT", 0],
    ["Tue, 99 Jan 2026 00:01:00 GMT", undefined],
    ["2026-01-06T00:01:00Z", undefined],
    ["2027", 2027],
  ])("%p is parsed as %p seconds", (value, seconds) => {
    expect(readRetryAfter(value, now)).toBe(seconds);
  });

  test("with a date is not earlier than the date, when now is within a second", () => {
    expect(readRetryAfter("Tue, 06 Jan 2026 00:01:00 GMT", new Date("2026-01-06T00:00:00.001Z"))).toBe(60);
  });
});

import fc from "fast-check";
import { DEFAULT_SCHEDULE, decide, type Failure, readRetryAfter } from "../../../functions/attempts/retry.ts";

const now = new Date("2026-01-06T00:00:00Z");
const MIDDLE = 0.5;
const daysAgo = (days: number) => new Date(now.getTime() - days * 24 * 3600_000).toISOString();
const decideFor = (failure: Failure, random = MIDDLE, schedule = DEFAULT_SCHEDULE) =>
  decide(failure, { schedule, disableAfterSeconds: 5 * 24 * 3600 }, now, random);

test("the default schedule makes eight attempts over 27.6 hours", () => {
  expect(DEFAULT_SCHEDULE).toHaveLength(7);
  const seconds = DEFAULT_SCHEDULE.reduce((sum, step) => sum + step, 0);
  expect((seconds / 3600).toFixed(1)).toBe("27.6");
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
  ])("number %i is followed by another after %i seconds, give or take a fifth", (attempt, seconds) => {
    expect(decideFor({ attempt })).toEqual({ kind: "retry", afterSeconds: seconds });
    const [shortest, longest] = [decideFor({ attempt }, 0), decideFor({ attempt }, 1)];
    expect(shortest).toEqual({ kind: "retry", afterSeconds: expect.closeTo(seconds * 0.8, 3) });
    expect(longest).toEqual({ kind: "retry", afterSeconds: expect.closeTo(seconds * 1.2, 3) });
  });

  test.each([8, 9, 1000])("number %i is the last", (attempt) => {
    expect(decideFor({ attempt })).toEqual({ kind: "give_up" });
  });

  test("always waits within a fifth of the schedule", () => {
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
    ["the first of a schedule of zeros", 1, [0, 0], { kind: "retry", afterSeconds: 0 }],
    ["the last of a schedule of zeros", 3, [0, 0], { kind: "give_up" }],
    ["the only one of an empty schedule", 1, [], { kind: "give_up" }],
  ])("%s", (_, attempt, schedule, expected) => {
    expect(decideFor({ attempt }, MIDDLE, schedule)).toEqual(expected);
  });
});

describe("a status", () => {
  test.each([undefined, 301, 400, 401, 404, 429, 500, 503])("of %s is tried again", (statusCode) => {
    expect(decideFor({ attempt: 1, statusCode })).toEqual({ kind: "retry", afterSeconds: 5 });
  });

  test.each([
    ["at the first attempt", { attempt: 1 }],
    ["at the last", { attempt: 8 }],
    ["that asks for more time", { attempt: 1, retryAfterSeconds: 60 }],
    ["after days of failures", { attempt: 1, failingSince: daysAgo(6) }],
  ])("of 410 ends the delivery and disables the webhook as gone: %s", (_, failure) => {
    expect(decideFor({ ...failure, statusCode: 410 })).toEqual({ kind: "give_up", disable: "gone" });
  });
});

describe("a webhook that fails", () => {
  test.each<[string, Failure, ReturnType<typeof decide>]>([
    ["since now", { attempt: 1, failingSince: now.toISOString() }, { kind: "retry", afterSeconds: 5 }],
    [
      "for 5 days, at a first attempt: one bad moment proves nothing",
      { attempt: 1, failingSince: daysAgo(5) },
      { kind: "retry", afterSeconds: 5 },
    ],
    [
      "for 5 days, at a second attempt, although others are left: behind the breaker they may never come",
      { attempt: 2, failingSince: daysAgo(5) },
      { kind: "give_up", disable: "failing" },
    ],
    ["for 4 days, at a second attempt", { attempt: 2, failingSince: daysAgo(4) }, { kind: "retry", afterSeconds: 300 }],
    [
      "for 50 days, at the last attempt",
      { attempt: 8, failingSince: daysAgo(50), statusCode: 500 },
      { kind: "give_up", disable: "failing" },
    ],
    [
      "for a millisecond less than 5 days, at the last attempt",
      { attempt: 8, failingSince: new Date(now.getTime() - 432_000_000 + 1).toISOString() },
      { kind: "give_up" },
    ],
    [
      "for 5 days, at the last attempt",
      { attempt: 8, failingSince: daysAgo(5) },
      { kind: "give_up", disable: "failing" },
    ],
    ["for 4 days, at the last attempt", { attempt: 8, failingSince: daysAgo(4) }, { kind: "give_up" }],
    ["only now, at the last attempt", { attempt: 8 }, { kind: "give_up" }],
  ])("%s", (_, failure, expected) => {
    expect(decideFor(failure)).toEqual(expected);
  });
});

describe("Retry-After", () => {
  test.each([
    ["longer than the schedule is honoured", 1, 120, 120],
    ["shorter than the schedule changes nothing", 2, 120, 300],
    ["of zero changes nothing", 1, 0, 5],
    ["of twelve hours is honoured", 1, 12 * 3600, 12 * 3600],
    ["of a week is cut to twelve hours", 1, 7 * 24 * 3600, 12 * 3600],
  ])("%s", (_, attempt, retryAfterSeconds, afterSeconds) => {
    expect(decideFor({ attempt, statusCode: 429, retryAfterSeconds })).toEqual({ kind: "retry", afterSeconds });
  });

  test("does not add attempts", () => {
    expect(decideFor({ attempt: 8, statusCode: 429, retryAfterSeconds: 60 })).toEqual({ kind: "give_up" });
  });

  test.each<[string | undefined, number | undefined]>([
    [undefined, undefined],
    ["", undefined],
    ["0", 0],
    ["120", 120],
    ["007", 7],
    ["9999999999", 9_999_999_999],
    ["99999999999", undefined],
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
  ])("%p reads as %p seconds", (value, seconds) => {
    expect(readRetryAfter(value, now)).toBe(seconds);
  });
});

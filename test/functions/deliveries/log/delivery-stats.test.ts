import fc from "fast-check";
import {
  type CountedAttempt,
  type CountedDelivery,
  percentile,
  statsOf,
  statsRange,
} from "../../../../functions/deliveries/log/delivery-stats.ts";

const now = new Date("2026-03-01T12:10:00.000Z");
const at = (seconds: number) => new Date(now.getTime() + seconds * 1000).toISOString();
const success = (seconds: number, duration_ms = 10): CountedAttempt => ({
  at: at(seconds),
  duration_ms,
  status_code: 200,
});
const failure = (seconds: number, duration_ms = 10): CountedAttempt => ({
  ...success(seconds, duration_ms),
  status_code: 500,
  error_code: "http_status",
});
const timeout = (seconds: number): CountedAttempt => ({ at: at(seconds), duration_ms: 15_000, error_code: "timeout" });
const delivery = (...attempts: CountedAttempt[]): CountedDelivery => ({ event: "deploy.started", attempts });

describe("percentile", () => {
  test.each<[number[], number, number | null]>([
    [[], 0.5, null],
    [[7], 0.5, 7],
    [[7], 0.95, 7],
    [[1, 2], 0.5, 1],
    [[3, 1, 2], 0.5, 2],
    [[4, 1, 3, 2], 0.5, 2],
    [Array.from({ length: 100 }, (_, index) => 100 - index), 0.95, 95],
    [Array.from({ length: 20 }, (_, index) => index + 1), 0.95, 19],
    [[10, 9, 100], 0.95, 100],
  ])("of %j at %p is %p", (values, share, expected) => {
    expect(percentile(values, share)).toBe(expected);
  });

  test("is a value that at least the share does not exceed, and no smaller value is", () => {
    const share = fc.double({ min: 0.01, max: 1, noNaN: true });
    fc.assert(
      fc.property(fc.array(fc.nat(50), { minLength: 1 }), share, (values, wanted) => {
        const found = percentile(values, wanted) ?? Number.NaN;
        const shareUpTo = (limit: number) => values.filter((value) => value <= limit).length / values.length;
        expect(values).toContain(found);
        expect(shareUpTo(found)).toBeGreaterThanOrEqual(wanted - 1e-9);
        const smaller = values.filter((value) => value < found);
        if (smaller.length > 0) expect(shareUpTo(Math.max(...smaller))).toBeLessThan(wanted + 1e-9);
      }),
    );
  });
});

test.each([
  ["24h", "2026-02-28T12:30:00.000Z", 1800, 48],
  ["7d", "2026-02-22T18:00:00.000Z", 21_600, 28],
] as const)("the window %s starts at a multiple of its bucket", (window, since, bucketSeconds, count) => {
  const range = statsRange(window, now);
  expect({ ...range, since: range.since.toISOString() }).toEqual({ window, since, until: now, bucketSeconds });
  const { buckets } = statsOf(range, { deliveries: [] });
  expect(buckets).toHaveLength(count);
  expect(buckets[0]?.start).toBe(since);
  expect(Date.parse(buckets.at(-1)?.start ?? "")).toBeGreaterThan(now.getTime() - bucketSeconds * 1000);
});

test("an attempt at the edge of a bucket, now, is counted in the bucket that begins", () => {
  const edge = new Date("2026-03-01T12:00:00.000Z");
  const edgeRange = statsRange("24h", edge);
  const { buckets } = statsOf(edgeRange, { deliveries: [delivery(success(-600))] });
  expect(edgeRange.since.toISOString()).toBe("2026-02-28T12:30:00.000Z");
  expect(buckets.at(-1)).toMatchObject({ start: edge.toISOString(), attempts: 1 });
});

const range = statsRange("24h", now);
const emptyTotals = { attempts: 0, succeeded: 0, success_rate: null, response_ms: null, by_event: [], by_error: [] };

test("without deliveries all is zero or null, and complete", () => {
  const { buckets, ...totals } = statsOf(range, { deliveries: [] });
  expect(totals).toEqual({
    window: "24h",
    since: "2026-02-28T12:30:00.000Z",
    until: "2026-03-01T12:10:00.000Z",
    bucket_seconds: 1800,
    deliveries_read: 0,
    complete: true,
    covered_since: "2026-02-28T12:30:00.000Z",
    ...emptyTotals,
  });
  for (const bucket of buckets) expect(bucket).toMatchObject({ attempts: 0, succeeded: 0, p50_ms: null, p95_ms: null });
});

test("attempts are counted in total, by event, by error and in the bucket of their time", () => {
  const stats = statsOf(range, {
    deliveries: [
      delivery(failure(-3_600, 30), success(-60, 20)),
      { event: "deploy.failed", attempts: [timeout(-3_500), timeout(-3_400), failure(-120, 40), success(-30, 10)] },
    ],
  });
  expect(stats).toMatchObject({
    deliveries_read: 2,
    attempts: 6,
    succeeded: 2,
    success_rate: 2 / 6,
    response_ms: { p50: 20, p95: 40 },
    by_event: [
      { event: "deploy.failed", attempts: 4, succeeded: 1 },
      { event: "deploy.started", attempts: 2, succeeded: 1 },
    ],
    by_error: [
      { error_code: "http_status", attempts: 2 },
      { error_code: "timeout", attempts: 2 },
    ],
  });
  expect(stats.buckets.filter(({ attempts }) => attempts > 0)).toEqual([
    { start: "2026-03-01T11:00:00.000Z", attempts: 3, succeeded: 0, p50_ms: 30, p95_ms: 30 },
    { start: "2026-03-01T12:00:00.000Z", attempts: 3, succeeded: 2, p50_ms: 20, p95_ms: 40 },
  ]);
});

test("timeouts count as failures and not as response times", () => {
  const stats = statsOf(range, { deliveries: [delivery(timeout(-60))] });
  expect(stats).toMatchObject({ attempts: 1, success_rate: 0, response_ms: null });
  expect(stats.buckets.at(-1)).toMatchObject({ attempts: 1, p50_ms: null });
});

test("a test delivery is not counted", () => {
  const test = { ...delivery(failure(-60)), test: true };
  expect(statsOf(range, { deliveries: [test] })).toMatchObject({ deliveries_read: 1, ...emptyTotals });
});

test.each([
  ["before the window", -23 * 3600 - 2_401, 0],
  ["at its start", -23 * 3600 - 2_400, 1],
  ["at its end", 0, 1],
  ["after it, by another clock", 1, 0],
])("an attempt %s is counted accordingly", (_, seconds, attempts) => {
  const stats = statsOf(range, { deliveries: [delivery(success(seconds))] });
  expect(stats.attempts).toBe(attempts);
  expect(stats.buckets.reduce((sum, bucket) => sum + bucket.attempts, 0)).toBe(attempts);
});

test.each([
  [
    "within the window, only what is later is counted",
    -3_600,
    { complete: false, covered_since: at(-3_600), attempts: 1 },
  ],
  [
    "before the window, all of the window is counted",
    -90_000,
    { complete: false, covered_since: range.since.toISOString(), attempts: 2 },
  ],
])("when reading ended %s", (_, readBackTo, expected) => {
  const deliveries = [delivery(success(-3_601), success(-60))];
  expect(statsOf(range, { deliveries, readBackTo: new Date(at(readBackTo)) })).toMatchObject(expected);
});

import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { functionRows } from "../../../../functions/foundation/manifest/function-rows.ts";
import { createRevocation, rangeAfter, SETTLING_MS } from "../../../../functions/foundation/records/revocation.ts";

const day = 24 * 3_600_000;
const midnight = Date.parse("2026-11-22T00:00:00.000Z");
const at = (offsetMs: number) => new Date(midnight + offsetMs);
const rowAt = (offsetMs: number) =>
  createRevocation({ user_id: "alice" }, "member_removed", at(offsetMs), randomBytes(16));

test("a row that became visible after a read is in the range of the next read, also at midnight and with clocks that differ", () => {
  const hours = fc.integer({ min: -30 * 3_600_000, max: 30 * 3_600_000 });
  const property = fc.property(
    hours,
    fc.nat(23 * 3_600_000),
    fc.double({ min: 0, max: 1, noNaN: true }),
    (after, passed, part) => {
      const now = after + passed;
      const written = after - 60_000 + part * (passed + 65_000);
      const { day, id } = rowAt(Math.floor(written));
      const range = rangeAfter(at(after), at(now));
      expect(range?.partitions).toContain(day);
      expect(id >= (range?.firstId ?? "~")).toBe(true);
    },
  );
  fc.assert(property, { numRuns: 2_000 });
});

/** Returns the days of a range, each of which must have all its partitions: that of earlier releases, and three more. */
function daysOf(range: ReturnType<typeof rangeAfter>): string[] | undefined {
  const days = [...new Set(range?.partitions.map((partition) => partition.slice(0, 10)))];
  const partitions = days.flatMap((each) => [each, `${each}#1`, `${each}#2`, `${each}#3`]);
  expect(range?.partitions ?? []).toEqual(partitions);
  return range && days;
}

test("a read of a moment ago reads one day, and from midnight on the day before for a minute", () => {
  const daysAt = (offset: number) => daysOf(rangeAfter(at(offset - 2_000), at(offset)));
  expect(daysAt(12 * 3_600_000)).toEqual(["2026-11-22"]);
  expect(daysAt(30_000)).toEqual(["2026-11-21", "2026-11-22"]);
  expect(daysAt(62_000)).toEqual(["2026-11-22"]);
  expect(daysAt(-4_000)).toEqual(["2026-11-21", "2026-11-22"]);
});

test("the range of a day includes the day in between, and an older cursor has none", () => {
  const now = at(-2_000);
  expect(daysOf(rangeAfter(at(-2_000 - day + SETTLING_MS), now))).toEqual(["2026-11-20", "2026-11-21", "2026-11-22"]);
  expect(rangeAfter(at(-2_001 - day + SETTLING_MS), now)).toBeUndefined();
});

test("a cursor that is ahead of the clock is read as now", () => {
  expect(rangeAfter(at(day), at(0))).toEqual(rangeAfter(at(0), at(0)));
});
test("a row has its times, and is kept for a day", () => {
  expect(rowAt(1)).toEqual({
    user_id: "alice",
    day: expect.stringMatching(/^2026-11-22(#[123])?$/),
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    at: "2026-11-22T00:00:00.001Z",
    reason: "member_removed",
    expires_at: (midnight + day) / 1000 + 1,
  });
});

test("the rows of a day are spread over its four partitions", () => {
  const counts = Map.groupBy(
    Array.from({ length: 4_000 }, () => rowAt(1)),
    ({ day }) => day,
  );
  expect(counts.size).toBe(4);
  for (const { length } of counts.values()) expect(length).toBeGreaterThan(800);
});

test("no function that writes revocations runs longer than a read goes back", () => {
  const writers = functionRows.filter(({ uses }) => uses.tables?.revocations?.includes("PutItem"));
  expect(writers.map(({ id }) => id)).toContain("api-keys-revoke-all");
  for (const { id, timeoutSeconds = 10 } of writers) {
    expect({ id, isCovered: timeoutSeconds * 1000 + 5_000 <= SETTLING_MS }).toEqual({ id, isCovered: true });
  }
});

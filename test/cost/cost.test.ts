import { asDeployed, assumed, billedMs } from "../../bench/billed-time.ts";
import {
  deliveryLines,
  inMarkdown,
  type Line,
  requestLines,
  tablesOf,
  targetsOf,
  withTables,
} from "../../bench/cost.ts";
import { limitsOf } from "../../bench/limits.ts";
import { dollarsFor, prices } from "../../bench/prices.ts";
import { failedAttempts, readUnits, type Units, type Usage } from "../../bench/units.ts";

const units = readUnits();
const none: Usage = {
  ...{ reads: 0, writes: 0, indexWrites: 0, queueRequests: 0, logBytes: 0, waits: 0, cpuMs: 0 },
};
const dollars = (lines: Line[]) => lines.reduce((sum, { price, units }) => sum + dollarsFor(price, units), 0);

/** Units with these calls, and without bytes. */
function unitsOf(calls: Partial<Units["calls"]>): Units {
  const sizes = { ...units.sizes, responseBytes: 0, keyAccessLogBytes: 0, requestBytes: 0 };
  return { ...units, sizes, calls: { ...units.calls, ...calls } };
}

/** A configuration without time, so that only the named units have a price. */
const bare = asDeployed(units, {
  ...{ cpuFactor: 0, waitMs: 0, receiverMs: 0, coldShare: 0, memoryMb: () => 1024 },
});

test("a million requests cost their units times the list prices", () => {
  const request = unitsOf({
    keyAuthorizer: { ...none, reads: 1 },
    keyEndpoint: { ...none, reads: 2, writes: 3, logBytes: 1024 ** 3 / 1_000_000 },
  });
  // 3.50 per request, 0.20 for each of two calls, 0.125 for each of three reads, 0.625 for each of three writes, 0.50 per GB of log.
  expect(dollars(requestLines(request, "key", bare))).toBeCloseTo(3.5 + 0.4 + 0.375 + 1.875 + 0.5, 6);
});

test("batches of ten share their calls and queue requests", () => {
  const tenfold = unitsOf({
    ...{ fanOut1x1: { ...none, queueRequests: 1 }, fanOut10x1: { ...none, queueRequests: 10 } },
    ...{ send1: none, send10OfOne: none },
  });
  const priceAt = (batch: 1 | 10) => dollars(deliveryLines(tenfold, { webhooks: 1, batch }, bare));
  // Sending the event and its delivery is one request each, receiving and deleting them four, and two functions are called.
  expect(priceAt(1)).toBeCloseTo(0.4 * (2 + 4) + 0.1 * 3 + 0.2 * 2, 6);
  expect(priceAt(10)).toBeCloseTo(0.4 * (2 + 0.4) + 0.1 * 1.2 + 0.2 * 0.2, 6);
});

test("a delivery that waits has a place, its share of a wake-up and its row, and each visit the writes of its lease", () => {
  const writesOf = (visit: 1 | 10 | 100) =>
    deliveryLines(units, { webhooks: 1, batch: 10, visit }, bare).reduce(
      (sum, { price, units }) => sum + (price === "write" ? units / 1_000_000 : 0),
      0,
    );
  // Event, place and row; row and place once more. The wake-up once for ten. A visit: lease, end, and in and out of the index.
  expect(writesOf(1)).toBeCloseTo(5 + 1 + 4, 5);
  expect(writesOf(10)).toBeCloseTo(5 + 0.1 + 0.4, 5);
  expect(writesOf(100)).toBeCloseTo(5 + 0.1 + 0.05, 5);
});

test("a visit waits for its receiver once for fifty deliveries", () => {
  const waiting = { ...bare, receiverMs: 1_000 };
  const secondsOf = (visit: 1 | 10 | 100) =>
    deliveryLines(units, { webhooks: 1, batch: 10, visit }, waiting).find(({ what }) => what === "work: time")?.units;
  expect([1, 10, 100].map((visit) => secondsOf(visit as 1))).toEqual([1_000_000, 100_000, 20_000]);
});

test("a million verifications by other services cost their calls, two reads each and their time", () => {
  const price = targetsOf(units).find(({ name }) => name.startsWith("verification"))?.value ?? 0;
  // 0.20 for the call and 0.25 for the reads; the rest is time.
  expect(price).toBeGreaterThan(0.45);
  expect(price).toBeLessThan(1);
});

test("half the memory doubles the CPU time and not the waits", () => {
  const usage = { ...none, cpuMs: 10 };
  const given = { ...assumed, cpuFactor: 1, waitMs: 5, coldShare: 0 };
  const at = (memoryMb: number) => billedMs(usage, 2, 100, memoryMb, given);
  expect(at(1769)).toBe(10 + 2 * 5 + 100);
  expect(at(884.5)).toBe(20 + 2 * 5 + 100);
  // One thread cannot use more than one vCPU.
  expect(at(3538)).toBe(at(1769));
});

test("a delivery is cheaper with more webhooks per event and with larger batches", () => {
  const config = asDeployed(units);
  const price = (webhooks: 1 | 10, batch: 1 | 10) => dollars(deliveryLines(units, { webhooks, batch }, config));
  expect(price(10, 10)).toBeLessThan(price(1, 10));
  expect(price(1, 10)).toBeLessThan(price(1, 1));
});

test("every price and every number of writes is within its bound", () => {
  const targets = targetsOf(units);
  expect(targets).toHaveLength(9);
  for (const { name, value, bound } of targets) expect({ name, isMet: value <= bound }).toEqual({ name, isMet: true });
});

test("a delivery writes its own row and its share of the event's row", () => {
  const writes = targetsOf(units).filter(({ name }) => name.includes("writes"));
  expect(writes.map(({ value }) => value)).toEqual([2, 1.1]);
});

test("every price has a source and states how it was verified", () => {
  for (const { source, evidence } of Object.values(prices)) {
    expect(source).toMatch(/^https:\/\//);
    expect(["page", "others", "not verified"]).toContain(evidence);
  }
});

test("limits are sorted, and slow receivers lower the limit of the senders", () => {
  const limits = limitsOf(units).map(({ maxPerSecond }) => maxPerSecond);
  expect(limits).toEqual([...limits].sort((a, b) => a - b));
  const slow = limitsOf(units, { ...assumed, receiverMs: 1_000 });
  const senders = (all: typeof slow) =>
    all.find(({ name }) => name.startsWith("senders") && name.includes("receivers respond"))?.maxPerSecond ?? 0;
  expect(senders(slow)).toBeLessThan(senders(limitsOf(units)));
});

test("the index limits failures only, and lines are slower than the senders", () => {
  const limitOf = (part: string, of = units) =>
    limitsOf(of).find(({ name }) => name.includes(part))?.maxPerSecond ?? Number.NaN;
  const names = Object.keys(units.calls).filter((name) => name.startsWith("fail"));
  expect(names).toHaveLength(failedAttempts(units).length);
  const noIndex = unitsOf(Object.fromEntries(names.map((name) => [name, none])));
  expect(limitOf("partitions of the index", noIndex)).toBeGreaterThan(limitOf("partitions of the index"));
  expect(limitOf("workers, 100 concurrent")).toBeLessThan(limitOf("senders, 300 concurrent, receivers respond"));
  // Fifty requests at once.
  expect(limitOf("one webhook whose receiver takes 15 s")).toBeCloseTo(50 / 15, 0);
  expect(limitOf("one webhook whose deliveries wait and")).toBeLessThan(250);
});

test("writing the tables replaces the table with the same title and keeps the rest of the page", () => {
  const [table] = tablesOf(units);
  if (!table) throw new Error("there are no tables");
  const page = `before\n\n### ${table.title}\n\n| old |\n|---|\n| 1 |\n\nafter\n`;
  expect(withTables(page, [table])).toBe(`before\n\n${inMarkdown(table)}\n\nafter\n`);
  expect(() => withTables("nothing", [table])).toThrow(table.title);
});

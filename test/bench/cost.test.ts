import { asDeployed, assumed, billedMs } from "../../bench/billed-time.ts";
import {
  deliveryLines,
  documented,
  inMarkdown,
  type Line,
  readUnits,
  requestLines,
  targetsOf,
  withTables,
} from "../../bench/cost.ts";
import { limitsOf } from "../../bench/limits.ts";
import { dollarsFor, hosted, prices } from "../../bench/prices.ts";
import type { RequestUnits, Taken, Units } from "../../bench/units.ts";

const units = readUnits();
const none: Taken = {
  reads: 0,
  writes: 0,
  indexWrites: 0,
  queueRequests: 0,
  logLines: 0,
  logBytes: 0,
  metricBytes: 0,
  waits: 0,
  cpuMs: 0,
};
const dollars = (lines: Line[]) => lines.reduce((sum, { price, units }) => sum + dollarsFor(price, units), 0);

/** Nothing but what is named: no time, no lines of Lambda's own. */
const bare = asDeployed(units, {
  cpuFactor: 0,
  waitMs: 0,
  receiverMs: 0,
  coldShare: 0,
  hasSystemLines: false,
  memoryMb: () => 1024,
});

test("a million requests cost what the price list says of their units", () => {
  const request: RequestUnits = {
    route: "GET /v1/projects",
    credential: "key",
    status: 200,
    authorizer: { ...none, reads: 1 },
    endpoint: { ...none, reads: 2, writes: 3, logBytes: 1024 ** 3 / 1_000_000 },
    responseBytes: 0,
    accessLogBytes: 0,
    eventBytes: 0,
  };
  // 3.50 the request, 0.20 each of two calls, 0.125 each of three reads, 0.625 each of three writes, 0.50 a gigabyte of log.
  expect(dollars(requestLines(request, "projects/list", bare))).toBeCloseTo(3.5 + 0.4 + 0.375 + 1.875 + 0.5, 6);
});

test("a million deliveries share the calls and queue requests of their batches", () => {
  const tenfold: Units = {
    ...units,
    fanOut: [1, 10].map((events) => ({ events, webhooks: 1, taken: { ...none, queueRequests: events } })),
    send: [1, 10].map((messages) => ({ messages, taken: none })),
    sizes: { ...units.sizes, requestBytes: 0 },
  };
  const priceAt = (batch: 1 | 10) => dollars(deliveryLines(tenfold, { webhooks: 1, batch }, bare));
  // The event is sent and its delivery is sent: one request each. Both are received and deleted, and two functions are called.
  expect(priceAt(1)).toBeCloseTo(0.4 * (2 + 4) + 0.1 * 3 + 0.2 * 2, 6);
  expect(priceAt(10)).toBeCloseTo(0.4 * (2 + 0.4) + 0.1 * 1.2 + 0.2 * 0.2, 6);
});

test("half the memory takes twice the CPU time and waits as long", () => {
  const taken = { ...none, cpuMs: 10 };
  const given = { ...assumed, cpuFactor: 1, waitMs: 5, coldShare: 0 };
  const at = (memoryMb: number) => billedMs(taken, 2, 100, { memoryMb, cpu: "arm", hasSystemLines: true }, given);
  expect(at(1769)).toBe(10 + 2 * 5 + 100);
  expect(at(884.5)).toBe(20 + 2 * 5 + 100);
  // More than one vCPU is of no use to one thread.
  expect(at(3538)).toBe(at(1769));
});

test("what is done by itself makes no delivery dearer", () => {
  const config = asDeployed(units);
  const price = (webhooks: number, batch: 1 | 10) => dollars(deliveryLines(units, { webhooks, batch }, config));
  expect(price(10, 10)).toBeLessThan(price(1, 10));
  expect(price(1, 10)).toBeLessThan(price(1, 1));
});

test("a request stays below its bound", () => {
  const requests = targetsOf(units).filter(({ name }) => name.startsWith("request"));
  expect(requests).toHaveLength(2);
  for (const { value, bound } of requests) expect(value).toBeLessThanOrEqual(bound);
});

test("every price has a source, and says when it was not found there", () => {
  for (const { source, evidence } of Object.values(prices)) {
    expect(source).toMatch(/^https:\/\//);
    expect(["page", "others", "not verified"]).toContain(evidence);
  }
  for (const { monthlyDollars, evidence } of hosted) {
    expect(monthlyDollars === undefined).toBe(evidence === "not verified");
  }
});

test("the limits come in order, and more senders carry more", () => {
  const limits = limitsOf(units).map(({ carries }) => carries);
  expect(limits).toEqual([...limits].sort((a, b) => a - b));
  const slow = limitsOf(units, { ...assumed, receiverMs: 1_000 });
  const senders = (all: typeof slow) => all.find(({ name }) => name.includes("receivers answer"))?.carries ?? 0;
  expect(senders(slow)).toBeLessThan(senders(limitsOf(units)));
});

test("a table takes the place of the one with its title and leaves the rest", () => {
  const [table] = documented(units);
  if (!table) throw new Error("no table");
  const page = `before\n\n### ${table.title}\n\n| old |\n|---|\n| 1 |\n\nafter\n`;
  expect(withTables(page, [table])).toBe(`before\n\n${inMarkdown(table)}\n\nafter\n`);
  expect(() => withTables("nothing", [table])).toThrow(table.title);
});

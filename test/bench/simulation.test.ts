import { type LaneOptions, type Scenario, simulate } from "../../bench/simulation.ts";

/* The simulation follows the rules of queues: Little's law, and the marks, slots and circuits of the service. */

const lane = (concurrency: number, batchSize = 10): LaneOptions => ({ concurrency, batchSize, overheadMs: () => 0 });
const scenario: Scenario = {
  seed: 7,
  seconds: 60,
  perSecond: 100,
  receiverMs: 200,
  slowShare: 0,
  slowWebhooks: 1,
  slowMs: 14_000,
  normal: lane(200),
  slow: lane(100),
};

test("the same seed has the same outcome, and another seed another one", () => {
  expect(simulate(scenario)).toEqual(simulate(scenario));
  expect(simulate({ ...scenario, seed: 8 })).not.toEqual(simulate(scenario));
});

test("deliveries arrive at the given rate, and wait for nothing while senders are free", () => {
  const { healthy, p99Ms, waiting } = simulate(scenario);
  expect(Math.abs(healthy / 6_000 - 1)).toBeLessThan(0.05);
  expect({ p99Ms, waiting }).toEqual({ p99Ms: 0, waiting: { normal: 0, slow: 0 } });
});

test("a lane sends at most its concurrency times its batch size per duration, and the rest waits", () => {
  // 4 batches of 5 messages in 200 ms are 100 a second.
  const { healthy, waiting } = simulate({ ...scenario, perSecond: 200, normal: lane(4, 5) });
  expect(Math.abs(healthy / 6_000 - 1)).toBeLessThan(0.02);
  expect(Math.abs(waiting.normal / 6_000 - 1)).toBeLessThan(0.1);
});

test("a mapping that starts with few batches delays the first deliveries only", () => {
  const ramped = { ...lane(200), ramp: { from: 1, perSecond: 2 } };
  const { p50Ms, p99Ms, waiting } = simulate({ ...scenario, normal: ramped });
  expect(p99Ms).toBeGreaterThan(50);
  expect(p50Ms).toBe(0);
  expect(waiting.normal).toBe(0);
});

test("slow receivers leave the senders two seconds after their first request", () => {
  const slow = { ...scenario, slowShare: 0.05 };
  const { busy, p99Ms } = simulate(slow);
  // 10 deliveries in 2 s, each in a batch of its own.
  expect(busy.slow).toBeGreaterThan(60);
  expect(busy.normal).toBeLessThan(50);
  expect(p99Ms).toBe(0);
  // Without a lane of their own they occupy 70 senders more.
  expect(simulate({ ...slow, slowMs: 1_999 }).busy.slow).toBe(0);
});

test("a webhook has at most its slots in flight, and the others wait in the slow lane", () => {
  const hanging = { ...scenario, slowShare: 0.1, slowMs: Number.POSITIVE_INFINITY, seconds: 14 };
  expect(simulate({ ...hanging, maxPerWebhook: 10 }).slowRequests).toBe(10);
  expect(simulate(hanging).slowRequests).toBeGreaterThan(100);
});

test("deliveries are parked 30 seconds after the first failure, and slow ones are not", () => {
  const hanging = { ...scenario, slowShare: 0.1, slowMs: Number.POSITIVE_INFINITY };
  expect(simulate({ ...hanging, seconds: 44 }).parked).toBe(0);
  expect(simulate(hanging).parked).toBeGreaterThan(50);
  expect(simulate({ ...hanging, slowMs: 14_000 }).parked).toBe(0);
});

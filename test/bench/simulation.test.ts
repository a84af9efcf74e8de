import { type LaneOptions, type Scenario, simulate } from "../../bench/simulation.ts";

/* The simulation follows the rules of queues: Little's law, and the marks, lines and circuits of the service. */

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

test("a burst of one project delays the others in a queue that is not fair, and hardly in a fair one", () => {
  const burst = { ...scenario, burst: 5_000, normal: lane(20) };
  const fair = { ...burst, normal: { ...lane(20), isFair: true } };
  expect(simulate(burst).onsetP99Ms).toBeGreaterThan(4_000);
  expect(simulate(burst).laterP99Ms).toBeLessThan(50);
  expect(simulate(fair).onsetP99Ms).toBeLessThan(250);
  // The burst itself is not measured.
  expect(simulate(fair).healthy).toBeLessThan(7_000);
});

test("fan-out is passed before the queue of deliveries", () => {
  const fanOut = { ...lane(1, 1), overheadMs: () => 100 };
  // One after the other, in 100 ms each: a tenth of what arrives.
  expect(Math.abs(simulate({ ...scenario, fanOut }).healthy / 600 - 1)).toBeLessThan(0.05);
});

test("receivers that respond in turns slowly and at once are slow from their first slow response on", () => {
  const turns = { ...scenario, slowShare: 0.1, slowMs: [10, 3_000] };
  expect(simulate(turns).busy.slow).toBeGreaterThan(0);
  expect(simulate({ ...turns, slowMs: [10, 1_000] }).busy.slow).toBe(0);
});

test("deliveries to slow receivers wait in lines from two seconds after their first request", () => {
  const slow = { ...scenario, slowShare: 0.05 };
  const { busy, p99Ms, waiting } = simulate(slow);
  // 10 deliveries in 2 s, each in a batch of its own; then one worker at a time.
  expect(busy.normal).toBeLessThan(50);
  expect(busy.slow).toBeLessThan(5);
  expect({ p99Ms, waiting: waiting.normal }).toEqual({ p99Ms: 0, waiting: 0 });
  expect(simulate({ ...slow, slowMs: 1_999 }).busy.slow).toBe(0);
});

test("a webhook has at most fifty requests in flight in its line, in order", () => {
  const slow = { ...scenario, slowShare: 0.5, slowMs: 14_000 };
  // 50 arrive a second: 100 before the mark, and 50 every 14 s afterwards.
  const { slowRequests, waiting } = simulate(slow);
  expect(slowRequests).toBeGreaterThan(100 + 3 * 50);
  expect(slowRequests).toBeLessThan(120 + 5 * 50);
  expect(waiting.slow).toBeGreaterThan(2_500);
  // Ten webhooks have ten workers.
  expect(simulate({ ...slow, slowWebhooks: 10 }).slowRequests).toBeGreaterThan(5 * slowRequests);
});

test("a line whose requests fail pauses after three in a row, and waits for a probe 30 seconds after the first failure", () => {
  const hanging = { ...scenario, slowShare: 0.1, slowMs: Number.POSITIVE_INFINITY };
  expect(simulate({ ...hanging, seconds: 44 }).behindProbe).toBe(0);
  const { behindProbe, slowRequests } = simulate({ ...hanging, seconds: 60 });
  expect(behindProbe).toBeGreaterThan(50);
  // Those that began before the first failure, then one at a time.
  expect(slowRequests).toBeLessThan(60);
  expect(simulate({ ...hanging, slowMs: 14_000 }).behindProbe).toBe(0);
});

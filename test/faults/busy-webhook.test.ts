import { jest } from "@jest/globals";
import { KeyedSemaphore } from "../../functions/attempts/keyed-semaphore.ts";

/* A burst for one webhook: a receiver that responds must not be treated like one that hangs. On a fake clock. */

const MAX_WAIT_WITHOUT_RELEASE_MS = 100;
const RESPONSE_MS = MAX_WAIT_WITHOUT_RELEASE_MS / 4;

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

/** Acquires a slot `count` times at once and holds it for the time of a response. */
async function respondToAll(
  slots: KeyedSemaphore,
  count: number,
  maxWaitMs: number,
  { responseMs = RESPONSE_MS, patienceMs = MAX_WAIT_WITHOUT_RELEASE_MS } = {},
) {
  const startedAt = performance.now();
  const attempts = Promise.all(
    Array.from({ length: count }, async () => {
      const release = await slots.acquire("a", patienceMs, maxWaitMs);
      if (release) await new Promise((resolve) => setTimeout(resolve, responseMs));
      release?.();
      return { hasSlot: release !== undefined, endedAfterMs: performance.now() - startedAt };
    }),
  );
  await jest.runAllTimersAsync();
  const results = await attempts;
  return {
    served: results.filter(({ hasSlot }) => hasSlot).length,
    lastEndedAfterMs: Math.max(...results.map(({ endedAfterMs }) => endedAfterMs)),
  };
}

test("all waiting attempts get a slot when the time between two releases is below the limit", async () => {
  expect(await respondToAll(new KeyedSemaphore(1), 12, 20_000)).toEqual({ served: 12, lastEndedAfterMs: 300 });
});

test("a receiver that takes 300 ms gets a burst of 40 without a delay, with ten slots and twice its usual time of patience", async () => {
  const burst = await respondToAll(new KeyedSemaphore(10), 40, 2_000, { responseMs: 300, patienceMs: 600 });
  expect(burst).toEqual({ served: 40, lastEndedAfterMs: 1_200 });
});

test("attempts that wait longer than the max wait give up, although slots are being released", async () => {
  expect(await respondToAll(new KeyedSemaphore(1), 200, 2 * MAX_WAIT_WITHOUT_RELEASE_MS)).toEqual({
    served: 8,
    lastEndedAfterMs: 2 * MAX_WAIT_WITHOUT_RELEASE_MS,
  });
});

test("waiting attempts give up together when no slot is released within the limit", async () => {
  const slots = new KeyedSemaphore(1);
  const release = await slots.acquire("a", 0);
  const hanging = slots.acquire("a", MAX_WAIT_WITHOUT_RELEASE_MS, 20_000);
  const others = [
    slots.acquire("a", MAX_WAIT_WITHOUT_RELEASE_MS, 20_000),
    slots.acquire("a", MAX_WAIT_WITHOUT_RELEASE_MS, 20_000),
  ];
  release?.();
  expect(await hanging).toEqual(expect.any(Function));
  await jest.advanceTimersByTimeAsync(MAX_WAIT_WITHOUT_RELEASE_MS + 1);
  expect(await Promise.all(others)).toEqual([undefined, undefined]);
});

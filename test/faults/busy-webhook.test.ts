import { setTimeout as sleep } from "node:timers/promises";
import { KeyedSemaphore } from "../../functions/attempts/keyed-semaphore.ts";

/* A burst for one webhook: whose receiver answers is not to be taken for one that hangs. */

const PATIENCE_MS = 100;
const LONG_MS = 20_000;

/** Takes the one slot again and again, each time for less than the patience of those that wait. */
async function answerOneByOne(slots: KeyedSemaphore, waiting: number): Promise<number> {
  const served = await Promise.all(
    Array.from({ length: waiting }, async () => {
      const giveBack = await slots.acquire("a", PATIENCE_MS, LONG_MS);
      await sleep(PATIENCE_MS / 4);
      giveBack?.();
      return giveBack !== undefined;
    }),
  );
  return served.filter(Boolean).length;
}

test("those that wait stay in line while slots come free, longer than their patience", async () => {
  const startedAt = performance.now();
  expect(await answerOneByOne(new KeyedSemaphore(1), 12)).toBe(12);
  expect(performance.now() - startedAt).toBeGreaterThan(2 * PATIENCE_MS);
});

test("those that wait give up together when no slot comes free any more", async () => {
  const slots = new KeyedSemaphore(1);
  const giveBack = await slots.acquire("a", 0);
  const hanging = slots.acquire("a", PATIENCE_MS, LONG_MS);
  const others = [slots.acquire("a", PATIENCE_MS, LONG_MS), slots.acquire("a", PATIENCE_MS, LONG_MS)];
  giveBack?.();
  expect(await hanging).toEqual(expect.any(Function));
  expect(await Promise.all(others)).toEqual([undefined, undefined]);
});

test("nobody waits longer than the most it may, however fast the slots come free", async () => {
  const slots = new KeyedSemaphore(1);
  const startedAt = performance.now();
  const takes = Array.from({ length: 200 }, async () => {
    const giveBack = await slots.acquire("a", PATIENCE_MS, 2 * PATIENCE_MS);
    await sleep(PATIENCE_MS / 4);
    giveBack?.();
    return giveBack;
  });
  const served = (await Promise.all(takes)).filter((giveBack) => giveBack !== undefined);
  expect(served.length).toBeLessThan(20);
  expect(performance.now() - startedAt).toBeLessThan(10 * PATIENCE_MS);
});

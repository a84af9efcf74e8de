import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { allEnded, inParallel } from "../../../../functions/foundation/platform/parallel.ts";

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);

test("returns the results in the order of the items, not of completion", async () => {
  const doubled = await inParallel([3, 1, 2, 0], 4, async (item) => {
    for (let turn = 0; turn < item * 5; turn++) await nextTurn();
    return item * 2;
  });
  expect(doubled).toEqual([6, 2, 4, 0]);
});

test.each([
  [0, 5, 0],
  [1, 5, 1],
  [5, 5, 5],
  [40, 5, 5],
  [40, 1, 1],
])("processes each of %i items once, with a limit of %i at most %i concurrently", async (count, limit, most) => {
  let inFlight = 0;
  let seen = 0;
  const done: number[] = [];
  await inParallel(numbers(count), limit, async (item) => {
    seen = Math.max(seen, ++inFlight);
    await nextTurn();
    done.push(item);
    inFlight -= 1;
  });
  expect(seen).toBe(most);
  expect(done.sort((a, b) => a - b)).toEqual(numbers(count));
});

test("one slow item does not block the other items", async () => {
  const done: number[] = [];
  let release = () => {};
  const slow = new Promise<void>((resolve) => {
    release = resolve;
  });
  const all = inParallel(numbers(20), 2, async (item) => {
    if (item === 0) await slow;
    done.push(item);
    if (item === 19) release();
  });
  await all;
  expect(done).toEqual([...numbers(20).slice(1), 0]);
});

test("rethrows an error, but only when no call is running", async () => {
  let inFlight = 0;
  const run = inParallel(numbers(10), 3, async (item) => {
    inFlight += 1;
    await sleep(item);
    inFlight -= 1;
    if (item === 4) throw new Error("item 4 failed");
  });
  await expect(run).rejects.toThrow("item 4 failed");
  expect(inFlight).toBe(0);
});

test("processes items that are undefined or null", async () => {
  expect(await inParallel([undefined, null], 2, async (item) => String(item))).toEqual(["undefined", "null"]);
});

test("allEnded throws the first error, but only when the other promises have ended", async () => {
  let hasEnded = false;
  const slow = sleep(20).then(() => {
    hasEnded = true;
  });
  await expect(allEnded([slow, Promise.reject(new Error("first"))])).rejects.toThrow("first");
  expect(hasEnded).toBe(true);
  expect(await allEnded([Promise.resolve(1), Promise.resolve("two")])).toEqual([1, "two"]);
});

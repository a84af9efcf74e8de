import { setImmediate as nextTurn } from "node:timers/promises";
import { inParallel } from "../../../functions/platform/parallel.ts";

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);

test("results come in the order of the items, whichever ends first", async () => {
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
])("of %i items with a limit of %i, %i are in work at once, and each is worked on once", async (count, limit, most) => {
  let inWork = 0;
  let seen = 0;
  const done: number[] = [];
  await inParallel(numbers(count), limit, async (item) => {
    seen = Math.max(seen, ++inWork);
    await nextTurn();
    done.push(item);
    inWork -= 1;
  });
  expect(seen).toBe(most);
  expect(done.sort((a, b) => a - b)).toEqual(numbers(count));
});

test("a free place is taken at once: one slow item does not hold up the rest", async () => {
  const done: number[] = [];
  let letGo = () => {};
  const slow = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const all = inParallel(numbers(20), 2, async (item) => {
    if (item === 0) await slow;
    done.push(item);
    if (item === 19) letGo();
  });
  await all;
  expect(done).toEqual([...numbers(20).slice(1), 0]);
});

test("an error is passed on", async () => {
  const run = inParallel(numbers(10), 3, async (item) => {
    if (item === 4) throw new Error("item 4 failed");
  });
  await expect(run).rejects.toThrow("item 4 failed");
});

test("an item of undefined is an item", async () => {
  expect(await inParallel([undefined, null], 2, async (item) => String(item))).toEqual(["undefined", "null"]);
});

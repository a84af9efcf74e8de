import { KeyedSemaphore } from "../../../functions/attempts/keyed-semaphore.ts";
import { eventually } from "../../support/eventually.ts";

const LONG_MS = 20_000;

/** Takes a slot that has to be free. */
async function takeFree(slots: KeyedSemaphore, key = "a"): Promise<() => void> {
  const giveBack = await slots.acquire(key, 0);
  if (!giveBack) throw new Error(`no slot is free for ${key}`);
  return giveBack;
}

/** Which of those that wait have got a slot, in the order in which they got it. */
function queueOf(slots: KeyedSemaphore, names: string[], key = "a") {
  const served: string[] = [];
  const givers = new Map<string, () => void>();
  const waiting = names.map(async (name) => {
    const giveBack = await slots.acquire(key, LONG_MS);
    if (!giveBack) return;
    served.push(name);
    givers.set(name, giveBack);
  });
  return { served, giveBack: (name: string) => givers.get(name)?.(), all: Promise.all(waiting) };
}

test("so many slots are free for each key, and no more", async () => {
  const slots = new KeyedSemaphore(3);
  for (let taken = 0; taken < 3; taken++) await takeFree(slots);
  expect(await slots.acquire("a", 0)).toBeUndefined();
});

test("one key does not use up the slots of another", async () => {
  const slots = new KeyedSemaphore(1);
  await takeFree(slots, "a");
  await takeFree(slots, "b");
  expect(await slots.acquire("a", 0)).toBeUndefined();
});

test("a slot that was given back is free for the next", async () => {
  const slots = new KeyedSemaphore(1);
  for (let round = 0; round < 10; round++) (await takeFree(slots))();
  await takeFree(slots);
});

test("who waits gets the slot as soon as it is given back", async () => {
  const slots = new KeyedSemaphore(1);
  const giveBack = await takeFree(slots);
  const waiting = slots.acquire("a", LONG_MS);
  giveBack();
  expect(await waiting).toEqual(expect.any(Function));
});

test("a slot is handed to the one that waits, not to one that comes at that moment", async () => {
  const slots = new KeyedSemaphore(1);
  const giveBack = await takeFree(slots);
  const waiting = slots.acquire("a", LONG_MS);
  giveBack();
  expect(await slots.acquire("a", 0)).toBeUndefined();
  (await waiting)?.();
  await takeFree(slots);
});

test("those that wait are served in the order in which they came", async () => {
  const slots = new KeyedSemaphore(1);
  const first = await takeFree(slots);
  const queue = queueOf(slots, ["b", "c", "d"]);
  first();
  for (const name of ["b", "c", "d"]) {
    await eventually(() => expect(queue.served.at(-1)).toBe(name));
    queue.giveBack(name);
  }
  await queue.all;
  expect(queue.served).toEqual(["b", "c", "d"]);
});

test("who waits longer than its patience gets none, and no earlier", async () => {
  const slots = new KeyedSemaphore(1);
  await takeFree(slots);
  const startedAt = performance.now();
  expect(await slots.acquire("a", 100)).toBeUndefined();
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(95);
});

test("who has given up is passed over, and the slot goes to the next in line", async () => {
  const slots = new KeyedSemaphore(1);
  const giveBack = await takeFree(slots);
  const impatient = slots.acquire("a", 10);
  const patient = slots.acquire("a", LONG_MS);
  expect(await impatient).toBeUndefined();
  giveBack();
  expect(await patient).toEqual(expect.any(Function));
});

test("who has given up leaves no slot taken behind", async () => {
  const slots = new KeyedSemaphore(1);
  const giveBack = await takeFree(slots);
  await Promise.all(Array.from({ length: 5 }, () => slots.acquire("a", 5)));
  giveBack();
  const again = await takeFree(slots);
  expect(await slots.acquire("a", 0)).toBeUndefined();
  again();
});

test("after a storm of takers all slots are free again, and never more were taken than there are", async () => {
  const slots = new KeyedSemaphore(4);
  let inWork = 0;
  let most = 0;
  let served = 0;
  await Promise.all(
    Array.from({ length: 500 }, async (_, index) => {
      const giveBack = await slots.acquire(`key-${index % 2}`, index % 7 === 0 ? 1 : LONG_MS);
      if (!giveBack) return;
      served += 1;
      inWork += 1;
      most = Math.max(most, inWork);
      await new Promise((resolve) => setImmediate(resolve));
      inWork -= 1;
      giveBack();
    }),
  );
  expect(most).toBe(8);
  expect(served).toBeGreaterThanOrEqual(428);
  for (const key of ["key-0", "key-1"]) {
    const all = await Promise.all(Array.from({ length: 5 }, () => slots.acquire(key, 0)));
    expect(all.filter((giveBack) => giveBack !== undefined)).toHaveLength(4);
  }
});

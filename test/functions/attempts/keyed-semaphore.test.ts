import { KeyedSemaphore } from "../../../functions/attempts/keyed-semaphore.ts";
import { eventually } from "../../support/eventually.ts";

const LONG_MS = 20_000;

/** Acquires a slot and fails when none is free. */
async function acquireFree(slots: KeyedSemaphore, key = "a"): Promise<() => void> {
  const release = await slots.acquire(key, 0);
  if (!release) throw new Error(`no slot is free for ${key}`);
  return release;
}

/** Starts one waiting caller per name. `served` lists the names in the order in which they acquired the slot. */
function startWaiting(slots: KeyedSemaphore, names: string[], key = "a") {
  const served: string[] = [];
  const releases = new Map<string, () => void>();
  const waiting = names.map(async (name) => {
    const release = await slots.acquire(key, LONG_MS);
    if (!release) return;
    served.push(name);
    releases.set(name, release);
  });
  return { served, release: (name: string) => releases.get(name)?.(), all: Promise.all(waiting) };
}

test("KeyedSemaphore grants as many slots per key as the limit", async () => {
  const slots = new KeyedSemaphore(3);
  for (let acquired = 0; acquired < 3; acquired++) await acquireFree(slots);
  expect(await slots.acquire("a", 0)).toBeUndefined();
});

test("KeyedSemaphore counts the slots of each key separately", async () => {
  const slots = new KeyedSemaphore(1);
  await acquireFree(slots, "a");
  await acquireFree(slots, "b");
  expect(await slots.acquire("a", 0)).toBeUndefined();
});

test("KeyedSemaphore grants a released slot again", async () => {
  const slots = new KeyedSemaphore(1);
  for (let round = 0; round < 10; round++) (await acquireFree(slots))();
  await acquireFree(slots);
});

test("KeyedSemaphore grants the slot to a waiting caller as soon as it is released", async () => {
  const slots = new KeyedSemaphore(1);
  const release = await acquireFree(slots);
  const waiting = slots.acquire("a", LONG_MS);
  release();
  expect(await waiting).toEqual(expect.any(Function));
});

test("KeyedSemaphore grants a released slot to the waiting caller, not to a new caller", async () => {
  const slots = new KeyedSemaphore(1);
  const release = await acquireFree(slots);
  const waiting = slots.acquire("a", LONG_MS);
  release();
  expect(await slots.acquire("a", 0)).toBeUndefined();
  (await waiting)?.();
  await acquireFree(slots);
});

test("KeyedSemaphore grants slots to waiting callers in order of arrival", async () => {
  const slots = new KeyedSemaphore(1);
  const first = await acquireFree(slots);
  const queue = startWaiting(slots, ["b", "c", "d"]);
  first();
  for (const name of ["b", "c", "d"]) {
    await eventually(() => expect(queue.served.at(-1)).toBe(name));
    queue.release(name);
  }
  await queue.all;
  expect(queue.served).toEqual(["b", "c", "d"]);
});

test("KeyedSemaphore returns undefined after maxWaitWithoutReleaseMs, not earlier", async () => {
  const slots = new KeyedSemaphore(1);
  await acquireFree(slots);
  const startedAt = performance.now();
  expect(await slots.acquire("a", 100)).toBeUndefined();
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(95);
});

test("KeyedSemaphore skips a caller that has given up and grants the slot to the next", async () => {
  const slots = new KeyedSemaphore(1);
  const release = await acquireFree(slots);
  const shortWait = slots.acquire("a", 10);
  const longWait = slots.acquire("a", LONG_MS);
  expect(await shortWait).toBeUndefined();
  release();
  expect(await longWait).toEqual(expect.any(Function));
});

test("KeyedSemaphore keeps no slot in use for a caller that has given up", async () => {
  const slots = new KeyedSemaphore(1);
  const release = await acquireFree(slots);
  await Promise.all(Array.from({ length: 5 }, () => slots.acquire("a", 5)));
  release();
  const again = await acquireFree(slots);
  expect(await slots.acquire("a", 0)).toBeUndefined();
  again();
});

test("KeyedSemaphore under 500 concurrent callers never exceeds the limit and frees all slots at the end", async () => {
  const slots = new KeyedSemaphore(4);
  let inUse = 0;
  let maxInUse = 0;
  let served = 0;
  await Promise.all(
    Array.from({ length: 500 }, async (_, index) => {
      const release = await slots.acquire(`key-${index % 2}`, index % 7 === 0 ? 1 : LONG_MS);
      if (!release) return;
      served += 1;
      inUse += 1;
      maxInUse = Math.max(maxInUse, inUse);
      await new Promise((resolve) => setImmediate(resolve));
      inUse -= 1;
      release();
    }),
  );
  expect(maxInUse).toBe(8);
  expect(served).toBeGreaterThanOrEqual(428);
  for (const key of ["key-0", "key-1"]) {
    const all = await Promise.all(Array.from({ length: 5 }, () => slots.acquire(key, 0)));
    expect(all.filter((release) => release !== undefined)).toHaveLength(4);
  }
});

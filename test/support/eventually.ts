import { setTimeout as sleep } from "node:timers/promises";

const STEP_MS = 20;

/** Repeats a check until it passes. After `withinMs` it fails as it failed last. */
export async function eventually<T>(check: () => T | Promise<T>, withinMs = 10_000): Promise<T> {
  const giveUpAt = Date.now() + withinMs;
  while (true) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > giveUpAt) throw error;
      await sleep(STEP_MS);
    }
  }
}

import { setTimeout as sleep } from "node:timers/promises";

/**
 * Max wait without progress. Longer than the longest pause of the service: after an error, such as a call to AWS without a response
 * in time on a busy machine, a line of deliveries is leased for up to 65 seconds (functions/deliveries/sending/work.ts).
 */
export const MAX_QUIET_MS = 120_000;

const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 200;

const realClock = { nowMs: () => performance.now(), sleep: (ms: number): Promise<unknown> => sleep(ms) };

/**
 * Repeats a check until it passes, as long as there is progress: the message of the failing check changes (3 of 5 rows,
 * 4 of 5 rows, …). The total wait has no limit of its own; the timeout of the test applies.
 * @param check passes when it returns or resolves
 * @returns the result of the check
 * @throws Error with the last failure and the time waited, when the failure stayed the same for `MAX_QUIET_MS`
 */
export async function eventually<T>(check: () => T | Promise<T>, clock = realClock): Promise<T> {
  const startedAt = clock.nowMs();
  let changedAt = startedAt;
  let lastMessage: string | undefined;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    const checkedAt = clock.nowMs();
    let checkMs = 0;
    try {
      return await check();
    } catch (error) {
      const now = clock.nowMs();
      checkMs = now - checkedAt;
      const message = error instanceof Error ? error.message : String(error);
      if (message !== lastMessage) [changedAt, lastMessage, pauseMs] = [now, message, FIRST_PAUSE_MS];
      if (now - changedAt > MAX_QUIET_MS) throw new Error(noProgress(now - startedAt, message), { cause: error });
    }
    // A check that takes long leaves most of the CPU to what it waits for.
    await clock.sleep(Math.max(pauseMs, 2 * checkMs));
  }
}

const noProgress = (waitedMs: number, message: string): string =>
  `No progress for ${MAX_QUIET_MS / 1_000} s, after waiting for ${Math.round(waitedMs / 1_000)} s. Last failure:\n\n${message}`;

/** The callers that wait for a slot of one key, in order of arrival. */
interface WaitQueue {
  grants: Set<() => void>;
  /** When a slot of this key was last released, on the clock of `performance`. */
  lastReleasedAt: number;
}

/**
 * Limits how many operations run at once for each key. When all slots are in use, a caller waits, but gives up early
 * when no slot is released in the meantime: operations on a hanging receiver keep their slots for many seconds.
 */
export class KeyedSemaphore {
  readonly #limit: number;
  readonly #inUse = new Map<string, number>();
  readonly #waiting = new Map<string, WaitQueue>();

  /** @param limit slots per key */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * Acquires a slot.
   * @param maxWaitWithoutReleaseMs max wait without any slot of this key being released
   * @param maxWaitMs max wait overall
   * @returns a function that releases the slot, to be called once; undefined when no slot was acquired in time
   */
  async acquire(
    key: string,
    maxWaitWithoutReleaseMs: number,
    maxWaitMs = maxWaitWithoutReleaseMs,
  ): Promise<(() => void) | undefined> {
    const inUse = this.#inUse.get(key) ?? 0;
    if (inUse < this.#limit) {
      this.#inUse.set(key, inUse + 1);
      return () => this.#release(key);
    }
    const isGranted = await this.#wait(key, maxWaitWithoutReleaseMs, maxWaitMs);
    return isGranted ? () => this.#release(key) : undefined;
  }

  #wait(key: string, maxWaitWithoutReleaseMs: number, maxWaitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const startedAt = performance.now();
      const queue: WaitQueue = this.#waiting.get(key) ?? { grants: new Set(), lastReleasedAt: startedAt };
      this.#waiting.set(key, queue);
      const end = (isGranted: boolean) => {
        clearTimeout(timer);
        queue.grants.delete(grant);
        if (queue.grants.size === 0) this.#waiting.delete(key);
        resolve(isGranted);
      };
      const grant = () => end(true);
      const giveUpIfLate = () => {
        const lastProgressAt = Math.max(queue.lastReleasedAt, startedAt);
        const giveUpAt = Math.min(lastProgressAt + maxWaitWithoutReleaseMs, startedAt + maxWaitMs);
        const leftMs = giveUpAt - performance.now();
        if (leftMs < 1) end(false);
        else timer = setTimeout(giveUpIfLate, leftMs);
      };
      let timer = setTimeout(giveUpIfLate, maxWaitWithoutReleaseMs);
      queue.grants.add(grant);
    });
  }

  /** Passes the slot to the caller that has waited longest, or frees it when no caller waits. */
  #release(key: string): void {
    const queue = this.#waiting.get(key);
    const grant = queue?.grants.values().next().value;
    if (queue && grant) {
      queue.lastReleasedAt = performance.now();
      grant();
      return;
    }
    const inUse = (this.#inUse.get(key) ?? 1) - 1;
    if (inUse === 0) this.#inUse.delete(key);
    else this.#inUse.set(key, inUse);
  }
}

/** Those that wait for a place, and when one last came free. */
interface Queue {
  turns: Set<() => void>;
  movedAt: number;
}

/**
 * Bounds how many things are in work at once for each key. Who finds no place waits for one as long as places come free. When
 * none does, it goes soon: a place that a hanging receiver holds is held for many seconds.
 */
export class KeyedSemaphore {
  readonly #limit: number;
  readonly #taken = new Map<string, number>();
  readonly #waiting = new Map<string, Queue>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * @returns what gives the place back, or undefined when none became free for anybody within `patienceMs`, or for this one
   * within `maxWaitMs`
   */
  async acquire(key: string, patienceMs: number, maxWaitMs = patienceMs): Promise<(() => void) | undefined> {
    const taken = this.#taken.get(key) ?? 0;
    if (taken < this.#limit) {
      this.#taken.set(key, taken + 1);
      return () => this.#giveBack(key);
    }
    const isHandedOver = await this.#waitForTurn(key, patienceMs, maxWaitMs);
    return isHandedOver ? () => this.#giveBack(key) : undefined;
  }

  #waitForTurn(key: string, patienceMs: number, maxWaitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const cameAt = performance.now();
      const queue: Queue = this.#waiting.get(key) ?? { turns: new Set(), movedAt: cameAt };
      this.#waiting.set(key, queue);
      const end = (isHandedOver: boolean) => {
        clearTimeout(timer);
        queue.turns.delete(turn);
        if (queue.turns.size === 0) this.#waiting.delete(key);
        resolve(isHandedOver);
      };
      const turn = () => end(true);
      const giveUp = () => {
        const since = Math.max(queue.movedAt, cameAt);
        const leftMs = Math.min(since + patienceMs, cameAt + maxWaitMs) - performance.now();
        if (leftMs < 1) end(false);
        else timer = setTimeout(giveUp, leftMs);
      };
      let timer = setTimeout(giveUp, patienceMs);
      queue.turns.add(turn);
    });
  }

  /** To the one that waits longest; free for anybody when none does. */
  #giveBack(key: string): void {
    const queue = this.#waiting.get(key);
    const next = queue?.turns.values().next().value;
    if (queue && next) {
      queue.movedAt = performance.now();
      next();
      return;
    }
    const taken = (this.#taken.get(key) ?? 1) - 1;
    if (taken === 0) this.#taken.delete(key);
    else this.#taken.set(key, taken);
  }
}

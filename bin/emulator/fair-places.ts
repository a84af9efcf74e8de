/*
 * Emulates the fair queues of SQS: the messages of one busy group do not hold up those of the others.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html
 */

interface Group<Item> {
  waiting: Item[];
  inFlight: number;
  /** Messages in flight that were started a moment ago. */
  young: number;
}

/** For this long a message is young: it uses the processor, and does not only wait for a receiver. */
const YOUNG_MS = 100;
/** Places for young messages. */
const YOUNG_PLACES = 48;

/** A message that has a place. */
export interface Taken<Item> {
  item: Item;
  /** Frees the place. To be called once. */
  release(): void;
}

/**
 * Places for messages in flight. A group may have as many places as are free: one busy group gets half of them, two get a
 * third each, and a group without any finds one at once. Of young messages a group may have only a few, so that a burst does
 * not occupy the processor. The group with the fewest places is next.
 */
export class FairPlaces<Item> {
  /** Called when a message is no longer young, so that others may start. */
  onFree: () => void = () => {};
  readonly #groups = new Map<string, Group<Item>>();
  readonly #places: number;
  readonly #youngOfGroup: number;
  #waiting = 0;
  #inFlight = 0;
  #young = 0;

  /**
   * @param places max messages in flight
   * @param youngOfGroup max young messages of a group
   */
  constructor(places: number, youngOfGroup: number) {
    this.#places = places;
    this.#youngOfGroup = youngOfGroup;
  }

  /** Number of messages without a place. */
  get waiting(): number {
    return this.#waiting;
  }

  add(name: string, item: Item): void {
    const group = this.#groups.get(name) ?? { waiting: [], inFlight: 0, young: 0 };
    this.#groups.set(name, group);
    group.waiting.push(item);
    this.#waiting += 1;
  }

  /** Returns the next messages that have a place. @param limit upper bound on their number */
  take(limit: number): Taken<Item>[] {
    const taken: Taken<Item>[] = [];
    while (taken.length < limit) {
      const next = this.#next();
      const item = next?.group.waiting.shift();
      if (!next || item === undefined) break;
      this.#waiting -= 1;
      taken.push({ item, release: this.#occupy(next.name, next.group) });
    }
    return taken;
  }

  #next(): { name: string; group: Group<Item> } | undefined {
    const [free, freeYoung] = [this.#places - this.#inFlight, YOUNG_PLACES - this.#young];
    let best: { name: string; group: Group<Item> } | undefined;
    for (const [name, group] of this.#groups) {
      const mayStart =
        group.waiting.length > 0 && group.inFlight < free && group.young < Math.min(freeYoung, this.#youngOfGroup);
      if (mayStart && (!best || group.inFlight < best.group.inFlight)) best = { name, group };
    }
    return best;
  }

  #occupy(name: string, group: Group<Item>): () => void {
    const count = (inFlight: number, young: number) => {
      group.inFlight += inFlight;
      group.young += young;
      this.#inFlight += inFlight;
      this.#young += young;
    };
    let isYoung = true;
    const age = () => {
      if (isYoung) count(0, -1);
      isYoung = false;
    };
    const timer = setTimeout(() => {
      age();
      this.onFree();
    }, YOUNG_MS);
    count(1, 1);
    return () => {
      clearTimeout(timer);
      age();
      count(-1, 0);
      if (group.inFlight === 0 && group.waiting.length === 0) this.#groups.delete(name);
    };
  }
}

import type { Delivery } from "../line/delivery.ts";
import { dispatch, type PlannedDelivery } from "./plan-delivery.ts";

/** Upper bound on how long an event with slow reads or writes delays the messages of the other events. */
const MAX_DELAY_MS = 1_000;

/**
 * Dispatches the deliveries of all events of a batch together: one message costs as much as ten, and deliveries that wait
 * for the same webhook share a write. Does so as soon as all events have added theirs, or after a second.
 */
export class Outbox {
  #missing: number;
  #planned: PlannedDelivery[] = [];
  /** Resolves when what is added by then is dispatched, with what is lost. */
  #dispatched = Promise.withResolvers<Map<Delivery, unknown>>();
  readonly #timer: NodeJS.Timeout;

  /** @param events number of events that will each call `add` or `skip` once */
  constructor(events: number) {
    this.#missing = events;
    this.#timer = setInterval(() => this.#flush(), MAX_DELAY_MS).unref();
  }

  /**
   * Adds the deliveries of an event.
   * @returns a promise that resolves when the queue or the table has them all
   * @throws when they could not be planned, or one was neither enqueued nor stored: the event must be processed again
   */
  async add(planning: Promise<PlannedDelivery[]>): Promise<void> {
    const [result] = await Promise.allSettled([planning]);
    if (result.status === "fulfilled") this.#planned.push(...result.value);
    const { promise } = this.#dispatched;
    this.skip();
    if (result.status === "rejected") throw result.reason;
    const lost = await promise;
    for (const { delivery } of result.value) if (lost.has(delivery)) throw lost.get(delivery);
  }

  /** Counts an event without deliveries. */
  skip(): void {
    this.#missing -= 1;
    if (this.#missing <= 0) this.#flush();
  }

  #flush(): void {
    if (this.#missing <= 0) clearInterval(this.#timer);
    this.#dispatched.resolve(dispatch(this.#planned.splice(0)).then(({ lost }) => lost));
    this.#dispatched = Promise.withResolvers();
  }
}

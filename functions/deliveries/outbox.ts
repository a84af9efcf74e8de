import type { PendingDelivery } from "./delivery.ts";
import { enqueue, enqueueFirst, type Lane } from "./delivery-queue.ts";
import * as deliveries from "./delivery-store.ts";

/** A planned delivery: one that its message carries, a row with a message, or a held or parked row without one. */
export type Outgoing =
  | { kind: "first"; delivery: PendingDelivery }
  | { kind: "stored"; delivery: PendingDelivery }
  | { kind: "due"; delivery: PendingDelivery; lane: Lane; delaySeconds: number };

/** Upper bound on how long an event with slow reads or writes delays the messages of the other events. */
const MAX_DELAY_MS = 1_000;

/**
 * Sends the messages of all events of a batch together, because one message costs as much as ten. Sends as soon as all
 * events have added their messages, or after a second.
 */
export class Outbox {
  #missing: number;
  #waiting: { outgoing: Outgoing[]; done: PromiseWithResolvers<void> }[] = [];
  readonly #timer: NodeJS.Timeout;

  /** @param events number of events that will each call `add` or `skip` once */
  constructor(events: number) {
    this.#missing = events;
    this.#timer = setInterval(() => this.#flush(), MAX_DELAY_MS).unref();
  }

  /**
   * Adds the messages of an event.
   * @returns a promise that resolves when the senders or the table have them all
   * @throws when a delivery without a row was neither enqueued nor inserted: the event must be processed again
   */
  add(outgoing: Outgoing[]): Promise<void> {
    const done = Promise.withResolvers<void>();
    this.#waiting.push({ outgoing, done });
    this.skip();
    return done.promise;
  }

  /** Counts an event without messages. */
  skip(): void {
    this.#missing -= 1;
    if (this.#missing <= 0) this.#flush();
  }

  #flush(): void {
    if (this.#missing <= 0) clearInterval(this.#timer);
    const batch = this.#waiting.splice(0);
    if (batch.length === 0) return;
    void this.#send(batch.flatMap(({ outgoing }) => outgoing)).then(
      (lost) => {
        for (const { outgoing, done } of batch) {
          const failure = outgoing.map(({ delivery }) => lost.get(delivery)).find((error) => error !== undefined);
          if (failure === undefined) done.resolve();
          else done.reject(failure);
        }
      },
      (error: unknown) => {
        for (const { done } of batch) done.reject(error);
      },
    );
  }

  /** @returns the deliveries that are neither in a queue nor in the table, with the error */
  async #send(all: Outgoing[]): Promise<Map<PendingDelivery, unknown>> {
    const first = all.flatMap((each) => (each.kind === "first" ? each.delivery : []));
    const due = Map.groupBy(
      all.flatMap((each) => (each.kind === "due" ? each : [])),
      ({ lane, delaySeconds }) => `${lane} ${delaySeconds}`,
    );
    const [rejected] = await Promise.all([
      enqueueFirst(first),
      ...[...due.values()].map((group) => {
        const { lane = "normal", delaySeconds = 0 } = group[0] ?? {};
        return enqueue(
          group.map(({ delivery }) => delivery),
          { lane, delaySeconds },
        );
      }),
    ]);
    // A row is as durable as a message: the sweep sends it after the grace period.
    const inserts = await Promise.allSettled(rejected.map((delivery) => deliveries.insert(delivery)));
    return new Map(
      inserts.flatMap((insert, index) =>
        insert.status === "rejected" ? [[rejected[index] as PendingDelivery, insert.reason as unknown]] : [],
      ),
    );
  }
}

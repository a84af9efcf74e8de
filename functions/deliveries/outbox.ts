import { afterDuplicate, enterAll } from "./backlog.ts";
import type { Delivery } from "./delivery.ts";
import { enqueue } from "./delivery-queue.ts";
import type { PlannedDelivery } from "./plan-delivery.ts";

/** A delivery that a message is to carry, or that is to wait. */
type Outgoing = Extract<PlannedDelivery, { kind: "carried" | "waits" }>;

const isOutgoing = (planned: PlannedDelivery): planned is Outgoing =>
  planned.kind === "carried" || planned.kind === "waits";

/** Upper bound on how long an event with slow reads or writes delays the messages of the other events. */
const MAX_DELAY_MS = 1_000;

/**
 * Hands over the deliveries of all events of a batch together: one message costs as much as ten, and deliveries that wait
 * for the same webhook share a write. Does so as soon as all events have added theirs, or after a second.
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
   * Adds the deliveries of an event that are not stored yet.
   * @returns a promise that resolves when the queue or the table has them all
   * @throws when a delivery was neither enqueued nor stored: the event must be processed again
   */
  add(planned: PlannedDelivery[]): Promise<void> {
    const done = Promise.withResolvers<void>();
    this.#waiting.push({ outgoing: planned.filter(isOutgoing), done });
    this.skip();
    return done.promise;
  }

  /** Counts an event without deliveries. */
  skip(): void {
    this.#missing -= 1;
    if (this.#missing <= 0) this.#flush();
  }

  #flush(): void {
    if (this.#missing <= 0) clearInterval(this.#timer);
    const batch = this.#waiting.splice(0);
    if (batch.length === 0) return;
    const sent = sendOrStore(batch.flatMap(({ outgoing }) => outgoing));
    const throwFirst = async (outgoing: Outgoing[]) => {
      const lost = await sent;
      for (const { delivery } of outgoing) if (lost.has(delivery)) throw lost.get(delivery);
    };
    for (const { outgoing, done } of batch) done.resolve(throwFirst(outgoing));
  }
}

/** @returns the deliveries that are neither in the queue nor in the table, with the error */
async function sendOrStore(all: Outgoing[]): Promise<Map<Delivery, unknown>> {
  const carried = all.filter(({ kind }) => kind === "carried");
  const messages = carried.map(({ delivery }) => ({ kind: "first" as const, delivery }));
  const rejected = new Set((await enqueue(messages)).map(({ delivery }) => delivery));
  // SQS may have accepted a message although the call failed.
  const due = afterDuplicate(new Date());
  const { lost } = await enterAll(
    all.flatMap((each) => (each.kind === "waits" ? each : rejected.has(each.delivery) ? { ...each, due } : [])),
  );
  return lost;
}

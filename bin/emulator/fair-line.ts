/**
 * Returns the message group: the project, which every producer sends as `MessageGroupId`. The embedded engine keeps it for FIFO
 * queues only, so it is read from the body. A message without one is a group of its own, as in a fair queue.
 */
export const groupOf = (body: string, messageId: string): string =>
  /"project_id":"([^"]+)"/.exec(body)?.[1] ?? messageId;

/** A message of the embedded engine. */
interface Message {
  messageId: string;
  body: string;
}

/**
 * The messages of a queue that wait, in the order of SQS's fair queues: the groups take turns, each in its own order. So however
 * many messages a group has sent, one of another group waits for at most one of each group.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html
 */
export class FairLine<Item extends Message> extends Array<Item> {
  /** The turn of each message. A group has one message in each turn. */
  readonly #turns: number[] = [];
  /** The last turn of each group that waits. */
  readonly #lastTurns = new Map<string, number>();
  #reached = 0;

  /** Inserts messages behind those of earlier turns, and of the same turn. */
  override push(...items: Item[]): number {
    for (const item of items) {
      const group = groupOf(item.body, item.messageId);
      const turn = (this.#lastTurns.get(group) ?? this.#reached) + 1;
      this.#lastTurns.set(group, turn);
      const index = this.#turns.findLastIndex((each) => each <= turn) + 1;
      this.#turns.splice(index, 0, turn);
      this.splice(index, 0, item);
    }
    return this.length;
  }

  override shift(): Item | undefined {
    const item = super.shift();
    if (item === undefined) return undefined;
    this.#reached = this.#turns.shift() ?? 0;
    const group = groupOf(item.body, item.messageId);
    if (this.#lastTurns.get(group) === this.#reached) this.#lastTurns.delete(group);
    return item;
  }

  /** Methods that return an array return a plain one. */
  static override get [Symbol.species](): ArrayConstructor {
    return Array;
  }
}

import { SendMessageBatchCommand } from "@aws-sdk/client-sqs";
import { sqs } from "../platform/aws.ts";
import { queueUrl } from "../platform/env.ts";
import { log } from "../platform/log.ts";
import { inParallel } from "../platform/parallel.ts";
import type { Delivery } from "./delivery.ts";

/** A message of the deliveries queue: which attempt of which delivery is due. The row decides whether it is made. */
export interface DueAttempt {
  project_id: string;
  webhook_id: string;
  delivery_id: string;
  /** Counts from 1. */
  attempt: number;
  /** This first attempt has had to wait for its receiver, which was busy with others: its delay is not ours. */
  waited_for_slot?: boolean | undefined;
}

/**
 * Reads what `enqueue` wrote. By hand: a schema would bring its library into three functions, for 14 KB and 4 % of a cold start.
 * @throws Error for what is no such message
 */
export function readDueAttempt(message: string): DueAttempt {
  const { project_id, webhook_id, delivery_id, attempt, waited_for_slot } = JSON.parse(message) as Partial<DueAttempt>;
  const isText = [project_id, webhook_id, delivery_id].every((id) => typeof id === "string");
  if (!isText || typeof attempt !== "number") throw new Error("A message of the deliveries queue names no attempt");
  return { project_id, webhook_id, delivery_id, attempt, waited_for_slot } as DueAttempt;
}

type Due = Pick<Delivery, "project_id" | "webhook_id" | "id" | "attempt_count">;

const MAX_BATCH = 10;
const MAX_PARALLEL_BATCHES = 10;
const MAX_TRIES = 3;

/**
 * Hands the next attempt of each delivery to the sender, in `delaySeconds` (0–900). What the queue does not take is logged
 * and left to the sweep: the row has a due time.
 * @param note goes into the messages
 */
export async function enqueue(
  deliveries: Due[],
  delaySeconds = 0,
  note: Pick<DueAttempt, "waited_for_slot"> = {},
): Promise<void> {
  const attempts = deliveries.map(({ project_id, webhook_id, id, attempt_count }): DueAttempt => {
    return { project_id, webhook_id, delivery_id: id, attempt: attempt_count + 1, ...note };
  });
  const batches: DueAttempt[][] = [];
  for (let start = 0; start < attempts.length; start += MAX_BATCH)
    batches.push(attempts.slice(start, start + MAX_BATCH));
  await inParallel(batches, MAX_PARALLEL_BATCHES, (batch) => enqueueBatch(batch, delaySeconds));
}

async function enqueueBatch(attempts: DueAttempt[], delaySeconds: number): Promise<void> {
  let waiting = attempts;
  for (let tries = 1; waiting.length > 0 && tries <= MAX_TRIES; tries++) {
    try {
      const { Failed = [] } = await sqs().send(
        new SendMessageBatchCommand({
          QueueUrl: queueUrl("deliveries"),
          Entries: waiting.map((attempt, index) => ({
            Id: String(index),
            MessageBody: JSON.stringify(attempt),
            DelaySeconds: delaySeconds,
            // Fair queues: the messages of one busy webhook do not hold up the others.
            // https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html
            MessageGroupId: attempt.webhook_id,
          })),
        }),
      );
      const failed = new Set(Failed.map(({ Id }) => Number(Id)));
      waiting = waiting.filter((_, index) => failed.has(index));
    } catch (error) {
      // The SDK has tried again already.
      log.error("deliveries not queued, left to the sweep", error, namesOf(waiting));
      return;
    }
  }
  if (waiting.length > 0) log.warn("deliveries refused by the queue, left to the sweep", namesOf(waiting));
}

/** A batch is ten at most, so all of them are named. */
const namesOf = (attempts: DueAttempt[]) => ({
  count: attempts.length,
  delivery_ids: attempts.map(({ delivery_id }) => delivery_id).join(" "),
});

import { SendMessageBatchCommand } from "@aws-sdk/client-sqs";
import { sqs } from "../platform/aws.ts";
import { queueUrl } from "../platform/env.ts";
import { log } from "../platform/log.ts";
import { inParallel } from "../platform/parallel.ts";
import type { Delivery } from "./delivery.ts";

/** A message of the deliveries queue: the attempt that is due. Whether it is made depends on the row. */
export interface DueAttempt {
  project_id: string;
  webhook_id: string;
  delivery_id: string;
  /** Number of the attempt, from 1. */
  attempt: number;
  /** The attempt waited because too many requests to its webhook were in flight. Latency metrics leave it out. */
  waited_for_slot?: boolean | undefined;
}

/**
 * Parses a message that `enqueue` wrote. Does not use a schema, because the library would add 14 KB and 4 % of the cold
 * start to three functions.
 * @throws Error for a message that is not valid
 */
export function readDueAttempt(message: string): DueAttempt {
  const { project_id, webhook_id, delivery_id, attempt, waited_for_slot } = JSON.parse(message) as Partial<DueAttempt>;
  const hasIds = [project_id, webhook_id, delivery_id].every((id) => typeof id === "string");
  if (!hasIds || typeof attempt !== "number") throw new Error("The message is not a valid due attempt.");
  return { project_id, webhook_id, delivery_id, attempt, waited_for_slot } as DueAttempt;
}

type EnqueueableDelivery = Pick<Delivery, "project_id" | "webhook_id" | "id" | "attempt_count">;

const MAX_BATCH = 10;
const MAX_PARALLEL_BATCHES = 10;
const MAX_TRIES = 3;

/**
 * Enqueues the next attempt of each delivery. Does not throw: a message that SQS does not accept is logged and left to
 * the sweep, which finds its row by the due time.
 * @param delaySeconds 0–900, rounded by the caller
 * @param extraFields added to each message
 */
export async function enqueue(
  deliveries: EnqueueableDelivery[],
  delaySeconds = 0,
  extraFields: Pick<DueAttempt, "waited_for_slot"> = {},
): Promise<void> {
  const attempts = deliveries.map(({ project_id, webhook_id, id, attempt_count }): DueAttempt => {
    return { project_id, webhook_id, delivery_id: id, attempt: attempt_count + 1, ...extraFields };
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
      // The SDK has already retried.
      log.error("enqueue failed, deliveries left to the sweep", error, idsForLog(waiting));
      return;
    }
  }
  if (waiting.length > 0) log.warn("queue rejected deliveries, left to the sweep", idsForLog(waiting));
}

/** A batch has at most ten messages, so all ids fit into one line. */
const idsForLog = (attempts: DueAttempt[]) => ({
  count: attempts.length,
  delivery_ids: attempts.map(({ delivery_id }) => delivery_id).join(" "),
});

import { SendMessageBatchCommand } from "@aws-sdk/client-sqs";
import type { QueueKey } from "../manifest/queues.ts";
import { sqs } from "./aws.ts";
import { queueUrl } from "./env.ts";
import { log } from "./log.ts";
import { messageBody } from "./message-body.ts";
import { inBatches, inParallel } from "./parallel.ts";

const MAX_BATCH = 10;
const MAX_PARALLEL_BATCHES = 10;
const MAX_TRIES = 3;

interface MessageIds<Message> {
  projectOf: (message: Message) => string;
  /** For the log. */
  idOf: (message: Message) => string;
}

/**
 * Sends messages to a queue in batches. Does not throw: what SQS does not accept is logged and returned.
 * @param delaySeconds 0–900; rounded up, so that no message is early
 * @returns the messages that were not accepted
 */
export async function sendInBatches<Message extends object>(
  queue: QueueKey,
  messages: Message[],
  ids: MessageIds<Message>,
  delaySeconds: number,
): Promise<Message[]> {
  const rejected = await inParallel(inBatches(messages, MAX_BATCH), MAX_PARALLEL_BATCHES, (batch) =>
    sendBatch(queue, batch, ids, Math.ceil(delaySeconds)),
  );
  return rejected.flat();
}

async function sendBatch<Message extends object>(
  queue: QueueKey,
  batch: Message[],
  { projectOf, idOf }: MessageIds<Message>,
  delaySeconds: number,
): Promise<Message[]> {
  // A batch has at most ten messages, so all ids fit into one line.
  const forLog = () => ({ count: waiting.length, delivery_ids: waiting.map(idOf).join(" ") });
  let waiting = batch;
  for (let tries = 1; waiting.length > 0 && tries <= MAX_TRIES; tries++) {
    try {
      const { Failed = [] } = await sqs().send(
        new SendMessageBatchCommand({
          QueueUrl: queueUrl(queue),
          Entries: waiting.map((message, index) => ({
            Id: String(index),
            MessageBody: messageBody(message),
            DelaySeconds: delaySeconds,
            // Fair queues: the messages of one busy project do not hold up the others.
            // https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html
            MessageGroupId: projectOf(message),
          })),
        }),
      );
      const failed = new Set(Failed.map(({ Id }) => Number(Id)));
      waiting = waiting.filter((_, index) => failed.has(index));
    } catch (error) {
      // The SDK has already retried.
      log.error("enqueue failed", error, forLog());
      return waiting;
    }
  }
  if (waiting.length > 0) log.warn("queue rejected messages", forLog());
  return waiting;
}

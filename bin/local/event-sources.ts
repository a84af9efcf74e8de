import { setTimeout as sleep } from "node:timers/promises";
import { DeleteMessageBatchCommand, type Message, ReceiveMessageCommand, type SQSClient } from "@aws-sdk/client-sqs";
import type { SQSBatchResponse, SQSRecord } from "aws-lambda";
import { type QueueKey, queues } from "../../functions/manifest/queues.ts";
import { type WorkerRow, workers } from "../../functions/manifest/workers.ts";
import { log } from "../../functions/platform/log.ts";
import { invoke, type LambdaHandler, type LoadHandler } from "./lambda.ts";

/*
 * What starts the functions without a route: Lambda's event source mappings and the schedule, on this machine.
 * https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
 */

export interface EventSources {
  /** Takes no more messages and waits for those in work, but not for long: what is broken off comes back at the next start. */
  stop(): Promise<void>;
}

/**
 * What this one process takes on at once. Fan-out is a burst of writes: beyond a few batches they only wait for each other's
 * sockets, which the SDK takes for a failure to connect. A send lasts as long as its receiver hangs, and a batch lasts as
 * long as its slowest message: here each is a batch of its own, and nothing waits for it.
 */
const INTAKE: Record<QueueKey, { batches: number; messages: number }> = {
  events: { batches: 2, messages: 10 },
  deliveries: { batches: 200, messages: 1 },
};
/** A poll is never broken off (the queue would count its messages as received), so this is how long a stop may take. */
const POLL_SECONDS = 1;
const STOP_PATIENCE_MS = 3_000;

/** @param sweepEverySeconds in place of the schedule's minutes, so that a laptop does not wait for a minute to pass */
export async function startEventSources(
  sqs: SQSClient,
  load: LoadHandler,
  sweepEverySeconds: number,
): Promise<EventSources> {
  const isStopping = new AbortController();
  const rows: readonly WorkerRow[] = workers;
  const running = await Promise.all(
    rows.map(async (row) => {
      const handler = await load(row.file);
      if (row.trigger.kind === "queue") return poll(sqs, row, row.trigger, handler, isStopping.signal);
      if (row.trigger.kind === "everyMinutes") return tick(row, handler, sweepEverySeconds, isStopping.signal);
      return { ended: Promise.resolve() };
    }),
  );
  return {
    async stop() {
      isStopping.abort();
      await Promise.race([
        Promise.all(running.map(({ ended }) => ended)),
        sleep(STOP_PATIENCE_MS, undefined, { ref: false }),
      ]);
    },
  };
}

/** Starts a loop and wraps its end, so that waiting for the start does not wait for the end. */
const loop = (run: () => Promise<void>): { ended: Promise<void> } => ({ ended: run() });

function poll(
  sqs: SQSClient,
  row: WorkerRow,
  { queue, batchSize, maxConcurrency }: Extract<WorkerRow["trigger"], { kind: "queue" }>,
  handler: LambdaHandler,
  stopping: AbortSignal,
): { ended: Promise<void> } {
  const QueueUrl = process.env[queues[queue].env];
  const batches = new Set<Promise<void>>();

  async function work(messages: Message[]): Promise<void> {
    const records = messages.map((message) => toRecord(message, queue));
    const failed = await failuresOf(row, handler, records);
    const done = records.filter(({ messageId }) => !failed.has(messageId));
    if (done.length === 0) return;
    const Entries = done.map(({ receiptHandle }, index) => ({ Id: String(index), ReceiptHandle: receiptHandle }));
    await sqs.send(new DeleteMessageBatchCommand({ QueueUrl, Entries }));
  }

  return loop(async () => {
    while (!stopping.aborted) {
      if (batches.size >= Math.min(INTAKE[queue].batches, maxConcurrency)) {
        await Promise.race(batches);
        continue;
      }
      try {
        const { Messages = [] } = await sqs.send(
          new ReceiveMessageCommand({
            QueueUrl,
            MaxNumberOfMessages: batchSize,
            WaitTimeSeconds: POLL_SECONDS,
            MessageAttributeNames: ["All"],
            MessageSystemAttributeNames: ["All"],
          }),
        );
        while (Messages.length > 0) {
          const batch = work(Messages.splice(0, INTAKE[queue].messages))
            .catch((error: unknown) => log.error("batch not acknowledged", error, { queue }))
            .finally(() => batches.delete(batch));
          batches.add(batch);
        }
      } catch (error) {
        log.error("queue not readable", error, { queue });
        await sleep(1_000);
      }
    }
    await Promise.all(batches);
  });
}

/** The ids of the messages that have to come back: all of a batch whose handler throws or answers nonsense. */
async function failuresOf(row: WorkerRow, handler: LambdaHandler, records: SQSRecord[]): Promise<Set<string>> {
  const ids = new Set(records.map(({ messageId }) => messageId));
  try {
    const lambda = { functionName: row.file, timeoutSeconds: row.timeoutSeconds };
    const response = (await invoke(handler, { Records: records }, lambda)) as SQSBatchResponse | undefined;
    const failed = (response?.batchItemFailures ?? []).map(({ itemIdentifier }) => itemIdentifier);
    return failed.every((id) => ids.has(id)) ? new Set(failed) : ids;
  } catch (error) {
    log.error("batch failed", error, { function: row.file });
    return ids;
  }
}

function toRecord(message: Message, queue: keyof typeof queues): SQSRecord {
  return {
    messageId: message.MessageId ?? "",
    receiptHandle: message.ReceiptHandle ?? "",
    body: message.Body ?? "",
    attributes: { ...message.Attributes } as unknown as SQSRecord["attributes"],
    messageAttributes: {},
    md5OfBody: message.MD5OfBody ?? "",
    eventSource: "aws:sqs",
    eventSourceARN: `arn:aws:sqs:us-east-1:000000000000:${queues[queue].name}`,
    awsRegion: "us-east-1",
  };
}

function tick(
  { file, timeoutSeconds }: WorkerRow,
  handler: LambdaHandler,
  everySeconds: number,
  stopping: AbortSignal,
): { ended: Promise<void> } {
  return loop(async () => {
    while (!stopping.aborted) {
      await invoke(handler, {}, { functionName: file, timeoutSeconds }).catch((error: unknown) =>
        log.error("scheduled run failed", error, { function: file }),
      );
      await sleep(everySeconds * 1000, undefined, { signal: stopping }).catch(() => {});
    }
  });
}

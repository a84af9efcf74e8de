import { setImmediate as immediate, setTimeout as sleep } from "node:timers/promises";
import { DeleteMessageBatchCommand, type Message, ReceiveMessageCommand, type SQSClient } from "@aws-sdk/client-sqs";
import type { SQSBatchResponse, SQSRecord } from "aws-lambda";
import { type QueueKey, queues } from "../../functions/foundation/manifest/queues.ts";
import { type WorkerRow, workerRows } from "../../functions/foundation/manifest/workers.ts";
import { log } from "../../functions/foundation/platform/log.ts";
import { groupOf } from "./fair-line.ts";
import { FairPlaces } from "./fair-places.ts";
import { invoke, type LambdaHandler, type LoadHandler } from "./lambda.ts";

/*
 * Invokes the functions without a route, as Lambda's event source mappings and the EventBridge schedule do on AWS.
 * https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
 */

export interface EventSources {
  /** Stops receiving and waits for messages in flight, 3 s at most: the rest are received again at the next start. */
  stop(): Promise<void>;
}

/**
 * Places of a queue in this process. Fan-out is a burst of writes: with more messages they wait for each other's sockets, which
 * the SDK reports as a failure to connect. A send lasts as long as its receiver hangs.
 */
const EVENT_PLACES = 40;
const DELIVERY_PLACES = 400;

/**
 * How many messages of a project may use the processor at once. With ten of each, a burst multiplied the p99 of another project by
 * eight in its first seconds, and an event beside the backlog of a dead webhook took 100 ms instead of 50; with fewer, one project
 * gets less throughput.
 */
const EVENTS_AT_ONCE = 6;
const DELIVERIES_AT_ONCE = 7;

/** A poll is never aborted, because the queue would count its messages as received. So a stop takes up to this long. */
const POLL_SECONDS = 1;
const STOP_WAIT_MS = 3_000;

/**
 * Starts polling the queues and running the schedule.
 * @param load loads the handler of a row
 * @param sweepEverySeconds replaces the minutes of the schedule, so that a local run does not wait a minute for a retry
 * @param deliveryBatchSize max messages per batch of deliveries, from 1 to 10
 */
export async function startEventSources(
  sqs: SQSClient,
  load: LoadHandler,
  sweepEverySeconds: number,
  deliveryBatchSize = 10,
): Promise<EventSources> {
  const stopping = new AbortController();
  const rows = workerRows;
  const running = await Promise.all(
    rows.map(async (row) => {
      const handler = await load(row.id);
      if (row.trigger.kind === "queue") {
        const isEvents = row.trigger.queue === "events";
        const places = isEvents
          ? new FairPlaces<Message>(EVENT_PLACES, EVENTS_AT_ONCE)
          : new FairPlaces<Message>(DELIVERY_PLACES, DELIVERIES_AT_ONCE);
        return poll(sqs, row, row.trigger, handler, places, isEvents ? 10 : deliveryBatchSize, stopping.signal);
      }
      if (row.trigger.kind === "everyMinutes") return tick(row, handler, sweepEverySeconds, stopping.signal);
      return { ended: Promise.resolve() };
    }),
  );
  return {
    async stop() {
      stopping.abort();
      await Promise.race([
        Promise.all(running.map(({ ended }) => ended)),
        sleep(STOP_WAIT_MS, undefined, { ref: false }),
      ]);
    },
  };
}

/** Starts a loop. Its end is wrapped in an object, so that awaiting the start does not await the end. */
const loop = (run: () => Promise<void>): { ended: Promise<void> } => ({ ended: run() });

/** Messages that are received before they have a place: enough to find those of other groups behind a long backlog. */
const MAX_WAITING = 10_000;
const MAX_RECEIVED = 10;

function poll(
  sqs: SQSClient,
  row: WorkerRow,
  { queue }: Extract<WorkerRow["trigger"], { kind: "queue" }>,
  handler: LambdaHandler,
  places: FairPlaces<Message>,
  batchSize: number,
  stopping: AbortSignal,
): { ended: Promise<void> } {
  const QueueUrl = process.env[queues[queue].env];
  const batches = new Set<Promise<void>>();
  const deleter = messageDeleter(sqs, queue);
  let hasRoom = Promise.withResolvers<void>();

  async function handleBatch(messages: Message[]): Promise<void> {
    const records = messages.map((message) => toRecord(message, queue));
    const failed = await failedIds(row, handler, records);
    const done = records.filter(({ messageId }) => !failed.has(messageId));
    // Not awaited: the next batch need not wait for it.
    for (const { receiptHandle } of done) deleter.add(receiptHandle);
  }

  /** Starts all messages that have a place. */
  function dispatch(): void {
    while (!stopping.aborted) {
      const taken = places.take(batchSize);
      if (taken.length === 0) break;
      const batch = handleBatch(taken.map(({ item }) => item))
        .catch((error: unknown) => log.error("batch not acknowledged", error, { queue }))
        .finally(() => {
          for (const { release } of taken) release();
          batches.delete(batch);
          dispatch();
        });
      batches.add(batch);
    }
    if (places.waiting < MAX_WAITING) hasRoom.resolve();
  }

  places.onFree = dispatch;
  return loop(async () => {
    while (!stopping.aborted) {
      if (places.waiting >= MAX_WAITING) {
        hasRoom = Promise.withResolvers<void>();
        await hasRoom.promise;
        continue;
      }
      try {
        const { Messages = [] } = await sqs.send(
          new ReceiveMessageCommand({
            QueueUrl,
            MaxNumberOfMessages: MAX_RECEIVED,
            WaitTimeSeconds: POLL_SECONDS,
            MessageAttributeNames: ["All"],
            MessageSystemAttributeNames: ["All"],
          }),
        );
        for (const message of Messages) places.add(groupOf(message.Body ?? "", message.MessageId ?? ""), message);
        dispatch();
        // Lets the calls for these messages go out before the next poll.
        await immediate();
      } catch (error) {
        log.error("queue not readable", error, { queue });
        await sleep(1_000);
      }
    }
    await Promise.all(batches);
    await deleter.end();
  });
}

/** Max messages of a call of the SQS API. */
const MAX_ENTRIES = 10;
/** How long a message waits for others that are deleted in the same call. Its work is recorded: received again, it is skipped. */
const DELETE_WAIT_MS = 100;

/**
 * Deletes messages of a queue together, because ten cost as much as one. A message that could not be deleted is received again.
 */
function messageDeleter(sqs: SQSClient, queue: QueueKey) {
  const QueueUrl = process.env[queues[queue].env];
  const receiptHandles: string[] = [];
  const calls = new Set<Promise<unknown>>();
  let timer: NodeJS.Timeout | undefined;
  function send(): void {
    clearTimeout(timer);
    const Entries = receiptHandles.splice(0).map((ReceiptHandle, index) => ({ Id: String(index), ReceiptHandle }));
    if (Entries.length === 0) return;
    const call = sqs
      .send(new DeleteMessageBatchCommand({ QueueUrl, Entries }))
      .catch((error: unknown) => log.error("messages not deleted", error, { queue }))
      .finally(() => calls.delete(call));
    calls.add(call);
  }
  return {
    add(receiptHandle: string): void {
      receiptHandles.push(receiptHandle);
      if (receiptHandles.length === 1) timer = setTimeout(send, DELETE_WAIT_MS);
      if (receiptHandles.length === MAX_ENTRIES) send();
    },
    /** Deletes the messages that wait, and resolves when all are deleted. */
    async end(): Promise<void> {
      send();
      await Promise.all(calls);
    },
  };
}

/** Returns the ids of the messages to receive again: the whole batch when the handler throws or its response is malformed. */
async function failedIds(row: WorkerRow, handler: LambdaHandler, records: SQSRecord[]): Promise<Set<string>> {
  const ids = new Set(records.map(({ messageId }) => messageId));
  try {
    const lambda = { functionName: row.id, timeoutSeconds: row.timeoutSeconds };
    const response = (await invoke(handler, { Records: records }, lambda)) as SQSBatchResponse | undefined;
    const failed = (response?.batchItemFailures ?? []).map(({ itemIdentifier }) => itemIdentifier);
    return failed.every((id) => ids.has(id)) ? new Set(failed) : ids;
  } catch (error) {
    log.error("batch failed", error, { function: row.id });
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
  { id, timeoutSeconds }: WorkerRow,
  handler: LambdaHandler,
  everySeconds: number,
  stopping: AbortSignal,
): { ended: Promise<void> } {
  return loop(async () => {
    while (!stopping.aborted) {
      await invoke(handler, {}, { functionName: id, timeoutSeconds }).catch((error: unknown) =>
        log.error("scheduled run failed", error, { function: id }),
      );
      await sleep(everySeconds * 1000, undefined, { signal: stopping }).catch(() => {});
    }
  });
}

import type { SQSBatchResponse, SQSEvent, SQSRecord } from "aws-lambda";
import { log } from "./log.ts";

type Handle = (message: SQSRecord) => Promise<void>;

/**
 * A queue consumer that works on a batch all at once and reports each message on its own: one that throws comes back after
 * its visibility timeout, and moves to the dead letter queue after too many times; the others are done. Each message is a
 * scope of its own in the log: what its work has tagged is told with its failure.
 * https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html#services-sqs-batchfailurereporting
 */
export function sqsConsumer(handle: Handle) {
  return async ({ Records }: SQSEvent): Promise<SQSBatchResponse> => {
    const all = () => Promise.all(Records.map((message) => log.scope({}, () => failureOf(message, handle))));
    const failures = await (Records.length > 1 ? log.gather(all) : all());
    return { batchItemFailures: failures.flat() };
  };
}

async function failureOf(message: SQSRecord, handle: Handle): Promise<SQSBatchResponse["batchItemFailures"]> {
  try {
    await handle(message);
    return [];
  } catch (error) {
    log.error("message failed", error, { message_id: message.messageId }, { messagesFailed: 1 });
    return [{ itemIdentifier: message.messageId }];
  }
}

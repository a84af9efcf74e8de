import type { SQSBatchResponse, SQSEvent, SQSRecord } from "aws-lambda";
import { log } from "./log.ts";

type Handle = (message: SQSRecord) => Promise<void>;

/**
 * Creates a Lambda handler that processes the messages of a batch concurrently and reports failures per message. A
 * message whose processing throws becomes visible again after its visibility timeout, and moves to the dead-letter
 * queue after `maxReceives`. Each message has its own log scope, so its failure is logged with the fields that its
 * processing tagged.
 * https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html#services-sqs-batchfailurereporting
 */
export function sqsConsumer(handle: Handle) {
  return async ({ Records }: SQSEvent): Promise<SQSBatchResponse> => {
    const all = () => Promise.all(Records.map((message) => log.scope({}, () => failureOf(message, handle))));
    const failures = await (Records.length > 1 ? log.batchMetrics(all) : all());
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

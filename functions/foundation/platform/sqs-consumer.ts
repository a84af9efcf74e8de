import type { Context, SQSBatchResponse, SQSEvent, SQSRecord } from "aws-lambda";
import { log } from "./log.ts";

/**
 * A message that a newer release has sent: during a gradual deployment most calls are of the earlier version. It becomes
 * visible again, and by then the deployment has ended. It does not count as a failed message, because those roll the
 * deployment back.
 */
export class NewerMessageError extends Error {
  override readonly name = "NewerMessageError";
}

/** @param remainingMs returns the time until Lambda stops the function */
type Handle = (message: SQSRecord, remainingMs: () => number) => Promise<void>;

/**
 * Creates a Lambda handler that processes the messages of a batch concurrently and reports failures per message. A
 * message whose processing throws becomes visible again after its visibility timeout, and moves to the dead-letter
 * queue after `maxReceives`. Each message has its own log scope, so its failure is logged with the fields that its
 * processing tagged.
 * https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html#services-sqs-batchfailurereporting
 */
export function sqsConsumer(handle: Handle) {
  return async (
    { Records }: SQSEvent,
    context?: Pick<Context, "getRemainingTimeInMillis">,
  ): Promise<SQSBatchResponse> => {
    const remainingMs = () => context?.getRemainingTimeInMillis() ?? Number.POSITIVE_INFINITY;
    const process = (message: SQSRecord) => log.scope({}, () => failureOf(message, () => handle(message, remainingMs)));
    const all = () => Promise.all(Records.map(process));
    const failures = await (Records.length > 1 ? log.batchMetrics(all) : all());
    return { batchItemFailures: failures.flat() };
  };
}

async function failureOf(
  { messageId, attributes }: SQSRecord,
  handle: () => Promise<void>,
): Promise<SQSBatchResponse["batchItemFailures"]> {
  try {
    await handle();
    return [];
  } catch (error) {
    const failedMessageAge = ageSeconds(attributes.ApproximateFirstReceiveTimestamp);
    // Its age counts, so that a message which no version can read is noticed.
    const messagesFailed = error instanceof NewerMessageError ? undefined : 1;
    log.error("message failed", error, { message_id: messageId }, { messagesFailed, failedMessageAge });
    return [{ itemIdentifier: messageId }];
  }
}

/**
 * Returns the seconds since a time.
 * @param timestamp milliseconds since the epoch
 * @returns undefined when the time is missing
 */
function ageSeconds(timestamp: string | undefined): number | undefined {
  const age = (Date.now() - Number(timestamp)) / 1000;
  return Number.isNaN(age) ? undefined : Math.max(0, age);
}

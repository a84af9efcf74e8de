import type { Context, SQSBatchResponse, SQSEvent } from "aws-lambda";
import { NewerMessageError, sqsConsumer } from "../../foundation/platform/sqs-consumer.ts";
import { readDeliveryMessage } from "../line/delivery-queue.ts";
import { readsForRequests } from "../line/delivery-store.ts";
import { sendCarried } from "./carried.ts";

/**
 * Makes the first attempts that messages carry. A failed attempt is recorded; only an internal error returns a message to
 * the queue.
 */
export async function handler(
  batch: SQSEvent,
  context?: Pick<Context, "getRemainingTimeInMillis">,
): Promise<SQSBatchResponse> {
  const readForRequest = readsForRequests();
  return sqsConsumer(async ({ body, attributes }, remainingMs) => {
    const message = readDeliveryMessage(body);
    if (message.kind !== "first")
      throw new NewerMessageError(`This version expects no messages of the kind ${message.kind} in this queue.`);
    const isRepeated = Number(attributes.ApproximateReceiveCount) > 1;
    await sendCarried(message.delivery, isRepeated, remainingMs, readForRequest);
  })(batch, context);
}

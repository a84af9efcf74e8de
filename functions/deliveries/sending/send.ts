import { NewerMessageError, sqsConsumer } from "../../foundation/platform/sqs-consumer.ts";
import { readDeliveryMessage } from "../line/delivery-queue.ts";
import { sendCarried } from "./carried.ts";

/**
 * Makes the first attempts that messages carry. A failed attempt is recorded; only an internal error returns a message to
 * the queue.
 */
export const handler = sqsConsumer(async ({ body, attributes }, remainingMs) => {
  const message = readDeliveryMessage(body);
  if (message.kind !== "first")
    throw new NewerMessageError(`This version expects no messages of the kind ${message.kind} in this queue.`);
  await sendCarried(message.delivery, Number(attributes.ApproximateReceiveCount) > 1, remainingMs);
});

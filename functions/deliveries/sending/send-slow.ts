import { NewerMessageError, sqsConsumer } from "../../foundation/platform/sqs-consumer.ts";
import { certify } from "../certification/certify.ts";
import { readDeliveryMessage } from "../line/delivery-queue.ts";
import { recordUnrecorded } from "./record.ts";
import { work } from "./work.ts";

/** Works on the backlogs of webhooks, records attempts that could not be recorded, and certifies receivers. */
export const handler = sqsConsumer(async ({ body }, remainingMs) => {
  const message = readDeliveryMessage(body);
  if (message.kind === "work") return work(message, remainingMs);
  if (message.kind === "unrecorded") return recordUnrecorded(message);
  if (message.kind === "certify") return certify(message, remainingMs);
  throw new NewerMessageError(`This version expects no messages of the kind ${message.kind} in this queue.`);
});

import { readDueAttempt } from "../deliveries/delivery-queue.ts";
import { sqsConsumer } from "../platform/sqs-consumer.ts";
import { makeAttempt } from "./attempt.ts";

/**
 * Makes the attempts that are due. A failed attempt is recorded; only an internal error returns a message to the queue.
 */
export const handler = sqsConsumer((message) => makeAttempt(readDueAttempt(message.body)));

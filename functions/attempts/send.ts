import { readDueAttempt } from "../deliveries/delivery-queue.ts";
import { sqsConsumer } from "../platform/sqs-consumer.ts";
import { makeAttempt } from "./attempt.ts";

/** Makes the attempts that are due. A failed attempt is recorded and done; only our own faults bring a message back. */
export const handler = sqsConsumer((message) => makeAttempt(readDueAttempt(message.body)));

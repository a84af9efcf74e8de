import { consume } from "../platform/sqs-batch.ts";
import { makeAttempt } from "./attempt.ts";
import { readDueAttempt } from "./delivery-queue.ts";

/** Makes the attempts that are due. A failed attempt is recorded and done; only our own faults bring a message back. */
export const handler = consume((message) => makeAttempt(readDueAttempt(message.body)));

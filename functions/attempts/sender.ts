import type { SQSRecord } from "aws-lambda";
import {
  type CertifyCall,
  type DeliveryMessage,
  type Lane,
  readDeliveryMessage,
  type WakeUpCall,
} from "../deliveries/delivery-queue.ts";
import { sqsConsumer } from "../platform/sqs-consumer.ts";
import { type AttemptRequest, delay, makeAttempt } from "./attempt.ts";
import { recordUnrecorded } from "./record.ts";

/**
 * The time that an attempt can need when DynamoDB and SQS are slow: the wait for a slot 2 s, the request 15 s, and
 * 9 s each for the reads, the record and the message after it. With less time left an attempt is not begun: Lambda would stop it after the request, and the request would be repeated.
 */
export const MIN_ATTEMPT_MS = 45_000;

/** The part of it that is needed from the claim of the attempt on. It is checked again then: the reads may be slow. */
const MIN_SEND_MS = 42_000;

/** Handlers of the messages that are not attempts. Absent = the queue of this lane has no such messages. */
interface CallHandlers {
  /** Handles the wake-up call of a webhook. `hasTime` returns whether there is time for another attempt. */
  onWakeUp?: (call: WakeUpCall, hasTime: () => boolean) => Promise<void>;
  /** Certifies a receiver. `remainingMs` returns the time until Lambda stops the function. */
  onCertify?: (call: CertifyCall, remainingMs: () => number) => Promise<void>;
}

/** Creates the handler of a sender. */
export function createSender(lane: Lane, { onWakeUp, onCertify }: CallHandlers = {}) {
  return sqsConsumer(async (record, remainingMs) => {
    const message = readDeliveryMessage(record.body);
    const hasTime = () => remainingMs() >= MIN_ATTEMPT_MS;
    if (message.kind === "unrecorded") return recordUnrecorded(message);
    if (message.kind === "wake-up") {
      if (!onWakeUp) throw new Error("A wake-up call is in the wrong queue.");
      return onWakeUp(message, hasTime);
    }
    if (message.kind === "certify") {
      if (!onCertify) throw new Error("A certification is in the wrong queue.");
      return onCertify(message, remainingMs);
    }
    const request = requestOf(message, record, lane);
    if (hasTime()) await makeAttempt({ ...request, hasTimeToSend: () => remainingMs() >= MIN_SEND_MS });
    else await delay(request, 0);
  });
}

type AttemptMessage = Extract<DeliveryMessage, { kind: "due" | "first" }>;

function requestOf(message: AttemptMessage, { attributes }: SQSRecord, lane: Lane): AttemptRequest {
  if (message.kind === "due") {
    const { kind, valid_until, ...rest } = message;
    return { ...rest, validUntil: valid_until, lane };
  }
  const { delivery } = message;
  const { project_id, webhook_id, id } = delivery;
  const isRepeated = Number(attributes.ApproximateReceiveCount) > 1;
  return { project_id, webhook_id, delivery_id: id, attempt: 1, carried: delivery, isRepeated, lane };
}

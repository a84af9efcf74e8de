import { messageBody } from "../../foundation/platform/message-body.ts";
import { sendInBatches } from "../../foundation/platform/message-queue.ts";
import { NewerMessageError } from "../../foundation/platform/sqs-consumer.ts";
import type { WorkCall } from "../../webhooks/webhook/worker-call.ts";
import type { Attempt, Delivery } from "./delivery.ts";

/*
 * The messages to the senders. `deliveries` has the first attempts that a message carries; `slowDeliveries` has all else, so
 * that it does not occupy the senders of first attempts.
 */

/** The first attempt of a delivery without a row. The message is its only copy until the row is written. */
export interface FirstAttempt {
  kind: "first";
  delivery: Delivery;
}

/** An attempt that was made, but could not be recorded. */
export interface UnrecordedAttempt {
  kind: "unrecorded";
  project_id: string;
  /** As it was read before the request; without body and attempts if it had a row. */
  basis: Omit<Delivery, "body"> & { body?: string };
  /** To which the request was sent. */
  url?: string;
  attempt: Attempt;
  /** The `Retry-After` header of the response, not validated. */
  retry_after?: string | undefined;
  /** How often recording it has failed although AWS worked; absent = never. */
  failures?: number;
}

/** The receiver of a webhook is to be certified: see deliveries/certification/certify.ts. */
export interface CertifyCall {
  kind: "certify";
  project_id: string;
  webhook_id: string;
  certification_id: string;
}

export type DeliveryMessage = FirstAttempt | WorkCall | UnrecordedAttempt | CertifyCall;

const kinds: readonly string[] = ["first", "work", "unrecorded", "certify"] satisfies DeliveryMessage["kind"][];

/**
 * Parses a message that this module wrote. Does not use a schema, because the library would add 14 KB and 4 % of the
 * cold start to three functions.
 * @throws NewerMessageError for an unknown kind
 * @throws Error for a message that is not valid
 */
export function readDeliveryMessage(text: string): DeliveryMessage {
  const message = JSON.parse(text) as {
    kind?: unknown;
    project_id?: unknown;
    delivery?: Partial<Delivery>;
  };
  if (typeof message.kind === "string" && !kinds.includes(message.kind)) {
    throw new NewerMessageError(`This version has no messages of the kind ${message.kind}.`);
  }
  if (typeof message.kind !== "string" || typeof (message.project_id ?? message.delivery?.project_id) !== "string") {
    throw new Error("The message is not a valid message of this queue.");
  }
  // A read without them would fail for all deliveries of the webhook in the batch.
  if (message.kind === "first" && !(message.delivery?.id && message.delivery.webhook_id)) {
    throw new Error("The message has no delivery with an id and a webhook_id.");
  }
  return message as DeliveryMessage;
}

/**
 * Upper bound on the size of a message that carries a delivery. SQS charges for each 64 KB, and a larger delivery is
 * better read from its row. A batch of them is below the limit of SQS, 1 MiB for all messages of a batch together.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-batch-api-actions.html
 */
const MAX_CARRIED_BYTES = 60_000;

/** Returns whether the delivery is small enough for the message of its first attempt. */
export const fitsInMessage = (delivery: Delivery): boolean =>
  Buffer.byteLength(messageBody({ kind: "first", delivery })) <= MAX_CARRIED_BYTES;

/**
 * Enqueues messages of one kind, in batches. Does not throw: what SQS does not accept is logged and returned.
 * @param delaySeconds 0–900; rounded up, so that no message is early
 * @returns the messages that were not accepted: calls of workers are left to the sweep, all others must not be lost
 */
export const enqueue = <Message extends DeliveryMessage>(messages: Message[], delaySeconds = 0): Promise<Message[]> =>
  sendInBatches(
    messages[0]?.kind === "first" ? "deliveries" : "slowDeliveries",
    messages,
    { projectOf, idOf },
    delaySeconds,
  );

const projectOf = (message: DeliveryMessage): string =>
  message.kind === "first" ? message.delivery.project_id : message.project_id;

function idOf(message: DeliveryMessage): string {
  if (message.kind === "first") return message.delivery.id;
  if (message.kind === "unrecorded") return message.basis.id;
  return message.kind === "certify" ? `certification:${message.certification_id}` : `work:${message.webhook_id}`;
}

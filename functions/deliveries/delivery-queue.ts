import { SendMessageBatchCommand } from "@aws-sdk/client-sqs";
import type { QueueKey } from "../manifest/queues.ts";
import { sqs } from "../platform/aws.ts";
import { queueUrl } from "../platform/env.ts";
import { log } from "../platform/log.ts";
import { messageBody } from "../platform/message-body.ts";
import { inParallel } from "../platform/parallel.ts";
import { NewerMessageError } from "../platform/sqs-consumer.ts";
import type { Attempt, Delivery, PendingDelivery } from "./delivery.ts";

/* The messages between fan-out, sweep, endpoints and senders. */

/** The attempt of a row is due. Whether it is made depends on the row. */
export interface DueAttempt {
  kind: "due";
  project_id: string;
  webhook_id: string;
  delivery_id: string;
  /** Number of the attempt, from 1. */
  attempt: number;
  /**
   * When the sweep enqueues the row again. A message that cannot be processed before is dropped, so that a row does not
   * collect messages.
   */
  valid_until: string;
  /** How often the attempt was delayed because too many requests to its webhook were in flight; absent for never. */
  waits?: number | undefined;
}

/** The first attempt of a delivery without a row. The message is its only copy until the row is written. */
export interface FirstAttempt {
  kind: "first";
  delivery: PendingDelivery;
}

/** An attempt that was made, but could not be recorded. */
export interface UnrecordedAttempt {
  kind: "unrecorded";
  project_id: string;
  webhook_id: string;
  delivery_id: string;
  /** Present when the delivery had no row. */
  delivery?: PendingDelivery | undefined;
  attempt: Attempt;
  /** The `Retry-After` header of the response, not validated. */
  retry_after?: string | undefined;
  /** The last request of a user that the sender had read; absent for none. */
  requested_at?: string | undefined;
  sending_id: string;
}

/** The parked deliveries of a webhook are to be looked at: see attempts/drain.ts. */
export interface WakeUpCall {
  kind: "wake-up";
  project_id: string;
  webhook_id: string;
  /** Only the calls with the latest number count, and only the first of them. */
  generation: number;
}

/** The receiver of a webhook is to be certified: see attempts/certify.ts. */
export interface CertifyCall {
  kind: "certify";
  project_id: string;
  webhook_id: string;
  certification_id: string;
}

export type DeliveryMessage = DueAttempt | FirstAttempt | UnrecordedAttempt | WakeUpCall | CertifyCall;

const kinds: readonly string[] = [
  "due",
  "first",
  "unrecorded",
  "wake-up",
  "certify",
] satisfies DeliveryMessage["kind"][];

/**
 * Parses a message that this module wrote. Does not use a schema, because the library would add 14 KB and 4 % of the
 * cold start to three functions.
 * @throws NewerMessageError for an unknown kind
 * @throws Error for a message that is not valid
 */
export function readDeliveryMessage(text: string): DeliveryMessage {
  // A message without a kind was enqueued by an earlier release.
  const message = { kind: "due", ...JSON.parse(text) } as {
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
  return message as DeliveryMessage;
}

/**
 * The queue and the senders of a message. `slow`: for slow and busy webhooks, recoveries and drains, so that they
 * do not occupy the senders of the others.
 */
export type Lane = "normal" | "slow";

const queueOf: Record<Lane, QueueKey> = { normal: "deliveries", slow: "slowDeliveries" };

/** Returns the lane of a webhook's deliveries. */
export const laneOf = ({ slow_since }: { slow_since?: string }): Lane => (slow_since === undefined ? "normal" : "slow");

interface SendOptions {
  /** Default: `normal`. */
  lane?: Lane;
  /** 0–900; rounded up, so that no message is early. */
  delaySeconds?: number;
}

type EnqueueableDelivery = Pick<Delivery, "project_id" | "webhook_id" | "id" | "attempt_count" | "due_at">;

/**
 * Enqueues the next attempt of rows. Does not throw: a message that SQS does not accept is logged and left to the
 * sweep, which finds its row by the due time.
 * @param waits see `DueAttempt`
 * @returns the deliveries whose message was not accepted
 */
export async function enqueue<Row extends EnqueueableDelivery>(
  deliveries: Row[],
  { waits, ...options }: SendOptions & Pick<DueAttempt, "waits"> = {},
): Promise<Row[]> {
  const messages = deliveries.map(({ project_id, webhook_id, id, attempt_count, due_at = "" }): DueAttempt => {
    return {
      kind: "due",
      project_id,
      webhook_id,
      delivery_id: id,
      attempt: attempt_count + 1,
      valid_until: due_at,
      waits,
    };
  });
  const rejected = new Set(await send(messages, options));
  return deliveries.filter((_, index) => rejected.has(messages[index] as DueAttempt));
}

/**
 * Enqueues the first attempts of deliveries without a row.
 * @returns the deliveries whose message was not accepted. No row exists, so the caller must keep them.
 */
export async function enqueueFirst(deliveries: PendingDelivery[]): Promise<PendingDelivery[]> {
  const messages = deliveries.map((delivery): FirstAttempt => ({ kind: "first", delivery }));
  return (await send(messages)).map(({ delivery }) => delivery);
}

/** Enqueues an attempt to be recorded later. @returns false when the message was not accepted */
export async function enqueueUnrecorded(attempt: UnrecordedAttempt, delaySeconds: number): Promise<boolean> {
  return (await send([attempt], { lane: "slow", delaySeconds })).length === 0;
}

/** Enqueues wake-up calls. @returns the calls that were not accepted */
export const enqueueWakeUps = (calls: WakeUpCall[], delaySeconds = 0): Promise<WakeUpCall[]> =>
  send(calls, { lane: "slow", delaySeconds });

/** Enqueues a certification. @returns false when the message was not accepted */
export const enqueueCertification = async (call: CertifyCall, delaySeconds = 0): Promise<boolean> =>
  (await send([call], { lane: "slow", delaySeconds })).length === 0;

/**
 * Upper bound on the size of a message that carries a delivery. SQS charges for each 64 KB, and a larger delivery is
 * better read from its row.
 */
const MAX_CARRIED_BYTES = 60_000;

/** Returns whether the delivery is small enough for the message of its first attempt. */
export const fitsInMessage = (delivery: PendingDelivery): boolean =>
  sizeOf({ kind: "first", delivery }) <= MAX_CARRIED_BYTES;

const sizeOf = (message: DeliveryMessage): number => Buffer.byteLength(messageBody(message));

const MAX_BATCH = 10;
/** The limit of SQS for the messages of a batch together, less the space for attributes. */
const MAX_BATCH_BYTES = 250_000;
const MAX_PARALLEL_BATCHES = 10;
const MAX_TRIES = 3;

/** Sends messages in batches. Does not throw. @returns the messages that were not accepted */
async function send<Message extends DeliveryMessage>(
  messages: Message[],
  { lane = "normal", delaySeconds = 0 }: SendOptions = {},
): Promise<Message[]> {
  const delay = Math.ceil(delaySeconds);
  const rejected = await inParallel(batchesOf(messages), MAX_PARALLEL_BATCHES, (batch) =>
    sendBatch(batch, lane, delay),
  );
  return rejected.flat();
}

function batchesOf<Message extends DeliveryMessage>(messages: Message[]): Message[][] {
  const batches: Message[][] = [];
  let bytes = 0;
  for (const message of messages) {
    const size = sizeOf(message);
    const last = batches.at(-1);
    if (last && last.length < MAX_BATCH && bytes + size <= MAX_BATCH_BYTES) {
      last.push(message);
      bytes += size;
    } else {
      batches.push([message]);
      bytes = size;
    }
  }
  return batches;
}

async function sendBatch<Message extends DeliveryMessage>(
  batch: Message[],
  lane: Lane,
  delaySeconds: number,
): Promise<Message[]> {
  let waiting = batch;
  for (let tries = 1; waiting.length > 0 && tries <= MAX_TRIES; tries++) {
    try {
      const { Failed = [] } = await sqs().send(
        new SendMessageBatchCommand({
          QueueUrl: queueUrl(queueOf[lane]),
          Entries: waiting.map((message, index) => ({
            Id: String(index),
            MessageBody: messageBody(message),
            DelaySeconds: delaySeconds,
            // Fair queues: the messages of one busy project do not hold up the others.
            // https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html
            MessageGroupId: projectOf(message),
          })),
        }),
      );
      const failed = new Set(Failed.map(({ Id }) => Number(Id)));
      waiting = waiting.filter((_, index) => failed.has(index));
    } catch (error) {
      // The SDK has already retried.
      log.error("enqueue failed", error, idsForLog(waiting));
      return waiting;
    }
  }
  if (waiting.length > 0) log.warn("queue rejected messages", idsForLog(waiting));
  return waiting;
}

const projectOf = (message: DeliveryMessage): string =>
  message.kind === "first" ? message.delivery.project_id : message.project_id;

/** A batch has at most ten messages, so all ids fit into one line. */
const idsForLog = (messages: DeliveryMessage[]) => ({
  count: messages.length,
  delivery_ids: messages.map(idOf).join(" "),
});

function idOf(message: DeliveryMessage): string {
  if (message.kind === "first") return message.delivery.id;
  if (message.kind === "certify") return `certification:${message.certification_id}`;
  return message.kind === "wake-up" ? `wake-up:${message.webhook_id}` : message.delivery_id;
}

import { createHash } from "node:crypto";
import { deliveryIdOf } from "../deployments/deployment-event.ts";
import type { WebhookEvent, WebhookEventName } from "../deployments/webhook-event.ts";
import { addSeconds } from "../platform/time.ts";
import type { FailureCode } from "../receivers/failure-code.ts";
import type { Webhook } from "../webhooks/webhook.ts";

/**
 * - `pending`: an attempt is due now or later. Only these rows have a due time.
 * - `succeeded`: the receiver returned 2xx.
 * - `failed`: the last attempt failed, and no retry follows.
 * - `held`: the webhook was disabled, or its project suspended, when the event arrived or the next attempt was due.
 * - `cancelled`: the webhook was deleted before the delivery succeeded.
 */
export const deliveryStatuses = ["pending", "succeeded", "failed", "held", "cancelled"] as const;
export type DeliveryStatus = (typeof deliveryStatuses)[number];

/** Why an attempt is made: by the retry schedule, or by a request of a user. */
export type Trigger = "schedule" | "redeliver" | "recover" | "test";

/**
 * The delivery of one event to one webhook. The row is the source of truth once it exists. The first attempt of a
 * healthy webhook needs no row before: the queue message carries the delivery, and the row is written with the outcome.
 */
export interface Delivery {
  webhook_id: string;
  id: string;
  project_id: string;
  event: WebhookEventName;
  /** null = the event is not about a deployment. */
  deployment_id: string | null;
  /** The request body, byte for byte the same at every attempt. */
  body: string;
  status: DeliveryStatus;
  created_at: string;
  /** When SQS received the event, by the clock of SQS; absent for a test delivery. */
  event_received_at?: string;
  /** Present for a test delivery with sample data. */
  test?: boolean;
  attempt_count: number;
  attempts?: Attempt[];
  /** Why the next attempt is made; absent for `schedule`. */
  trigger?: Trigger;
  /** When a user last requested an attempt by a redelivery or a recovery; absent when no one did. */
  requested_at?: string;
  /** Attempts made before a redelivery or a recovery restarted the retry schedule; absent when none did. */
  attempts_before_schedule?: number;
  /** When the next attempt is planned; absent when none is. */
  next_attempt_at?: string;
  /**
   * Partition and sort key of the sparse `due` index. At `due_at` the sweep enqueues the delivery (again). A parked
   * delivery is in a partition of its webhook instead, which the sweep does not read (parking-store.ts).
   */
  due_shard?: number;
  due_at?: string;
  /** Until when one sender may be sending this attempt, and a random id of that sender. No other sender sends it. */
  sending_until?: string;
  sending_id?: string;
  /** How often the sweep has enqueued the planned attempt; absent for never. */
  handovers?: number;
  /** Expiry time in epoch seconds. DynamoDB deletes the row after it. */
  expires_at: number;
}

export interface Attempt {
  /** From 1. */
  number: number;
  at: string;
  /** From resolving the host name to the last byte read. */
  duration_ms: number;
  /** Number of requests sent: 2 when the request was sent again over a new connection; absent for one. */
  request_count?: number | undefined;
  status_code?: number | undefined;
  /** Absent for a success. */
  error_code?: FailureCode | undefined;
  /** Start of the response body, at most 1 KB of text; absent when it is empty, and for attempts before the newest three. */
  response_excerpt?: string | undefined;
  trigger: Trigger;
  /** Input of the failure hint: see `detail` in functions/receivers/failure-hints.ts. */
  detail?: string | undefined;
}

const RETENTION_DAYS = 30;

/** Returns the expiry time, in epoch seconds, of a row that is created or rescheduled now. */
export const expiresAt = (now: Date): number => Math.floor(now.getTime() / 1000) + RETENTION_DAYS * 24 * 3600;

/**
 * A delivery with this many attempts cannot be redelivered or recovered. Even with the retries after the last request,
 * its attempts stay below 20 KB, and the row below DynamoDB's limit of 400 KB.
 */
export const MAX_ATTEMPTS = 50;

/** Attempts that keep what the receiver sent. A query pays for the whole row, whatever it returns of it. */
const MAX_KEPT_RESPONSES = 3;

/** Returns the attempts of a delivery with one more. Only the newest keep the excerpt of the response and the target of a redirect. */
export function withAttempt({ attempts = [] }: Pick<Delivery, "attempts">, attempt: Attempt): Attempt[] {
  const all = [...attempts, attempt];
  return all.map((each, index) => (index < all.length - MAX_KEPT_RESPONSES ? withoutResponse(each) : each));
}

/** With a status, `detail` is the target of a redirect, up to 2 KB; otherwise it is a short code. */
const withoutResponse = ({ response_excerpt, detail, ...rest }: Attempt): Attempt =>
  rest.status_code === undefined ? { ...rest, detail } : rest;

/**
 * Partition keys of the `due` index. DynamoDB accepts 1,000 writes a second for each, so 32 carry about 10,000
 * deliveries a second.
 */
export const DUE_SHARDS = 32;

/** The longest delay of an SQS message: 15 minutes. Later attempts wait in the `due` index. */
export const MAX_QUEUE_DELAY_SECONDS = 900;

/** Max time that a sender needs for one attempt: the claim, the request of 15 s and the record, each write up to 9 s. */
export const SENDING_SECONDS = 35;

/** Keys of a row in the `due` index. */
export type Due = Required<Pick<Delivery, "due_shard" | "due_at">>;

/**
 * Returns the due time of an attempt: when the sweep enqueues it. An attempt within the maximum delay of the queue has
 * a message already, so the sweep enqueues it only after the grace period.
 */
export function dueAt(now: Date, afterSeconds: number, graceSeconds: number): string {
  return addSeconds(now, afterSeconds + (afterSeconds > MAX_QUEUE_DELAY_SECONDS ? 0 : graceSeconds));
}

/**
 * Creates the pending delivery of an event to a webhook.
 * @param graceSeconds how long the sweep waits for the message of the first attempt
 * @param trigger `test` for a test delivery
 */
export function createDelivery(
  event: WebhookEvent,
  webhook: Pick<Webhook, "id">,
  now: Date,
  graceSeconds: number,
  trigger: "schedule" | "test" = "schedule",
): PendingDelivery {
  const id = deliveryIdOf(event, webhook.id);
  return {
    webhook_id: webhook.id,
    id,
    project_id: event.project_id,
    event: event.event,
    deployment_id: event.deployment_id,
    body: event.body,
    created_at: now.toISOString(),
    attempt_count: 0,
    expires_at: expiresAt(now),
    ...(trigger === "test" && { test: true, trigger }),
    status: "pending",
    ...nextAttemptNow(id, now, graceSeconds),
  };
}

/** A delivery with a planned attempt. */
export type PendingDelivery = Delivery & { status: "pending"; next_attempt_at: string } & Due;

/** Returns a pending delivery as `held`: without a planned attempt. */
export function held({ next_attempt_at, due_shard, due_at, ...delivery }: PendingDelivery): Delivery {
  return { ...delivery, status: "held" };
}

/** Returns the fields of a row whose next attempt is due now. */
export function nextAttemptNow(id: string, now: Date, graceSeconds: number) {
  return { next_attempt_at: now.toISOString(), due_shard: shardOf(id), due_at: dueAt(now, 0, graceSeconds) };
}

/** Returns the partition of the `due` index in which the sweep finds a row. */
export function shardOf(id: string): number {
  return createHash("sha256").update(id).digest().readUInt32BE() % DUE_SHARDS;
}

/** Beyond all shards of the sweep, however many there are. Never change it: parked rows would not be found again. */
const FIRST_PARKING_SHARD = 1_000_000;

/**
 * Returns the partition of the `due` index for the parked deliveries of a webhook: a number beyond the shards of the
 * sweep. Two webhooks share one with a probability of one in 2^48; their rows are told apart by the webhook's id.
 */
export function parkingShardOf(webhookId: string): number {
  return FIRST_PARKING_SHARD + createHash("sha256").update(webhookId).digest().readUIntBE(0, 6);
}

/** Returns whether a row waits in the parking of its webhook. */
export const isParked = ({ due_shard }: Pick<Delivery, "due_shard">): boolean =>
  (due_shard ?? 0) >= FIRST_PARKING_SHARD;

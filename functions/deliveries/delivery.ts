import { createHash } from "node:crypto";
import { type DeploymentEvent, deliveryIdOf, type EventName } from "../deployments/deployment-event.ts";
import { addSeconds } from "../platform/time.ts";
import type { FailureCode } from "../receivers/failure-code.ts";
import type { Webhook } from "../webhooks/webhook.ts";

/**
 * - `pending`: an attempt is due or will be. Only these rows have a due time.
 * - `succeeded`: the receiver answered 2xx.
 * - `failed`: all attempts failed.
 * - `held`: the webhook was disabled before an attempt could be made.
 * - `cancelled`: the webhook was deleted before.
 */
export const deliveryStatuses = ["pending", "succeeded", "failed", "held", "cancelled"] as const;
export type DeliveryStatus = (typeof deliveryStatuses)[number];

/** Why an attempt is made: because its time has come, or because somebody asked for it. */
export type Trigger = "schedule" | "redeliver" | "recover" | "test";

/** One event on its way to one webhook: the truth about it, whatever happens to messages and processes. */
export interface Delivery {
  webhook_id: string;
  id: string;
  project_id: string;
  event: EventName;
  deployment_id: string;
  /** The request body, byte for byte the same at every attempt. */
  body: string;
  status: DeliveryStatus;
  created_at: string;
  /** When the event came to our queue, by its clock; absent for a sample. */
  arrived_at?: string;
  /** A sample that somebody sent to try the webhook out. */
  test?: boolean;
  attempt_count: number;
  attempts?: Attempt[];
  /** Why the next attempt is made; absent for the schedule. */
  trigger?: Trigger;
  /** When somebody asked for the next attempt; absent when nobody ever did. */
  requested_at?: string;
  /** Attempts made before the schedule started anew with a redelivery; absent for none. */
  schedule_from?: number;
  /** When the next attempt is planned. */
  next_attempt_at?: string;
  /** Partition and sort key of the sparse `due` index: when the sweep hands the delivery to the queue (again). */
  due_shard?: number;
  due_at?: string;
  /** Epoch second after which DynamoDB removes the row. */
  expires_at: number;
}

export interface Attempt {
  /** Counts from 1. */
  number: number;
  at: string;
  /** From dial to the last byte read. */
  duration_ms: number;
  status_code?: number | undefined;
  /** Absent for a success. */
  error_code?: FailureCode | undefined;
  /** The first of what the receiver answered, at most 1 KB of text. */
  response_excerpt?: string | undefined;
  trigger: Trigger;
  /** What the hint needs to know: where a redirect leads, or the cause of a TLS failure. */
  detail?: string | undefined;
}

const RETENTION_DAYS = 30;

/** When a row is removed that was last asked for now. */
export const expiresAt = (now: Date): number => Math.floor(now.getTime() / 1000) + RETENTION_DAYS * 24 * 3600;

/**
 * After so many attempts a delivery is not sent again on request. With the schedule that the last request began, and 1 KB of
 * answer each, the attempts stay below 100 KB, and the row with its body below the 400 KB that DynamoDB takes.
 */
export const MAX_ATTEMPTS = 50;

/** DynamoDB takes 1,000 writes a second per partition key, indexes included: so many keys for some ten thousand deliveries. */
export const DUE_SHARDS = 32;

/** SQS delays a message by 15 minutes at most. Later attempts wait in the index. */
export const MAX_QUEUE_DELAY_SECONDS = 900;

/** When the sweep has to step in for an attempt that is planned in `afterSeconds`. */
export function dueAt(now: Date, afterSeconds: number, graceSeconds: number): string {
  return addSeconds(now, afterSeconds + (afterSeconds > MAX_QUEUE_DELAY_SECONDS ? 0 : graceSeconds));
}

/**
 * The delivery of an event to a webhook: held while the webhook is disabled.
 * @param trigger `test` for a sample, which is sent in any case
 */
export function createDelivery(
  event: DeploymentEvent,
  webhook: Webhook,
  now: Date,
  graceSeconds: number,
  trigger: "schedule" | "test" = "schedule",
): Delivery {
  const id = deliveryIdOf(event, webhook.id);
  const isTest = trigger === "test";
  const delivery = {
    webhook_id: webhook.id,
    id,
    project_id: event.project_id,
    event: event.event,
    deployment_id: event.deployment_id,
    body: event.body,
    created_at: now.toISOString(),
    attempt_count: 0,
    expires_at: expiresAt(now),
    ...(isTest && { test: true, trigger }),
  };
  if (webhook.disabled_at !== undefined && !isTest) return { ...delivery, status: "held" };
  return { ...delivery, status: "pending", ...dueNow(id, now, graceSeconds) };
}

/** The fields of a row whose next attempt is to be made now. */
export function dueNow(id: string, now: Date, graceSeconds: number) {
  return { next_attempt_at: now.toISOString(), due_shard: shardOf(id), due_at: dueAt(now, 0, graceSeconds) };
}

function shardOf(id: string): number {
  return createHash("sha256").update(id).digest().readUInt32BE() % DUE_SHARDS;
}

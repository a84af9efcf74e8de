import { deliveryIdOf } from "../../foundation/events/deployment-event.ts";
import type { FailureCode } from "../../foundation/events/failure-code.ts";
import type { WebhookEvent, WebhookEventName } from "../../foundation/events/webhook-event.ts";
import type { Webhook } from "../../webhooks/webhook/webhook.ts";

/**
 * - `pending`: it waits in the backlog of its webhook for an attempt that is due now or later.
 * - `succeeded`: the receiver returned 2xx.
 * - `failed`: the last attempt failed, and no retry follows.
 * - `held`: the webhook was disabled, or its project suspended, when the event arrived or the next attempt was due.
 * - `cancelled`: the webhook was deleted before the delivery succeeded.
 * - `shadowed`: the webhook was in shadow mode when the next attempt was due. Only a redelivery or a recovery of these sends it.
 * - `superseded`: its webhook gets the latest state only, and a newer event of the deployment has a delivery to it.
 */
export const deliveryStatuses = [
  "pending",
  "succeeded",
  "failed",
  "held",
  "cancelled",
  "shadowed",
  "superseded",
] as const;
export type DeliveryStatus = (typeof deliveryStatuses)[number];

/** Why an attempt is made: by the retry schedule, or by a request of a user. */
export type Trigger = "schedule" | "redeliver" | "recover" | "test";

/**
 * The delivery of one event to one webhook. The row is the source of truth once it exists. The first attempt of a
 * healthy webhook needs no row before: the queue message carries the delivery, and the row is written with the outcome.
 * Only `change` (change-delivery.ts) writes rows.
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
  /** The newest `MAX_KEPT_ATTEMPTS`. */
  attempts?: Attempt[];
  /** The last request that was not sent because the webhook was in shadow mode; absent when there was none. */
  shadow?: ShadowedRequest;
  /** Id of the delivery with the newer state; present with the status `superseded`. */
  superseded_by?: string;
  /** Why the next attempt is made; absent for `schedule`. */
  trigger?: Trigger;
  /** Key of the last redelivery or recovery that a user requested, which begins with its time; absent when no one did. */
  requested_at?: string;
  /** Attempts that the retry schedule does not count: those before a redelivery or a recovery, and early ones; absent = none. */
  attempts_before_schedule?: number;
  /** Early attempts that failed since the next one was planned, while the receiver accepted others; absent = none. */
  rejections?: number;
  /** When the next attempt is planned; absent when none is. */
  next_attempt_at?: string;
  /** Sort key of its place in the backlog (backlog-store.ts): a place that the row does not name is a leftover. */
  place?: string;
  /** Random id of the last write. */
  version?: string;
  /** Expiry time in epoch seconds. DynamoDB deletes the row after it. */
  expires_at: number;
}

export interface ShadowedRequest {
  /** When it would have been sent. */
  at: string;
  /** With the signatures, without those of HTTP itself. */
  headers: Record<string, string>;
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
  /**
   * Headers of the response (functions/webhooks/receiver/response-headers.ts); absent when none is kept, for attempts before the
   * newest three, and for a 2xx: with those of a usual proxy, the row exceeds 1 KB, and its write costs twice as much.
   * Pairs, because the receiver chooses the names: DynamoDB's client rejects a map with the name `constructor`.
   */
  response_header_pairs?: [name: string, value: string][] | undefined;
  /** The headers in a row of an earlier version. */
  response_headers?: Record<string, string> | undefined;
  trigger: Trigger;
  /** Input of the failure hint: see `detail` in functions/webhooks/receiver/failure-hints.ts. */
  detail?: string | undefined;
}

const RETENTION_DAYS = 30;

/** Returns the expiry time, in epoch seconds, of a row that is created or rescheduled now. */
export const expiresAt = (now: Date): number => Math.floor(now.getTime() / 1000) + RETENTION_DAYS * 24 * 3600;

/**
 * Attempts that a row keeps, the newest: a webhook that fails for five days is probed 1,500 times. They stay below 20 KB, and
 * the row below DynamoDB's limit of 400 KB.
 */
export const MAX_KEPT_ATTEMPTS = 50;

/** Attempts that keep what the receiver sent. A query pays for the whole row, whatever it returns of it. */
const MAX_KEPT_RESPONSES = 3;

/** Returns the attempts of a delivery with one more. Only the newest keep what the receiver sent. */
export function withAttempt({ attempts = [] }: Pick<Delivery, "attempts">, attempt: Attempt): Attempt[] {
  const all = [...attempts, attempt].slice(-MAX_KEPT_ATTEMPTS);
  return all.map((each, index) => (index < all.length - MAX_KEPT_RESPONSES ? withoutResponse(each) : each));
}

/**
 * Returns an attempt without what the receiver sent. With a status, `detail` is of the response, such as the target of a
 * redirect; otherwise it is a short code.
 */
export function withoutResponse(attempt: Attempt): Attempt {
  const { response_excerpt, response_header_pairs, response_headers, detail, ...rest } = attempt;
  return rest.status_code === undefined ? { ...rest, detail } : rest;
}

/**
 * Creates the delivery of an event to a webhook. It has no row yet.
 * @param receivedAt when SQS received the event, by the clock of SQS; absent for a test delivery
 */
export function createDelivery(
  event: WebhookEvent,
  webhook: Pick<Webhook, "id">,
  now: Date,
  receivedAt?: Date,
): Delivery {
  return {
    webhook_id: webhook.id,
    id: deliveryIdOf(event, webhook.id),
    project_id: event.project_id,
    event: event.event,
    deployment_id: event.deployment_id,
    body: event.body,
    created_at: now.toISOString(),
    ...(receivedAt ? { event_received_at: receivedAt.toISOString() } : { test: true, trigger: "test" }),
    attempt_count: 0,
    expires_at: expiresAt(now),
    status: "pending",
  };
}

/**
 * Returns whether an attempt at this time is early: before the planned retry, as a probe or to catch up. If it fails, the plan
 * stays, and the retry schedule does not count it. A first attempt is never early: its message may be faster than its place.
 */
export const isEarly = (delivery: Delivery, at: string): boolean =>
  delivery.attempt_count > 0 && !isOnRequest(delivery) && (delivery.next_attempt_at ?? at) > at;

/** A user waits for these. They are sent before all others, and even when the webhook is disabled or its circuit is open. */
export const isOnRequest = ({ trigger }: Pick<Delivery, "trigger">): boolean =>
  trigger === "redeliver" || trigger === "test";

import {
  type Attempt,
  type Delivery,
  dueAt,
  isParked,
  MAX_QUEUE_DELAY_SECONDS,
  type PendingDelivery,
  shardOf,
} from "../deliveries/delivery.ts";
import { enqueue, enqueueUnrecorded, laneOf, type UnrecordedAttempt } from "../deliveries/delivery-queue.ts";
import * as deliveries from "../deliveries/delivery-store.ts";
import { scheduleDrain } from "../deliveries/parking-store.ts";
import { failingNotificationTime } from "../notifications/notification.ts";
import { settings } from "../platform/env.ts";
import { log } from "../platform/log.ts";
import { addSeconds } from "../platform/time.ts";
import type { Webhook } from "../webhooks/webhook.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { type AttemptEffects, attemptMetrics } from "./attempt-metrics.ts";
import { DEFAULT_SCHEDULE, type Decision, decide, readRetryAfter } from "./retry.ts";

/* What follows a request: its outcome is recorded in the delivery's row, and the next attempt is planned. */

/** An attempt that was made. */
export interface CompletedAttempt {
  /** The delivery as read before the request. */
  delivery: Delivery;
  /** Whether the delivery has a row. Without one, the row is written together with the attempt. */
  isStored: boolean;
  webhook: Webhook;
  attempt: Attempt;
  /** The `Retry-After` header of the response, not validated. */
  retryAfter: string | undefined;
  /** Random id of this attempt: tells its writes from those of other senders. */
  sendingId: string;
  /** The attempt waited for its receiver, which was busy, slow or down. */
  hasWaited: boolean;
  /** The attempt was made by a drain of its webhook. */
  isDrain: boolean;
}

/** The last stage that the work after a request reached, with the effects that are certain by then. */
type RecordingStage =
  /** The outcome is not recorded. */
  | { reached: "sent"; effects: AttemptEffects; error: unknown }
  /** The outcome is recorded. Updating the webhook's health or enqueueing the next attempt failed. */
  | { reached: "recorded"; effects: AttemptEffects; error: unknown }
  | { reached: "completed"; effects: AttemptEffects };

const NO_EFFECTS: AttemptEffects = { isDecisive: false, isLast: false, hasDisabledWebhook: false };

/** How long an attempt that could not be recorded waits before it is tried again. */
const UNRECORDED_DELAY_SECONDS = 15;

/**
 * Records an attempt and writes one log line, also when it could not be recorded. Then its outcome is enqueued, so that
 * recording it later needs no second request.
 * @throws the error of the record when its outcome could not be enqueued either: the message is received again
 */
export async function recordAttempt(completed: CompletedAttempt): Promise<void> {
  const stage = await record(completed);
  logAttempt(completed, stage.effects);
  if (stage.reached === "completed") return;
  if (stage.reached === "sent" && (await enqueueUnrecorded(toMessage(completed), UNRECORDED_DELAY_SECONDS))) {
    log.error("attempt not recorded, enqueued to be recorded later", stage.error);
    return;
  }
  throw stage.error;
}

function toMessage(completed: CompletedAttempt): UnrecordedAttempt {
  const { delivery, isStored, attempt, retryAfter, sendingId } = completed;
  const { project_id, webhook_id, id } = delivery;
  return {
    kind: "unrecorded",
    project_id,
    webhook_id,
    delivery_id: id,
    ...(!isStored && { delivery: delivery as PendingDelivery }),
    attempt,
    retry_after: retryAfter,
    requested_at: delivery.requested_at,
    sending_id: sendingId,
  };
}

/**
 * Records an attempt whose first record failed. When recording fails again, enqueues the attempt again, because its
 * message would be received only after minutes: by then the sweep might have sent the request again.
 * @throws when that fails too: the message is received again
 */
export async function recordUnrecorded(message: UnrecordedAttempt): Promise<void> {
  const { project_id, webhook_id, delivery_id, attempt, retry_after, sending_id } = message;
  log.tag({ project_id, webhook_id, delivery_id, attempt: attempt.number });
  const [row, webhook] = await Promise.all([
    deliveries.find(webhook_id, delivery_id),
    webhooks.find(project_id, webhook_id),
  ]);
  const delivery = row ?? message.delivery;
  // The rows of a deleted webhook cannot be read any more.
  if (!delivery || !webhook) return;
  if (row && hasAttempt(row, attempt)) return;
  const stage = await record({
    delivery: asReadBefore(delivery, message.requested_at),
    isStored: row !== undefined,
    webhook,
    attempt,
    retryAfter: retry_after,
    sendingId: sending_id,
    hasWaited: true,
    isDrain: false,
  });
  if (stage.reached === "sent" && (await enqueueUnrecorded(message, UNRECORDED_DELAY_SECONDS))) {
    log.error("attempt not recorded, enqueued again", stage.error);
    return;
  }
  if (stage.reached !== "completed") throw stage.error;
  log.info("attempt recorded later", { attempt: attempt.number });
}

/** Returns the row with the last request of a user that the sender had read, so that a later one is seen as new. */
function asReadBefore({ requested_at, ...row }: Delivery, readRequest: string | undefined): Delivery {
  return readRequest === undefined ? row : { ...row, requested_at: readRequest };
}

function logAttempt(completed: CompletedAttempt, effects: AttemptEffects): void {
  const { delivery, attempt, hasWaited, isDrain } = completed;
  const { project_id, webhook_id, id, event, deployment_id } = delivery;
  const { number, trigger, duration_ms, request_count, status_code, error_code } = attempt;
  const ids = { project_id, webhook_id, delivery_id: id, event, deployment_id: deployment_id ?? undefined };
  const outcome = error_code ?? "succeeded";
  const fields = { attempt: number, trigger, outcome, duration_ms, request_count, status_code };
  log.info("attempt", { ...ids, ...fields }, attemptMetrics(delivery, attempt, hasWaited || isDrain, effects));
}

/** Records an attempt and applies its consequences. Does not throw: a failure is part of the returned stage. */
async function record(completed: CompletedAttempt): Promise<RecordingStage> {
  const [recorded] = await Promise.allSettled([recordOutcome(completed)]);
  if (recorded.status === "rejected") return { reached: "sent", effects: NO_EFFECTS, error: recorded.reason };
  const { decision, isDecisive } = recorded.value;
  const effects = { ...NO_EFFECTS, isDecisive, isLast: decision.kind !== "retry" };
  const [applied] = await Promise.allSettled([applyConsequences(completed, recorded.value)]);
  if (applied.status === "rejected") return { reached: "recorded", effects, error: applied.reason };
  return { reached: "completed", effects: { ...effects, hasDisabledWebhook: applied.value } };
}

interface RecordedOutcome {
  decision: { kind: "succeeded" } | Decision;
  /** When the decision was made. */
  decidedAt: Date;
  isDecisive: boolean;
  /** The delivery's next state, if this attempt decided it. */
  next: deliveries.NextState;
}

async function recordOutcome(completed: CompletedAttempt): Promise<RecordedOutcome> {
  const now = new Date();
  const isSuccess = completed.attempt.error_code === undefined;
  const decision = isSuccess ? ({ kind: "succeeded" } as const) : decideOn(completed, now);
  const next = nextStateOf(completed.delivery.id, decision, now);
  return { decision, decidedAt: now, isDecisive: await write(completed, next), next };
}

/**
 * Writes the attempt and the next state of its delivery.
 * @returns false when nothing follows from this attempt, because another one was recorded first, or because a new
 *   attempt was requested while it was in flight. Then that attempt is enqueued here.
 */
async function write(completed: CompletedAttempt, next: deliveries.NextState): Promise<boolean> {
  const { delivery, isStored, attempt, sendingId, webhook } = completed;
  if (!isStored) {
    if (await deliveries.insertAttempted(delivery as PendingDelivery, attempt, next, sendingId)) return true;
  }
  const isNext = attempt.number === delivery.attempt_count + 1;
  if (isNext && (await deliveries.recordAttempt(delivery, attempt, next, sendingId))) return true;
  if (isNext && (await deliveries.recordOvertaken(delivery, attempt, sendingId))) {
    await enqueue([{ ...delivery, attempt_count: attempt.number }], { lane: laneOf(webhook) });
    return false;
  }
  await recordAfterAnother(completed);
  return false;
}

/** Adds the attempt to a row in which another sender has recorded one. The row may change again meanwhile. */
async function recordAfterAnother({ delivery, attempt, sendingId, webhook }: CompletedAttempt): Promise<void> {
  for (;;) {
    const row = await deliveries.find(delivery.webhook_id, delivery.id);
    if (!row) return;
    if (hasAttempt(row, attempt)) return;
    const isFinal = attempt.error_code === undefined && row.status !== "succeeded" && !hasNewRequest(row, delivery);
    const updated = await deliveries.recordAfterAnother(row, attempt, isFinal, sendingId);
    if (!updated) continue;
    // The number of the next attempt has changed, and its message names the old one.
    if (updated.status === "pending" && !isParked(updated)) await enqueueAt(updated, webhook);
    return;
  }
}

/** Returns whether this attempt is recorded. Its number may differ: another sender may have recorded one first. */
const hasAttempt = ({ attempts = [] }: Delivery, attempt: Attempt): boolean =>
  attempts.some(({ at, duration_ms }) => at === attempt.at && duration_ms === attempt.duration_ms);

/** Returns whether a user has requested an attempt since the row was read. Not by time: clocks differ. */
const hasNewRequest = ({ status, requested_at }: Delivery, read: Delivery): boolean =>
  status === "pending" && requested_at !== read.requested_at;

/**
 * Updates the webhook's health, enqueues the next attempt and notifies the owners of what they should know.
 * @returns whether the webhook was disabled
 */
async function applyConsequences(
  { delivery, webhook, attempt, isDrain }: CompletedAttempt,
  { decision, decidedAt, isDecisive, next }: RecordedOutcome,
): Promise<boolean> {
  if (decision.kind === "succeeded") {
    if (webhook.failing_since === undefined) return false;
    const isRecovery = await webhooks.clearFailing(webhook);
    // Parked deliveries are sent now, not only after the next probe. A drain is sending them already.
    if (isRecovery && !isDrain) await scheduleDrain(webhook, new Date());
    return false;
  }
  const { at, error_code, status_code, detail } = attempt;
  if (error_code !== undefined && !delivery.test && webhook.failing_since === undefined) {
    await webhooks.markFailing(webhook, at, { at, error_code, status_code, detail });
  }
  const failure = { status_code: status_code ?? null, error_code: error_code ?? null };
  if (decision.kind === "give_up" && decision.disable) {
    return await webhooks.disable(webhook, decision.disable, decidedAt.toISOString(), failure);
  }
  if (isDecisive && next.status === "pending") {
    const { nextAttemptAt, due } = next;
    await enqueueAt(
      { ...delivery, attempt_count: attempt.number, next_attempt_at: nextAttemptAt, due_at: due.due_at },
      webhook,
    );
  }
  if (delivery.test) return false;
  const failing = { ...webhook, failing_since: webhook.failing_since ?? at };
  const dueAt = failingNotificationTime(failing, decidedAt, next.status === "pending" ? next.nextAttemptAt : undefined);
  // Last, so that an error does not delay the next attempt. If it is lost, a later failure notices it again.
  if (dueAt) await webhooks.notifyFailing(failing, failure, decidedAt.toISOString(), dueAt);
  return false;
}

/** Enqueues the planned attempt of a row. An attempt beyond the queue's maximum delay is left to the sweep. */
async function enqueueAt(delivery: Delivery, webhook: Webhook): Promise<void> {
  const delaySeconds = Math.max(0, (Date.parse(delivery.next_attempt_at ?? "") - Date.now()) / 1000);
  if (delaySeconds <= MAX_QUEUE_DELAY_SECONDS) await enqueue([delivery], { lane: laneOf(webhook), delaySeconds });
}

function decideOn({ delivery, webhook, attempt, retryAfter }: CompletedAttempt, now: Date): Decision {
  // A test delivery is sent once, and so is a redelivery to a disabled webhook.
  const isSingleAttempt = delivery.test || webhook.disabled_at !== undefined;
  const failed = {
    attempt: attempt.number - (delivery.attempts_before_schedule ?? 0),
    statusCode: attempt.status_code,
    retryAfterSeconds: readRetryAfter(retryAfter, now),
    failingSince: webhook.failing_since,
  };
  const policy = {
    schedule: isSingleAttempt ? [] : (settings.retrySchedule() ?? DEFAULT_SCHEDULE),
    disableAfterSeconds: isSingleAttempt ? Number.POSITIVE_INFINITY : settings.disableAfterSeconds(),
  };
  return decide(failed, policy, now, Math.random());
}

function nextStateOf(deliveryId: string, decision: RecordedOutcome["decision"], now: Date): deliveries.NextState {
  if (decision.kind === "succeeded") return { status: "succeeded" };
  if (decision.kind === "give_up") return { status: "failed" };
  const { afterSeconds } = decision;
  return {
    status: "pending",
    nextAttemptAt: addSeconds(now, afterSeconds),
    due: { due_shard: shardOf(deliveryId), due_at: dueAt(now, afterSeconds, settings.deliveryGraceSeconds()) },
  };
}

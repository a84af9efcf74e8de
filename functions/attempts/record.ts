import { enter, lookAgain } from "../deliveries/backlog.ts";
import { placeOf } from "../deliveries/backlog-store.ts";
import { type Change, change } from "../deliveries/change-delivery.ts";
import type { Attempt, Delivery } from "../deliveries/delivery.ts";
import { enqueue, type UnrecordedAttempt } from "../deliveries/delivery-queue.ts";
import * as deliveries from "../deliveries/delivery-store.ts";
import { attempted, effectOf } from "../deliveries/delivery-transitions.ts";
import { DEFAULT_SCHEDULE } from "../manifest/retry-schedule.ts";
import { failingNotificationTime } from "../notifications/notification.ts";
import { settings } from "../platform/env.ts";
import { log } from "../platform/log.ts";
import { addSeconds } from "../platform/time.ts";
import { checkCircuit } from "../webhooks/circuit-breaker.ts";
import * as receiverState from "../webhooks/receiver-state-store.ts";
import type { Webhook } from "../webhooks/webhook.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { type AttemptEffects, attemptMetrics } from "./attempt-metrics.ts";
import { type Decision, decide, readRetryAfter } from "./retry.ts";

/* What follows a request: its outcome is recorded in the delivery's row, and the next attempt is planned. */

/** An attempt that was made. */
interface CompletedAttempt {
  /** The delivery as read before the request; without a version, it had no row. */
  basis: Delivery;
  /** The row as it is now; undefined = none exists. */
  row: Delivery | undefined;
  webhook: Webhook;
  attempt: Attempt;
  /** The `Retry-After` header of the response, not validated. */
  retryAfter: string | undefined;
}

/** The visit of a worker to the line of a webhook (work.ts). It looks at the line again before it ends. */
export interface Visit {
  /** Ends the visit after the requests in flight, and keeps the line from all workers until then. */
  keepUntil(time: Date): void;
}

/** The last stage that the work after a request reached, with the effects that are certain by then. */
type RecordingStage =
  /** The outcome is not recorded. */
  | { reached: "sent"; effects: AttemptEffects; error: unknown }
  /** The outcome is recorded. Updating the webhook's health failed. */
  | { reached: "recorded"; effects: AttemptEffects; error: unknown }
  | { reached: "completed"; effects: AttemptEffects };

const NO_EFFECTS: AttemptEffects = { isDecisive: false, isLast: false, hasDisabledWebhook: false };

/** How long an attempt that could not be recorded waits before it is tried again. */
const UNRECORDED_DELAY_SECONDS = 15;

/** When a line is looked at again after an attempt that could not be recorded: it is recorded by then. */
const AFTER_UNRECORDED_SECONDS = 60;

/**
 * Records an attempt and writes one log line, also when it could not be recorded. Then its outcome is enqueued, so that
 * recording it later needs no second request.
 * @param visit of the worker that made it; absent when its message carried the delivery
 * @throws the error of the record when its outcome could not be enqueued either: the delivery is sent again
 */
export async function recordAttempt(completed: CompletedAttempt, visit?: Visit): Promise<void> {
  const stage = await record(completed, visit);
  logAttempt(completed, visit === undefined, stage.effects);
  if (stage.reached === "completed") return;
  if (stage.reached === "recorded") throw stage.error;
  visit?.keepUntil(new Date(addSeconds(new Date(), AFTER_UNRECORDED_SECONDS)));
  if (!(await recordLater(toMessage(completed)))) throw stage.error;
  log.error("attempt not recorded, enqueued to be recorded later", stage.error);
}

/** @returns false when the message was not accepted */
const recordLater = async (message: UnrecordedAttempt): Promise<boolean> =>
  (await enqueue([message], UNRECORDED_DELAY_SECONDS)).length === 0;

function toMessage({ basis, webhook: { url }, attempt, retryAfter }: CompletedAttempt): UnrecordedAttempt {
  const { body, attempts, ...stored } = basis;
  const kept = basis.version === undefined ? basis : stored;
  return { kind: "unrecorded", project_id: basis.project_id, basis: kept, url, attempt, retry_after: retryAfter };
}

/**
 * Records an attempt whose first record failed. When recording fails again, enqueues it again, because its message would be
 * received only after minutes: by then the request might have been sent again.
 * @throws when that fails too: the message is received again
 */
export async function recordUnrecorded(message: UnrecordedAttempt): Promise<void> {
  const { basis, attempt, retry_after } = message;
  const { project_id, webhook_id, id } = basis;
  log.tag({ project_id, webhook_id, delivery_id: id, attempt: attempt.number });
  const [row, found] = await Promise.all([deliveries.find(webhook_id, id), webhooks.find(project_id, webhook_id)]);
  const body = basis.body ?? row?.body;
  // The rows of a deleted webhook cannot be read any more.
  if (body === undefined || !found) return;
  // The outcome says nothing about another URL: the writes to the webhook take effect for this one only.
  const webhook = { ...found, url: message.url ?? found.url };
  const stage = await record({ basis: { ...basis, body }, row, webhook, attempt, retryAfter: retry_after });
  if (stage.reached === "sent" && (await recordLater(message))) {
    log.error("attempt not recorded, enqueued again", stage.error);
    return;
  }
  if (stage.reached !== "completed") throw stage.error;
  log.info("attempt recorded later", { attempt: attempt.number });
}

function logAttempt({ basis, attempt }: CompletedAttempt, isCarried: boolean, effects: AttemptEffects): void {
  const { project_id, webhook_id, id, event, deployment_id } = basis;
  const { number, trigger, duration_ms, request_count, status_code, error_code } = attempt;
  const ids = { project_id, webhook_id, delivery_id: id, event, deployment_id: deployment_id ?? undefined };
  const outcome = error_code ?? "succeeded";
  const fields = { attempt: number, trigger, outcome, duration_ms, request_count, status_code };
  log.info("attempt", { ...ids, ...fields }, attemptMetrics(basis, attempt, isCarried, effects));
}

/** Records an attempt and applies its consequences. Does not throw: a failure is part of the returned stage. */
async function record(completed: CompletedAttempt, visit?: Visit): Promise<RecordingStage> {
  const now = new Date();
  const [recorded] = await Promise.allSettled([decideAndWrite(completed, now, visit)]);
  if (recorded.status === "rejected") return { reached: "sent", effects: NO_EFFECTS, error: recorded.reason };
  const { decision, written } = recorded.value;
  const isDecisive = written?.isWritten === true && effectOf(written.before, completed.basis) === "decisive";
  const effects = { ...NO_EFFECTS, isDecisive, isLast: decision.kind !== "retry" };
  const [applied] = await Promise.allSettled([applyConsequences(completed, decision, now, visit)]);
  if (applied.status === "rejected") return { reached: "recorded", effects, error: applied.reason };
  return { reached: "completed", effects: { ...effects, hasDisabledWebhook: applied.value } };
}

/** What follows from an attempt. */
type Outcome = { kind: "succeeded" } | Decision;

/**
 * Decides what follows, and writes it with the attempt.
 * @throws also when a setting is not valid: an attempt that was made must not be lost for that
 */
async function decideAndWrite(
  completed: CompletedAttempt,
  now: Date,
  visit: Visit | undefined,
): Promise<{ decision: Outcome; written: Change | undefined }> {
  const { basis, row, attempt, webhook } = completed;
  const decision = attempt.error_code === undefined ? ({ kind: "succeeded" } as const) : decideOn(completed, now);
  if (decision.kind !== "retry") {
    const status = decision.kind === "succeeded" ? "succeeded" : "failed";
    return { decision, written: await change(basis, attempted(basis, attempt, { status }), row) };
  }
  const place = placeOf(basis, new Date(addSeconds(now, decision.afterSeconds)));
  const transition = attempted(basis, attempt, { status: "pending", place });
  const [written] = await enter(webhook, [{ place, transition, row }], visit !== undefined);
  return { decision, written };
}

/**
 * Updates the webhook's health and notifies the owners of what they should know.
 * @returns whether the webhook was disabled
 */
async function applyConsequences(
  { basis, webhook, attempt }: CompletedAttempt,
  decision: Outcome,
  decidedAt: Date,
  visit: Visit | undefined,
): Promise<boolean> {
  if (decision.kind === "succeeded") {
    if (webhook.failing_since === undefined) return false;
    const isRecovery = await receiverState.clearFailing(webhook);
    // What waits for a probe is sent now. A visit does that by itself.
    if (isRecovery && !visit && checkCircuit(webhook, soon(decidedAt)).kind === "open")
      await lookAgain(webhook, decidedAt);
    return false;
  }
  const { at, error_code, status_code, detail } = attempt;
  if (error_code !== undefined && !basis.test && webhook.failing_since === undefined) {
    await receiverState.markFailing(webhook, at, { at, error_code, status_code, detail });
  }
  const failure = { status_code: status_code ?? null, error_code: error_code ?? null };
  if (decision.kind === "give_up" && decision.disable) {
    return await receiverState.disable(webhook, decision.disable, decidedAt.toISOString(), failure);
  }
  if (basis.test) return false;
  const failing = { ...webhook, failing_since: webhook.failing_since ?? at };
  const nextAttemptAt = decision.kind === "retry" ? addSeconds(decidedAt, decision.afterSeconds) : undefined;
  const dueAt = failingNotificationTime(failing, decidedAt, nextAttemptAt);
  // Last, so that an error does not delay the next attempt. If it is lost, a later failure notices it again.
  if (dueAt) await receiverState.notifyFailing(failing, failure, decidedAt.toISOString(), dueAt);
  return false;
}

/** The clocks of two processes differ by less than this: for another one, the circuit may be open already. */
const CLOCK_DIFFERENCE_SECONDS = 5;
const soon = (now: Date): Date => new Date(addSeconds(now, CLOCK_DIFFERENCE_SECONDS));

function decideOn({ basis, webhook, attempt, retryAfter }: CompletedAttempt, now: Date): Decision {
  // A test delivery is sent once, and so is a redelivery to a disabled webhook.
  const isSingleAttempt = basis.test || webhook.disabled_at !== undefined;
  const failed = {
    attempt: attempt.number - (basis.attempts_before_schedule ?? 0),
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

import { DEFAULT_SCHEDULE } from "../../foundation/manifest/retry-schedule.ts";
import { isOutage } from "../../foundation/platform/aws.ts";
import { settings } from "../../foundation/platform/env.ts";
import { log } from "../../foundation/platform/log.ts";
import { addSeconds } from "../../foundation/platform/time.ts";
import { failingNotificationTime } from "../../foundation/records/notification.ts";
import { checkCircuit, MAX_PROBE_SECONDS } from "../../webhooks/webhook/circuit-breaker.ts";
import * as receiverState from "../../webhooks/webhook/receiver-state-store.ts";
import type { Webhook } from "../../webhooks/webhook/webhook.ts";
import * as webhooks from "../../webhooks/webhook/webhook-store.ts";
import { catchUp, type LineVisit } from "../../webhooks/webhook/worker-call.ts";
import { enter } from "../line/backlog.ts";
import { type Change, change } from "../line/change-delivery.ts";
import { type Attempt, type Delivery, isEarly, isOnRequest, withoutResponse } from "../line/delivery.ts";
import { enqueue, type UnrecordedAttempt } from "../line/delivery-queue.ts";
import * as deliveries from "../line/delivery-store.ts";
import { type AsPlanned, attempted, effectOf, type PlaceKey } from "../line/delivery-transitions.ts";
import { type AttemptEffects, attemptMetrics } from "./attempt-metrics.ts";
import { type Decision, decide, readRetryAfter } from "./retry.ts";

/* What follows a request: its outcome is recorded in the delivery's row, and the next attempt is planned. */

/** An attempt that was made. */
interface CompletedAttempt {
  /** The delivery as read before the request; without a version, it had no row. */
  basis: Delivery;
  /** The row as it is now; absent = as `basis`. */
  row?: Delivery | undefined;
  webhook: Webhook;
  attempt: Attempt;
  /** The `Retry-After` header of the response, not validated. */
  retryAfter: string | undefined;
  /** In which the worker of the webhook made it. It looks at the line again before its end. Absent = a message carried it. */
  visit?: LineVisit | undefined;
}

/** How far an attempt was recorded. */
interface Recorded {
  /** Absent = it is not written, or its webhook is deleted. */
  effects?: AttemptEffects | undefined;
  /** Why all of it must be repeated; absent = nothing must. */
  error?: unknown;
}

const notRecorded = (error: unknown): Recorded => ({ error });

/**
 * Records an attempt and writes one log line, also when it could not be recorded. Then its outcome is enqueued, so that
 * recording it later needs no second request.
 * @returns false when the attempt is not written, and its outcome is enqueued
 * @throws the error of the record when its outcome could not be enqueued either: the delivery is sent again
 */
export async function recordAttempt(completed: CompletedAttempt): Promise<boolean> {
  const recorded = await record(completed, new Date()).catch(notRecorded);
  logAttempt(completed, recorded.effects);
  return recorded.error === undefined || recordLater(toMessage(completed), recorded);
}

function logAttempt({ basis, webhook, attempt, visit }: CompletedAttempt, effects?: AttemptEffects): void {
  const { project_id, webhook_id, id, event, deployment_id } = basis;
  const { number, trigger, duration_ms, request_count, status_code, error_code } = attempt;
  const ids = { project_id, webhook_id, delivery_id: id, event, deployment_id: deployment_id ?? undefined };
  const outcome = error_code ?? "succeeded";
  const fields = { attempt: number, trigger, outcome, duration_ms, request_count, status_code };
  const metrics = attemptMetrics(basis, attempt, visit ? "line" : "carried", effects, webhook.settle_seconds);
  log.info("attempt", { ...ids, ...fields }, metrics);
}

/**
 * Decides what follows an attempt: updates its webhook, then writes it in the row of its delivery. In this order, because a
 * process that ends in between has changed no row: the delivery is received or looked at again, and all of it is repeated.
 * @returns `error`: that of the webhook, which does not keep the attempt from being written
 * @throws also when a setting is not valid: an attempt that was made must not be lost for that
 */
async function record(completed: CompletedAttempt, now: Date): Promise<Recorded> {
  const { basis, attempt } = completed;
  const decision = attempt.error_code === undefined ? undefined : decideOn(completed, now);
  const [applied] = await Promise.allSettled([applyConsequences(completed, decision, now)]);
  const written = await writeAttempt(completed, decision, now);
  const isDecisive = written?.isWritten === true && effectOf(written.before, basis) === "decisive";
  const isLast = !decision || decision.kind === "give_up";
  if (applied.status === "fulfilled") return { effects: { isDecisive, isLast, hasDisabledWebhook: applied.value } };
  return { effects: { isDecisive, isLast, hasDisabledWebhook: false }, error: applied.reason };
}

/**
 * Writes an attempt, without what the receiver sent if DynamoDB or its client rejects the row: no response may keep an attempt
 * from being recorded.
 */
async function writeAttempt(
  { basis, row = basis, webhook, attempt, visit }: CompletedAttempt,
  decision: Decision | undefined,
  now: Date,
): Promise<Change | undefined> {
  const due = decision?.kind === "retry" ? new Date(addSeconds(now, decision.afterSeconds)) : undefined;
  const isRejected = checkCircuit(webhook, now).kind === "closed";
  const write = async (kept: Attempt) => {
    const transition = (followUp?: PlaceKey | AsPlanned) => attempted(basis, kept, followUp);
    if (!due) return change(row, transition(decision?.kind === "as_planned" ? { isRejected } : undefined));
    const failing = asFailing(webhook, basis, attempt);
    return (await enter(failing, [{ delivery: row, due, transition }], visit))[0];
  };
  try {
    return await write(attempt);
  } catch (error) {
    if (isOutage(error)) throw error;
    log.warn("response not recorded", { reason: String(error) });
    return write(withoutResponse(attempt));
  }
}

/**
 * Updates the webhook's health and notifies the owners of what they should know.
 * @returns whether the webhook was disabled
 */
async function applyConsequences(
  { basis, webhook, attempt, retryAfter, visit }: CompletedAttempt,
  decision: Decision | undefined,
  decidedAt: Date,
): Promise<boolean> {
  if (!decision) {
    const isFailing = webhook.failing_since !== undefined;
    // A webhook that still fails is probed again, also if this was cut off in between.
    if (isFailing || isOnRequest(basis)) await catchUp(webhook, decidedAt, visit);
    if (isFailing) await receiverState.clearFailing(webhook);
    return false;
  }
  const { at, error_code, status_code, detail } = attempt;
  if (error_code !== undefined && !basis.test && webhook.failing_since === undefined) {
    await receiverState.markFailing(webhook, at, { at, error_code, status_code, detail });
  }
  // It is about the receiver, not about this delivery alone: RFC 9110, section 10.2.3, and RFC 6585, section 4.
  const isAboutReceiver = status_code === 429 || status_code === 503;
  const pauseSeconds = isAboutReceiver ? Math.min(readRetryAfter(retryAfter, decidedAt) ?? 0, MAX_PROBE_SECONDS) : 0;
  if (pauseSeconds > 0) await receiverState.postponeProbe(webhook, addSeconds(decidedAt, pauseSeconds));
  const failure = { status_code: status_code ?? null, error_code: error_code ?? null };
  if (decision.kind === "give_up" && decision.disable) {
    return await receiverState.disable(webhook, decision.disable, decidedAt.toISOString(), failure);
  }
  if (basis.test) return false;
  const failing = asFailing(webhook, basis, attempt);
  const nextAttemptAt =
    decision.kind === "retry" ? addSeconds(decidedAt, decision.afterSeconds) : basis.next_attempt_at;
  const dueAt = failingNotificationTime(failing, decidedAt, nextAttemptAt);
  if (dueAt) await receiverState.notifyFailing(failing, failure, decidedAt.toISOString(), dueAt);
  return false;
}

/** Returns the webhook as it is after a failed attempt. A test delivery does not make it fail. */
const asFailing = (webhook: Webhook, { test }: Delivery, { at }: Pick<Attempt, "at">): Webhook =>
  test || webhook.failing_since !== undefined ? webhook : { ...webhook, failing_since: at };

function decideOn({ basis, webhook, attempt, retryAfter }: CompletedAttempt, now: Date): Decision {
  // A test delivery is sent once, and so is a redelivery to a disabled webhook.
  const isSingleAttempt = basis.test || webhook.disabled_at !== undefined;
  const failed = {
    attempt: attempt.number - (basis.attempts_before_schedule ?? 0),
    statusCode: attempt.status_code,
    retryAfterSeconds: readRetryAfter(retryAfter, now),
    failingSince: webhook.failing_since,
    isEarly: isEarly(basis, attempt.at),
  };
  const policy = {
    schedule: isSingleAttempt ? [] : (settings.retrySchedule() ?? DEFAULT_SCHEDULE),
    disableAfterSeconds: isSingleAttempt ? Number.POSITIVE_INFINITY : settings.disableAfterSeconds(),
  };
  return decide(failed, policy, now, Math.random());
}

/* What follows if that fails: the outcome waits in a queue. */

/** How long an attempt that could not be recorded waits before it is tried again. */
const UNRECORDED_DELAY_SECONDS = 15;

/**
 * Failures after which an attempt is not enqueued again: five minutes, in which a bad deployment is rolled back. After that SQS
 * counts: its message is received every six minutes, and is a dead letter after ten hours. An outage of AWS counts as no
 * failure, so that it may last for as long as it does.
 */
const MAX_FAILURES = 20;

/**
 * Enqueues the outcome of an attempt to be recorded later.
 * @returns whether the attempt is written, and only what follows for its webhook is missing
 * @throws the error of the record when SQS does not accept the message, or recording has failed too often
 */
async function recordLater(message: UnrecordedAttempt, { effects, error }: Recorded): Promise<boolean> {
  const failures = (message.failures ?? 0) + (isOutage(error) ? 0 : 1);
  const again = { ...message, failures };
  if (failures > MAX_FAILURES || (await enqueue([again], UNRECORDED_DELAY_SECONDS)).length > 0) throw error;
  const missing = effects ? "webhook not updated after an attempt" : "attempt not recorded";
  log.error(`${missing}, enqueued to be recorded later`, error);
  return effects !== undefined;
}

function toMessage({ basis, webhook: { url }, attempt, retryAfter }: CompletedAttempt): UnrecordedAttempt {
  const { body, attempts, ...stored } = basis;
  const kept = basis.version === undefined ? basis : stored;
  return { kind: "unrecorded", project_id: basis.project_id, basis: kept, url, attempt, retry_after: retryAfter };
}

/**
 * Records an attempt whose first record failed. When recording fails again, enqueues it again, because its message would be
 * received only after minutes: by then the request might have been sent again.
 * @throws when that fails too, or recording has failed too often: the message is received again
 */
export async function recordUnrecorded(message: UnrecordedAttempt): Promise<void> {
  const { project_id, webhook_id, id } = message.basis;
  const { number } = message.attempt;
  log.tag({ project_id, webhook_id, delivery_id: id, attempt: number });
  const recorded = await recordMessage(message).catch(notRecorded);
  const isRecorded = recorded.error === undefined || (await recordLater(message, recorded));
  if (isRecorded) log.info("attempt recorded later", { attempt: number });
}

async function recordMessage({ basis, url, attempt, retry_after }: UnrecordedAttempt): Promise<Recorded> {
  const { project_id, webhook_id, id } = basis;
  const [row, found] = await Promise.all([deliveries.find(webhook_id, id), webhooks.find(project_id, webhook_id)]);
  const body = basis.body ?? row?.body;
  // The rows of a deleted webhook cannot be read any more.
  if (body === undefined || !found) return {};
  // The outcome says nothing about another URL: the writes to the webhook take effect for this one only.
  const webhook = { ...found, url: url ?? found.url };
  return record({ basis: { ...basis, body }, row, webhook, attempt, retryAfter: retry_after }, new Date());
}

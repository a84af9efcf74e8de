import { type Attempt, type Delivery, dueAt, MAX_QUEUE_DELAY_SECONDS, type Trigger } from "../deliveries/delivery.ts";
import { type DueAttempt, enqueue } from "../deliveries/delivery-queue.ts";
import * as deliveries from "../deliveries/delivery-store.ts";
import { settings } from "../platform/env.ts";
import { log } from "../platform/log.ts";
import { addSeconds } from "../platform/time.ts";
import type { Outcome } from "../receivers/receiver-client.ts";
import * as receivers from "../receivers/receiver-client-pool.ts";
import { signatureHeaders, unexpiredSecrets } from "../receivers/signature.ts";
import type { Webhook } from "../webhooks/webhook.ts";
import type { SigningSecrets } from "../webhooks/webhook-secret-store.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { type AttemptEffects, attemptMetrics } from "./attempt-metrics.ts";
import { readForAttempt } from "./attempt-store.ts";
import { checkCircuit } from "./circuit-breaker.ts";
import { KeyedSemaphore } from "./keyed-semaphore.ts";
import { DEFAULT_SCHEDULE, type Decision, decide, readRetryAfter } from "./retry.ts";

/*
 * One attempt: read the row, send, record. At-least-once: the record is written after the answer, so a crash in between
 * repeats the attempt, under the same delivery id.
 */

/** Attempts that this process works on now. A second message for one of them is dropped; the row would refuse it later. */
const inProgress = new Set<string>();

/** Makes the attempt that a message asks for, unless it was made before or nothing is to be sent any more. */
export async function makeAttempt(due: DueAttempt): Promise<void> {
  // The next attempt of a delivery is another one: its message may be here before this process has finished with the last.
  const key = `${due.delivery_id} ${due.attempt}`;
  if (inProgress.has(key)) return;
  inProgress.add(key);
  try {
    await attemptOnce(due);
  } finally {
    inProgress.delete(key);
  }
}

async function attemptOnce(due: DueAttempt): Promise<void> {
  const { project_id, webhook_id, delivery_id, attempt, waited_for_slot } = due;
  log.tag({ project_id, webhook_id, delivery_id, attempt });
  // URL and secret as they are now: a delivery that waited for hours follows the webhook's changes.
  const { delivery, webhook, secrets } = await readForAttempt(due);
  if (delivery?.status !== "pending" || delivery.attempt_count !== attempt - 1) return;
  if (!webhook || !secrets) return finishWithoutAttempt(delivery, "cancelled");

  const trigger = delivery.trigger ?? "schedule";
  if (!isAskedFor(trigger)) {
    if (webhook.disabled_at !== undefined) return finishWithoutAttempt(delivery, "held");
    const waitSeconds = await breakerWait(webhook);
    if (waitSeconds !== undefined) return postpone(delivery, waitSeconds);
  }
  await withSlot(delivery, async () => {
    const at = new Date();
    const outcome = await receivers.post(webhook.url, headersOf(delivery, secrets, at), delivery.body);
    await record(delivery, webhook, { trigger, at, outcome, hasWaitedForSlot: waited_for_slot ?? false });
  });
}

/** Somebody wants this one attempt, on this webhook as it is: neither its being disabled nor the breaker stands in the way. */
const isAskedFor = (trigger: Trigger): boolean => trigger === "redeliver" || trigger === "test";

/** Seconds to wait for a webhook that keeps failing; undefined to go ahead. */
async function breakerWait(webhook: Webhook): Promise<number | undefined> {
  const now = new Date();
  const verdict = checkCircuit(webhook, now, Math.random());
  if (verdict.kind === "send") return undefined;
  if (verdict.kind === "wait") return verdict.afterSeconds;
  if (await webhooks.claimProbe(webhook, verdict.nextProbeAt)) return undefined;
  // Another sender was faster: as if its claim had been there before.
  const second = checkCircuit({ ...webhook, probe_at: verdict.nextProbeAt }, now, Math.random());
  return second.kind === "wait" ? second.afterSeconds : 0;
}

async function postpone(delivery: Delivery, afterSeconds: number): Promise<void> {
  const now = new Date();
  const due = dueAt(now, afterSeconds, settings.deliveryGraceSeconds());
  const isOurs = await deliveries.postpone(delivery, addSeconds(now, afterSeconds), due);
  await (isOurs ? enqueueAfter(delivery, afterSeconds) : enqueue([delivery]));
}

/** When somebody has asked for an attempt meanwhile, its message may have come while this one was in work: it is sent again. */
async function finishWithoutAttempt(delivery: Delivery, status: "held" | "cancelled"): Promise<void> {
  if (!(await deliveries.finishWithoutAttempt(delivery, status))) await enqueue([delivery]);
}

const MAX_PER_WEBHOOK = 5;
/** How long none of its places may come free, and how long all may take that are before. */
const SLOT_PATIENCE_MS = 200;
const MAX_SLOT_WAIT_MS = 2_000;
const BUSY_DELAY_SECONDS = 5;
const slots = new KeyedSemaphore(MAX_PER_WEBHOOK);

/** A receiver that hangs takes up a few places, not all; the rest of its deliveries go back to the queue for a while. */
async function withSlot(delivery: Delivery, send: () => Promise<void>): Promise<void> {
  const giveBack = await slots.acquire(delivery.webhook_id, SLOT_PATIENCE_MS, MAX_SLOT_WAIT_MS);
  if (!giveBack) return enqueue([delivery], BUSY_DELAY_SECONDS, { waited_for_slot: true });
  try {
    await send();
  } finally {
    giveBack();
  }
}

function headersOf({ id, event, body }: Delivery, secrets: SigningSecrets, at: Date): Record<string, string> {
  return {
    "Content-Type": "application/json",
    "User-Agent": "Deployment-Webhooks/1.0",
    "X-Service-Event": event,
    "X-Service-Delivery": id,
    ...signatureHeaders({ deliveryId: id, at, body }, secrets.current, unexpiredSecrets(secrets.previous, at)),
  };
}

interface CompletedAttempt {
  trigger: Trigger;
  at: Date;
  outcome: Outcome;
  /** It has waited for one of the webhook's places. */
  hasWaitedForSlot: boolean;
}

async function record(delivery: Delivery, webhook: Webhook, made: CompletedAttempt): Promise<void> {
  const { trigger, at, outcome, hasWaitedForSlot } = made;
  const attempt: Attempt = {
    number: delivery.attempt_count + 1,
    at: at.toISOString(),
    duration_ms: outcome.durationMs,
    status_code: outcome.statusCode,
    error_code: outcome.errorCode,
    response_excerpt: outcome.excerpt,
    trigger,
    detail: outcome.detail,
  };
  const came: AttemptEffects = { isDecisive: false, isOver: true, hasDisabled: false };
  try {
    if (attempt.error_code === undefined) await recordSuccess(delivery, webhook, attempt, came);
    else await recordFailure(delivery, webhook, attempt, outcome, came);
  } finally {
    // The one line of this attempt. A request that was made but could not be recorded has one too.
    const { number, duration_ms, status_code, error_code } = attempt;
    const { project_id, webhook_id, id, event, deployment_id } = delivery;
    const ids = { project_id, webhook_id, delivery_id: id, event, deployment_id };
    const fields = { attempt: number, trigger, outcome: error_code ?? "succeeded", duration_ms, status_code };
    log.info("attempt", { ...ids, ...fields }, attemptMetrics(delivery, attempt, hasWaitedForSlot, came));
  }
}

async function recordSuccess(
  delivery: Delivery,
  webhook: Webhook,
  attempt: Attempt,
  came: AttemptEffects,
): Promise<void> {
  came.isDecisive = await recordAttemptResult(delivery, attempt, { status: "succeeded" });
  if (webhook.failing_since !== undefined) await webhooks.clearFailing(webhook);
}

async function recordFailure(
  delivery: Delivery,
  webhook: Webhook,
  attempt: Attempt,
  outcome: Outcome,
  came: AttemptEffects,
): Promise<void> {
  const now = new Date();
  const decision = decideOn(delivery, webhook, outcome, now);
  came.isOver = decision.kind === "give_up";
  came.isDecisive = await recordAttemptResult(delivery, attempt, nextOf(decision, now));
  if (!delivery.test && webhook.failing_since === undefined) await webhooks.markFailing(webhook, attempt.at);
  if (decision.kind === "give_up" && decision.disable) {
    came.hasDisabled = await webhooks.disable(webhook, decision.disable, now.toISOString());
  }
  if (decision.kind === "retry" && came.isDecisive) {
    await enqueueAfter({ ...delivery, attempt_count: attempt.number }, decision.afterSeconds);
  }
}

/**
 * @returns false when nothing follows from this attempt: it was recorded before, or somebody asked for another one while it
 * was made, which is due now
 */
async function recordAttemptResult(delivery: Delivery, attempt: Attempt, next: deliveries.NextState): Promise<boolean> {
  if (await deliveries.recordAttempt(delivery, attempt, next)) return true;
  const isOvertaken = await deliveries.recordOvertaken(delivery, attempt);
  if (isOvertaken) await enqueue([{ ...delivery, attempt_count: attempt.number }]);
  return false;
}

function decideOn(delivery: Delivery, webhook: Webhook, outcome: Outcome, now: Date): Decision {
  // A sample is sent once. On a disabled webhook the one attempt asked for is all there is.
  const isOnce = delivery.test || webhook.disabled_at !== undefined;
  const failure = {
    attempt: delivery.attempt_count + 1 - (delivery.schedule_from ?? 0),
    statusCode: outcome.statusCode,
    retryAfterSeconds: readRetryAfter(outcome.retryAfter, now),
    failingSince: webhook.failing_since,
  };
  const policy = {
    schedule: isOnce ? [] : (settings.retrySchedule() ?? DEFAULT_SCHEDULE),
    disableAfterSeconds: isOnce ? Number.POSITIVE_INFINITY : settings.disableAfterSeconds(),
  };
  return decide(failure, policy, now, Math.random());
}

function nextOf(decision: Decision, now: Date): deliveries.NextState {
  if (decision.kind === "give_up") return { status: "failed" };
  const { afterSeconds } = decision;
  const due = dueAt(now, afterSeconds, settings.deliveryGraceSeconds());
  return { status: "pending", nextAttemptAt: addSeconds(now, afterSeconds), dueAt: due };
}

/** What is further away than the queue can delay, the sweep hands over when its time has come. */
async function enqueueAfter(delivery: Delivery, afterSeconds: number): Promise<void> {
  if (afterSeconds <= MAX_QUEUE_DELAY_SECONDS) await enqueue([delivery], Math.round(afterSeconds));
}

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
 * One attempt: read the row, send the request, record the outcome. Delivery is at least once: the outcome is recorded
 * after the response, so a crash in between repeats the attempt under the same delivery id.
 */

/**
 * Attempts in flight in this process. A duplicate message for one of them is dropped early; its write would fail
 * anyway.
 */
const inFlight = new Set<string>();

/**
 * Makes the attempt that a message requests. Does nothing if it was made before or the delivery is no longer pending.
 */
export async function makeAttempt(due: DueAttempt): Promise<void> {
  // The number is part of the key: the message of the next attempt may arrive before this attempt is finished.
  const key = `${due.delivery_id} ${due.attempt}`;
  if (inFlight.has(key)) return;
  inFlight.add(key);
  let unfinished: Delivery | undefined;
  try {
    unfinished = await attemptOnce(due);
  } finally {
    inFlight.delete(key);
  }
  // Enqueue after `inFlight` is cleared, because a message that arrives before is dropped as a duplicate.
  if (unfinished) await enqueue([unfinished]);
}

/**
 * Makes the attempt unless the row shows that there is nothing to do.
 * @returns the delivery if it was to be held or postponed, but a new attempt was requested in the meantime: it must be
 * enqueued again, because the message of that request may have been dropped
 */
async function attemptOnce(due: DueAttempt): Promise<Delivery | undefined> {
  const { project_id, webhook_id, delivery_id, attempt, waited_for_slot } = due;
  log.tag({ project_id, webhook_id, delivery_id, attempt });
  // Read the current URL and secret, because they may have changed while the delivery waited.
  const { delivery, webhook, secrets } = await readForAttempt(due);
  if (delivery?.status !== "pending" || delivery.attempt_count !== attempt - 1) return undefined;
  if (!webhook) return finishWithoutAttempt(delivery, "cancelled");
  if (!secrets) return finishWithoutSecret(due, delivery);

  const trigger = delivery.trigger ?? "schedule";
  if (!ignoresWebhookHealth(trigger)) {
    if (webhook.disabled_at !== undefined) return finishWithoutAttempt(delivery, "held");
    const waitSeconds = await circuitWaitSeconds(webhook);
    if (waitSeconds !== undefined) return postpone(delivery, waitSeconds);
  }
  await withinConcurrencyLimit(delivery, async () => {
    const at = new Date();
    const outcome = await receivers.post(webhook.url, requestHeaders(delivery, secrets, at), delivery.body);
    await finishAttempt(delivery, webhook, { trigger, at, outcome, hasWaitedForSlot: waited_for_slot ?? false });
  });
  return undefined;
}

/**
 * Cancels a delivery whose webhook was deleted during the read. Webhook and secret are deleted in one transaction, but
 * a batch read is not a transaction: it may return the webhook without its secret.
 * @throws Error when the webhook still exists, because a lost secret must not cancel its deliveries
 */
async function finishWithoutSecret(due: DueAttempt, delivery: Delivery): Promise<Delivery | undefined> {
  const { webhook } = await readForAttempt(due);
  if (webhook) throw new Error(`The webhook ${webhook.id} has no secret.`);
  return finishWithoutAttempt(delivery, "cancelled");
}

/** Redeliveries and test deliveries are sent even when the webhook is disabled or its circuit is open. */
const ignoresWebhookHealth = (trigger: Trigger): boolean => trigger === "redeliver" || trigger === "test";

/** Returns the seconds to wait while the webhook's circuit is open; undefined = send now. */
async function circuitWaitSeconds(webhook: Webhook): Promise<number | undefined> {
  const now = new Date();
  const decision = checkCircuit(webhook, now, Math.random());
  if (decision.kind === "send") return undefined;
  if (decision.kind === "wait") return decision.afterSeconds;
  if (await webhooks.claimProbe(webhook, decision.nextProbeAt)) return undefined;
  // Another sender claimed the probe first. Decide again as if the webhook had been read after that claim.
  const second = checkCircuit({ ...webhook, probe_at: decision.nextProbeAt }, now, Math.random());
  return second.kind === "wait" ? second.afterSeconds : 0;
}

/** @returns the delivery if a new attempt was requested in the meantime */
async function postpone(delivery: Delivery, afterSeconds: number): Promise<Delivery | undefined> {
  const now = new Date();
  const due = dueAt(now, afterSeconds, settings.deliveryGraceSeconds());
  if (!(await deliveries.postpone(delivery, addSeconds(now, afterSeconds), due))) return delivery;
  await enqueueAfter(delivery, afterSeconds);
  return undefined;
}

/** @returns the delivery if a new attempt was requested in the meantime */
async function finishWithoutAttempt(delivery: Delivery, status: "held" | "cancelled"): Promise<Delivery | undefined> {
  return (await deliveries.finishWithoutAttempt(delivery, status)) ? undefined : delivery;
}

/** Max requests in flight to one webhook, in this process. */
const MAX_PER_WEBHOOK = 5;
/** Max wait without any slot being released. */
const MAX_WAIT_WITHOUT_RELEASE_MS = 200;
/** Max wait overall. */
const MAX_SLOT_WAIT_MS = 2_000;
const BUSY_DELAY_SECONDS = 5;
const slots = new KeyedSemaphore(MAX_PER_WEBHOOK);

/**
 * Sends when the webhook has a free slot, or enqueues the attempt with a delay. The limit keeps a hanging receiver from
 * delaying the deliveries of other webhooks.
 */
async function withinConcurrencyLimit(delivery: Delivery, send: () => Promise<void>): Promise<void> {
  const release = await slots.acquire(delivery.webhook_id, MAX_WAIT_WITHOUT_RELEASE_MS, MAX_SLOT_WAIT_MS);
  if (!release) return enqueue([delivery], BUSY_DELAY_SECONDS, { waited_for_slot: true });
  try {
    await send();
  } finally {
    release();
  }
}

function requestHeaders({ id, event, body }: Delivery, secrets: SigningSecrets, at: Date): Record<string, string> {
  return {
    "Content-Type": "application/json",
    "User-Agent": "Deployment-Webhooks/1.0",
    "X-Service-Event": event,
    "X-Service-Delivery": id,
    ...signatureHeaders({ deliveryId: id, at, body }, secrets.current, unexpiredSecrets(secrets.previous, at)),
  };
}

/** A request that was sent, with its outcome. */
interface CompletedRequest {
  trigger: Trigger;
  at: Date;
  outcome: Outcome;
  /** The attempt waited because too many requests to its webhook were in flight. */
  hasWaitedForSlot: boolean;
}

/**
 * Records the attempt and writes one log line, also when the request was sent but could not be recorded.
 */
async function finishAttempt(delivery: Delivery, webhook: Webhook, request: CompletedRequest): Promise<void> {
  const attempt = toAttempt(delivery, request);
  const stage = await record(delivery, webhook, attempt, request.outcome);
  logAttempt(delivery, attempt, request.hasWaitedForSlot, stage.effects);
  if (stage.reached !== "completed") throw stage.error;
}

function toAttempt({ attempt_count }: Delivery, { trigger, at, outcome }: CompletedRequest): Attempt {
  return {
    number: attempt_count + 1,
    at: at.toISOString(),
    duration_ms: outcome.durationMs,
    request_count: outcome.requestCount,
    status_code: outcome.statusCode,
    error_code: outcome.errorCode,
    response_excerpt: outcome.excerpt,
    trigger,
    detail: outcome.detail,
  };
}

function logAttempt(delivery: Delivery, attempt: Attempt, hasWaitedForSlot: boolean, effects: AttemptEffects): void {
  const { project_id, webhook_id, id, event, deployment_id } = delivery;
  const { number, trigger, duration_ms, request_count, status_code, error_code } = attempt;
  const ids = { project_id, webhook_id, delivery_id: id, event, deployment_id };
  const outcome = error_code ?? "succeeded";
  const fields = { attempt: number, trigger, outcome, duration_ms, request_count, status_code };
  log.info("attempt", { ...ids, ...fields }, attemptMetrics(delivery, attempt, hasWaitedForSlot, effects));
}

/** The last stage that the work after a request reached, with the effects that are certain by then. */
type RecordingStage =
  /** The request was sent. Its outcome is not recorded. */
  | { reached: "sent"; effects: AttemptEffects; error: unknown }
  /** The outcome is recorded. Updating the webhook's health or enqueueing the next attempt failed. */
  | { reached: "recorded"; effects: AttemptEffects; error: unknown }
  | { reached: "completed"; effects: AttemptEffects };

const NO_EFFECTS: AttemptEffects = { isDecisive: false, isLast: false, hasDisabledWebhook: false };

/** Records an attempt and applies its consequences. Does not throw: a failure is part of the returned stage. */
async function record(
  delivery: Delivery,
  webhook: Webhook,
  attempt: Attempt,
  outcome: Outcome,
): Promise<RecordingStage> {
  const [recorded] = await Promise.allSettled([recordOutcome(delivery, webhook, attempt, outcome)]);
  if (recorded.status === "rejected") return { reached: "sent", effects: NO_EFFECTS, error: recorded.reason };
  const { decision, isDecisive } = recorded.value;
  const effects = { ...NO_EFFECTS, isDecisive, isLast: decision.kind !== "retry" };
  const [applied] = await Promise.allSettled([applyConsequences(delivery, webhook, attempt, recorded.value)]);
  if (applied.status === "rejected") return { reached: "recorded", effects, error: applied.reason };
  return { reached: "completed", effects: { ...effects, hasDisabledWebhook: applied.value } };
}

interface RecordedOutcome {
  decision: { kind: "succeeded" } | Decision;
  /** When the decision was made. */
  decidedAt: Date;
  isDecisive: boolean;
}

async function recordOutcome(
  delivery: Delivery,
  webhook: Webhook,
  attempt: Attempt,
  outcome: Outcome,
): Promise<RecordedOutcome> {
  const now = new Date();
  const isSuccess = outcome.errorCode === undefined;
  const decision = isSuccess ? ({ kind: "succeeded" } as const) : decideOn(delivery, webhook, outcome, now);
  const isDecisive = await recordAttemptResult(delivery, attempt, nextStateOf(decision, now));
  return { decision, decidedAt: now, isDecisive };
}

/**
 * Updates the webhook's health and enqueues the next attempt.
 * @returns whether the webhook was disabled
 */
async function applyConsequences(
  delivery: Delivery,
  webhook: Webhook,
  attempt: Attempt,
  { decision, decidedAt, isDecisive }: RecordedOutcome,
): Promise<boolean> {
  if (decision.kind === "succeeded") {
    if (webhook.failing_since !== undefined) await webhooks.clearFailing(webhook);
    return false;
  }
  if (!delivery.test && webhook.failing_since === undefined) await webhooks.markFailing(webhook, attempt.at);
  if (decision.kind === "give_up") {
    if (!decision.disable) return false;
    return await webhooks.disable(webhook, decision.disable, decidedAt.toISOString());
  }
  if (isDecisive) await enqueueAfter({ ...delivery, attempt_count: attempt.number }, decision.afterSeconds);
  return false;
}

/**
 * Writes the attempt and the next state of its delivery.
 * @returns false when nothing follows from this attempt, because it was recorded before, or because a new attempt was
 *   requested while it was in flight. The new attempt is due now and is enqueued here.
 */
async function recordAttemptResult(delivery: Delivery, attempt: Attempt, next: deliveries.NextState): Promise<boolean> {
  if (await deliveries.recordAttempt(delivery, attempt, next)) return true;
  const isOvertaken = await deliveries.recordOvertaken(delivery, attempt);
  if (isOvertaken) await enqueue([{ ...delivery, attempt_count: attempt.number }]);
  return false;
}

function decideOn(delivery: Delivery, webhook: Webhook, outcome: Outcome, now: Date): Decision {
  // A test delivery is sent once, and so is a redelivery to a disabled webhook.
  const isSingleAttempt = delivery.test || webhook.disabled_at !== undefined;
  const failed = {
    attempt: delivery.attempt_count + 1 - (delivery.attempts_before_schedule ?? 0),
    statusCode: outcome.statusCode,
    retryAfterSeconds: readRetryAfter(outcome.retryAfter, now),
    failingSince: webhook.failing_since,
  };
  const policy = {
    schedule: isSingleAttempt ? [] : (settings.retrySchedule() ?? DEFAULT_SCHEDULE),
    disableAfterSeconds: isSingleAttempt ? Number.POSITIVE_INFINITY : settings.disableAfterSeconds(),
  };
  return decide(failed, policy, now, Math.random());
}

function nextStateOf(decision: RecordedOutcome["decision"], now: Date): deliveries.NextState {
  if (decision.kind === "succeeded") return { status: "succeeded" };
  if (decision.kind === "give_up") return { status: "failed" };
  const { afterSeconds } = decision;
  const due = dueAt(now, afterSeconds, settings.deliveryGraceSeconds());
  return { status: "pending", nextAttemptAt: addSeconds(now, afterSeconds), dueAt: due };
}

/** Enqueues an attempt with a delay. An attempt beyond the queue's maximum delay is left to the sweep. */
async function enqueueAfter(delivery: Delivery, afterSeconds: number): Promise<void> {
  if (afterSeconds <= MAX_QUEUE_DELAY_SECONDS) await enqueue([delivery], Math.round(afterSeconds));
}

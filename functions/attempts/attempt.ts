import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type Delivery,
  dueAt,
  isParked,
  type PendingDelivery,
  SENDING_SECONDS,
  type Trigger,
} from "../deliveries/delivery.ts";
import { enqueue, type Lane, laneOf } from "../deliveries/delivery-queue.ts";
import * as deliveries from "../deliveries/delivery-store.ts";
import { hold } from "../deliveries/hold.ts";
import { ensureWakeUp } from "../deliveries/parking-store.ts";
import { settings } from "../platform/env.ts";
import { log } from "../platform/log.ts";
import { addSeconds } from "../platform/time.ts";
import { deliveryHeaders } from "../receivers/delivery-headers.ts";
import type { Outcome } from "../receivers/receiver-client.ts";
import * as receivers from "../receivers/receiver-client-pool.ts";
import { unexpiredSecrets } from "../receivers/signature.ts";
import { checkCircuit } from "../webhooks/circuit-breaker.ts";
import { holdsDeliveries } from "../webhooks/suspension.ts";
import type { Webhook } from "../webhooks/webhook.ts";
import type { SigningSecrets } from "../webhooks/webhook-secret-store.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { readForAttempt } from "./attempt-store.ts";
import { recordAttempt } from "./record.ts";
import { noteResponseTime } from "./response-times.ts";
import { acquireSlot } from "./slots.ts";
import { markSlow, noteDuration, SLOW_AFTER_MS } from "./slow-mark.ts";

/*
 * One attempt: read the rows, send the request, record the outcome. Delivery is at least once: the outcome is recorded
 * after the response, so a crash in between repeats the attempt under the same delivery id.
 *
 * The first attempt of a delivery that its message carries writes the row once, with the outcome. On every other path
 * the row is written before: when the message was received before, when the attempt has to wait, and when the receiver
 * has not answered for two seconds. A row with several messages is sent by one sender at a time, which claims it.
 */

/** An attempt to be made. */
export interface AttemptRequest {
  project_id: string;
  webhook_id: string;
  delivery_id: string;
  /** Number of the attempt; undefined = the next one, whatever its number. */
  attempt?: number;
  /** The delivery, when the message carries it. */
  carried?: PendingDelivery;
  /** The message was received before, so a request may have been sent. */
  isRepeated?: boolean;
  /** When the sweep enqueues the row again; undefined when the message carries the delivery. */
  validUntil?: string;
  /** How often the attempt was delayed because no slot was free. */
  waits?: number | undefined;
  /** The lane of the sender; default: `normal`. */
  lane?: Lane;
  /** Time of the probe after this one, when the attempt probes a webhook whose circuit is open. */
  nextProbeAt?: string;
  /** The attempt is made by a drain. It is neither parked nor delayed: the drain decides when it is made. */
  isDrain?: boolean;
  /** Returns whether there is time for a request and its record; absent = always. */
  hasTimeToSend?: () => boolean;
}

/** `delayed`: no slot was free. `skipped`: there was nothing to send. */
export type AttemptResult = "succeeded" | "failed" | "delayed" | "skipped";

/**
 * Makes an attempt, or plans it for later. Does nothing if it was made before or the delivery is no longer pending.
 */
export async function makeAttempt(request: AttemptRequest): Promise<AttemptResult> {
  const { project_id, webhook_id, delivery_id, attempt } = request;
  log.tag({ project_id, webhook_id, delivery_id, attempt });
  // Acquire the slot before the read, so that the request is not sent with a URL or a secret that is seconds old.
  const release = await acquireSlot(project_id, webhook_id);
  if (!release) {
    await delay(request);
    return "delayed";
  }
  try {
    return await attemptWithSlot(request);
  } finally {
    release();
  }
}

/** Delays of an attempt that found no slot, in seconds. The last one repeats. */
const BUSY_DELAYS_SECONDS = [5, 5, 10, 20, 40];

/**
 * Enqueues the attempt again for later, in the slow lane, or leaves it to the sweep. Writes the row of a delivery that
 * has none.
 * @param afterSeconds absent = no slot was free: the delay depends on the number of delays before
 */
export async function delay(request: AttemptRequest, afterSeconds?: number): Promise<void> {
  const { carried, validUntil, waits = 0, isDrain } = request;
  const delaySeconds = afterSeconds ?? BUSY_DELAYS_SECONDS[Math.min(waits, BUSY_DELAYS_SECONDS.length - 1)] ?? 0;
  const next = { lane: "slow", delaySeconds, waits: afterSeconds === undefined ? waits + 1 : request.waits } as const;
  if (isDrain) return;
  if (carried) {
    const planned = replanned(carried, delaySeconds);
    if (await deliveries.insert(planned)) await enqueue([planned], next);
    return;
  }
  if (validUntil === undefined || isStale(request, delaySeconds)) return;
  const { project_id, webhook_id, delivery_id: id, attempt = 1 } = request;
  await enqueue([{ project_id, webhook_id, id, attempt_count: attempt - 1, due_at: validUntil }], next);
}

/** Returns whether the sweep enqueues the row again within the time: a message put off until then is one too many. */
const isStale = ({ validUntil }: AttemptRequest, afterSeconds = 0): boolean =>
  validUntil !== undefined && addSeconds(new Date(), afterSeconds) >= validUntil;

/** Returns a carried delivery with a due time from now. */
function replanned(delivery: PendingDelivery, afterSeconds: number): PendingDelivery {
  return { ...delivery, due_at: dueAt(new Date(), afterSeconds, settings.deliveryGraceSeconds()) };
}

async function attemptWithSlot(request: AttemptRequest): Promise<AttemptResult> {
  // Read the current URL and secret, because they may have changed while the delivery waited.
  const { delivery: row, webhook, secrets } = await readForAttempt(request);
  const delivery = row ?? request.carried;
  if (!delivery || (row && !isDue(row, request))) return "skipped";
  const isStored = row !== undefined;
  if (!webhook) return cancel(delivery, isStored);
  if (!secrets) return cancelWithoutSecret(request, delivery, isStored);

  const trigger = delivery.trigger ?? "schedule";
  const isOnRequest = ignoresWebhookHealth(trigger);
  // A suspension holds what a user has requested too.
  const isHeldBack = isOnRequest ? webhook.suspended_at !== undefined : holdsDeliveries(webhook);
  if (isHeldBack) return holdOrAttempt(request, delivery, isStored);
  if (!isOnRequest && !request.isDrain && (await parkIfOpen(delivery, isStored, webhook))) return "skipped";
  if (request.lane !== "slow" && laneOf(webhook) === "slow") return moveToSlowLane(request, delivery, isStored);
  if (request.hasTimeToSend?.() === false) {
    await delay(request, 0);
    return "delayed";
  }
  if (request.nextProbeAt !== undefined && !(await webhooks.claimProbe(webhook, request.nextProbeAt))) return "skipped";
  return send(request, { delivery, isStored, webhook, secrets, trigger });
}

/** Returns whether the attempt that a message requests is the next one of a pending row. */
const isDue = ({ status, attempt_count }: Delivery, { attempt }: AttemptRequest): boolean =>
  status === "pending" && (attempt === undefined || attempt_count === attempt - 1);

/** Cancels a delivery whose webhook was deleted. Without a row there is nothing to update. */
async function cancel(delivery: Delivery, isStored: boolean): Promise<"skipped"> {
  if (isStored) await deliveries.cancel(delivery);
  log.info("delivery cancelled, its webhook is deleted", { delivery_id: delivery.id });
  return "skipped";
}

/**
 * Cancels a delivery whose webhook was deleted during the read. Webhook and secret are deleted in one transaction, but
 * a batch read is not a transaction: it may return the webhook without its secret.
 * @throws Error when the webhook still exists, because a lost secret must not cancel its deliveries
 */
async function cancelWithoutSecret(
  request: AttemptRequest,
  delivery: Delivery,
  isStored: boolean,
): Promise<AttemptResult> {
  const { webhook, secrets } = await readForAttempt(request);
  if (webhook && !secrets) throw new Error(`The webhook ${webhook.id} has no secret.`);
  // Both were read this time, or both are deleted.
  return webhook ? attemptWithSlot(request) : cancel(delivery, isStored);
}

/** Redeliveries and test deliveries are sent even when the webhook is disabled or its circuit is open. */
const ignoresWebhookHealth = (trigger: Trigger): boolean => trigger === "redeliver" || trigger === "test";

/** Holds a delivery. Attempts it again when it has changed, or its webhook holds deliveries no more. */
async function holdOrAttempt(request: AttemptRequest, delivery: Delivery, isStored: boolean): Promise<AttemptResult> {
  const { kind } = await hold(delivery, isStored, async () => (await readForAttempt(request)).webhook);
  return kind === "held" ? "skipped" : attemptWithSlot(request);
}

/** Parks a delivery while the circuit of its webhook is open. @returns false when the circuit is closed */
async function parkIfOpen(delivery: Delivery, isStored: boolean, webhook: Webhook): Promise<boolean> {
  const circuit = checkCircuit(webhook, new Date());
  if (circuit.kind === "closed") return false;
  const probeAt = new Date(Math.max(Date.now(), circuit.probeAt.getTime())).toISOString();
  await ensureWakeUp(webhook, circuit.probeAt);
  if (!isStored) await deliveries.insertParked(delivery as PendingDelivery, probeAt);
  // A row that is parked already keeps its place before the others.
  else if (!isParked(delivery)) await deliveries.park(delivery, probeAt);
  return true;
}

async function moveToSlowLane(request: AttemptRequest, delivery: Delivery, isStored: boolean): Promise<"skipped"> {
  if (isStale(request)) return "skipped";
  const { validUntil = delivery.due_at, waits } = request;
  const row = isStored ? { ...delivery, due_at: validUntil } : replanned(delivery as PendingDelivery, 0);
  if (isStored || (await deliveries.insert(row as PendingDelivery))) await enqueue([row], { lane: "slow", waits });
  return "skipped";
}

interface AttemptInputs {
  delivery: Delivery;
  isStored: boolean;
  webhook: Webhook;
  secrets: SigningSecrets;
  trigger: Trigger;
}

/** Sends the request and records its outcome, unless another sender has claimed the attempt. */
async function send(request: AttemptRequest, inputs: AttemptInputs): Promise<AttemptResult> {
  const { delivery, webhook, secrets, trigger } = inputs;
  const sendingId = randomBytes(6).toString("base64url");
  const at = new Date();
  const until = addSeconds(at, SENDING_SECONDS);
  const claimed = { ...delivery, sending_until: until, sending_id: sendingId };
  let isStored = inputs.isStored;
  if (isStored) {
    if (!(await deliveries.claimSending(delivery, sendingId, at, until))) return "skipped";
  } else if (request.isRepeated) {
    if (!(await deliveries.insert(claimed))) return attemptWithSlot(request);
    isStored = true;
  }
  /** When the receiver is slow: writes the row of a delivery that has none, so that it is seen, and marks the webhook. */
  const noteSlowness = async () => {
    const marked = markSlow(webhook);
    if (!isStored) {
      const pending = { ...claimed, due_at: dueAt(at, SENDING_SECONDS, settings.deliveryGraceSeconds()) };
      const [inserted] = await Promise.allSettled([deliveries.insert(pending)]);
      if (inserted.status === "fulfilled" && inserted.value) isStored = true;
    }
    await marked;
  };
  const outcome = await whileWaiting(
    receivers.post(webhook.url, deliveryHeaders(delivery, signersOf(secrets, at), at), delivery.body),
    noteSlowness,
  );
  noteResponseTime(webhook.id, outcome.durationMs);
  await recordAttempt({
    delivery,
    isStored,
    webhook,
    attempt: toAttempt(delivery, trigger, at, outcome),
    retryAfter: outcome.retryAfter,
    sendingId,
    hasWaited: (request.waits ?? 0) > 0 || request.lane === "slow",
    isDrain: request.isDrain ?? false,
  });
  // A connection that is refused at once does not show that the receiver responds fast.
  await noteDuration(webhook, outcome.statusCode === undefined ? Number.POSITIVE_INFINITY : outcome.durationMs);
  return outcome.errorCode === undefined ? "succeeded" : "failed";
}

/** Waits for a result. Runs `onSlow` when it takes longer than `SLOW_AFTER_MS`, and waits for its end too. */
async function whileWaiting<Result>(result: Promise<Result>, onSlow: () => Promise<void>): Promise<Result> {
  const answered = new AbortController();
  const slow = sleep(SLOW_AFTER_MS, undefined, { signal: answered.signal }).then(onSlow, () => {});
  try {
    return await result;
  } finally {
    answered.abort();
    await slow;
  }
}

const signersOf = ({ current, previous }: SigningSecrets, at: Date): [string, ...string[]] => [
  current,
  ...unexpiredSecrets(previous, at),
];

function toAttempt({ attempt_count }: Delivery, trigger: Trigger, at: Date, outcome: Outcome) {
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

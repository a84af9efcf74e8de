import type { WakeUpCall } from "../deliveries/delivery-queue.ts";
import * as deliveries from "../deliveries/delivery-store.ts";
import type { DueCursor, DueKey } from "../deliveries/due-index.ts";
import { hold } from "../deliveries/hold.ts";
import { endDrainEmpty, findParked, scheduleDrain, startDrain } from "../deliveries/parking-store.ts";
import { log } from "../platform/log.ts";
import { checkCircuit } from "../webhooks/circuit-breaker.ts";
import { holdsDeliveries } from "../webhooks/suspension.ts";
import type { Webhook } from "../webhooks/webhook.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { type AttemptResult, makeAttempt } from "./attempt.ts";

/*
 * Drains the parking of a webhook. While its circuit is open, one parked delivery probes it. Once a probe succeeds, the
 * others are sent, oldest first, as many at once as the webhook has slots: the pace of the receiver. One drain runs per
 * webhook at a time, because it claims the webhook's wake-up.
 */

/** Deliveries sent at once, and rows of a disabled or deleted webhook ended at once. */
const PAGE_SIZE = 10;
/** Wait after a failure or without a free slot. */
const PAUSE_SECONDS = 10;

type WebhookKey = Pick<Webhook, "project_id" | "id">;

/** The next step: the parking is read again at `at`, after a failed probe with `probedId`, or it was empty. */
type Next = { kind: "wait"; at: Date; probedId?: string } | { kind: "empty"; visitAt?: Date };

/**
 * Sends parked deliveries of a webhook until the receiver fails, none is left, or the time is up.
 * @param hasTime returns whether there is time for another attempt
 */
export async function drain({ project_id, webhook_id, generation }: WakeUpCall, hasTime: () => boolean): Promise<void> {
  log.tag({ project_id, webhook_id });
  const key = { project_id, id: webhook_id };
  const wakeUp = await startDrain(key, generation);
  if (!wakeUp) return;
  const next = await drainPages(key, hasTime);
  if (next.kind === "wait") await scheduleDrain(key, next.at, { expected: wakeUp.generation, probedId: next.probedId });
  else await endDrainEmpty(key, wakeUp, next.visitAt);
}

async function drainPages(key: WebhookKey, hasTime: () => boolean): Promise<Next> {
  // The index lags behind the table: going on after the last row avoids reading the same rows again.
  let after: DueCursor | undefined;
  let isFirstPage = true;
  while (hasTime()) {
    const webhook = await webhooks.find(key.project_id, key.id);
    const probe = webhook && probeOf(webhook, new Date());
    if (probe && probe.at > new Date()) return { kind: "wait", at: probe.at };
    const { rows, next } = await findParked(key.id, probe ? 1 : PAGE_SIZE, after);
    if (isFirstPage && rows.length === 0 && next === undefined) {
      return { kind: "empty", ...(probe && { visitAt: new Date(probe.nextAt) }) };
    }
    const results = await inPage(rows, (row) => endOrAttempt(key, row, webhook, probe?.nextAt));
    const [probed] = rows;
    if (probe && probed && results.includes("failed")) {
      return { kind: "wait", at: new Date(probe.nextAt), probedId: probed.id };
    }
    // A probe that found no slot has not been claimed.
    const isBlocked = results.includes("failed") || results.includes("delayed");
    if (isBlocked || next === undefined) return { kind: "wait", at: secondsFromNow(PAUSE_SECONDS) };
    after = next;
    isFirstPage = false;
  }
  return { kind: "wait", at: new Date() };
}

/** Returns when a webhook whose circuit is open is probed, now and the next time; undefined when none is or must be. */
function probeOf(webhook: Webhook, now: Date): { at: Date; nextAt: string } | undefined {
  const circuit = holdsDeliveries(webhook) ? undefined : checkCircuit(webhook, now);
  return circuit?.kind === "open" ? { at: circuit.probeAt, nextAt: circuit.nextProbeAt } : undefined;
}

/** Processes the rows of a page together. @throws the first error, after all rows are processed */
async function inPage(rows: DueKey[], process: (row: DueKey) => Promise<AttemptResult>): Promise<AttemptResult[]> {
  const results = await Promise.allSettled(rows.map((row) => log.scope({}, () => process(row))));
  return results.map((result) => {
    if (result.status === "rejected") throw result.reason;
    return result.value;
  });
}

/** Attempts a parked delivery. Holds it when the webhook holds deliveries, cancels it when the webhook is deleted. */
async function endOrAttempt(
  key: WebhookKey,
  row: DueKey,
  webhook: Webhook | undefined,
  nextProbeAt: string | undefined,
): Promise<AttemptResult> {
  if (!webhook || holdsDeliveries(webhook)) {
    const delivery = await deliveries.find(row.webhook_id, row.id);
    if (delivery?.status !== "pending") return "skipped";
    if (!webhook) {
      await deliveries.cancel(delivery);
      return "skipped";
    }
    const { kind } = await hold(delivery, true, () => webhooks.find(key.project_id, key.id));
    if (kind !== "reopened") return "skipped";
  }
  return makeAttempt({
    project_id: key.project_id,
    webhook_id: key.id,
    delivery_id: row.id,
    lane: "slow",
    isDrain: true,
    ...(nextProbeAt !== undefined && { nextProbeAt }),
  });
}

const secondsFromNow = (seconds: number): Date => new Date(Date.now() + seconds * 1000);

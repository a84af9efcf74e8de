import { log } from "../../foundation/platform/log.ts";
import * as receiverState from "../../webhooks/webhook/receiver-state-store.ts";
import type { Webhook } from "../../webhooks/webhook/webhook.ts";

/*
 * The mark of slow webhooks, whose deliveries wait in the backlog. The mark is written only when it changes. Marking takes
 * one slow response and unmarking a run of fast ones, so that a receiver that is slow now and then does not alternate.
 */

/** A request without an answer for this long makes its webhook slow. */
export const SLOW_AFTER_MS = 2_000;
/** A response within this time counts as fast. */
const FAST_WITHIN_MS = 1_000;
/** Fast responses in a row, seen by one process, after which a webhook is no longer slow. */
const FAST_RESPONSES = 20;
const MAX_WEBHOOKS = 10_000;

/** Fast responses in a row of the marked webhooks. */
const runs = new Map<string, number>();

/** Marks a webhook as slow, unless it is. Does not throw: the mark is a hint, and the next slow response repeats it. */
export async function markSlow(webhook: Webhook): Promise<void> {
  runs.delete(webhook.id);
  if (webhook.slow_since !== undefined) return;
  await receiverState.markSlow(webhook, new Date().toISOString()).catch(logFailure(webhook));
}

/** Counts the response time of a request, and unmarks a slow webhook after a run of fast responses. Does not throw. */
export async function noteDuration(webhook: Webhook, durationMs: number): Promise<void> {
  if (webhook.slow_since === undefined) return;
  const run = durationMs <= FAST_WITHIN_MS ? (runs.get(webhook.id) ?? 0) + 1 : 0;
  if (runs.size >= MAX_WEBHOOKS) runs.clear();
  runs.set(webhook.id, run);
  if (run < FAST_RESPONSES) return;
  runs.delete(webhook.id);
  await receiverState.clearSlow(webhook).catch(logFailure(webhook));
}

const logFailure =
  ({ project_id, id }: Webhook) =>
  (error: unknown): void =>
    log.error("slow mark not changed", error, { project_id, webhook_id: id });

import { setTimeout as sleep } from "node:timers/promises";
import { MASK } from "../../foundation/http/masked.ts";
import { log } from "../../foundation/platform/log.ts";
import { credentialsIn, deliveryHeaders, ownHeaders } from "../../webhooks/receiver/delivery-headers.ts";
import { legacySignatureHeader } from "../../webhooks/receiver/legacy-signature-header.ts";
import { signingOf } from "../../webhooks/receiver/project-keys.ts";
import type { Outcome } from "../../webhooks/receiver/receiver-client.ts";
import * as receivers from "../../webhooks/receiver/receiver-client-pool.ts";
import { unexpiredSecrets } from "../../webhooks/receiver/signature.ts";
import { withoutSent } from "../../webhooks/receiver/without-sent.ts";
import type { Webhook } from "../../webhooks/webhook/webhook.ts";
import type { SigningSecrets } from "../../webhooks/webhook/webhook-secret-store.ts";
import type { LineVisit } from "../../webhooks/webhook/worker-call.ts";
import { change } from "../line/change-delivery.ts";
import type { Delivery } from "../line/delivery.ts";
import { shadowed } from "../line/delivery-transitions.ts";
import { contentOf } from "./delivery-content.ts";
import { recordAttempt } from "./record.ts";
import { markSlow, noteDuration, SLOW_AFTER_MS } from "./slow-mark.ts";

/*
 * One attempt: send the request, record the outcome. Delivery is at least once: the outcome is recorded after the response,
 * so a crash in between repeats the request under the same delivery id.
 */

/**
 * Sends a delivery and records the outcome. That of a webhook in shadow mode is recorded and not sent.
 * @param basis the delivery as it was read; without a version, it has no row
 * @param visit in which the worker of the webhook sends it; absent when its message carries it
 * @returns `unrecorded` when the outcome is enqueued, to be recorded later
 */
export async function makeAttempt(
  basis: Delivery,
  webhook: Webhook,
  secrets: SigningSecrets,
  visit?: LineVisit,
): Promise<"accepted" | "failed" | "unrecorded"> {
  const at = new Date();
  const signers: [string, ...string[]] = [secrets.current, ...unexpiredSecrets(secrets.previous, at)];
  const { id, event, test = false } = basis;
  const content = contentOf(basis, webhook);
  const legacy = legacySignatureHeader();
  const headers = deliveryHeaders({ id, event, test, ...content }, signers, at, {
    legacy,
    signing: await signingOf(webhook, at),
  });
  const own = ownHeaders(secrets.headers, legacy);
  // Decided here, not in fan-out: what is in a queue at the switch would be sent in shadow mode, or lost after it. It is no attempt,
  // which would claim a request that no receiver saw, and not held, which a recovery would send after the switch.
  if (webhook.mode === "shadow") {
    const shown = { ...headers, ...Object.fromEntries(own.map(([name]) => [name, MASK])) };
    await change(basis, shadowed(basis, { at: at.toISOString(), headers: shown }));
    log.info("delivery shadowed", { delivery_id: id, event });
    return "accepted";
  }
  const { url } = webhook;
  const all = { ...Object.fromEntries(own), ...headers };
  const returned = await whileWaiting(receivers.post(url, all, content.body), () => markSlow(webhook));
  const outcome = withoutSent(returned, url, headers, [...signers, ...credentialsIn(own)]);
  const attempt = toAttempt(basis, at, outcome);
  const isRecorded = await recordAttempt({ basis, webhook, attempt, retryAfter: outcome.retryAfter, visit });
  // A connection that is refused at once does not show that the receiver responds fast.
  await noteDuration(webhook, outcome.statusCode === undefined ? Number.POSITIVE_INFINITY : outcome.durationMs);
  if (!isRecorded) return "unrecorded";
  return outcome.errorCode === undefined ? "accepted" : "failed";
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

function toAttempt({ attempt_count, trigger = "schedule" }: Delivery, at: Date, outcome: Outcome) {
  return {
    number: attempt_count + 1,
    at: at.toISOString(),
    duration_ms: outcome.durationMs,
    request_count: outcome.requestCount,
    status_code: outcome.statusCode,
    error_code: outcome.errorCode,
    response_excerpt: outcome.excerpt,
    response_header_pairs: outcome.headers && Object.entries(outcome.headers),
    trigger,
    detail: outcome.detail,
  };
}

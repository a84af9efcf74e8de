import type { Delivery, DeliveryWithAttempts, Webhook, WebhookHealth } from "../../../client/src/client.ts";
import { change, explain, fixForError, type IsOffered, recovery } from "./explain.ts";

/* Explains in plain words why the deliveries of a webhook fail, and what to do next. Pure. */

export interface WebhookDiagnosis {
  /** The state of the webhook's health; `suspended` for its project. */
  state: WebhookHealth["state"] | "suspended";
  explanation: string;
  next_step: string;
}

interface Inputs {
  webhook: Webhook;
  /** The newest deliveries, newest first. */
  deliveries: Pick<Delivery, "status" | "attempt_count">[];
  /** The newest of them that failed or is being retried; absent = none. */
  failing?: DeliveryWithAttempts | undefined;
}

export function diagnose({ webhook, deliveries, failing }: Inputs, isOffered: IsOffered): WebhookDiagnosis {
  const last = failing && explain(failing, webhook, isOffered);
  const certify = isOffered("certify_webhook") ? "check it with certify_webhook" : "ask the user to certify it";
  const { state, since, last_error, next_probe_at } = webhook.health;
  const fix = last_error && fixForError(last_error);
  const cause = last
    ? ` The newest of those that failed: ${last.explanation}`
    : last_error
      ? ` The last known attempt failed (${last_error.error_code}).`
      : "";
  const counts = countsOf(deliveries);
  if (webhook.suspended_at !== undefined) {
    return {
      state: "suspended",
      explanation: `The operator of the platform has suspended the project: nothing is sent. ${counts}${cause}`,
      next_step: "Ask the operator why.",
    };
  }
  if (!webhook.enabled) {
    return {
      state: "disabled",
      explanation: `The webhook is disabled (${webhook.disabled_reason}): its events are held. ${counts}${cause}`,
      next_step: `Fix the receiver, ${certify}, then enable the webhook (${change(webhook.id, "enabled: true", isOffered)}) and send what was held (${recovery(webhook.id, isOffered)}).`,
    };
  }
  if (state === "shadow") {
    return {
      state,
      explanation: `The webhook is in shadow mode: its events are signed and logged, and not sent. ${counts}`,
      next_step: `If this is not a cutover, switch it to live (${change(webhook.id, "mode: live", isOffered)}) and send what was shadowed (${recovery(webhook.id, isOffered, "shadowed")}).`,
    };
  }
  if (state === "failing" || state === "probing") {
    const wait =
      state === "probing"
        ? ` The oldest delivery that waits is sent as a probe at ${next_probe_at ?? "any time"}; after a success all are sent.`
        : "";
    return {
      state,
      explanation: `No attempt has succeeded since ${since}.${wait} ${counts}${cause}`,
      next_step: last?.next_step ?? `${fix ?? `Look at the receiver: ${certify}.`} Attempts continue automatically.`,
    };
  }
  if (state === "slow") {
    return {
      state,
      explanation: `The receiver responds slowly since ${since}, so its deliveries may wait for each other. ${counts}${cause}`,
      next_step: "Respond before the event is processed, within a second.",
    };
  }
  const isUntried = deliveries.every(({ attempt_count }) => attempt_count === 0);
  if (state === "new" || (isUntried && webhook.health.last_success_at === null)) {
    const happened = isUntried ? "was attempted" : "has succeeded";
    const filtered = webhook.filter
      ? ` It has a filter: svc webhooks test-filter ${webhook.id} shows which events it receives.`
      : "";
    return {
      state: "new",
      explanation: `No delivery of the webhook ${happened} yet.${filtered} ${counts}${cause}`,
      next_step: last?.next_step ?? `Look at the receiver: ${certify}.`,
    };
  }
  return {
    state: "healthy",
    explanation: `The latest attempt succeeded. ${counts}${cause}`,
    next_step: last ? `For the one that failed: ${last.next_step}` : "No action is needed.",
  };
}

function countsOf(deliveries: Pick<Delivery, "status">[]): string {
  if (deliveries.length === 0) return "It has no deliveries in the last 30 days.";
  const counts = new Map<string, number>();
  for (const { status } of deliveries) counts.set(status, (counts.get(status) ?? 0) + 1);
  const parts = [...counts].map(([status, count]) => `${count} ${status}`);
  return `Of the newest ${deliveries.length} deliveries: ${parts.join(", ")}.`;
}

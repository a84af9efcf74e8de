import type { Delivery, DeliveryWithAttempts, Webhook } from "../../../client/src/client.ts";
import { explain } from "./explain.ts";

/* Explains in plain words why the deliveries of a webhook fail, and what to do next. Pure. */

export interface WebhookDiagnosis {
  /** `healthy`: the newest attempted delivery succeeded. `unknown`: none was attempted yet. */
  state: "healthy" | "failing" | "disabled" | "suspended" | "unknown";
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

export function diagnose({ webhook, deliveries, failing }: Inputs): WebhookDiagnosis {
  const last = failing && explain(failing, webhook);
  const cause = last ? ` The newest of those that failed: ${last.explanation}` : "";
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
      next_step: `Fix the receiver, check it with certify_webhook, then enable the webhook (svc webhooks update ${webhook.id} --enable) and send what was held (svc deliveries recover --webhook ${webhook.id} --since <time>).`,
    };
  }
  const newest = deliveries.find(({ attempt_count }) => attempt_count > 0);
  if (!newest) {
    return {
      state: "unknown",
      explanation: `No delivery of the webhook was attempted yet. ${counts}`,
      next_step: "Check the receiver with certify_webhook.",
    };
  }
  if (newest.status === "succeeded") {
    return {
      state: "healthy",
      explanation: `The newest attempted delivery succeeded. ${counts}${cause}`,
      next_step: last ? `To send the failed one again: ${last.next_step}` : "No action is needed.",
    };
  }
  return {
    state: "failing",
    explanation: `${counts}${cause}`,
    next_step: last?.next_step ?? "Call explain_failed_delivery with the id of a delivery.",
  };
}

function countsOf(deliveries: Pick<Delivery, "status">[]): string {
  if (deliveries.length === 0) return "It has no deliveries in the last 30 days.";
  const counts = new Map<string, number>();
  for (const { status } of deliveries) counts.set(status, (counts.get(status) ?? 0) + 1);
  const parts = [...counts].map(([status, count]) => `${count} ${status}`);
  return `Of the newest ${deliveries.length} deliveries: ${parts.join(", ")}.`;
}

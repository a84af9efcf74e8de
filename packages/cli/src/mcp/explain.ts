import type {
  Attempt,
  DeliveryStatus,
  DeliveryWithAttempts,
  Webhook,
  WebhookHealth,
} from "../../../client/src/client.ts";
import { deliveryErrorMeanings } from "../../../client/src/values.ts";

/* Explains in plain words why a delivery has not arrived, and what to do next. Pure. */

/** Returns whether the server offers the tool with a name. A text must not advise another one. */
export type IsOffered = (tool: string) => boolean;

export interface Explanation {
  /** What happened. */
  explanation: string;
  /** What to do. */
  next_step: string;
}

type ExplainedDelivery = Pick<
  DeliveryWithAttempts,
  "id" | "event" | "status" | "attempts" | "waiting_for" | "next_attempt_at" | "test"
>;
type WebhookState = Pick<Webhook, "id" | "enabled" | "disabled_reason" | "suspended_at">;

export function explain(delivery: ExplainedDelivery, webhook: WebhookState, isOffered: IsOffered): Explanation {
  const { id, event, status, attempts, test } = delivery;
  const last = attempts.at(-1);
  const failures = attempts.filter(({ error_code }) => error_code !== null).length;
  const attempted = `${event} was attempted ${times(attempts.length)}`;
  const cause = last === undefined || last.error_code === null ? "" : ` The last attempt failed: ${causeOf(last)}`;
  const fix = last === undefined ? "Wait for the first attempt." : fixFor(last);
  const redeliver = isOffered("redeliver_delivery")
    ? `call redeliver_delivery with delivery_id ${id} to send it again.`
    : `ask the user to send the delivery ${id} again.`;
  const recover = recovery(webhook.id, isOffered);
  switch (status) {
    case "succeeded":
      return {
        explanation: `Nothing is wrong: ${attempted}, and the receiver accepted it${failures > 0 ? ` after ${failures} failed attempt${failures === 1 ? "" : "s"}` : ""}.`,
        next_step: "No action is needed.",
      };
    case "failed":
      return {
        explanation: `${attempted}, and there are no more retries${test ? " (a test has a single attempt)" : ""}.${cause}`,
        next_step: `${fix} Then ${redeliver}`,
      };
    case "pending":
      return {
        explanation: `${attempted}; ${waitOf(delivery)}.${cause}`,
        next_step:
          last === undefined
            ? `${fix} If it does not happen, call why_is_this_webhook_failing with webhook_id ${webhook.id}.`
            : `${fix} The next attempt happens automatically. To retry now, ${redeliver}`,
      };
    case "superseded":
      return {
        explanation: `Nothing is wrong: ${attempted}, and its deployment has a newer state by now. The webhook gets the latest state only.`,
        next_step: "No action is needed.",
      };
    case "held":
      if (webhook.suspended_at !== undefined) {
        return {
          explanation: `${attempted} and is held: the operator of the platform has suspended the project.${cause}`,
          next_step: `Ask the operator why. When the suspension has ended, send the held deliveries: ${recover}.`,
        };
      }
      return {
        explanation: `${attempted} and is held: the webhook is or was disabled${webhook.enabled ? ", or its project was suspended" : reasonOf(webhook)}.${cause}`,
        next_step: webhook.enabled
          ? `The webhook is enabled again: ${redeliver} To send all held deliveries: ${recover}.`
          : `${last === undefined ? "" : `${fix} `}Enable the webhook (${change(webhook.id, "enabled: true", isOffered)}), then send the held deliveries: ${recover}.`,
      };
    case "cancelled":
      return {
        explanation: `${attempted} and was cancelled: its webhook was deleted.`,
        next_step: "It cannot be sent again. A new webhook receives only events that happen after its creation.",
      };
    case "shadowed":
      return {
        explanation: `${event} was signed and logged, and not sent: the webhook was in shadow mode.${cause}`,
        next_step: `Switch the webhook to live (${change(webhook.id, "mode: live", isOffered)}) to send later events. To send this one then, ${redeliver} To send all of them: ${recovery(webhook.id, isOffered, "shadowed")}.`,
      };
  }
}

/** How deliveries are sent again, by the assistant or by the user. */
export function recovery(webhookId: string, isOffered: IsOffered, status?: DeliveryStatus): string {
  if (isOffered("recover_deliveries"))
    return `recover_deliveries with webhook_id ${webhookId} and the time in since${status ? `, and status ${status}` : ""}`;
  return `svc deliveries recover --webhook ${webhookId} --since <time>${status ? ` --status ${status}` : ""}`;
}

const options = { "enabled: true": "--enable", "mode: live": "--mode live" };

/** How a webhook is changed, by the assistant or by the user. */
export const change = (webhookId: string, field: keyof typeof options, isOffered: IsOffered): string =>
  isOffered("update_webhook")
    ? `update_webhook with webhook_id ${webhookId} and ${field}`
    : `svc webhooks update ${webhookId} ${options[field]}`;

/** Returns what a pending delivery waits for, as a clause. */
function waitOf({ waiting_for, next_attempt_at }: Pick<ExplainedDelivery, "waiting_for" | "next_attempt_at">): string {
  switch (waiting_for) {
    case "recovery":
      return `the webhook is failing, so it waits for a success; the next probe is sent at ${next_attempt_at ?? "any time"}`;
    case "busy":
      return "its attempt is due, and waits for a free sender";
    case "suspended":
      return "it becomes held at its next attempt, because the webhook is disabled or its project suspended";
    default:
      return `the next attempt is scheduled for ${next_attempt_at ?? "now"}`;
  }
}

const times = (count: number): string => (count === 1 ? "once" : `${count} times`);

const reasonTexts: Record<NonNullable<Webhook["disabled_reason"]>, string> = {
  gone: ", because the receiver responded with 410 Gone",
  failing: ", because it failed for days without a success",
  manual: ", because a user disabled it",
};

const reasonOf = ({ disabled_reason }: WebhookState): string =>
  disabled_reason === null ? "" : (reasonTexts[disabled_reason] ?? "");

function causeOf({ error_code, status_code }: Attempt): string {
  if (error_code === null || error_code === "http_status") {
    return `the receiver responded with ${status_code} instead of 2xx.`;
  }
  // A newer version of the API may have added a code.
  return `${deliveryErrorMeanings[error_code] ?? error_code}.`;
}

/** The hint of the last error of a webhook, without text of the receiver, like `fixFor`. */
export function fixForError({ error_code, hint }: NonNullable<WebhookHealth["last_error"]>): string {
  const isOfStatus = /^The receiver returned \d{3}[:,] /.test(hint);
  // All other hints for a status are for redirects, and contain the target.
  return error_code === "http_status" && !isOfStatus ? withoutTarget(hint) : hint;
}

function withoutTarget(hint: string): string {
  const [, page, exempt] = /^(.* a sign-in page) at \S+(: exempt .*)$/.exec(hint) ?? [];
  if (page !== undefined) return `${page}${exempt}`;
  const [, status, fix] = /^(The receiver returned \d{3}) to \S+(: return 2xx .*)$/.exec(hint) ?? [];
  return status === undefined ? redirectFix : `${status} to another URL${fix}`;
}

const redirectFix = "Redirects are not followed: change the webhook's URL to the final URL of the receiver.";

/** The hint of a failed attempt, without text of the receiver: the hint of a redirect contains the redirect's target. */
export function fixFor({ hint, status_code }: Pick<Attempt, "hint" | "status_code">): string {
  const isRedirect = status_code !== null && status_code >= 300 && status_code < 400;
  if (isRedirect) return withoutTarget(hint ?? "");
  return hint ?? "The last attempt succeeded.";
}

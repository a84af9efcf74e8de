import type { TransactItem } from "../../foundation/platform/aws.ts";
import { type HealthInput, type LastFailure, plannedFailingTime } from "../../foundation/records/notification.ts";
import { notificationDelete, notificationPut } from "../../foundation/records/notification-store.ts";
import type { StopReason, Webhook } from "./webhook.ts";

/* The notifications about a webhook, as items of the transactions that change it. */

export const NO_ATTEMPT: LastFailure = { status_code: null, error_code: null };

/** Returns what a notification says about a webhook: of its URL the host only, because path and query often have a token. */
export const aboutWebhook = ({ id, url, name, failing_since }: Webhook, { status_code, error_code }: LastFailure) => ({
  webhook_id: id,
  ...(name !== undefined && { name }),
  host: new URL(url).host,
  failing_since: failing_since ?? null,
  status_code,
  error_code,
});

/** Returns why a webhook sends nothing; undefined = it sends. A suspension of its project is another reason. */
export function stopReasonOf({ disabled_at, disabled_reason, mode }: Partial<Webhook>): StopReason | undefined {
  return disabled_at === undefined ? mode : (disabled_reason ?? "manual");
}

/** Returns the notification that a webhook is disabled or in shadow mode, for the transaction that makes it so. */
export function disabledNotification(webhook: Webhook, reason: StopReason, failure: LastFailure, dueAt: Date) {
  const data: HealthInput["data"] = { ...aboutWebhook(webhook, failure), reason };
  return notificationPut({ type: "webhook.disabled", project_id: webhook.project_id, data }, dueAt);
}

/**
 * Returns the deletions of the notifications that may be planned about a webhook, for the transaction that deletes it. One that
 * is planned after the webhook was read is dropped when it is due.
 */
export function plannedDeletes(webhook: Webhook): Record<string, TransactItem> {
  const { project_id, disabled_notified_at, failing_since } = webhook;
  const data = { ...aboutWebhook(webhook, NO_ATTEMPT), reason: "" };
  return {
    ...(disabled_notified_at && {
      disabled: notificationDelete({ type: "webhook.disabled", project_id, data }, new Date(disabled_notified_at)),
    }),
    ...(failing_since && {
      failing: notificationDelete({ type: "webhook.failing", project_id, data }, plannedFailingTime(failing_since)),
    }),
  };
}

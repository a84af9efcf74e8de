import { randomUUID } from "node:crypto";
import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { system } from "../../foundation/access/actor.ts";
import { dynamo, isConditionFailed, retryConflicts } from "../../foundation/platform/aws.ts";
import { transactIf } from "../../foundation/platform/dynamo.ts";
import { allOf, changing, isAsRead, type Part, when } from "../../foundation/platform/expression.ts";
import { projectAudit } from "../../foundation/records/audit-store.ts";
import { disabledNotificationTime, type HealthInput, type LastFailure } from "../../foundation/records/notification.ts";
import { notificationPut } from "../../foundation/records/notification-store.ts";
import { failureState } from "./circuit-breaker.ts";
import type { FailedAttempt } from "./health.ts";
import type { DisabledReason, LastCertification, Webhook } from "./webhook.ts";
import { aboutWebhook, disabledNotification, NO_ATTEMPT } from "./webhook-notification-store.ts";
import { webhookKey } from "./webhook-store.ts";

/* What senders write about the receiver of a webhook: it fails, it is slow, it is probed, it is certified, it is disabled. */

/**
 * Records the time of the first failure after a success, unless it is set already, the URL has changed, or the webhook is in
 * shadow mode by now: no success would end it there.
 * @param error the failure; absent = not known
 */
export function markFailing(webhook: Webhook, at: string, error?: FailedAttempt): Promise<boolean> {
  const condition = when`attribute_not_exists(failing_since) AND attribute_not_exists(#mode) AND #url = ${webhook.url}`;
  return changeOnce(webhook, { failing_since: at, last_error: error }, condition);
}

/** Clears the failure state after a success, unless the URL has changed. @returns whether the webhook was failing */
export async function clearFailing(webhook: Webhook): Promise<boolean> {
  const condition = when`attribute_exists(failing_since) AND #url = ${webhook.url}`;
  return (await change(webhook, { remove: failureState }, condition)).isChanged;
}

/** Marks a webhook as slow, unless it is marked already or the URL has changed. */
export async function markSlow(webhook: Webhook, at: string): Promise<void> {
  const condition = when`attribute_not_exists(slow_since) AND #url = ${webhook.url}`;
  await change(webhook, { set: { slow_since: at } }, condition);
}

/** Removes the mark of a slow webhook, unless the URL has changed: that mark is about another receiver. */
export async function clearSlow(webhook: Webhook): Promise<void> {
  await change(webhook, { remove: ["slow_since"] }, when`attribute_exists(slow_since) AND #url = ${webhook.url}`);
}

/** Records that a certification has finished, unless the URL has changed: another receiver was certified. */
export async function recordCertification(webhook: Webhook, last_certification: LastCertification): Promise<void> {
  await change(webhook, { set: { last_certification } }, when`#url = ${webhook.url}`);
}

/**
 * Claims the next probe of a failing webhook.
 * @param nextProbeAt earliest time of the probe after this one, in ISO 8601
 * @param deliveryId the delivery that is sent as the probe
 * @returns false when another sender has claimed it
 */
export const claimProbe = (webhook: Webhook, nextProbeAt: string, deliveryId: string): Promise<boolean> =>
  changeOnce(webhook, { probe_at: nextProbeAt, probed_id: deliveryId }, isAsRead("probe_at", webhook.probe_at));

/** Sends no probe before `at`, in ISO 8601, unless it is planned later already, or the webhook no longer fails: see `Retry-After`. */
export async function postponeProbe(webhook: Webhook, at: string): Promise<void> {
  const isLater = when`(attribute_not_exists(probe_at) OR probe_at < ${at})`;
  const condition = when`attribute_exists(failing_since) AND #url = ${webhook.url} AND ${isLater}`;
  await change(webhook, { set: { probe_at: at } }, condition);
}

/**
 * Notifies the owners of a webhook that has been failing for long, once until its next success. If the bound of its project
 * allows no notification, it is not marked as notified, so that a later failure tries again.
 * @param webhook its state at the time of the failure
 * @param dueAt later than `at` for a notification that is published then if the webhook still fails; absent = now
 * @returns whether this call notified them: false also when a delivery has succeeded since, or the URL has changed
 */
export async function notifyFailing(
  webhook: Webhook,
  failure: LastFailure,
  at: string,
  dueAt = new Date(at),
): Promise<boolean> {
  const { project_id, id, url, failing_since } = webhook;
  const data: HealthInput["data"] = aboutWebhook(webhook, failure);
  const isPlanned = dueAt.toISOString() > at;
  const { notification } = await notificationPut(
    { type: "webhook.failing", project_id, data, ...(isPlanned && { is_planned: true }) },
    dueAt,
  );
  if (!notification) return false;
  const condition = allOf(
    when`failing_since = ${failing_since} AND #url = ${url}`,
    when`attribute_not_exists(failing_notified_at) AND attribute_not_exists(disabled_at)`,
  );
  return transactIf({
    notification,
    webhook: {
      Update: {
        ...webhookKey(project_id, id),
        ...changing({ set: { failing_notified_at: at }, when: condition }),
      },
    },
  });
}

/**
 * Disables a webhook, and notifies its owners, at most once in ten minutes. Later deliveries are stored with the status `held`.
 * @param webhook its state at the time of the failure: it is not disabled if its URL has changed or it was enabled since, nor,
 * for the reason `failing`, if a delivery has succeeded since
 * @param failure absent = no attempt led to it
 * @returns whether this call disabled it
 */
export async function disable(
  webhook: Webhook,
  reason: DisabledReason,
  at: string,
  failure = NO_ATTEMPT,
): Promise<boolean> {
  const { project_id, id, url, failing_since } = webhook;
  const isStillFailing = reason === "failing" && failing_since !== undefined;
  const notifiedAt = disabledNotificationTime(webhook, new Date(at));
  const change = changing({
    set: { disabled_at: at, disabled_reason: reason, disabled_notified_at: notifiedAt.toISOString() },
    when: allOf(
      when`attribute_exists(id) AND attribute_not_exists(disabled_at) AND #url = ${url}`,
      isAsRead("disabled_notified_at", webhook.disabled_notified_at),
      isStillFailing && when`failing_since = ${failing_since}`,
    ),
  });
  return transactIf({
    webhook: { Update: { ...webhookKey(project_id, id), ...change } },
    audit: projectAudit("webhook.disabled", system, webhook, { reason }),
    ...(await disabledNotification(webhook, reason, failure, notifiedAt)),
  });
}

/**
 * Changes a webhook as `change` does, and recognizes a change that it has made already: the SDK sends an update again
 * when a response is lost, and the condition is then false. Two senders may write equal values, so each writes an id.
 * @returns whether this call changed it
 */
async function changeOnce(webhook: Webhook, set: Record<string, unknown>, condition: Part): Promise<boolean> {
  const change_id = randomUUID();
  const result = await change(webhook, { set: { ...set, change_id } }, condition);
  return result.isChanged || result.found?.change_id?.S === change_id;
}

type ChangeResult = { isChanged: true } | { isChanged: false; found: Record<string, AttributeValue> | undefined };

/**
 * Updates a webhook if it still exists and the condition is true.
 * @returns whether it was updated, and if not, the webhook that exists
 */
async function change(
  { project_id, id }: Webhook,
  changes: { set?: Record<string, unknown>; remove?: readonly string[] },
  condition: Part,
): Promise<ChangeResult> {
  try {
    const update = new UpdateCommand({
      ...webhookKey(project_id, id),
      ...changing({ ...changes, when: when`attribute_exists(id) AND ${condition}` }),
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    });
    await retryConflicts(() => dynamo().send(update));
    return { isChanged: true };
  } catch (error) {
    if (isConditionFailed(error)) return { isChanged: false, found: error.Item };
    throw error;
  }
}

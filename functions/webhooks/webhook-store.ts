import { createHash, randomUUID } from "node:crypto";
import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { type Actor, platform, system } from "../access/actor.ts";
import type { AuditAction } from "../audit/audit-event.ts";
import { auditPut } from "../audit/audit-store.ts";
import {
  disabledNotificationTime,
  type HealthInput,
  type LastFailure,
  plannedFailingTime,
} from "../notifications/notification.ts";
import { notificationDelete, notificationPut } from "../notifications/notification-store.ts";
import {
  type ConditionsFailedError,
  dynamo,
  isConditionFailed,
  retryConflicts,
  type TransactItem,
} from "../platform/aws.ts";
import { COUNTER, countDown, insertCounted, isTransacted, readItem, readItems } from "../platform/dynamo.ts";
import { tableName } from "../platform/env.ts";
import { ApiError } from "../platform/errors.ts";
import { allOf, changing, isAsRead, onlyIf, type Part, when } from "../platform/expression.ts";
import type { FailedAttempt } from "./health.ts";
import { projectSuspended } from "./suspension.ts";
import { type DisabledReason, MAX_WEBHOOKS_PER_PROJECT, named, type Webhook, type WebhookPatch } from "./webhook.ts";

/** The fields that senders write while a receiver fails. */
const failureState = ["failing_since", "failing_notified_at", "probe_at", "probed_id", "last_error", "change_id"];

const webhookKey = (project_id: string, id: string) => ({ TableName: tableName("webhooks"), Key: { project_id, id } });
/** The item that counts the webhooks of a project has the time of its suspension too. */
const counterOf = (project_id: string) => ({ key: webhookKey(project_id, COUNTER), attribute: "webhook_count" });
const secretKey = (webhook_id: string) => ({ TableName: tableName("webhookSecrets"), Key: { webhook_id } });

/** Returns the audit event of a change of a webhook, for its transaction. */
export const webhookAudit = (
  action: AuditAction,
  actor: Actor,
  { project_id, id }: Pick<Webhook, "project_id" | "id">,
  details: Record<string, unknown> = {},
): TransactItem => auditPut({ scope: `project:${project_id}`, action, actor, resource_id: id, details });

const NO_ATTEMPT: LastFailure = { status_code: null, error_code: null };

/** Returns what a notification says about a webhook: of its URL the host only, because path and query often have a token. */
const aboutWebhook = ({ id, url, name, failing_since }: Webhook, { status_code, error_code }: LastFailure) => ({
  webhook_id: id,
  ...(name !== undefined && { name }),
  host: new URL(url).host,
  failing_since: failing_since ?? null,
  status_code,
  error_code,
});

/** Returns the notification that a webhook is disabled, for the transaction that disables it. */
function disabledNotification(webhook: Webhook, reason: DisabledReason, failure: LastFailure, dueAt: Date) {
  const data: HealthInput["data"] = { ...aboutWebhook(webhook, failure), reason };
  return notificationPut({ type: "webhook.disabled", project_id: webhook.project_id, data }, dueAt);
}

/**
 * Returns the deletions of the notifications that may be planned about a webhook, for the transaction that deletes it. One that
 * is planned after the webhook was read is dropped when it is due.
 */
function plannedDeletes(webhook: Webhook): Record<string, TransactItem> {
  const { project_id, disabled_notified_at, failing_notified_at, failing_since } = webhook;
  const data = { ...aboutWebhook(webhook, NO_ATTEMPT), reason: "" };
  return {
    ...(disabled_notified_at && {
      disabled: notificationDelete({ type: "webhook.disabled", project_id, data }, new Date(disabled_notified_at)),
    }),
    ...(failing_since &&
      failing_notified_at && {
        failing: notificationDelete({ type: "webhook.failing", project_id, data }, plannedFailingTime(failing_since)),
      }),
  };
}

/**
 * Stores a new webhook and its secret.
 * @param by absent = the platform
 * @param more items to write in the same transaction
 * @throws ApiError `webhook_limit_reached` when the project has the maximum number of webhooks, also under concurrent
 * creates; `project_suspended` while it is suspended
 */
export async function insert(
  webhook: Webhook,
  secret: string,
  by: Actor = platform,
  more: Record<string, TransactItem> = {},
): Promise<void> {
  const { url, events } = webhook;
  const details = { url: recognizable(url), ...named(webhook), events };
  const limit = MAX_WEBHOOKS_PER_PROJECT;
  const onFull = (cause: ConditionsFailedError) =>
    cause.stored.counter?.suspended_at === undefined
      ? new ApiError(
          "webhook_limit_reached",
          `The limit of ${limit} webhooks per project is reached. Delete one first.`,
          { cause },
        )
      : projectSuspended(cause);
  const isActive = when`attribute_not_exists(suspended_at)`;
  await insertCounted(
    { ...counterOf(webhook.project_id), limit, when: isActive, onFull },
    {
      webhook: {
        Put: {
          TableName: tableName("webhooks"),
          Item: { ...webhook, ...(by.user_id && { created_by: by.user_id }) },
          ...onlyIf(when`attribute_not_exists(id)`),
        },
      },
      secret: {
        Put: { TableName: tableName("webhookSecrets"), Item: { webhook_id: webhook.id, current: secret } },
      },
      audit: webhookAudit("webhook.created", by, webhook, details),
      ...more,
    },
  );
}

/**
 * Returns the webhooks of a project, oldest first. Strongly consistent, so that an event after a create reaches the new
 * webhook.
 */
export const list = (projectId: string): Promise<Webhook[]> =>
  readItems("webhooks", when`project_id = ${projectId} AND id > ${COUNTER}`);

interface Counted {
  /** Time of the suspension; absent = not suspended. */
  suspended_at?: string;
  /** Absent = the project never had a webhook. */
  webhook_count?: number;
}

/** The suspension of a project, and its webhooks. */
interface ProjectState extends Counted {
  webhooks: Webhook[];
}

/** Reads whether a project is suspended, for requests that read none of its webhooks. Strongly consistent. */
export async function suspensionOf(projectId: string): Promise<Pick<ProjectState, "suspended_at">> {
  const { suspended_at } = (await readItem<Counted>(webhookKey(projectId, COUNTER))) ?? {};
  return { ...(suspended_at !== undefined && { suspended_at }) };
}

/** Reads the counter and the webhooks of a project. Strongly consistent. A project without any item is not suspended. */
export async function projectState(projectId: string): Promise<ProjectState> {
  const items = await readItems<Webhook & Counted>("webhooks", when`project_id = ${projectId}`);
  const { suspended_at, webhook_count } = items.find(({ id }) => id === COUNTER) ?? {};
  return {
    ...(suspended_at !== undefined && { suspended_at }),
    ...(webhook_count !== undefined && { webhook_count }),
    webhooks: items.filter(({ id }) => id !== COUNTER),
  };
}

/**
 * Suspends a project or ends its suspension: marks the counter and all webhooks in one transaction, so that of concurrent
 * calls the last one decides for all of them. The marks of the webhooks spare fan-out and senders a read. A create fails
 * while the counter has the mark, and the transaction fails when a webhook was created or deleted since the read. The
 * first suspension keeps its time.
 * @param at time of the suspension in ISO 8601; undefined = end it
 * @returns the project as it was before, with the webhooks that were marked; undefined when its webhooks have changed
 * meanwhile: call it again
 */
export async function markSuspended(projectId: string, at: string | undefined): Promise<ProjectState | undefined> {
  const before = await projectState(projectId);
  const { webhook_count } = before;
  const isMarked = [before, ...before.webhooks].some(({ suspended_at }) => suspended_at !== undefined);
  // Also for an unknown id: ending what never began leaves no item.
  if (at === undefined && !isMarked) return before;
  const mark =
    at === undefined
      ? { remove: ["suspended_at"] }
      : { set: { suspended_at: when`if_not_exists(suspended_at, ${before.suspended_at ?? at})` } };
  const markIf = (id: string, condition: Part) => ({
    Update: { ...webhookKey(projectId, id), ...changing({ ...mark, when: condition }) },
  });
  const isChange = (at === undefined) !== (before.suspended_at === undefined);
  const audit = auditPut({
    scope: `project:${projectId}`,
    action: at === undefined ? "project.resumed" : "project.suspended",
    actor: platform,
    resource_id: projectId,
  });
  const isMarkedNow = await isTransacted({
    ...Object.fromEntries(before.webhooks.map(({ id }) => [id, markIf(id, when`attribute_exists(id)`)])),
    [COUNTER]: markIf(COUNTER, isAsRead("webhook_count", webhook_count)),
    ...(isChange && { audit }),
  });
  return isMarkedNow ? before : undefined;
}

/** Returns a webhook, or undefined when the project has no webhook with this id. Strongly consistent. */
export const find = (projectId: string, id: string): Promise<Webhook | undefined> =>
  readItem(webhookKey(projectId, id));

export const webhookNotFound = (cause?: unknown) =>
  new ApiError("not_found", "No webhook with this id exists.", { cause });

/**
 * Returns a webhook. Strongly consistent.
 * @throws ApiError `not_found` when the project has no webhook with this id
 */
export async function get(projectId: string, id: string): Promise<Webhook> {
  const webhook = await find(projectId, id);
  if (!webhook) throw webhookNotFound();
  return webhook;
}

/**
 * Changes the given fields of a webhook. Enabling a disabled webhook clears the reason for disabling; that or another
 * URL clears the failure state. The same URL, or enabling an enabled webhook, does not: it would close the circuit to a
 * receiver that is down. Disabling a disabled webhook keeps its time and reason, and notifies no one again.
 * @param at time of the change in ISO 8601
 * @param by absent = the platform
 * @throws ApiError `not_found` when the project has no webhook with this id, `rate_limited` when other requests keep
 * changing it
 */
export async function update(
  projectId: string,
  id: string,
  patch: WebhookPatch,
  at: string,
  by: Actor = platform,
): Promise<Webhook> {
  for (let races = 0; races < MAX_RACES; races++) {
    if (await isPatched(await get(projectId, id), patch, at, by)) return get(projectId, id);
  }
  const headers = { "Retry-After": "1" };
  // Not a 5xx, which alarms count: users could cause it as they like.
  throw new ApiError("rate_limited", "Too many requests change this webhook at once. Try again.", { headers });
}

/** Upper bound on the tries of a change while other requests change the same webhook. */
const MAX_RACES = 10;

/**
 * Changes a webhook that is still as it was read: what is cleared depends on it, and only the change that disables it writes a
 * notification.
 */
async function isPatched(before: Webhook, patch: WebhookPatch, at: string, by: Actor): Promise<boolean> {
  const { project_id, id } = before;
  const { url, name, events, enabled } = patch;
  const isDisabled = before.disabled_at !== undefined;
  const hasOtherUrl = url !== undefined && url !== before.url;
  const notifiedAt = enabled === false && !isDisabled ? disabledNotificationTime(before, new Date(at)) : undefined;
  const change = changing({
    set: {
      updated_by: by.user_id || undefined,
      url,
      name: name ?? undefined,
      events,
      ...(enabled === false && {
        disabled_at: before.disabled_at ?? at,
        disabled_reason: before.disabled_reason ?? ("manual" satisfies DisabledReason),
      }),
      disabled_notified_at: notifiedAt?.toISOString(),
    },
    remove: [
      ...(name === null ? ["name"] : []),
      ...(enabled ? ["disabled_at", "disabled_reason"] : []),
      // The failure state belongs to the receiver at the old URL.
      ...(hasOtherUrl || (enabled && isDisabled) ? failureState : []),
      ...(hasOtherUrl ? ["slow_since"] : []),
    ],
    when: allOf(
      when`attribute_exists(id) AND #url = ${before.url}`,
      isAsRead("disabled_at", before.disabled_at),
      isAsRead("disabled_notified_at", before.disabled_notified_at),
    ),
  });
  return isTransacted({
    webhook: { Update: { ...webhookKey(project_id, id), ...change } },
    audit: webhookAudit("webhook.updated", by, before, detailsOf(patch)),
    ...(notifiedAt && (await disabledNotification(before, "manual", NO_ATTEMPT, notifiedAt))),
  });
}

/** Returns the details of a change for the audit log: its fields with their new values. */
const detailsOf = ({ url, ...rest }: WebhookPatch): Record<string, unknown> => ({
  ...(url !== undefined && { url: recognizable(url) }),
  ...rest,
});

/** Returns a URL as the audit log has it. Its path and query are left out: receivers often have a token in one of them. */
const recognizable = (url: string) => ({
  host: new URL(url).host,
  sha256: createHash("sha256").update(url).digest("hex"),
});

/**
 * Deletes a webhook, its secret, and the notifications planned about it. After this no attempt starts, except one whose
 * sender has already read the webhook.
 * @throws ApiError `not_found` when the project has no webhook with this id
 */
export async function remove(projectId: string, id: string, by: Actor = platform): Promise<void> {
  const webhook = await get(projectId, id);
  const isDeleted = await isTransacted({
    audit: webhookAudit("webhook.deleted", by, webhook),
    webhook: { Delete: { ...webhookKey(projectId, id), ...onlyIf(when`attribute_exists(id)`) } },
    secret: { Delete: secretKey(id) },
    counter: countDown(counterOf(projectId)),
    ...plannedDeletes(webhook),
  });
  if (!isDeleted) throw webhookNotFound();
}

/**
 * Records the time of the first failure after a success, unless it is set already or the URL has changed.
 * @param error the failure; absent = not known
 */
export function markFailing(webhook: Webhook, at: string, error?: FailedAttempt): Promise<boolean> {
  const condition = when`attribute_not_exists(failing_since) AND #url = ${webhook.url}`;
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

/** Removes the mark of a slow webhook. */
export async function clearSlow(webhook: Webhook): Promise<void> {
  await change(webhook, { remove: ["slow_since"] }, when`attribute_exists(slow_since)`);
}

/**
 * Claims the next probe of a failing webhook.
 * @param nextProbeAt earliest time of the probe after this one, in ISO 8601
 * @param deliveryId the delivery that is sent as the probe
 * @returns false when another sender has claimed it
 */
export const claimProbe = (webhook: Webhook, nextProbeAt: string, deliveryId: string): Promise<boolean> =>
  changeOnce(webhook, { probe_at: nextProbeAt, probed_id: deliveryId }, isAsRead("probe_at", webhook.probe_at));

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
  return isTransacted({
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
 * @param webhook its state at the time of the failure: it is not disabled if its URL has changed since, nor, for the
 * reason `failing`, if a delivery has succeeded since
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
      isStillFailing && when`failing_since = ${failing_since}`,
    ),
  });
  return isTransacted({
    webhook: { Update: { ...webhookKey(project_id, id), ...change } },
    audit: webhookAudit("webhook.disabled", system, webhook, { reason }),
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

import { createHash, randomUUID } from "node:crypto";
import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { GetCommand, QueryCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
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
  ConditionsFailedError,
  dynamo,
  isConditionFailed,
  retryConflicts,
  type TransactItem,
  transact,
} from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import { ApiError } from "../platform/errors.ts";
import type { FailedAttempt } from "./health.ts";
import { projectSuspended } from "./suspension.ts";
import { type DisabledReason, MAX_WEBHOOKS_PER_PROJECT, type Webhook, type WebhookPatch } from "./webhook.ts";

/**
 * Sort key of the item that counts the webhooks of a project, and has the time of its suspension. It sorts before all
 * ids.
 */
const COUNTER = "#count";

/** The fields that senders write while a receiver fails. */
const failureState = ["failing_since", "failing_notified_at", "probe_at", "probed_id", "last_error", "change_id"];

const webhookKey = (project_id: string, id: string) => ({ TableName: tableName("webhooks"), Key: { project_id, id } });
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
const aboutWebhook = ({ id, url, failing_since }: Webhook, { status_code, error_code }: LastFailure) => ({
  webhook_id: id,
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
  try {
    await transact({
      counter: {
        Update: {
          ...webhookKey(webhook.project_id, COUNTER),
          UpdateExpression: "ADD webhook_count :one",
          ConditionExpression:
            "attribute_not_exists(suspended_at) AND (attribute_not_exists(webhook_count) OR webhook_count < :limit)",
          ExpressionAttributeValues: { ":one": 1, ":limit": MAX_WEBHOOKS_PER_PROJECT },
          ReturnValuesOnConditionCheckFailure: "ALL_OLD",
        },
      },
      webhook: {
        Put: {
          TableName: tableName("webhooks"),
          Item: { ...webhook, ...(by.user_id && { created_by: by.user_id }) },
          ConditionExpression: "attribute_not_exists(id)",
        },
      },
      secret: {
        Put: { TableName: tableName("webhookSecrets"), Item: { webhook_id: webhook.id, current: secret } },
      },
      audit: webhookAudit("webhook.created", by, webhook, { url: recognizable(url), events }),
      ...more,
    });
  } catch (error) {
    if (error instanceof ConditionsFailedError && error.items.includes("counter")) {
      if (error.stored.counter?.suspended_at !== undefined) throw projectSuspended(error);
      const message = `The limit of ${MAX_WEBHOOKS_PER_PROJECT} webhooks per project is reached. Delete one first.`;
      throw new ApiError("webhook_limit_reached", message, { cause: error });
    }
    throw error;
  }
}

/**
 * Returns the webhooks of a project, oldest first. Strongly consistent, so that an event after a create reaches the new
 * webhook.
 */
export async function list(projectId: string): Promise<Webhook[]> {
  // The list fits into one page of 1 MB because the number of webhooks is limited.
  const { Items } = await dynamo().send(
    new QueryCommand({
      TableName: tableName("webhooks"),
      ConsistentRead: true,
      KeyConditionExpression: "project_id = :project AND id > :counter",
      ExpressionAttributeValues: { ":project": projectId, ":counter": COUNTER },
    }),
  );
  return (Items ?? []) as Webhook[];
}

/** The suspension of a project, and its webhooks. */
interface ProjectState {
  /** Time of the suspension; absent = not suspended. */
  suspended_at?: string;
  /** As the counter has it; absent = the project never had a webhook. */
  webhook_count?: number;
  webhooks: Webhook[];
}

/** Reads whether a project is suspended, for requests that read none of its webhooks. Strongly consistent. */
export async function suspensionOf(projectId: string): Promise<Pick<ProjectState, "suspended_at">> {
  const { Item } = await dynamo().send(new GetCommand({ ...webhookKey(projectId, COUNTER), ConsistentRead: true }));
  return { ...(Item?.suspended_at !== undefined && { suspended_at: Item.suspended_at }) };
}

/** Reads the counter and the webhooks of a project. Strongly consistent. A project without any item is not suspended. */
export async function projectState(projectId: string): Promise<ProjectState> {
  const { Items = [] } = await dynamo().send(
    new QueryCommand({
      TableName: tableName("webhooks"),
      ConsistentRead: true,
      KeyConditionExpression: "project_id = :project",
      ExpressionAttributeValues: { ":project": projectId },
    }),
  );
  const { suspended_at, webhook_count } = Items.find(({ id }) => id === COUNTER) ?? {};
  return {
    ...(suspended_at !== undefined && { suspended_at }),
    ...(webhook_count !== undefined && { webhook_count }),
    webhooks: Items.filter(({ id }) => id !== COUNTER) as Webhook[],
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
  const mark = {
    TableName: tableName("webhooks"),
    UpdateExpression: at === undefined ? "REMOVE suspended_at" : "SET suspended_at = if_not_exists(suspended_at, :at)",
  };
  const values = at === undefined ? {} : { ":at": before.suspended_at ?? at };
  const marked = before.webhooks.map(({ id }): [string, TransactItem] => [
    id,
    {
      Update: {
        ...mark,
        Key: { project_id: projectId, id },
        ConditionExpression: "attribute_exists(id)",
        ...(at !== undefined && { ExpressionAttributeValues: values }),
      },
    },
  ]);
  const isCountAsRead = webhook_count === undefined ? "attribute_not_exists(webhook_count)" : "webhook_count = :count";
  const counted = { ...values, ...(webhook_count !== undefined && { ":count": webhook_count }) };
  const counter = {
    Update: {
      ...mark,
      Key: { project_id: projectId, id: COUNTER },
      ConditionExpression: isCountAsRead,
      ...(Object.keys(counted).length > 0 && { ExpressionAttributeValues: counted }),
    },
  };
  try {
    const isChange = (at === undefined) !== (before.suspended_at === undefined);
    const audit = auditPut({
      scope: `project:${projectId}`,
      action: at === undefined ? "project.resumed" : "project.suspended",
      actor: platform,
      resource_id: projectId,
    });
    await transact({ ...Object.fromEntries(marked), [COUNTER]: counter, ...(isChange && { audit }) });
    return before;
  } catch (error) {
    if (error instanceof ConditionsFailedError) return undefined;
    throw error;
  }
}

/** Returns a webhook, or undefined when the project has no webhook with this id. Strongly consistent. */
export async function find(projectId: string, id: string): Promise<Webhook | undefined> {
  const { Item } = await dynamo().send(new GetCommand({ ...webhookKey(projectId, id), ConsistentRead: true }));
  return Item as Webhook | undefined;
}

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
 * @throws ApiError `not_found` when the project has no webhook with this id, `service_unavailable` when other requests
 * keep changing it
 */
export async function update(
  projectId: string,
  id: string,
  patch: WebhookPatch,
  at: string,
  by: Actor = platform,
): Promise<Webhook> {
  const change = { projectId, id, patch, at, by };
  const isUpdated =
    patch.enabled === false
      ? await updateDisabled(change)
      : (await updateAndClear(change)) || (await updateWhen("", change, []));
  const webhook = isUpdated ? await find(projectId, id) : undefined;
  if (!webhook) throw webhookNotFound();
  return webhook;
}

interface RequestedChange {
  projectId: string;
  id: string;
  patch: WebhookPatch;
  at: string;
  by: Actor;
}

/** Upper bound on the tries of a change while other requests change the same webhook. */
const MAX_RACES = 10;

/**
 * Changes a webhook that is disabled after the change. Only the change that disables it writes a notification, so the
 * webhook must be as it was read, also the time of the last one.
 * @returns false when the webhook does not exist
 */
async function updateDisabled(change: RequestedChange): Promise<boolean> {
  const { projectId, id, patch } = change;
  for (let races = 0; races < MAX_RACES; races++) {
    const before = await find(projectId, id);
    if (!before) return false;
    const isDisabled = before.disabled_at !== undefined;
    const seenNotified = before.disabled_notified_at;
    const isUnchanged =
      seenNotified === undefined
        ? "attribute_not_exists(disabled_notified_at)"
        : "disabled_notified_at = :seenNotified";
    const condition = ` AND attribute_${isDisabled ? "" : "not_"}exists(disabled_at) AND #url = :seen AND ${isUnchanged}`;
    const hasOtherUrl = patch.url !== undefined && patch.url !== before.url;
    const cleared = hasOtherUrl ? [...failureState, "slow_since"] : [];
    const notifiedAt = isDisabled ? undefined : disabledNotificationTime(before, new Date(change.at));
    const more = notifiedAt && (await disabledNotification(before, "manual", NO_ATTEMPT, notifiedAt));
    const seen = { url: before.url, notified: seenNotified };
    if (await updateWhen(condition, change, cleared, { more, seen, notifiedAt: notifiedAt?.toISOString() }))
      return true;
  }
  const headers = { "Retry-After": "1" };
  throw new ApiError("service_unavailable", "Other requests keep changing this webhook. Try again.", { headers });
}

/** @returns false when the patch has no other URL and does not enable a disabled webhook */
async function updateAndClear(change: RequestedChange): Promise<boolean> {
  const { patch } = change;
  const conditions = [
    ...(patch.url === undefined ? [] : ["#url <> :url"]),
    ...(patch.enabled === true ? ["attribute_exists(disabled_at)"] : []),
  ];
  if (conditions.length === 0) return false;
  // The failure state belongs to the receiver at the old URL.
  const cleared = [...failureState, ...(patch.url === undefined ? [] : ["slow_since"])];
  return updateWhen(` AND (${conditions.join(" OR ")})`, change, cleared);
}

/**
 * @param seen values of `:seen` and `:seenNotified` in the condition
 * @param more items to write in the same transaction, with the notification that is due at `notifiedAt`
 * @returns false when the condition failed
 */
async function updateWhen(
  condition: string,
  { projectId, id, patch, at, by }: RequestedChange,
  cleared: string[],
  {
    seen,
    more,
    notifiedAt,
  }: {
    seen?: { url: string; notified: string | undefined };
    more?: Record<string, TransactItem> | undefined;
    notifiedAt?: string | undefined;
  } = {},
): Promise<boolean> {
  const { url, events, enabled } = patch;
  const set = [
    ...(by.user_id ? ["updated_by = :by"] : []),
    ...(url === undefined ? [] : ["#url = :url"]),
    ...(events === undefined ? [] : ["events = :events"]),
    ...(enabled === false
      ? ["disabled_at = if_not_exists(disabled_at, :at)", "disabled_reason = if_not_exists(disabled_reason, :manual)"]
      : []),
    ...(notifiedAt === undefined ? [] : ["disabled_notified_at = :notified"]),
  ];
  const removed = [...(enabled === true ? ["disabled_at", "disabled_reason"] : []), ...cleared];
  const clauses = [
    ...(set.length > 0 ? [`SET ${set.join(", ")}`] : []),
    ...(removed.length > 0 ? [`REMOVE ${removed.join(", ")}`] : []),
  ];
  const reason: DisabledReason = "manual";
  try {
    await transact({
      webhook: {
        Update: {
          ...webhookKey(projectId, id),
          UpdateExpression: clauses.join(" "),
          ConditionExpression: `attribute_exists(id)${condition}`,
          ...((url ?? seen?.url) !== undefined && { ExpressionAttributeNames: { "#url": "url" } }),
          ...(set.length > 0 && {
            ExpressionAttributeValues: {
              ":url": url,
              ":seen": seen?.url,
              ":seenNotified": seen?.notified,
              ":notified": notifiedAt,
              ":events": events,
              ":by": by.user_id,
              ...(enabled === false && { ":at": at, ":manual": reason }),
            },
          }),
        },
      },
      audit: webhookAudit("webhook.updated", by, { project_id: projectId, id }, detailsOf(patch)),
      ...more,
    });
    return true;
  } catch (error) {
    if (error instanceof ConditionsFailedError) return false;
    throw error;
  }
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
  try {
    await transact({
      audit: webhookAudit("webhook.deleted", by, { project_id: projectId, id }),
      webhook: { Delete: { ...webhookKey(projectId, id), ConditionExpression: "attribute_exists(id)" } },
      secret: { Delete: secretKey(id) },
      counter: {
        Update: {
          ...webhookKey(projectId, COUNTER),
          UpdateExpression: "ADD webhook_count :minusOne",
          ExpressionAttributeValues: { ":minusOne": -1 },
        },
      },
      ...plannedDeletes(webhook),
    });
  } catch (error) {
    if (error instanceof ConditionsFailedError) throw webhookNotFound(error);
    throw error;
  }
}

/**
 * Records the time of the first failure after a success, unless it is set already or the URL has changed.
 * @param error the failure; absent = not known
 */
export function markFailing(webhook: Webhook, at: string, error?: FailedAttempt): Promise<boolean> {
  const condition = "attribute_not_exists(failing_since) AND #url = :url";
  const set = `SET failing_since = :at${error ? ", last_error = :error" : ""}`;
  const values = { ":at": at, ":url": webhook.url, ...(error && { ":error": error }) };
  return changeOnce(webhook, set, condition, values);
}

/** Clears the failure state after a success, unless the URL has changed. @returns whether the webhook was failing */
export async function clearFailing(webhook: Webhook): Promise<boolean> {
  const condition = "attribute_exists(failing_since) AND #url = :url";
  return (await change(webhook, `REMOVE ${failureState.join(", ")}`, condition, { ":url": webhook.url })).isChanged;
}

/** Marks a webhook as slow, unless it is marked already or the URL has changed. */
export async function markSlow(webhook: Webhook, at: string): Promise<void> {
  const condition = "attribute_not_exists(slow_since) AND #url = :url";
  await change(webhook, "SET slow_since = :at", condition, { ":at": at, ":url": webhook.url });
}

/** Removes the mark of a slow webhook. */
export async function clearSlow(webhook: Webhook): Promise<void> {
  await change(webhook, "REMOVE slow_since", "attribute_exists(slow_since)");
}

/**
 * Claims the next probe of a failing webhook.
 * @param nextProbeAt earliest time of the probe after this one, in ISO 8601
 * @param deliveryId the delivery that is sent as the probe
 * @returns false when another sender has claimed it
 */
export function claimProbe(webhook: Webhook, nextProbeAt: string, deliveryId: string): Promise<boolean> {
  const { probe_at } = webhook;
  const set = "SET probe_at = :next, probed_id = :probed";
  const values = { ":next": nextProbeAt, ":probed": deliveryId };
  if (probe_at === undefined) return changeOnce(webhook, set, "attribute_not_exists(probe_at)", values);
  return changeOnce(webhook, set, "probe_at = :seen", { ...values, ":seen": probe_at });
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
  try {
    await transact({
      notification,
      webhook: {
        Update: {
          ...webhookKey(project_id, id),
          UpdateExpression: "SET failing_notified_at = :at",
          ConditionExpression:
            "failing_since = :since AND #url = :url AND attribute_not_exists(failing_notified_at) AND attribute_not_exists(disabled_at)",
          ExpressionAttributeNames: { "#url": "url" },
          ExpressionAttributeValues: { ":at": at, ":since": failing_since, ":url": url },
        },
      },
    });
    return true;
  } catch (error) {
    if (error instanceof ConditionsFailedError) return false;
    throw error;
  }
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
  const isEnabledAtSameUrl = "attribute_exists(id) AND attribute_not_exists(disabled_at) AND #url = :url";
  try {
    await transact({
      webhook: {
        Update: {
          ...webhookKey(project_id, id),
          UpdateExpression: "SET disabled_at = :at, disabled_reason = :reason, disabled_notified_at = :notified",
          ConditionExpression: isStillFailing ? `${isEnabledAtSameUrl} AND failing_since = :since` : isEnabledAtSameUrl,
          ExpressionAttributeNames: { "#url": "url" },
          ExpressionAttributeValues: {
            ":at": at,
            ":reason": reason,
            ":notified": notifiedAt.toISOString(),
            ":url": url,
            ...(isStillFailing && { ":since": failing_since }),
          },
        },
      },
      audit: webhookAudit("webhook.disabled", system, webhook, { reason }),
      ...(await disabledNotification(webhook, reason, failure, notifiedAt)),
    });
    return true;
  } catch (error) {
    if (error instanceof ConditionsFailedError) return false;
    throw error;
  }
}

/**
 * Changes a webhook as `change` does, and recognizes a change that it has made already: the SDK sends an update again
 * when a response is lost, and the condition is then false. Two senders may write equal values, so each writes an id.
 * @param set an update expression that consists of a SET clause
 * @returns whether this call changed it
 */
async function changeOnce(
  webhook: Webhook,
  set: string,
  condition: string,
  values: Record<string, unknown>,
): Promise<boolean> {
  const changeId = randomUUID();
  const result = await change(webhook, `${set}, change_id = :change`, condition, { ...values, ":change": changeId });
  return result.isChanged || result.found?.change_id?.S === changeId;
}

type ChangeResult = { isChanged: true } | { isChanged: false; found: Record<string, AttributeValue> | undefined };

/**
 * Updates a webhook if it still exists and the condition is true.
 * @returns whether it was updated, and if not, the webhook that exists
 */
async function change(
  { project_id, id }: Webhook,
  expression: string,
  condition: string,
  values?: Record<string, unknown>,
): Promise<ChangeResult> {
  try {
    const update = new UpdateCommand({
      ...webhookKey(project_id, id),
      UpdateExpression: expression,
      ConditionExpression: `attribute_exists(id) AND ${condition}`,
      ...(condition.includes("#url") && { ExpressionAttributeNames: { "#url": "url" } }),
      ExpressionAttributeValues: values,
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    });
    await retryConflicts(() => dynamo().send(update));
    return { isChanged: true };
  } catch (error) {
    if (isConditionFailed(error)) return { isChanged: false, found: error.Item };
    throw error;
  }
}

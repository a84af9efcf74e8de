import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type Actor, platform } from "../../foundation/access/actor.ts";
import type { ConditionsFailedError, TransactItem } from "../../foundation/platform/aws.ts";
import { backoffMs } from "../../foundation/platform/backoff.ts";
import {
  COUNTER,
  type Counter,
  countDown,
  countUp,
  insertCounted,
  joined,
  readItem,
  readItems,
  transactIf,
} from "../../foundation/platform/dynamo.ts";
import { tableName } from "../../foundation/platform/env.ts";
import { ApiError, projectSuspended, tooManyChanges } from "../../foundation/platform/errors.ts";
import { allOf, changing, isAsRead, onlyIf, when } from "../../foundation/platform/expression.ts";
import { projectAudit } from "../../foundation/records/audit-store.ts";
import { disabledNotificationTime } from "../../foundation/records/notification.ts";
import { requireOwn } from "../subscription/require-own.ts";
import { failureState } from "./circuit-breaker.ts";
import { requireNotSuspended } from "./suspension.ts";
import {
  attributesOf,
  MAX_WEBHOOKS_PER_PROJECT,
  type NewWebhook,
  optionalFields,
  type Subscription,
  type Webhook,
  type WebhookPatch,
} from "./webhook.ts";
import { disabledNotification, NO_ATTEMPT, plannedDeletes } from "./webhook-notification-store.ts";

export const webhookKey = (project_id: string, id: string) => ({
  TableName: tableName("webhooks"),
  Key: { project_id, id },
});
/** The item that counts the webhooks of a project has the time of its suspension too. */
const counterOf = (project_id: string) => ({ key: webhookKey(project_id, COUNTER), attribute: "webhook_count" });

/** The partition with a pointer to each subscription of a user, and the item that counts them. No project has such an id. */
export const subscriberOf = ({ user_id }: Pick<Subscription, "user_id">): string => `subscriber:${user_id}`;
/** Subscriptions are counted apart from webhooks: those of their project, and those of their user. */
export const subscriptionCounters = ({
  project_id,
  subscription,
}: {
  project_id: string;
  subscription: Subscription;
}) => {
  const counterIn = (partition: string): Counter => ({
    key: webhookKey(partition, COUNTER),
    attribute: "subscription_count",
  });
  return { ofProject: counterIn(project_id), ofUser: counterIn(subscriberOf(subscription)) };
};

/** Returns the writes that no longer count a webhook. */
function uncounted({ project_id, id, subscription }: Webhook): Record<string, TransactItem> {
  if (subscription === undefined) return { counter: countDown(counterOf(project_id)) };
  const { ofProject, ofUser } = subscriptionCounters({ project_id, subscription });
  const pointer = { Delete: webhookKey(subscriberOf(subscription), id) };
  return { counter: countDown(ofProject), ofUser: countDown(ofUser), pointer };
}

export const secretKey = (webhook_id: string) => ({ TableName: tableName("webhookSecrets"), Key: { webhook_id } });

/**
 * Stores a new webhook and its secret.
 * @param by absent = the platform
 * @param more items to write in the same transaction
 * @throws ApiError `webhook_limit_reached` when the project has the maximum number of webhooks, also under concurrent
 * creates; `project_suspended` while it is suspended
 */
export async function insert(
  created: NewWebhook,
  by: Actor = platform,
  more: Record<string, TransactItem> = {},
): Promise<void> {
  const onFull = (cause: ConditionsFailedError) =>
    cause.stored.counter?.suspended_at === undefined ? limitReached(cause) : projectSuspended(cause);
  const counter = { ...counterOf(created.webhook.project_id), limit: MAX_WEBHOOKS_PER_PROJECT, when: isActive };
  await insertCounted({ ...counter, onFull }, { ...puts(created, by), ...more });
}

export const isActive = when`attribute_not_exists(suspended_at)`;

/** Returns the writes of a new webhook, without that of the counter. */
export function puts({ webhook, secret, headers }: NewWebhook, by: Actor): Record<string, TransactItem> {
  const details = { url: recognizable(webhook.url), ...optionalFields(webhook), events: webhook.events };
  return {
    webhook: {
      Put: {
        TableName: tableName("webhooks"),
        Item: { ...webhook, ...(by.user_id && { created_by: by.user_id }) },
        ...onlyIf(when`attribute_not_exists(id)`),
      },
    },
    secret: {
      Put: { TableName: tableName("webhookSecrets"), Item: { webhook_id: webhook.id, current: secret, headers } },
    },
    audit: projectAudit("webhook.created", by, webhook, details, new Date(webhook.created_at)),
  };
}

/**
 * Stores webhooks of an earlier service, all of one project, in one transaction.
 * @param seen the number of webhooks that the project must have; undefined = it never had one
 * @returns false when nothing is stored, because the project has another number, or is suspended
 */
export function insertImported(project_id: string, added: NewWebhook[], seen: number | undefined): Promise<boolean> {
  const counter = countUp({
    ...counterOf(project_id),
    limit: MAX_WEBHOOKS_PER_PROJECT,
    count: added.length,
    when: allOf(isActive, isAsRead("webhook_count", seen)),
  });
  return transactIf({ counter, ...joined(added.map((each) => puts(each, platform))) });
}

export const limitReached = (cause?: unknown) =>
  new ApiError(
    "webhook_limit_reached",
    `The limit of ${MAX_WEBHOOKS_PER_PROJECT} webhooks per project is reached. Delete one first.`,
    { cause },
  );

/**
 * Returns the webhooks of a project, oldest first. Strongly consistent, so that an event after a create reaches the new
 * webhook.
 */
export const list = (projectId: string): Promise<Webhook[]> =>
  readItems("webhooks", when`project_id = ${projectId} AND id > ${COUNTER}`);

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
 * Returns a webhook, for a request that sends or reads its deliveries. Strongly consistent.
 * @throws ApiError `not_found` when the project has no webhook with this id, `project_suspended` while it is suspended
 */
export async function getUnsuspended(path: { project_id: string; webhook_id: string }): Promise<Webhook> {
  const webhook = await get(path.project_id, path.webhook_id);
  requireNotSuspended(webhook);
  return webhook;
}

/**
 * Changes the given fields of a webhook. Enabling a disabled webhook clears the reason for disabling; that, another URL
 * or another mode clears the failure state. The same URL, or enabling an enabled webhook, does not: it would close the circuit to a
 * receiver that is down. Disabling a disabled webhook keeps its time and reason, and notifies no one again.
 * @param at time of the change in ISO 8601
 * @param by absent = the platform
 * @throws ApiError `not_found` when the project has no webhook with this id, `project_suspended` unless the platform changes it,
 * `rate_limited` when other requests keep changing it
 */
export async function update(
  projectId: string,
  id: string,
  patch: WebhookPatch,
  at: string,
  by: Actor = platform,
): Promise<Webhook> {
  for (let races = 0; races < MAX_RACES; races++) {
    const before = await get(projectId, id);
    if (by.type !== "platform") requireNotSuspended(before);
    if (Object.keys(patch).some((field) => field !== "enabled")) requireOwn(before);
    if (await patchAsRead(before, patch, at, by)) return get(projectId, id);
    await sleep(backoffMs(races, Math.random()));
  }
  throw tooManyChanges("webhook");
}

/** Upper bound on the tries of a change while other requests change the same webhook. */
const MAX_RACES = 10;

/**
 * Changes a webhook that is still as it was read: what is cleared depends on it, and only the change that disables it writes a
 * notification.
 */
async function patchAsRead(before: Webhook, patch: WebhookPatch, at: string, by: Actor): Promise<boolean> {
  const { project_id, id } = before;
  const { url, enabled, mode } = patch;
  const { set, remove } = attributesOf(patch, at, before);
  const isDisabled = before.disabled_at !== undefined;
  const hasOtherUrl = url !== undefined && url !== before.url;
  const hasOtherMode = mode !== undefined && mode !== (before.mode ?? "live");
  const stops = (enabled === false && !isDisabled) || (hasOtherMode && mode === "shadow");
  const notifiedAt = stops ? disabledNotificationTime(before, new Date(at)) : undefined;
  const change = changing({
    set: {
      updated_by: by.user_id || undefined,
      ...set,
      disabled_notified_at: notifiedAt?.toISOString(),
    },
    remove: [
      ...remove,
      // The failure state belongs to the receiver at the old URL, and to the time before nothing was sent.
      ...(hasOtherUrl || hasOtherMode || (enabled && isDisabled) ? failureState : []),
      ...(hasOtherUrl ? ["slow_since", "last_certification"] : []),
    ],
    when: allOf(
      when`attribute_exists(id) AND #url = ${before.url}`,
      isAsRead("disabled_at", before.disabled_at),
      isAsRead("disabled_notified_at", before.disabled_notified_at),
      isAsRead("mode", before.mode),
      isAsRead("delivery", before.delivery),
      isAsRead("header_names", before.header_names),
    ),
  });
  return transactIf({
    webhook: { Update: { ...webhookKey(project_id, id), ...change } },
    ...headersUpdate(id, patch),
    audit: projectAudit("webhook.updated", by, before, detailsOf(patch)),
    ...(notifiedAt &&
      (await disabledNotification(before, enabled === false ? "manual" : "shadow", NO_ATTEMPT, notifiedAt))),
  });
}

/** Returns the write of the values of a webhook's own headers, which replace all that it had. */
function headersUpdate(webhook_id: string, { headers }: WebhookPatch): Record<string, TransactItem> {
  if (headers === undefined) return {};
  const change = headers === null ? { remove: ["headers"] } : { set: { headers } };
  return { headers: { Update: { ...secretKey(webhook_id), ...changing({ ...change, when: exists }) } } };
}

const exists = when`attribute_exists(webhook_id)`;

/** Returns the details of a change for the audit log: its fields with their new values, of headers only the names. */
const detailsOf = ({ url, headers, ...rest }: WebhookPatch): Record<string, unknown> => ({
  ...(url !== undefined && { url: recognizable(url) }),
  ...(headers !== undefined && { header_names: headers?.map(([name]) => name) ?? null }),
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
  const isDeleted = await transactIf({
    audit: projectAudit("webhook.deleted", by, webhook),
    webhook: { Delete: { ...webhookKey(projectId, id), ...onlyIf(when`attribute_exists(id)`) } },
    secret: { Delete: secretKey(id) },
    ...uncounted(webhook),
    ...plannedDeletes(webhook),
  });
  if (!isDeleted) throw webhookNotFound();
}

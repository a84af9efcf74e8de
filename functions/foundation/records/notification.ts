import { createHash } from "node:crypto";
import type { FailureCode } from "../events/failure-code.ts";
import type { HealthEventName } from "../events/webhook-event.ts";
import { addSeconds } from "../platform/time.ts";
import { timeOrderedUuid } from "../platform/uuid.ts";

/*
 * Notifications tell owners what happened to their webhooks and keys. A notification is a row that is written in the
 * transaction of the change, so a crash loses none and none is written twice. A worker publishes and then deletes it.
 */

/** The outcome of the attempt that led to a notification. */
export interface LastFailure {
  /** null = no response arrived. */
  status_code: number | null;
  /** null = no attempt led to it. */
  error_code: FailureCode | null;
}

/** The fields about a webhook. Other webhooks of the project get it, so it has the host of the URL only. */
interface AboutWebhook extends LastFailure {
  webhook_id: string;
  /** Absent = the webhook has none. */
  name?: string;
  host: string;
  /** Time of the first failure after the last success; null = not failing. */
  failing_since: string | null;
}

/** The fields about a key. Contains no secret. */
interface AboutKey {
  api_key_id: string;
  /** Id of the user or service account that owns the key. */
  user_id: string;
}

/** Why a key was revoked: its user deleted it, it was reported as leaked, or the platform or an admin removed its owner. */
export type RevocationReason = "deleted" | "leaked" | "revoked_by_platform" | "service_account_deleted";

/** Where a scanner has found a key, as it says: text of others. */
export interface LeakPlace {
  url?: string;
  /** What it was in: `content`, `commit`, `issue_body` and others. */
  source?: string;
}

/** The data of a notification, by type. The types are part of the API. */
export interface NotificationData {
  "webhook.failing": AboutWebhook;
  /** `reason` is the webhook's `disabled_reason`, or `shadow` if it was switched to shadow mode. */
  "webhook.disabled": AboutWebhook & { reason: string };
  /** Stored without name and prefix: they are read when it is published, because both may change until then. */
  "api_key.expiring": AboutKey & { expires_at: string; days_left: number };
  /** `secret`: the current one, with which the key is revoked, or a previous one alone. Name and prefix: null = not known. */
  "api_key.revoked": AboutKey & {
    name: string | null;
    key_prefix: string | null;
    reason: RevocationReason;
    secret: "current" | "earlier";
    /** Present if a scanner said where it was. */
    found?: LeakPlace;
  };
}

export type NotificationType = keyof NotificationData;

/** A notification about a webhook. Other webhooks of the project get it as an event. */
export type HealthInput = {
  [Type in HealthEventName]: {
    type: Type;
    project_id: string;
    data: NotificationData[Type];
    /** Present for a `webhook.failing` that is due later: it is dropped if the webhook does not fail any more by then. */
    is_planned?: true;
  };
}[HealthEventName];

/** A notification about a key. `project_id` is that of its service account; absent = the key of a person. */
export type KeyInput = {
  [Type in Exclude<NotificationType, HealthEventName>]: {
    type: Type;
    project_id?: string;
    data: NotificationData[Type];
  };
}[Exclude<NotificationType, HealthEventName>];

export type NotificationInput = HealthInput | KeyInput;

/** A row of the `notifications` table. */
export type Notification = NotificationInput & {
  owner: string;
  /** Due time and id: the rows of an owner are in order of their due time. */
  due: string;
  due_shard: number;
  /** Minute of the due time and owner: in the index, the rows of an owner in a minute are beside each other. */
  due_owner: string;
  due_at: string;
  id: string;
  /** Time of the change; for one that is due later, the time at which it is due. */
  timestamp: string;
  /** How often it could not be published; absent = never. */
  failures?: number;
  /** After a failure, it is not published before this time. */
  retry_at?: string;
};

/** Partitions of the index. Each is read once a minute. */
export const NOTIFICATION_SHARDS = 4;

/**
 * Returns the project or the user that a notification is about. Their reminders are an owner of their own: thousands of keys
 * may expire at the same time, and must not hold up what happened to a webhook or a key.
 */
export function ownerOf({ type, project_id, data }: NotificationInput): string {
  const owner = project_id ?? ("user_id" in data ? data.user_id : data.webhook_id);
  return type === "api_key.expiring" ? `reminders#${owner}` : owner;
}

const shardOf = (owner: string): number =>
  createHash("sha256").update(owner).digest().readUInt32BE() % NOTIFICATION_SHARDS;

/**
 * Creates the row of a notification. Two of the same type about the same webhook or secret that are due at the same time are
 * one row: the later write replaces the earlier one.
 * @param dueAt when it is published, and its timestamp
 */
export function createNotification(input: NotificationInput, dueAt: Date): Notification {
  const { type, data } = input;
  const owner = ownerOf(input);
  const subject = "webhook_id" in data ? [data.webhook_id] : [data.api_key_id, "key_prefix" in data && data.key_prefix];
  const identity = createHash("sha256").update(JSON.stringify([type, ...subject]));
  const id = timeOrderedUuid(dueAt.getTime(), identity.digest());
  const due_at = dueAt.toISOString();
  return {
    ...input,
    owner,
    due: `${due_at}#${id}`,
    due_shard: shardOf(owner),
    due_owner: `${minuteOf(dueAt)}#${owner}`,
    due_at,
    id,
    timestamp: due_at,
  };
}

const minuteOf = (at: Date): string => at.toISOString().slice(0, "2026-01-01T00:00".length);

/** Upper bound of `due` of the rows of an owner that are due: `$` is the character after `#`. */
export const dueBound = (now: Date): string => `${now.toISOString()}$`;

/** Upper bound of `due_owner` of the rows that are due in this minute or before. */
export const dueOwnerBound = (now: Date): string => `${minuteOf(now)}$`;

/**
 * Upper bound on the notifications of one owner that are due and not published. Beyond it, none is written: the change is
 * made, and in the audit log. Deleting all keys of three users or service accounts is below it.
 */
export const MAX_WAITING_PER_OWNER = 500;

/** A notification that fails as often is deleted, after about three days. */
const MAX_FAILURES = 14;
/** Delay before the first retry. Each further one is twice as long. */
const FIRST_RETRY_SECONDS = 30;

/** Returns the row of a notification that could not be published, with its next retry; undefined = none follows. */
export function afterFailure(row: Notification, now: Date): Notification | undefined {
  const failures = (row.failures ?? 0) + 1;
  const retry_at = addSeconds(now, FIRST_RETRY_SECONDS * 2 ** (failures - 1));
  return failures < MAX_FAILURES ? { ...row, failures, retry_at } : undefined;
}

/** Days before its expiry at which the owner of a key is reminded. */
const REMINDER_DAYS = [30, 7, 1];

/**
 * Returns the next reminder of a key that expires, with the time at which it is due; undefined = none is left. A key has one
 * reminder at a time: when it is published, the next one takes its place. With all three from the start, keys that are
 * created and deleted would pile up rows.
 */
export function nextReminder(
  { id, user_id, project_id, expires_at }: { id: string; user_id: string; project_id?: string; expires_at?: string },
  now: Date,
): Notification | undefined {
  if (expires_at === undefined) return undefined;
  const dueAtOf = (daysLeft: number) => new Date(addSeconds(new Date(expires_at), -daysLeft * 24 * 3600));
  const days_left = REMINDER_DAYS.find((days) => dueAtOf(days) > now);
  if (days_left === undefined) return undefined;
  const data = { api_key_id: id, user_id, expires_at, days_left };
  return createNotification(
    { type: "api_key.expiring", ...(project_id !== undefined && { project_id }), data },
    dueAtOf(days_left),
  );
}

/** Minimum time between two notifications that the same webhook is disabled. */
const NOTIFY_DISABLED_EVERY_SECONDS = 600;

/**
 * Returns when the owners are notified that a webhook is disabled now: at once, or when ten minutes have passed since the
 * last such notification or since its creation. Otherwise a user who disables and enables it, or creates and deletes others,
 * would send any number of events. One that is planned already is replaced: the later one is due at the same time.
 */
export function disabledNotificationTime(
  { created_at, disabled_notified_at = created_at }: { created_at: string; disabled_notified_at?: string },
  now: Date,
): Date {
  const last = new Date(disabled_notified_at);
  if (last > now) return last;
  const next = new Date(addSeconds(last, NOTIFY_DISABLED_EVERY_SECONDS));
  return next > now ? next : now;
}

/** How long a webhook fails without a success before its owners are notified. */
const NOTIFY_FAILING_AFTER_SECONDS = 30 * 60;
/** A next attempt within this time after that notifies them. With a later one, or none, the notification is planned. */
const NEXT_ATTEMPT_SECONDS = 15 * 60;
/** Planned ones are due at multiples of this time: a webhook that fails and recovers again and again has one row in it. */
const PLANNED_EVERY_SECONDS = 5 * 60;

/** Returns the time of the notification that is planned for a webhook that fails since `failingSince`. */
export function plannedFailingTime(failingSince: string): Date {
  const every = PLANNED_EVERY_SECONDS * 1000;
  const longAt = Date.parse(failingSince) + NOTIFY_FAILING_AFTER_SECONDS * 1000;
  return new Date(Math.ceil(longAt / every) * every);
}

/**
 * Returns when the owners of a failing webhook are notified, after a failed attempt.
 * @param nextAttemptAt time of the delivery's next attempt, in ISO 8601; absent = none follows
 * @returns `now` when it has failed for long; a later time for a notification to plan; undefined when they are notified
 *   already, or the next attempt is soon enough to notice it
 */
export function failingNotificationTime(
  webhook: { failing_since?: string; failing_notified_at?: string; disabled_at?: string },
  now: Date,
  nextAttemptAt?: string,
): Date | undefined {
  const { failing_since, failing_notified_at, disabled_at } = webhook;
  if (failing_since === undefined || failing_notified_at !== undefined || disabled_at !== undefined) return undefined;
  const longAt = addSeconds(new Date(failing_since), NOTIFY_FAILING_AFTER_SECONDS);
  if (now.toISOString() >= longAt) return now;
  const isNoticedNext =
    nextAttemptAt !== undefined && nextAttemptAt <= addSeconds(new Date(longAt), NEXT_ATTEMPT_SECONDS);
  return isNoticedNext ? undefined : plannedFailingTime(failing_since);
}

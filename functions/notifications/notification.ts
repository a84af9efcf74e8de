import { createHash } from "node:crypto";
import type { HealthEventName } from "../deployments/webhook-event.ts";
import { addSeconds } from "../platform/time.ts";
import { timeOrderedUuid } from "../platform/uuid.ts";
import type { FailureCode } from "../receivers/failure-code.ts";

/*
 * Notifications tell owners what happened to their webhooks and keys. A notification is a row that is written in the
 * transaction of the change, so none is lost and none is written twice. A worker publishes and then deletes it.
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

/** Why a key ended: its user deleted it, it was reported as leaked, or the platform or an admin removed its owner. */
export type RevocationReason = "deleted" | "leaked" | "revoked_by_platform" | "service_account_deleted";

/** The data of a notification, by type. The types are part of the API. */
export interface NotificationData {
  "webhook.failing": AboutWebhook;
  /** `reason` is the webhook's `disabled_reason`. */
  "webhook.disabled": AboutWebhook & { reason: string };
  /** Stored without name and prefix: they are read when it is published, because both may change until then. */
  "api_key.expiring": AboutKey & { expires_at: string; days_left: number };
  /** `secret`: the current one, with which the key ends, or an earlier one alone. Name and prefix: null = not known. */
  "api_key.revoked": AboutKey & {
    name: string | null;
    key_prefix: string | null;
    reason: RevocationReason;
    secret: "current" | "earlier";
  };
}

export type NotificationType = keyof NotificationData;

/** A notification about a webhook. Other webhooks of the project get it as an event. */
export type HealthInput = {
  [Type in HealthEventName]: {
    type: Type;
    project_id: string;
    data: NotificationData[Type];
    /** Present for one that is due later: it is dropped if the webhook does not fail any more by then. */
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
  due_shard: string;
  /** Due time and id: rows are in order of their due time. */
  due: string;
  due_at: string;
  id: string;
  /** Time of the change; for a reminder, the time at which it is due. */
  timestamp: string;
};

/** Partitions of the table. Each is read once a minute. */
export const NOTIFICATION_SHARDS = 8;

/** Returns the project or the user that a notification is about. Its rows are in one shard. */
export const ownerOf = ({ project_id, data }: NotificationInput): string =>
  project_id ?? ("user_id" in data ? data.user_id : data.webhook_id);

function shardOf(owner: string): string {
  return String(createHash("sha256").update(owner).digest().readUInt32BE() % NOTIFICATION_SHARDS);
}

/**
 * Creates the row of a notification.
 * @param dueAt when it is published, and its timestamp
 * @param random at least 16 random bytes
 */
export function createNotification(input: NotificationInput, dueAt: Date, random: Buffer): Notification {
  const id = timeOrderedUuid(dueAt.getTime(), random);
  const due_at = dueAt.toISOString();
  return { ...input, due_shard: shardOf(ownerOf(input)), due: `${due_at}#${id}`, due_at, id, timestamp: due_at };
}

/** Upper bound of the sort keys of the rows that are due: `$` is the character after `#`. */
export const dueBound = (now: Date): string => `${now.toISOString()}$`;

/** Days before its expiry at which the owner of a key is reminded. */
const REMINDER_DAYS = [30, 7, 1];

/** Returns the reminders of a key that expires, with the times at which they are due. Those in the past are left out. */
export function remindersOf(
  { id, user_id, project_id, expires_at }: { id: string; user_id: string; project_id?: string; expires_at?: string },
  now: Date,
): { input: NotificationInput; dueAt: Date }[] {
  if (expires_at === undefined) return [];
  return REMINDER_DAYS.flatMap((days_left) => {
    const dueAt = new Date(addSeconds(new Date(expires_at), -days_left * 24 * 3600));
    if (dueAt <= now) return [];
    const data = { api_key_id: id, user_id, expires_at, days_left };
    return [{ input: { type: "api_key.expiring", ...(project_id !== undefined && { project_id }), data }, dueAt }];
  });
}

/** How long a webhook fails without a success before its owners are notified. */
const NOTIFY_FAILING_AFTER_SECONDS = 30 * 60;
/** A next attempt within this time after that notifies them. With a later one, or none, the notification is planned. */
const NEXT_ATTEMPT_SECONDS = 15 * 60;

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
  return isNoticedNext ? undefined : new Date(longAt);
}

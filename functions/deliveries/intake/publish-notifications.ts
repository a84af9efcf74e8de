import type { Context } from "aws-lambda";
import { createHealthEvent } from "../../foundation/events/webhook-event.ts";
import { log } from "../../foundation/platform/log.ts";
import { allEnded, inParallel } from "../../foundation/platform/parallel.ts";
import {
  afterFailure,
  type HealthInput,
  type KeyInput,
  NOTIFICATION_SHARDS,
  type Notification,
  nextReminder,
} from "../../foundation/records/notification.ts";
import { findDue, findDueOwners, postpone, remove, replace } from "../../foundation/records/notification-store.ts";
import { type NotificationMessage, publish } from "../../foundation/records/notification-topic.ts";
import { isExpired } from "../../identity/api-keys/api-key.ts";
import * as apiKeys from "../../identity/api-keys/api-key-store.ts";
import { listsEvent } from "../../webhooks/webhook/event-filter.ts";
import type { Webhook } from "../../webhooks/webhook/webhook.ts";
import { stopReasonOf } from "../../webhooks/webhook/webhook-notification-store.ts";
import * as webhooks from "../../webhooks/webhook/webhook-store.ts";
import { planDelivery, store } from "./plan-delivery.ts";

/** Owners of one shard whose notifications are published at the same time. */
const PARALLEL_OWNERS = 8;
/** Upper bound on the owners of one shard that a run serves: more than it has time for. */
const MAX_OWNERS = 5_000;
/** Nothing is begun when this much time or less is left. */
const MIN_REMAINING_MS = 10_000;
/** Upper bound on the notifications of one owner that a run publishes, so that a flood of them does not delay others. */
const MAX_PER_OWNER = 100;
/** How much a notification that fails counts: it may take as long as many others. */
const FAILURE_COUNT = 25;

type HasTime = () => boolean;

/**
 * Publishes every notification that is due: to the project's other webhooks that subscribe to it and to the topic of the
 * stage. Only then is its row deleted, so a crash loses none. A repetition is recognized: a delivery by its
 * row, a message of the topic by its `id`. Runs every minute. Concurrent runs are safe. It is not part of the sweep, whose
 * retries slow subscribers would delay.
 *
 * Does not throw for a notification that fails: its row stays, and the lag shows it, until a retry publishes it or it is
 * given up.
 */
export async function handler(_event: unknown, context: Pick<Context, "getRemainingTimeInMillis">): Promise<void> {
  const hasTime = () => context.getRemainingTimeInMillis() > MIN_REMAINING_MS;
  const shards = Array.from({ length: NOTIFICATION_SHARDS }, (_, shard) => shard);
  // All at once, so that no shard waits for the flood of another.
  const lags = await allEnded(shards.map((shard) => publishShard(shard, hasTime)));
  log.info("notifications", {}, { notificationLag: Math.max(...lags) });
}

/** @returns by how many seconds the longest overdue row was late, 0 when none was due */
async function publishShard(shard: number, hasTime: HasTime): Promise<number> {
  const now = new Date();
  const { owners, longestDueAt } = await findDueOwners(shard, now, MAX_OWNERS);
  await inParallel(owners, PARALLEL_OWNERS, (owner) => publishOfOwner(owner, now, hasTime));
  return longestDueAt === undefined ? 0 : Math.max(0, (now.getTime() - Date.parse(longestDueAt)) / 1000);
}

/** Publishes notifications of an owner, up to its bound. */
async function publishOfOwner(owner: string, now: Date, hasTime: HasTime): Promise<void> {
  if (!hasTime()) return;
  try {
    let left = MAX_PER_OWNER;
    for (const row of await findDue(owner, now)) {
      if (left <= 0 || !hasTime()) return;
      left -= (await publishOrKeep(row)) ? 1 : FAILURE_COUNT;
    }
  } catch (error) {
    log.error("notification failed", error, { owner });
  }
}

/** Publishes a notification and deletes its row. @returns false after an error: the row stays for a retry, if one follows */
async function publishOrKeep(row: Notification): Promise<boolean> {
  const { id, type, project_id } = row;
  const ids = { notification_id: id, type, project_id };
  try {
    const isPublished = isAboutWebhook(row) ? await publishHealth(row) : await publishAboutKey(row);
    await (isPublished ? finish(row) : remove(row));
    log.info(isPublished ? "notification published" : "notification dropped", ids);
    return true;
  } catch (error) {
    const retried = afterFailure(row, new Date());
    log.error(retried ? "notification failed" : "notification given up", error, ids);
    await (retried ? postpone(retried) : finish(row));
    return false;
  }
}

/** Deletes the row of a notification that is published or given up. The next reminder takes the place of a reminder. */
async function finish(row: Notification): Promise<void> {
  if (row.type !== "api_key.expiring") return await remove(row);
  const { project_id, data } = row;
  const next = nextReminder({ id: data.api_key_id, ...data, ...(project_id && { project_id }) }, new Date());
  await (next ? replace(row, next) : remove(row));
}

type HealthNotification = Notification & HealthInput;
type KeyNotification = Notification & KeyInput;

const isAboutWebhook = (row: Notification): row is HealthNotification => "webhook_id" in row.data;

/**
 * @returns false for a notification that is no longer true: `webhook.disabled` if the webhook sends again or was deleted since, and
 *   a planned `webhook.failing` if it recovered, changed or was deleted
 */
async function publishHealth(row: HealthNotification): Promise<boolean> {
  const ofProject = await webhooks.list(row.project_id);
  const current = asOfNow(row, ofProject);
  if (!current) return false;
  await deliver(current, ofProject);
  await publish(toMessage(current, current.data));
  return true;
}

/** Returns the notification with the reason that applies now: it may have changed since. Undefined = it is no longer true. */
function asOfNow(row: HealthNotification, ofProject: Webhook[]): HealthNotification | undefined {
  const about = ofProject.find(({ id }) => id === row.data.webhook_id);
  if (row.type === "webhook.disabled") {
    // What was shadowed meanwhile is not sent by itself, also when the webhook is live again.
    const shadowed = row.data.reason === "shadow" ? row.data.reason : undefined;
    const reason = about && (stopReasonOf(about) ?? shadowed);
    return reason && { ...row, data: { ...row.data, reason } };
  }
  const stillFails = about?.failing_since === row.data.failing_since && about.disabled_at === undefined;
  return !row.is_planned || stillFails ? row : undefined;
}

/** Creates the deliveries to the other webhooks of the project that subscribe to the event. */
async function deliver(
  { type, data, id, project_id, timestamp }: HealthNotification,
  ofProject: Webhook[],
): Promise<void> {
  const event = createHealthEvent(type, { id, project_id, timestamp, data });
  const receivers = ofProject.filter((webhook) => webhook.id !== data.webhook_id && listsEvent(webhook.events, type));
  // The rows come first: after a crash, the next run finds them and creates no others.
  await store(await allEnded(receivers.map((webhook) => planDelivery(event, webhook, new Date(), "never"))));
}

/** Publishes a notification about a key. A reminder is dropped when the key is deleted or has expired. */
async function publishAboutKey(row: KeyNotification): Promise<boolean> {
  if (row.type === "api_key.revoked") {
    await publish(toMessage(row, row.data));
    return true;
  }
  const apiKey = await apiKeys.find(row.data.user_id, row.data.api_key_id);
  if (!apiKey || isExpired(apiKey, new Date())) return false;
  const { name, key_prefix } = apiKey;
  await publish(toMessage(row, { ...row.data, name, key_prefix }));
  return true;
}

const toMessage = ({ id, type, project_id, timestamp }: Notification, data: object): NotificationMessage => ({
  id,
  type,
  project_id: project_id ?? null,
  timestamp,
  data,
});

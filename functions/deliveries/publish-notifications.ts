import type { Context } from "aws-lambda";
import { isExpired } from "../api-keys/api-key.ts";
import * as apiKeys from "../api-keys/api-key-store.ts";
import { createHealthEvent } from "../deployments/webhook-event.ts";
import {
  type HealthInput,
  type KeyInput,
  NOTIFICATION_SHARDS,
  type Notification,
  ownerOf,
} from "../notifications/notification.ts";
import { findDue, remove } from "../notifications/notification-store.ts";
import { type NotificationMessage, publish } from "../notifications/notification-topic.ts";
import { log } from "../platform/log.ts";
import { allEnded, inParallel } from "../platform/parallel.ts";
import type { Webhook } from "../webhooks/webhook.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { Outbox } from "./outbox.ts";
import { planDelivery } from "./plan-delivery.ts";

const PAGE_SIZE = 100;
const PARALLEL_SHARDS = 2;
/** Notifications of one shard that are published at once. */
const PARALLEL_NOTIFICATIONS = 4;
/** Nothing is begun when this much time or less is left. */
const MIN_REMAINING_MS = 10_000;
/** Upper bound on the notifications of one owner that a run publishes, so that a flood of them does not delay others. */
const MAX_PER_OWNER = 100;
/** How much a notification that fails counts: it may take as long as many others, and may fail in every run. */
const FAILURE_COUNT = 25;

/** How many notifications of each owner this run has begun. */
type Counts = Map<string, number>;

/**
 * Publishes every notification that is due: to the project's other webhooks that subscribe to it and to the topic of the
 * stage. Only then is its row deleted, so a crash loses none. A repetition is recognized: a delivery by its
 * row, a message of the topic by its `id`. Runs every minute. Concurrent runs are safe.
 *
 * Does not throw for a notification that fails: its row stays, and the lag shows it.
 */
export async function handler(_event: unknown, context: Pick<Context, "getRemainingTimeInMillis">): Promise<void> {
  const hasTime = () => context.getRemainingTimeInMillis() > MIN_REMAINING_MS;
  const shards = Array.from({ length: NOTIFICATION_SHARDS }, (_, shard) => shard);
  const counts: Counts = new Map();
  const lags = await inParallel(shards, PARALLEL_SHARDS, (shard) => publishShard(shard, counts, hasTime));
  log.info("notifications", {}, { notificationLag: Math.max(...lags) });
}

/** @returns by how many seconds the longest overdue row was late, 0 when none was due */
async function publishShard(shard: number, counts: Counts, hasTime: () => boolean): Promise<number> {
  const now = new Date();
  let lagSeconds: number | undefined;
  let after: string | undefined;
  do {
    const { rows, next } = await findDue(shard, now, PAGE_SIZE, after);
    const [longestDue] = rows;
    lagSeconds ??= longestDue === undefined ? 0 : (now.getTime() - Date.parse(longestDue.due_at)) / 1000;
    await inParallel(rows, PARALLEL_NOTIFICATIONS, async (row) => {
      if (hasTime() && isWithinBound(counts, ownerOf(row))) await publishOrKeep(row, counts);
    });
    after = next;
  } while (after !== undefined && hasTime());
  return lagSeconds;
}

/** Counts one more notification of the owner. @returns false when it has reached its bound in this run */
function isWithinBound(counts: Counts, owner: string): boolean {
  const count = counts.get(owner) ?? 0;
  if (count >= MAX_PER_OWNER) return false;
  counts.set(owner, count + 1);
  return true;
}

/** Publishes a notification and deletes its row. After an error the row stays for the next run. */
async function publishOrKeep(row: Notification, counts: Counts): Promise<void> {
  const { id, type, project_id } = row;
  const ids = { notification_id: id, type, project_id };
  try {
    const isPublished = isAboutWebhook(row) ? await publishHealth(row) : await publishAboutKey(row);
    await remove(row);
    log.info(isPublished ? "notification published" : "notification dropped", ids);
  } catch (error) {
    counts.set(ownerOf(row), (counts.get(ownerOf(row)) ?? 0) + FAILURE_COUNT);
    log.error("notification failed", error, ids);
  }
}

type HealthNotification = Notification & HealthInput;
type KeyNotification = Notification & KeyInput;

const isAboutWebhook = (row: Notification): row is HealthNotification => "webhook_id" in row.data;

/** @returns false for a planned notification that is no longer true: the webhook recovered, changed or was deleted */
async function publishHealth(row: HealthNotification): Promise<boolean> {
  const ofProject = await webhooks.list(row.project_id);
  const about = ofProject.find(({ id }) => id === row.data.webhook_id);
  const isStillFailing = about?.failing_since === row.data.failing_since && about.disabled_at === undefined;
  if (row.is_planned && !isStillFailing) return false;
  await deliver(row, ofProject);
  await publish(toMessage(row, row.data));
  return true;
}

/** Creates the deliveries to the other webhooks of the project that subscribe to the event. */
async function deliver(
  { type, data, id, project_id, timestamp }: HealthNotification,
  ofProject: Webhook[],
): Promise<void> {
  const event = createHealthEvent(type, { id, project_id, timestamp, data });
  const receivers = ofProject.filter((webhook) => webhook.id !== data.webhook_id && webhook.events.includes(type));
  // The rows come first: after a crash, the next run finds them and creates no others.
  const planned = await allEnded(receivers.map((webhook) => planDelivery(event, webhook, new Date(), false, 0)));
  await new Outbox(1).add(planned.flat());
}

/**
 * Publishes a notification about a key. A reminder is dropped when the key is deleted or has expired.
 * @returns whether it was published
 */
async function publishAboutKey(row: KeyNotification): Promise<boolean> {
  if (row.type === "api_key.revoked") {
    await publish(toMessage(row, row.data));
    return true;
  }
  const { user_id, api_key_id, expires_at } = row.data;
  const apiKey = await apiKeys.find(user_id, api_key_id);
  if (!apiKey || apiKey.expires_at !== expires_at || isExpired(apiKey, new Date())) return false;
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

import { type Actor, system } from "../../foundation/access/actor.ts";
import type { Identity } from "../../foundation/access/identity.ts";
import { batchGet, ConditionsFailedError, transact } from "../../foundation/platform/aws.ts";
import { COUNTER, countUp, readItem, readItems, readMany, transactIf } from "../../foundation/platform/dynamo.ts";
import { tableName } from "../../foundation/platform/env.ts";
import { ApiError, projectSuspended } from "../../foundation/platform/errors.ts";
import { allOf, changing, isAsRead, when } from "../../foundation/platform/expression.ts";
import { failureState } from "../webhook/circuit-breaker.ts";
import type { NewWebhook, Subscription, Webhook } from "../webhook/webhook.ts";
import {
  find,
  isActive,
  list,
  puts,
  remove,
  subscriberOf,
  subscriptionCounters,
  webhookKey,
} from "../webhook/webhook-store.ts";

const MAX_SUBSCRIPTIONS_PER_PROJECT = 200;
const MAX_SUBSCRIPTIONS_PER_USER = 50;

/** A webhook that is a subscription. */
export type Subscribed = Webhook & { subscription: Subscription };

export const hasEnded = ({ subscription }: Webhook, now: Date): boolean =>
  subscription !== undefined && Date.parse(subscription.expires_at) <= now.getTime();

/** Returns the row of a subscription; undefined = there is none. */
export const findSubscription = async (projectId: string, id: string) =>
  (await find(projectId, id)) as Subscribed | undefined;

/**
 * Stores a new subscription. With a full project or user, those that have ended are removed first.
 * @returns false when it exists: another request has stored it meanwhile
 * @throws ApiError `webhook_limit_reached`, `project_suspended`
 */
export async function insert(created: NewWebhook & { webhook: Subscribed }, by: Actor, now: Date): Promise<boolean> {
  if (await insertOnce(created, by)) return true;
  const { project_id, id, subscription } = created.webhook;
  if ((await find(project_id, id)) !== undefined) return false;
  await removeEnded(project_id, subscription.user_id, now);
  if (await insertOnce(created, by)) return true;
  throw new ApiError(
    "webhook_limit_reached",
    `A project has at most ${MAX_SUBSCRIPTIONS_PER_PROJECT} subscriptions, and a user ${MAX_SUBSCRIPTIONS_PER_USER}. End one first.`,
  );
}

/** @returns false when a counter is full, or the subscription exists */
async function insertOnce(created: NewWebhook & { webhook: Subscribed }, by: Actor): Promise<boolean> {
  const { project_id, id, subscription } = created.webhook;
  const partition = subscriberOf(subscription);
  const { ofProject, ofUser } = subscriptionCounters(created.webhook);
  try {
    await transact({
      ofProject: countUp({ ...ofProject, limit: MAX_SUBSCRIPTIONS_PER_PROJECT, when: isActive }),
      ofUser: countUp({ ...ofUser, limit: MAX_SUBSCRIPTIONS_PER_USER }),
      pointer: { Put: { TableName: tableName("webhooks"), Item: { project_id: partition, id, of: project_id } } },
      ...puts(created, by),
    });
    return true;
  } catch (error) {
    if (!(error instanceof ConditionsFailedError)) throw error;
    if (error.stored.ofProject?.suspended_at !== undefined) throw projectSuspended(error);
    return false;
  }
}

async function removeEnded(projectId: string, userId: string, now: Date): Promise<void> {
  const partition = subscriberOf({ user_id: userId });
  const pointers = await readItems<{ id: string; of: string }>(
    "webhooks",
    when`project_id = ${partition} AND id > ${COUNTER}`,
  );
  const own = await Promise.all(pointers.map((pointer) => find(pointer.of, pointer.id)));
  const all = new Map([...own, ...(await list(projectId))].map((webhook) => [webhook?.id, webhook]));
  for (const webhook of all.values())
    if (webhook && hasEnded(webhook, now)) await remove(webhook.project_id, webhook.id, system).catch(ignoreGone);
}

const ignoreGone = (error: unknown): void => {
  if (!(error instanceof ApiError) || error.code !== "not_found") throw error;
};

/** Returns a webhook as `find` does, and as a sender may use it now; undefined also when its subscription has ended. */
export async function findUsable(projectId: string, id: string): Promise<Webhook | undefined> {
  const webhook = await find(projectId, id);
  return webhook && usable(webhook, new Date());
}

/** A row of a secret that has ended is deleted later. */
const isValid = (secret: Partial<Record<string, unknown>> | undefined, now: Date): boolean =>
  secret !== undefined &&
  [secret.ends_at, secret.expires_at].every((end) => typeof end !== "string" || Date.parse(end) > now.getTime());

/**
 * Returns the hash of the secret that a caller has sent, by which a subscription ends with the secret and not only with
 * the key: who has found a secret that is rolled or revoked later must not keep what it began.
 * @returns undefined for a caller without a key
 * @throws ApiError `forbidden` when the secret is gone meanwhile
 */
export async function secretSentBy({ userId, keyId, keyPrefix }: Identity): Promise<string | undefined> {
  if (keyId === undefined) return undefined;
  const key = { TableName: tableName("userApiKeys"), Key: { user_id: userId, id: keyId } };
  const { key_hash, previous = [] } = (await readItem<Partial<Secrets>>(key)) ?? {};
  const hashes = [{ key_hash }, ...previous].flatMap(({ key_hash: hash }) =>
    hash === undefined ? [] : [{ key_hash: hash }],
  );
  const secrets = await readMany<{ key_hash: string; key_prefix: string }>("apiKeys", hashes);
  const sent = secrets.find(({ key_prefix }) => key_prefix === keyPrefix);
  if (!sent) throw new ApiError("forbidden", "The API key has been rolled or deleted.");
  return sent.key_hash;
}

/** The entry of an API key (identity/api-keys/). */
interface Secrets {
  key_hash: string;
  previous: { key_hash: string }[];
}

/**
 * Moves the end of a subscription, and lets one send again that its receiver or failures had disabled.
 * @returns false when it was deleted, or disabled meanwhile
 */
export function refresh({ project_id, id, disabled_at }: Subscribed, subscription: Subscription): Promise<boolean> {
  const isThere = allOf(when`attribute_exists(id)`, isAsRead("disabled_at", disabled_at));
  const enabled = ["disabled_at", "disabled_reason", ...failureState];
  const change = changing({ set: { subscription }, remove: enabled, when: isThere });
  return transactIf({ webhook: { Update: { ...webhookKey(project_id, id), ...change } } });
}

/**
 * Returns a webhook as a sender may use it now. A subscription has ended when its time is over, its user is no member
 * any more or the secret of its key is deleted, rolled or revoked: it is then as if deleted. It has no mark of a
 * suspension, which marks at most a hundred items at once. One request, strongly consistent, and none for any other
 * webhook.
 */
export async function usable(webhook: Webhook, now: Date): Promise<Webhook | undefined> {
  const { subscription, project_id } = webhook;
  if (subscription === undefined) return webhook;
  if (hasEnded(webhook, now)) return undefined;
  const { user_id, key_hash } = subscription;
  const [projects, keys, webhooks] = [tableName("projects"), tableName("apiKeys"), tableName("webhooks")];
  const found = await batchGet({
    [projects]: [{ user_id, project_id }],
    ...(key_hash !== undefined && { [keys]: [{ key_hash }] }),
    [webhooks]: [{ project_id, id: COUNTER }],
  });
  const isAllowed = found[projects]?.length === 1 && (key_hash === undefined || isValid(found[keys]?.[0], now));
  const { suspended_at } = (found[webhooks]?.[0] ?? {}) as Pick<Webhook, "suspended_at">;
  return isAllowed ? { ...webhook, ...(suspended_at !== undefined && { suspended_at }) } : undefined;
}

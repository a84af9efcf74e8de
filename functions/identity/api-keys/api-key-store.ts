import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { QueryCommand } from "@aws-sdk/lib-dynamodb";
import { type Actor, platform } from "../../foundation/access/actor.ts";
import type { MeteredReads } from "../../foundation/budgets/metered-reads-store.ts";
import { dynamo, type TransactItem } from "../../foundation/platform/aws.ts";
import { backoffMs } from "../../foundation/platform/backoff.ts";
import {
  COUNTER,
  countDown,
  countUp,
  insertCounted,
  joined,
  readItem,
  readMany,
  transactIf,
  updateIf,
} from "../../foundation/platform/dynamo.ts";
import { tableName } from "../../foundation/platform/env.ts";
import { ApiError, tooManyChanges } from "../../foundation/platform/errors.ts";
import { allOf, changing, isAsRead, onlyIf, selecting, when } from "../../foundation/platform/expression.ts";
import { log } from "../../foundation/platform/log.ts";
import { allEnded, inBatches, inParallel } from "../../foundation/platform/parallel.ts";
import type { AuditAction } from "../../foundation/records/audit-event.ts";
import { auditPut } from "../../foundation/records/audit-store.ts";
import {
  type LeakPlace,
  type NotificationInput,
  nextReminder,
  type RevocationReason,
} from "../../foundation/records/notification.ts";
import {
  notificationPut,
  notificationPuts,
  reminderDelete,
  reminderPut,
} from "../../foundation/records/notification-store.ts";
import type { Revoked } from "../../foundation/records/revocation.ts";
import { revocationPut } from "../../foundation/records/revocation-store.ts";
import {
  API_KEY_RANDOM_BYTES,
  type ApiKey,
  changeable,
  isReplaced,
  type KeyEntry,
  type LastUse,
  lastUseOf,
  MAX_KEYS_PER_USER,
  rollApiKey,
  secretsAfterRoll,
} from "./api-key.ts";
import type { ApiKeyPatch } from "./api-key-input.ts";

/*
 * A key consists of items that are written in one transaction: the record under its hash, which the authorizer reads, and
 * the entry in the user's list. A key that was rolled has one more record for each previous secret; the entry names them
 * all. Every change of the secrets has the condition that the entry still names the same current one, so that concurrent
 * changes are made one after the other. All reads are strongly consistent, so a change applies from the next request on.
 */

const entryKey = (user_id: string, id: string) => ({ TableName: tableName("userApiKeys"), Key: { user_id, id } });
const recordKey = (key_hash: string) => ({ TableName: tableName("apiKeys"), Key: { key_hash } });
const counterOf = (user_id: string) => ({ key: entryKey(user_id, COUNTER), attribute: "key_count" });

/** The write of a new secret, or of the import of one. Its hash must be new. */
const recordPut = (Item: ApiKey | { key_hash: string; row: string }): TransactItem => ({
  Put: { TableName: tableName("apiKeys"), Item, ...onlyIf(when`attribute_not_exists(key_hash)`) },
});

/** The key that a change is about. */
type KeyRef = Pick<KeyEntry, "user_id" | "id" | "project_id">;

/**
 * Returns the audit event of a change of a key, for its transaction. The keys of a service account are in the log of its
 * project.
 */
const audit = (action: AuditAction, by: Actor, { user_id, id, project_id }: KeyRef, details: object = {}) =>
  auditPut({
    scope: project_id === undefined ? `user:${user_id}` : `project:${project_id}`,
    action,
    actor: by,
    resource_id: id,
    details: { ...details },
  });

/** Returns the notification that a secret of a key was revoked. @param record undefined = not known */
function revocation(
  { id, user_id, project_id }: KeyRef,
  record: ApiKey | undefined,
  reason: RevocationReason,
  secret: "current" | "earlier",
  found?: LeakPlace,
): NotificationInput {
  const { name = null, key_prefix = null } = record ?? {};
  const data = { api_key_id: id, user_id, name, key_prefix, reason, secret, ...(found && { found }) };
  return { type: "api_key.revoked", ...(project_id !== undefined && { project_id }), data };
}

/**
 * Stores a new key, with the first reminder of its expiry.
 * @param by absent = the platform
 * @param more items to write in the same transaction
 * @param askedAt when a machine asked for the key; absent = the user asks now
 * @throws ApiError `api_key_limit_reached` when the user has the maximum number of keys, also under concurrent creates, or all keys
 *   were revoked after `askedAt`
 * @throws ConditionsFailedError when the condition of a further item failed
 */
export async function insert(
  apiKey: ApiKey,
  by: Actor = platform,
  more: Record<string, TransactItem> = {},
  askedAt?: string,
): Promise<void> {
  const isLater = when`(attribute_not_exists(all_revoked_at) OR all_revoked_at < ${askedAt})`;
  await insertCounted(
    { ...counterOf(apiKey.user_id), limit: MAX_KEYS_PER_USER, onFull: limitReached, ...(askedAt && { when: isLater }) },
    { ...puts(apiKey, by), ...more },
  );
}

/** Returns the writes of a new key, without that of the counter. */
function puts(apiKey: ApiKey, by: Actor): Record<string, TransactItem> {
  const { user_id, id, key_hash, project_id, name, key_prefix } = apiKey;
  return {
    record: recordPut(apiKey),
    entry: { Put: { TableName: tableName("userApiKeys"), Item: { user_id, id, key_hash, project_id } } },
    audit: audit("api_key.created", by, apiKey, { name, key_prefix }),
    ...reminderPut(nextReminder(apiKey, new Date())),
  };
}

export function limitReached(cause?: Error): ApiError {
  const message = `The limit of ${MAX_KEYS_PER_USER} API keys per user is reached. Delete one first.`;
  return new ApiError("api_key_limit_reached", message, { cause });
}

/** Begins the key of the item that says that a hash was imported. It stays when the key is deleted, so that no import brings it back. */
const IMPORTED = "imported:";

/** A key of an earlier service, and what was imported of it, as `importsOf` returns it. */
export interface ImportedKey {
  apiKey: ApiKey;
  row: string;
}

/** The keys of one transaction: up to six of its 100 items are for one key. */
export const MAX_KEYS_PER_IMPORT = 16;

/**
 * Stores keys of an earlier service.
 * @param keys at most MAX_KEYS_PER_IMPORT
 * @returns false when nothing is stored, because a hash is in use or was imported before, or a user has no room
 */
export function insertImported(keys: ImportedKey[]): Promise<boolean> {
  const byUser = Map.groupBy(keys, ({ apiKey }) => apiKey.user_id);
  return transactIf(
    joined([
      ...[...byUser].map(([user, { length: count }]) => ({
        counter: countUp({ ...counterOf(user), limit: MAX_KEYS_PER_USER, count }),
      })),
      ...keys.map(({ apiKey, row }) => ({
        ...puts(apiKey, platform),
        imported: recordPut({ key_hash: IMPORTED + apiKey.key_hash, row }),
      })),
    ]),
  );
}

/** Returns what was imported for these hashes, also of keys that are deleted; for a key that was not imported, an empty text. */
export async function importsOf(hashes: string[]): Promise<Map<string, string>> {
  const keys = [...new Set(hashes)].flatMap((hash) => [hash, IMPORTED + hash]).map((key_hash) => ({ key_hash }));
  const items = await readMany<{ key_hash: string; row?: string }>("apiKeys", keys);
  const [imports, records] = [
    items.filter(({ row }) => row !== undefined),
    items.filter(({ row }) => row === undefined),
  ];
  // The later entry of a hash counts.
  return new Map([...records, ...imports].map(({ key_hash, row = "" }) => [key_hash.replace(IMPORTED, ""), row]));
}

/** Returns the number of keys of each of these users that has some, which counts towards the limit. */
export async function countsOf(userIds: string[]): Promise<Map<string, number>> {
  const keys = [...new Set(userIds)].map((user_id) => counterOf(user_id).key.Key);
  const counters = await readMany<{ user_id: string; key_count: number }>("userApiKeys", keys);
  return new Map(counters.map(({ user_id, key_count }) => [user_id, key_count]));
}

/**
 * Returns the keys of a user, oldest first. `last_used_…` is the last use of any valid secret of the key, so that a previous
 * one that is still in use is seen.
 * @param onlyId the only key to return; absent = all
 */
export async function list(reads: MeteredReads, userId: string, now: Date, onlyId?: string): Promise<ApiKey[]> {
  const { entries, units } = await entriesOf(userId, onlyId);
  const current = entries.map(({ key_hash }) => key_hash);
  const valid = entries.flatMap(({ previous = [] }) => previous.filter((secret) => !isReplaced(secret, now)));
  const previous = valid.map(({ key_hash }) => key_hash);
  // A record is smaller than 4 KB.
  await reads.add(units + current.length + previous.length / 2);
  // Of a previous secret only the last use is shown, which may be a second old.
  const [records, previousRecords] = await allEnded([recordsOf(current, true), recordsOf(previous, false)]);
  const byId = Map.groupBy(previousRecords, ({ id }) => id);
  return entries.flatMap(({ id, key_hash }) => {
    const record = records.find((each) => each.key_hash === key_hash);
    // A key that is deleted or rolled between the two reads has no record and is left out.
    return record ? { ...record, ...lastUseOf([record, ...(byId.get(id) ?? [])]) } : [];
  });
}

const recordsOf = (hashes: string[], isConsistent: boolean): Promise<ApiKey[]> =>
  readMany(
    "apiKeys",
    hashes.map((key_hash) => ({ key_hash })),
    isConsistent,
  );

async function entriesOf(userId: string, onlyId?: string): Promise<{ entries: KeyEntry[]; units: number }> {
  // The list fits into one page of 1 MB because the number of keys is limited.
  const { Items = [], ConsumedCapacity } = await dynamo().send(
    new QueryCommand({
      TableName: tableName("userApiKeys"),
      ConsistentRead: true,
      ...selecting(
        allOf(when`user_id = ${userId}`, onlyId === undefined ? when`id > ${COUNTER}` : when`id = ${onlyId}`),
      ),
      ReturnConsumedCapacity: "TOTAL",
    }),
  );
  return { entries: Items as KeyEntry[], units: ConsumedCapacity?.CapacityUnits ?? 0 };
}

/**
 * Returns the record of a secret, or undefined. One read: the authorizer calls it on every request with a key.
 * @returns also a previous secret whose overlap is over (`isReplaced`)
 */
export const findByHash = (keyHash: string): Promise<ApiKey | undefined> => readItem(recordKey(keyHash));

export const notFound = () => new ApiError("not_found", "No API key with this id exists.");

/** Returns a key of a user by its id; undefined = there is none. */
export async function find(user_id: string, id: string): Promise<ApiKey | undefined> {
  const entry = await findEntry(user_id, id);
  return entry && findByHash(entry.key_hash);
}

const findEntry = (user_id: string, id: string): Promise<KeyEntry | undefined> => readItem(entryKey(user_id, id));

/** Upper bound on the tries of a change while other requests change the same key: four seconds of backoff at most. */
const MAX_RACES = 12;

/**
 * Reads the entry of a key and changes the key. Repeats both when another request changed it in between.
 * @param change returns undefined when the entry is out of date
 * @throws ApiError `not_found` when the user has no key with this id, `rate_limited` when other requests keep
 * changing it
 */
async function changeKey<Result extends object>(
  user_id: string,
  id: string,
  change: (entry: KeyEntry) => Promise<Result | undefined>,
): Promise<Result> {
  for (let races = 0; races < MAX_RACES; races++) {
    const entry = await findEntry(user_id, id);
    if (!entry) throw notFound();
    const result = await change(entry);
    if (result) return result;
    await sleep(backoffMs(races, Math.random()));
  }
  throw tooManyChanges("API key");
}

/** The condition that no other request has changed the secrets of a key since its entry was read. */
const isUnchanged = ({ key_hash }: KeyEntry) => isAsRead("key_hash", key_hash);

const removals = (hashes: string[]): Record<string, TransactItem> =>
  Object.fromEntries(hashes.map((hash, index) => [`previous ${index}`, { Delete: recordKey(hash) }]));

/**
 * Changes the given fields of a key.
 * @throws ApiError `not_found` when the user has no key with this id
 */
export async function update(user_id: string, id: string, patch: ApiKeyPatch, by: Actor = platform): Promise<ApiKey> {
  return changeKey(user_id, id, async ({ key_hash }) => {
    const current = await findByHash(key_hash);
    if (!current) return undefined;
    const items: Record<string, TransactItem> = {
      record: {
        Update: {
          ...recordKey(key_hash),
          // A roll deletes the record, or gives it an end.
          ...changing({ set: patch, when: when`attribute_exists(key_hash) AND attribute_not_exists(ends_at)` }),
        },
      },
      audit: audit("api_key.renamed", by, current, patch),
    };
    return (await transactIf(items)) ? { ...current, ...patch } : undefined;
  });
}

/**
 * Replaces the secret of a key. After this returns, the new one is accepted, and each previous one until its end: at most
 * three, of which the oldest ends at once when a fourth is added.
 * @param overlapSeconds for the replaced secret; 0 ends it and all previous ones in the same transaction
 * @throws ApiError `not_found` when the user has no key with this id, `conflict` when it has expired
 */
export async function roll(
  user_id: string,
  id: string,
  { overlapSeconds, now }: { overlapSeconds: number; now: Date },
  by: Actor = platform,
): Promise<ReturnType<typeof rollApiKey>> {
  return changeKey(user_id, id, async (entry) => {
    const current = await findByHash(entry.key_hash);
    if (!current) return undefined;
    const rolled = rollApiKey(current, now, randomBytes(API_KEY_RANDOM_BYTES));
    const { kept, removed } = secretsAfterRoll(entry, now, overlapSeconds);
    const replaced = kept.find(({ key_hash }) => key_hash === current.key_hash);
    // The new record is a copy. A change in between must not be lost.
    const isCurrent = allOf(...Object.values(changeable).map((name) => isAsRead(name, current[name])));
    const items: Record<string, TransactItem> = {
      entry: {
        Update: {
          ...entryKey(user_id, id),
          ...changing({ set: { key_hash: rolled.apiKey.key_hash, previous: kept }, when: isUnchanged(entry) }),
        },
      },
      record: recordPut(rolled.apiKey),
      replaced: replaced
        ? {
            Update: {
              ...recordKey(current.key_hash),
              ...changing({
                set: { ends_at: replaced.ends_at, delete_after: Math.ceil(Date.parse(replaced.ends_at) / 1000) },
                when: isCurrent,
              }),
            },
          }
        : { Delete: { ...recordKey(current.key_hash), ...onlyIf(isCurrent) } },
      ...removals(removed.filter((hash) => hash !== current.key_hash)),
      // Also with an overlap, which gives the replaced secret an end.
      revocation: revocationPut({ key_id: id, key_hashes: [...new Set([current.key_hash, ...removed])] }, "rolled"),
      audit: audit("api_key.rolled", by, current, {
        key_prefix: rolled.apiKey.key_prefix,
        overlap_seconds: overlapSeconds,
      }),
    };
    return (await transactIf(items)) ? rolled : undefined;
  });
}

/**
 * Deletes a key with its previous secrets and its reminder, and notifies its owner. After this returns, requests with any of them are rejected.
 * @throws ApiError `not_found` when the user has no key with this id
 */
export async function remove(
  userId: string,
  id: string,
  by: Actor = platform,
  reason: RevocationReason = "deleted",
): Promise<void> {
  await changeKey(userId, id, async (entry) => {
    const record = await findByHash(entry.key_hash);
    return (await areRemoved(userId, [{ entry, record }], by, reason)) ? entry : undefined;
  });
}

interface StoredKey {
  entry: KeyEntry;
  record: ApiKey | undefined;
  /** Where it has leaked. */
  found?: LeakPlace | undefined;
}

/** Begins the key of the item that says that a secret has leaked, for a report that is repeated. */
const LEAKED = "leaked:";
const LEAK_KEPT_SECONDS = 90 * 24 * 3600;

function leakPuts(hashes: string[], reason: RevocationReason): Record<string, TransactItem> {
  if (reason !== "leaked") return {};
  const TableName = tableName("apiKeys");
  const delete_after = Math.ceil(Date.now() / 1000) + LEAK_KEPT_SECONDS;
  const puts = hashes.map((hash) => ({ Put: { TableName, Item: { key_hash: LEAKED + hash, delete_after } } }));
  return Object.fromEntries(puts.map((put, index) => [`leak ${index}`, put]));
}

/** Returns those of these hashes whose secrets have leaked in the last 90 days. */
export async function leakedBefore(hashes: string[]): Promise<Set<string>> {
  const keys = hashes.map((hash) => ({ key_hash: LEAKED + hash }));
  const items = await readMany<{ key_hash: string }>("apiKeys", keys);
  return new Set(items.map(({ key_hash }) => key_hash.slice(LEAKED.length)));
}

const previousHashes = ({ previous = [] }: KeyEntry): string[] => previous.map(({ key_hash }) => key_hash);

/**
 * Deletes keys of one owner in one transaction.
 * @param revoked what the feed of revocations names; absent = the secrets of the keys
 * @returns false when another request has changed one of the keys: none is deleted
 */
async function areRemoved(
  userId: string,
  keys: StoredKey[],
  by: Actor,
  reason: RevocationReason,
  revoked?: Revoked,
): Promise<boolean> {
  const named = revoked ? [revoked] : keys.map(({ entry }) => secretsOf(entry));
  const notices = keys.map(({ entry, record, found }) => revocation(entry, record, reason, "current", found));
  return transactIf({
    ...joined(
      keys.map(({ entry, record, found }) => ({
        ...leakPuts([entry.key_hash, ...previousHashes(entry)], reason),
        entry: { Delete: { ...entryKey(userId, entry.id), ...onlyIf(isUnchanged(entry)) } },
        record: { Delete: recordKey(entry.key_hash) },
        ...removals(previousHashes(entry)),
        audit: audit("api_key.deleted", by, entry, reason === "deleted" ? {} : { reason, found }),
        // One that is due already is dropped when it would be published.
        ...reminderDelete(record && nextReminder(record, new Date())),
      })),
    ),
    counter: countDown(counterOf(userId), keys.length),
    ...joined(named.map((each) => ({ revocation: revocationPut(each, reason) }))),
    ...joined((await notificationPuts(notices)).map((notification) => ({ notification }))),
  });
}

const secretsOf = (entry: KeyEntry): Revoked => ({
  key_id: entry.id,
  key_hashes: [entry.key_hash, ...previousHashes(entry)],
});

/** Users whose keys are removed at the same time. */
const PARALLEL_USERS = 10;

/**
 * Revokes the secrets with these hashes, ignoring unknown and expired ones. Revoking the current secret deletes the key; revoking
 * a previous one does not. After this returns, requests with them are rejected.
 * @param hashes at least one
 * @param places where they have leaked, by hash
 * @returns those that were valid
 */
export async function removeByHash(
  hashes: string[],
  reason: RevocationReason,
  now: Date,
  by: Actor,
  places: ReadonlyMap<string, LeakPlace> = new Map(),
): Promise<Set<string>> {
  // DynamoDB deletes the record of a secret up to days after its overlap. Its owner gets no second notification.
  const valid = (await recordsOf(hashes, true)).filter((record) => !isReplaced(record, now));
  const byUser = Map.groupBy(valid, ({ user_id }) => user_id);
  await inParallel([...byUser.values()], PARALLEL_USERS, async (records) => {
    // One after the other: concurrent transactions on the counter of the user cancel each other.
    for (const record of records) await removeSecret(record, reason, by, places.get(record.key_hash));
  });
  return new Set(valid.map(({ key_hash }) => key_hash));
}

async function removeSecret(
  record: ApiKey,
  reason: RevocationReason,
  by: Actor,
  found: LeakPlace | undefined,
): Promise<void> {
  const { user_id, id, key_hash } = record;
  try {
    await changeKey(user_id, id, async (entry) => {
      const isEnded =
        entry.key_hash === key_hash
          ? await areRemoved(user_id, [{ entry, record, found }], by, reason)
          : await isPreviousRemoved(entry, { record, found }, by, reason);
      return isEnded ? entry : undefined;
    });
    log.info("api key removed", { user_id, key_id: id, reason });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

/** Returns whether a concurrent request has deleted the key. */
const isNotFound = (error: unknown): boolean => error instanceof ApiError && error.code === "not_found";

/** @returns true also when another request has ended the secret: then nothing is written, and nothing is logged */
async function isPreviousRemoved(
  entry: KeyEntry,
  { record, found }: { record: ApiKey; found: LeakPlace | undefined },
  by: Actor,
  reason: RevocationReason,
): Promise<boolean> {
  const keyHash = record.key_hash;
  if (!entry.previous?.some(({ key_hash }) => key_hash === keyHash)) return true;
  return transactIf({
    ...leakPuts([keyHash], reason),
    entry: {
      Update: {
        ...entryKey(entry.user_id, entry.id),
        ...changing({
          set: { previous: entry.previous.filter(({ key_hash }) => key_hash !== keyHash) },
          when: isUnchanged(entry),
        }),
      },
    },
    record: { Delete: { ...recordKey(keyHash), ...onlyIf(when`attribute_exists(key_hash)`) } },
    revocation: revocationPut({ key_id: entry.id, key_hashes: [keyHash] }, reason),
    audit: audit("api_key.earlier_ended", by, entry, { reason, key_prefix: record.key_prefix, found }),
    ...(await notificationPut(revocation(entry, record, reason, "earlier", found))),
  });
}

/** Writes the last use. The condition keeps a late write from recreating a deleted key. */
export async function updateLastUsed({ key_hash }: ApiKey, use: LastUse, abortSignal: AbortSignal): Promise<void> {
  const { last_used_at, last_used_ip, last_used_user_agent } = use;
  const set = { last_used_at, last_used_ip, last_used_user_agent };
  await updateIf(recordKey(key_hash), changing({ set, when: when`attribute_exists(key_hash)` }), { abortSignal });
}

/** Keys of one transaction: up to eight of its 100 items are for one key, and two for all. */
const MAX_KEYS_PER_REMOVAL = 10;

/**
 * Deletes all keys that a user has now, ten in a transaction, one transaction after the other: concurrent ones on the counter of the
 * user cancel each other. Each has one entry in the feed of revocations, which names the user: an entry for each secret would let one
 * request fill the feed. After this returns, requests with the keys are rejected. Idempotent.
 * @returns the number of keys that this call has deleted, without those that a concurrent request has deleted
 * @throws ApiError `rate_limited` when other requests keep changing the keys
 */
export async function removeAll(userId: string, by: Actor, reason: RevocationReason): Promise<number> {
  let removed = 0;
  for (let races = 0; races < MAX_RACES; races++) {
    const { entries } = await entriesOf(userId);
    const hashes = entries.map(({ key_hash }) => key_hash);
    const records = new Map((await recordsOf(hashes, true)).map((record) => [record.key_hash, record]));
    let isChanged = false;
    for (const batch of inBatches(entries, MAX_KEYS_PER_REMOVAL)) {
      const keys = batch.map((entry) => ({ entry, record: records.get(entry.key_hash) }));
      if (await areRemoved(userId, keys, by, reason, { user_id: userId })) removed += batch.length;
      else isChanged = true;
    }
    if (!isChanged) return removed;
    await sleep(backoffMs(races, Math.random()));
  }
  throw tooManyChanges("API key");
}

/** After this returns, no machine gets a key that it asked for earlier. */
export async function endRequests(userId: string, now: Date): Promise<void> {
  await updateIf(counterOf(userId).key, changing({ set: { all_revoked_at: now.toISOString() } }));
}

/** Returns the item that deletes the counter of a user without keys, so that nothing of that user is left. */
export const counterRemoval = (userId: string): TransactItem => ({ Delete: counterOf(userId).key });

/** Returns whether a user has keys, also one whose record does not exist. */
export const hasKeys = async (userId: string): Promise<boolean> => (await entriesOf(userId)).entries.length > 0;

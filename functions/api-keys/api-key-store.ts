import { GetCommand, QueryCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { type Actor, platform } from "../access/actor.ts";
import type { AuditAction } from "../audit/audit-event.ts";
import { auditPut } from "../audit/audit-store.ts";
import {
  batchGet,
  ConditionsFailedError,
  dynamo,
  isConditionFailed,
  type TransactItem,
  transact,
} from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import { ApiError } from "../platform/errors.ts";
import { type ApiKey, MAX_KEYS_PER_USER } from "./api-key.ts";

/*
 * A key consists of two items, written in one transaction: the record under its hash, which the authorizer reads, and
 * the entry in the user's list. All reads are strongly consistent, so a change applies from the next request on.
 */

/** Sort key of the item that counts the keys of a user. It sorts before all ids. */
const COUNTER = "#count";

const counterKey = (user_id: string) => ({ TableName: tableName("userApiKeys"), Key: { user_id, id: COUNTER } });

/** Returns the audit event of a change of a key, for its transaction. */
const audit = (action: AuditAction, by: Actor, { user_id, id }: Pick<ApiKey, "user_id" | "id">, details: object = {}) =>
  auditPut({ scope: `user:${user_id}`, action, actor: by, resource_id: id, details: { ...details } });

/**
 * Stores a new key.
 * @param by absent = the platform
 * @param more items to write in the same transaction
 * @throws ApiError `api_key_limit_reached` when the user has the maximum number of keys, also under concurrent creates
 */
export async function insert(
  apiKey: ApiKey,
  by: Actor = platform,
  more: Record<string, TransactItem> = {},
): Promise<void> {
  const { user_id, id, key_hash, name, key_prefix } = apiKey;
  try {
    await transact({
      counter: {
        Update: {
          ...counterKey(user_id),
          UpdateExpression: "ADD key_count :one",
          ConditionExpression: "attribute_not_exists(key_count) OR key_count < :limit",
          ExpressionAttributeValues: { ":one": 1, ":limit": MAX_KEYS_PER_USER },
        },
      },
      record: {
        Put: {
          TableName: tableName("apiKeys"),
          Item: apiKey,
          ConditionExpression: "attribute_not_exists(key_hash)",
        },
      },
      entry: { Put: { TableName: tableName("userApiKeys"), Item: { user_id, id, key_hash } } },
      audit: audit("api_key.created", by, apiKey, { name, key_prefix }),
      ...more,
    });
  } catch (error) {
    if (error instanceof ConditionsFailedError && error.items.includes("counter")) {
      const message = `The limit of ${MAX_KEYS_PER_USER} API keys per user is reached. Delete one first.`;
      throw new ApiError("api_key_limit_reached", message, { cause: error });
    }
    throw error;
  }
}

/** Returns the keys of a user, oldest first. */
export async function list(userId: string): Promise<ApiKey[]> {
  // The list fits into one page of 1 MB because the number of keys is limited.
  const entries = await dynamo().send(
    new QueryCommand({
      TableName: tableName("userApiKeys"),
      ConsistentRead: true,
      KeyConditionExpression: "user_id = :user AND id > :counter",
      ExpressionAttributeValues: { ":user": userId, ":counter": COUNTER },
    }),
  );
  const hashes = (entries.Items ?? []).map(({ key_hash }) => key_hash as string);
  if (hashes.length === 0) return [];
  const table = tableName("apiKeys");
  const { [table]: items = [] } = await batchGet({ [table]: hashes.map((key_hash) => ({ key_hash })) });
  const byHash = new Map((items as unknown as ApiKey[]).map((apiKey) => [apiKey.key_hash, apiKey]));
  // A key that is deleted between the two reads has no record and is left out.
  return hashes.flatMap((hash) => byHash.get(hash) ?? []);
}

/** Returns the key with this hash, or undefined. One read: the authorizer calls it on every request with a key. */
export async function findByHash(keyHash: string): Promise<ApiKey | undefined> {
  const { Item } = await dynamo().send(
    new GetCommand({ TableName: tableName("apiKeys"), Key: { key_hash: keyHash }, ConsistentRead: true }),
  );
  return Item as ApiKey | undefined;
}

export const notFound = () => new ApiError("not_found", "No API key with this id exists.");

/** Returns a key of a user by its id; undefined = there is none. */
export async function find(user_id: string, id: string): Promise<ApiKey | undefined> {
  const { Item } = await dynamo().send(
    new GetCommand({ TableName: tableName("userApiKeys"), Key: { user_id, id }, ConsistentRead: true }),
  );
  return Item && findByHash(Item.key_hash);
}

/**
 * Deletes a key. After this returns, requests with the key are rejected.
 * @throws ApiError `not_found` when the user has no key with this id
 */
export async function remove(userId: string, id: string, by: Actor = platform): Promise<void> {
  const entry = { TableName: tableName("userApiKeys"), Key: { user_id: userId, id } };
  const { Item } = await dynamo().send(new GetCommand({ ...entry, ConsistentRead: true }));
  if (!Item) throw notFound();
  try {
    await transact({
      entry: { Delete: { ...entry, ConditionExpression: "attribute_exists(id)" } },
      record: { Delete: { TableName: tableName("apiKeys"), Key: { key_hash: Item.key_hash } } },
      counter: {
        Update: {
          ...counterKey(userId),
          UpdateExpression: "ADD key_count :minusOne",
          ExpressionAttributeValues: { ":minusOne": -1 },
        },
      },
      audit: audit("api_key.deleted", by, { user_id: userId, id }),
    });
  } catch (error) {
    // A concurrent request deleted the key.
    if (error instanceof ConditionsFailedError && error.items.includes("entry")) throw notFound();
    throw error;
  }
}

/** Writes the time of last use. The condition keeps a late write from recreating a deleted key. */
export async function updateLastUsed({ key_hash }: ApiKey, now: Date, abortSignal: AbortSignal): Promise<void> {
  try {
    await dynamo().send(
      new UpdateCommand({
        TableName: tableName("apiKeys"),
        Key: { key_hash },
        UpdateExpression: "SET last_used_at = :now",
        ConditionExpression: "attribute_exists(key_hash)",
        ExpressionAttributeValues: { ":now": now.toISOString() },
      }),
      { abortSignal },
    );
  } catch (error) {
    if (!isConditionFailed(error)) throw error;
  }
}

/** Returns the ids of the keys of a user, oldest first, also of one whose record does not exist. */
export async function idsOf(userId: string): Promise<string[]> {
  const { Items = [] } = await dynamo().send(
    new QueryCommand({
      TableName: tableName("userApiKeys"),
      ConsistentRead: true,
      KeyConditionExpression: "user_id = :user AND id > :counter",
      ExpressionAttributeValues: { ":user": userId, ":counter": COUNTER },
      ProjectionExpression: "id",
    }),
  );
  return Items.map(({ id }) => id as string);
}

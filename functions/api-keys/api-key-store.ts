import { GetCommand, QueryCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { batchGet, ConditionsFailed, dynamo, isConditionFailed, transact } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import { ApiError } from "../platform/errors.ts";
import { type ApiKey, MAX_KEYS_PER_USER } from "./api-key.ts";

/*
 * A key is two items that are written together or not at all: the record under its hash, which the authorizer reads, and
 * its place in the user's list. All reads are strongly consistent, so a change holds from the next request on.
 */

/** Sort key of the item that counts a user's keys. It sorts before every id. */
const COUNTER = "#count";

const counterOf = (user_id: string) => ({ TableName: tableName("userApiKeys"), Key: { user_id, id: COUNTER } });

/** @throws ApiError `api_key_limit_reached` when the user is at the cap, under concurrent creates too */
export async function insert(apiKey: ApiKey): Promise<void> {
  const { user_id, id, key_hash } = apiKey;
  try {
    await transact({
      counter: {
        Update: {
          ...counterOf(user_id),
          UpdateExpression: "ADD key_count :one",
          ConditionExpression: "attribute_not_exists(key_count) OR key_count < :cap",
          ExpressionAttributeValues: { ":one": 1, ":cap": MAX_KEYS_PER_USER },
        },
      },
      record: {
        Put: {
          TableName: tableName("apiKeys"),
          Item: apiKey,
          ConditionExpression: "attribute_not_exists(key_hash)",
        },
      },
      place: { Put: { TableName: tableName("userApiKeys"), Item: { user_id, id, key_hash } } },
    });
  } catch (error) {
    if (error instanceof ConditionsFailed && error.items.includes("counter")) {
      const message = `A user can have ${MAX_KEYS_PER_USER} API keys. Delete one that is no longer used.`;
      throw new ApiError("api_key_limit_reached", message, { cause: error });
    }
    throw error;
  }
}

/** The user's keys, oldest first. */
export async function list(userId: string): Promise<ApiKey[]> {
  // One page holds them all: the cap keeps the list far below 1 MB.
  const places = await dynamo().send(
    new QueryCommand({
      TableName: tableName("userApiKeys"),
      ConsistentRead: true,
      KeyConditionExpression: "user_id = :user AND id > :counter",
      ExpressionAttributeValues: { ":user": userId, ":counter": COUNTER },
    }),
  );
  const hashes = (places.Items ?? []).map(({ key_hash }) => key_hash as string);
  if (hashes.length === 0) return [];
  const table = tableName("apiKeys");
  const { [table]: items = [] } = await batchGet({ [table]: hashes.map((key_hash) => ({ key_hash })) });
  const byHash = new Map((items as unknown as ApiKey[]).map((apiKey) => [apiKey.key_hash, apiKey]));
  // A key deleted between the two reads is gone from the list.
  return hashes.flatMap((hash) => byHash.get(hash) ?? []);
}

/** The key with this hash, or undefined. What the authorizer asks on every request made with a key: one read. */
export async function findByHash(keyHash: string): Promise<ApiKey | undefined> {
  const { Item } = await dynamo().send(
    new GetCommand({ TableName: tableName("apiKeys"), Key: { key_hash: keyHash }, ConsistentRead: true }),
  );
  return Item as ApiKey | undefined;
}

/**
 * Revokes a key. When this returns, no request with it is let in.
 * @throws ApiError `not_found` when the user has no such key
 */
export async function remove(userId: string, id: string): Promise<void> {
  const notFound = () => new ApiError("not_found", "There is no such API key.");
  const place = { TableName: tableName("userApiKeys"), Key: { user_id: userId, id } };
  const { Item } = await dynamo().send(new GetCommand({ ...place, ConsistentRead: true }));
  if (!Item) throw notFound();
  try {
    await transact({
      place: { Delete: { ...place, ConditionExpression: "attribute_exists(id)" } },
      record: { Delete: { TableName: tableName("apiKeys"), Key: { key_hash: Item.key_hash } } },
      counter: {
        Update: {
          ...counterOf(userId),
          UpdateExpression: "ADD key_count :minusOne",
          ExpressionAttributeValues: { ":minusOne": -1 },
        },
      },
    });
  } catch (error) {
    // Somebody else deleted it in the meantime.
    if (error instanceof ConditionsFailed && error.items.includes("place")) throw notFound();
    throw error;
  }
}

/** Writes the time of use, unless the key is gone: a late write must not bring a deleted key back. */
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

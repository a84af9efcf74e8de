import { randomBytes } from "node:crypto";
import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { API_KEY_RANDOM_BYTES, createApiKey } from "../../../functions/api-keys/api-key.ts";
import { findByHash, insert, list, remove, updateLastUsed } from "../../../functions/api-keys/api-key-store.ts";
import { ConditionsFailedError, dynamo } from "../../../functions/platform/aws.ts";
import { tableName } from "../../../functions/platform/env.ts";
import { loseNextResponse, restoreAws } from "../../support/aws-calls.ts";
import { freshResources } from "../../support/resources.ts";

beforeAll(freshResources);
afterEach(restoreAws);

const newKey = (user: string) =>
  createApiKey(user, { name: "ci" }, new Date(), randomBytes(API_KEY_RANDOM_BYTES)).apiKey;

test("insert never replaces the key of another user that has the same hash", async () => {
  const first = newKey("user-1");
  await insert(first);
  const error = await insert({ ...newKey("user-2"), key_hash: first.key_hash }).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(ConditionsFailedError);
  expect(error).toMatchObject({ items: ["record"] });
  expect(await findByHash(first.key_hash)).toEqual(first);
  expect([await list("user-1"), await list("user-2")]).toEqual([[first], []]);
});

describe("when the response is lost and the SDK sends the write again,", () => {
  async function countOf(user_id: string): Promise<unknown> {
    const Key = { user_id, id: "#count" };
    const { Item } = await dynamo().send(new GetCommand({ TableName: tableName("userApiKeys"), Key }));
    return Item?.key_count;
  }

  test("insert stores one key and counts it once", async () => {
    const key = newKey("user-3");
    const sent = loseNextResponse("TransactWriteItemsCommand");
    await insert(key);
    expect(sent.requests).toBe(2);
    expect([await list("user-3"), await countOf("user-3")]).toEqual([[key], 1]);
  });

  test("remove succeeds and counts once", async () => {
    const key = newKey("user-4");
    await insert(key);
    const sent = loseNextResponse("TransactWriteItemsCommand");
    await remove("user-4", key.id);
    expect(sent.requests).toBe(2);
    expect([await list("user-4"), await countOf("user-4")]).toEqual([[], 0]);
  });

  test("updateLastUsed stores the time", async () => {
    const key = newKey("user-5");
    await insert(key);
    const now = new Date("2026-03-01T12:00:00.000Z");
    const sent = loseNextResponse("UpdateItemCommand");
    await updateLastUsed(key, now, new AbortController().signal);
    expect(sent.requests).toBe(2);
    expect(await findByHash(key.key_hash)).toEqual({ ...key, last_used_at: now.toISOString() });
  });
});

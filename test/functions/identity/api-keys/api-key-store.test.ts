import { randomBytes, randomUUID } from "node:crypto";
import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import { jest } from "@jest/globals";
import fc from "fast-check";
import { system } from "../../../../functions/foundation/access/actor.ts";
import { meteredReads } from "../../../../functions/foundation/budgets/metered-reads-store.ts";
import { dynamo } from "../../../../functions/foundation/platform/aws.ts";
import { tableName } from "../../../../functions/foundation/platform/env.ts";
import {
  API_KEY_RANDOM_BYTES,
  type ApiKey,
  createApiKey,
  type KeyEntry,
} from "../../../../functions/identity/api-keys/api-key.ts";
import type { ApiKeyPatch } from "../../../../functions/identity/api-keys/api-key-input.ts";
import {
  findByHash,
  insert,
  list,
  remove,
  removeByHash,
  roll,
  update,
} from "../../../../functions/identity/api-keys/api-key-store.ts";
import { beforeTransaction, interceptDynamo, restoreAws } from "../../../support/aws-calls.ts";
import { notificationsAbout } from "../../../support/notifications.ts";
import { usedReads } from "../../../support/request-budget.ts";
import { freshResources } from "../../../support/resources.ts";
import { changeItem, itemsOf } from "../../../support/stored-items.ts";

beforeAll(freshResources);

const listOf = (userId: string) => {
  const now = new Date();
  return meteredReads(`user:${userId}`, now, (reads) => list(reads, userId, now));
};

const newKey = (user: string) =>
  createApiKey(user, { name: "ci" }, new Date(), randomBytes(API_KEY_RANDOM_BYTES)).apiKey;

test("a change while other requests keep changing the key is the error of its user, 429, and changes nothing", async () => {
  const key = newKey("user-changing");
  await insert(key);
  const { user_id, id } = key;
  let changes = 0;
  interceptDynamo(async ({ command }, send) => {
    if (command === "TransactWriteItemsCommand") await changeEntry(++changes);
    return send();
  });
  const changeEntry = (count: number) => changeItem("userApiKeys", { user_id, id }, { key_hash: `other-${count}` });
  const random = jest.spyOn(Math, "random").mockReturnValue(0.25);
  const startedAt = performance.now();
  const change = remove(user_id, id, system);
  await expect(change).rejects.toMatchObject({ status: 429, code: "rate_limited", headers: { "Retry-After": "1" } });
  expect(changes).toBe(12);
  // The backoff: a quarter of 20, 40, 80, 160, 320 and seven times 500 ms. The writes alone may take as long on a slow machine.
  expect(performance.now() - startedAt).toBeGreaterThan(1_000);
  expect(random.mock.calls.length).toBeGreaterThanOrEqual(12);
  random.mockRestore();
  expect(await findByHash(key.key_hash)).toEqual(key);
});

const rollOnce = (user: string, id: string, overlapSeconds: number) =>
  roll(user, id, { overlapSeconds, now: new Date() });

/** A change of each field that a user can change. */
const changes = { name: { name: "renamed" } } satisfies Record<keyof ApiKeyPatch, ApiKeyPatch>;
const eachChange = Object.entries(changes).map(([field, patch]) => ({ field, patch }));

test.each(eachChange)("a roll that began before a change of $field keeps the new value", async ({ field, patch }) => {
  const key = newKey(`roll-${field}`);
  await insert(key);
  expect((await rollOnce(key.user_id, key.id, 600)).apiKey).toMatchObject({ name: "ci" });
  beforeTransaction(() => update(key.user_id, key.id, patch));
  expect((await rollOnce(key.user_id, key.id, 600)).apiKey).toMatchObject(patch);
  expect(await listOf(key.user_id)).toMatchObject([patch]);
});

test.each(eachChange)(
  "a change of $field that began before a roll changes the new secret",
  async ({ field, patch }) => {
    const key = newKey(`change-${field}`);
    await insert(key);
    beforeTransaction(() => rollOnce(key.user_id, key.id, 600));
    expect(await update(key.user_id, key.id, patch)).toMatchObject(patch);
    expect(await listOf(key.user_id)).toMatchObject([patch]);
    const logged = await itemsOf("auditEvents", { scope: `user:${key.user_id}` });
    expect(logged.map(({ details }) => details)).toContainEqual(patch);
  },
);

test("the list reads the records of 100 previous secrets at once, and of all of them", async () => {
  const hash = (index: number) => `hash-${index}`;
  const ends_at = new Date(Date.now() + 60_000).toISOString();
  const entries = Array.from({ length: 50 }, (_, index) => ({
    ...{ user_id: "user-11", id: String(index), key_hash: hash(1_000 + index) },
    previous: [0, 1, 2].map((each) => ({ key_hash: hash(3 * index + each), ends_at })),
  }));
  const batches: number[] = [];
  interceptDynamo(async ({ command, input }, send) => {
    if (command === "QueryCommand") return { Items: entries };
    if (command !== "BatchGetItemCommand") return send();
    batches.push(
      ...Object.values(input.RequestItems as Record<string, { Keys: object[] }>).map(({ Keys }) => Keys.length),
    );
    return { Responses: {} };
  });
  await listOf("user-11");
  expect(batches).toEqual([50, 100, 50]);
  restoreAws();
  // Those of previous secrets are eventually consistent, at half the units.
  expect(await usedReads("user:user-11")).toBe(50 + 150 / 2);
});

test("a delete that began before a roll ends the new secret too", async () => {
  const key = newKey("user-8");
  await insert(key);
  const hashes = [key.key_hash];
  beforeTransaction(async () => hashes.push((await rollOnce("user-8", key.id, 600)).apiKey.key_hash));
  await remove("user-8", key.id);
  expect(await Promise.all(hashes.map(findByHash))).toEqual([undefined, undefined]);
});

test("the end of a leaked earlier secret that began before a roll keeps the one that the roll replaces", async () => {
  const key = newKey("user-10");
  await insert(key);
  const second = await rollOnce("user-10", key.id, 600);
  beforeTransaction(() => rollOnce("user-10", key.id, 600));
  await removeByHash([key.key_hash], "leaked", new Date(), system);
  const { entries } = await storedFor("user-10");
  expect(entries).toMatchObject([{ previous: [{ key_hash: second.apiKey.key_hash }] }]);
});

type Change = { kind: "roll"; overlap: number } | { kind: "rename" } | { kind: "remove" };

const change = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(0, 600).map((overlap): Change => ({ kind: "roll", overlap })) },
  { weight: 2, arbitrary: fc.constant<Change>({ kind: "rename" }) },
  { weight: 1, arbitrary: fc.constant<Change>({ kind: "remove" }) },
);

/** Everything that is stored for a user. */
async function storedFor(user: string) {
  const entries = await itemsOf("userApiKeys", { user_id: user });
  const { Items: records = [] } = await dynamo().send(
    new ScanCommand({
      TableName: tableName("apiKeys"),
      FilterExpression: "user_id = :user",
      ExpressionAttributeValues: { ":user": user },
    }),
  );
  const isCounter = ({ id }: Record<string, unknown>) => id === "#count";
  return {
    entries: entries.filter((item) => !isCounter(item)) as KeyEntry[],
    count: entries.find(isCounter)?.key_count,
    records: records as ApiKey[],
  };
}

test("concurrent rolls, renames and deletes lose nothing and leave no secret that no entry names", async () => {
  const rounds = fc.asyncProperty(
    fc.array(fc.array(change, { minLength: 1, maxLength: 5 }), { maxLength: 3 }),
    async (batches) => {
      const user = `user-${randomUUID()}`;
      const key = newKey(user);
      await insert(key);
      await insert(newKey(user));
      const outcomes = { hashes: [key.key_hash], names: ["ci"], removals: 0 };
      for (const batch of batches) {
        const results = batch.map(async (each) => {
          if (each.kind === "remove") {
            await remove(user, key.id);
            outcomes.removals += 1;
          } else if (each.kind === "rename") {
            outcomes.names.push((await update(user, key.id, { name: randomUUID() })).name);
          } else outcomes.hashes.push((await rollOnce(user, key.id, each.overlap)).apiKey.key_hash);
        });
        for (const result of await Promise.allSettled(results)) {
          if (result.status === "rejected") expect(result.reason).toMatchObject({ code: "not_found" });
        }
        const { entries, count, records } = await storedFor(user);
        expect(outcomes.removals).toBeLessThanOrEqual(1);
        expect({ count, entries: entries.length }).toEqual({
          count: 2 - outcomes.removals,
          entries: 2 - outcomes.removals,
        });
        const named = entries.flatMap(({ key_hash, previous = [] }) => [
          key_hash,
          ...previous.map((each) => each.key_hash),
        ]);
        expect(records.map(({ key_hash }) => key_hash).sort()).toEqual(named.toSorted());
        const entry = entries.find(({ id }) => id === key.id);
        if (entry === undefined) continue;
        expect(entry.previous?.length ?? 0).toBeLessThanOrEqual(3);
        const current = records.find(({ key_hash }) => key_hash === entry.key_hash);
        expect(current).not.toHaveProperty("ends_at");
        expect(outcomes.hashes).toContain(entry.key_hash);
        expect(outcomes.names).toContain(current?.name);
        const lastBatch = batch.map(({ kind }) => kind);
        if (lastBatch.filter((kind) => kind === "rename").length === 1)
          expect(current?.name).toBe(outcomes.names.at(-1));
      }
    },
  );
  await fc.assert(rounds, { numRuns: 25, seed: 20_261_122 });
});

describe("notifications", () => {
  const reasonsOf = async ({ id }: ApiKey) =>
    (await notificationsAbout(id)).flatMap(({ data }) => ("secret" in data ? [`${data.reason} ${data.secret}`] : []));

  test("a key that ends has one, which names it and says why", async () => {
    const key = newKey("user-notified");
    await insert(key);
    await update(key.user_id, key.id, { name: "renamed" });
    const removals = Array.from({ length: 3 }, () => remove(key.user_id, key.id).catch(() => "gone before"));
    expect((await Promise.all(removals)).filter((result) => result === undefined)).toHaveLength(1);
    const { id, user_id, key_prefix } = key;
    expect((await notificationsAbout(id)).map(({ type, data }) => ({ type, data }))).toEqual([
      {
        type: "api_key.revoked",
        data: { api_key_id: id, user_id, name: "renamed", key_prefix, reason: "deleted", secret: "current" },
      },
    ]);
    expect(JSON.stringify(await notificationsAbout(id))).not.toContain(key.key_hash);
  });

  test("a leaked previous secret has one of its own, reported once however often it is presented", async () => {
    const key = newKey("user-leaked");
    await insert(key);
    const { apiKey } = await rollOnce(key.user_id, key.id, 600);
    await Promise.all([
      removeByHash([key.key_hash], "leaked", new Date(), system),
      removeByHash([key.key_hash], "leaked", new Date(), system),
    ]);
    expect(await reasonsOf(key)).toEqual(["leaked earlier"]);
    await removeByHash([key.key_hash, apiKey.key_hash], "leaked", new Date(), system);
    expect((await reasonsOf(key)).sort()).toEqual(["leaked current", "leaked earlier"]);
  });

  test("a key without an expiry time has no reminder, and one with it the next that is in the future", async () => {
    const days = async (lifetimeDays?: number) => {
      const expires_at = lifetimeDays && new Date(Date.now() + lifetimeDays * 86_400_000);
      const input = { name: "ci", ...(expires_at && { expires_at }) };
      const { apiKey } = createApiKey("user-reminded", input, new Date(), randomBytes(API_KEY_RANDOM_BYTES));
      await insert(apiKey);
      return (await notificationsAbout(apiKey.id)).map(({ data }) => "days_left" in data && data.days_left);
    };
    expect([await days(), await days(0.5), await days(7), await days(90)]).toEqual([[], [], [1], [30]]);
  });
});

import { randomUUID } from "node:crypto";
import { DeleteCommand, GetCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../../../../functions/foundation/platform/aws.ts";
import { tableName } from "../../../../functions/foundation/platform/env.ts";
import { hashApiKey } from "../../../../functions/identity/api-keys/api-key.ts";
import { handler as provision } from "../../../../functions/identity/api-keys/provision.ts";
import { handler as revokeAll } from "../../../../functions/identity/api-keys/revoke-all.ts";
import { failDynamo, interceptDynamo, restoreAws } from "../../../support/aws-calls.ts";
import { notifications } from "../../../support/notifications.ts";
import { type TestService, useService } from "../../../support/service.ts";

const service = useService();

type User = ReturnType<TestService["user"]>;

/** Creates keys of a user. */
const givenKeys = async ({ userId }: User, count: number): Promise<string[]> => {
  const keys: string[] = [];
  while (keys.length < count) keys.push((await provision({ user_id: userId, name: "ci" })).key);
  return keys;
};

/** Returns the status of a request with each key. */
const statusesOf = (keys: string[]) =>
  Promise.all(keys.map(async (key) => (await service.as(key).get("/v1/projects")).status));

const listed = async ({ api }: User) => (await api.get("/v1/api-keys")).body.data;

/** Returns the number of keys on which the limit depends. */
async function counted({ userId }: User): Promise<number | undefined> {
  const Key = { user_id: userId, id: "#count" };
  const { Item } = await dynamo().send(new GetCommand({ TableName: tableName("userApiKeys"), Key }));
  return Item?.key_count;
}

const isDelete = ({ command, input }: { command: string; input: object }) =>
  command === "TransactWriteItemsCommand" && JSON.stringify(input).includes('"Delete"');

test("deletes all keys of a user, and none of another user", async () => {
  const [user, other] = [service.user(), service.user()];
  const [keys, kept] = [await givenKeys(user, 3), await givenKeys(other, 1)];
  expect(await statusesOf([...keys, ...kept])).toEqual([200, 200, 200, 200]);
  expect(await revokeAll({ user_id: user.userId })).toEqual({ revoked: 3 });
  expect(await statusesOf([...keys, ...kept])).toEqual([401, 401, 401, 200]);
  expect(await listed(user)).toEqual([]);
  expect([await counted(user), await counted(other)]).toEqual([0, 1]);
});

test("with the id of a key, deletes only that key, and notifies its owner", async () => {
  const user = service.user();
  const keys = await givenKeys(user, 2);
  const [, { id: api_key_id }] = await listed(user);
  expect(await revokeAll({ user_id: user.userId, api_key_id })).toEqual({ revoked: 1 });
  expect((await statusesOf(keys)).sort()).toEqual([200, 401]);
  expect([(await listed(user)).length, await counted(user)]).toEqual([1, 1]);
  expect(await notifications()).toContainEqual(
    expect.objectContaining({ data: expect.objectContaining({ api_key_id, reason: "revoked_by_platform" }) }),
  );
  const again = { user_id: user.userId, api_key_id };
  await expect(revokeAll(again)).rejects.toMatchObject({ code: "not_found" });
});

test("can be repeated, and accepts a user without keys", async () => {
  const user = service.user();
  await givenKeys(user, 1);
  expect(await revokeAll({ user_id: user.userId })).toEqual({ revoked: 1 });
  expect(await revokeAll({ user_id: user.userId })).toEqual({ revoked: 0 });
  expect(await revokeAll({ user_id: `unknown-${randomUUID()}` })).toEqual({ revoked: 0 });
  expect(await counted(user)).toBe(0);
  expect(await statusesOf(await givenKeys(user, 1))).toEqual([200]);
});

test("deletes a key that is created while the others are deleted, and counts it", async () => {
  const user = service.user();
  await givenKeys(user, 2);
  const late: string[] = [];
  interceptDynamo(async (call, send) => {
    const output = await send();
    if (isDelete(call) && late.length < 2) late.push(...(await givenKeys(user, 1)));
    return output;
  });
  expect(await revokeAll({ user_id: user.userId })).toEqual({ revoked: 4 });
  expect(late).toHaveLength(2);
  expect(await statusesOf(late)).toEqual([401, 401]);
  expect([await listed(user), await counted(user)]).toEqual([[], 0]);
});

test("throws conflict when each deleted key is followed by a new one", async () => {
  const user = service.user();
  await givenKeys(user, 1);
  let deleted = 0;
  // The list looks the same when a key is kept as when another one has taken its place.
  interceptDynamo(async (call, send) => {
    if (!isDelete(call)) return send();
    deleted += 1;
    return {};
  });
  await expect(revokeAll({ user_id: user.userId })).rejects.toMatchObject({ code: "conflict" });
  expect(deleted).toBe(200);
  restoreAws();
  expect(await revokeAll({ user_id: user.userId })).toEqual({ revoked: 1 });
});

test("does not count a key that the user deletes at the same time, nor twice when two calls run", async () => {
  const user = service.user();
  const keys = await givenKeys(user, 6);
  const [first] = await listed(user);
  const results = await Promise.all([
    revokeAll({ user_id: user.userId }),
    revokeAll({ user_id: user.userId }),
    user.api.delete(`/v1/api-keys/${first.id}`),
  ]);
  const deleted = results[2].status === 204 ? 1 : 0;
  expect(results[0].revoked + results[1].revoked + deleted).toBe(6);
  expect(await statusesOf(keys)).toEqual(Array(6).fill(401));
  expect(await counted(user)).toBe(0);
});

test("deletes a list entry whose key does not exist", async () => {
  const user = service.user();
  const [key = ""] = await givenKeys(user, 1);
  await dynamo().send(new DeleteCommand({ TableName: tableName("apiKeys"), Key: { key_hash: hashApiKey(key) } }));
  expect(await revokeAll({ user_id: user.userId })).toEqual({ revoked: 1 });
  expect(await counted(user)).toBe(0);
});

test("fails when a key cannot be deleted, and a second call deletes the rest", async () => {
  const user = service.user();
  const keys = await givenKeys(user, 13);
  let deletes = 0;
  failDynamo((call) => isDelete(call) && ++deletes === 2);
  await expect(revokeAll({ user_id: user.userId })).rejects.toThrow("slow down");
  restoreAws();
  expect((await statusesOf(keys)).filter((status) => status === 401)).toHaveLength(10);
  expect(await counted(user)).toBe(3);
  expect(await revokeAll({ user_id: user.userId })).toEqual({ revoked: 3 });
  expect(await statusesOf(keys)).toEqual(Array(13).fill(401));
});

test.each([
  ["undefined", undefined, ""],
  ["no user", {}, "user_id"],
  ["a blank user", { user_id: " " }, "user_id"],
  ["an unknown field", { user_id: "u", id: "7" }, "id"],
  ["a malformed id", { user_id: "u", api_key_id: "7" }, "api_key_id"],
])("throws validation_error for %s with the path of the field", async (_title, input, path) => {
  await expect(revokeAll(input)).rejects.toMatchObject({
    code: "validation_error",
    details: [{ path, message: expect.any(String) }],
  });
});

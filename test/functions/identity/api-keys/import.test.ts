import { createHash, createHmac, randomBytes, randomUUID } from "node:crypto";
import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../../../../functions/foundation/platform/aws.ts";
import { tableName } from "../../../../functions/foundation/platform/env.ts";
import type { ImportResult } from "../../../../functions/foundation/schema/import-rows.ts";
import { unknownApiKey } from "../../../support/api-keys.ts";
import { interceptDynamo } from "../../../support/aws-calls.ts";
import { call } from "../../../support/call.ts";
import { fakeDate } from "../../../support/fake-date.ts";
import { notificationsAbout } from "../../../support/notifications.ts";
import { send, useService } from "../../../support/service.ts";

const service = useService();
const pepper = randomBytes(16).toString("hex");

beforeEach(() => {
  process.env.IMPORTED_KEYS = '[{"prefix":"acme_","hash":"sha256"},{"prefix":"old.","hash":"hmac-sha256"}]';
  process.env.IMPORTED_KEYS_PEPPER = pepper;
});

const importKeys = (keys: unknown[], more: object = {}) => call<ImportResult>("api-keys-import", { keys, ...more });
const allImported = (imported: number) => ({ imported, unchanged: 0, refused: [] });
const sha256 = (key: string) => createHash("sha256").update(key).digest("hex");
const secondsFromNow = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString();

/** Returns a key of the earlier service and the row that imports it. */
function earlierKey(fields: object = {}) {
  const key = `acme_${randomBytes(16).toString("base64url")}`;
  const row = {
    hash: sha256(key),
    user_id: `user-${randomUUID()}`,
    name: "ci",
    key_prefix: key.slice(0, 9),
    ...fields,
  };
  return { key, row };
}

/** Imports a key of a new user, who can also sign in. */
async function givenImported(fields: object = {}) {
  const user = service.user();
  const { key, row } = earlierKey({ user_id: user.userId, ...fields });
  expect(await importKeys([row])).toEqual(allImported(1));
  const [{ id }] = (await user.api.get("/v1/api-keys")).body.data;
  return { ...user, key, row, id: id as string };
}
const statusWith = async (key: string) => (await service.as(key).get("/v1/projects")).status;
const codeWith = async (key: string) => (await service.as(key).get("/v1/projects")).body.error?.code;

describe("an imported key", () => {
  test("is accepted, and listed with its times, name and prefix", async () => {
    const limits = { permissions: ["projects:read"], expires_at: secondsFromNow(3 * 366 * 86_400) };
    const created_at = "2020-02-29T23:59:59.999Z";
    const { api, key, row, userId } = await givenImported({ created_at, ...limits });
    const current = await service.as(key).get("/v1/api-keys/current");
    expect(current.body.data).toMatchObject({ user_id: userId, ...limits, api_key: { key_prefix: row.key_prefix } });
    const { data } = (await api.get("/v1/api-keys")).body;
    const use = { last_used_at: expect.any(String) };
    expect(data).toEqual([
      { id: expect.any(String), name: "ci", key_prefix: row.key_prefix, created_at, ...limits, ...use },
    ]);
  });

  test("of HMAC-SHA-256 with a pepper is accepted, and its SHA-256 alone is not", async () => {
    const key = `old.${randomBytes(16).toString("hex")}`;
    const user_id = randomUUID();
    const row = {
      user_id,
      name: "ci",
      key_prefix: "old.",
      hash: createHmac("sha256", pepper).update(key).digest("base64"),
    };
    await importKeys([{ ...row, hash: sha256(key) }]);
    expect(await codeWith(key)).toBe("invalid_api_key");
    expect(await importKeys([row])).toEqual(allImported(1));
    expect(await statusWith(key)).toBe(200);
  });

  test.each(["hex", "base64", "base64url"] as const)(
    "is found by a hash in %s, in lower and upper case",
    async (encoding) => {
      const { key, row } = earlierKey();
      const hash = Buffer.from(row.hash, "hex").toString(encoding);
      expect(await importKeys([{ ...row, hash: encoding === "hex" ? hash.toUpperCase() : hash }])).toEqual(
        allImported(1),
      );
      expect(await statusWith(key)).toBe(200);
    },
  );

  test("is rejected from the next request on when it is deleted, and no import brings it back", async () => {
    const { api, key, row, id } = await givenImported();
    expect((await api.delete(`/v1/api-keys/${id}`)).status).toBe(204);
    expect(await codeWith(key)).toBe("invalid_api_key");
    expect(await importKeys([row])).toEqual({ imported: 0, unchanged: 1, refused: [] });
    expect(await codeWith(key)).toBe("invalid_api_key");
    expect((await api.get("/v1/api-keys")).body.data).toEqual([]);
  });

  test("is rolled to a key with the prefix svc_, and is accepted until its overlap ends", async () => {
    const { api, key, row, id } = await givenImported();
    const rolled = (await api.post(`/v1/api-keys/${id}/roll`, { overlap_seconds: 600 })).body.data;
    expect(rolled).toMatchObject({ id, key: expect.stringMatching(/^svc_[0-9a-f]{64}$/) });
    expect(await Promise.all([key, rolled.key].map(statusWith))).toEqual([200, 200]);
    expect((await importKeys([row])).unchanged).toBe(1);
    fakeDate().advance(601);
    expect(await Promise.all([key, rolled.key].map(statusWith))).toEqual([401, 200]);
  });

  test("expires, with a reminder before", async () => {
    const { key, id } = await givenImported({
      expires_at: secondsFromNow(20 * 86_400),
      created_at: "2020-01-01T00:00:00Z",
    });
    expect(await notificationsAbout(id)).toMatchObject([{ data: { days_left: 7 } }]);
    fakeDate().advance(20 * 86_400);
    expect(await codeWith(key)).toBe("api_key_expired");
  });

  test("can be revoked by anyone who has found it, like a key with the prefix svc_", async () => {
    const { key } = await givenImported();
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ credentials: [`${key}x`, key] });
    expect((await send(`${service.baseUrl}/v1/credentials/revoke`, { method: "POST", headers, body })).status).toBe(
      202,
    );
    expect(await codeWith(key)).toBe("invalid_api_key");
  });
});

describe("a token with the prefix of imported keys", () => {
  test("that is not known costs one read, and is an invalid API key", async () => {
    const calls: string[] = [];
    interceptDynamo(({ command }, send) => {
      calls.push(command);
      return send();
    });
    expect(await codeWith("acme_unknown")).toBe("invalid_api_key");
    expect(calls).toEqual(["GetItemCommand"]);
  });

  test("is a JWT in a stage without the option, and costs no read", async () => {
    const { key } = await givenImported();
    delete process.env.IMPORTED_KEYS;
    const calls: string[] = [];
    interceptDynamo(({ command }, send) => {
      calls.push(command);
      return send();
    });
    expect(await codeWith(key)).toBe("invalid_token");
    expect(calls).toEqual([]);
  });
});

describe("an import", () => {
  test("of the same rows again changes nothing, also in one batch and after they have expired", async () => {
    const { row } = earlierKey({ expires_at: secondsFromNow(60) });
    const again = {
      ...row,
      hash: Buffer.from(row.hash, "hex").toString("base64"),
      created_at: null,
      permissions: null,
    };
    expect(await importKeys([row, again])).toEqual({ imported: 1, unchanged: 1, refused: [] });
    fakeDate().advance(61);
    expect(await importKeys([row])).toEqual({ imported: 0, unchanged: 1, refused: [] });
    const scoped = earlierKey({ permissions: ["keys:read", "projects:read"] }).row;
    const inAnotherOrder = { ...scoped, permissions: ["projects:read", "keys:read"] };
    expect(await importKeys([scoped, inAnotherOrder])).toMatchObject({ imported: 1, unchanged: 1 });
  });

  test.each([
    ["another user", { user_id: "someone-else" }],
    ["another name", { name: "deploy" }],
    ["another expiry", { expires_at: "2999-01-01T00:00:00Z" }],
    ["permissions", { permissions: ["projects:read"] }],
  ])("refuses a hash that was imported with %s, in the same batch and in a later one", async (_title, other) => {
    const { key, row } = earlierKey();
    const refused = [{ index: 1, reason: expect.stringMatching(/^hash was imported before with another user_id/) }];
    expect(await importKeys([row, { ...row, ...other }])).toEqual({ imported: 1, unchanged: 0, refused });
    expect(await importKeys([row, { ...row, ...other }])).toEqual({ imported: 0, unchanged: 1, refused });
    expect((await service.as(key).get("/v1/api-keys")).body.data).toMatchObject([{ name: "ci" }]);
  });

  test("refuses the hash of a key of this service", async () => {
    const { api, userId } = service.user();
    const { key } = (await api.post("/v1/api-keys", { name: "own" })).body.data;
    const { row } = earlierKey({ hash: sha256(key), user_id: userId });
    for (const dry_run of [true, false]) {
      const refused = [{ index: 0, reason: "hash is that of a key of this service" }];
      expect(await importKeys([row], { dry_run })).toEqual({ imported: 0, unchanged: 0, refused });
    }
  });

  test("reaches the limit of a user, and refuses the rest with the reason, as its dry run says", async () => {
    const { api, userId } = service.user();
    await api.post("/v1/api-keys", { name: "own" });
    const rows = Array.from({ length: 101 }, () => earlierKey({ user_id: userId }).row);
    const other = earlierKey();
    const reason = "The limit of 100 API keys per user is reached. Delete one first.";
    const expected = { imported: 100, unchanged: 0, refused: [99, 100].map((index) => ({ index, reason })) };
    expect(await importKeys([...rows, other.row], { dry_run: true })).toEqual(expected);
    expect((await api.get("/v1/api-keys")).body.data).toHaveLength(1);
    expect(await importKeys([...rows, other.row])).toEqual(expected);
    expect((await api.get("/v1/api-keys")).body.data).toHaveLength(100);
    expect(await statusWith(other.key)).toBe(200);
    expect(await importKeys(rows)).toEqual({ imported: 0, unchanged: 99, refused: expected.refused });
  });

  test("imports each row once when two calls run at the same time", async () => {
    const rows = Array.from({ length: 30 }, () => earlierKey({ user_id: "one-user" }).row);
    const results = await Promise.all([importKeys(rows), importKeys(rows), importKeys(rows.toReversed())]);
    const sum = (field: "imported" | "unchanged") => results.reduce((total, each) => total + each[field], 0);
    expect(results.flatMap(({ refused }) => refused)).toEqual([]);
    expect([sum("imported"), sum("unchanged")]).toEqual([30, 60]);
  });

  test("that is a dry run writes nothing", async () => {
    const { key, row } = earlierKey();
    expect(await importKeys([row, row, {}], { dry_run: true })).toMatchObject({ imported: 1, unchanged: 1 });
    expect(await codeWith(key)).toBe("invalid_api_key");
    const record = { TableName: tableName("apiKeys"), Key: { key_hash: row.hash } };
    expect((await dynamo().send(new GetCommand({ ...record, ConsistentRead: true }))).Item).toBeUndefined();
    expect(await importKeys([row])).toEqual(allImported(1));
  });

  test("of 1,000 keys of 1,000 users, with reminders of their expiry, is one call", async () => {
    const expires_at = secondsFromNow(90 * 86_400);
    const keys = Array.from({ length: 1_000 }, () => earlierKey({ expires_at }));
    expect(await importKeys(keys.map(({ row }) => row))).toEqual(allImported(1_000));
    expect(await statusWith(keys.at(-1)?.key ?? "")).toBe(200);
  });

  test("of more than 1,000 keys, and of anything else than a list, is an error of the call", async () => {
    const { row } = earlierKey();
    await expect(importKeys(Array(1_001).fill(row))).rejects.toThrow("keys must have at most 1000 entries");
    await expect(call("api-keys-import", { keys: {} })).rejects.toThrow("keys must be an array");
    await expect(importKeys([row], { dry_run: "yes" })).rejects.toThrow("dry_run must be true or false");
    await expect(importKeys([row], { force: true })).rejects.toThrow("force is not a known field");
  });

  const { row: valid } = earlierKey();
  const future = new Date(Date.now() + 86_400_000).toISOString();
  test.each([
    ["that is no object", "acme_key", "the row must be a JSON object"],
    ["without a hash", { ...valid, hash: undefined }, "hash is required"],
    [
      "with a hash of 31 bytes",
      { ...valid, hash: valid.hash.slice(2) },
      "hash must be the 32 bytes of the hash in hex or Base64",
    ],
    ["with the key instead of its hash", { ...valid, hash: "acme_abcdef" }, "hash must be the 32 bytes"],
    ["without a user", { ...valid, user_id: undefined }, "user_id is required"],
    [
      "of a service account",
      { ...valid, user_id: "service-account:1" },
      "user_id must not begin with workflow: or service-account:",
    ],
    ["with a blank name", { ...valid, name: " " }, "name must not be blank"],
    [
      "with a prefix of no kind",
      { ...valid, key_prefix: "beta_12" },
      "key_prefix must begin with a prefix of the stage option",
    ],
    [
      "with a quote in its prefix",
      { ...valid, key_prefix: 'acme_"' },
      "key_prefix must be the first characters of the key",
    ],
    [
      "with a whole key as its prefix",
      { ...valid, key_prefix: `acme_${"x".repeat(28)}` },
      "key_prefix must be the first",
    ],
    ["created in the future", { ...valid, created_at: future }, "created_at must not be in the future"],
    ["created before 1970", { ...valid, created_at: "1969-12-31T23:59:59Z" }, "created_at must not be before 1970"],
    ["created at no time", { ...valid, created_at: "yesterday" }, "created_at must be an ISO 8601 time"],
    ["that has expired", { ...valid, expires_at: "2020-01-01T00:00:00Z" }, "expires_at must be in the future"],
    [
      "with an unknown permission",
      { ...valid, permissions: ["registry:push"] },
      "permissions.0 must be one of projects:read,",
    ],
    ["without any permission", { ...valid, permissions: [] }, "permissions must not be empty"],
    ["with an unknown field", { ...valid, scopes: [] }, "scopes is not a known field"],
    [
      "with two mistakes",
      { ...valid, name: "", user_id: "" },
      "user_id must have 1 to 255 characters; name must not be blank",
    ],
  ])("refuses a row %s, and imports the others", async (_title, row, reason) => {
    const [before, after] = [earlierKey(), earlierKey()];
    const keys = [before.row, row, after.row];
    const refused = [{ index: 1, reason: expect.stringContaining(reason) }];
    expect(await importKeys(keys, { dry_run: true })).toEqual({ imported: 2, unchanged: 0, refused });
    expect(await importKeys(keys)).toEqual({ imported: 2, unchanged: 0, refused });
    expect(await Promise.all([before.key, after.key].map(statusWith))).toEqual([200, 200]);
  });

  test("refuses all rows in a stage without the option", async () => {
    delete process.env.IMPORTED_KEYS;
    const { refused } = await importKeys([earlierKey().row]);
    expect(refused).toMatchObject([{ reason: expect.stringContaining("stage option importedKeys") }]);
  });
});

test("a key with the prefix svc_ and a wrong checksum still costs no read", async () => {
  const calls: string[] = [];
  interceptDynamo(({ command }, send) => {
    calls.push(command);
    return send();
  });
  expect(await codeWith(unknownApiKey().replace(/.$/, (last) => (last === "0" ? "1" : "0")))).toBe("invalid_api_key");
  expect(calls).toEqual([]);
});

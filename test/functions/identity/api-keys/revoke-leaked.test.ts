import { createHash, createHmac, randomBytes, randomUUID } from "node:crypto";
import { logSink } from "../../../../functions/foundation/platform/log.ts";
import { unknownApiKey } from "../../../support/api-keys.ts";
import {
  type AwsCall,
  beforeTransaction,
  failDynamo,
  interceptDynamo,
  restoreAws,
} from "../../../support/aws-calls.ts";
import { call } from "../../../support/call.ts";
import { fakeDate } from "../../../support/fake-date.ts";
import { givenUsedBudget, usedBudget } from "../../../support/request-budget.ts";
import { send, type TestService, useService } from "../../../support/service.ts";
import { itemsOf } from "../../../support/stored-items.ts";

const logged: object[] = [];
const service = useService();
beforeAll(async () => {
  logSink.write = (_level, line) => void logged.push(line);
});

type User = ReturnType<TestService["user"]>;

const create = async ({ api }: User) =>
  (await api.post("/v1/api-keys", { name: "ci" })).body.data as { id: string; key: string };
const rolledKey = async ({ api }: User, id: string): Promise<string> =>
  (await api.post(`/v1/api-keys/${id}/roll`, { overlap_seconds: 600 })).body.data.key;
const revoke = (credentials: unknown) =>
  send(`${service.baseUrl}/v1/credentials/revoke`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ credentials }),
  });
const statusWith = async (key: string) => (await service.as(key).get("/v1/projects")).status;

test("without a credential ends a key from the next request on, and logs why for its owner", async () => {
  const user = service.user();
  const [{ id, key }, kept] = [await create(user), await create(user)];
  const { status, body } = await revoke([key]);
  expect({ status, body }).toEqual({ status: 202, body: { data: { received: 1 } } });
  expect(await Promise.all([key, ...Array(10).fill(key), kept.key].map(statusWith))).toEqual([
    ...Array(11).fill(401),
    200,
  ]);
  expect((await user.api.get("/v1/api-keys")).body.data).toMatchObject([{ id: kept.id }]);
  expect(logged).toContainEqual(
    expect.objectContaining({ message: "api key removed", user_id: user.userId, key_id: id, reason: "leaked" }),
  );
});

test("returns the same response for keys that exist, that do not, and that were deleted", async () => {
  const user = service.user();
  const [existing, deleted] = [await create(user), await create(user)];
  await user.api.delete(`/v1/api-keys/${deleted.id}`);
  const texts = [existing.key, deleted.key, unknownApiKey()];
  const responses = await Promise.all(texts.map((text) => revoke([text])));
  for (const { status, headers, body } of responses) {
    const { "x-request-id": _, date: __, ...rest } = Object.fromEntries(headers);
    const { "x-request-id": ___, date: ____, ...first } = Object.fromEntries(responses[0]?.headers ?? []);
    expect({ status, headers: rest, body }).toEqual({ status: 202, headers: first, body: { data: { received: 1 } } });
  }
  expect(await statusWith(existing.key)).toBe(401);
});

/** What stands around a key, or in it, where keys leak. */
const forms: Record<string, (key: string) => string> = {
  "a line break after it": (key) => `${key}\n`,
  "a carriage return after it": (key) => `${key}\r`,
  "a space before it": (key) => ` ${key}`,
  "a byte order mark before it": (key) => `\uFEFF${key}`,
  "a zero-width space after it": (key) => `${key}\u200B`,
  "zero-width characters in it": (key) => [...key].join("\u200D"),
  "a soft hyphen in it": (key) => key.replace("_", "_\u00AD"),
  "a line break in it": (key) => `${key.slice(0, 40)}\r\n  ${key.slice(40)}`,
  "UTF-16 that was read as bytes": (key) => Buffer.from(`\uFEFF${key}`, "utf16le").toString(),
  "lone surrogates around it": (key) => `\uD800${key}\uD800`,
  "an authorization header": (key) => `Authorization: Bearer ${key}`,
  "the line of an .env file": (key) => `SVC_API_KEY=${key}`,
  quotes: (key) => `"${key}"`,
  "the query of a URL": (key) => `https://x.example/?key=${key}&b=1`,
  "a user of a URL": (key) => `https://u:${key}@x.example`,
  "an encoded URL": (key) => `https%3A%2F%2Fx%3Fkey%3D${key.replace("_", "%5F")}%26b%3D1`,
  "a URL that is encoded twice": (key) => encodeURIComponent(encodeURIComponent(`?key="${key}"`)).replace("_", "%255f"),
  "a URL with all characters encoded": (key) => key.replaceAll(/./g, (each) => `%${each.charCodeAt(0).toString(16)}`),
  "a text of JSON": (key) => JSON.stringify({ log: JSON.stringify({ key }) }),
  "JSON with an escaped underscore": (key) => key.replace("_", "\\u005f"),
  "JSON with an escaped zero-width space in it": (key) => key.replace("_", "_\\u200b"),
  "a full stop after it": (key) => `It is ${key}.`,
  "word characters around it": (key) => `my_${key}xyz`,
  "hexadecimal digits around it": (key) => `${"0a".repeat(40)}${key}${"b1".repeat(40)}`,
  "the prefix before it": (key) => `svc_svc_abc${key}`,
  "a key that is cut off before it": (key) => `${unknownApiKey().slice(0, 50)}${key}`,
  "upper case": (key) => key.toUpperCase(),
  "upper-case digits": (key) => `svc_${key.slice(4).toUpperCase()}`,
  "Markdown that escapes the underscore": (key) => `**${key.replace("_", "\\_")}**`,
  "HTML that escapes the underscore": (key) => `<b>${key.replace("_", "&#x5f;")}</b>`,
  "60 KB before it": (key) => "svc_".repeat(15_000) + key,
};

test.each(Object.entries(forms))("ends a key in a text with %s", async (_title, textWith) => {
  const { key } = await create(service.user());
  const { status, body } = await revoke([textWith(key)]);
  expect({ status, body }).toEqual({ status: 202, body: { data: { received: 1 } } });
  expect(await statusWith(key)).toBe(401);
});

test("ends all keys of a text, and counts the texts with a key", async () => {
  const user = service.user();
  const keys = [await create(user), await create(user), await create(user)].map(({ key }) => key);
  const [first = "", second = "", third = ""] = keys;
  const { body } = await revoke([`${first}${second}`, "no key", `key: ${third}`, third]);
  expect(body).toEqual({ data: { received: 3 } });
  expect(await Promise.all(keys.map(statusWith))).toEqual([401, 401, 401]);
});

test.each([
  ["an empty text", ""],
  ["other text", "hello"],
  ["a wrong checksum", `svc_${"0".repeat(64)}`],
  ["a key that is cut off", unknownApiKey().slice(0, -1)],
  ["a partner key", unknownApiKey().replace("svc_", "svcp_")],
  ["a lone surrogate", "\ud800"],
])("rejects %s, so that nobody believes that a key was revoked", async (_title, text) => {
  const { status, body } = await revoke([text, text]);
  expect({ status, code: body.error.code, details: body.error.details }).toEqual({
    status: 400,
    code: "validation_error",
    details: [{ path: "credentials", message: expect.stringContaining("contain no API key") }],
  });
});

test("rejects more than 100 keys in all texts together, and revokes nothing", async () => {
  const { key } = await create(service.user());
  const others = Array.from({ length: 100 }, unknownApiKey);
  const { status, body } = await revoke([[key, ...others].join("\n")]);
  expect([status, body.error.details]).toEqual([
    400,
    [{ path: "credentials", message: "contain 101 API keys: send at most 100 in a request" }],
  ]);
  expect(await statusWith(key)).toBe(200);
});

/** The budget of the address from which the tests send. */
const ADDRESS = "address:127.0.0.1";

describe("a key of an earlier service", () => {
  beforeEach(() => {
    process.env.IMPORTED_KEYS = '[{"prefix":"acme_","hash":"sha256"},{"prefix":"0a.","hash":"hmac-sha256"}]';
    process.env.IMPORTED_KEYS_PEPPER = "pepper";
  });
  afterEach(() => {
    delete process.env.IMPORTED_KEYS;
    delete process.env.IMPORTED_KEYS_PEPPER;
  });

  async function givenImported(key: string): Promise<string> {
    const hash = key.startsWith("0a.")
      ? createHmac("sha256", "pepper").update(key).digest("hex")
      : createHash("sha256").update(key).digest("hex");
    const row = { hash, user_id: service.user().userId, name: "old", key_prefix: key.slice(0, 6) };
    expect(await call("api-keys-import", { keys: [row], dry_run: false })).toMatchObject({ imported: 1 });
    return key;
  }

  const imported: Record<string, (key: string) => string> = {
    "nothing around it": (key) => key,
    "a line break after it": (key) => `${key}\r\n`,
    "an authorization header": (key) => `Authorization: Bearer ${key}`,
    "the line of an .env file": (key) => `KEY="${key}" # old`,
    "a full stop after it": (key) => `It is ${key}.`,
    "nothing but a full stop": (key) => `${key}.`,
    "the query of a URL": (key) => `https://x.example/?key=${key}&b=1`,
    "the path of a URL": (key) => `https://x.example/${key}/b`,
    "a long path after it": (key) => `https://x.example/${key}${"/b".repeat(40)}`,
    "a long sentence of words and dots after it": (key) => `${key}.a-b.c_d~e+f/g.h-i.j_k~l+m/n`,
    "an encoded URL": (key) => encodeURIComponent(`https://x.example/?key=${key}&b=1`),
    "a text of JSON": (key) => JSON.stringify(JSON.stringify({ log: `a\n${key}\n` })),
    "a byte order mark and zero-width characters": (key) => `\uFEFF${key.slice(0, 9)}\u200B${key.slice(9)}`,
    "a zero-width space and a word after it": (key) => `${key}\u200Band`,
    "its prefix before it": (key) => `acme_acme_0a.${key}`,
    "keys of this service before it": (key) => `${unknownApiKey()}${unknownApiKey()} ${key}`,
  };

  test.each(Object.entries(imported))("ends in a text with %s", async (_title, textWith) => {
    const random = () => randomBytes(16).toString("hex");
    const padded = () => `${randomBytes(16).toString("base64url")}==`;
    const keys = [random(), padded(), `${random()}.${random()}-${random()}`].map((rest) => `acme_${rest}`);
    for (const key of [...keys, `0a.${random()}`]) {
      await givenImported(key);
      const { status, body } = await revoke([textWith(key)]);
      expect({ status, body }).toEqual({ status: 202, body: { data: { received: 1 } } });
      expect(await statusWith(key)).toBe(401);
    }
  });

  test("of more parts than are tried ends when it is sent alone", async () => {
    const key = await givenImported(`acme_${"0a.b-c_".repeat(10)}${randomBytes(16).toString("hex")}`);
    expect((await revoke([key])).status).toBe(202);
    expect(await statusWith(key)).toBe(401);
  });

  test("that is short ends when it is sent alone", async () => {
    const key = await givenImported(`acme_${randomBytes(2).toString("hex")}`);
    expect((await revoke([` ${key}\n`])).status).toBe(202);
    expect(await statusWith(key)).toBe(401);
  });

  test("is found among 99 of this service, whatever their digits, which count as one key each", async () => {
    const key = await givenImported(`acme_${randomBytes(16).toString("hex")}`);
    const others = Array.from({ length: 99 }, unknownApiKey);
    expect(await revoke([...others, key])).toMatchObject({ status: 202, body: { data: { received: 100 } } });
    expect(await statusWith(key)).toBe(401);
  });

  test.each([
    ["its prefix, again and again", "acme_".repeat(12_000)],
    ["its prefix with long runs of dots", `${"acme_".repeat(50)}${".".repeat(250)}!`.repeat(110)],
    ["half of the prefix of a key", "svc".repeat(20_000)],
    ["encoded text", "%25".repeat(20_000)],
  ])("a text of 60 KB with %s takes no time to search", async (_title, text) => {
    const startedAt = performance.now();
    await revoke([text]);
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    await givenUsedBudget(ADDRESS, 0);
  });
});

test("does not answer faster for a key that does not exist", async () => {
  const startedAt = performance.now();
  await revoke([unknownApiKey()]);
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(99);
});

test("text without the checksum of a key causes no read or write, and uses nothing of the limit of its address", async () => {
  const { key } = await create(service.user());
  const usedBefore = await usedBudget(ADDRESS);
  const calls: AwsCall[] = [];
  interceptDynamo(async (call, sendCall) => {
    calls.push(call);
    return sendCall();
  });
  const wrongChecksum = key.replace(/.$/, (last) => (last === "0" ? "1" : "0"));
  const garbage = Array.from({ length: 100 }, (_, index) => [wrongChecksum, "", `svc_${index}`][index % 3]);
  for (let count = 0; count < 20; count++) expect((await revoke(garbage)).status).toBe(400);
  expect(calls).toEqual([]);
  restoreAws();
  expect(await usedBudget(ADDRESS)).toBe(usedBefore);
});

test("an address that has sent 1,000 keys in a minute gets 429, other text excepted, and nothing is revoked", async () => {
  const { key } = await create(service.user());
  await givenUsedBudget(ADDRESS, 999);
  const { status, headers, body } = await revoke([key, unknownApiKey(), "text"]);
  expect({ status, code: body.error.code }).toEqual({ status: 429, code: "rate_limited" });
  const seconds = Number(headers.get("retry-after"));
  expect(seconds).toBeGreaterThanOrEqual(1);
  expect(seconds).toBeLessThanOrEqual(60);
  expect(body.error.message).toBe(
    `This address has sent 1000 API keys in a minute. Nothing was revoked. Try again in ${seconds} s.`,
  );
  expect(await statusWith(key)).toBe(200);
  expect((await revoke(["text"])).status).toBe(400);
  expect((await revoke([key, key, "text"])).status).toBe(202);
  expect(await statusWith(key)).toBe(401);
  await givenUsedBudget(ADDRESS, 0);
});

test("returns 503 when a key or an earlier one cannot be ended, and a repeat ends it", async () => {
  const user = service.user();
  const { id, key } = await create(user);
  const next = await rolledKey(user, id);
  failDynamo(({ command }) => command === "TransactWriteItemsCommand");
  for (const each of [key, next]) expect((await revoke([each])).status).toBe(503);
  restoreAws();
  await revoke([key, next]);
  expect(await Promise.all([key, next].map(statusWith))).toEqual([401, 401]);
});

test("ends an earlier key alone", async () => {
  const user = service.user();
  const { id, key } = await create(user);
  const next = await rolledKey(user, id);
  const last = await rolledKey(user, id);
  await revoke([next]);
  expect(await Promise.all([key, next, last].map(statusWith))).toEqual([200, 401, 200]);
  expect((await user.api.get("/v1/api-keys")).body.data).toMatchObject([{ id }]);
});

test("an earlier key whose overlap is over is not reported to its owner, although its record still exists", async () => {
  const clock = fakeDate();
  const user = service.user();
  const { id, key } = await create(user);
  await rolledKey(user, id);
  clock.advance(601);
  expect((await revoke([key])).status).toBe(202);
  const { data } = (await user.api.get("/v1/audit-events")).body;
  const actions = data.map(({ action }: { action: string }) => action);
  // The clock stands still, so their order is not defined.
  expect(actions.sort()).toEqual(["api_key.created", "api_key.rolled"]);
});

test("ends the current key with its earlier ones", async () => {
  const user = service.user();
  const { id, key } = await create(user);
  const next = await rolledKey(user, id);
  await revoke([next]);
  expect(await Promise.all([key, next].map(statusWith))).toEqual([401, 401]);
  expect((await user.api.get("/v1/api-keys")).body.data).toEqual([]);
});

test("a key that is rolled meanwhile ends, and the new one stays", async () => {
  const user = service.user();
  const { id, key } = await create(user);
  let next = "";
  beforeTransaction(async () => (next = await rolledKey(user, id)));
  await revoke([key]);
  expect(await Promise.all([key, next].map(statusWith))).toEqual([401, 200]);
});

/** API Gateway ends a request after this time. */
const API_TIMEOUT_MS = 29_000;

test("ends a hundred keys of one user, and their limit is free again", async () => {
  const user = service.user();
  const keys = await Promise.all(Array.from({ length: 100 }, () => create(user)));
  const startedAt = performance.now();
  expect((await revoke(keys.map(({ key }) => key))).status).toBe(202);
  expect(performance.now() - startedAt).toBeLessThan(API_TIMEOUT_MS);
  expect((await user.api.get("/v1/api-keys")).body.data).toEqual([]);
  expect((await user.api.post("/v1/api-keys", { name: "again" })).status).toBe(201);
});

test("concurrent calls with the same keys end each once", async () => {
  const user = service.user();
  const keys = await Promise.all(Array.from({ length: 5 }, () => create(user)));
  const credentials = keys.flatMap(({ key }) => [key, key]);
  const statuses = await Promise.all(Array.from({ length: 4 }, async () => (await revoke(credentials)).status));
  expect(statuses).toEqual([202, 202, 202, 202]);
  const [count] = await itemsOf("userApiKeys", { user_id: user.userId });
  expect(count).toMatchObject({ id: "#count", key_count: 0 });
});

test("ignores a credential in the header, whatever it is", async () => {
  const user = service.user();
  const { key } = await create(user);
  const response = await send(`${service.baseUrl}/v1/credentials/revoke`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${randomUUID()}` },
    body: JSON.stringify({ credentials: [key] }),
  });
  expect([response.status, await statusWith(key)]).toEqual([202, 401]);
});

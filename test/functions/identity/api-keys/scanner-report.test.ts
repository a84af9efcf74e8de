import { createPublicKey, generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { logSink } from "../../../../functions/foundation/platform/log.ts";
import { inParallel } from "../../../../functions/foundation/platform/parallel.ts";
import { scannerKey } from "../../../../functions/identity/api-keys/scanner-keys.ts";
import { unknownApiKey } from "../../../support/api-keys.ts";
import { interceptDynamo, restoreAws } from "../../../support/aws-calls.ts";
import { call } from "../../../support/call.ts";
import { send, type TestService, useService } from "../../../support/service.ts";
import { itemsOf } from "../../../support/stored-items.ts";

/* Reports of GitHub's secret scanning. The test plays GitHub, with its own keys. */

const service = useService();
const pair = generateKeyPairSync("ec", { namedCurve: "P-256" });
const pem = (key = pair.publicKey) => String(key.export({ type: "spki", format: "pem" }));
const ID = "90a421169f0a406205f1563a953312f0be898d3c7b6c06b681aa86a874555f4a";
const listOf = (...keys: [id: string, key: string][]) =>
  JSON.stringify({ public_keys: keys.map(([key_identifier, key]) => ({ key_identifier, key, is_current: false })) });

let forge: Server;
/** What the list answers; undefined = nothing. */
let list: { status: number; body: string } | undefined;
let fetches = 0;
beforeEach(async () => {
  list = { status: 200, body: listOf([ID, pem()]) };
  fetches = 0;
  forge = createServer((_request, response) => {
    fetches += 1;
    if (list) response.writeHead(list.status).end(list.body);
  }).listen(0, "127.0.0.1");
  await once(forge, "listening");
  process.env.SECRET_SCANNING_KEYS_URL = `http://127.0.0.1:${(forge.address() as AddressInfo).port}/keys`;
});
afterEach(() => {
  delete process.env.SECRET_SCANNING_KEYS_URL;
  forge.closeAllConnections();
  forge.close();
});

const url = "https://github.com/octocat/Hello-World/blob/12345600b9cbe38a219f39a9941c9319b600c002/foo/bar.txt";
const match = (token: string, more: object = {}) => ({
  token,
  type: "platform_api_key",
  url,
  source: "content",
  ...more,
});

interface Request {
  id?: string;
  key?: typeof pair.privateKey;
  signature?: string;
}
function report(body: unknown, { id = ID, key = pair.privateKey, signature }: Request = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const headers = {
    "content-type": "application/json",
    "github-public-key-identifier": id,
    "github-public-key-signature": signature ?? sign("sha256", Buffer.from(text), key).toString("base64"),
  };
  return send(`${service.baseUrl}/v1/credentials/revoke`, { method: "POST", headers, body: text });
}
const labelsOf = ({ body }: { body: { label: string }[] }) => body.map(({ label }) => label);

const create = async ({ api }: ReturnType<TestService["user"]>): Promise<string> =>
  (await api.post("/v1/api-keys", { name: "ci" })).body.data.key;
const statusWith = async (key: string) => (await service.as(key).get("/v1/projects")).status;

test("keys are dead when the answer arrives, and it has a label for each token, also when the report is repeated", async () => {
  const logged: string[] = [];
  logSink.write = (_, line) => void logged.push(JSON.stringify(line));
  const user = service.user();
  const [key, other] = [await create(user), await create(user)];
  const tokens = [key, unknownApiKey(), `${other}\n`, "ghp_of_another_service", key, ""];
  const first = await report(tokens.map((token) => match(token)));
  expect({ status: first.status, body: first.body }).toEqual({
    status: 200,
    body: tokens.map((token, index) => ({
      token_raw: token,
      token_type: "platform_api_key",
      label: [0, 2, 4].includes(index) ? "true_positive" : "false_positive",
    })),
  });
  expect(await Promise.all([key, other].map(statusWith))).toEqual([401, 401]);
  const notices = async () => (await itemsOf("notifications", { owner: user.userId })).map(({ data }) => data);
  expect(await notices()).toMatchObject([{ reason: "leaked", found: { url, source: "content" } }, { found: { url } }]);
  const events = (await user.api.get("/v1/audit-events")).body.data;
  expect(events[0]).toMatchObject({ action: "api_key.deleted", details: { reason: "leaked", found: { url } } });
  expect((await report(tokens.map((token) => match(token)))).body).toEqual(first.body);
  expect(await notices()).toHaveLength(2);
  expect([logged, await notices(), events].map((each) => JSON.stringify(each)).join()).not.toContain(key);
});

test("a previous secret of a roll ends alone, and the key of a service account ends too", async () => {
  const user = service.user();
  const projectId = await service.project(user.userId);
  const { id, key } = (await user.api.post("/v1/api-keys", { name: "ci" })).body.data;
  const rolled = (await user.api.post(`/v1/api-keys/${id}/roll`, { overlap_seconds: 600 })).body.data.key;
  const accounts = `/v1/projects/${projectId}/service-accounts`;
  const account = (await user.api.post(accounts, { name: "ci", role: "viewer" })).body.data.id;
  const ofAccount = (await user.api.post(`${accounts}/${account}/api-keys`, { name: "ci" })).body.data.key;
  expect(labelsOf(await report([match(key), match(ofAccount)]))).toEqual(["true_positive", "true_positive"]);
  expect(await Promise.all([key, rolled, ofAccount].map(statusWith))).toEqual([401, 200, 401]);
});

test("the secrets of one key get the same labels when they are reported again", async () => {
  const user = service.user();
  const keys: string[] = [];
  // The order in which the secrets of a key end is that of the table.
  for (let count = 0; count < 6; count++) {
    const { id, key } = (await user.api.post("/v1/api-keys", { name: "ci" })).body.data;
    keys.push(key, (await user.api.post(`/v1/api-keys/${id}/roll`, { overlap_seconds: 600 })).body.data.key);
  }
  for (let count = 0; count < 2; count++)
    expect(labelsOf(await report(keys.map((key) => match(key))))).toEqual(keys.map(() => "true_positive"));
});

test("a report gets the labels of another one that has revoked its key meanwhile", async () => {
  const key = await create(service.user());
  let other: Promise<unknown> | undefined;
  interceptDynamo(async ({ command, input }, sendCall) => {
    const result = await sendCall();
    const isFirstRead = command.startsWith("BatchGet") && JSON.stringify(input).includes("api-keys") && !other;
    if (isFirstRead) {
      other = report([match(key)]);
      await other;
    }
    return result;
  });
  const { body } = await report([match(key)]);
  restoreAws();
  expect([labelsOf({ body }), labelsOf((await other) as { body: { label: string }[] })]).toEqual([
    ["true_positive"],
    ["true_positive"],
  ]);
});

const another = unknownApiKey();
test.each<[string, object, object]>([
  ["an empty URL", { url: "" }, { source: "content" }],
  ["a password in the URL", { url: "https://u:p@github.com/a" }, { url: "https://github.com/a", source: "content" }],
  [
    "markup, a line break and an invisible character in the URL",
    { url: "https://github.com/a\n<b>\u202e" },
    { url: "https://github.com/a%3Cb%3E%E2%80%AE", source: "content" },
  ],
  ["another key in the URL", { url: `https://github.com/${another}` }, { source: "content" }],
  [
    "another key in the URL, encoded",
    { url: `https://x.com/?k=${another.replace("_", "%5F")}` },
    { source: "content" },
  ],
  ["another key as the source", { url: "", source: another }, {}],
])("a notice of a report with %s shows only what is safe", async (_, more, found) => {
  const user = service.user();
  await report([match(await create(user), more)]);
  const [notice] = await itemsOf("notifications", { owner: user.userId });
  expect(notice?.data.found).toEqual(found);
});

test("a notice and the audit log do not have the key that its own URL has", async () => {
  const user = service.user();
  const key = await create(user);
  await report([match(key, { url: `https://github.com/octocat/${key}.txt`, source: key })]);
  const events = (await user.api.get("/v1/audit-events")).body.data;
  const stored = JSON.stringify([await itemsOf("notifications", { owner: user.userId }), events]);
  expect(stored).toContain("leaked");
  expect(stored).not.toContain(key.slice(4));
});

test("of several places of a key, the notice has the first one with a URL", async () => {
  const user = service.user();
  const key = await create(user);
  await report([match(key, { url: "", source: "npm" }), match(key), match(key, { url: "https://github.com/other" })]);
  expect(await itemsOf("notifications", { owner: user.userId })).toMatchObject([{ data: { found: { url } } }]);
});

test("two hundred keys of twenty users are dead when the answer arrives", async () => {
  const keys: string[] = [];
  await Promise.all(
    Array.from({ length: 20 }, async () => {
      const { userId: user_id } = service.user();
      for (let count = 0; count < 10; count++)
        keys.push((await call<{ key: string }>("api-keys-provision", { user_id, name: "many" })).key);
    }),
  );
  expect(labelsOf(await report(keys.map((key) => match(key))))).toEqual(keys.map(() => "true_positive"));
  expect(new Set(await inParallel(keys, 20, statusWith))).toEqual(new Set([401]));
}, 120_000);

test("what others wrote in a report cannot break a notice", async () => {
  const user = service.user();
  await report([match(await create(user), { url: "javascript:alert(1)", source: `\u202e${"x".repeat(1_000)}\n` })]);
  await report([match(await create(user), { url: 7, source: {} })]);
  const [first, second] = await itemsOf("notifications", { owner: user.userId });
  expect([first?.data.found, second?.data.found]).toEqual([{ source: "x".repeat(100) }, {}]);
});

const stranger = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
test.each<[string, (key: string) => ReturnType<typeof report>, number]>([
  ["a key that is not in the list", (key) => report([match(key)], { id: "f".repeat(64) }), 403],
  ["an empty id", (key) => report([match(key)], { id: "" }), 403],
  ["a signature of another key", (key) => report([match(key)], { key: stranger }), 403],
  [
    "a signature of another body",
    (key) => report([match(key)], { signature: sign("sha256", Buffer.from("[]"), pair.privateKey).toString("base64") }),
    403,
  ],
  ["a signature that is none", (key) => report([match(key)], { signature: "x" }), 403],
  ["an object", (key) => report(match(key)), 400],
  ["no JSON", (key) => report(`[${key}`), 400],
  ["a match without a token", (key) => report([match(key), { type: "t" }]), 400],
  ["a token that is a number", (key) => report([match(key), { token: 7, type: "t" }]), 400],
  [
    "too many keys in a match",
    (key) => report([match([key, ...Array.from({ length: 2_000 }, unknownApiKey)].join())]),
    400,
  ],
  ["too many matches", (key) => report([match(key), ...Array(2_000).fill({ token: "", type: "t" })]), 400],
  ["more than 1 MB", (key) => report([match(key), match("x".repeat(1_100_000))]), 413],
])("a report with %s is rejected, and no key ends", async (_, send, status) => {
  const key = await create(service.user());
  expect((await send(key)).status).toBe(status);
  expect(await statusWith(key)).toBe(200);
});

test.each<[string, typeof list]>([
  ["down", { status: 503, body: "" }],
  ["limited", { status: 403, body: '{"message":"API rate limit exceeded"}' }],
  ["moved", { status: 302, body: "" }],
  ["no JSON", { status: 200, body: "<html>" }],
  ["another JSON", { status: 200, body: "[]" }],
  ["empty", { status: 200, body: listOf() }],
  ["without a key of P-256", { status: 200, body: listOf([ID, pem(generateKeyPairSync("ed25519").publicKey)]) }],
  ["too large", { status: 200, body: `${listOf([ID, pem()])}${" ".repeat(300_000)}` }],
  ["silent", undefined],
])("while the list is %s, a report gets 503, no key ends, and the list is asked once", async (_, answer) => {
  list = answer;
  const key = await create(service.user());
  const responses = await Promise.all([report([match(key)]), report([match(key)])]);
  expect(responses.map(({ status }) => status)).toEqual([503, 503]);
  expect(responses[0]?.headers.get("retry-after")).toBe("300");
  expect((await report([match(key)])).status).toBe(503);
  expect([await statusWith(key), fetches]).toEqual([200, 1]);
});

test("a thousand matches with forty keys of twenty users are answered in time", async () => {
  const users = Array.from({ length: 20 }, () => service.user());
  const keys = (await Promise.all(users.map(async (user) => [await create(user), await create(user)]))).flat();
  const tokens = [...keys, ...Array.from({ length: 960 }, () => unknownApiKey())];
  const startedAt = performance.now();
  const { body } = await report(tokens.map((token) => match(token)));
  expect(performance.now() - startedAt).toBeLessThan(20_000);
  expect(body.filter(({ label }: { label: string }) => label === "true_positive")).toHaveLength(keys.length);
});

describe("the list of keys", () => {
  const now = new Date();
  const later = (minutes: number) => new Date(now.getTime() + minutes * 60_000);

  test("is fetched once an hour, and for an unknown id every five minutes at most", async () => {
    expect((await scannerKey(ID, now))?.equals(pair.publicKey)).toBe(true);
    for (const minute of [1, 2, 59]) await scannerKey(ID, later(minute));
    for (const id of ["a", "b", "c"]) expect(await scannerKey(id, later(4))).toBeUndefined();
    expect(fetches).toBe(1);
    const added = generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey;
    list = { status: 200, body: listOf(["new", pem(added)], ["rsa", "x"]) };
    expect((await scannerKey("new", later(6)))?.equals(added)).toBe(true);
    expect([await scannerKey(ID, later(7)), await scannerKey("rsa", later(7)), fetches]).toEqual([
      undefined,
      undefined,
      2,
    ]);
  });

  test("is used for a day while it cannot be fetched, but not for an unknown id", async () => {
    await scannerKey(ID, now);
    list = undefined;
    forge.closeAllConnections();
    list = { status: 500, body: "" };
    expect(await scannerKey(ID, later(61))).toBeDefined();
    await expect(scannerKey("new", later(62))).rejects.toMatchObject({ code: "service_unavailable" });
    await expect(scannerKey(ID, later(25 * 60))).rejects.toMatchObject({ code: "service_unavailable" });
  });

  test("that can be fetched again decides about an unknown id", async () => {
    const fetched = list;
    list = { status: 500, body: "" };
    await expect(scannerKey("new", now)).rejects.toMatchObject({ code: "service_unavailable" });
    list = fetched;
    expect(await scannerKey("new", later(6))).toBeUndefined();
  });
});

/** https://docs.github.com: a message with its signature and key. */
test("a message of GitHub's documentation is accepted", async () => {
  const key =
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE9MJJHnMfn2+H4xL4YaPDA4RpJqUq\nkCmRCBnYERxZanmcpzQSXs1X/AljlKkbJ8qpVIW4clayyef9gWhFbNHWAA==\n-----END PUBLIC KEY-----\n";
  expect(createPublicKey(key).asymmetricKeyType).toBe("ec");
  list = { status: 200, body: listOf([ID, key]) };
  const signature = "MEUCIQDKZokqnCjrRtw0tni+2Ltvl/uiMJ1EGumEsp1BsNr32AIgQY1YXD2nlj+XNfGK4rBfkMJ1JDOQcYXxa2sY8FNkrKc=";
  const { status, body } = await report('[{"token":"some_token","type":"some_type","url":"some_url"}]', { signature });
  expect({ status, body }).toEqual({
    status: 200,
    body: [{ token_raw: "some_token", token_type: "some_type", label: "false_positive" }],
  });
});

test("a request with one of the headers alone is an ordinary one", async () => {
  const key = await create(service.user());
  const { status, body } = await send(`${service.baseUrl}/v1/credentials/revoke`, {
    method: "POST",
    headers: { "content-type": "application/json", "github-public-key-identifier": randomUUID() },
    body: JSON.stringify({ credentials: [key] }),
  });
  expect({ status, body }).toEqual({ status: 202, body: { data: { received: 1 } } });
});

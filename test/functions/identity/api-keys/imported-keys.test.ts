import { createHash, createHmac } from "node:crypto";
import http from "node:http";
import { json } from "node:stream/consumers";
import { jest } from "@jest/globals";
import { SettingError } from "../../../../functions/foundation/platform/errors.ts";
import { hashApiKey } from "../../../../functions/identity/api-keys/api-key.ts";
import { importedKeyKinds, kindOfKey } from "../../../../functions/identity/api-keys/imported-keys.ts";
import { storedHashOf } from "../../../../functions/identity/api-keys/stored-hash.ts";
import { readCredential } from "../../../../functions/identity/authentication/credential.ts";
import { unknownApiKey } from "../../../support/api-keys.ts";
import { fakeDate } from "../../../support/fake-date.ts";
import { listening } from "../../../support/listening.ts";

const set = (kinds: unknown) => {
  process.env.IMPORTED_KEYS = JSON.stringify(kinds);
};
afterEach(() => {
  delete process.env.IMPORTED_KEYS;
});
const kind = (prefix: string) => ({ prefix, hash: "sha256" });
const kindOf = (token: string) => readCredential({ authorization: [`Bearer ${token}`] })?.authType;

test("without the setting IMPORTED_KEYS there are none, and only svc_ begins an API key", () => {
  expect(importedKeyKinds()).toEqual([]);
  expect(["svc_1", "svcp_1", "acme_1"].map(kindOf)).toEqual(["api_key", "jwt", "jwt"]);
});

test("a token that begins with one of the prefixes is an API key, and any other is as before", () => {
  set([kind("acme_"), { prefix: "old.", hash: "hmac-sha256" }]);
  const tokens = ["acme_1", "old.1", "svc_1", "svcp_1", "acme-1", "Acme_1", "eyJ0.a.b"];
  expect(tokens.map(kindOf)).toEqual(["api_key", "api_key", "api_key", "jwt", "jwt", "jwt", "jwt"]);
  expect(kindOfKey("old.1")).toEqual({ prefix: "old.", hash: "hmac-sha256" });
});

test("the setting is parsed once, and a change of it applies at once", () => {
  set([kind("acme_")]);
  expect(importedKeyKinds()).toBe(importedKeyKinds());
  expect(kindOf("acme_1")).toBe("api_key");
  set([kind("beta_")]);
  expect(kindOf("acme_1")).toBe("jwt");
});

test.each([
  ["that is not JSON", "[", "IMPORTED_KEYS cannot be used. It is not JSON. Example: "],
  ["that is no list", "{}", "must be a list"],
  ["with an unknown hash", [{ prefix: "acme_", hash: "md5" }], "0.hash must be sha256 or hmac-sha256"],
  ["with an unknown field", [{ ...kind("acme_"), pepper: "x" }], "0.pepper is not a known field"],
  ["without a prefix", [{ hash: "sha256" }], "0.prefix must be 2 to 20 characters"],
  ["with a prefix of one character", [kind("a")], "0.prefix must be 2 to 20 characters"],
  ["with a prefix of 21 characters", [kind("a".repeat(21))], "0.prefix must be 2 to 20 characters"],
  ["with a space in a prefix", [kind("acme ")], "0.prefix must be 2 to 20 characters"],
  ["with the prefix of this service", [kind("svc_")], "0.prefix must be"],
  ["with the prefix of partners", [kind("svcp_")], "0.prefix must be"],
  ["with the beginning of svc_", [kind("sv")], "0.prefix must be"],
  ["with a longer prefix than svc_", [kind("svc_live_")], "0.prefix must be"],
  ["with the beginning of a JWT", [kind("eyJhbGciOi")], "0.prefix must be"],
  [
    "with a prefix that begins with another",
    [kind("acme_live_"), kind("acme_")],
    "must have prefixes that do not begin",
  ],
  ["with the same prefix twice", [kind("acme_"), kind("acme_")], "must have prefixes that do not begin"],
  ["with 11 kinds", Array.from({ length: 11 }, (_, n) => kind(`k${n + 10}_`)), "must have 1 to 10 entries"],
])("IMPORTED_KEYS %s stops with an error that names it", (_title, value, message) => {
  process.env.IMPORTED_KEYS = typeof value === "string" ? value : JSON.stringify(value);
  expect(importedKeyKinds).toThrow(SettingError);
  expect(importedKeyKinds).toThrow(message);
});

describe("the stored hash of a key", () => {
  const arnOf = (name: string) => `arn:aws:secretsmanager:us-east-1:000000000000:secret:${name}-AbCdEf`;
  const hmac = (pepper: string, key: string) => createHmac("sha256", pepper).update(key).digest("hex");

  /** The secrets of a stub of Secrets Manager, and the versions that were requested. */
  const values = new Map<string, string>();
  const requests: string[] = [];
  const server = http.createServer(async (request, response) => {
    const { SecretId, VersionStage } = (await json(request)) as Record<string, string>;
    requests.push(VersionStage ?? "");
    const SecretString = VersionStage === "AWSCURRENT" ? values.get(SecretId ?? "") : undefined;
    const output = SecretString === undefined ? { __type: "ResourceNotFoundException" } : { SecretString };
    const headers = { "content-type": "application/x-amz-json-1.1" };
    response.writeHead(SecretString === undefined ? 400 : 200, headers).end(JSON.stringify(output));
  });
  beforeAll(async () => {
    process.env.AWS_ENDPOINT_URL_SECRETS_MANAGER = await listening(server);
  });
  beforeEach(() => {
    requests.length = 0;
    Object.assign(process.env, { AWS_REGION: "us-east-1", AWS_ACCESS_KEY_ID: "x", AWS_SECRET_ACCESS_KEY: "x" });
    process.env.IMPORTED_KEYS = '[{"prefix":"acme_","hash":"sha256"},{"prefix":"old_","hash":"hmac-sha256"}]';
    delete process.env.IMPORTED_KEYS_PEPPER;
    delete process.env.IMPORTED_KEYS_PEPPER_ARN;
  });

  test("the hash of a key is its SHA-256, and text that cannot be a key has none", async () => {
    const key = unknownApiKey();
    expect(await storedHashOf(key)).toBe(hashApiKey(key));
    expect(await storedHashOf("acme_x")).toBe(createHash("sha256").update("acme_x").digest("hex"));
    for (const text of ["svc_x", "svcp_x", "", "beta_x"]) expect(await storedHashOf(text)).toBeUndefined();
  });

  test("the pepper is the setting in a local run, and an error names it when it is not set", async () => {
    await expect(storedHashOf("old_x")).rejects.toThrow(
      "IMPORTED_KEYS_PEPPER is not set. IMPORTED_KEYS has keys with the hash hmac",
    );
    process.env.IMPORTED_KEYS_PEPPER = "salt";
    expect(await storedHashOf("old_x")).toBe(hmac("salt", "old_x"));
  });

  test("the pepper is read from Secrets Manager once in five minutes, and only for a key that needs it", async () => {
    process.env.IMPORTED_KEYS_PEPPER_ARN = arnOf("pepper");
    values.set(arnOf("pepper"), "from the secret");
    expect(await storedHashOf("acme_x")).toBe(createHash("sha256").update("acme_x").digest("hex"));
    expect(requests).toEqual([]);
    const hashes = await Promise.all(["old_x", "old_y"].map(storedHashOf));
    expect([...hashes, await storedHashOf("old_z")]).toEqual(
      ["old_x", "old_y", "old_z"].map((key) => hmac("from the secret", key)),
    );
    expect(requests.toSorted()).toEqual(["AWSCURRENT", "AWSPREVIOUS"]);
  });

  test("a pepper that is replaced is used five minutes later, and the one before it while it cannot be read", async () => {
    process.env.IMPORTED_KEYS_PEPPER_ARN = arnOf("mistyped");
    const { advance } = fakeDate();
    values.set(arnOf("mistyped"), "first");
    expect(await storedHashOf("old_x")).toBe(hmac("first", "old_x"));
    values.set(arnOf("mistyped"), "second");
    advance(299);
    expect(await storedHashOf("old_x")).toBe(hmac("first", "old_x"));
    advance(2);
    expect(await storedHashOf("old_x")).toBe(hmac("second", "old_x"));
    values.delete(arnOf("mistyped"));
    advance(301);
    expect(await storedHashOf("old_x")).toBe(hmac("second", "old_x"));
    jest.useRealTimers();
  });

  test("a pepper that cannot be read is an error, and is read again five seconds later", async () => {
    process.env.IMPORTED_KEYS_PEPPER_ARN = arnOf("later");
    const { advance } = fakeDate();
    const missing = "has no value. Store the pepper of the imported keys in it.";
    await expect(storedHashOf("old_x")).rejects.toThrow(missing);
    values.set(arnOf("later"), "stored");
    advance(4);
    await expect(storedHashOf("old_x")).rejects.toThrow(missing);
    expect(requests.toSorted()).toEqual(["AWSCURRENT", "AWSPREVIOUS"]);
    advance(1);
    expect(await storedHashOf("old_x")).toBe(hmac("stored", "old_x"));
    jest.useRealTimers();
  });
});

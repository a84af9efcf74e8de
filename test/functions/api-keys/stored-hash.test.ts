import { createHash, createHmac } from "node:crypto";
import http from "node:http";
import { json } from "node:stream/consumers";
import { jest } from "@jest/globals";
import { hashApiKey } from "../../../functions/api-keys/api-key.ts";
import { storedHashOf } from "../../../functions/api-keys/stored-hash.ts";
import { unknownApiKey } from "../../support/api-keys.ts";
import { fakeDate } from "../../support/fake-date.ts";
import { listening } from "../../support/listening.ts";

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

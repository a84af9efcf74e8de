import { randomBytes, randomUUID } from "node:crypto";
import http from "node:http";
import { json } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import jwt from "jsonwebtoken";
import { logSink } from "../../../../functions/foundation/platform/log.ts";
import { jwtKeys, refreshJwtKeys } from "../../../../functions/identity/authentication/hs256.ts";
import { parseJwt } from "../../../../functions/identity/authentication/jwt.ts";
import { verifyJwt as verifyParsed } from "../../../../functions/identity/authentication/user-jwt.ts";
import { listening } from "../../../support/listening.ts";

const verifyJwt = (token: string, now: Date) => verifyParsed(token, parseJwt(token), now);

/** The versions in the fake Secrets Manager by stage, its error if it fails, and the requests that it received. */
let versions: { AWSCURRENT?: string; AWSPREVIOUS?: string };
let failure: { status: number; type: string } | undefined;
let requests: { SecretId: string; VersionStage: "AWSCURRENT" | "AWSPREVIOUS" }[];
let arn: string;
const logged: string[] = [];

const server = http.createServer(async (request, response) => {
  const body = (await json(request)) as (typeof requests)[number];
  requests.push(body);
  const SecretString = versions[body.VersionStage];
  const { status, type } = failure ?? { status: 400, type: "ResourceNotFoundException" };
  const isFound = failure === undefined && SecretString !== undefined && body.SecretId === arn;
  const result = isFound ? { ARN: arn, SecretString } : { __type: type, message: "internal detail" };
  const headers = { "content-type": "application/x-amz-json-1.1" };
  response.writeHead(isFound ? 200 : status, headers).end(JSON.stringify(result));
});

beforeAll(async () => {
  logSink.write = (level, line) => void logged.push(JSON.stringify({ level, ...line }));
  process.env.AWS_ENDPOINT_URL_SECRETS_MANAGER = await listening(server);
  process.env.AWS_MAX_ATTEMPTS = "1";
});
beforeEach(() => {
  arn = `arn:aws:secretsmanager:us-east-1:123456789012:secret:jwt-${randomUUID()}`;
  process.env.JWT_SECRET_ARN = arn;
  delete process.env.JWT_SECRET;
  versions = { AWSCURRENT: first };
  failure = undefined;
  requests = [];
  logged.length = 0;
});

const [first, second, third] = [1, 2, 3].map(() => randomBytes(32).toString("hex")) as [string, string, string];
const start = Date.parse("2026-03-01T12:00:00.000Z");
const at = (seconds: number) => new Date(start + seconds * 1000);

/**
 * Waits until the secret was fetched this often. A fetch is two requests; after a failure one may still be in flight.
 */
async function expectFetches(times: number): Promise<void> {
  const count = () => requests.filter(({ SecretId }) => SecretId === arn).length;
  for (let waits = 0; waits < 500 && count() < 2 * times; waits++) await sleep(10);
  expect(count()).toBe(2 * times);
}

/** Returns whether a token signed with this secret is accepted at this time after the start. */
async function accepts(secret: string, seconds = 0): Promise<boolean> {
  const iat = at(seconds).getTime() / 1000;
  const token = jwt.sign({ sub: "user-1", iat, exp: iat + 60 }, secret);
  return verifyJwt(token, at(seconds)).then(
    () => true,
    (error: { code?: string }) => {
      if (error.code === "invalid_token") return false;
      throw error;
    },
  );
}

test("reads both versions of the secret and accepts tokens signed with either", async () => {
  versions = { AWSCURRENT: second, AWSPREVIOUS: first };
  expect([await accepts(second), await accepts(first), await accepts(third)]).toEqual([true, true, false]);
  expect(requests.map(({ SecretId, VersionStage }) => `${SecretId} ${VersionStage}`).toSorted()).toEqual([
    `${arn} AWSCURRENT`,
    `${arn} AWSPREVIOUS`,
  ]);
});

test("accepts a secret that was stored with the line end of its file", async () => {
  versions = { AWSCURRENT: `${second}\n`, AWSPREVIOUS: `${first}\r\n` };
  expect([await accepts(second), await accepts(first), await accepts(third)]).toEqual([true, true, false]);
});

test("accepts a secret without a previous version", async () => {
  expect([await accepts(first), await accepts(second)]).toEqual([true, false]);
  expect(await jwtKeys(at(0))).toHaveLength(1);
});

test("caches the secret for five minutes", async () => {
  for (const seconds of [0, 1, 60, 299]) expect(await accepts(first, seconds)).toBe(true);
  await expectFetches(1);
  expect(await accepts(first, 300)).toBe(true);
  await expectFetches(2);
});

test("fetches a newly rotated secret for the first token that is signed with it", async () => {
  expect(await accepts(first)).toBe(true);
  versions = { AWSCURRENT: second, AWSPREVIOUS: first };
  expect(await accepts(second, 30)).toBe(true);
  expect(await accepts(first, 30)).toBe(true);
  await expectFetches(2);
});

test("rejects a secret that is older than the previous version after five minutes", async () => {
  expect(await accepts(first)).toBe(true);
  versions = { AWSCURRENT: third, AWSPREVIOUS: second };
  expect(await accepts(first, 299)).toBe(true);
  expect(await accepts(first, 300)).toBe(false);
});

test("fetches the secret at most every 30 seconds for invalid tokens", async () => {
  expect(await accepts(first)).toBe(true);
  for (let seconds = 0; seconds < 30; seconds++) expect(await accepts(third, seconds)).toBe(false);
  await expectFetches(1);
  for (let seconds = 30; seconds < 60; seconds += 0.5) expect(await accepts(third, seconds)).toBe(false);
  await expectFetches(2);
  expect(await accepts(third, 60)).toBe(false);
  await expectFetches(3);
});

test("does not fetch the secret again for valid tokens", async () => {
  for (let seconds = 0; seconds < 300; seconds += 20) expect(await accepts(first, seconds)).toBe(true);
  await expectFetches(1);
  expect(await refreshJwtKeys(at(29))).toBeUndefined();
});

test.each([
  ["is down", { status: 500, type: "InternalServiceError" }],
  ["denies access", { status: 400, type: "AccessDeniedException" }],
])("uses the cached secret while Secrets Manager %s, and retries every 30 seconds", async (_title, error) => {
  expect(await accepts(first)).toBe(true);
  failure = error;
  expect(await accepts(third, 60)).toBe(false);
  for (const seconds of [90, 299, 300, 310, 329.9]) expect(await accepts(first, seconds)).toBe(true);
  await expectFetches(3);
  expect(await accepts(first, 330)).toBe(true);
  await expectFetches(4);
  for (let tokens = 0; tokens < 10; tokens++) expect(await accepts(third, 330 + tokens)).toBe(false);
  await expectFetches(4);
  expect(logged).toHaveLength(3);
  failure = undefined;
  versions = { AWSCURRENT: second };
  expect([await accepts(second, 361), await accepts(first, 361)]).toEqual([true, false]);
});

test.each([
  ["is down", { status: 500, type: "InternalServiceError" }, "InternalServiceError"],
  ["denies access", { status: 400, type: "AccessDeniedException" }, "AccessDeniedException"],
])(
  "throws for every token when Secrets Manager %s at the start, and retries every five seconds",
  async (_title, error, name) => {
    failure = error;
    for (const seconds of [0, 1, 4.9, 5]) await expect(accepts(first, seconds)).rejects.toMatchObject({ name });
    failure = undefined;
    await expect(accepts(first, 9.9)).rejects.toMatchObject({ name });
    expect(await accepts(first, 10)).toBe(true);
    await expectFetches(3);
  },
);

test.each([
  ["has no value", {}],
  ["is too short", { AWSCURRENT: "x".repeat(31) }],
  ["is empty", { AWSCURRENT: "" }],
  ["has the form of the AWS console", { AWSCURRENT: JSON.stringify({ JWT_SECRET: "x".repeat(64) }) }],
  ["is in quotes", { AWSCURRENT: `"${"x".repeat(64)}"` }],
])("throws an error with the ARN and without the value for a secret that %s", async (_title, stored) => {
  versions = stored;
  const error = await accepts(first).catch((caught: Error) => caught);
  expect(error).toMatchObject({ name: "SettingError", message: expect.stringContaining(arn) });
  expect(String(error)).not.toContain("xxx");
});

test("ignores a previous version that is too short, and logs it", async () => {
  versions = { AWSCURRENT: first, AWSPREVIOUS: "x".repeat(31) };
  expect([await accepts(first), await accepts("x".repeat(31))]).toEqual([true, false]);
  expect(logged).toHaveLength(1);
});

test("uses JWT_SECRET without a request to Secrets Manager", async () => {
  delete process.env.JWT_SECRET_ARN;
  process.env.JWT_SECRET = second;
  expect([await accepts(second), await accepts(first, 60)]).toEqual([true, false]);
  expect(await refreshJwtKeys(at(3600))).toBeUndefined();
  expect(requests).toHaveLength(0);
});

test("ignores JWT_SECRET when JWT_SECRET_ARN is set", async () => {
  process.env.JWT_SECRET = second;
  expect([await accepts(first), await accepts(second)]).toEqual([true, false]);
});

test("returns no keys when no secret is configured", async () => {
  delete process.env.JWT_SECRET_ARN;
  expect(await jwtKeys(at(0))).toEqual([]);
  expect(await refreshJwtKeys(at(0))).toBeUndefined();
});

import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import jwt from "jsonwebtoken";
import { jwtKeys, refreshJwtKeys } from "../../../functions/auth/jwt-secret.ts";
import { verifyJwt } from "../../../functions/auth/verify-jwt.ts";
import { logSink } from "../../../functions/platform/log.ts";

/** What the fake Secrets Manager holds, by stage; how it fails, if it does; and what it was asked. */
let versions: { AWSCURRENT?: string; AWSPREVIOUS?: string };
let failure: { status: number; type: string } | undefined;
let asked: { SecretId: string; VersionStage: "AWSCURRENT" | "AWSPREVIOUS" }[];
let arn: string;
const logged: string[] = [];

const server = http.createServer(async (request, response) => {
  const body = (await json(request)) as (typeof asked)[number];
  asked.push(body);
  const SecretString = versions[body.VersionStage];
  const { status, type } = failure ?? { status: 400, type: "ResourceNotFoundException" };
  const isAnswer = failure === undefined && SecretString !== undefined && body.SecretId === arn;
  const answer = isAnswer ? { ARN: arn, SecretString } : { __type: type, message: "internal detail" };
  const headers = { "content-type": "application/x-amz-json-1.1" };
  response.writeHead(isAnswer ? 200 : status, headers).end(JSON.stringify(answer));
});

beforeAll(async () => {
  logSink.write = (level, line) => void logged.push(JSON.stringify({ level, ...line }));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  process.env.AWS_ENDPOINT_URL_SECRETS_MANAGER = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  process.env.AWS_MAX_ATTEMPTS = "1";
});
beforeEach(() => {
  arn = `arn:aws:secretsmanager:us-east-1:123456789012:secret:jwt-${randomUUID()}`;
  process.env.JWT_SECRET_ARN = arn;
  delete process.env.JWT_SECRET;
  versions = { AWSCURRENT: first };
  failure = undefined;
  asked = [];
  logged.length = 0;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const [first, second, third] = [1, 2, 3].map(() => randomBytes(32).toString("hex")) as [string, string, string];
const start = Date.parse("2026-03-01T12:00:00.000Z");
const at = (seconds: number) => new Date(start + seconds * 1000);

/** How often we looked: each time both versions are asked for, and of a failed look one answer may be under way still. */
async function expectLooks(times: number): Promise<void> {
  const count = () => asked.filter(({ SecretId }) => SecretId === arn).length;
  for (let waits = 0; waits < 500 && count() < 2 * times; waits++) await sleep(10);
  expect(count()).toBe(2 * times);
}

/** Whether a token that was signed with this secret is accepted so many seconds after the start. */
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

test("both versions of the secret are read, and tokens of both are accepted", async () => {
  versions = { AWSCURRENT: second, AWSPREVIOUS: first };
  expect([await accepts(second), await accepts(first), await accepts(third)]).toEqual([true, true, false]);
  expect(asked.map(({ SecretId, VersionStage }) => `${SecretId} ${VersionStage}`).toSorted()).toEqual([
    `${arn} AWSCURRENT`,
    `${arn} AWSPREVIOUS`,
  ]);
});

test("a secret that was never rotated has one version", async () => {
  expect([await accepts(first), await accepts(second)]).toEqual([true, false]);
  expect(await jwtKeys(at(0))).toHaveLength(1);
});

test("the secret is kept for five minutes", async () => {
  for (const seconds of [0, 1, 60, 299]) expect(await accepts(first, seconds)).toBe(true);
  await expectLooks(1);
  expect(await accepts(first, 300)).toBe(true);
  await expectLooks(2);
});

test("a secret that was just rotated in is found by the first token that needs it", async () => {
  expect(await accepts(first)).toBe(true);
  versions = { AWSCURRENT: second, AWSPREVIOUS: first };
  expect(await accepts(second, 30)).toBe(true);
  expect(await accepts(first, 30)).toBe(true);
  await expectLooks(2);
});

test("a secret that was rotated out twice is no longer accepted after five minutes", async () => {
  expect(await accepts(first)).toBe(true);
  versions = { AWSCURRENT: third, AWSPREVIOUS: second };
  expect(await accepts(first, 299)).toBe(true);
  expect(await accepts(first, 300)).toBe(false);
});

test("bad tokens make us look again once in 30 seconds, however many they are", async () => {
  expect(await accepts(first)).toBe(true);
  for (let seconds = 0; seconds < 30; seconds++) expect(await accepts(third, seconds)).toBe(false);
  await expectLooks(1);
  for (let seconds = 30; seconds < 60; seconds += 0.5) expect(await accepts(third, seconds)).toBe(false);
  await expectLooks(2);
  expect(await accepts(third, 60)).toBe(false);
  await expectLooks(3);
});

test("good tokens do not make us look again", async () => {
  for (let seconds = 0; seconds < 300; seconds += 20) expect(await accepts(first, seconds)).toBe(true);
  await expectLooks(1);
  expect(await refreshJwtKeys(at(29))).toBeUndefined();
});

test.each([
  ["is down", { status: 500, type: "InternalServiceError" }],
  ["may not be asked", { status: 400, type: "AccessDeniedException" }],
])(
  "while Secrets Manager %s the secret we have still holds, and is asked for every 30 seconds",
  async (_title, how) => {
    expect(await accepts(first)).toBe(true);
    failure = how;
    for (const seconds of [300, 310, 329.9]) expect(await accepts(first, seconds)).toBe(true);
    await expectLooks(2);
    expect(await accepts(first, 330)).toBe(true);
    for (let tokens = 0; tokens < 10; tokens++) expect(await accepts(third, 330 + tokens)).toBe(false);
    await expectLooks(3);
    expect(logged).toHaveLength(2);
    failure = undefined;
    versions = { AWSCURRENT: second };
    expect([await accepts(second, 361), await accepts(first, 361)]).toEqual([true, false]);
  },
);

test.each([
  ["is down", { status: 500, type: "InternalServiceError" }, "InternalServiceError"],
  ["may not be asked", { status: 400, type: "AccessDeniedException" }, "AccessDeniedException"],
])(
  "when Secrets Manager %s at the start, no token is judged at all, and it is asked every five seconds",
  async (_title, how, name) => {
    failure = how;
    for (const seconds of [0, 1, 4.9]) await expect(accepts(first, seconds)).rejects.toMatchObject({ name });
    failure = undefined;
    await expect(accepts(first, 4.9)).rejects.toMatchObject({ name });
    expect(await accepts(first, 5)).toBe(true);
    await expectLooks(2);
  },
);

test.each([
  ["has no value", {}],
  ["is too short", { AWSCURRENT: "x".repeat(31) }],
  ["is empty", { AWSCURRENT: "" }],
])("a secret that %s is a fault that names the secret and not its value", async (_title, held) => {
  versions = held;
  const error = await accepts(first).catch((caught: Error) => caught);
  expect(error).toMatchObject({ name: "SettingError", message: expect.stringContaining(arn) });
  expect(String(error)).not.toContain("xxx");
});

test("a previous secret that is too short, a mistake since mended, locks nobody out", async () => {
  versions = { AWSCURRENT: first, AWSPREVIOUS: "x".repeat(31) };
  expect([await accepts(first), await accepts("x".repeat(31))]).toEqual([true, false]);
  expect(logged).toHaveLength(1);
});

test("the secret of the setting JWT_SECRET is used without asking anybody", async () => {
  delete process.env.JWT_SECRET_ARN;
  process.env.JWT_SECRET = second;
  expect([await accepts(second), await accepts(first, 60)]).toEqual([true, false]);
  expect(await refreshJwtKeys(at(3600))).toBeUndefined();
  expect(asked).toHaveLength(0);
});

test("Secrets Manager goes before JWT_SECRET: a value left behind in the environment opens nothing", async () => {
  process.env.JWT_SECRET = second;
  expect([await accepts(first), await accepts(second)]).toEqual([true, false]);
});

test("no secret configured means no keys", async () => {
  delete process.env.JWT_SECRET_ARN;
  expect(await jwtKeys(at(0))).toEqual([]);
  expect(await refreshJwtKeys(at(0))).toBeUndefined();
});

import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { GetCommand } from "@aws-sdk/lib-dynamodb";
import type { APIGatewayRequestAuthorizerEvent } from "aws-lambda";
import { jwtVerify } from "jose";
import jwt from "jsonwebtoken";
import { mintToken } from "../bin/local/mint-token.ts";
import { API_KEY_RANDOM_BYTES, createApiKey } from "../functions/api-keys/api-key.ts";
import * as apiKeys from "../functions/api-keys/api-key-store.ts";
import { handler } from "../functions/auth/authorizer.ts";
import { dynamo } from "../functions/platform/aws.ts";
import { tableName } from "../functions/platform/env.ts";
import { logSink } from "../functions/platform/log.ts";
import { restoreAws, watchDynamo } from "../test/support/aws-calls.ts";
import { freshResources } from "../test/support/resources.ts";
import { withStarted } from "./child.ts";
import { type Bench, cpuPerCall, figure, interleave, median, type Rounds, ratios, spread } from "./harness.ts";
import { startEngines } from "./receivers.ts";

/*
 * Measures the CPU time of the warm authorizer. With a JWT it is compared with libraries that check less. With a key it is
 * compared with the one DynamoDB read that it needs, whose units are counted.
 */

const ROUNDS: Rounds = { forMs: 9_000 };
const SAMPLE_MS = 150;
const MAX_OF_JSONWEBTOKEN = 0.5;

/** Returns the event of API Gateway for a request by curl. */
const requestWith = (credential: string) =>
  ({
    methodArn: "arn:aws:execute-api:us-east-1:000000000000:api/local/GET/v1/projects",
    multiValueHeaders: {
      accept: ["*/*"],
      Authorization: [`Bearer ${credential}`],
      Host: ["api.example.com"],
      "User-Agent": ["curl/8.5.0"],
      "X-Amzn-Trace-Id": ["Root=1-65f00000-000000000000000000000001"],
      "X-Forwarded-For": ["192.0.2.1"],
      "X-Forwarded-Port": ["443"],
      "X-Forwarded-Proto": ["https"],
    },
    requestContext: { requestId: "bench" },
  }) as unknown as APIGatewayRequestAuthorizerEvent;

/** Returns the user id. @throws Error when the authorizer rejects the request */
async function authorize(request: APIGatewayRequestAuthorizerEvent): Promise<string> {
  const { policyDocument, principalId } = await handler(request);
  if (policyDocument.Statement[0]?.Effect !== "Allow") throw new Error("The authorizer rejected the request");
  return principalId;
}

/** Returns the variants: for a token, a function that verifies it and returns the user id or throws. */
function jwtVariants(secret: string) {
  const bytes = new TextEncoder().encode(secret);
  const algorithms = ["HS256" as const];
  return {
    authorizer(token: string) {
      const request = requestWith(token);
      return () => authorize(request);
    },
    "jsonwebtoken, string": (token: string) => async () => jwt.verify(token, secret, { algorithms }).sub,
    jose: (token: string) => async () => (await jwtVerify(token, bytes, { algorithms })).payload.sub,
  };
}

type Verifier = (token: string) => () => Promise<unknown>;

async function checkJwt(verifierOf: Verifier, secret: string, userId: string): Promise<void> {
  const token = mintToken(secret, userId);
  assert.equal(await verifierOf(token)(), userId);
  const [header, payload] = token.split(".");
  const [, , otherSignature] = mintToken(secret, randomUUID()).split(".");
  const bad = {
    "another secret": mintToken(randomBytes(32).toString("hex"), userId),
    "the signature of another token": `${header}.${payload}.${otherSignature}`,
    "no signature": `${header}.${payload}.`,
    expired: mintToken(secret, userId, -1),
  };
  for (const [what, token] of Object.entries(bad)) await assert.rejects(verifierOf(token), `accepted: ${what}`);
}

const newKey = (userId: string) =>
  createApiKey(userId, { name: "bench" }, new Date(), randomBytes(API_KEY_RANDOM_BYTES));

async function insertKey(userId: string): Promise<{ key: string; hash: string }> {
  const { key, apiKey } = newKey(userId);
  await apiKeys.insert(apiKey);
  return { key, hash: apiKey.key_hash };
}

/**
 * Checks that a key used within the last minute costs one read unit and no write, an unknown key the same, and a made-up
 * one without a valid checksum nothing.
 */
async function checkKey(key: string, userId: string): Promise<void> {
  assert.equal(await authorize(requestWith(key)), userId);
  const calls = watchDynamo();
  assert.equal(await authorize(requestWith(key)), userId);
  await assert.rejects(authorize(requestWith(newKey(userId).key)));
  await assert.rejects(authorize(requestWith(`svc_${"0".repeat(64)}`)));
  await assert.rejects(authorize(requestWith(`${key}0`)));
  restoreAws();
  const oneRead = { command: "GetItemCommand", units: 1 };
  assert.deepEqual(calls, [oneRead, oneRead], "one read for a key, one for an unknown key, none for a malformed one");
}

export async function auth(rounds: Rounds, sampleMs: number) {
  const secret = randomBytes(32).toString("hex");
  const userId = randomUUID();
  process.env.JWT_SECRET = secret;
  // Rejections are logged.
  logSink.write = () => {};
  return withStarted(async (start) => {
    await start(startEngines());
    await freshResources();
    const verifiers = jwtVariants(secret);
    for (const verify of Object.values(verifiers)) await checkJwt(verify, secret, userId);
    const { key, hash } = await insertKey(userId);
    await checkKey(key, userId);

    const token = mintToken(secret, userId);
    const names = Object.keys(verifiers) as (keyof typeof verifiers)[];
    const timed = names.map((name) => [name, cpuPerCall(verifiers[name](token), sampleMs)]);
    const jwts = await interleave(
      Object.fromEntries(timed) as Record<(typeof names)[number], () => Promise<number>>,
      rounds,
    );
    const withKey = requestWith(key);
    const read = { TableName: tableName("apiKeys"), Key: { key_hash: hash }, ConsistentRead: true };
    const keys = await interleave(
      {
        authorizer: cpuPerCall(() => authorize(withKey), sampleMs),
        "the read alone": cpuPerCall(() => dynamo().send(new GetCommand(read)), sampleMs),
      },
      rounds,
    );

    const micros = (samples: number[]) => spread(samples.map((ms) => ms * 1000));
    const base = jwts["jsonwebtoken, string"];
    const about = `CPU per call; median (range) of ${jwts.authorizer.length} samples of ${figure(sampleMs)} ms`;
    return {
      tables: [
        {
          title: `With a JWT: ${about}`,
          columns: ["variant", "CPU µs", "/ jsonwebtoken, string"],
          rows: names.map((name) => [name, micros(jwts[name]), spread(ratios(jwts[name], base))]),
        },
        {
          title: `With a key: ${about}`,
          columns: ["variant", "CPU µs", "/ the read alone", "reads", "writes"],
          rows: [
            ["authorizer", micros(keys.authorizer), spread(ratios(keys.authorizer, keys["the read alone"])), 1, 0],
            ["the read alone", micros(keys["the read alone"]), "1", 1, 0],
          ],
        },
      ],
      targets: [
        { name: "jwt / jsonwebtoken", value: median(ratios(jwts.authorizer, base)), bound: MAX_OF_JSONWEBTOKEN },
      ],
      notes: [
        "Reads and writes with a key are counted from the capacity that DynamoDB reports; any other count fails the benchmark.",
      ],
      data: { jwts, keys },
    };
  });
}

export const bench: Bench = {
  name: "auth",
  about: "the warm authorizer with a JWT and with a key, against jsonwebtoken and jose",
  run: () => auth(ROUNDS, SAMPLE_MS),
};

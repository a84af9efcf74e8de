import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import type { APIGatewayRequestAuthorizerEvent } from "aws-lambda";
import jwt from "jsonwebtoken";
import { mintToken } from "../bin/local/mint-token.ts";
import { handler } from "../functions/auth/authorizer.ts";
import { logSink } from "../functions/platform/log.ts";
import { type Bench, compareCpu, type Result, type Rounds } from "./harness.ts";

/*
 * Measures the CPU time of the warm authorizer with a JWT, compared with a library that checks less. What a request with a key reads
 * and writes is in units.json.
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
  const result = await handler(request);
  if (result?.policyDocument.Statement[0]?.Effect !== "Allow") throw new Error("The authorizer rejected the request");
  return result.principalId;
}

/** For a token, returns a function that verifies it and returns the user id or throws. */
type Verifier = (token: string) => () => Promise<unknown>;

/** Checks that a verifier accepts the user's token, and rejects one with another secret and one that has expired. */
async function check(verify: Verifier, secret: string, userId: string): Promise<void> {
  assert.equal(await verify(mintToken(secret, userId))(), userId);
  for (const token of [mintToken(randomBytes(32).toString("hex"), userId), mintToken(secret, userId, -1)])
    await assert.rejects(verify(token));
}

export async function auth(rounds: Rounds, sampleMs: number): Promise<Result> {
  const secret = randomBytes(32).toString("hex");
  const userId = randomUUID();
  Object.assign(process.env, { JWT_SECRET: secret, AWS_LAMBDA_FUNCTION_NAME: "authorizer" });
  // Rejections are logged.
  logSink.write = () => {};
  const ours: Verifier = (token) => {
    const request = requestWith(token);
    return () => authorize(request);
  };
  const library: Verifier = (token) => async () => jwt.verify(token, secret, { algorithms: ["HS256"] }).sub;
  for (const verify of [ours, library]) await check(verify, secret, userId);
  const token = mintToken(secret, userId);
  const variants = { authorizer: ours(token), jsonwebtoken: library(token) };
  const { table, ratios } = await compareCpu("With a JWT", variants, "jsonwebtoken", rounds, sampleMs);
  return {
    tables: [table],
    targets: [{ name: "jwt / jsonwebtoken", value: ratios.authorizer, bound: MAX_OF_JSONWEBTOKEN }],
  };
}

export const bench: Bench = {
  name: "auth",
  about: "the warm authorizer with a JWT, compared with jsonwebtoken",
  run: () => auth(ROUNDS, SAMPLE_MS),
};

import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import type { APIGatewayRequestAuthorizerEvent } from "aws-lambda";
import { jwtVerify } from "jose";
import jwt from "jsonwebtoken";
import { mintToken } from "../bin/local/mint-token.ts";
import { handler } from "../functions/auth/authorizer.ts";
import { logSink } from "../functions/platform/log.ts";
import {
  type Bench,
  cpuPerCall,
  figure,
  interleave,
  median,
  type Result,
  type Rounds,
  ratios,
  spread,
} from "./harness.ts";

/*
 * Measures the CPU time of the warm authorizer with a JWT, compared with libraries that check less. What a request with a key reads
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
    jsonwebtoken: (token: string) => async () => jwt.verify(token, secret, { algorithms }).sub,
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

export async function auth(rounds: Rounds, sampleMs: number): Promise<Result> {
  const secret = randomBytes(32).toString("hex");
  const userId = randomUUID();
  process.env.JWT_SECRET = secret;
  // Rejections are logged.
  logSink.write = () => {};
  const verifiers = jwtVariants(secret);
  for (const verify of Object.values(verifiers)) await checkJwt(verify, secret, userId);
  const token = mintToken(secret, userId);
  const samples = await interleave(
    {
      authorizer: cpuPerCall(verifiers.authorizer(token), sampleMs),
      jsonwebtoken: cpuPerCall(verifiers.jsonwebtoken(token), sampleMs),
      jose: cpuPerCall(verifiers.jose(token), sampleMs),
    },
    rounds,
  );
  return {
    tables: [
      {
        title: `With a JWT: CPU per call; median (range) of ${samples.jose.length} samples of ${figure(sampleMs)} ms`,
        columns: ["variant", "CPU µs", "/ jsonwebtoken with a string"],
        rows: Object.entries(samples).map(([name, each]) => [
          name,
          spread(each.map((ms) => ms * 1000)),
          spread(ratios(each, samples.jsonwebtoken)),
        ]),
      },
    ],
    targets: [
      {
        name: "jwt / jsonwebtoken",
        value: median(ratios(samples.authorizer, samples.jsonwebtoken)),
        bound: MAX_OF_JSONWEBTOKEN,
      },
    ],
    data: samples,
  };
}

export const bench: Bench = {
  name: "auth",
  about: "the warm authorizer with a JWT, against jsonwebtoken and jose",
  run: () => auth(ROUNDS, SAMPLE_MS),
};

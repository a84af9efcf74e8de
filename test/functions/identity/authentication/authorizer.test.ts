import { randomBytes, randomUUID } from "node:crypto";
import { setImmediate as immediate } from "node:timers/promises";
import { jest } from "@jest/globals";
import type { APIGatewayRequestAuthorizerEvent } from "aws-lambda";
import jwt from "jsonwebtoken";
import { mintToken } from "../../../../bin/command/mint-token.ts";
import { tableName } from "../../../../functions/foundation/platform/env.ts";
import { logSink } from "../../../../functions/foundation/platform/log.ts";
import { hashApiKey } from "../../../../functions/identity/api-keys/api-key.ts";
import { handler as authorizer } from "../../../../functions/identity/authentication/authorizer.ts";
import { changeKey, unknownApiKey } from "../../../support/api-keys.ts";
import { interceptDynamo, restoreAws } from "../../../support/aws-calls.ts";
import { fakeDate } from "../../../support/fake-date.ts";
import { useService } from "../../../support/service.ts";

const logged: string[] = [];
/** The DynamoDB calls since the start of the test, and a hook that runs before each of them. */
let commands: { name: string; input: object }[] = [];
let beforeCommand: (name: string) => Promise<void> | void;

const service = useService();
beforeAll(async () => {
  logSink.write = (level, line) => void logged.push(JSON.stringify({ level, ...line }));
  interceptDynamo(async ({ command, input }, send) => {
    commands.push({ name: command, input });
    await beforeCommand(command);
    return send();
  });
});
beforeEach(resetCalls);
afterEach(() => void jest.useRealTimers());
afterAll(restoreAws);

function resetCalls(): void {
  commands = [];
  logged.length = 0;
  beforeCommand = () => {};
}

const METHOD_ARN = "arn:aws:execute-api:eu-central-1:123456789012:abcdef1234/prod/GET/v1/projects";
const authorize = (authorization: string[] | null, name = "Authorization") =>
  authorizer({
    type: "REQUEST",
    methodArn: METHOD_ARN,
    requestContext: { requestId: "request-1" },
    multiValueHeaders: authorization && { Accept: ["*/*"], [name]: authorization },
  } as unknown as APIGatewayRequestAuthorizerEvent);
const authorizeToken = (token: string) => authorize([`Bearer ${token}`]);

async function createKey(user = service.user()) {
  const { id, key } = (await user.api.post("/v1/api-keys", { name: "ci" })).body.data as { id: string; key: string };
  const record = { TableName: tableName("apiKeys"), Key: { key_hash: hashApiKey(key) } };
  const useNow = () => changeKey(key, { last_used_at: new Date().toISOString() });
  resetCalls();
  return { user, id, key, record, useNow };
}

const effectOf = (result: Awaited<ReturnType<typeof authorizer>>) => result?.policyDocument.Statement[0]?.Effect;
const outage = () => Promise.reject(Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" }));

describe("the policy", () => {
  const policy = (Effect: string) => ({
    Version: "2012-10-17",
    Statement: [
      {
        Action: "execute-api:Invoke",
        Effect,
        Resource: "arn:aws:execute-api:eu-central-1:123456789012:abcdef1234/prod/*",
      },
    ],
  });

  test("for a JWT allows the user the whole stage, without a call to DynamoDB", async () => {
    const { userId, token } = service.user();
    expect(await authorizeToken(token)).toEqual({
      principalId: userId,
      policyDocument: policy("Allow"),
      context: { userId, authType: "jwt" },
    });
    expect(commands).toEqual([]);
  });

  test("for an API key allows its owner the whole stage, and contains the id of the key", async () => {
    const { user, id, key } = await createKey();
    expect(await authorizeToken(key)).toEqual({
      principalId: user.userId,
      policyDocument: policy("Allow"),
      context: { userId: user.userId, authType: "api_key", keyId: id, keyPrefix: key.slice(0, 12) },
    });
  });

  test.each([
    ["no headers", () => null, "unauthorized"],
    ["two headers", () => ["Bearer a", "Bearer b"], "unauthorized"],
    ["another scheme", () => ["Basic dXNlcjpwYXNz"], "unauthorized"],
    ["a malformed API key", () => ["Bearer svc_x"], "invalid_api_key"],
    ["an unknown API key", () => [`Bearer ${unknownApiKey()}`], "invalid_api_key"],
    ["a partner key", () => [`Bearer svcp_${randomBytes(32).toString("hex")}`], "invalid_token"],
    ["garbage", () => ["Bearer garbage"], "invalid_token"],
    ["an expired JWT", () => [`Bearer ${mintToken(process.env.JWT_SECRET ?? "", "user-1", -1)}`], "token_expired"],
    [
      "a JWT with too long a lifetime",
      () => [`Bearer ${mintToken(process.env.JWT_SECRET ?? "", "user-1", 7200)}`],
      "invalid_token",
    ],
    [
      "a JWT whose claims contain JSON syntax",
      () => [`Bearer ${jwt.sign({ sub: ['"},{"'], exp: 9e9 }, process.env.JWT_SECRET ?? "")}`],
      "invalid_token",
    ],
  ])("for %s is Deny with a message that needs no JSON escaping", async (_title, authorization, errorCode) => {
    expect(await authorize(authorization())).toEqual({
      principalId: "anonymous",
      policyDocument: policy("Deny"),
      // API Gateway inserts the message into a JSON template without escaping, and expands $ variables.
      context: { errorCode, errorMessage: expect.stringMatching(/^[^"\\$\p{Cc}]+$/u) },
    });
    // The metrics of this line are tested in foundation/manifest/metrics.test.ts.
    expect(logged).toHaveLength(1);
    expect(JSON.parse(logged[0] ?? "")).toMatchObject({ request_id: "request-1", reason: errorCode });
  });
});

describe("the log line of a rejected JWT", () => {
  const sign = (claims: object, secret = process.env.JWT_SECRET ?? "", header = {}) =>
    jwt.sign({ sub: "user-1", iss: "https://idp.example.com", aud: ["web"], ...claims }, secret, {
      expiresIn: 600,
      header: { alg: "HS256", kid: "key-1", ...header },
    });
  beforeEach(() => Object.assign(process.env, { JWT_ISSUER: "https://idp.example.com", JWT_AUDIENCE: "web,mobile" }));
  afterEach(() => {
    for (const name of ["JWT_ISSUER", "JWT_AUDIENCE", "JWT_REQUIRED_CLAIMS"]) delete process.env[name];
  });
  const named = { alg: "HS256", kid: "key-1" };

  test.each<[string, object, object]>([
    [
      "iss",
      { iss: "https://idp.example.com/" },
      { expected: "https://idp.example.com", received: "https://idp.example.com/" },
    ],
    ["iss", { iss: undefined }, { expected: "https://idp.example.com" }],
    ["aud", { aud: "https://api.example.com" }, { expected: '["web","mobile"]', received: "https://api.example.com" }],
    ["aud", { aud: ["x".repeat(500)] }, { received: `["${"x".repeat(198)}` }],
    ["sub", { sub: "CORP\\jdoe" }, { expected: 'must not contain " or \\', received: "CORP\\jdoe" }],
    ["nbf", { nbf: 9e9 }, { received: "9000000000" }],
    ["role", { role: "anon" }, { expected: "another kind of token", received: "anon" }],
    ["email_verified", { email_verified: false }, { expected: "true", received: "false" }],
  ])("names the claim %s of %j, what is expected, and what is received", async (claim, claims, values) => {
    if (claim === "email_verified") process.env.JWT_REQUIRED_CLAIMS = '{"email_verified":true}';
    const token = sign(claims);
    const result = await authorizeToken(token);
    expect(result?.context).toEqual({
      errorCode: "invalid_token",
      errorMessage: expect.stringMatching(/^[^"\\$\p{Cc}]+$/u),
    });
    expect(result?.context?.errorMessage).toMatch(new RegExp(`\\b${claim}\\b|not valid yet`));
    expect(logged).toHaveLength(1);
    expect(JSON.parse(logged[0] ?? "")).toMatchObject({ reason: "invalid_token", ...named, claim, ...values });
    expect(logged[0]).not.toContain(token.split(".")[1]);
  });

  test("with another signature names the key and the issuer, and no claim", async () => {
    await authorizeToken(sign({ aud: "other" }, randomBytes(32).toString("hex")));
    const line = JSON.parse(logged[0] ?? "");
    expect(line).toMatchObject({
      ...named,
      iss: "https://idp.example.com",
      detail: "The JWT is not signed by the identity provider.",
    });
    expect(Object.keys(line)).not.toEqual(expect.arrayContaining(["claim"]));
  });

  test("has no line break and at most 200 characters of what a stranger invents", async () => {
    const invented = { kid: `a\n"b"${"x".repeat(300)}` };
    await authorizeToken(sign({ iss: ["\n".repeat(300)] }, randomBytes(32).toString("hex"), invented));
    const { kid, iss } = JSON.parse(logged[0] ?? "");
    expect([kid.length, iss.length]).toEqual([200, 200]);
  });

  test("with more than 8 KB says so", async () => {
    const token = sign({ groups: "x".repeat(8_000) });
    const { errorMessage } = (await authorizeToken(token))?.context ?? {};
    expect(errorMessage).toBe(
      `The token has ${token.length} bytes, and the maximum is 8192. The identity provider can leave claims out, such as groups.`,
    );
  });
});

describe("an API key", () => {
  test("that was used recently costs one strongly consistent read and no write", async () => {
    const { key, record, useNow } = await createKey();
    await useNow();
    resetCalls();
    await authorizeToken(key);
    expect(commands).toEqual([{ name: "GetItemCommand", input: { ...record, ConsistentRead: true } }]);
  });

  const madeUp = `svc_${randomBytes(32).toString("hex")}`;
  test.each(["svc_", "svc_x", `svc_${"0".repeat(63)}`, `svc_${"A".repeat(64)}`, `svcp_${"0".repeat(64)}`, madeUp])(
    "that is malformed or has a wrong checksum costs no DynamoDB call: %s",
    async (token) => {
      expect(effectOf(await authorizeToken(token))).toBe("Deny");
      expect(commands).toEqual([]);
    },
  );

  test("that is unknown costs one read and no write", async () => {
    await authorizeToken(unknownApiKey());
    expect(commands.map(({ name }) => name)).toEqual(["GetItemCommand"]);
  });

  test("with limits costs the same one read, and passes its limits on as text", async () => {
    const user = service.user();
    const projects = await Promise.all([service.project(user.userId), service.project(user.userId)]);
    const expires_at = new Date(Date.now() + 60_000).toISOString();
    const limits = { permissions: ["keys:read", "webhooks:read"], project_ids: projects, expires_at };
    const { id, key } = (await user.api.post("/v1/api-keys", { name: "ci", ...limits })).body.data;
    await authorizeToken(key);
    resetCalls();
    const result = await authorizeToken(key);
    expect(commands.map(({ name }) => name)).toEqual(["GetItemCommand"]);
    expect(result?.context).toEqual({
      userId: user.userId,
      authType: "api_key",
      keyId: id,
      keyPrefix: key.slice(0, 12),
      permissions: "keys:read webhooks:read",
      projectIds: projects.join(" "),
      expiresAt: expires_at,
    });
  });

  test("that has expired is rejected with a code of its own, unless it was replaced, and its last use does not change", async () => {
    const user = service.user();
    const expires_at = new Date(Date.now() + 60_000).toISOString();
    const { key } = (await user.api.post("/v1/api-keys", { name: "ci", expires_at })).body.data;
    const clock = fakeDate();
    clock.advance(59);
    expect(effectOf(await authorizeToken(key))).toBe("Allow");
    clock.advance(1);
    resetCalls();
    expect(await authorizeToken(key)).toMatchObject({ context: { errorCode: "api_key_expired" } });
    expect(commands.map(({ name }) => name)).toEqual(["GetItemCommand"]);
    await changeKey(key, { ends_at: expires_at });
    expect(await authorizeToken(key)).toMatchObject({ context: { errorCode: "invalid_api_key" } });
    jest.useRealTimers();
  });

  test("that is deleted during concurrent requests is rejected in all requests that start afterwards", async () => {
    const { user, id, key } = await createKey();
    let isDeleted = false;
    const authorizeRepeatedly = async () => {
      const late: unknown[] = [];
      while (late.length < 5) {
        const startedAfterDelete = isDeleted;
        const effect = effectOf(await authorizeToken(key));
        if (startedAfterDelete) late.push(effect);
        await immediate();
      }
      return late;
    };
    const effects = Array.from({ length: 8 }, authorizeRepeatedly);
    expect((await user.api.delete(`/v1/api-keys/${id}`)).status).toBe(204);
    isDeleted = true;
    expect(new Set((await Promise.all(effects)).flat())).toEqual(new Set(["Deny"]));
  });
});

describe("while DynamoDB is down", () => {
  test("an API key is neither accepted nor rejected: the authorizer throws and logs no credential", async () => {
    const { key } = await createKey();
    beforeCommand = outage;
    await expect(authorizeToken(key)).rejects.toThrow("ECONNREFUSED");
    expect(logged).toHaveLength(1);
    expect(JSON.parse(logged[0] ?? "")).toMatchObject({ level: "error", request_id: "request-1" });
    expect(logged[0]).not.toContain(key);
  });

  test("a client with an API key receives 503, not 401", async () => {
    const { key } = await createKey();
    beforeCommand = outage;
    const { status, headers, body } = await service.as(key).get("/v1/projects");
    expect({ status, code: body.error.code }).toEqual({ status: 503, code: "service_unavailable" });
    expect(headers.get("retry-after")).toBe("1");
    expect(headers.has("www-authenticate")).toBe(false);
    expect(JSON.stringify(body)).not.toContain("ECONN");
    resetCalls();
    expect((await service.as(key).get("/v1/projects")).status).toBe(200);
  });

  test("a JWT is still accepted, and a malformed key is still rejected", async () => {
    beforeCommand = outage;
    expect(effectOf(await authorizeToken(service.user().token))).toBe("Allow");
    expect(effectOf(await authorizeToken(`svc_${randomUUID()}`))).toBe("Deny");
  });
});

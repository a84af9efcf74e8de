import { randomBytes, randomUUID } from "node:crypto";
import { setImmediate as immediate } from "node:timers/promises";
import { UpdateCommand } from "@aws-sdk/lib-dynamodb";
import type { APIGatewayRequestAuthorizerEvent } from "aws-lambda";
import jwt from "jsonwebtoken";
import { mintToken } from "../../../bin/local/mint-token.ts";
import { hashApiKey } from "../../../functions/api-keys/api-key.ts";
import { handler as authorizer } from "../../../functions/auth/authorizer.ts";
import { dynamo } from "../../../functions/platform/aws.ts";
import { tableName } from "../../../functions/platform/env.ts";
import { logSink } from "../../../functions/platform/log.ts";
import { interceptDynamo, restoreAws } from "../../support/aws-calls.ts";
import { startTestService, type TestService } from "../../support/service.ts";

let service: TestService;
const logged: string[] = [];
/** The DynamoDB calls since the test began, and what happens before one is sent. */
let commands: { name: string; input: object }[] = [];
let beforeCommand: (name: string) => Promise<void> | void;

beforeAll(async () => {
  service = await startTestService();
  logSink.write = (level, line) => void logged.push(JSON.stringify({ level, ...line }));
  interceptDynamo(async ({ command, input }, send) => {
    commands.push({ name: command, input });
    await beforeCommand(command);
    return send();
  });
});
beforeEach(watchAfresh);
afterAll(restoreAws);
afterAll(() => service.stop());

function watchAfresh(): void {
  commands = [];
  logged.length = 0;
  beforeCommand = () => {};
}

const METHOD_ARN = "arn:aws:execute-api:eu-central-1:123456789012:abcdef1234/prod/GET/v1/projects";
const ask = (authorization: string[] | null, name = "Authorization") =>
  authorizer({
    type: "REQUEST",
    methodArn: METHOD_ARN,
    requestContext: { requestId: "request-1" },
    multiValueHeaders: authorization && { Accept: ["*/*"], [name]: authorization },
  } as unknown as APIGatewayRequestAuthorizerEvent);
const askWith = (token: string) => ask([`Bearer ${token}`]);

async function createKey(user = service.user()) {
  const { id, key } = (await user.api.post("/v1/api-keys", { name: "ci" })).body.data as { id: string; key: string };
  const record = { TableName: tableName("apiKeys"), Key: { key_hash: hashApiKey(key) } };
  const useNow = () =>
    dynamo().send(
      new UpdateCommand({
        ...record,
        UpdateExpression: "SET last_used_at = :now",
        ExpressionAttributeValues: { ":now": new Date().toISOString() },
      }),
    );
  watchAfresh();
  return { user, id, key, record, useNow };
}

const effectOf = (verdict: Awaited<ReturnType<typeof authorizer>>) => verdict.policyDocument.Statement[0]?.Effect;
const outage = () => Promise.reject(Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" }));

describe("the verdict", () => {
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

  test("on a JWT names the user, for the whole stage, without asking a store", async () => {
    const { userId, token } = service.user();
    expect(await askWith(token)).toEqual({
      principalId: userId,
      policyDocument: policy("Allow"),
      context: { userId, authType: "jwt" },
    });
    expect(commands).toEqual([]);
  });

  test("on an API key names its creator and the key, for the whole stage", async () => {
    const { user, id, key } = await createKey();
    expect(await askWith(key)).toEqual({
      principalId: user.userId,
      policyDocument: policy("Allow"),
      context: { userId: user.userId, authType: "api_key", keyId: id },
    });
  });

  test.each([
    ["no headers", () => null, "unauthorized"],
    ["two headers", () => ["Bearer a", "Bearer b"], "unauthorized"],
    ["another scheme", () => ["Basic dXNlcjpwYXNz"], "unauthorized"],
    ["a malformed API key", () => ["Bearer svc_x"], "invalid_api_key"],
    ["an unknown API key", () => [`Bearer svc_${randomBytes(32).toString("hex")}`], "invalid_api_key"],
    ["a partner key", () => [`Bearer svcp_${randomBytes(32).toString("hex")}`], "invalid_token"],
    ["garbage", () => ["Bearer garbage"], "invalid_token"],
    ["an expired JWT", () => [`Bearer ${mintToken(process.env.JWT_SECRET ?? "", "user-1", -1)}`], "token_expired"],
    [
      "a JWT for too long",
      () => [`Bearer ${mintToken(process.env.JWT_SECRET ?? "", "user-1", 7200)}`],
      "invalid_token",
    ],
    [
      "a JWT whose claims hold JSON",
      () => [`Bearer ${jwt.sign({ sub: ['"},{"'], exp: 9e9 }, process.env.JWT_SECRET ?? "")}`],
      "invalid_token",
    ],
  ])("on %s is Deny with a reason that fits into JSON as it is", async (_title, authorization, errorCode) => {
    expect(await ask(authorization())).toEqual({
      principalId: "anonymous",
      policyDocument: policy("Deny"),
      // API Gateway puts it between two quotes and looks for $ in it.
      context: { errorCode, errorMessage: expect.stringMatching(/^[^"\\$\p{Cc}]+$/u) },
    });
    // One line, which the metrics are made of: functions/metrics.test.ts.
    expect(logged).toHaveLength(1);
    expect(JSON.parse(logged[0] ?? "")).toMatchObject({ request_id: "request-1", reason: errorCode });
  });

  test.each(["authorization", "AUTHORIZATION"])(
    "does not depend on the case of the header's name: %s",
    async (name) => {
      expect(effectOf(await ask([`Bearer ${service.user().token}`], name))).toBe("Allow");
    },
  );
});

describe("an API key", () => {
  test("that was used lately costs one strongly consistent read and no write", async () => {
    const { key, record, useNow } = await createKey();
    await useNow();
    watchAfresh();
    await askWith(key);
    expect(commands).toEqual([{ name: "GetItemCommand", input: { ...record, ConsistentRead: true } }]);
  });

  test.each(["svc_", "svc_x", `svc_${"0".repeat(63)}`, `svc_${"A".repeat(64)}`, `svcp_${"0".repeat(64)}`])(
    "that cannot be one costs nothing: %s",
    async (token) => {
      expect(effectOf(await askWith(token))).toBe("Deny");
      expect(commands).toEqual([]);
    },
  );

  test("that is unknown costs one read and no write", async () => {
    await askWith(`svc_${randomBytes(32).toString("hex")}`);
    expect(commands.map(({ name }) => name)).toEqual(["GetItemCommand"]);
  });

  test("that is deleted is refused on the next request, every time", async () => {
    const user = service.user();
    for (let round = 0; round < 20; round++) {
      const { id, key } = await createKey(user);
      expect(effectOf(await askWith(key))).toBe("Allow");
      await user.api.delete(`/v1/api-keys/${id}`);
      expect(await askWith(key)).toMatchObject({ context: { errorCode: "invalid_api_key" } });
    }
  });

  test("that is deleted among many requests is let in by none that begins after", async () => {
    const { user, id, key } = await createKey();
    let isDeleted = false;
    const askOn = async () => {
      const late: unknown[] = [];
      while (late.length < 5) {
        const beganAfter = isDeleted;
        const effect = effectOf(await askWith(key));
        if (beganAfter) late.push(effect);
        await immediate();
      }
      return late;
    };
    const verdicts = Array.from({ length: 8 }, askOn);
    expect((await user.api.delete(`/v1/api-keys/${id}`)).status).toBe(204);
    isDeleted = true;
    expect(new Set((await Promise.all(verdicts)).flat())).toEqual(new Set(["Deny"]));
  });
});

describe("while the store is down", () => {
  test("an API key is neither let in nor refused: the authorizer fails, and logs no credential", async () => {
    const { key } = await createKey();
    beforeCommand = outage;
    await expect(askWith(key)).rejects.toThrow("ECONNREFUSED");
    expect(logged).toHaveLength(1);
    expect(JSON.parse(logged[0] ?? "")).toMatchObject({ level: "error", request_id: "request-1" });
    expect(logged[0]).not.toContain(key);
  });

  test("a client with an API key is told 503 and not 401", async () => {
    const { key } = await createKey();
    beforeCommand = outage;
    const { status, headers, body } = await service.as(key).get("/v1/projects");
    expect({ status, code: body.error.code }).toEqual({ status: 503, code: "service_unavailable" });
    expect(headers.get("retry-after")).toBe("1");
    expect(headers.has("www-authenticate")).toBe(false);
    expect(JSON.stringify(body)).not.toContain("ECONN");
    watchAfresh();
    expect((await service.as(key).get("/v1/projects")).status).toBe(200);
  });

  test("a JWT is still let in, and a malformed key still refused", async () => {
    beforeCommand = outage;
    expect(effectOf(await askWith(service.user().token))).toBe("Allow");
    expect(effectOf(await askWith(`svc_${randomUUID()}`))).toBe("Deny");
  });
});

import { DeleteCommand, GetCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { jest } from "@jest/globals";
import type { APIGatewayRequestAuthorizerEvent } from "aws-lambda";
import { dynamo } from "../../../../functions/foundation/platform/aws.ts";
import { tableName } from "../../../../functions/foundation/platform/env.ts";
import { logSink } from "../../../../functions/foundation/platform/log.ts";
import { hashApiKey } from "../../../../functions/identity/api-keys/api-key.ts";
import { handler as provision } from "../../../../functions/identity/api-keys/provision.ts";
import { handler as authorizer } from "../../../../functions/identity/authentication/authorizer.ts";
import { interceptDynamo } from "../../../support/aws-calls.ts";
import { freshResources } from "../../../support/resources.ts";

/* The authorizer writes `last_used_at` at most once per resolution, and a failed write has no effect on the request. */

const logged: string[] = [];
beforeAll(async () => {
  await freshResources();
  logSink.write = (level, line) => void logged.push(JSON.stringify({ level, ...line }));
});
beforeEach(() => {
  delete process.env.LAST_USED_RESOLUTION_SECONDS;
  logged.length = 0;
});
afterEach(() => jest.restoreAllMocks());

async function effectFor(token: string, userAgent = "curl/8.5.0"): Promise<string | undefined> {
  const result = await authorizer({
    type: "REQUEST",
    methodArn: "arn:aws:execute-api:us-east-1:123456789012:api/prod/GET/v1/projects",
    multiValueHeaders: { Authorization: [`Bearer ${token}`], "User-Agent": [userAgent] },
    requestContext: { requestId: "request-1", identity: { sourceIp: "192.0.2.1" } },
  } as unknown as APIGatewayRequestAuthorizerEvent);
  return result?.policyDocument.Statement[0]?.Effect;
}

async function createKey() {
  const { id, key } = await provision({ user_id: "user-1", name: "ci" });
  logged.length = 0;
  const record = { TableName: tableName("apiKeys"), Key: { key_hash: hashApiKey(key) } };
  const read = async () => (await dynamo().send(new GetCommand({ ...record, ConsistentRead: true }))).Item;
  const usedSecondsAgo = async (seconds: number) => {
    const at = new Date(Date.now() - seconds * 1000).toISOString();
    const set = { UpdateExpression: "SET last_used_at = :at", ExpressionAttributeValues: { ":at": at } };
    await dynamo().send(new UpdateCommand({ ...record, ...set }));
    return at;
  };
  return { id, key, record, read, usedSecondsAgo };
}

/** Runs a function before each following write, and counts the writes. */
function beforeWrites(run = (): Promise<unknown> => Promise.resolve()): { count: number } {
  const writes = { count: 0 };
  interceptDynamo(async ({ command }, send) => {
    if (command === "UpdateItemCommand") {
      writes.count++;
      await run();
    }
    return send();
  });
  return writes;
}

test.each([
  [undefined, 50, false],
  [undefined, 61, true],
  ["10", 5, false],
  ["10", 11, true],
  ["3600", 3500, false],
  ["0", 1, true],
])(
  "with a resolution of %s seconds and a last use %d seconds ago, writes it: %s",
  async (resolution, age, isWritten) => {
    const { key, read, usedSecondsAgo } = await createKey();
    if (resolution !== undefined) process.env.LAST_USED_RESOLUTION_SECONDS = resolution;
    const last = await usedSecondsAgo(age);
    const writes = beforeWrites();
    await effectFor(key);
    const isKept = (await read())?.last_used_at === last;
    expect({ writes: writes.count, isKept }).toEqual({ writes: isWritten ? 1 : 0, isKept: !isWritten });
  },
);

test.each([
  ["control characters", "curl\u0007/8\r\n\u001b[31m\u202e", "curl/8[31m"],
  ["a text of 500 characters", "🚀".repeat(500), "🚀".repeat(200)],
  ["a lone surrogate", "a\ud800b", "a\ufffdb"],
  ["an empty user agent", "", null],
])("writes a user agent with %s as a short printable text", async (_title, sent, stored) => {
  const { key, read } = await createKey();
  expect(await effectFor(key, sent)).toBe("Allow");
  expect((await read())?.last_used_user_agent).toBe(stored);
});

test("accepts the request when the write fails, and logs the failure without the key", async () => {
  const { id, key, read } = await createKey();
  beforeWrites(() => Promise.reject(new Error("connect ECONNREFUSED")));
  expect(await effectFor(key)).toBe("Allow");
  expect(logged).toHaveLength(1);
  expect(JSON.parse(logged[0] ?? "")).toMatchObject({ request_id: "request-1", key_id: id });
  expect(logged[0]).not.toContain(key);
  expect(logged[0]).not.toContain(hashApiKey(key));
  expect(await read()).not.toHaveProperty("last_used_at");
});

test("waits at most one second for a write that hangs", async () => {
  const { key } = await createKey();
  const handler = dynamo().config.requestHandler;
  const { handle } = handler;
  jest.spyOn(handler, "handle").mockImplementation((request, options) => {
    if (!request.headers["x-amz-target"]?.endsWith("UpdateItem")) return handle.call(handler, request, options);
    return new Promise((_, reject) => {
      const { abortSignal } = options as { abortSignal?: AbortSignal };
      abortSignal?.addEventListener("abort", () => reject(Object.assign(new Error("aborted"), { name: "AbortError" })));
    });
  });
  const timeouts = jest.spyOn(AbortSignal, "timeout");
  expect(await effectFor(key)).toBe("Allow");
  expect(timeouts.mock.calls).toEqual([[1_000]]);
  expect(logged).toHaveLength(1);
});

test("a late write does not recreate a deleted key", async () => {
  const { key, record, read } = await createKey();
  beforeWrites(() => dynamo().send(new DeleteCommand(record)));
  expect(await effectFor(key)).toBe("Allow");
  expect(await read()).toBeUndefined();
  expect(logged).toEqual([]);
  expect(await effectFor(key)).toBe("Deny");
});

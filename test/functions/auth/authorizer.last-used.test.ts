import { DeleteCommand, GetCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { jest } from "@jest/globals";
import type { APIGatewayRequestAuthorizerEvent } from "aws-lambda";
import { hashApiKey } from "../../../functions/api-keys/api-key.ts";
import { handler as provision } from "../../../functions/api-keys/provision.ts";
import { handler as authorizer } from "../../../functions/auth/authorizer.ts";
import { dynamo } from "../../../functions/platform/aws.ts";
import { tableName } from "../../../functions/platform/env.ts";
import { logSink } from "../../../functions/platform/log.ts";
import { interceptDynamo, restoreAws } from "../../support/aws-calls.ts";
import { freshResources } from "../../support/resources.ts";

/* When the authorizer writes `last_used_at`, and what does not depend on it. */

const logged: string[] = [];
beforeAll(async () => {
  await freshResources();
  logSink.write = (level, line) => void logged.push(JSON.stringify({ level, ...line }));
});
beforeEach(() => {
  delete process.env.LAST_USED_RESOLUTION_SECONDS;
  logged.length = 0;
});
afterEach(() => {
  restoreAws();
  jest.restoreAllMocks();
});

async function askWith(token: string): Promise<string | undefined> {
  const { policyDocument } = await authorizer({
    type: "REQUEST",
    methodArn: "arn:aws:execute-api:us-east-1:123456789012:api/prod/GET/v1/projects",
    multiValueHeaders: { Authorization: [`Bearer ${token}`] },
    requestContext: { requestId: "request-1" },
  } as unknown as APIGatewayRequestAuthorizerEvent);
  return policyDocument.Statement[0]?.Effect;
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

/** Does something before each write from now on, and counts the writes. */
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

test("the time of last use is written on the first use", async () => {
  const { key, read } = await createKey();
  expect(await read()).not.toHaveProperty("last_used_at");
  const before = Date.now();
  await askWith(key);
  const { last_used_at } = (await read()) ?? {};
  expect(new Date(last_used_at).toISOString()).toBe(last_used_at);
  expect(Date.parse(last_used_at)).toBeGreaterThanOrEqual(before);
  expect(Date.parse(last_used_at)).toBeLessThanOrEqual(Date.now());
});

test.each([
  [undefined, 50, false],
  [undefined, 61, true],
  ["10", 5, false],
  ["10", 11, true],
  ["3600", 3500, false],
  ["0", 0, true],
])(
  "at a resolution of %s seconds, %d seconds after the last, it is written: %s",
  async (resolution, age, isWritten) => {
    const { key, read, usedSecondsAgo } = await createKey();
    if (resolution !== undefined) process.env.LAST_USED_RESOLUTION_SECONDS = resolution;
    const last = await usedSecondsAgo(age);
    const writes = beforeWrites();
    await askWith(key);
    expect(writes.count).toBe(isWritten ? 1 : 0);
    const { last_used_at } = (await read()) ?? {};
    if (isWritten) expect(Date.now() - Date.parse(last_used_at)).toBeLessThan(5_000);
    else expect(last_used_at).toBe(last);
  },
);

test("it is written once for a hundred requests in a row", async () => {
  const { key } = await createKey();
  const writes = beforeWrites();
  for (let requests = 0; requests < 100; requests++) await askWith(key);
  expect(writes.count).toBe(1);
});

test("writing it changes nothing else of the key", async () => {
  const { key, read } = await createKey();
  const before = await read();
  await askWith(key);
  expect(await read()).toEqual({ ...before, last_used_at: expect.any(String) });
});

test("a write that fails refuses nobody, and is told to the operator without the key", async () => {
  const { id, key, read } = await createKey();
  beforeWrites(() => Promise.reject(new Error("connect ECONNREFUSED")));
  expect(await askWith(key)).toBe("Allow");
  expect(logged).toHaveLength(1);
  expect(JSON.parse(logged[0] ?? "")).toMatchObject({ request_id: "request-1", key_id: id });
  expect(logged[0]).not.toContain(key);
  expect(logged[0]).not.toContain(hashApiKey(key));
  expect(await read()).not.toHaveProperty("last_used_at");
});

test("a write that hangs delays a request by a second at most", async () => {
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
  const started = performance.now();
  expect(await askWith(key)).toBe("Allow");
  expect(performance.now() - started).toBeLessThan(2_500);
  expect(logged).toHaveLength(1);
});

test("a write that comes late does not bring a deleted key back", async () => {
  const { key, record, read } = await createKey();
  beforeWrites(() => dynamo().send(new DeleteCommand(record)));
  expect(await askWith(key)).toBe("Allow");
  expect(await read()).toBeUndefined();
  expect(logged).toEqual([]);
  expect(await askWith(key)).toBe("Deny");
});

import {
  ConditionalCheckFailedException,
  InternalServerError,
  ProvisionedThroughputExceededException,
  RequestLimitExceeded,
  ResourceNotFoundException,
  ThrottlingException,
  TransactionCanceledException,
} from "@aws-sdk/client-dynamodb";
import { GetCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import { jest } from "@jest/globals";
import {
  batchGet,
  ConditionsFailedError,
  dynamo,
  isConditionFailed,
  isOutage,
  retryConflicts,
  transact,
} from "../../../../functions/foundation/platform/aws.ts";
import { tableName } from "../../../../functions/foundation/platform/env.ts";
import { interceptDynamo } from "../../../support/aws-calls.ts";
import { freshResources } from "../../../support/resources.ts";

const $metadata = {};

beforeAll(freshResources);
afterEach(() => jest.restoreAllMocks());

describe("batchGet", () => {
  test("throws an outage after 10 requests when the same keys stay unprocessed", async () => {
    let rounds = 0;
    interceptDynamo(async ({ input }) => {
      rounds += 1;
      return { Responses: {}, UnprocessedKeys: input.RequestItems };
    });
    const error = await batchGet({ [tableName("webhooks")]: [{ project_id: "p", id: "w" }] }).catch((caught) => caught);
    expect(error).toBeInstanceOf(Error);
    expect(isOutage(error)).toBe(true);
    expect(rounds).toBe(10);
  });

  test("requests unprocessed keys at once, and after that with backoff", async () => {
    const random = jest.spyOn(Math, "random").mockReturnValue(1);
    const times: number[] = [];
    /** Each backoff draws one random number. */
    const backoffs: number[] = [];
    interceptDynamo(async ({ input }, send) => {
      times.push(performance.now());
      backoffs.push(random.mock.calls.length);
      return times.length < 4 ? { Responses: {}, UnprocessedKeys: input.RequestItems } : send();
    });
    await batchGet({ [tableName("webhooks")]: [{ project_id: "p", id: "w" }] });
    const [, second = 0, third = 0, fourth = 0] = times;
    // Timers may fire up to a millisecond early.
    expect(third - second).toBeGreaterThan(79);
    expect(fourth - third).toBeGreaterThan(159);
    // The SDK may draw a number before the first request.
    expect(backoffs.map((count) => count - (backoffs[0] ?? 0))).toEqual([0, 0, 1, 2]);
  });
});

test("batchGet returns the items of all its requests, also of the same table", async () => {
  const keys = ["a", "b", "c"].map((id) => ({ project_id: "p", id }));
  const TableName = tableName("webhooks");
  for (const Item of keys) await dynamo().send(new PutCommand({ TableName, Item }));
  interceptDynamo(async ({ input }, send) => {
    const [first, ...others] = (input.RequestItems as Record<string, { Keys: object[] }>)[TableName]?.Keys ?? [];
    const output = await send({ RequestItems: { [TableName]: { Keys: [first] } } });
    return others.length === 0 ? output : { ...output, UnprocessedKeys: { [TableName]: { Keys: others } } };
  });
  expect(await batchGet({ [TableName]: keys })).toEqual({ [TableName]: keys });
});

describe("transact", () => {
  const isNew = "attribute_not_exists(webhook_id)";
  const put = (webhook_id: string, ConditionExpression?: string) => ({
    Put: { TableName: tableName("webhookSecrets"), Item: { webhook_id }, ConditionExpression },
  });
  const find = async (webhook_id: string) =>
    (await dynamo().send(new GetCommand({ TableName: tableName("webhookSecrets"), Key: { webhook_id } }))).Item;

  /** Cancels the next `times` transactions for these reasons, and counts all transactions. */
  function cancel(times: number, ...codes: string[]): { tries: number } {
    const seen = { tries: 0 };
    interceptDynamo(async ({ command }, send) => {
      if (command !== "TransactWriteItemsCommand" || seen.tries++ >= times) return send();
      const CancellationReasons = codes.map((Code) => ({ Code }));
      throw new TransactionCanceledException({ message: "canceled", CancellationReasons, $metadata });
    });
    return seen;
  }
  /** Sets the random backoff to zero. */
  const skipBackoff = () => jest.spyOn(Math, "random").mockReturnValue(0);

  test("writes all items", async () => {
    await transact({ one: put("all-1", isNew), two: put("all-2") });
    expect(await find("all-1")).toEqual({ webhook_id: "all-1" });
    expect(await find("all-2")).toEqual({ webhook_id: "all-2" });
  });

  test("throws the names of the items whose conditions failed, and writes none", async () => {
    await transact({ taken: put("taken"), takenToo: put("taken-too") });
    const items = {
      first: put("free-1"),
      second: put("taken", isNew),
      third: put("free-2", isNew),
      fourth: put("taken-too", isNew),
    };
    const error = await transact(items).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(ConditionsFailedError);
    expect(error).toMatchObject({ items: ["second", "fourth"], message: "Conditions failed: second, fourth" });
    expect((error as Error).cause).toBeInstanceOf(TransactionCanceledException);
    expect(await find("free-1")).toBeUndefined();
  });

  test("retries after a conflict", async () => {
    skipBackoff();
    const seen = cancel(5, "TransactionConflict", "None");
    await transact({ one: put("conflict-1"), two: put("conflict-2") });
    expect(seen.tries).toBe(6);
    expect(await find("conflict-2")).toEqual({ webhook_id: "conflict-2" });
  });

  test.each<[string, () => Promise<unknown>]>([
    ["transact", () => transact({ one: put("conflict-4") })],
    [
      "retryConflicts",
      () => {
        let conflicts = 0;
        return retryConflicts(async () => {
          conflicts += 1;
          if (conflicts < 4) throw named("TransactionConflictException");
        });
      },
    ],
  ])("%s waits with backoff and jitter between the retries", async (_, write) => {
    const random = jest.spyOn(Math, "random").mockReturnValue(1);
    cancel(3, "TransactionConflict");
    const started = performance.now();
    await write();
    // 20, 40 and 80 ms. Timers may fire up to a millisecond early.
    expect(performance.now() - started).toBeGreaterThan(137);
    // The SDK may draw numbers too.
    expect(random.mock.calls.length).toBeGreaterThanOrEqual(3);
  });

  test("throws after 13 attempts when the conflict persists", async () => {
    skipBackoff();
    const seen = cancel(1_000, "TransactionConflict");
    await expect(transact({ one: put("conflict-3") })).rejects.toThrow(TransactionCanceledException);
    expect(seen.tries).toBe(13);
    const write = jest.fn(async () => {
      if (write.mock.calls.length < 20) throw named("TransactionConflictException");
    });
    await expect(retryConflicts(write)).rejects.toThrow();
    expect(write).toHaveBeenCalledTimes(13);
  });

  test("does not retry a conflict when a condition failed as well", async () => {
    const seen = cancel(1_000, "TransactionConflict", "ConditionalCheckFailed");
    await expect(transact({ one: put("x"), two: put("y") })).rejects.toMatchObject({ items: ["two"] });
    expect(seen.tries).toBe(1);
  });

  test.each(["ThrottlingError", "ValidationError", "ItemCollectionSizeLimitExceeded"])(
    "throws %s without a retry",
    async (code) => {
      const seen = cancel(1_000, code);
      await expect(transact({ one: put("x") })).rejects.toThrow(TransactionCanceledException);
      expect(seen.tries).toBe(1);
    },
  );

  test("rethrows other errors unchanged", async () => {
    const missing = { Put: { TableName: "no-such-table", Item: { webhook_id: "x" } } };
    await expect(transact({ one: missing })).rejects.toThrow(ResourceNotFoundException);
  });
});

const message = "x";
const named = (name: string) => Object.assign(new Error(), { name });
const coded = (code: string) => Object.assign(new Error(), { code });

test.each<[string, unknown, boolean]>([
  ["a refused connection", coded("ECONNREFUSED"), true],
  ["a reset connection", coded("ECONNRESET"), true],
  ["a broken pipe", coded("EPIPE"), true],
  ["a name that does not resolve", coded("ENOTFOUND"), true],
  ["an unreachable name server", coded("EAI_AGAIN"), true],
  ["an unreachable host", coded("EHOSTUNREACH"), true],
  ["the SDK's timeout", named("TimeoutError"), true],
  ["throttling", new ThrottlingException({ message, $metadata }), true],
  ["exceeded throughput", new ProvisionedThroughputExceededException({ message, $metadata }), true],
  ["an exceeded request limit", new RequestLimitExceeded({ message, $metadata }), true],
  ["an internal error of AWS", new InternalServerError({ message, $metadata }), true],
  ["an error of AWS with a name that is not known", Object.assign(named("New"), { $fault: "server" }), true],
  ["a conflict with a transaction", named("TransactionConflictException"), true],
  ["a canceled transaction", new TransactionCanceledException({ message, $metadata }), true],
  ["a failed condition", new ConditionalCheckFailedException({ message, $metadata }), false],
  ["a missing table", new ResourceNotFoundException({ message, $metadata }), false],
  ["a missing grant", Object.assign(named("AccessDeniedException"), { $fault: "client" }), false],
  ["a malformed request", Object.assign(named("ValidationException"), { $fault: "client" }), false],
  ["a bug", new TypeError("undefined is not a function"), false],
  ["a missing file", coded("ENOENT"), false],
  ["a string", "ECONNREFUSED", false],
  ["undefined", undefined, false],
])("isOutage for %s (%#)", (_, error, expected) => {
  expect(isOutage(error)).toBe(expected);
});

test("isConditionFailed is true only for the failed condition of a single write", () => {
  expect(isConditionFailed(new ConditionalCheckFailedException({ message, $metadata }))).toBe(true);
  expect(isConditionFailed(new TransactionCanceledException({ message, $metadata }))).toBe(false);
  expect(isConditionFailed({ name: "ConditionalCheckFailedException" })).toBe(false);
});

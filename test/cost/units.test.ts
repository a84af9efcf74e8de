import { randomUUID } from "node:crypto";
import {
  BatchGetCommand,
  DeleteCommand,
  GetCommand,
  PutCommand,
  QueryCommand,
  TransactWriteCommand,
  UpdateCommand,
} from "@aws-sdk/lib-dynamodb";
import {
  countUnits,
  LOG_EVENT_OVERHEAD_BYTES,
  queueRequestsFor,
  readUnits,
  type Units,
  type Usage,
} from "../../bench/units.ts";
import { dynamo } from "../../functions/foundation/platform/aws.ts";
import { tableName } from "../../functions/foundation/platform/env.ts";
import { startReceiver } from "../support/receiver.ts";
import { freshResources } from "../support/resources.ts";

/**
 * Computes the size of an item in DynamoDB, in bytes: names and values in UTF-8, numbers by their digits, three bytes for a list
 * or map and one for each of its members.
 * https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
 */
function itemBytes(item: Record<string, unknown>): number {
  return Object.entries(item).reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + valueBytes(value), 0);
}

function valueBytes(value: unknown): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  if (typeof value === "number") return Math.ceil(String(Math.abs(value)).replace(/\.|0+$/g, "").length / 2) + 1;
  if (Array.isArray(value)) return value.reduce((sum: number, each) => sum + 1 + valueBytes(each), 3);
  if (typeof value === "object" && value !== null) return 3 + itemBytes(value as never) + Object.keys(value).length;
  return 1;
}

/* The counts behind all prices: the engine counts as AWS does, and bench/units.json has the current counts. */

describe("the DynamoDB engine", () => {
  beforeAll(freshResources);

  interface Consumed {
    Table?: { CapacityUnits: number };
    GlobalSecondaryIndexes?: Record<string, { CapacityUnits: number }>;
  }

  /** Sends a command and returns the units of the tables and of the index. */
  async function consumed(command: { input: object }): Promise<[number, number]> {
    Object.assign(command.input, { ReturnConsumedCapacity: "INDEXES" });
    const { ConsumedCapacity } = (await dynamo().send(command as never)) as { ConsumedCapacity: Consumed | Consumed[] };
    const all = [ConsumedCapacity].flat();
    const sum = (of: (each: Consumed) => number) => all.reduce((total, each) => total + of(each), 0);
    return [
      sum(({ Table }) => Table?.CapacityUnits ?? 0),
      sum(({ GlobalSecondaryIndexes }) => GlobalSecondaryIndexes?.due?.CapacityUnits ?? 0),
    ];
  }

  const deliveries = () => tableName("deliveries");

  /** Returns an item of this size by the rules of AWS, with a list, a map, numbers and a boolean. */
  function itemOf(bytes: number, extra: object = {}): Record<string, unknown> {
    const nested = { attempts: [{ number: 1, status_code: 200, at: "2026-11-21T10:18:41.112Z" }], test: true };
    const item = {
      webhook_id: randomUUID(),
      id: randomUUID(),
      ...nested,
      expires_at: 1_795_233_869,
      ...extra,
      body: "",
    };
    item.body = "x".repeat(bytes - itemBytes(item));
    return item;
  }

  const due = { due_shard: 3, due: "2026-11-21T10:18:41.112Z" };
  const put = (Item: object) => new PutCommand({ TableName: deliveries(), Item: Item as never });
  const keyOf = ({ webhook_id, id }: Record<string, unknown>) => ({ webhook_id, id });
  const get = (item: Record<string, unknown>, ConsistentRead: boolean) =>
    new GetCommand({ TableName: deliveries(), Key: keyOf(item), ConsistentRead });

  test.each([
    [1024, 1],
    [1025, 2],
    [2048, 2],
    [2049, 3],
  ])("a write of %i bytes consumes %i units", async (bytes, units) => {
    expect(await consumed(put(itemOf(bytes)))).toEqual([units, 0]);
  });

  test.each([
    [4096, true, 1],
    [4097, true, 2],
    [4096, false, 0.5],
    [4097, false, 1],
  ])("a read of %i bytes, strongly consistent %s, consumes %d units", async (bytes, isStrong, units) => {
    const item = itemOf(bytes);
    await consumed(put(item));
    expect(await consumed(get(item, isStrong))).toEqual([units, 0]);
  });

  test("a read of a missing item consumes one unit", async () => {
    expect(await consumed(get({ webhook_id: "none", id: "none" }, true))).toEqual([1, 0]);
  });

  test("an index entry consumes one unit to write, two to move, one to remove, and none when its keys do not change", async () => {
    const item = { ...due, line: randomUUID(), entry: "p", wakes: 1 };
    const update = (UpdateExpression: string, value?: string) =>
      new UpdateCommand({
        TableName: tableName("backlog"),
        Key: { line: item.line, entry: item.entry },
        UpdateExpression,
        ...(value && { ExpressionAttributeValues: { ":value": value } }),
      });
    expect(await consumed(new PutCommand({ TableName: tableName("backlog"), Item: item }))).toEqual([1, 1]);
    expect(await consumed(update("SET due = :value", "2026-11-22T00:00:00Z"))).toEqual([1, 2]);
    expect(await consumed(update("SET lease_id = :value", "visit"))).toEqual([1, 0]);
    expect(await consumed(update("REMOVE due, due_shard"))).toEqual([1, 1]);
  });

  test("a write that shrinks an item consumes the units of the larger size", async () => {
    const item = itemOf(3_000);
    await consumed(put(item));
    expect(await consumed(put({ ...item, body: "" }))).toEqual([3, 0]);
  });

  test("a query consumes the units of all items it reads, whatever it returns of them", async () => {
    const webhook_id = randomUUID();
    for (let count = 0; count < 10; count++) await consumed(put({ ...itemOf(1_000), webhook_id }));
    const query = new QueryCommand({
      TableName: deliveries(),
      KeyConditionExpression: "webhook_id = :id",
      ExpressionAttributeValues: { ":id": webhook_id },
      ProjectionExpression: "id",
      ConsistentRead: true,
    });
    expect(await consumed(query)).toEqual([Math.ceil(10_000 / 4_096), 0]);
  });

  test("an empty query of the index consumes half a unit", async () => {
    const query = new QueryCommand({
      TableName: tableName("backlog"),
      IndexName: "due",
      KeyConditionExpression: "due_shard = :shard",
      ExpressionAttributeValues: { ":shard": 31 },
    });
    expect(await consumed(query)).toEqual([0, 0.5]);
  });

  test("a batch read consumes one unit per item, missing items included", async () => {
    const Keys = [{ key_hash: "a" }, { key_hash: "b" }, { key_hash: "c" }];
    const command = new BatchGetCommand({ RequestItems: { [tableName("apiKeys")]: { Keys, ConsistentRead: true } } });
    expect(await consumed(command)).toEqual([3, 0]);
  });

  test("a transaction consumes twice the units", async () => {
    const Put = { TableName: tableName("apiKeys"), Item: { key_hash: randomUUID(), name: "x".repeat(1_500) } };
    const Other = { TableName: tableName("userApiKeys"), Item: { user_id: randomUUID(), id: "1" } };
    const command = new TransactWriteCommand({ TransactItems: [{ Put }, { Put: Other }] });
    expect(await consumed(command)).toEqual([6, 0]);
  });

  test("deleting a missing item consumes one unit", async () => {
    const Key = { webhook_id: "none", id: "none" };
    expect(await consumed(new DeleteCommand({ TableName: deliveries(), Key }))).toEqual([1, 0]);
  });
});

test.each([
  [0, 1],
  [65_536, 1],
  [65_537, 2],
  [262_144, 4],
])("a payload of %i bytes is billed as %i SQS requests", (bytes, requests) => {
  expect(queueRequestsFor(bytes)).toBe(requests);
});

test("a log event is billed with 26 bytes more than its text", () => {
  expect(LOG_EVENT_OVERHEAD_BYTES).toBe(26);
});

describe("bench/units.json", () => {
  let now: Awaited<ReturnType<typeof countUnits>>;
  const written = readUnits();

  beforeAll(async () => {
    const receiver = await startReceiver();
    receiver.respondWith(({ path }, response) => response.writeHead(Number(path.slice(1))).end("ok"));
    try {
      now = await countUnits({ receiverUrl: receiver.url.replace("/hook", ""), repeats: 1 });
    } finally {
      await receiver.close();
    }
  });

  /** Leaves out times, concurrency and log sizes, which vary between runs and machines. */
  const counted = (calls: Record<string, Usage>) =>
    Object.fromEntries(Object.entries(calls).map(([name, { cpuMs, waits, logBytes, ...units }]) => [name, units]));

  test("has the current units of every call", () => {
    expect(counted(written.calls)).toEqual(counted(now.calls));
  });

  test("has the current sizes and log bytes, to a twentieth", () => {
    const sizesOf = ({ sizes, calls }: { sizes: Record<string, number>; calls: Record<string, Usage> }) =>
      Object.entries({ ...sizes, logBytes: calls.send1?.logBytes ?? 0 });
    const current = Object.fromEntries(sizesOf(now));
    for (const [name, bytes] of sizesOf(written)) {
      const isCurrent = Math.abs(bytes / (current[name] ?? 0) - 1) < 0.05;
      expect({ name, isCurrent }).toEqual({ name, isCurrent: true });
    }
  });

  const writes = (call: string) => (now.calls[call]?.writes ?? 0) + (now.calls[call]?.indexWrites ?? 0);

  test("writes a delivery once on the happy path, and an event once", () => {
    const happy = ["fanOut1x1", "fanOut1x10", "send1", "fanOut10x1", "fanOut10x10", "send10"];
    expect(happy.map(writes)).toEqual([1, 1, 1, 10, 10, 10]);
    expect([now.calls.send1?.indexWrites, now.calls.send10?.indexWrites]).toEqual([0, 0]);
  });

  /** Numbers that grow with each function: dated, so that a new endpoint does not have to update them. */
  function withoutTotals({ alarms, alarmMetrics, tableUses, queueProducers, ...stage }: Units["stage"]) {
    return { totals: { alarms, alarmMetrics, tableUses, queueProducers }, stage };
  }

  test("has the current resources of the stage, with totals that are at most a fifth off", () => {
    const [dated, current] = [withoutTotals(written.stage), withoutTotals(now.stage as Units["stage"])];
    expect(dated.stage).toEqual(current.stage);
    for (const [name, total] of Object.entries(dated.totals)) {
      const change = Math.abs(total / current.totals[name as keyof typeof current.totals] - 1);
      expect({ name, isCurrent: change < 0.2 }).toEqual({ name, isCurrent: true });
    }
  });
});

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
  itemBytes,
  LOG_EVENT_OVERHEAD_BYTES,
  queueRequestsFor,
  readUnits,
  type Units,
  type Usage,
} from "../../bench/units.ts";
import { dynamo } from "../../functions/platform/aws.ts";
import { tableName } from "../../functions/platform/env.ts";
import { startReceiver } from "../support/receiver.ts";
import { freshResources } from "../support/resources.ts";

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

  const due = { due_shard: 3, due_at: "2026-11-21T10:18:41.112Z" };
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
    const item = itemOf(800, due);
    const update = (UpdateExpression: string, value?: string) =>
      new UpdateCommand({
        TableName: deliveries(),
        Key: keyOf(item) as never,
        UpdateExpression,
        ...(value && { ExpressionAttributeValues: { ":value": value } }),
      });
    expect(await consumed(put(item))).toEqual([1, 1]);
    expect(await consumed(update("SET due_at = :value", "2026-11-22T00:00:00Z"))).toEqual([1, 2]);
    expect(await consumed(update("SET event = :value", "deploy.failed"))).toEqual([1, 0]);
    expect(await consumed(update("REMOVE due_at, due_shard"))).toEqual([1, 1]);
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
      TableName: deliveries(),
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
  let now: Units;
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
  function counted({ cpuMs, waits, logBytes, metricBytes, ...units }: Usage) {
    return units;
  }

  test("has the current units of a request, with a JWT and with a key", () => {
    const inShort = ({ requests }: Units) =>
      requests.map(({ route, credential, status, authorizer, endpoint }) => ({
        ...{ route, credential, status },
        ...{ authorizer: counted(authorizer), endpoint: counted(endpoint) },
      }));
    expect(inShort(written)).toEqual(inShort(now));
    expect(now.requests.map(({ route, credential, status }) => [route, credential, status])).toEqual([
      ["GET /v1/projects", "jwt", 200],
      ["GET /v1/projects", "key", 200],
    ]);
  });

  test("has the current units of a delivery", () => {
    const inShort = ({ fanOut, send, sweep, rowFirst, failedAttempts, recovered, keyFirstUse }: Units) => ({
      fanOut: fanOut.map(({ usage, ...size }) => ({ ...size, ...counted(usage) })),
      send: send.map(({ usage, messages }) => ({ messages, ...counted(usage) })),
      sweep: sweep.map(({ usage, rows }) => ({ rows, ...counted(usage) })),
      failedAttempts: failedAttempts.map(counted),
      others: [rowFirst.fanOut, rowFirst.send, recovered, keyFirstUse].map(counted),
    });
    expect(inShort(written)).toEqual(inShort(now));
  });

  test("has the current units of parked deliveries", () => {
    const inShort = ({ parking: { first, fanOut, probe, drain, empty } }: Units) => ({
      rows: drain.rows,
      calls: [first, fanOut, probe, drain.usage, empty].map(counted),
    });
    expect(inShort(written)).toEqual(inShort(now));
  });

  const perDelivery = (usage: Usage, deliveries: number) => (usage.writes + usage.indexWrites) / deliveries;

  test("writes a delivery once on the happy path, and an event once", () => {
    for (const { events, usage } of now.fanOut) expect(perDelivery(usage, events)).toBe(1);
    for (const { messages, usage } of now.send) expect(perDelivery(usage, messages)).toBe(1);
    expect(now.send.map(({ usage }) => usage.indexWrites)).toEqual([0, 0]);
  });

  test("writes the row first for a slow webhook: inserted, claimed and recorded, in and out of the index", () => {
    expect(perDelivery(now.rowFirst.fanOut, 10)).toBe(1 + 2);
    expect(perDelivery(now.rowFirst.send, 10)).toBe(1 + 2);
  });

  test("a parked delivery leads to no message", () => {
    expect(now.parking.first.queueRequests).toBe(1);
    expect(now.parking.fanOut.queueRequests).toBe(0);
  });

  test("the rows of the priced event are smaller than 1 KB", () => {
    const { eventRowBytes, pendingRowBytes, succeededRowBytes } = now.sizes;
    expect(Math.max(eventRowBytes, pendingRowBytes, succeededRowBytes)).toBeLessThan(1024);
  });

  /** Numbers that grow with each function: dated, so that a new endpoint does not have to update them. */
  function withoutTotals({ alarms, alarmMetrics, tableUses, queueProducers, ...stage }: Units["stage"]) {
    return { totals: { alarms, alarmMetrics, tableUses, queueProducers }, stage };
  }

  test("has the current resources of the stage, with totals that are at most a fifth off", () => {
    const [dated, current] = [withoutTotals(written.stage), withoutTotals(now.stage)];
    expect(dated.stage).toEqual(current.stage);
    for (const [name, total] of Object.entries(dated.totals)) {
      const change = Math.abs(total / current.totals[name as keyof typeof current.totals] - 1);
      expect({ name, isCurrent: change < 0.2 }).toEqual({ name, isCurrent: true });
    }
  });

  test.each<[string, (units: Units) => number]>([
    ["an attempt's log line", ({ send }) => send[0]?.usage.logBytes ?? 0],
    ["a delivery on the wire", ({ sizes }) => sizes.requestBytes],
    ["a delivery's row", ({ sizes }) => sizes.succeededRowBytes],
    ["an event's row", ({ sizes }) => sizes.eventRowBytes],
    ["a message that carries a delivery", ({ sizes }) => sizes.carriedMessageBytes],
    ["an access log line", ({ requests }) => requests[0]?.accessLogBytes ?? 0],
    ["a response", ({ requests }) => requests[0]?.responseBytes ?? 0],
  ])("has the size of %s, to a twentieth", (_, sizeIn) => {
    expect(Math.abs(sizeIn(written) / sizeIn(now) - 1)).toBeLessThan(0.05);
  });
});

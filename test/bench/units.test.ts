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
import { readUnits } from "../../bench/cost.ts";
import { countUnits, itemBytes, type Taken, type Units } from "../../bench/units.ts";
import { dynamo } from "../../functions/platform/aws.ts";
import { tableName } from "../../functions/platform/env.ts";
import { startReceiver } from "../support/receiver.ts";
import { freshResources } from "../support/resources.ts";

/* What the price of everything is computed from: the engine counts as AWS does, and the file tells what is counted now. */

describe("the engine's units are AWS's", () => {
  beforeAll(freshResources);

  interface Consumed {
    Table?: { CapacityUnits: number };
    GlobalSecondaryIndexes?: Record<string, { CapacityUnits: number }>;
  }

  /** Units of the tables and of the index. */
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

  /** An item of exactly so many bytes, by AWS's rules, with a list, a map, numbers and a boolean in it. */
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
  ])("a write of %i bytes takes %i units", async (bytes, units) => {
    expect(await consumed(put(itemOf(bytes)))).toEqual([units, 0]);
  });

  test.each([
    [4096, true, 1],
    [4097, true, 2],
    [4096, false, 0.5],
    [4097, false, 1],
  ])("a read of %i bytes, strongly consistent %s, takes %d units", async (bytes, isStrong, units) => {
    const item = itemOf(bytes);
    await consumed(put(item));
    expect(await consumed(get(item, isStrong))).toEqual([units, 0]);
  });

  test("a read of nothing takes as much as one of a small item", async () => {
    expect(await consumed(get({ webhook_id: "none", id: "none" }, true))).toEqual([1, 0]);
  });

  test("an entry of the index is a unit to write, two to move, one to remove, and none when its keys stay", async () => {
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

  test("an update that makes an item smaller takes what the larger one does", async () => {
    const item = itemOf(3_000);
    await consumed(put(item));
    expect(await consumed(put({ ...item, body: "" }))).toEqual([3, 0]);
  });

  test("a query takes the sum of what it looks at, whatever it shows of it", async () => {
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

  test("a query of the index takes half a unit for a page of keys, and for nothing", async () => {
    const query = new QueryCommand({
      TableName: deliveries(),
      IndexName: "due",
      KeyConditionExpression: "due_shard = :shard",
      ExpressionAttributeValues: { ":shard": 31 },
    });
    expect(await consumed(query)).toEqual([0, 0.5]);
  });

  test("a batch takes a unit for each item, those that are not there too", async () => {
    const Keys = [{ key_hash: "a" }, { key_hash: "b" }, { key_hash: "c" }];
    const command = new BatchGetCommand({ RequestItems: { [tableName("apiKeys")]: { Keys, ConsistentRead: true } } });
    expect(await consumed(command)).toEqual([3, 0]);
  });

  test("a transaction takes twice as much", async () => {
    const Put = { TableName: tableName("apiKeys"), Item: { key_hash: randomUUID(), name: "x".repeat(1_500) } };
    const Other = { TableName: tableName("userApiKeys"), Item: { user_id: randomUUID(), id: "1" } };
    const command = new TransactWriteCommand({ TransactItems: [{ Put }, { Put: Other }] });
    expect(await consumed(command)).toEqual([6, 0]);
  });

  test("to delete what is not there takes a unit", async () => {
    const Key = { webhook_id: "none", id: "none" };
    expect(await consumed(new DeleteCommand({ TableName: deliveries(), Key }))).toEqual([1, 0]);
  });
});

describe("bench/units.json", () => {
  let now: Units;
  const written = readUnits();

  beforeAll(async () => {
    const receiver = await startReceiver();
    receiver.answerWith(({ path }, response) => response.writeHead(Number(path.slice(1))).end("ok"));
    try {
      now = await countUnits({ receiverUrl: receiver.url.replace("/hook", ""), repeats: 1 });
    } finally {
      await receiver.close();
    }
  }, 60_000);

  /** Times are of the machine on which they were measured, and how many calls are under way together is theirs to say. */
  function counted({ cpuMs, waits, logBytes, metricBytes, ...units }: Taken) {
    return units;
  }

  test("names every endpoint with either credential, as it is charged now", () => {
    const inShort = ({ requests }: Units) =>
      requests.map(({ route, credential, status, authorizer, endpoint }) => [
        `${credential} ${route}`,
        { status, authorizer: counted(authorizer), endpoint: counted(endpoint) },
      ]);
    expect(Object.fromEntries(inShort(written))).toEqual(Object.fromEntries(inShort(now)));
  });

  test("holds what a delivery takes on its way", () => {
    const inShort = ({ fanOut, send, sweep, failedAttempts, recovered, keyFirstUse, refused }: Units) => ({
      fanOut: fanOut.map(({ taken, ...size }) => ({ ...size, ...counted(taken) })),
      send: send.map(({ taken, messages }) => ({ messages, ...counted(taken) })),
      sweep: sweep.map(({ taken, rows }) => ({ rows, ...counted(taken) })),
      failedAttempts: failedAttempts.map(counted),
      others: [recovered, keyFirstUse, refused].map(counted),
    });
    expect(inShort(written)).toEqual(inShort(now));
  });

  test("holds the stage as it would be deployed", () => {
    expect(written.stage).toEqual(now.stage);
  });

  test.each<[string, (units: Units) => number]>([
    ["an attempt's log line", ({ send }) => send[0]?.taken.logBytes ?? 0],
    ["a delivery on the wire", ({ sizes }) => sizes.requestBytes],
    ["a delivery's row", ({ sizes }) => sizes.succeededRowBytes],
    ["an access log line", ({ requests }) => requests[0]?.accessLogBytes ?? 0],
    ["an answer", ({ requests }) => requests[0]?.responseBytes ?? 0],
  ])("tells the size of %s, to a twentieth", (_, sizeIn) => {
    expect(Math.abs(sizeIn(written) / sizeIn(now) - 1)).toBeLessThan(0.05);
  });
});

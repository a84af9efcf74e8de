import { DeleteCommand } from "@aws-sdk/lib-dynamodb";
import type { Delivery } from "../../../functions/deliveries/delivery.ts";
import * as deliveries from "../../../functions/deliveries/delivery-store.ts";
import { claim, findDue } from "../../../functions/deliveries/due-index.ts";
import { handler } from "../../../functions/deliveries/sweep.ts";
import { dynamo } from "../../../functions/platform/aws.ts";
import { tableName } from "../../../functions/platform/env.ts";
import type { Webhook } from "../../../functions/webhooks/webhook.ts";
import { interceptDynamo, interceptSqs, restoreAws, watchDynamo, watchQueue } from "../../support/aws-calls.ts";
import {
  dueAttempt,
  dueIds,
  givenDelivery,
  givenWebhook,
  prepareDeliveries,
  rowOf,
  rowsOf,
  takeDueAttempts,
} from "../../support/deliveries.ts";

const LEASE_MS = 900_000;
const enoughTime = { getRemainingTimeInMillis: () => 50_000 };
const sweep = (context = enoughTime) => handler({}, context);
const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000);

let webhook: Webhook;
beforeAll(prepareDeliveries);
beforeEach(async () => {
  ({ webhook } = await givenWebhook());
});
afterEach(async () => {
  restoreAws();
  // Nothing of one test is due in the next.
  await sweep();
  await takeDueAttempts();
});

/** Does something between the sweep's look at the index and its claims. */
function afterLook(delivery: Delivery, act: () => Promise<unknown>): void {
  interceptDynamo(async ({ command }, send) => {
    const output = await send();
    const seen = command === "QueryCommand" && (output.Items as Delivery[]).some(({ id }) => id === delivery.id);
    if (seen) await act();
    return output;
  });
}

test("sends a lost message again, once its due time has passed", async () => {
  const lost = await givenDelivery(webhook, { at: minutesAgo(5) });
  await sweep();
  expect(await takeDueAttempts()).toEqual([dueAttempt(lost)]);
});

test("asks for the attempt after those that were made", async () => {
  const lost = await givenDelivery(webhook, { at: minutesAgo(5), attempt_count: 3 });
  await sweep();
  expect(await takeDueAttempts()).toEqual([dueAttempt(lost, 4)]);
});

test("leaves what is not due yet", async () => {
  const waiting = await givenDelivery(webhook, { at: minutesAgo(-10) });
  await sweep();
  expect(await takeDueAttempts()).toEqual([]);
  expect(await rowOf(waiting)).toEqual(waiting);
});

test("finds what is due in every shard", async () => {
  const shards = [...Array(32).keys()];
  await Promise.all(shards.map((due_shard) => givenDelivery(webhook, { at: minutesAgo(5), due_shard })));
  await sweep();
  expect(await takeDueAttempts()).toHaveLength(32);
});

test("leaves what it handed over alone for the lease, and hands it over again after that", async () => {
  const lost = await givenDelivery(webhook, { at: minutesAgo(5) });
  const before = Date.now();
  await sweep();
  const { due_at = "", ...row } = await rowOf(lost);
  expect(Date.parse(due_at)).toBeGreaterThanOrEqual(before + LEASE_MS);
  expect(Date.parse(due_at)).toBeLessThanOrEqual(Date.now() + LEASE_MS);
  expect({ ...row, due_at: lost.due_at }).toEqual(lost);
  await sweep();
  expect(await takeDueAttempts()).toEqual([dueAttempt(lost)]);

  await claim({ ...lost, due_at }, minutesAgo(1).toISOString());
  await sweep();
  expect(await takeDueAttempts()).toEqual([dueAttempt(lost)]);
});

test("hands a row over once, though two sweeps run at the same time", async () => {
  const lost = await Promise.all(Array.from({ length: 40 }, () => givenDelivery(webhook, { at: minutesAgo(5) })));
  await Promise.all([sweep(), sweep()]);
  const swept = (await takeDueAttempts()).map(({ delivery_id }) => delivery_id);
  expect(swept.sort()).toEqual(lost.map(({ id }) => id).sort());
});

describe("a row that is no longer what the index showed", () => {
  let lost: Delivery;
  beforeEach(async () => {
    lost = await givenDelivery(webhook, { at: minutesAgo(5) });
  });

  test("because it was deleted is not handed over and not brought back", async () => {
    const Key = { webhook_id: lost.webhook_id, id: lost.id };
    afterLook(lost, () => dynamo().send(new DeleteCommand({ TableName: tableName("deliveries"), Key })));
    await sweep();
    expect(await takeDueAttempts()).toEqual([]);
    expect(await rowsOf(webhook)).toEqual([]);
  });

  const attempt = { number: 1, at: new Date().toISOString(), duration_ms: 1, trigger: "schedule" as const };
  const soon = new Date(Date.now() + 60_000).toISOString();
  test.each<[string, deliveries.NextState]>([
    ["it succeeded", { status: "succeeded" }],
    ["it failed", { status: "failed" }],
    ["another attempt was made", { status: "pending", nextAttemptAt: soon, dueAt: soon }],
  ])("because %s is not handed over", async (_, next) => {
    afterLook(lost, () => deliveries.recordAttempt(lost, attempt, next));
    await sweep();
    expect(await takeDueAttempts()).toEqual([]);
    expect(await rowOf(lost)).toMatchObject({ status: next.status, attempt_count: 1 });
    expect((await rowOf(lost)).due_at).toBe(next.status === "pending" ? soon : undefined);
  });

  test("because another sweep has it is not handed over", async () => {
    const until = new Date(Date.now() + LEASE_MS).toISOString();
    afterLook(lost, () => claim({ ...lost, due_at: lost.due_at ?? "" }, until));
    await sweep();
    expect(await takeDueAttempts()).toEqual([]);
    expect((await rowOf(lost)).due_at).toBe(until);
  });
});

test("works through many rows, page by page and in batches of ten", async () => {
  const count = 250;
  const rows = Array.from({ length: count }, (_, index) => ({
    at: minutesAgo(5),
    due_shard: index % 2 === 0 ? 3 : 30,
  }));
  await Promise.all(rows.map((row) => givenDelivery(webhook, row)));
  const batches = watchQueue();
  await sweep();
  expect(Math.max(...batches.map(({ Entries }) => Entries.length))).toBe(10);
  const swept = (await takeDueAttempts()).map(({ delivery_id }) => delivery_id);
  expect(swept).toHaveLength(count);
  expect(new Set(swept).size).toBe(count);
});

test("begins with what is overdue the longest", async () => {
  const overdue = [7, 9, 8].map((minutes) => givenDelivery(webhook, { at: minutesAgo(minutes), due_shard: 5 }));
  const [seven, nine, eight] = await Promise.all(overdue);
  const due = await findDue(5, new Date(), 10);
  expect(due.map(({ id }) => id)).toEqual([nine?.id, eight?.id, seven?.id]);
});

test("costs a read per shard when nothing is due", async () => {
  const calls = watchDynamo();
  await sweep();
  expect(calls).toEqual(Array.from({ length: 32 }, () => ({ command: "QueryCommand", units: 0.5 })));
});

test("begins no page when its time is nearly over, and leaves the rest due", async () => {
  await Promise.all(Array.from({ length: 150 }, () => givenDelivery(webhook, { at: minutesAgo(5), due_shard: 9 })));
  // The clock runs out during the first page.
  let isLate = false;
  interceptDynamo(async ({ command }, send) => {
    if (command === "UpdateItemCommand") isLate = true;
    return send();
  });
  await sweep({ getRemainingTimeInMillis: () => (isLate ? 5_000 : 50_000) });
  expect(await takeDueAttempts()).toHaveLength(100);
  restoreAws();
  await sweep({ getRemainingTimeInMillis: () => 5_000 });
  expect(await takeDueAttempts()).toEqual([]);
  await sweep();
  expect(await takeDueAttempts()).toHaveLength(50);
});

test("that cannot queue what it took leaves it due after the lease", async () => {
  const lost = await givenDelivery(webhook, { at: minutesAgo(5) });
  interceptSqs(() => Promise.reject(new Error("SQS is away")));
  await sweep();
  expect(await rowOf(lost)).toMatchObject({ status: "pending", due_at: expect.stringMatching(/Z$/) });
  expect(await dueIds(lost.due_shard ?? -1)).toContain(lost.id);
});

test("that cannot read fails as a whole, so that the alarm rings", async () => {
  interceptDynamo(async () => {
    throw new Error("DynamoDB is away");
  });
  await expect(sweep()).rejects.toThrow("DynamoDB is away");
});

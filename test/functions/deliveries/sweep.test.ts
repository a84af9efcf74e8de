import { DeleteCommand } from "@aws-sdk/lib-dynamodb";
import { jest } from "@jest/globals";
import type { Delivery } from "../../../functions/deliveries/delivery.ts";
import * as deliveries from "../../../functions/deliveries/delivery-store.ts";
import { claim, findDue } from "../../../functions/deliveries/due-index.ts";
import { handler } from "../../../functions/deliveries/sweep.ts";
import { dynamo } from "../../../functions/platform/aws.ts";
import { tableName } from "../../../functions/platform/env.ts";
import { logSink } from "../../../functions/platform/log.ts";
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
  delete process.env.DELIVERY_GRACE_SECONDS;
  // Leave nothing due for the next test.
  await sweep();
  await takeDueAttempts();
});

/** Runs `act` after the sweep has read the index and before it claims the row. */
function beforeClaim(delivery: Delivery, act: () => Promise<unknown>): void {
  interceptDynamo(async ({ command }, send) => {
    const output = await send();
    const seen = command === "QueryCommand" && (output.Items as Delivery[]).some(({ id }) => id === delivery.id);
    if (seen) await act();
    return output;
  });
}

test("the sweep enqueues a lost message again after its due time", async () => {
  const lost = await givenDelivery(webhook, { at: minutesAgo(5) });
  await sweep();
  expect(await takeDueAttempts()).toEqual([dueAttempt(lost)]);
});

test("the sweep enqueues the attempt after those that were made", async () => {
  const lost = await givenDelivery(webhook, { at: minutesAgo(5), attempt_count: 3 });
  await sweep();
  expect(await takeDueAttempts()).toEqual([dueAttempt(lost, 4)]);
});

test("the sweep does not change a row that is not due yet", async () => {
  const waiting = await givenDelivery(webhook, { at: minutesAgo(-10) });
  await sweep();
  expect(await takeDueAttempts()).toEqual([]);
  expect(await rowOf(waiting)).toEqual(waiting);
});

test("the sweep finds due rows in all 32 shards", async () => {
  const shards = [...Array(32).keys()];
  await Promise.all(shards.map((due_shard) => givenDelivery(webhook, { at: minutesAgo(5), due_shard })));
  await sweep();
  expect(await takeDueAttempts()).toHaveLength(32);
});

test("the sweep enqueues a row again after its lease of 15 minutes, not before", async () => {
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

test("the sweep has a lease of 7.5 grace periods", async () => {
  process.env.DELIVERY_GRACE_SECONDS = "10";
  const lost = await givenDelivery(webhook, { at: minutesAgo(5) });
  const before = Date.now();
  await sweep();
  const dueAt = Date.parse((await rowOf(lost)).due_at ?? "");
  expect(dueAt).toBeGreaterThanOrEqual(before + 75_000);
  expect(dueAt).toBeLessThanOrEqual(Date.now() + 75_000);
});

test("the sweep enqueues a row once when two sweeps run at the same time", async () => {
  const lost = await Promise.all(Array.from({ length: 40 }, () => givenDelivery(webhook, { at: minutesAgo(5) })));
  await Promise.all([sweep(), sweep()]);
  const swept = (await takeDueAttempts()).map(({ delivery_id }) => delivery_id);
  expect(swept.sort()).toEqual(lost.map(({ id }) => id).sort());
});

describe("a row that has changed since the index was read", () => {
  let lost: Delivery;
  beforeEach(async () => {
    lost = await givenDelivery(webhook, { at: minutesAgo(5) });
  });

  test("because it was deleted is not enqueued and not recreated", async () => {
    const Key = { webhook_id: lost.webhook_id, id: lost.id };
    beforeClaim(lost, () => dynamo().send(new DeleteCommand({ TableName: tableName("deliveries"), Key })));
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
  ])("because %s is not enqueued", async (_, next) => {
    beforeClaim(lost, () => deliveries.recordAttempt(lost, attempt, next));
    await sweep();
    expect(await takeDueAttempts()).toEqual([]);
    expect(await rowOf(lost)).toMatchObject({ status: next.status, attempt_count: 1 });
    expect((await rowOf(lost)).due_at).toBe(next.status === "pending" ? soon : undefined);
  });

  test("because another sweep has claimed it is not enqueued", async () => {
    const until = new Date(Date.now() + LEASE_MS).toISOString();
    beforeClaim(lost, () => claim({ ...lost, due_at: lost.due_at ?? "" }, until));
    await sweep();
    expect(await takeDueAttempts()).toEqual([]);
    expect((await rowOf(lost)).due_at).toBe(until);
  });
});

test("the sweep ends only after its messages are enqueued", async () => {
  await givenDelivery(webhook, { at: minutesAgo(5) });
  let enqueued = 0;
  interceptSqs(async ({ input }, send) => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const output = await send();
    enqueued += (input.Entries as unknown[]).length;
    return output;
  });
  await sweep();
  expect(enqueued).toBe(1);
});

test("the sweep counts the rows that it enqueued, without those that another sweep claimed", async () => {
  const [claimed] = await Promise.all([
    givenDelivery(webhook, { at: minutesAgo(5) }),
    givenDelivery(webhook, { at: minutesAgo(5) }),
  ]);
  const until = new Date(Date.now() + LEASE_MS).toISOString();
  beforeClaim(claimed, () => claim({ ...claimed, due_at: claimed.due_at ?? "" }, until));
  const write = jest.spyOn(logSink, "write").mockImplementation(() => {});
  await sweep();
  expect(write.mock.calls).toMatchObject([["info", { message: "sweep", failed_shards: 0, Redriven: 1 }]]);
  write.mockRestore();
});

test("the sweep enqueues many rows page by page, in batches of ten", async () => {
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

test("the sweep reads the longest overdue rows first", async () => {
  const overdue = [7, 9, 8].map((minutes) => givenDelivery(webhook, { at: minutesAgo(minutes), due_shard: 5 }));
  const [seven, nine, eight] = await Promise.all(overdue);
  const { rows } = await findDue(5, new Date(), 10);
  expect(rows.map(({ id }) => id)).toEqual([nine?.id, eight?.id, seven?.id]);
});

test("the sweep enqueues at most 1,000 rows of one webhook in a run, and all rows of another", async () => {
  const { webhook: other } = await givenWebhook();
  const many = Array.from({ length: 1_050 }, (_, n) => givenDelivery(webhook, { at: minutesAgo(9), due_shard: n % 2 }));
  await Promise.all(many);
  // Due later, so behind the backlog on the pages of the same shards.
  const few = await Promise.all([0, 1].map((due_shard) => givenDelivery(other, { at: minutesAgo(5), due_shard })));
  await sweep();
  const swept = await takeDueAttempts();
  expect(swept.filter(({ webhook_id }) => webhook_id === webhook.id)).toHaveLength(1_000);
  const others = swept.filter(({ webhook_id }) => webhook_id === other.id).map(({ delivery_id }) => delivery_id);
  expect(others.sort()).toEqual(few.map(({ id }) => id).sort());
  await sweep();
  expect(await takeDueAttempts()).toHaveLength(50);
});

test("the sweep costs one query per shard when nothing is due", async () => {
  const calls = watchDynamo();
  await sweep();
  expect(calls).toEqual(Array.from({ length: 32 }, () => ({ command: "QueryCommand", units: 0.5 })));
});

test("the sweep reads no page when 5 s or less are left, and leaves the rest due", async () => {
  await Promise.all(Array.from({ length: 150 }, () => givenDelivery(webhook, { at: minutesAgo(5), due_shard: 9 })));
  // The time runs out during the first page.
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
  await sweep({ getRemainingTimeInMillis: () => 5_001 });
  expect(await takeDueAttempts()).toHaveLength(50);
});

test("the sweep leaves a row due after its lease when SQS is unavailable", async () => {
  const lost = await givenDelivery(webhook, { at: minutesAgo(5) });
  interceptSqs(() => Promise.reject(new Error("SQS is unavailable")));
  await sweep();
  expect(await rowOf(lost)).toMatchObject({ status: "pending", due_at: expect.stringMatching(/Z$/) });
  expect(await dueIds(lost.due_shard ?? -1)).toContain(lost.id);
});

test("the sweep throws when DynamoDB is unavailable, so that the alarm fires", async () => {
  interceptDynamo(async () => {
    throw new Error("DynamoDB is unavailable");
  });
  await expect(sweep()).rejects.toThrow("DynamoDB is unavailable");
});

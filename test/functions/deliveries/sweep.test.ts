import { DeleteCommand } from "@aws-sdk/lib-dynamodb";
import { jest } from "@jest/globals";
import { type Delivery, parkingShardOf } from "../../../functions/deliveries/delivery.ts";
import * as deliveries from "../../../functions/deliveries/delivery-store.ts";
import { claim, findDue } from "../../../functions/deliveries/due-index.ts";
import { ensureWakeUp } from "../../../functions/deliveries/parking-store.ts";
import { handler } from "../../../functions/deliveries/sweep.ts";
import { dynamo } from "../../../functions/platform/aws.ts";
import { tableName } from "../../../functions/platform/env.ts";
import { logSink } from "../../../functions/platform/log.ts";
import type { Webhook } from "../../../functions/webhooks/webhook.ts";
import {
  interceptDynamo,
  interceptSqs,
  isCall,
  type QueueBatch,
  repeatDynamo,
  restoreAws,
  watchDynamo,
  watchQueue,
} from "../../support/aws-calls.ts";
import {
  changeDelivery,
  changeWakeUp,
  dueAttempt,
  dueIds,
  givenDelivery,
  givenWebhook,
  prepareDeliveries,
  rowOf,
  rowsOf,
  takeDeliveryMessages,
  takeDueAttempts,
  wakeUpOf,
} from "../../support/deliveries.ts";

const LEASE_MS = 900_000;
const REJECTED_RETRY_MS = 60_000;
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
  await takeDeliveryMessages();
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

test("the sweep enqueues a lost message again after its due time, valid until the end of the lease", async () => {
  const lost = await givenDelivery(webhook, { at: minutesAgo(5) });
  await sweep();
  expect(await takeDueAttempts()).toEqual([dueAttempt(await rowOf(lost))]);
});

test("the sweep enqueues the attempt after those that were made", async () => {
  const lost = await givenDelivery(webhook, { at: minutesAgo(5), attempt_count: 3 });
  await sweep();
  expect(await takeDueAttempts()).toEqual([dueAttempt(await rowOf(lost), 4)]);
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

/** Expects the row to be due after this many milliseconds, or up to a second later, counted from a moment since `from`. */
function expectLease({ due_at = "" }: Delivery, leaseMs: number, from: number): void {
  expect(Date.parse(due_at)).toBeGreaterThanOrEqual(from + leaseMs);
  expect(Date.parse(due_at)).toBeLessThanOrEqual(Date.now() + leaseMs + 1_000);
}

/** Makes a row due and sweeps. Returns the row. */
async function sweepAgain(delivery: Delivery): Promise<Delivery> {
  await changeDelivery(delivery, { due_at: minutesAgo(1).toISOString() });
  await sweep();
  return rowOf(delivery);
}

test("the sweep counts a hand-over and enqueues a row again after its lease of 15 minutes, not before", async () => {
  const lost = await givenDelivery(webhook, { at: minutesAgo(5) });
  const before = Date.now();
  await sweep();
  const row = await rowOf(lost);
  expectLease(row, LEASE_MS, before);
  expect(row).toEqual({ ...lost, due_at: row.due_at, handovers: 1 });
  await sweep();
  expect(await takeDueAttempts()).toEqual([dueAttempt(row)]);
  expect(await takeDueAttempts()).toEqual([]);
  expect(await sweepAgain(lost)).toMatchObject({ handovers: 2 });
  expect(await takeDueAttempts()).toHaveLength(1);
});

test("the lease is 7.5 grace periods, doubles with each hand-over of the same attempt, and has an upper bound", async () => {
  process.env.DELIVERY_GRACE_SECONDS = "10";
  const lost = await givenDelivery(webhook, { at: minutesAgo(5) });
  for (const seconds of [75, 150, 300, 600, 1_200, 1_200]) {
    const before = Date.now();
    const row = await sweepAgain(lost);
    expectLease(row, seconds * 1_000, before);
    expect(await takeDueAttempts()).toEqual([dueAttempt(row)]);
  }
  const attempt = { number: 1, at: new Date().toISOString(), duration_ms: 1, trigger: "schedule" } as const;
  const due = { due_at: minutesAgo(1).toISOString(), due_shard: lost.due_shard ?? 0 };
  const next = { status: "pending", nextAttemptAt: due.due_at, due } as const;
  expect(await deliveries.recordAttempt(await rowOf(lost), attempt, next, "a")).toBe(true);
  const before = Date.now();
  await sweep();
  expectLease(await rowOf(lost), 75_000, before);
});

test("a row whose attempt is being sent is not enqueued until the time of the sender is over", async () => {
  const soon = new Date(Date.now() + 20_000).toISOString();
  const sending = await givenDelivery(webhook, { at: minutesAgo(5), sending_until: soon, sending_id: "a" });
  await sweep();
  expect(await takeDueAttempts()).toEqual([]);
  expect(await rowOf(sending)).toEqual(sending);
  await changeDelivery(sending, { sending_until: minutesAgo(0).toISOString() });
  await sweep();
  expect(await takeDueAttempts()).toHaveLength(1);
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
    ["another attempt was made", { status: "pending", nextAttemptAt: soon, due: { due_at: soon, due_shard: 3 } }],
  ])("because %s is not enqueued", async (_, next) => {
    beforeClaim(lost, () => deliveries.recordAttempt(lost, attempt, next, "a"));
    await sweep();
    expect(await takeDueAttempts()).toEqual([]);
    expect(await rowOf(lost)).toMatchObject({ status: next.status, attempt_count: 1 });
    expect((await rowOf(lost)).due_at).toBe(next.status === "pending" ? soon : undefined);
  });

  test("because another sweep has claimed it is not enqueued", async () => {
    const until = new Date(Date.now() + LEASE_MS).toISOString();
    beforeClaim(lost, () => claim({ ...lost, due_at: lost.due_at ?? "", due_shard: lost.due_shard ?? 0 }, until));
    await sweep();
    expect(await takeDueAttempts()).toEqual([]);
    expect((await rowOf(lost)).due_at).toBe(until);
  });

  test("because it was parked with the same due time is not enqueued and keeps its place", async () => {
    const at = minutesAgo(5);
    const late = await givenDelivery(webhook, { at, due_at: at.toISOString() });
    beforeClaim(late, () => deliveries.park(late, soon));
    await sweep();
    expect(await takeDueAttempts()).not.toContainEqual(expect.objectContaining({ delivery_id: late.id }));
    expect(await rowOf(late)).toMatchObject({ due_shard: parkingShardOf(webhook.id), due_at: at.toISOString() });
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
  beforeClaim(claimed, () =>
    claim({ ...claimed, due_at: claimed.due_at ?? "", due_shard: claimed.due_shard ?? 0 }, until),
  );
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

describe("when SQS does not accept a message", () => {
  test.each<[string, number]>([
    ["of the first hand-over", 0],
    ["of a later hand-over with a longer lease", 3],
  ])("%s, its row is due again after a minute", async (_, handovers) => {
    const rows = await Promise.all(
      [1, 2].map(() => givenDelivery(webhook, { at: minutesAgo(5), due_shard: 3, handovers })),
    );
    const [rejected, accepted] = rows;
    interceptSqs(async ({ input }, send) => {
      const { Entries } = input as unknown as QueueBatch;
      const failed = Entries.filter(({ MessageBody }) => MessageBody.includes(rejected?.id ?? ""));
      const others = Entries.filter((entry) => !failed.includes(entry));
      const output = others.length > 0 ? await send({ ...input, Entries: others }) : {};
      return { ...output, Failed: failed.map(({ Id }) => ({ Id, Code: "InternalError" })) };
    });
    const before = Date.now();
    await sweep();
    restoreAws();
    if (!rejected || !accepted) throw new Error("no rows");
    expectLease(await rowOf(rejected), REJECTED_RETRY_MS, before);
    expectLease(await rowOf(accepted), LEASE_MS * Math.max(1, 2 ** handovers), before);
    expect(await takeDueAttempts()).toEqual([dueAttempt(await rowOf(accepted))]);
  });

  test("of any row, all are due again after a minute, and the run succeeds", async () => {
    const lost = await givenDelivery(webhook, { at: minutesAgo(5) });
    interceptSqs(() => Promise.reject(new Error("SQS is unavailable")));
    const before = Date.now();
    await sweep();
    expectLease(await rowOf(lost), REJECTED_RETRY_MS, before);
    expect(await dueIds(lost.due_shard ?? -1)).toContain(lost.id);
  });
});

describe("the wake-up of a webhook with parked deliveries", () => {
  test("is enqueued as a call for the drain, and its parked rows are not enqueued", async () => {
    const parked = await givenDelivery(webhook, { at: minutesAgo(5) });
    expect(await deliveries.park(parked, new Date().toISOString())).toBe(true);
    await ensureWakeUp(webhook, minutesAgo(1));
    // Without the call that was enqueued when the wake-up was written.
    await takeDeliveryMessages();
    await changeWakeUp(webhook, { due_at: minutesAgo(1).toISOString() });
    const before = await wakeUpOf(webhook);
    await sweep();
    const [call, ...others] = await takeDeliveryMessages();
    const { generation = 0 } = before ?? {};
    expect(call).toEqual({ kind: "wake-up", project_id: webhook.project_id, webhook_id: webhook.id, generation });
    expect(others).toEqual([]);
    expect(await wakeUpOf(webhook)).toMatchObject({ generation, handovers: 1 });
    expect((await rowOf(parked)).handovers).toBeUndefined();
  });

  test("is due again after a minute when SQS does not accept the call", async () => {
    await ensureWakeUp(webhook, minutesAgo(1));
    await changeWakeUp(webhook, { due_at: minutesAgo(1).toISOString() });
    interceptSqs(() => Promise.reject(new Error("SQS is unavailable")));
    const before = Date.now();
    await sweep();
    const { due_at = "" } = (await wakeUpOf(webhook)) ?? {};
    expect(Date.parse(due_at)).toBeGreaterThanOrEqual(before + REJECTED_RETRY_MS);
    expect(Date.parse(due_at)).toBeLessThanOrEqual(Date.now() + REJECTED_RETRY_MS);
  });
});

test("a claim that the SDK repeats because its answer was lost is enqueued", async () => {
  const lost = await givenDelivery(webhook, { at: minutesAgo(5) });
  repeatDynamo((call) => isCall(call, "UpdateItem", "deliveries"));
  await sweep();
  expect(await takeDueAttempts()).toEqual([dueAttempt(await rowOf(lost))]);
});

test("the sweep throws when DynamoDB is unavailable, so that the alarm fires", async () => {
  interceptDynamo(async () => {
    throw new Error("DynamoDB is unavailable");
  });
  await expect(sweep()).rejects.toThrow("DynamoDB is unavailable");
});

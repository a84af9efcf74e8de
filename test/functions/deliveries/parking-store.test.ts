import { jest } from "@jest/globals";
import { type Delivery, parkingShardOf, shardOf } from "../../../functions/deliveries/delivery.ts";
import type { WakeUpCall } from "../../../functions/deliveries/delivery-queue.ts";
import * as deliveries from "../../../functions/deliveries/delivery-store.ts";
import {
  endDrainEmpty,
  ensureWakeUp,
  findParked,
  isWakeUp,
  scheduleDrain,
  startDrain,
} from "../../../functions/deliveries/parking-store.ts";
import type { Webhook } from "../../../functions/webhooks/webhook.ts";
import { interceptDynamo, interceptSqs, restoreAws, watchDynamo, watchQueue } from "../../support/aws-calls.ts";
import {
  changeWakeUp,
  givenDelivery,
  givenWebhook,
  prepareDeliveries,
  rowOf,
  rowsOf,
  wakeUpOf,
} from "../../support/deliveries.ts";

const TEN_MINUTES_MS = 600_000;
const secondsFromNow = (seconds: number) => new Date(Date.now() + seconds * 1000);

let webhook: Webhook;
beforeAll(prepareDeliveries);
beforeEach(async () => {
  ({ webhook } = await givenWebhook());
});
afterEach(() => {
  restoreAws();
  jest.restoreAllMocks();
});

/** Records the wake-up calls that are enqueued, with their delays. */
function watchCalls(): () => { generation: number; delaySeconds: number }[] {
  const batches = watchQueue();
  return () =>
    batches.flatMap(({ Entries }) =>
      Entries.map(({ MessageBody, DelaySeconds }) => {
        const { generation }: WakeUpCall = JSON.parse(MessageBody);
        return { generation, delaySeconds: DelaySeconds };
      }),
    );
}

async function existingWakeUp() {
  const found = await wakeUpOf(webhook);
  if (!found) throw new Error("the webhook has no wake-up");
  return found;
}

describe("a parked delivery", () => {
  async function givenParked(at: Date): Promise<Delivery> {
    const delivery = await givenDelivery(webhook, { at });
    expect(await deliveries.park(delivery, secondsFromNow(60).toISOString())).toBe(true);
    return rowOf(delivery);
  }

  test("is pending, shows the time of the next probe, and is found in the order of the planned attempts", async () => {
    const { webhook: other } = await givenWebhook();
    const parkedOther = await givenDelivery(other, { at: secondsFromNow(-99) });
    await deliveries.park(parkedOther, secondsFromNow(60).toISOString());
    const rows = [];
    for (const age of [30, 50, 40]) rows.push(await givenParked(secondsFromNow(-age)));
    const [second, first, third] = [rows[2], rows[1], rows[0]];
    for (const row of rows) {
      expect(row).toMatchObject({ status: "pending", due_shard: parkingShardOf(webhook.id), due_at: row.created_at });
      expect(Date.parse(row.next_attempt_at ?? "")).toBeGreaterThan(Date.now());
    }
    const page = await findParked(webhook.id, 2);
    expect(page.rows.map(({ id }) => id)).toEqual([first?.id, second?.id]);
    const rest = await findParked(webhook.id, 2, page.next);
    expect(rest.rows.map(({ id }) => id)).toEqual([third?.id]);
    expect((await findParked(other.id, 10)).rows.map(({ id }) => id)).toEqual([parkedOther.id]);
  });

  test("leaves the parking when a user requests an attempt", async () => {
    const parked = await givenParked(secondsFromNow(-30));
    const { delivery } = await deliveries.reschedule(webhook.id, parked.id, new Date(), 120);
    expect(delivery.due_shard).toBe(shardOf(parked.id));
    expect((await findParked(webhook.id, 10)).rows).toEqual([]);
  });
});

describe("ensureWakeUp", () => {
  test("writes the wake-up and enqueues one call, once for all rows parked within 30 s", async () => {
    const calls = watchCalls();
    const units = watchDynamo();
    const at = secondsFromNow(100);
    for (let parked = 0; parked < 5; parked++) await ensureWakeUp(webhook, at);
    const { due_at, ...wakeUp } = await existingWakeUp();
    expect(wakeUp).toEqual({
      webhook_id: `wake-up:${webhook.id}`,
      id: webhook.id,
      project_id: webhook.project_id,
      due_shard: shardOf(webhook.id),
      generation: 1,
      parkings: 1,
    });
    expect(isWakeUp(wakeUp)).toBe(true);
    // The sweep enqueues it again a grace period after the call.
    expect(Math.abs(Date.parse(due_at) - at.getTime() - 120_000)).toBeLessThan(1_000);
    expect(calls()).toEqual([{ generation: 1, delaySeconds: 100 }]);
    expect(units.filter(({ command }) => command === "UpdateItemCommand")).toHaveLength(2);
    // No list of the webhook's deliveries contains it.
    expect(await rowsOf(webhook)).toEqual([]);
  });

  test("enqueues a call again when a drain has found the parking empty", async () => {
    await ensureWakeUp(webhook, secondsFromNow(100));
    const { due_at: _, ...before } = await existingWakeUp();
    await changeWakeUp(webhook, { empty_since: secondsFromNow(-5).toISOString() });
    const calls = watchCalls();
    later(31_000);
    await ensureWakeUp(webhook, new Date(Date.now()));
    const { due_at: __, ...after } = await existingWakeUp();
    expect(after).toEqual({ ...before, parkings: 2, generation: 2 });
    expect(calls()).toEqual([{ generation: 2, delaySeconds: 0 }]);
  });

  test("leaves the call of a wake-up that is planned already, and counts that rows were parked", async () => {
    await ensureWakeUp(webhook, secondsFromNow(100));
    const before = await existingWakeUp();
    const calls = watchCalls();
    later(31_000);
    await ensureWakeUp(webhook, new Date(Date.now()));
    expect(await existingWakeUp()).toEqual({ ...before, parkings: 2 });
    expect(calls()).toEqual([]);
  });
});

/** Moves the clock. */
function later(ms: number): void {
  const now = Date.now;
  jest.spyOn(Date, "now").mockImplementation(() => now() + ms);
}

describe("a wake-up call", () => {
  beforeEach(() => ensureWakeUp(webhook, new Date()));

  test("is delayed by at most 15 minutes; the sweep enqueues the next one", async () => {
    const calls = watchCalls();
    await scheduleDrain(webhook, secondsFromNow(5_000));
    expect(calls()).toEqual([{ generation: 2, delaySeconds: 900 }]);
    expect(Math.abs(Date.parse((await existingWakeUp()).due_at) - Date.now() - 1_020_000)).toBeLessThan(1_000);
  });

  test("becomes void when the webhook is handed over again, or a drain has started", async () => {
    const { generation } = await existingWakeUp();
    await scheduleDrain(webhook, new Date());
    expect(await startDrain(webhook, generation)).toBeUndefined();
    const drains = await Promise.all([1, 2, 3].map(() => startDrain(webhook, generation + 1)));
    expect(drains.filter((drain) => drain !== undefined)).toMatchObject([{ generation: generation + 2 }]);
    const calls = watchCalls();
    await scheduleDrain(webhook, new Date(), { expected: generation + 1 });
    expect(calls()).toEqual([]);
  });

  test("that SQS does not accept is left to the sweep", async () => {
    interceptSqs(() => Promise.reject(new Error("SQS is unavailable")));
    await scheduleDrain(webhook, new Date());
    const { due_at } = await existingWakeUp();
    expect(Math.abs(Date.parse(due_at) - Date.now() - 120_000)).toBeLessThan(1_000);
  });

  test("of a webhook without a wake-up does nothing", async () => {
    const { webhook: other } = await givenWebhook();
    const calls = watchCalls();
    await scheduleDrain(other, new Date());
    expect(await startDrain(other, 0)).toBeUndefined();
    expect(await wakeUpOf(other)).toBeUndefined();
    expect(calls()).toEqual([]);
  });
});

describe("an empty parking", () => {
  /** Starts a drain that finds the parking empty, and runs `during` before its end. */
  async function visit({ visitAt, during }: { visitAt?: Date; during?: () => Promise<unknown> } = {}): Promise<void> {
    const { generation } = await existingWakeUp();
    const drain = await startDrain(webhook, generation);
    if (!drain) throw new Error("the call is void");
    await during?.();
    await endDrainEmpty(webhook, drain, visitAt);
  }
  const emptySince = (ms: number) => changeWakeUp(webhook, { empty_since: new Date(Date.now() - ms).toISOString() });
  beforeEach(() => ensureWakeUp(webhook, new Date()));

  test.each<[string, number | undefined, number]>([
    ["after ten minutes", undefined, 600],
    ["at the next probe when that is sooner", 60, 60],
    ["after ten minutes when the next probe is later", 5_000, 600],
  ])("is visited again %s", async (_, visitSeconds, afterSeconds) => {
    await visit(visitSeconds === undefined ? {} : { visitAt: secondsFromNow(visitSeconds) });
    const { due_at, empty_since = "" } = await existingWakeUp();
    expect(Math.abs(Date.parse(due_at) - Date.now() - afterSeconds * 1000)).toBeLessThan(1_000);
    expect(Math.abs(Date.parse(empty_since) - Date.now())).toBeLessThan(1_000);
  });

  test("keeps the time since when it is empty, and its wake-up until that is ten minutes ago", async () => {
    await emptySince(TEN_MINUTES_MS - 5_000);
    const { empty_since } = await existingWakeUp();
    await visit();
    expect(await existingWakeUp()).toMatchObject({ empty_since });
    await emptySince(TEN_MINUTES_MS);
    await visit();
    expect(await wakeUpOf(webhook)).toBeUndefined();
  });

  test.each<[string, () => Promise<unknown>]>([
    [
      "a row was parked",
      () => {
        later(31_000);
        return ensureWakeUp(webhook, new Date());
      },
    ],
    ["a probe succeeded", () => scheduleDrain(webhook, new Date())],
  ])("keeps its wake-up when %s during the visit", async (_, during) => {
    await emptySince(2 * TEN_MINUTES_MS);
    await visit({ during });
    expect(await wakeUpOf(webhook)).toBeDefined();
  });

  test("keeps its wake-up when the last visit runs between the two writes of a delivery that is being parked", async () => {
    await emptySince(2 * TEN_MINUTES_MS);
    later(31_000);
    let isVisited = false;
    interceptDynamo(async ({ command }, send) => {
      const output = await send();
      if (command === "UpdateItemCommand" && !isVisited) {
        isVisited = true;
        await visit();
      }
      return output;
    });
    await ensureWakeUp(webhook, new Date());
    expect(isVisited).toBe(true);
    expect(await wakeUpOf(webhook)).toBeDefined();
  });
});

import { placeOf, putPlace } from "../../../../functions/deliveries/line/backlog-store.ts";
import { change } from "../../../../functions/deliveries/line/change-delivery.ts";
import type { Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import * as deliveries from "../../../../functions/deliveries/line/delivery-store.ts";
import {
  cancelled,
  insertedHeld,
  newRequest,
  requested,
} from "../../../../functions/deliveries/line/delivery-transitions.ts";
import type { Webhook } from "../../../../functions/webhooks/webhook/webhook.ts";
import { failDynamo, isCall, restoreAws, watchDynamo } from "../../../support/aws-calls.ts";
import {
  givenDelivery,
  givenWaiting,
  givenWebhook,
  newDelivery,
  placesOf,
  prepareDeliveries,
  rowOf,
} from "../../../support/deliveries.ts";

/* The only write of rows: with several writers, repeats of the SDK, and the place that a row leaves. */

let webhook: Webhook;
beforeAll(prepareDeliveries);
beforeEach(async () => {
  ({ webhook } = await givenWebhook());
});

const counted = (row: Delivery | undefined) => row && { ...row, attempt_count: row.attempt_count + 1 };

test("a row is written with a new version, and returned as it is stored", async () => {
  const delivery = newDelivery(webhook);
  const result = await change(delivery, insertedHeld(delivery));
  expect(result).toEqual({ row: await rowOf(delivery), isWritten: true, before: undefined });
  expect(result.row).toEqual({ ...delivery, status: "held", version: expect.stringMatching(/./) });
  expect((await change(result.row ?? delivery, counted)).row?.version).not.toBe(result.row?.version);
});

test("a transition without a next row writes nothing", async () => {
  const row = await givenDelivery(webhook);
  const calls = watchDynamo();
  expect(await change(row, cancelled)).toEqual({ row, isWritten: false, before: row });
  expect(calls).toEqual([]);
});

test("a row that another process has changed is changed as it is stored, with one more write", async () => {
  const row = await givenDelivery(webhook);
  const first = await change(row, counted);
  const calls = watchDynamo();
  const second = await change(row, counted);
  expect(second).toMatchObject({ isWritten: true, before: first.row, row: { attempt_count: 2 } });
  expect(calls.map(({ command }) => command)).toEqual(["PutItemCommand"]);
  expect(await rowOf(row)).toEqual(second.row);
});

test("twenty concurrent writers all take effect, one after the other", async () => {
  const delivery = newDelivery(webhook);
  const writers = Array.from({ length: 20 }, () => change(delivery, (row) => counted(row ?? { ...delivery })));
  expect((await Promise.all(writers)).every(({ isWritten }) => isWritten)).toBe(true);
  expect((await rowOf(delivery)).attempt_count).toBe(20);
});

test("one of twenty concurrent requests is written, and all return the row", async () => {
  const row = await givenDelivery(webhook, { status: "failed" });
  const requests = Array.from({ length: 20 }, (_, n) => {
    const at = new Date(Date.now() + n);
    return change(row, requested("redeliver", newRequest(at))(placeOf(row, at, true)));
  });
  const results = await Promise.all(requests);
  expect(results.filter(({ isWritten }) => isWritten)).toHaveLength(1);
  expect(new Set(results.map((result) => result.row?.version))).toEqual(new Set([(await rowOf(row)).version]));
});

test("a row that has expired meanwhile is not written again", async () => {
  const gone = { ...newDelivery(webhook), version: "gone" };
  expect(await change(gone, cancelled)).toEqual({ row: undefined, isWritten: false, before: undefined });
  expect(await deliveries.find(gone.webhook_id, gone.id)).toBeUndefined();
});

describe("the place that a row leaves", () => {
  let row: Delivery;
  beforeEach(async () => {
    row = await givenWaiting(webhook);
  });
  const places = async () => (await placesOf(webhook)).map(({ entry }) => entry);

  test("is removed after the write, and no other place", async () => {
    const next = placeOf(row, new Date(Date.now() + 9_000));
    await putPlace(next);
    await change(row, requested("recover", newRequest(new Date()))(next));
    expect(await places()).toEqual([next.entry]);
  });

  test("is that of the row as stored, when the caller knew an older one", async () => {
    const next = placeOf(row, new Date(Date.now() + 9_000));
    await putPlace(next);
    await change(row, requested("recover", newRequest(new Date()))(next));
    await change(row, cancelled);
    expect(await places()).toEqual([]);
  });

  test("stays while the row names it", async () => {
    await change(row, counted);
    expect(await places()).toEqual([row.place]);
  });

  test("stays when the write fails, and its removal may fail", async () => {
    failDynamo((call) => isCall(call, "PutItem", "deliveries"));
    await expect(change(row, cancelled)).rejects.toThrow("slow down");
    restoreAws();
    expect(await places()).toEqual([row.place]);
    failDynamo((call) => isCall(call, "DeleteItem", "backlog"));
    expect(await change(row, cancelled)).toMatchObject({ isWritten: true });
    expect(await rowOf(row)).toMatchObject({ status: "cancelled" });
  });
});

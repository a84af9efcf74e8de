import { handler as send } from "../../../functions/attempts/send.ts";
import { handler as sendSlow } from "../../../functions/attempts/send-slow.ts";
import { change } from "../../../functions/deliveries/change-delivery.ts";
import type { Delivery } from "../../../functions/deliveries/delivery.ts";
import type { UnrecordedAttempt } from "../../../functions/deliveries/delivery-queue.ts";
import { inserted } from "../../../functions/deliveries/delivery-transitions.ts";
import type { Webhook } from "../../../functions/webhooks/webhook.ts";
import * as webhooks from "../../../functions/webhooks/webhook-store.ts";
import {
  attempt,
  carry,
  failRecords,
  firstAttempt,
  requestAgain,
  visitLine,
  watchMessages,
} from "../../support/attempts.ts";
import { failDynamo, interceptSqs, isCall, restoreAws } from "../../support/aws-calls.ts";
import {
  changeWebhook,
  givenWaiting,
  givenWebhook,
  newDelivery,
  placesOf,
  prepareDeliveries,
  rowOf,
  rowsOf,
  sqsEvent,
  takeMessages,
  wakeUpOf,
} from "../../support/deliveries.ts";
import { watchLog } from "../../support/metrics.ts";
import { useReceiver } from "../../support/receiver.ts";

/* Attempts whose first record fails. Nothing of them is written, so they are recorded later, without a second request. */

const receiver = useReceiver("test");
let webhook: Webhook;
beforeAll(prepareDeliveries);
beforeEach(async () => {
  ({ webhook } = await givenWebhook({ url: receiver.url }));
});
afterEach(async () => {
  restoreAws();
  delete process.env.RETRY_SCHEDULE;
  await takeMessages("slowDeliveries");
});

interface Road {
  road: string;
  given(): Promise<Delivery>;
  send(delivery: Delivery): Promise<void>;
}
const carried: Road = { road: "carried", given: async () => newDelivery(webhook), send: (delivery) => carry(delivery) };
const waiting: Road = { road: "waiting", given: () => givenWaiting(webhook), send: () => visitLine(webhook) };

/** Sends while records fail. @returns the message that records the attempt later */
async function sendUnrecorded(road: Road, delivery: Delivery): Promise<UnrecordedAttempt> {
  failRecords();
  const sent = watchMessages();
  await road.send(delivery);
  restoreAws();
  const unrecorded = sent.find(({ message }) => message.kind === "unrecorded");
  if (unrecorded?.message.kind !== "unrecorded") throw new Error("no unrecorded attempt was enqueued");
  expect(unrecorded).toMatchObject({ queue: "slowDeliveries", delaySeconds: 15, group: webhook.project_id });
  return unrecorded.message;
}
const recordLater = async (message: UnrecordedAttempt) =>
  expect(await sendSlow(sqsEvent(message))).toEqual({ batchItemFailures: [] });

describe.each([carried, waiting])("an attempt on the $road road that could not be recorded", (road) => {
  test("is recorded later as a success", async () => {
    const delivery = await road.given();
    const before = Date.now();
    const message = await sendUnrecorded(road, delivery);
    // No second request: its line is looked at again when it is recorded.
    const looksAt = Date.parse((await wakeUpOf(webhook))?.due ?? "");
    if (road === waiting) expect(looksAt).toBeGreaterThanOrEqual(before + 60_000);
    expect(await placesOf(webhook)).toHaveLength(road === waiting ? 1 : 0);
    const lines = watchLog();
    await recordLater(message);
    const ids = { project_id: delivery.project_id, webhook_id: webhook.id, delivery_id: delivery.id };
    expect(lines).toContainEqual(expect.objectContaining({ message: "attempt recorded later", ...ids }));
    expect(receiver.received).toHaveLength(1);
    expect(await rowOf(delivery)).toMatchObject({
      status: "succeeded",
      attempt_count: 1,
      attempts: [{ status_code: 200 }],
    });
    expect(await placesOf(webhook)).toEqual([]);
  });

  test("is recorded later as a failure, once, and its retry is planned", async () => {
    receiver.respondWith((_, response) => response.writeHead(503, { "Retry-After": "600" }).end());
    const delivery = await road.given();
    const message = await sendUnrecorded(road, delivery);
    await recordLater(message);
    const row = await rowOf(delivery);
    expect(row).toMatchObject({ status: "pending", attempt_count: 1, attempts: [{ status_code: 503 }] });
    expect(Date.parse(row.next_attempt_at ?? "") - Date.now()).toBeGreaterThan(590_000);
    expect(await webhooks.find(webhook.project_id, webhook.id)).toMatchObject({ failing_since: row.attempts?.[0]?.at });
    // The place of the record that failed is a leftover, which the worker removes.
    const places = await placesOf(webhook);
    expect(places.map(({ entry }) => entry)).toContain(row.place);
    await recordLater(message);
    expect(receiver.received).toHaveLength(1);
    expect([await rowOf(delivery), await placesOf(webhook)]).toEqual([row, places]);
    expect(((await wakeUpOf(webhook))?.due ?? "~") <= (row.next_attempt_at ?? "")).toBe(true);
  });

  test("is enqueued again as long as it cannot be recorded", async () => {
    const delivery = await road.given();
    const message = await sendUnrecorded(road, delivery);
    failRecords();
    const sent = watchMessages();
    await recordLater(message);
    await recordLater(message);
    expect(sent).toMatchObject(Array(2).fill({ queue: "slowDeliveries", delaySeconds: 15, message }));
    restoreAws();
    await recordLater(message);
    expect(receiver.received).toHaveLength(1);
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempt_count: 1 });
  });

  test("is added to the log when the delivery was sent again meanwhile, and the success counts", async () => {
    const delivery = await road.given();
    const message = await sendUnrecorded(road, delivery);
    receiver.respondWith(500);
    await attempt(delivery);
    await recordLater(message);
    const row = await rowOf(delivery);
    expect(row).toMatchObject({ status: "succeeded", attempts: [{ status_code: 500 }, { status_code: 200 }] });
    expect(await placesOf(webhook)).toEqual([]);
  });

  test("does not end a redelivery that was requested after it", async () => {
    const delivery = await road.given();
    const message = await sendUnrecorded(road, delivery);
    if (road === carried) await change(delivery, inserted(delivery, { entry: "given", due: delivery.created_at }));
    await requestAgain(delivery);
    await recordLater(message);
    const row = await rowOf(delivery);
    expect(row).toMatchObject({ status: "pending", trigger: "redeliver", attempt_count: 1 });
    await attempt(row);
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempts: [{}, { trigger: "redeliver" }] });
  });

  test("is dropped when its webhook was deleted", async () => {
    const message = await sendUnrecorded(road, await road.given());
    await webhooks.remove(webhook.project_id, webhook.id);
    const before = await rowsOf(webhook);
    await recordLater(message);
    expect(await rowsOf(webhook)).toEqual(before);
  });
});

test.each<[string, number, Partial<Webhook>]>([
  ["a failure does not make the new one fail", 500, {}],
  ["410 does not disable the webhook", 410, {}],
  ["a success does not close its circuit", 200, { failing_since: new Date(0).toISOString() }],
])("an outcome of another URL is recorded later, and says nothing about the new one: %s", async (_, code, state) => {
  receiver.respondWith(code);
  const delivery = newDelivery(webhook);
  const message = await sendUnrecorded(carried, delivery);
  await webhooks.update(webhook.project_id, webhook.id, { url: `${receiver.url}/new` }, new Date().toISOString());
  await changeWebhook(webhook, { updated_by: "set", ...state });
  const before = await webhooks.find(webhook.project_id, webhook.id);
  await recordLater(message);
  expect(await rowOf(delivery)).toMatchObject({ attempt_count: 1 });
  expect(await webhooks.find(webhook.project_id, webhook.id)).toEqual(before);
});

test("the message of a delivery with a row has neither body nor attempts, which may be large", async () => {
  const delivery = await givenWaiting(webhook, { attempts: [] });
  const { body, attempts, ...stored } = delivery;
  expect((await sendUnrecorded(waiting, delivery)).basis).toEqual(stored);
  const unstored = newDelivery(webhook);
  expect((await sendUnrecorded(carried, unstored)).basis).toEqual(unstored);
});

describe("an attempt that can neither be recorded nor enqueued", () => {
  beforeEach(() => {
    failRecords();
    interceptSqs(() => Promise.reject(new Error("SQS is unavailable")));
  });

  test("returns the message that carries its delivery to the queue", async () => {
    const delivery = newDelivery(webhook);
    const failed = { batchItemFailures: [{ itemIdentifier: "m0" }] };
    const lines = watchLog();
    expect(await send(sqsEvent(firstAttempt(delivery)))).toEqual(failed);
    expect(lines.map(({ message }) => message)).toEqual(["attempt", "enqueue failed", "message failed"]);
    expect(await rowsOf(webhook)).toEqual([]);
  });

  test("stays in the line, which is looked at again after a minute", async () => {
    const row = await givenWaiting(webhook);
    const before = Date.now();
    await visitLine(webhook);
    expect(await rowOf(row)).toEqual(row);
    expect(await placesOf(webhook)).toHaveLength(1);
    expect(Date.parse((await wakeUpOf(webhook))?.due ?? "")).toBeGreaterThanOrEqual(before + 60_000);
  });
});

test("a success is logged and not undone, and its message is not repeated, when the webhook cannot be updated", async () => {
  await changeWebhook(webhook, { failing_since: new Date(Date.now() - 600_000).toISOString() });
  failDynamo((call) => isCall(call, "UpdateItem", "webhooks"));
  const delivery = newDelivery(webhook);
  const lines = watchLog();
  await expect(attempt(delivery)).rejects.toThrow("slow down");
  expect(lines).toMatchObject([{ message: "attempt", outcome: "succeeded" }]);
  expect(await rowOf(delivery)).toMatchObject({ status: "succeeded" });
});

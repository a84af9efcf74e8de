import type http from "node:http";
import { jest } from "@jest/globals";
import { makeAttempt } from "../../../functions/attempts/attempt.ts";
import { handler as send } from "../../../functions/attempts/send.ts";
import { handler as sendSlow } from "../../../functions/attempts/send-slow.ts";
import { MIN_ATTEMPT_MS } from "../../../functions/attempts/sender.ts";
import * as deliveries from "../../../functions/deliveries/delivery-store.ts";
import { handler as sweep } from "../../../functions/deliveries/sweep.ts";
import type { Webhook } from "../../../functions/webhooks/webhook.ts";
import { attemptOf, carriedDelivery, firstAttempt, givenParked, watchMessages } from "../../support/attempts.ts";
import { restoreAws } from "../../support/aws-calls.ts";
import {
  changeWebhook,
  dueAttempt,
  givenDelivery,
  givenWebhook,
  prepareDeliveries,
  rowOf,
  sqsEvent,
  takeDueAttempts,
} from "../../support/deliveries.ts";
import { fakeDate } from "../../support/fake-date.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";

/* The time budget of a sender, the claims of rows, and the messages of each lane. */

const allDone = { batchItemFailures: [] };
const lanes = { normal: send, slow: sendSlow };
const left = (ms: number) => ({ getRemainingTimeInMillis: () => ms });
const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString();

let receiver: Receiver;
let webhook: Webhook;
beforeAll(prepareDeliveries);
beforeEach(async () => {
  receiver = await startReceiver();
  ({ webhook } = await givenWebhook({ url: receiver.url }));
});
afterEach(async () => {
  restoreAws();
  jest.useRealTimers();
  await takeDueAttempts();
  await receiver.close();
});

test("an attempt needs 35 seconds", () => {
  expect(MIN_ATTEMPT_MS).toBe(45_000);
});

describe.each(Object.entries(lanes))("the sender of the %s lane, with 34 s left", (_, handler) => {
  test("sends nothing for a row, and enqueues its attempt again", async () => {
    const sent = watchMessages();
    const delivery = await givenDelivery(webhook);
    expect(await handler(sqsEvent(dueAttempt(delivery)), left(44_000))).toEqual(allDone);
    expect(receiver.received).toEqual([]);
    expect(await rowOf(delivery)).toEqual(delivery);
    expect(sent).toMatchObject([{ lane: "slow", delaySeconds: 0, message: dueAttempt(delivery) }]);
  });

  test("writes the row of a carried delivery, and enqueues its attempt", async () => {
    const sent = watchMessages();
    const delivery = carriedDelivery(webhook);
    expect(await handler(sqsEvent(firstAttempt(delivery)), left(44_000))).toEqual(allDone);
    expect(receiver.received).toEqual([]);
    const row = await rowOf(delivery);
    expect(row).toMatchObject({ status: "pending", attempt_count: 0 });
    expect(sent).toMatchObject([{ lane: "slow", delaySeconds: 0, message: dueAttempt(row) }]);
  });

  test("drops a stale message", async () => {
    const sent = watchMessages();
    const delivery = await givenDelivery(webhook);
    await handler(sqsEvent({ ...dueAttempt(delivery), valid_until: inSeconds(-1) }), left(44_000));
    expect(sent).toEqual([]);
    expect(await rowOf(delivery)).toEqual(delivery);
  });
});

test.each(Object.entries(lanes))("the sender of the %s lane sends with 35 s left", async (_, handler) => {
  const delivery = await givenDelivery(webhook);
  const carried = carriedDelivery(webhook);
  const batch = sqsEvent(dueAttempt(delivery), firstAttempt(carried));
  expect(await handler(batch, left(45_000))).toEqual(allDone);
  for (const each of [delivery, carried]) expect(await rowOf(each)).toMatchObject({ status: "succeeded" });
});

test("an attempt that was put off for want of time does not count as one that waited for its receiver", async () => {
  const sent = watchMessages();
  const delivery = await givenDelivery(webhook);
  await send(sqsEvent(dueAttempt(delivery)), left(44_000));
  expect(sent.map(({ message }) => message)).toEqual([dueAttempt(delivery)]);
});

test("a drain without time hands over without a request", async () => {
  await changeWebhook(webhook, { failing_since: inSeconds(-600), probe_at: inSeconds(-1) });
  const sent = watchMessages();
  const [parked] = await givenParked(webhook, 1, new Date());
  const [call] = sent.splice(0);
  expect(await sendSlow(sqsEvent(call?.message), left(44_000))).toEqual(allDone);
  expect(receiver.received).toEqual([]);
  expect(sent).toMatchObject([{ lane: "slow", delaySeconds: 0, message: { kind: "wake-up" } }]);
  await sendSlow(sqsEvent(sent[0]?.message), left(45_000));
  expect(await rowOf(parked ?? carriedDelivery(webhook))).toMatchObject({ status: "succeeded" });
});

test("a wake-up call in the normal lane goes back to the queue", async () => {
  const call = { kind: "wake-up", project_id: webhook.project_id, webhook_id: webhook.id, generation: 1 };
  expect(await send(sqsEvent(call))).toEqual({ batchItemFailures: [{ itemIdentifier: "m0" }] });
});

describe("the claim of a row", () => {
  let waiting: http.ServerResponse[];
  beforeEach(() => {
    waiting = [];
    receiver.respondWith((_, response) => void waiting.push(response));
  });

  test("lets one of many messages send, in both lanes at the same time", async () => {
    const delivery = await givenDelivery(webhook);
    const senders = [send, sendSlow, send, sendSlow].map((handler) =>
      handler(sqsEvent(dueAttempt(delivery), dueAttempt(delivery))),
    );
    await receiver.waitFor(1);
    // A message that arrives while the request is in flight.
    expect(await makeAttempt(attemptOf(delivery))).toBe("skipped");
    waiting[0]?.end();
    for (const result of await Promise.all(senders)) expect(result).toEqual(allDone);
    expect(receiver.received).toHaveLength(1);
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempt_count: 1 });
  });

  test("is released with the record: the retry can be sent at once", async () => {
    const delivery = await givenDelivery(webhook);
    receiver.respondWith(500);
    await makeAttempt(attemptOf(delivery));
    expect(await rowOf(delivery)).not.toHaveProperty("sending_until");
    await makeAttempt(attemptOf(delivery, 2));
    expect(receiver.received).toHaveLength(2);
  });

  test("of a sender that ended without a record ends after 35 s", async () => {
    receiver.respondWith(200);
    const clock = fakeDate();
    const delivery = await givenDelivery(webhook);
    const now = new Date();
    expect(await deliveries.claimSending(delivery, "crashed", now, inSeconds(35))).toBe(true);
    clock.advance(34.9);
    expect(await makeAttempt(attemptOf(delivery))).toBe("skipped");
    expect(receiver.received).toEqual([]);
    clock.advance(0.1);
    expect(await makeAttempt(attemptOf(delivery))).toBe("succeeded");
  });

  test("lasts 35 s", async () => {
    fakeDate();
    const delivery = await givenDelivery(webhook);
    const sending = makeAttempt(attemptOf(delivery));
    await receiver.waitFor(1);
    expect(await rowOf(delivery)).toMatchObject({ sending_until: inSeconds(35), sending_id: expect.any(String) });
    waiting[0]?.end();
    await sending;
  });

  test("keeps the sweep from enqueueing the row, until it has ended", async () => {
    const clock = fakeDate();
    const delivery = await givenDelivery(webhook, { due_at: inSeconds(-10) });
    const sending = makeAttempt(attemptOf(delivery));
    await receiver.waitFor(1);
    const sent = watchMessages();
    await sweep({}, left(50_000));
    expect(sent).toEqual([]);
    clock.advance(35);
    await sweep({}, left(50_000));
    expect(sent).toMatchObject([{ message: { kind: "due", delivery_id: delivery.id, attempt: 1 } }]);
    waiting[0]?.end();
    await sending;
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempt_count: 1 });
  });

  test("does not keep a requested redelivery from being sent after the attempt", async () => {
    const delivery = await givenDelivery(webhook);
    const sending = makeAttempt(attemptOf(delivery));
    await receiver.waitFor(1);
    await deliveries.reschedule(webhook.id, delivery.id, new Date(), 120);
    // The message of the redelivery arrives too early.
    expect(await makeAttempt(attemptOf(delivery))).toBe("skipped");
    const sent = watchMessages();
    waiting[0]?.end();
    await sending;
    expect(sent).toMatchObject([{ message: { attempt: 2 } }]);
    receiver.respondWith(200);
    expect(await send(sqsEvent(sent[0]?.message))).toEqual(allDone);
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempts: [{}, { trigger: "redeliver" }] });
  });
});

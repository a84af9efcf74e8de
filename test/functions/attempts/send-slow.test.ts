import { handler } from "../../../functions/attempts/send-slow.ts";
import type { Webhook } from "../../../functions/webhooks/webhook.ts";
import { carriedDelivery, firstAttempt, givenParked, watchMessages } from "../../support/attempts.ts";
import { restoreAws, watchDynamo } from "../../support/aws-calls.ts";
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
import { eventually } from "../../support/eventually.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";

/* The sender of the slow lane, which takes all kinds of messages. More in sender.test.ts, drain.test.ts, record.test.ts. */

const allDone = { batchItemFailures: [] };
const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();

let receiver: Receiver;
let webhook: Webhook;
beforeAll(prepareDeliveries);
beforeEach(async () => {
  receiver = await startReceiver();
  ({ webhook } = await givenWebhook({ url: receiver.url }));
});
afterEach(async () => {
  restoreAws();
  await takeDueAttempts();
  await receiver.close();
});

test.each([
  ["marked as slow", { slow_since: minutesAgo(5) }],
  ["not marked any more", {}],
])("deliveries of a webhook that is %s are sent", async (_, health) => {
  await changeWebhook(webhook, { events: ["deploy.started"], ...health });
  const delivery = await givenDelivery(webhook);
  const carried = carriedDelivery(webhook);
  expect(await handler(sqsEvent(dueAttempt(delivery), firstAttempt(carried)))).toEqual(allDone);
  for (const each of [delivery, carried]) expect(await rowOf(each)).toMatchObject({ status: "succeeded" });
});

test("a delivery of a slow webhook costs as much as any other", async () => {
  await changeWebhook(webhook, { slow_since: minutesAgo(5) });
  const delivery = await givenDelivery(webhook);
  const calls = watchDynamo();
  expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(allDone);
  expect(calls.map(({ command }) => command)).toEqual([
    "BatchGetItemCommand",
    "UpdateItemCommand",
    "UpdateItemCommand",
  ]);
});

test("a wake-up call sends the parked deliveries of a webhook", async () => {
  await changeWebhook(webhook, { failing_since: minutesAgo(10) });
  const sent = watchMessages();
  const parked = await givenParked(webhook, 3, new Date());
  expect(await handler(sqsEvent(sent[0]?.message))).toEqual(allDone);
  for (const each of parked) expect(await rowOf(each)).toMatchObject({ status: "succeeded" });
});

test("a hanging receiver does not delay the others of its batch", async () => {
  const { webhook: stuck } = await givenWebhook({ url: receiver.url.replace("/hook", "/stuck") });
  const [hanging, delivery] = [await givenDelivery(stuck), await givenDelivery(webhook)];
  let respondToStuck = () => {};
  receiver.respondWith(({ path }, response) => {
    if (path === "/stuck") respondToStuck = () => response.end();
    else response.end();
  });
  const batch = handler(sqsEvent(dueAttempt(hanging), dueAttempt(delivery)));
  await eventually(async () => expect(await rowOf(delivery)).toMatchObject({ status: "succeeded" }));
  expect(await rowOf(hanging)).toMatchObject({ status: "pending", attempt_count: 0 });
  respondToStuck();
  expect(await batch).toEqual(allDone);
});

test("a message that is not valid goes back to the queue, and the others are processed", async () => {
  const delivery = await givenDelivery(webhook);
  expect(await handler(sqsEvent('{"kind":"later"}', dueAttempt(delivery)))).toEqual({
    batchItemFailures: [{ itemIdentifier: "m0" }],
  });
  expect(await rowOf(delivery)).toMatchObject({ status: "succeeded" });
});

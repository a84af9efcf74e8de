import { handler } from "../../../../functions/deliveries/sending/send-slow.ts";
import type { Webhook } from "../../../../functions/webhooks/webhook/webhook.ts";
import { firstAttempt, requestAgain } from "../../../support/attempts.ts";
import {
  givenDelivery,
  givenWaiting,
  givenWebhook,
  newDelivery,
  prepareDeliveries,
  rowOf,
  sqsEvent,
  takeMessages,
  workCall,
} from "../../../support/deliveries.ts";
import { eventually } from "../../../support/eventually.ts";
import { useReceiver } from "../../../support/receiver.ts";

/* The sender of all that is not carried. Each kind of message has a test of its own: work, record, certify. */

const receiver = useReceiver("test");
let webhook: Webhook;
beforeAll(prepareDeliveries);
beforeEach(async () => {
  ({ webhook } = await givenWebhook({ url: receiver.url }));
});
afterEach(async () => {
  await takeMessages("slowDeliveries");
});

test("a receiver that hangs does not hold up the lines of others in its batch", async () => {
  const { webhook: stuck } = await givenWebhook({ url: receiver.url.replace("/hook", "/stuck") });
  const [hanging, delivery] = [await givenWaiting(stuck), await givenWaiting(webhook)];
  let respondToStuck = () => {};
  receiver.respondWith(({ path }, response) => {
    if (path === "/stuck") respondToStuck = () => response.end();
    else response.end();
  });
  const batch = handler(sqsEvent(workCall(stuck), workCall(webhook)));
  await eventually(async () => expect(await rowOf(delivery)).toMatchObject({ status: "succeeded" }));
  expect(await rowOf(hanging)).toMatchObject({ status: "pending", attempt_count: 0 });
  await receiver.waitFor(2);
  respondToStuck();
  expect(await batch).toEqual({ batchItemFailures: [] });
  expect(await rowOf(hanging)).toMatchObject({ status: "succeeded" });
});

test("a message that is not valid, or carries a delivery, goes back to the queue, and the others are processed", async () => {
  const delivery = await requestAgain(await givenDelivery(webhook));
  const batch = sqsEvent('{"kind":"later"}', firstAttempt(newDelivery(webhook)), workCall(webhook));
  expect(await handler(batch)).toEqual({ batchItemFailures: [{ itemIdentifier: "m0" }, { itemIdentifier: "m1" }] });
  expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempts: [{ trigger: "redeliver" }] });
  expect(receiver.received).toHaveLength(1);
});

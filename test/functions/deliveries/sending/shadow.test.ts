import type { Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import { signatureHeaders } from "../../../../functions/webhooks/receiver/signature.ts";
import type { Webhook } from "../../../../functions/webhooks/webhook/webhook.ts";
import * as webhooks from "../../../../functions/webhooks/webhook/webhook-store.ts";
import { beforeRecords, carry, requestAgain, visitLine } from "../../../support/attempts.ts";
import { watchDynamo } from "../../../support/aws-calls.ts";
import {
  changeWebhook,
  givenWaiting,
  givenWebhook,
  newDelivery,
  placesOf,
  prepareDeliveries,
  rowOf,
  takeMessages,
  wakeUpOf,
} from "../../../support/deliveries.ts";
import { type Receiver, startReceiver } from "../../../support/receiver.ts";

/* Shadow mode: a delivery is signed and logged, and not sent. */

let receiver: Receiver;
let webhook: Webhook;
let secret: string;
const switchTo = (mode: "live" | "shadow") =>
  webhooks.update(webhook.project_id, webhook.id, { mode }, new Date().toISOString());

/** Expects that a delivery is in the log with valid signatures, waits for nothing, and was not sent. */
async function expectShadowed(delivery: Delivery): Promise<void> {
  const row = await rowOf(delivery);
  expect(row).toMatchObject({ status: "shadowed", attempt_count: delivery.attempt_count, body: delivery.body });
  expect(row).not.toHaveProperty("next_attempt_at");
  const { at = "", headers } = row.shadow ?? {};
  const signed = { deliveryId: delivery.id, at: new Date(at), body: delivery.body };
  expect(headers).toMatchObject({ "X-Service-Delivery": delivery.id, ...signatureHeaders(signed, secret) });
  expect([await placesOf(webhook), await wakeUpOf(webhook)]).toEqual([[], undefined]);
}

describe("a delivery to a webhook in shadow mode", () => {
  beforeAll(prepareDeliveries);
  beforeEach(async () => {
    receiver = await startReceiver();
    ({ webhook, secret } = await givenWebhook({ url: receiver.url }));
    await switchTo("shadow");
  });
  afterEach(async () => {
    await Promise.all([takeMessages("deliveries"), takeMessages("slowDeliveries")]);
    await receiver.close();
  });

  test("that a message carries is logged in one write, and not sent", async () => {
    const delivery = newDelivery(webhook);
    const calls = watchDynamo();
    await carry(delivery);
    expect(calls.map(({ command }) => command)).toEqual(["BatchGetItemCommand", "PutItemCommand"]);
    await expectShadowed(delivery);
    expect(receiver.received).toEqual([]);
  });

  test("that waits is logged and leaves the line, and is not sent", async () => {
    const waiting = await givenWaiting(webhook);
    await visitLine(webhook);
    await expectShadowed(waiting);
    expect(receiver.received).toEqual([]);
  });

  test("that failed before the switch is not sent again, and keeps its attempt", async () => {
    await switchTo("live");
    receiver.respondWith(503);
    process.env.RETRY_SCHEDULE = "0";
    const delivery = newDelivery(webhook);
    await carry(delivery);
    delete process.env.RETRY_SCHEDULE;
    await switchTo("shadow");
    await visitLine(webhook);
    await expectShadowed({ ...delivery, attempt_count: 1 });
    expect((await rowOf(delivery)).attempts).toMatchObject([{ status_code: 503 }]);
    expect(receiver.received).toHaveLength(1);
  });

  test("is not sent by a redelivery in shadow mode; a redelivery after the switch to live sends it", async () => {
    const delivery = newDelivery(webhook);
    await carry(delivery);
    await requestAgain(delivery);
    await visitLine(webhook);
    await expectShadowed(delivery);
    await switchTo("live");
    await visitLine(webhook);
    expect(receiver.received).toEqual([]);
    await requestAgain(delivery);
    await visitLine(webhook);
    expect(receiver.received).toMatchObject([{ headers: { "webhook-id": delivery.id } }]);
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempts: [{ trigger: "redeliver" }] });
  });

  test("does not wait for a probe: the switch clears a failure, and a late failure of a request marks nothing", async () => {
    await switchTo("live");
    await changeWebhook(webhook, { failing_since: "2026-01-01T00:00:00.000Z", probe_at: "2999-01-01T00:00:00.000Z" });
    const waiting = await givenWaiting(webhook);
    await switchTo("shadow");
    await visitLine(webhook);
    await expectShadowed(waiting);
    // A request that was in flight during the switch.
    await switchTo("live");
    receiver.respondWith(503);
    beforeRecords(async () => void (await switchTo("shadow")));
    await carry(newDelivery(webhook));
    expect(await webhooks.get(webhook.project_id, webhook.id)).not.toHaveProperty("failing_since");
  });

  test("is logged once when its message arrives twice", async () => {
    const delivery = newDelivery(webhook);
    await carry(delivery);
    const first = await rowOf(delivery);
    await carry(delivery);
    expect(await rowOf(delivery)).toEqual(first);
  });
});

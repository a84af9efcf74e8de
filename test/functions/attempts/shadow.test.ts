import { Webhook as Verifier } from "standardwebhooks";
import type { Delivery } from "../../../functions/deliveries/delivery.ts";
import { signatureHeaders } from "../../../functions/receivers/signature.ts";
import type { Webhook } from "../../../functions/webhooks/webhook.ts";
import * as webhooks from "../../../functions/webhooks/webhook-store.ts";
import { beforeRecords, carry, requestAgain, visitLine } from "../../support/attempts.ts";
import { restoreAws, watchDynamo } from "../../support/aws-calls.ts";
import {
  changeWebhook,
  eventOf,
  givenWaiting,
  givenWebhook,
  newDelivery,
  placesOf,
  prepareDeliveries,
  publish,
  rowOf,
  takeMessages,
  wakeUpOf,
} from "../../support/deliveries.ts";
import { eventually } from "../../support/eventually.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";
import { startTestService, type TestService } from "../../support/service.ts";

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
    restoreAws();
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

describe("from the events queue", () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService({ deliver: true });
  });
  afterAll(() => service.stop());

  test("nothing is sent in shadow mode, everything after one PATCH, and what was shadowed stays in the log", async () => {
    const live = await startReceiver();
    const { api, userId } = service.user();
    const projectId = await service.project(userId);
    const path = `/v1/projects/${projectId}/webhooks`;
    const events = ["deploy.started"];
    const { body } = await api.post(path, { url: live.url, events, mode: "shadow" });
    const { id, secret } = body.data;
    expect(body.data.mode).toBe("shadow");
    const listed = async (status: string) =>
      (await api.get(`${path}/${id}/deliveries?status=${status}`)).body.data as { id: string; event: string }[];

    await publish(eventOf(projectId));
    expect((await api.post(`${path}/${id}/test`, {})).status).toBe(202);
    const shadowed = await eventually(async () => {
      const found = await listed("shadowed");
      expect(found).toHaveLength(2);
      return found;
    });
    for (const each of shadowed) {
      const { payload, shadow, attempts } = (await api.get(`${path}/${id}/deliveries/${each.id}`)).body.data;
      expect(attempts).toEqual([]);
      expect(new Verifier(secret).verify(JSON.stringify(payload), shadow.headers)).toEqual(payload);
    }
    expect((await api.get(`${path}/${id}/stats`)).body.data).toMatchObject({ attempts: 0, success_rate: null });

    const { body: patched } = await api.patch(`${path}/${id}`, { mode: "live" });
    expect(patched.data).not.toHaveProperty("mode");
    await publish(eventOf(projectId));
    await live.waitFor(1);
    const [sent] = await eventually(async () => {
      const found = await listed("succeeded");
      expect(found).toHaveLength(1);
      return found;
    });
    expect((await api.get(`${path}/${id}/deliveries/${sent?.id}`)).body.data).not.toHaveProperty("shadow");
    const since = new Date(Date.now() - 3_600_000).toISOString();
    expect((await api.post(`${path}/${id}/recover`, { since })).body.data).toMatchObject({ count: 0, complete: true });
    expect(live.received.map(({ headers }) => headers["webhook-id"])).toEqual([sent?.id]);
    expect(await listed("shadowed")).toHaveLength(2);
    await live.close();
  });
});

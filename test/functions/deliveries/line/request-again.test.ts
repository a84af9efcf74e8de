import { removePlace } from "../../../../functions/deliveries/line/backlog-store.ts";
import type { Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import { handler as recover } from "../../../../functions/deliveries/log/recover.ts";
import { handler as upsertMember } from "../../../../functions/identity/members/upsert-member.ts";
import type { Webhook } from "../../../../functions/webhooks/webhook/webhook.ts";
import { requestAgain, visitLine } from "../../../support/attempts.ts";
import { isCall, loseNextResponse } from "../../../support/aws-calls.ts";
import {
  changeWakeUp,
  givenDelivery,
  givenWebhook,
  placesOf,
  prepareDeliveries,
  rowOf,
  takeDeliveryMessages,
  wakeUpOf,
} from "../../../support/deliveries.ts";
import { fakeDate } from "../../../support/fake-date.ts";
import { useReceiver } from "../../../support/receiver.ts";

/* Redeliveries and recoveries while other processes change their rows: a row that waits has a place. */

const receiver = useReceiver("test");
let webhook: Webhook;
let delivery: Delivery;
beforeAll(prepareDeliveries);
beforeEach(async () => {
  ({ webhook } = await givenWebhook({ url: receiver.url }));
  delivery = await givenDelivery(webhook, { status: "failed" });
});
afterEach(() => takeDeliveryMessages());

/** While a row waits, it has a place, and a wake-up that is not later. */
async function expectInvariant(): Promise<void> {
  const row = await rowOf(delivery);
  if (row.status !== "pending") return;
  expect((await placesOf(webhook)).map(({ entry }) => entry)).toContain(row.place);
  const dueAt = Date.parse(row.next_attempt_at ?? "");
  expect(Date.parse((await wakeUpOf(webhook))?.due ?? "none")).toBeLessThanOrEqual(Math.max(Date.now(), dueAt));
}

type Trigger = "redeliver" | "recover";

/** Requests the delivery while the response of the row's write is lost. @param meanwhile runs before the SDK sends the write again */
async function requestLost(trigger: Trigger, meanwhile: () => Promise<unknown>): Promise<void> {
  const isOfRow = (call: Parameters<typeof isCall>[0]) => isCall(call, "PutItem", "deliveries");
  const sent = loseNextResponse("PutItemCommand", isOfRow, meanwhile);
  await requestAgain(delivery, trigger);
  expect(sent.requests).toBeGreaterThan(1);
}

/** Requests the delivery again, a moment later, and lets the worker serve it. */
async function requestAndServe(): Promise<void> {
  const clock = fakeDate();
  clock.advance(1);
  await requestAgain(delivery);
  await visitLine(webhook);
}

describe.each<Trigger>(["redeliver", "recover"])(
  "a request (%s) whose write took effect without a response",
  (trigger) => {
    test.each<[string, number, () => Promise<unknown>, number, object]>([
      ["is made once when it was accepted in between", 200, () => visitLine(webhook), 1, { status: "succeeded" }],
      [
        "keeps its retry when it failed in between",
        500,
        () => visitLine(webhook),
        1,
        { status: "pending", attempt_count: 1 },
      ],
      ["is made once when the receiver was removed in between", 410, () => visitLine(webhook), 1, { status: "failed" }],
      ["is made when its request was not begun", 200, async () => {}, 0, { status: "pending", trigger }],
    ])("%s", async (_, code, meanwhile, requests, expected) => {
      receiver.respondWith(code);
      await requestLost(trigger, meanwhile);
      expect(receiver.received).toHaveLength(requests);
      expect(await rowOf(delivery)).toMatchObject(expected);
      await expectInvariant();
    });

    test.each([200, 500])(
      "waits at a place of its own when another request was served in between (%d)",
      async (code) => {
        receiver.respondWith(code);
        await requestLost(trigger, async () => {
          await visitLine(webhook);
          await changeWakeUp(webhook, { due: new Date(0).toISOString() });
          await requestAndServe();
        });
        await expectInvariant();
      },
    );
  },
);

test("a recovery counts a delivery that was sent before the SDK repeated its write", async () => {
  const { project_id, id: webhook_id } = webhook;
  await upsertMember({ user_id: "user", project_id, name: "Project", role: "admin" });
  loseNextResponse(
    "PutItemCommand",
    (call) => isCall(call, "PutItem", "deliveries"),
    () => visitLine(webhook),
  );
  const request = {
    pathParameters: { project_id, webhook_id },
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ since: new Date(Date.now() - 60_000).toISOString() }),
    requestContext: { authorizer: { userId: "user", authType: "jwt" }, requestId: "r", identity: {} },
  };
  const { statusCode, body } = await recover(request as never, {} as never);
  expect([statusCode, JSON.parse(body).data.count, receiver.received.length]).toEqual([202, 1, 1]);
});

describe("a redelivery whose place is lost", () => {
  beforeEach(async () => {
    const { place = "" } = await requestAgain(delivery);
    await removePlace(webhook.id, place);
    await visitLine(webhook);
    expect([await placesOf(webhook), await wakeUpOf(webhook)]).toEqual([[], undefined]);
  });

  test.each([
    [119, 0],
    [121, 1],
  ])(
    "is sent when it is requested again, but not within two minutes (%d s: %d requests)",
    async (seconds, requests) => {
      const clock = fakeDate();
      clock.advance(seconds);
      await requestAgain(delivery);
      await visitLine(webhook);
      expect(receiver.received).toHaveLength(requests);
    },
  );
});

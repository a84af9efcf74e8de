import { change } from "../../../../functions/deliveries/line/change-delivery.ts";
import type { Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import type { UnrecordedAttempt } from "../../../../functions/deliveries/line/delivery-queue.ts";
import { inserted } from "../../../../functions/deliveries/line/delivery-transitions.ts";
import { handler as send } from "../../../../functions/deliveries/sending/send.ts";
import { handler as sendSlow } from "../../../../functions/deliveries/sending/send-slow.ts";
import type { Webhook } from "../../../../functions/webhooks/webhook/webhook.ts";
import * as webhooks from "../../../../functions/webhooks/webhook/webhook-store.ts";
import {
  attempt,
  carry,
  failRecords,
  firstAttempt,
  requestAgain,
  visitLine,
  watchMessages,
} from "../../../support/attempts.ts";
import { failDynamo, interceptDynamo, interceptSqs, isCall, restoreAws } from "../../../support/aws-calls.ts";
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
} from "../../../support/deliveries.ts";
import { watchLog } from "../../../support/metrics.ts";
import { useReceiver } from "../../../support/receiver.ts";

/* Attempts whose first record fails. Nothing of them is written, so they are recorded later, without a second request. */

const receiver = useReceiver("test");
let webhook: Webhook;
beforeAll(prepareDeliveries);
beforeEach(async () => {
  ({ webhook } = await givenWebhook({ url: receiver.url }));
});
afterEach(async () => {
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

describe("an attempt whose row DynamoDB or its client rejects", () => {
  const rejections = {
    "DynamoDB rejects it": () =>
      Object.assign(new Error("Item is not valid"), { name: "ValidationException", $fault: "client" }),
    "its client rejects it": () => new Error("Unsupported type passed: [object Object]"),
  };
  test.each(Object.entries(rejections))("is recorded without what the receiver sent: %s", async (_, rejection) => {
    receiver.respondWith((_, response) =>
      response.writeHead(401, { "WWW-Authenticate": "basic", Server: "x" }).end("no"),
    );
    interceptDynamo(async ({ command, input }, send) => {
      const isRejected = command === "PutItemCommand" && JSON.stringify(input.Item).includes("response_excerpt");
      if (isRejected) throw rejection();
      return send();
    });
    const lines = watchLog();
    const delivery = newDelivery(webhook);
    await carry(delivery);
    const row = await rowOf(delivery);
    expect(row).toMatchObject({ status: "pending", attempt_count: 1 });
    expect(Object.keys(row.attempts?.[0] ?? {}).sort()).toEqual(
      ["at", "duration_ms", "error_code", "number", "status_code", "trigger"].sort(),
    );
    expect(lines.map(({ message }) => message)).toEqual(["response not recorded", "attempt"]);
    restoreAws();
    expect((await placesOf(webhook)).map(({ entry }) => entry)).toContain(row.place);
  });

  test("is recorded later without its headers when an earlier version has enqueued it with a name that no map may have", async () => {
    receiver.respondWith(500);
    const message = await sendUnrecorded(carried, newDelivery(webhook));
    const attempt = { ...message.attempt, response_headers: { constructor: "x", server: "y" } as never };
    await recordLater({ ...message, attempt });
    const [recorded] = (await rowOf(message.basis)).attempts ?? [];
    expect(recorded).toMatchObject({ status_code: 500 });
    expect(recorded).not.toHaveProperty("response_headers");
  });
});

describe("an attempt that can never be recorded", () => {
  const bug = new TypeError("x is not a function");

  test("is enqueued again twenty times, and then left to SQS, which moves it to the dead letters", async () => {
    const delivery = newDelivery(webhook);
    failRecords(bug);
    const sent = watchMessages();
    await carry(delivery);
    const next = () => sent.splice(0).map(({ message }) => message as UnrecordedAttempt);
    let [message] = next();
    for (let failures = 1; failures <= 20; failures++) {
      expect(message).toMatchObject({ kind: "unrecorded", failures });
      const expected = failures < 20 ? [] : [{ itemIdentifier: "m0" }];
      expect(await sendSlow(sqsEvent(message))).toEqual({ batchItemFailures: expected });
      if (failures < 20) [message] = next();
    }
    expect(next()).toEqual([]);
    // The cause is fixed, or it is redriven.
    restoreAws();
    await recordLater(message as UnrecordedAttempt);
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempt_count: 1 });
    expect(receiver.received).toHaveLength(1);
  });

  test.each<[string, Error]>([
    ["DynamoDB throttles", Object.assign(new Error("slow"), { name: "ThrottlingException", $fault: "client" })],
    ["DynamoDB does not respond", Object.assign(new Error("no response"), { name: "TimeoutError" })],
    ["DynamoDB fails", Object.assign(new Error("oops"), { name: "InternalServerError", $fault: "server" })],
    ["no connection is made", Object.assign(new Error("refused"), { code: "ECONNREFUSED" })],
  ])("does not include one of an outage, however long it lasts: %s", async (_, error) => {
    const message = { ...(await sendUnrecorded(carried, newDelivery(webhook))), failures: 20 };
    failRecords(error);
    const sent = watchMessages();
    for (let tries = 0; tries < 30; tries++) await recordLater(message);
    expect(sent).toMatchObject(Array(30).fill({ delaySeconds: 15, message: { failures: 20 } }));
  });
});

test.each<[string, string, string]>([
  ["its delivery", "GetItem", "deliveries"],
  ["its webhook", "GetItem", "webhooks"],
])("an attempt is enqueued again when %s cannot be read", async (_, command, table) => {
  const delivery = newDelivery(webhook);
  const message = await sendUnrecorded(carried, delivery);
  failDynamo((call) => isCall(call, command, table));
  const sent = watchMessages();
  await recordLater(message);
  expect(sent).toMatchObject([{ queue: "slowDeliveries", delaySeconds: 15, message }]);
  interceptSqs(() => Promise.reject(new Error("SQS is unavailable")));
  expect(await sendSlow(sqsEvent(message))).toEqual({ batchItemFailures: [{ itemIdentifier: "m0" }] });
  restoreAws();
  await recordLater(message);
  expect(receiver.received).toHaveLength(1);
  expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempt_count: 1 });
});

describe("what follows an attempt", () => {
  const hourAgo = new Date(Date.now() - 3_600_000).toISOString();
  const rules: [string, number, Delivery["status"], Partial<Webhook>, object][] = [
    [
      "410 disables the webhook",
      410,
      "failed",
      {},
      { disabled_at: expect.any(String), failing_since: expect.any(String) },
    ],
    ["a failure marks it as failing", 500, "pending", {}, { failing_since: expect.any(String) }],
    [
      "its owners are notified",
      500,
      "pending",
      { failing_since: hourAgo },
      { failing_notified_at: expect.any(String) },
    ],
    ["a success ends its failure", 200, "succeeded", { failing_since: hourAgo }, { failing_since: undefined }],
  ];
  const given = async (code: number, state: Partial<Webhook>) => {
    receiver.respondWith(code);
    await changeWebhook(webhook, { updated_by: "set", ...state });
    return newDelivery(webhook);
  };
  const stored = async () => ({ failing_since: undefined, ...(await webhooks.find(webhook.project_id, webhook.id)) });

  test.each(rules)(
    "is repeated when it fails, with the attempt in the log once: %s",
    async (_, code, status, state, expected) => {
      const delivery = await given(code, state);
      failDynamo((call) => isCall(call, "UpdateItem", "webhooks") || call.command === "TransactWriteItemsCommand");
      const sent = watchMessages();
      const lines = watchLog();
      expect(await attempt(delivery)).toBe(code === 200 ? "accepted" : "failed");
      expect(lines[0]).toMatchObject({ message: "attempt", attempt: 1 });
      const row = await rowOf(delivery);
      expect(row).toMatchObject({ status, attempt_count: 1 });
      restoreAws();
      const [later, ...others] = sent.filter(({ message }) => message.kind === "unrecorded");
      expect(later).toMatchObject({ delaySeconds: 15 });
      expect(others).toEqual([]);
      await recordLater(later?.message as UnrecordedAttempt);
      expect(await stored()).toMatchObject(expected);
      expect(await rowOf(delivery)).toEqual(row);
      expect(receiver.received).toHaveLength(1);
    },
  );

  test.each(rules)(
    "comes before the row, so that a crash in between repeats both: %s",
    async (_, code, _status, state, expected) => {
      const delivery = await given(code, state);
      failRecords();
      interceptSqs(() => Promise.reject(new Error("SQS is unavailable")));
      await expect(attempt(delivery)).rejects.toThrow("DynamoDB is unavailable");
      restoreAws();
      expect(await stored()).toMatchObject(expected);
      expect(await rowsOf(webhook)).toEqual([]);
    },
  );

  test("is repeated when the catch-up fails: until then the webhook fails, so that what waits is not left to its own time", async () => {
    const delivery = await given(200, { failing_since: hourAgo });
    await givenWaiting(webhook);
    failDynamo(({ input }) => JSON.stringify(input).includes("catch_up_at"));
    const sent = watchMessages();
    expect(await attempt(delivery)).toBe("accepted");
    restoreAws();
    expect(await stored()).toMatchObject({ failing_since: hourAgo });
    const later = sent.find(({ message }) => message.kind === "unrecorded");
    await recordLater(later?.message as UnrecordedAttempt);
    expect(await stored()).toMatchObject({ failing_since: undefined });
    expect(await wakeUpOf(webhook)).toHaveProperty("catch_up_at");
  });
});

import { createHmac, randomBytes } from "node:crypto";
import { DeleteCommand } from "@aws-sdk/lib-dynamodb";
import { jest } from "@jest/globals";
import { Webhook as Verifier } from "standardwebhooks";
import { makeAttempt } from "../../../functions/attempts/attempt.ts";
import type { Delivery, PendingDelivery, Trigger } from "../../../functions/deliveries/delivery.ts";
import { reschedule } from "../../../functions/deliveries/delivery-store.ts";
import { dynamo } from "../../../functions/platform/aws.ts";
import { tableName } from "../../../functions/platform/env.ts";
import { bodySignature } from "../../../functions/receivers/signature.ts";
import { generateSecret, type Webhook } from "../../../functions/webhooks/webhook.ts";
import * as webhooks from "../../../functions/webhooks/webhook-store.ts";
import { attemptOf, watchMessages } from "../../support/attempts.ts";
import {
  beforeHold,
  interceptDynamo,
  interceptSqs,
  type QueueBatch,
  restoreAws,
  watchQueue,
} from "../../support/aws-calls.ts";
import {
  changeSecrets,
  changeWebhook,
  dueAttempt,
  dueIds,
  givenDelivery,
  givenWebhook,
  prepareDeliveries,
  rowOf,
  takeDueAttempts,
} from "../../support/deliveries.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";

let receiver: Receiver;
/** A second receiver: the new URL of a changed webhook, or the target of a redirect. */
let next: Receiver | undefined;
let webhook: Webhook;
let secret: string;
let delivery: Delivery;
beforeAll(prepareDeliveries);
beforeEach(async () => {
  receiver = await startReceiver();
  ({ webhook, secret } = await givenWebhook({ url: receiver.url }));
  delivery = await givenDelivery(webhook);
});
afterEach(async () => {
  restoreAws();
  jest.restoreAllMocks();
  delete process.env.RETRY_SCHEDULE;
  await takeDueAttempts();
  await Promise.all([receiver.close(), next?.close()]);
  next = undefined;
});

const daysAgo = (days: number) => new Date(Date.now() - days * 24 * 3600_000).toISOString();
const webhookNow = async () => await webhooks.find(webhook.project_id, webhook.id);
const isDue = async () => (await dueIds(delivery.due_shard ?? -1)).includes(delivery.id);

/** Makes all attempts of a schedule without waits, one after the other. */
async function makeAllAttempts(): Promise<void> {
  let due = [dueAttempt(delivery)];
  while (due.length > 0) {
    await Promise.all(due.map(makeAttempt));
    due = await takeDueAttempts();
  }
}

describe("a successful attempt", () => {
  test("is recorded and finishes the delivery", async () => {
    receiver.respondWith((_, response) => response.writeHead(202).end("thank you"));
    await makeAttempt(dueAttempt(delivery));
    const { status, attempt_count, attempts, ...row } = await rowOf(delivery);
    expect({ status, attempt_count }).toEqual({ status: "succeeded", attempt_count: 1 });
    expect(attempts).toEqual([
      {
        number: 1,
        at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
        duration_ms: expect.any(Number),
        status_code: 202,
        response_excerpt: "thank you",
        trigger: "schedule",
      },
    ]);
    for (const field of ["next_attempt_at", "due_shard", "due_at"]) expect(row).not.toHaveProperty(field);
    expect(await isDue()).toBe(false);
    expect(await takeDueAttempts()).toEqual([]);
  });

  test("sends the stored body, with a signature that the Standard Webhooks library accepts", async () => {
    await makeAttempt(dueAttempt(delivery));
    const [request] = await receiver.waitFor(1);
    const { body = "", headers = {}, method } = request ?? {};
    expect(method).toBe("POST");
    expect(body).toBe(delivery.body);
    const { data } = new Verifier(secret).verify(body, headers as Record<string, string>) as { data: unknown };
    expect(data).toEqual({ commit: "c0ffee" });
  });

  test("sends exactly the headers of the contract, in this spelling", async () => {
    let raw: string[] = [];
    receiver.respondWith((_, response) => {
      raw = response.req.rawHeaders;
      response.end();
    });
    const before = Math.floor(Date.now() / 1000);
    await makeAttempt(dueAttempt(delivery));
    const names = raw.filter((_, index) => index % 2 === 0);
    const headers = Object.fromEntries(names.map((name, index) => [name, raw[2 * index + 1]]));
    expect(names).toHaveLength(Object.keys(headers).length);
    expect(headers).toEqual({
      Host: new URL(receiver.url).host,
      Connection: "keep-alive",
      "Accept-Encoding": "identity",
      "Content-Length": String(Buffer.byteLength(delivery.body)),
      "Content-Type": "application/json",
      "User-Agent": "Deployment-Webhooks/1.0",
      "X-Service-Event": "deploy.started",
      "X-Service-Delivery": delivery.id,
      "X-Service-Signature": `sha256=${createHmac("sha256", secret).update(delivery.body, "utf8").digest("hex")}`,
      "webhook-id": delivery.id,
      "webhook-timestamp": expect.stringMatching(/^\d{10}$/),
      "webhook-signature": expect.stringMatching(/^v1,[\w+/]{43}=$/),
    });
    const timestamp = Number(headers["webhook-timestamp"]);
    expect(timestamp).toBeGreaterThanOrEqual(before);
    expect(timestamp).toBeLessThanOrEqual(Date.now() / 1000);
  });
});

describe("a failed attempt", () => {
  test("is recorded, and the next attempt is enqueued with its delay", async () => {
    const sent = watchMessages();
    receiver.respondWith((_, response) => response.writeHead(503).end("down"));
    // A wait of 4.4 s.
    jest.spyOn(Math, "random").mockReturnValue(0.2);
    const before = Date.now();
    await makeAttempt(dueAttempt(delivery));
    const after = Date.now();
    const row = await rowOf(delivery);
    expect(row).toMatchObject({ status: "pending", attempt_count: 1 });
    expect(row.attempts).toMatchObject([
      { number: 1, status_code: 503, error_code: "http_status", response_excerpt: "down" },
    ]);
    const planned = Date.parse(row.next_attempt_at ?? "");
    expect(planned).toBeGreaterThanOrEqual(before + 4_400);
    expect(planned).toBeLessThanOrEqual(after + 4_400);
    expect(Date.parse(row.due_at ?? "") - planned).toBe(120_000);
    expect(await isDue()).toBe(true);
    // Rounded up, because a message that is early would be an early attempt.
    expect(sent).toEqual([{ lane: "normal", delaySeconds: 5, group: webhook.project_id, message: dueAttempt(row, 2) }]);
  });

  test("leaves a next attempt beyond the queue's maximum delay to the sweep, without a grace period", async () => {
    process.env.RETRY_SCHEDULE = "7200";
    const batches = watchQueue();
    receiver.respondWith(500);
    await makeAttempt(dueAttempt(delivery));
    const { next_attempt_at, due_at = "" } = await rowOf(delivery);
    expect(due_at).toBe(next_attempt_at);
    expect(Date.parse(due_at) - Date.now()).toBeGreaterThan(7200 * 0.8 * 1000 - 10_000);
    expect(await isDue()).toBe(true);
    expect(batches).toEqual([]);
  });

  test.each([
    ["900", [900]],
    ["901", []],
  ])("with a wait of %s s enqueues messages with the delays %j", async (schedule, delays) => {
    process.env.RETRY_SCHEDULE = schedule;
    jest.spyOn(Math, "random").mockReturnValue(0.5);
    const batches = watchQueue();
    receiver.respondWith(500);
    await makeAttempt(dueAttempt(delivery));
    expect(batches.flatMap(({ Entries }) => Entries.map(({ DelaySeconds }) => DelaySeconds))).toEqual(delays);
  });

  test("is retried with the same delivery id and body until the schedule is exhausted", async () => {
    process.env.RETRY_SCHEDULE = "0,0";
    receiver.respondWith(500);
    await makeAllAttempts();
    const row = await rowOf(delivery);
    expect(row).toMatchObject({ status: "failed", attempt_count: 3 });
    expect(row.attempts?.map(({ number }) => number)).toEqual([1, 2, 3]);
    expect(await isDue()).toBe(false);
    expect(receiver.received).toHaveLength(3);
    for (const { headers, body } of receiver.received) {
      expect(headers).toMatchObject({ "x-service-delivery": delivery.id, "webhook-id": delivery.id });
      expect(body).toBe(delivery.body);
    }
    expect((await webhookNow())?.disabled_at).toBeUndefined();
  });

  test("without a response is recorded with its error code", async () => {
    await receiver.close();
    await makeAttempt(dueAttempt(delivery));
    const [attempt] = (await rowOf(delivery)).attempts ?? [];
    expect(attempt).toMatchObject({ number: 1, error_code: "connection_refused" });
    expect(attempt).not.toHaveProperty("status_code");
  });

  test("can be followed by a success", async () => {
    process.env.RETRY_SCHEDULE = "0,0";
    receiver.respondWith((_, response) => response.writeHead(receiver.received.length < 2 ? 500 : 200).end());
    await makeAllAttempts();
    expect(await rowOf(delivery)).toMatchObject({
      status: "succeeded",
      attempts: [{ status_code: 500 }, { status_code: 200 }],
    });
  });

  test("is not retried before the time of Retry-After", async () => {
    const batches = watchQueue();
    receiver.respondWith((_, response) => response.writeHead(429, { "Retry-After": "600" }).end());
    await makeAttempt(dueAttempt(delivery));
    expect(batches[0]?.Entries[0]?.DelaySeconds).toBe(600);
    const { next_attempt_at = "", attempts = [] } = await rowOf(delivery);
    expect(Date.parse(next_attempt_at) - Date.parse(attempts[0]?.at ?? "")).toBeGreaterThanOrEqual(600_000);
  });
});

describe("the jitter of a retry", () => {
  test.each([
    [0, 4_000],
    [0.5, 5_000],
    [1, 6_000],
  ])("for a random number of %p makes the first wait of 5 s last %i ms", async (random, waitMs) => {
    receiver.respondWith(500);
    jest.spyOn(Math, "random").mockReturnValue(random);
    const before = Date.now();
    await makeAttempt(dueAttempt(delivery));
    const planned = Date.parse((await rowOf(delivery)).next_attempt_at ?? "");
    expect(planned).toBeGreaterThanOrEqual(before + waitMs);
    expect(planned).toBeLessThanOrEqual(Date.now() + waitMs);
  });

  test("differs between deliveries that fail together", async () => {
    receiver.respondWith(500);
    const second = await givenDelivery(webhook);
    const random = jest.spyOn(Math, "random").mockReturnValue(0);
    await makeAttempt(dueAttempt(delivery));
    random.mockReturnValue(1);
    await makeAttempt(dueAttempt(second));
    const [first, later] = await Promise.all([rowOf(delivery), rowOf(second)]);
    const apartMs = Date.parse(later.next_attempt_at ?? "") - Date.parse(first.next_attempt_at ?? "");
    expect(apartMs).toBeGreaterThanOrEqual(2_000);
  });
});

describe("with the default schedule, a receiver that returns", () => {
  /** The waits of the default schedule without jitter, in seconds. */
  const waits = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000];

  test.each([300, 302, 307, 400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 451, 500, 501, 502, 503, 504, 599])(
    "%i gets all eight attempts of the schedule",
    async (status) => {
      receiver.respondWith(status);
      jest.spyOn(Math, "random").mockReturnValue(0.5);
      for (const [index, seconds] of waits.entries()) {
        const before = Date.now();
        await makeAttempt(dueAttempt(delivery, index + 1));
        const { status, next_attempt_at = "" } = await rowOf(delivery);
        expect(status).toBe("pending");
        expect(Date.parse(next_attempt_at)).toBeGreaterThanOrEqual(before + seconds * 1000);
        expect(Date.parse(next_attempt_at)).toBeLessThanOrEqual(Date.now() + seconds * 1000);
      }
      await makeAttempt(dueAttempt(delivery, 8));
      expect(await rowOf(delivery)).toMatchObject({ status: "failed", attempt_count: 8 });
      expect(receiver.received).toHaveLength(8);
      expect(await webhookNow()).not.toHaveProperty("disabled_at");
    },
  );
});

test.each([301, 302, 303, 307, 308])("a redirect with %i is not followed", async (status) => {
  next = await startReceiver();
  const { url } = next;
  receiver.respondWith((_, response) => response.writeHead(status, { Location: url }).end());
  await makeAttempt(dueAttempt(delivery));
  expect(receiver.received).toHaveLength(1);
  expect(next.received).toEqual([]);
  const [attempt] = (await rowOf(delivery)).attempts ?? [];
  expect(attempt).toMatchObject({ status_code: status, error_code: "http_status", detail: url });
});

describe("the trigger", () => {
  const disabled = { disabled_at: daysAgo(1), disabled_reason: "failing" } as const;
  const open = { failing_since: daysAgo(1), probe_at: daysAgo(-1) };

  test.each<[Trigger, string, Partial<Webhook>, Partial<Delivery>]>([
    ["schedule", "disabled", disabled, { status: "held", attempt_count: 0 }],
    ["recover", "disabled", disabled, { status: "held", attempt_count: 0 }],
    ["redeliver", "disabled", disabled, { status: "succeeded" }],
    ["test", "disabled", disabled, { status: "succeeded" }],
    ["schedule", "failing and not due for a probe", open, { status: "pending", attempt_count: 0 }],
    ["recover", "failing and not due for a probe", open, { status: "pending", attempt_count: 0 }],
    ["redeliver", "failing and not due for a probe", open, { status: "succeeded" }],
    ["test", "failing and not due for a probe", open, { status: "succeeded" }],
  ])("%s, for a webhook that is %s, decides whether the delivery is sent", async (trigger, _, health, expected) => {
    await changeWebhook(webhook, health);
    delivery = await givenDelivery(webhook, trigger === "schedule" ? {} : { trigger });
    await makeAttempt(dueAttempt(delivery));
    expect(receiver.received).toHaveLength(expected.status === "succeeded" ? 1 : 0);
    expect(await rowOf(delivery)).toMatchObject(expected);
  });
});

describe("an attempt ends only after its message is enqueued", () => {
  /** Delays the calls to SQS. Returns how many messages are enqueued. */
  function slowQueue(): () => number {
    let enqueued = 0;
    interceptSqs(async ({ input }, send) => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      const output = await send();
      enqueued += (input as unknown as QueueBatch).Entries.length;
      return output;
    });
    return () => enqueued;
  }
  const requestAnother = () => reschedule(delivery.webhook_id, delivery.id, new Date(), 120);

  test.each<[string, () => Promise<void> | void]>([
    ["a retry", () => receiver.respondWith(500)],
    ["a parked attempt", () => changeWebhook(webhook, { failing_since: daysAgo(0.01), probe_at: daysAgo(-0.0001) })],
    [
      "an attempt requested during another",
      () =>
        receiver.respondWith(async (_, response) => {
          await requestAnother();
          response.end();
        }),
    ],
  ])("%s", async (_, prepare) => {
    const enqueued = slowQueue();
    await prepare();
    await makeAttempt(dueAttempt(delivery));
    expect(enqueued()).toBe(1);
  });
});

describe("a redelivery that is requested after the sender has read the row", () => {
  beforeEach(() => {
    let isRequested = false;
    interceptDynamo(async ({ command }, send) => {
      const output = await send();
      if (command !== "BatchGetItemCommand" || isRequested) return output;
      isRequested = true;
      await reschedule(delivery.webhook_id, delivery.id, new Date(), 120);
      return output;
    });
  });

  test("is sent when the webhook is disabled, and the delivery is not held", async () => {
    await changeWebhook(webhook, { disabled_at: daysAgo(1), disabled_reason: "manual" });
    await makeAttempt(attemptOf(delivery));
    expect(receiver.received).toHaveLength(1);
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempts: [{ trigger: "redeliver" }] });
  });

  test("keeps the delivery out of the parking, so that its own message sends it", async () => {
    await changeWebhook(webhook, { failing_since: daysAgo(0.01), probe_at: daysAgo(-1) });
    await makeAttempt(attemptOf(delivery));
    expect(receiver.received).toEqual([]);
    expect(await rowOf(delivery)).toMatchObject({ trigger: "redeliver", due_shard: delivery.due_shard });
    await makeAttempt(attemptOf(delivery));
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempts: [{ trigger: "redeliver" }] });
  });
});

describe("a webhook that is enabled after the sender has read it as disabled", () => {
  /** Changes the webhook before the first transaction, which would hold the delivery. */
  const enable = () => webhooks.update(webhook.project_id, webhook.id, { enabled: true }, new Date().toISOString());
  const disable = () => webhooks.update(webhook.project_id, webhook.id, { enabled: false }, new Date().toISOString());
  const requests = {
    "a row": async () => attemptOf(delivery),
    "a delivery carried by its message": async () => {
      await dynamo().send(
        new DeleteCommand({
          TableName: tableName("deliveries"),
          Key: { webhook_id: delivery.webhook_id, id: delivery.id },
        }),
      );
      return { ...attemptOf(delivery), carried: delivery as PendingDelivery };
    },
  };

  test.each(Object.entries(requests))("is sent %s, which is not held", async (_, request) => {
    await disable();
    const attempt = await request();
    beforeHold(enable);
    await makeAttempt(attempt);
    expect(receiver.received).toHaveLength(1);
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempt_count: 1 });
  });

  test.each(Object.entries(requests))("and disabled again holds %s", async (_, request) => {
    await changeWebhook(webhook, { disabled_at: daysAgo(1), disabled_reason: "failing" });
    const attempt = await request();
    beforeHold(async () => {
      await enable();
      await disable();
    });
    await makeAttempt(attempt);
    expect(receiver.received).toEqual([]);
    expect((await rowOf(delivery)).status).toBe("held");
  });
});

describe("a message", () => {
  test.each([
    ["for an attempt that was made before", 1],
    ["for an attempt that is not the next", 3],
  ])("%s sends nothing", async (_, number) => {
    receiver.respondWith(500);
    await makeAttempt(dueAttempt(delivery));
    const row = await rowOf(delivery);
    await makeAttempt(dueAttempt(delivery, number));
    expect(receiver.received).toHaveLength(1);
    expect(await rowOf(delivery)).toEqual(row);
  });

  test.each<Delivery["status"]>(["succeeded", "failed", "held", "cancelled"])(
    "for a delivery that is %s sends nothing",
    async (status) => {
      const over = await givenDelivery(webhook, { status });
      await makeAttempt(dueAttempt(over));
      expect(receiver.received).toEqual([]);
      expect(await rowOf(over)).toEqual(over);
    },
  );

  test("for a delivery that does not exist sends nothing", async () => {
    await makeAttempt({ ...dueAttempt(delivery), delivery_id: "01930000-0000-7000-8000-000000000000" });
    expect(receiver.received).toEqual([]);
  });
});

describe("a webhook that has changed since the event", () => {
  test("was deleted: sends nothing and cancels the delivery", async () => {
    await webhooks.remove(webhook.project_id, webhook.id);
    await makeAttempt(dueAttempt(delivery));
    expect(receiver.received).toEqual([]);
    expect(await rowOf(delivery)).toMatchObject({ status: "cancelled", attempt_count: 0 });
    expect(await isDue()).toBe(false);
  });

  test("was disabled: sends nothing and holds the delivery", async () => {
    await changeWebhook(webhook, { disabled_at: daysAgo(1), disabled_reason: "failing" });
    await makeAttempt(dueAttempt(delivery));
    expect(receiver.received).toEqual([]);
    expect(await rowOf(delivery)).toMatchObject({ status: "held", attempt_count: 0 });
    expect(await isDue()).toBe(false);
  });

  test("has a new URL and secret: the next attempt uses them", async () => {
    process.env.RETRY_SCHEDULE = "0";
    receiver.respondWith(500);
    await makeAttempt(dueAttempt(delivery));
    next = await startReceiver();
    const current = generateSecret(randomBytes(32));
    await changeWebhook(webhook, { url: next.url });
    await changeSecrets(webhook, { current });
    await makeAttempt(dueAttempt(delivery, 2));
    expect(receiver.received).toHaveLength(1);
    expect(next.received[0]?.headers["x-service-signature"]).toBe(bodySignature(delivery.body, current));
  });

  test.each([
    ["not yet expired: signs as well", 60_000, true],
    ["expired: does not sign", -1, false],
  ])("has a previous secret, %s", async (_, expiresInMs, isSigning) => {
    const current = generateSecret(randomBytes(32));
    const previous_1_expires_at = new Date(Date.now() + expiresInMs).toISOString();
    await changeSecrets(webhook, { current, previous_1: secret, previous_1_expires_at });
    await makeAttempt(dueAttempt(delivery));
    const { headers = {} } = receiver.received[0] ?? {};
    expect(headers["x-service-signature"]).toBe(bodySignature(delivery.body, current));
    expect(headers["x-service-signature-previous"]).toBe(isSigning ? bodySignature(delivery.body, secret) : undefined);
    expect(String(headers["webhook-signature"]).split(" ")).toHaveLength(isSigning ? 2 : 1);
  });
});

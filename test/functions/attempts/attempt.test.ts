import { createHmac, randomBytes } from "node:crypto";
import { Webhook as Verifier } from "standardwebhooks";
import { makeAttempt } from "../../../functions/attempts/attempt.ts";
import type { Delivery } from "../../../functions/deliveries/delivery.ts";
import { bodySignature } from "../../../functions/receivers/signature.ts";
import { generateSecret, type Webhook } from "../../../functions/webhooks/webhook.ts";
import * as webhooks from "../../../functions/webhooks/webhook-store.ts";
import { restoreAws, watchQueue } from "../../support/aws-calls.ts";
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
/** Where the webhook leads after a change. */
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
  delete process.env.RETRY_SCHEDULE;
  await takeDueAttempts();
  await Promise.all([receiver.close(), next?.close()]);
  next = undefined;
});

const daysAgo = (days: number) => new Date(Date.now() - days * 24 * 3600_000).toISOString();
const webhookNow = async () => await webhooks.find(webhook.project_id, webhook.id);
const isDue = async () => (await dueIds(delivery.due_shard ?? -1)).includes(delivery.id);

/** Makes the attempts that a schedule without waits leads to, one after the other. */
async function makeAllAttempts(): Promise<void> {
  let due = [dueAttempt(delivery)];
  while (due.length > 0) {
    await Promise.all(due.map(makeAttempt));
    due = await takeDueAttempts();
  }
}

describe("a successful attempt", () => {
  test("is recorded, and the delivery is over", async () => {
    receiver.answerWith((_, response) => response.writeHead(202).end("thank you"));
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

  test("carries the headers of the contract and of Standard Webhooks, and the stored body", async () => {
    await makeAttempt(dueAttempt(delivery));
    const [request] = await receiver.waitFor(1);
    const { body = "", headers = {}, method } = request ?? {};
    expect(method).toBe("POST");
    expect(body).toBe(delivery.body);
    expect(headers).toMatchObject({
      "content-type": "application/json",
      "user-agent": "Deployment-Webhooks/1.0",
      "x-service-signature": `sha256=${createHmac("sha256", secret).update(body, "utf8").digest("hex")}`,
      "x-service-event": "deploy.started",
      "x-service-delivery": delivery.id,
      "webhook-id": delivery.id,
    });
    expect(headers).not.toHaveProperty("x-service-signature-previous");
    const { data } = new Verifier(secret).verify(body, headers as Record<string, string>) as { data: unknown };
    expect(data).toEqual({ commit: "c0ffee" });
  });
});

describe("a failed attempt", () => {
  test("is recorded, and the next one is queued for its time", async () => {
    const batches = watchQueue();
    receiver.answerWith((_, response) => response.writeHead(503).end("down"));
    const before = Date.now();
    await makeAttempt(dueAttempt(delivery));
    const after = Date.now();
    const row = await rowOf(delivery);
    expect(row).toMatchObject({ status: "pending", attempt_count: 1 });
    expect(row.attempts).toMatchObject([
      { number: 1, status_code: 503, error_code: "http_status", response_excerpt: "down" },
    ]);
    const planned = Date.parse(row.next_attempt_at ?? "");
    expect(planned).toBeGreaterThanOrEqual(before + 4_000);
    expect(planned).toBeLessThanOrEqual(after + 6_000);
    expect(Date.parse(row.due_at ?? "") - planned).toBe(120_000);
    expect(await isDue()).toBe(true);
    const [entry] = batches.flatMap(({ Entries }) => Entries);
    expect(JSON.parse(entry?.MessageBody ?? "")).toEqual(dueAttempt(delivery, 2));
    expect([4, 5, 6]).toContain(entry?.DelaySeconds);
  });

  test("whose next one is further away than the queue can delay is left to the sweep, on time", async () => {
    process.env.RETRY_SCHEDULE = "7200";
    const batches = watchQueue();
    receiver.answerWith(500);
    await makeAttempt(dueAttempt(delivery));
    const { next_attempt_at, due_at = "" } = await rowOf(delivery);
    expect(due_at).toBe(next_attempt_at);
    expect(Date.parse(due_at) - Date.now()).toBeGreaterThan(7200 * 0.8 * 1000 - 10_000);
    expect(await isDue()).toBe(true);
    expect(batches).toEqual([]);
  });

  test("repeats under the same delivery id and with the same body, until the schedule is exhausted", async () => {
    process.env.RETRY_SCHEDULE = "0,0";
    receiver.answerWith(500);
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

  test("without an answer is recorded with what went wrong", async () => {
    await receiver.close();
    await makeAttempt(dueAttempt(delivery));
    const [attempt] = (await rowOf(delivery)).attempts ?? [];
    expect(attempt).toMatchObject({ number: 1, error_code: "connection_refused" });
    expect(attempt).not.toHaveProperty("status_code");
  });

  test("is followed by a success", async () => {
    process.env.RETRY_SCHEDULE = "0,0";
    receiver.answerWith((_, response) => response.writeHead(receiver.received.length < 2 ? 500 : 200).end());
    await makeAllAttempts();
    expect(await rowOf(delivery)).toMatchObject({
      status: "succeeded",
      attempts: [{ status_code: 500 }, { status_code: 200 }],
    });
  });

  test("is not repeated before the time that the receiver asks for", async () => {
    const batches = watchQueue();
    receiver.answerWith((_, response) => response.writeHead(429, { "Retry-After": "600" }).end());
    await makeAttempt(dueAttempt(delivery));
    expect(batches[0]?.Entries[0]?.DelaySeconds).toBe(600);
    const { next_attempt_at = "", attempts = [] } = await rowOf(delivery);
    expect(Date.parse(next_attempt_at) - Date.parse(attempts[0]?.at ?? "")).toBeGreaterThanOrEqual(600_000);
  });
});

describe("a message", () => {
  test.each([
    ["of an attempt that was made", 1],
    ["of an attempt that is not next", 3],
  ])("%s sends nothing", async (_, number) => {
    receiver.answerWith(500);
    await makeAttempt(dueAttempt(delivery));
    const row = await rowOf(delivery);
    await makeAttempt(dueAttempt(delivery, number));
    expect(receiver.received).toHaveLength(1);
    expect(await rowOf(delivery)).toEqual(row);
  });

  test.each<Delivery["status"]>(["succeeded", "failed", "held", "cancelled"])(
    "of a delivery that is %s sends nothing",
    async (status) => {
      const over = await givenDelivery(webhook, { status });
      await makeAttempt(dueAttempt(over));
      expect(receiver.received).toEqual([]);
      expect(await rowOf(over)).toEqual(over);
    },
  );

  test("of a delivery that does not exist sends nothing", async () => {
    await makeAttempt({ ...dueAttempt(delivery), delivery_id: "01930000-0000-7000-8000-000000000000" });
    expect(receiver.received).toEqual([]);
  });
});

describe("a webhook that changed since the event", () => {
  test("deleted: nothing is sent and the delivery is cancelled", async () => {
    await webhooks.remove(webhook.project_id, webhook.id);
    await makeAttempt(dueAttempt(delivery));
    expect(receiver.received).toEqual([]);
    expect(await rowOf(delivery)).toMatchObject({ status: "cancelled", attempt_count: 0 });
    expect(await isDue()).toBe(false);
  });

  test("disabled: nothing is sent and the delivery is held", async () => {
    await changeWebhook(webhook, { disabled_at: daysAgo(1), disabled_reason: "failing" });
    await makeAttempt(dueAttempt(delivery));
    expect(receiver.received).toEqual([]);
    expect(await rowOf(delivery)).toMatchObject({ status: "held", attempt_count: 0 });
    expect(await isDue()).toBe(false);
  });

  test("another URL and secret: the next attempt uses them", async () => {
    process.env.RETRY_SCHEDULE = "0";
    receiver.answerWith(500);
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
    ["not yet expired: it signs too", 60_000, true],
    ["expired: it signs no more", -1, false],
  ])("a previous secret, %s", async (_, expiresInMs, isSigning) => {
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

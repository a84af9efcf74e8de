import type http from "node:http";
import { makeAttempt } from "../../../functions/attempts/attempt.ts";
import { handler } from "../../../functions/attempts/send.ts";
import type { PendingDelivery } from "../../../functions/deliveries/delivery.ts";
import * as deliveries from "../../../functions/deliveries/delivery-store.ts";
import type { Webhook } from "../../../functions/webhooks/webhook.ts";
import * as webhooks from "../../../functions/webhooks/webhook-store.ts";
import {
  attemptOf,
  beforeRecords,
  carriedDelivery,
  firstAttempt,
  receivedAgain,
  watchMessages,
} from "../../support/attempts.ts";
import { interceptDynamo, restoreAws, watchDynamo } from "../../support/aws-calls.ts";
import {
  changeWebhook,
  dueAttempt,
  dueIds,
  givenWebhook,
  prepareDeliveries,
  rowOf,
  rowsOf,
  sqsEvent,
  takeDueAttempts,
} from "../../support/deliveries.ts";
import { eventually } from "../../support/eventually.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";

/* The first attempt of a delivery that its message carries, and that has no row before. */

const allDone = { batchItemFailures: [] };

let receiver: Receiver;
let webhook: Webhook;
let delivery: PendingDelivery;
beforeAll(prepareDeliveries);
beforeEach(async () => {
  receiver = await startReceiver();
  ({ webhook } = await givenWebhook({ url: receiver.url }));
  delivery = carriedDelivery(webhook);
});
afterEach(async () => {
  restoreAws();
  delete process.env.RETRY_SCHEDULE;
  await takeDueAttempts();
  await receiver.close();
});

const receive = async (event = sqsEvent(firstAttempt(delivery))) => expect(await handler(event)).toEqual(allDone);
const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
const isDue = async () => (await dueIds(delivery.due_shard)).includes(delivery.id);

/** Runs `change` once, after the sender has read its rows. */
function afterRead(change: () => Promise<unknown>): void {
  let isChanged = false;
  interceptDynamo(async ({ command }, send) => {
    const output = await send();
    if (command === "BatchGetItemCommand" && !isChanged) {
      isChanged = true;
      await change();
    }
    return output;
  });
}

test("a success writes one row, which is not in the index", async () => {
  const sent = watchMessages();
  const calls = watchDynamo();
  await receive();
  expect(calls.filter(({ command }) => command !== "BatchGetItemCommand")).toEqual([
    { command: "PutItemCommand", units: 1 },
  ]);
  const { status, attempts, attempt_count, ...row } = await rowOf(delivery);
  expect({ status, attempt_count }).toEqual({ status: "succeeded", attempt_count: 1 });
  expect(attempts).toEqual([
    {
      number: 1,
      at: expect.stringMatching(/Z$/),
      duration_ms: expect.any(Number),
      status_code: 200,
      response_excerpt: "ok",
      trigger: "schedule",
    },
  ]);
  const { next_attempt_at, due_at, due_shard, status: _, attempt_count: __, ...kept } = delivery;
  expect(row).toEqual({ ...kept, sending_id: expect.any(String) });
  expect(await isDue()).toBe(false);
  expect(receiver.received).toMatchObject([{ body: delivery.body, headers: { "webhook-id": delivery.id } }]);
  expect(sent).toEqual([]);
});

test("a failure writes a pending row with the time of the retry, and enqueues the retry", async () => {
  receiver.respondWith(503);
  const sent = watchMessages();
  const calls = watchDynamo();
  await receive();
  // The row with its index entry, and the webhook, whose first failure this is.
  expect(calls).toEqual([
    { command: "BatchGetItemCommand", units: 3 },
    { command: "PutItemCommand", units: 2 },
    { command: "UpdateItemCommand", units: 1 },
  ]);
  const row = await rowOf(delivery);
  expect(row).toMatchObject({ status: "pending", attempt_count: 1, attempts: [{ number: 1, status_code: 503 }] });
  const { next_attempt_at = "", due_at = "" } = row;
  expect(Date.parse(next_attempt_at)).toBeGreaterThan(Date.parse(row.attempts?.[0]?.at ?? "") + 3_999);
  expect(Date.parse(due_at) - Date.parse(next_attempt_at)).toBe(120_000);
  expect(await isDue()).toBe(true);
  expect(sent).toMatchObject([{ lane: "normal", message: dueAttempt(row, 2) }]);
});

test("a failure without a retry writes a failed row, which is not in the index", async () => {
  process.env.RETRY_SCHEDULE = "7200";
  receiver.respondWith(410);
  await receive();
  expect(await rowOf(delivery)).toMatchObject({ status: "failed", attempt_count: 1 });
  expect(await isDue()).toBe(false);
});

test("of a deleted webhook sends and writes nothing", async () => {
  await webhooks.remove(webhook.project_id, webhook.id);
  await receive();
  expect(receiver.received).toEqual([]);
  expect(await rowsOf(webhook)).toEqual([]);
});

test("of a disabled webhook writes a held row", async () => {
  await changeWebhook(webhook, { disabled_at: minutesAgo(1), disabled_reason: "manual" });
  const sent = watchMessages();
  await receive();
  expect(receiver.received).toEqual([]);
  const { next_attempt_at, due_at, due_shard, ...kept } = delivery;
  expect(await rowOf(delivery)).toEqual({ ...kept, status: "held" });
  expect(sent).toEqual([]);
});

describe("received again", () => {
  test("writes the row before it sends", async () => {
    const seen: unknown[] = [];
    receiver.respondWith(async (_, response) => {
      seen.push(await rowOf(delivery));
      response.end();
    });
    await receive(receivedAgain(firstAttempt(delivery)));
    expect(seen).toMatchObject([{ status: "pending", attempt_count: 0, sending_id: expect.any(String) }]);
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempt_count: 1 });
    expect(await isDue()).toBe(false);
  });

  test.each([200, 410])("after its attempt (%i) was recorded sends nothing", async (code) => {
    receiver.respondWith(code);
    await receive();
    const row = await rowOf(delivery);
    await receive(receivedAgain(firstAttempt(delivery)));
    expect(receiver.received).toHaveLength(1);
    expect(await rowOf(delivery)).toEqual(row);
  });

  test("after a failure leaves the retry to its own message", async () => {
    receiver.respondWith(500);
    await receive();
    const row = await rowOf(delivery);
    await receive(receivedAgain(firstAttempt(delivery)));
    expect(receiver.received).toHaveLength(1);
    expect(await rowOf(delivery)).toEqual(row);
  });

  test("twice at the same time sends one request", async () => {
    const again = () => receive(receivedAgain(firstAttempt(delivery)));
    await Promise.all([again(), again(), again()]);
    expect(receiver.received).toHaveLength(1);
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempt_count: 1 });
  });

  test("sends the row that another sender has inserted after this one read", async () => {
    afterRead(() => deliveries.insert(delivery));
    await receive(receivedAgain(firstAttempt(delivery)));
    expect(receiver.received).toHaveLength(1);
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempt_count: 1 });
  });
});

describe("two senders at the same time", () => {
  let waiting: http.ServerResponse[];
  beforeEach(() => {
    waiting = [];
    receiver.respondWith((_, response) => void waiting.push(response));
  });

  /** Makes both attempts; the second request gets its response after the first is recorded. */
  async function inOrder(first: number, second: number) {
    const request = { ...attemptOf(delivery), carried: delivery };
    const both = [makeAttempt(request), makeAttempt(request)];
    await receiver.waitFor(2);
    waiting[0]?.writeHead(first).end();
    await eventually(async () => expect(await rowOf(delivery)).toMatchObject({ attempt_count: 1 }));
    waiting[1]?.writeHead(second).end();
    await Promise.all(both);
    return rowOf(delivery);
  }

  test.each([
    [200, 500],
    [500, 200],
    [200, 200],
  ])("that get %i and then %i record both attempts, succeed and send nothing more", async (first, second) => {
    const sent = watchMessages();
    const row = await inOrder(first, second);
    expect(row).toMatchObject({
      status: "succeeded",
      attempt_count: 2,
      attempts: [
        { number: 1, status_code: first },
        { number: 2, status_code: second },
      ],
    });
    for (const field of ["due_at", "due_shard", "next_attempt_at"]) expect(row).not.toHaveProperty(field);
    expect(await isDue()).toBe(false);
    receiver.respondWith(200);
    // Also the message of a retry that was planned by the failure.
    for (const { message } of sent) await handler(sqsEvent(message));
    expect(receiver.received).toHaveLength(2);
  });

  test("that both fail record both attempts, and the retry schedule stays as long", async () => {
    process.env.RETRY_SCHEDULE = "60,600";
    const sent = watchMessages();
    const row = await inOrder(500, 502);
    expect(row).toMatchObject({ status: "pending", attempt_count: 2, attempts_before_schedule: 1 });
    expect(row.attempts).toMatchObject([
      { number: 1, status_code: 500 },
      { number: 2, status_code: 502 },
    ]);
    // The time of the first failure counts, and one message names the next attempt.
    const waitMs = Date.parse(row.next_attempt_at ?? "") - Date.parse(row.attempts?.[0]?.at ?? "");
    expect(waitMs).toBeLessThan(80_000);
    expect(sent.map(({ message }) => message)).toEqual([dueAttempt(row, 2), dueAttempt(row, 3)]);

    receiver.respondWith(500);
    await makeAttempt(attemptOf(row, 2));
    expect(receiver.received).toHaveLength(2);
    await makeAttempt(attemptOf(row, 3));
    expect(await rowOf(delivery)).toMatchObject({ status: "pending", attempt_count: 3 });
    await makeAttempt(attemptOf(row, 4));
    expect(await rowOf(delivery)).toMatchObject({ status: "failed", attempt_count: 4 });
  });

  test("when a redelivery is requested between them, a late success does not end it", async () => {
    const sent = watchMessages();
    const request = { ...attemptOf(delivery), carried: delivery };
    const both = [makeAttempt(request), makeAttempt(request)];
    await receiver.waitFor(2);
    waiting[0]?.writeHead(200).end();
    await eventually(async () => expect(await rowOf(delivery)).toMatchObject({ status: "succeeded" }));
    await deliveries.reschedule(webhook.id, delivery.id, new Date(), 120);
    waiting[1]?.writeHead(200).end();
    await Promise.all(both);
    const row = await rowOf(delivery);
    expect(row).toMatchObject({ status: "pending", trigger: "redeliver", attempt_count: 2 });
    expect(sent.map(({ message }) => message)).toEqual([dueAttempt(row, 3)]);
    receiver.respondWith(200);
    await makeAttempt(attemptOf(row, 3));
    expect(await rowOf(delivery)).toMatchObject({
      status: "succeeded",
      attempts: [{}, {}, { trigger: "redeliver" }],
    });
  });
});

test("a record that the SDK repeats, because its response was lost, counts once", async () => {
  receiver.respondWith(500);
  const sent = watchMessages();
  let isRepeated = false;
  interceptDynamo(async ({ command }, send) => {
    if (command !== "PutItemCommand" || isRepeated) return send();
    isRepeated = true;
    await send();
    return send();
  });
  await receive();
  const row = await rowOf(delivery);
  expect(row).toMatchObject({ attempt_count: 1, attempts: [{ number: 1 }] });
  expect(sent.map(({ message }) => message)).toEqual([dueAttempt(row, 2)]);
});

test("a redelivery that is requested in front of the record is sent after it", async () => {
  await deliveries.insert(delivery);
  let isRequested = false;
  beforeRecords(async () => {
    if (isRequested) return;
    isRequested = true;
    await deliveries.reschedule(webhook.id, delivery.id, new Date(), 120);
  });
  const sent = watchMessages();
  await receive();
  const row = await rowOf(delivery);
  expect(row).toMatchObject({ status: "pending", trigger: "redeliver", attempt_count: 1, attempts_before_schedule: 1 });
  expect(sent.map(({ message }) => message)).toMatchObject([{ kind: "due", delivery_id: delivery.id, attempt: 2 }]);
});

import type http from "node:http";
import { jest } from "@jest/globals";
import { makeAttempt } from "../../../functions/attempts/attempt.ts";
import { KeyedSemaphore } from "../../../functions/attempts/keyed-semaphore.ts";
import { handler as send } from "../../../functions/attempts/send.ts";
import { handler as sendSlow } from "../../../functions/attempts/send-slow.ts";
import { markSlow, noteDuration, SLOW_AFTER_MS } from "../../../functions/attempts/slow-mark.ts";
import * as deliveries from "../../../functions/deliveries/delivery-store.ts";
import type { Webhook } from "../../../functions/webhooks/webhook.ts";
import * as webhooks from "../../../functions/webhooks/webhook-store.ts";
import { attemptOf, carriedDelivery, firstAttempt, receivedAgain, watchMessages } from "../../support/attempts.ts";
import { interceptDynamo, restoreAws } from "../../support/aws-calls.ts";
import {
  changeWebhook,
  dueAttempt,
  dueIds,
  givenDelivery,
  givenWebhook,
  prepareDeliveries,
  rowOf,
  rowsOf,
  sqsEvent,
  takeDueAttempts,
} from "../../support/deliveries.ts";
import { eventually } from "../../support/eventually.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";

/* Slow receivers: their mark, their lane, and what is written while a request has no answer. */

const allDone = { batchItemFailures: [] };
const hourAgo = () => new Date(Date.now() - 3_600_000).toISOString();

let receiver: Receiver;
let webhook: Webhook;
let waiting: http.ServerResponse[];
const respond = (code = 200) => waiting.splice(0).map((response) => response.writeHead(code).end());
const webhookNow = async () => {
  const found = await webhooks.find(webhook.project_id, webhook.id);
  if (!found) throw new Error("the webhook is deleted");
  return found;
};
beforeAll(prepareDeliveries);
beforeEach(async () => {
  receiver = await startReceiver();
  waiting = [];
  receiver.respondWith((_, response) => void waiting.push(response));
  ({ webhook } = await givenWebhook({ url: receiver.url }));
});
afterEach(async () => {
  restoreAws();
  jest.restoreAllMocks();
  await takeDueAttempts();
  await receiver.close();
});

/** Counts the writes to webhooks from now on. */
function watchWebhookWrites(): string[] {
  const writes: string[] = [];
  interceptDynamo(async ({ command, input }, proceed) => {
    if (command === "UpdateItemCommand" && String(input.TableName).endsWith("-webhooks")) {
      writes.push(String(input.UpdateExpression));
    }
    return proceed();
  });
  return writes;
}

describe("a receiver without an answer for two seconds", () => {
  test("counts as slow from then on", () => {
    expect(SLOW_AFTER_MS).toBe(2_000);
  });

  test.each([
    [200, { status: "succeeded" }],
    [500, { status: "pending" }],
  ])("and then %i: the row of a carried delivery is seen before, and is updated after", async (code, expected) => {
    const delivery = carriedDelivery(webhook);
    const sending = send(sqsEvent(firstAttempt(delivery)));
    const row = await eventually(() => rowOf(delivery));
    expect(receiver.received).toHaveLength(1);
    expect(row).toMatchObject({ status: "pending", attempt_count: 0, sending_id: expect.any(String) });
    expect(row).not.toHaveProperty("attempts");
    // The sweep sends it again only after the request cannot run any more, and the grace period.
    const sentAt = receiver.received[0]?.at ?? 0;
    expect(Date.parse(row.sending_until ?? "") - sentAt).toBeGreaterThan(15_000);
    expect(Date.parse(row.due_at ?? "") - Date.parse(row.sending_until ?? "")).toBe(120_000);
    expect(await dueIds(delivery.due_shard)).toContain(delivery.id);

    respond(code);
    expect(await sending).toEqual(allDone);
    const recorded = await rowOf(delivery);
    expect(recorded).toMatchObject({ ...expected, attempt_count: 1, attempts: [{ number: 1, status_code: code }] });
    expect("due_at" in recorded).toBe(code === 500);
    expect(recorded).not.toHaveProperty("sending_until");
    expect(await rowsOf(webhook)).toHaveLength(1);
  });

  test("gets no second request when the message of its carried delivery is received again meanwhile", async () => {
    const delivery = carriedDelivery(webhook);
    const sending = send(sqsEvent(firstAttempt(delivery)));
    await eventually(() => rowOf(delivery));
    for (const handler of [send, sendSlow]) {
      expect(await handler(receivedAgain(firstAttempt(delivery)))).toEqual(allDone);
    }
    expect(receiver.received).toHaveLength(1);
    respond();
    expect(await sending).toEqual(allDone);
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempt_count: 1 });
  });

  test("is marked once, however many of its requests are slow", async () => {
    const writes = watchWebhookWrites();
    const rows = await Promise.all([1, 2, 3].map(() => givenDelivery(webhook)));
    const first = makeAttempt(attemptOf(rows[0] ?? rows[1] ?? carriedDelivery(webhook)));
    await eventually(async () => expect(await webhookNow()).toHaveProperty("slow_since"));
    const { slow_since } = await webhookNow();
    const others = rows.slice(1).map((row) => makeAttempt({ ...attemptOf(row), lane: "slow" }));
    await receiver.waitFor(3);
    const latest = receiver.received[2]?.at ?? Number.NaN;
    await eventually(() => expect(Date.now() - latest).toBeGreaterThan(SLOW_AFTER_MS + 200));
    respond();
    await Promise.all([first, ...others]);
    expect(writes).toEqual(["SET slow_since = :at"]);
    expect((await webhookNow()).slow_since).toBe(slow_since);
  });

  test("is not marked when the row or the mark cannot be written, and the outcome is recorded all the same", async () => {
    const delivery = carriedDelivery(webhook);
    let failures = 0;
    interceptDynamo(async ({ command, input }, proceed) => {
      const isMark = command === "UpdateItemCommand" && String(input.UpdateExpression).includes("slow_since");
      const isPending = command === "PutItemCommand" && !("attempts" in (input.Item as object));
      if (!isMark && !isPending) return proceed();
      failures += 1;
      throw new Error("DynamoDB is unavailable");
    });
    const sending = send(sqsEvent(firstAttempt(delivery)));
    await eventually(() => expect(failures).toBe(2));
    respond();
    expect(await sending).toEqual(allDone);
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempt_count: 1 });
    expect(await webhookNow()).toEqual(webhook);
  });

  test("and whose pending row was written with its response lost: the outcome is recorded by an update", async () => {
    const delivery = carriedDelivery(webhook);
    let isLost = false;
    interceptDynamo(async ({ command, input }, proceed) => {
      const output = await proceed();
      if (command !== "PutItemCommand" || "attempts" in (input.Item as object)) return output;
      isLost = true;
      throw new Error("DynamoDB is unavailable");
    });
    const sending = send(sqsEvent(firstAttempt(delivery)));
    await eventually(() => expect(isLost).toBe(true));
    respond();
    expect(await sending).toEqual(allDone);
    const row = await rowOf(delivery);
    expect(row).toMatchObject({ status: "succeeded", attempt_count: 1, attempts: [{ number: 1 }] });
    expect(row).not.toHaveProperty("due_at");
  });
});

test("a receiver that answers within two seconds is not marked, and its webhook is not written", async () => {
  receiver.respondWith(200);
  const writes = watchWebhookWrites();
  await send(sqsEvent(firstAttempt(carriedDelivery(webhook)), dueAttempt(await givenDelivery(webhook))));
  expect(writes).toEqual([]);
  expect(await webhookNow()).toEqual(webhook);
});

test("the wait for a slot does not count as slowness", async () => {
  receiver.respondWith(200);
  const { acquire } = KeyedSemaphore.prototype;
  jest.spyOn(KeyedSemaphore.prototype, "acquire").mockImplementation(async function (this: KeyedSemaphore, ...all) {
    await new Promise((resolve) => setTimeout(resolve, SLOW_AFTER_MS / 2 + 200));
    return acquire.apply(this, all);
  });
  const delivery = await givenDelivery(webhook);
  expect(await makeAttempt(attemptOf(delivery))).toBe("succeeded");
  expect(await webhookNow()).toEqual(webhook);
  expect((await rowOf(delivery)).attempts?.[0]?.duration_ms).toBeLessThan(SLOW_AFTER_MS);
});

describe("a marked webhook", () => {
  beforeEach(async () => {
    receiver.respondWith(200);
    await changeWebhook(webhook, { slow_since: hourAgo() });
  });

  test("gets no request from the normal senders: a row is moved to the slow lane as it is", async () => {
    const sent = watchMessages();
    const delivery = await givenDelivery(webhook);
    expect(await send(sqsEvent({ ...dueAttempt(delivery), waits: 2 }))).toEqual(allDone);
    expect(receiver.received).toEqual([]);
    expect(await rowOf(delivery)).toEqual(delivery);
    const message = { ...dueAttempt(delivery), waits: 2 };
    expect(sent).toEqual([{ lane: "slow", delaySeconds: 0, group: webhook.project_id, message }]);
    expect(await sendSlow(sqsEvent(message))).toEqual(allDone);
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded" });
  });

  test("gets no request from the normal senders: a stale message is dropped", async () => {
    const sent = watchMessages();
    const delivery = await givenDelivery(webhook);
    expect(await send(sqsEvent({ ...dueAttempt(delivery), valid_until: hourAgo() }))).toEqual(allDone);
    expect(receiver.received).toEqual([]);
    expect(sent).toEqual([]);
    expect(await rowOf(delivery)).toEqual(delivery);
  });

  test("gets no request from the normal senders: a carried delivery gets a row and moves", async () => {
    const sent = watchMessages();
    const delivery = carriedDelivery(webhook);
    expect(await send(sqsEvent(firstAttempt(delivery)))).toEqual(allDone);
    expect(receiver.received).toEqual([]);
    const row = await rowOf(delivery);
    expect(row).toMatchObject({ status: "pending", attempt_count: 0 });
    expect(sent).toEqual([{ lane: "slow", delaySeconds: 0, group: webhook.project_id, message: dueAttempt(row) }]);
  });

  test("gets its retries in the slow lane", async () => {
    receiver.respondWith(500);
    const sent = watchMessages();
    const delivery = await givenDelivery(webhook);
    await sendSlow(sqsEvent(dueAttempt(delivery)));
    expect(sent).toMatchObject([{ lane: "slow", message: { kind: "due", attempt: 2 } }]);
  });

  test("is unmarked after 20 fast responses in the slow lane", async () => {
    const writes = watchWebhookWrites();
    const rows = await Promise.all(Array.from({ length: 20 }, () => givenDelivery(webhook)));
    for (const row of rows.slice(0, 19)) await sendSlow(sqsEvent(dueAttempt(row)));
    expect(await webhookNow()).toHaveProperty("slow_since");
    expect(writes).toEqual([]);
    await sendSlow(sqsEvent(dueAttempt(rows[19] ?? rows[0] ?? carriedDelivery(webhook))));
    expect(receiver.received).toHaveLength(20);
    expect(await webhookNow()).toEqual(webhook);
    expect(writes).toEqual(["REMOVE slow_since"]);

    const next = await givenDelivery(webhook);
    await send(sqsEvent(dueAttempt(next)));
    expect(await rowOf(next)).toMatchObject({ status: "succeeded" });
  });
});

describe("the run of fast responses", () => {
  let marked: Webhook;
  beforeEach(async () => {
    await changeWebhook(webhook, { slow_since: hourAgo() });
    marked = await webhookNow();
  });
  const note = async (count: number, durationMs: number) => {
    for (let n = 0; n < count; n++) await noteDuration(marked, durationMs);
  };
  const isMarked = async () => "slow_since" in (await webhookNow());

  test.each([
    ["19 fast responses", [[19, 1]], true],
    ["20 responses within a second", [[20, 1_000]], false],
    ["20 responses after more than a second", [[20, 1_001]], true],
    [
      "19 fast responses, one after more than a second and 19 fast ones",
      [
        [19, 1],
        [1, 1_500],
        [19, 1],
      ],
      true,
    ],
    [
      "the same and one more",
      [
        [19, 1],
        [1, 1_500],
        [20, 1],
      ],
      false,
    ],
  ])("%s", async (_, notes, expected) => {
    for (const [count = 0, durationMs = 0] of notes) await note(count, durationMs);
    expect(await isMarked()).toBe(expected);
  });

  test("starts again after a request without an answer for two seconds", async () => {
    await note(19, 1);
    await markSlow(marked);
    await note(19, 1);
    expect(await isMarked()).toBe(true);
  });
});

test("the mark belongs to the URL that was slow", async () => {
  await changeWebhook(webhook, { url: "https://example.com/new" });
  await markSlow(webhook);
  expect(await webhookNow()).not.toHaveProperty("slow_since");
});

test("a delivery of a disabled webhook is held in the normal lane, also when the webhook is marked", async () => {
  await changeWebhook(webhook, { slow_since: hourAgo(), disabled_at: hourAgo(), disabled_reason: "manual" });
  const delivery = await givenDelivery(webhook);
  await send(sqsEvent(dueAttempt(delivery)));
  expect((await deliveries.find(webhook.id, delivery.id))?.status).toBe("held");
});

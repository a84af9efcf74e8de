import type http from "node:http";
import { handler as fanOut } from "../../../../functions/deliveries/intake/fan-out.ts";
import { change } from "../../../../functions/deliveries/line/change-delivery.ts";
import type { Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import { handler } from "../../../../functions/deliveries/sending/send.ts";
import type { Webhook } from "../../../../functions/webhooks/webhook/webhook.ts";
import * as webhooks from "../../../../functions/webhooks/webhook/webhook-store.ts";
import {
  attempt,
  beforeRecords,
  carry,
  failRecords,
  firstAttempt,
  receivedAgain,
  requestAgain,
  visitLine,
  watchMessages,
} from "../../../support/attempts.ts";
import {
  failDynamo,
  interceptDynamo,
  interceptSqs,
  isCall,
  restoreAws,
  watchDynamo,
} from "../../../support/aws-calls.ts";
import {
  changeWebhook,
  eventOf,
  givenWaiting,
  givenWebhook,
  newDelivery,
  pipelineRecord,
  placesOf,
  prepareDeliveries,
  rowOf,
  rowsOf,
  sqsEvent,
  takeMessages,
  wakeUpOf,
  workCall,
} from "../../../support/deliveries.ts";
import { eventually } from "../../../support/eventually.ts";
import { metricsIn, watchLog } from "../../../support/metrics.ts";
import { useReceiver } from "../../../support/receiver.ts";

/* The carried road: the message has the delivery, which has no row before its outcome. */

const allDone = { batchItemFailures: [] };
const failed = { batchItemFailures: [{ itemIdentifier: "m0" }] };
const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();

const receiver = useReceiver("test");
let webhook: Webhook;
let delivery: Delivery;
beforeAll(prepareDeliveries);
beforeEach(async () => {
  ({ webhook } = await givenWebhook({ url: receiver.url }));
  delivery = newDelivery(webhook);
});
afterEach(async () => {
  delete process.env.RETRY_SCHEDULE;
  await Promise.all([takeMessages("deliveries"), takeMessages("slowDeliveries")]);
});

test("of a deleted webhook sends and writes nothing", async () => {
  await webhooks.remove(webhook.project_id, webhook.id);
  await carry(delivery);
  expect([receiver.received, await rowsOf(webhook)]).toEqual([[], []]);
});

describe("of a disabled webhook", () => {
  beforeEach(() => changeWebhook(webhook, { disabled_at: minutesAgo(1), disabled_reason: "manual" }));

  test("writes a held row, without a place", async () => {
    const sent = watchMessages();
    await carry(delivery);
    expect(await rowOf(delivery)).toEqual({ ...delivery, status: "held", version: expect.any(String) });
    expect([receiver.received, sent, await wakeUpOf(webhook)]).toEqual([[], [], undefined]);
  });
});

describe("waits in the backlog, due since its event, when", () => {
  test.each<[string, () => Promise<unknown>, number]>([
    ["the webhook is slow", () => changeWebhook(webhook, { slow_since: minutesAgo(1) }), 60_000],
    ["the circuit is open", () => changeWebhook(webhook, { failing_since: minutesAgo(1) }), 60_000],
    ["44.999 s are left", async () => {}, 44_999],
  ])("%s", async (_, change, remainingMs) => {
    await change();
    const sent = watchMessages();
    await carry(delivery, remainingMs);
    expect(receiver.received).toEqual([]);
    const row = await rowOf(delivery);
    expect(row).toMatchObject({ status: "pending", attempt_count: 0, next_attempt_at: delivery.created_at });
    expect(sent).toMatchObject([{ queue: "slowDeliveries", delaySeconds: 0, message: workCall(webhook) }]);
    await visitLine(webhook);
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempt_count: 1 });
  });

  test("but is sent at once during the first 30 s of failures, and with 45 s left", async () => {
    await changeWebhook(webhook, { failing_since: minutesAgo(25 / 60) });
    await carry(delivery, 45_000);
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded" });
  });
});

describe("received again", () => {
  const again = () => carry(receivedAgain(firstAttempt(delivery)));

  test("waits in the backlog, because a request may have been sent", async () => {
    await again();
    expect(receiver.received).toEqual([]);
    expect(await rowOf(delivery)).toMatchObject({ status: "pending", attempt_count: 0 });
    await Promise.all([again(), again()]);
    expect(await placesOf(webhook)).toHaveLength(1);
  });

  test.each([200, 410, 500])("after its attempt (%i) was recorded changes nothing", async (code) => {
    receiver.respondWith(code);
    await carry(delivery);
    const row = await rowOf(delivery);
    await again();
    expect(receiver.received).toHaveLength(1);
    expect(await rowOf(delivery)).toEqual(row);
    expect(await placesOf(webhook)).toHaveLength(row.place === undefined ? 0 : 1);
  });

  test("with a row that was inserted after this sender read leaves one row and one place", async () => {
    interceptDynamo(async ({ command }, proceed) => {
      const output = await proceed();
      if (command !== "BatchGetItemCommand") return output;
      restoreAws();
      await givenWaiting(webhook, delivery);
      return output;
    });
    await again();
    expect((await placesOf(webhook)).map(({ entry }) => entry)).toEqual([(await rowOf(delivery)).place]);
  });
});

test("an event that is published twice gets one request: its message ends the row of the duplicate", async () => {
  const event = eventOf(webhook.project_id);
  const published = { Records: [pipelineRecord(event), pipelineRecord(event)] };
  for (const record of published.Records) expect(await fanOut({ Records: [record] })).toEqual(allDone);
  const [message] = await takeMessages("deliveries");
  expect(await rowsOf(webhook)).toMatchObject([{ status: "pending", attempt_count: 0 }]);
  expect(await handler(sqsEvent(message?.body))).toEqual(allDone);
  expect(await rowsOf(webhook)).toMatchObject([{ status: "succeeded", attempt_count: 1 }]);
  expect(await placesOf(webhook)).toEqual([]);
  await visitLine(webhook);
  expect(receiver.received).toHaveLength(1);
});

test.each([
  [0, 30],
  [0, -10],
  [1, 300],
])("a row with %i attempts that is due in %i s is left to its worker", async (attempt_count, seconds) => {
  const due = new Date(Date.now() + 1_000 * seconds);
  const row = await givenWaiting(webhook, { ...delivery, attempt_count, due });
  await carry(delivery);
  expect(receiver.received).toEqual([]);
  expect(await rowOf(delivery)).toEqual(row);
});

describe("two senders at the same time", () => {
  /** Makes both attempts; the second request gets its response after the first is recorded. */
  async function inOrder(first: number, second: number): Promise<Delivery> {
    const waiting: http.ServerResponse[] = [];
    receiver.respondWith((_, response) => void waiting.push(response));
    const both = [attempt(delivery), attempt(delivery)];
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
  ])("that get %i and %i record both attempts, succeed and send nothing more", async (first, second) => {
    const lines = watchLog();
    const row = await inOrder(first, second);
    // Each delivery is counted once, by the attempt that decided.
    expect(metricsIn(lines)).toMatchObject({ attempts: [1, 1], firstAttemptSuccess: [first === 200 ? 1 : 0] });
    const attempts = [
      { number: 1, status_code: first },
      { number: 2, status_code: second },
    ];
    expect(row).toMatchObject({ status: "succeeded", attempt_count: 2, attempts });
    for (const field of ["place", "next_attempt_at"]) expect(row).not.toHaveProperty(field);
    expect(await placesOf(webhook)).toEqual([]);
  });

  test("that both fail record both attempts, and the retry schedule stays as long", async () => {
    process.env.RETRY_SCHEDULE = "60,600";
    const row = await inOrder(500, 502);
    expect(row).toMatchObject({ status: "pending", attempt_count: 2, attempts_before_schedule: 1 });
    // The time of the first failure counts.
    expect(Date.parse(row.next_attempt_at ?? "") - Date.parse(row.attempts?.[0]?.at ?? "")).toBeLessThan(80_000);
    expect((await placesOf(webhook)).map(({ entry }) => entry)).toEqual([row.place]);
    receiver.respondWith(500);
    for (const status of ["pending", "failed"]) {
      await change(await rowOf(delivery), (stored) => stored && { ...stored, next_attempt_at: minutesAgo(1) });
      await attempt(delivery);
      expect(await rowOf(delivery)).toMatchObject({ status });
    }
  });
});

describe("a batch", () => {
  test("is not held up by a receiver that hangs", async () => {
    const { webhook: stuck } = await givenWebhook({ url: receiver.url.replace("/hook", "/stuck") });
    const hanging = newDelivery(stuck);
    let respondToStuck = () => {};
    receiver.respondWith(({ path }, response) => {
      if (path === "/stuck") respondToStuck = () => response.end();
      else response.end();
    });
    const batch = handler(sqsEvent(firstAttempt(hanging), firstAttempt(delivery)));
    await eventually(async () => expect(await rowOf(delivery)).toMatchObject({ status: "succeeded" }));
    expect(await rowsOf(stuck)).toEqual([]);
    respondToStuck();
    expect(await batch).toEqual(allDone);
    expect(await rowOf(hanging)).toMatchObject({ status: "succeeded" });
  });

  test("reads webhook and secrets once for the deliveries of a webhook, and those of each webhook by themselves", async () => {
    const { webhook: other } = await givenWebhook({ url: receiver.url });
    const [second, ofOther] = [{ ...newDelivery(webhook), id: "second" }, newDelivery(other)];
    const calls = watchDynamo();
    // SQS may return a message twice, and DynamoDB refuses a key that a request has twice.
    const messages = [delivery, second, delivery, ofOther].map((each) => firstAttempt(each));
    expect(await handler(sqsEvent(...messages))).toEqual(allDone);
    const reads = calls.filter(({ command }) => command === "BatchGetItemCommand");
    expect(reads.map(({ units }) => units).toSorted()).toEqual([3, 4]);
    for (const each of [delivery, second, ofOther]) expect(await rowOf(each)).toMatchObject({ status: "succeeded" });
  });

  test("sends the deliveries of two webhooks of a project each to its own URL, and what has a row not again", async () => {
    const { project_id: projectId } = webhook;
    const { webhook: other } = await givenWebhook({ url: receiver.url.replace("/hook", "/other"), projectId });
    const done = { ...newDelivery(other), id: "done" };
    await carry(done);
    receiver.received.length = 0;
    const toOther = newDelivery(other);
    await handler(sqsEvent(firstAttempt(done), firstAttempt(toOther), firstAttempt(delivery)));
    const requests = receiver.received.map(({ path, headers }) => [path, headers["webhook-id"]]);
    expect(requests.toSorted()).toEqual([
      ["/hook", delivery.id],
      ["/other", toOther.id],
    ]);
  });

  test("is sent except for the deliveries of a webhook that cannot be read", async () => {
    const { webhook: busy } = await givenWebhook({ url: receiver.url });
    failDynamo(({ command, input }) => command === "BatchGetItemCommand" && JSON.stringify(input).includes(busy.id));
    expect(await handler(sqsEvent(firstAttempt(newDelivery(busy)), firstAttempt(delivery)))).toEqual(failed);
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded" });
  });

  test.each(["attempt", '{"kind":"first"}', '{"kind":"later","project_id":"p"}', ""])(
    "returns a message that is not valid (%p) to the queue, and sends the others",
    async (junk) => {
      expect(await handler(sqsEvent(junk, firstAttempt(delivery)))).toEqual(failed);
      expect(await rowOf(delivery)).toMatchObject({ status: "succeeded" });
    },
  );

  test.each(["id", "webhook_id"])(
    "returns a delivery without %s to the queue, and sends the others of its webhook",
    async (name) => {
      const incomplete = JSON.stringify({ kind: "first", delivery: { ...newDelivery(webhook), [name]: "" } });
      expect(await handler(sqsEvent(incomplete, firstAttempt(delivery)))).toEqual(failed);
      expect(await rowOf(delivery)).toMatchObject({ status: "succeeded" });
    },
  );

  test("returns a call of a worker to the queue: it is in the wrong one", async () => {
    expect(await handler(sqsEvent(workCall(webhook)))).toEqual(failed);
  });
});

test("a message whose reads fail goes back to the queue, and nothing is sent", async () => {
  failDynamo(({ command }) => command === "BatchGetItemCommand");
  expect(await handler(sqsEvent(firstAttempt(delivery)))).toEqual(failed);
  expect(receiver.received).toEqual([]);
});

test("a message whose webhook cannot be updated is done, without a second request: its outcome is enqueued", async () => {
  receiver.respondWith(500);
  failDynamo((call) => isCall(call, "UpdateItem", "webhooks"));
  await carry(delivery);
  restoreAws();
  await carry(receivedAgain(firstAttempt(delivery)));
  expect(receiver.received).toHaveLength(1);
  expect(await rowOf(delivery)).toMatchObject({ status: "pending", attempt_count: 1 });
});

test("a redelivery or a retry whose call SQS rejects is left to the sweep", async () => {
  receiver.respondWith(500);
  interceptSqs(() => Promise.reject(new Error("SQS is unavailable")));
  await carry(delivery);
  expect(await wakeUpOf(webhook)).toMatchObject({ due: (await rowOf(delivery)).next_attempt_at });
});

describe("the log line of an attempt", () => {
  const first = { message: "attempt", attempt: 1, trigger: "schedule", Attempts: 1 };
  const failQueue = () => interceptSqs(() => Promise.reject(new Error("SQS is unavailable")));

  test.each<[string, () => void, number, object, string[]]>([
    [
      "recording fails",
      failRecords,
      200,
      { outcome: "succeeded" },
      ["attempt not recorded, enqueued to be recorded later"],
    ],
    [
      "neither recording nor enqueueing succeeds",
      () => {
        failRecords();
        failQueue();
      },
      200,
      { outcome: "succeeded" },
      ["enqueue failed", "message failed"],
    ],
    [
      "updating the webhook fails",
      () => failDynamo((call) => isCall(call, "UpdateItem", "webhooks")),
      410,
      { outcome: "http_status", FirstAttemptSuccess: 0, Exhausted: 1 },
      ["webhook not updated after an attempt, enqueued to be recorded later"],
    ],
    [
      "a setting for the decision is not valid",
      () => {
        process.env.RETRY_SCHEDULE = "soon";
      },
      500,
      { outcome: "http_status" },
      ["attempt not recorded, enqueued to be recorded later"],
    ],
  ])("is written once, before the error, when %s", async (_, prepare, code, expected, messages) => {
    receiver.respondWith(code);
    prepare();
    const lines = watchLog();
    await handler(sqsEvent(firstAttempt(delivery)));
    expect(lines.map(({ message }) => message)).toEqual(["attempt", ...messages]);
    expect(lines[0]).toMatchObject({ ...first, ...expected });
    expect(lines[0]).not.toHaveProperty("WebhooksDisabled");
    if (!("Exhausted" in expected)) expect(lines[0]).not.toHaveProperty("FirstAttemptSuccess");
  });
});

test("a redelivery that is requested in front of the record is sent after it", async () => {
  const row = await givenWaiting(webhook, { ...delivery, due: new Date(Date.now() + 75_000) });
  let isRequested = false;
  beforeRecords(async () => {
    if (isRequested) return;
    isRequested = true;
    await requestAgain(row);
  });
  await carry(delivery);
  expect(await rowOf(delivery)).toMatchObject({
    status: "pending",
    trigger: "redeliver",
    attempt_count: 1,
    attempts_before_schedule: 1,
  });
  await visitLine(webhook);
  expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempts: [{}, { trigger: "redeliver" }] });
});

import { DeleteCommand } from "@aws-sdk/lib-dynamodb";
import { handler } from "../../../functions/attempts/send.ts";
import type { Delivery } from "../../../functions/deliveries/delivery.ts";
import * as deliveries from "../../../functions/deliveries/delivery-store.ts";
import { dynamo } from "../../../functions/platform/aws.ts";
import { tableName } from "../../../functions/platform/env.ts";
import { logSink } from "../../../functions/platform/log.ts";
import type { Webhook } from "../../../functions/webhooks/webhook.ts";
import * as webhooks from "../../../functions/webhooks/webhook-store.ts";
import { carriedDelivery, failRecords, firstAttempt, watchMessages } from "../../support/attempts.ts";
import { interceptDynamo, interceptSqs, restoreAws, watchDynamo } from "../../support/aws-calls.ts";
import {
  dueAttempt,
  dueIds,
  givenDelivery,
  givenWebhook,
  prepareDeliveries,
  rowOf,
  sqsEvent,
  takeDueAttempts,
} from "../../support/deliveries.ts";
import { eventually } from "../../support/eventually.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";

const allDone = { batchItemFailures: [] };
const failed = (...ids: string[]) => ({ batchItemFailures: ids.map((itemIdentifier) => ({ itemIdentifier })) });

let receiver: Receiver;
let webhook: Webhook;
let delivery: Delivery;
beforeAll(prepareDeliveries);
beforeEach(async () => {
  receiver = await startReceiver();
  ({ webhook } = await givenWebhook({ url: receiver.url }));
  delivery = await givenDelivery(webhook);
});
afterEach(async () => {
  restoreAws();
  delete process.env.RETRY_SCHEDULE;
  await takeDueAttempts();
  await receiver.close();
});

test("a carried delivery costs three reads, in one request, and one write", async () => {
  const carried = carriedDelivery(webhook);
  const calls = watchDynamo();
  expect(await handler(sqsEvent(firstAttempt(carried)))).toEqual(allDone);
  expect(calls).toEqual([
    { command: "BatchGetItemCommand", units: 3 },
    { command: "PutItemCommand", units: 1 },
  ]);
  expect(await rowOf(carried)).toMatchObject({ status: "succeeded" });
});

test("a delivery with a row costs three reads, in one request, and two writes", async () => {
  const calls = watchDynamo();
  expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(allDone);
  // The claim, and the record, which takes the row out of the index as well.
  expect(calls).toEqual([
    { command: "BatchGetItemCommand", units: 3 },
    { command: "UpdateItemCommand", units: 1 },
    { command: "UpdateItemCommand", units: 2 },
  ]);
  expect(await rowOf(delivery)).toMatchObject({ status: "succeeded" });
});

test.each([200, 500])("a receiver that returns %i does not return the message to the queue", async (status) => {
  receiver.respondWith(status);
  expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(allDone);
  expect(await rowOf(delivery)).toMatchObject({ attempt_count: 1 });
});

test("a hanging receiver does not delay the others of its batch", async () => {
  const { webhook: stuck } = await givenWebhook({ url: receiver.url.replace("/hook", "/stuck") });
  const hanging = await givenDelivery(stuck);
  let respondToStuck = () => {};
  receiver.respondWith(({ path }, response) => {
    if (path === "/stuck") respondToStuck = () => response.end();
    else response.end();
  });
  const batch = handler(sqsEvent(dueAttempt(hanging), dueAttempt(delivery)));
  await eventually(async () => expect(await rowOf(delivery)).toMatchObject({ status: "succeeded" }));
  expect(await rowOf(hanging)).toMatchObject({ status: "pending", attempt_count: 0 });
  respondToStuck();
  expect(await batch).toEqual(allDone);
  expect(await rowOf(hanging)).toMatchObject({ status: "succeeded" });
});

describe("a duplicate message", () => {
  test.each([
    ["in one batch", (due: object) => [handler(sqsEvent(due, due))]],
    ["in two batches at once", (due: object) => [handler(sqsEvent(due)), handler(sqsEvent(due))]],
  ])("%s sends one request", async (_, run) => {
    for (const result of await Promise.all(run(dueAttempt(delivery)))) expect(result).toEqual(allDone);
    expect(receiver.received).toHaveLength(1);
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempt_count: 1 });
  });

  const soon = new Date(Date.now() + 60_000).toISOString();
  const retry: deliveries.NextState = {
    status: "pending",
    nextAttemptAt: soon,
    due: { due_shard: 1, due_at: soon },
  };
  test.each<[string, deliveries.NextState, number, Delivery["status"]]>([
    ["a success before a failure", { status: "succeeded" }, 500, "succeeded"],
    ["a success before a success", { status: "succeeded" }, 200, "succeeded"],
    ["a failure before a success", retry, 200, "succeeded"],
    ["a failure before a failure", retry, 500, "pending"],
    ["the last failure before a success", { status: "failed" }, 200, "succeeded"],
    ["the last failure before a failure", { status: "failed" }, 500, "failed"],
  ])("in another process, which recorded %s: both attempts are in the log", async (_, next, code, status) => {
    const other = { number: 1, at: new Date(0).toISOString(), duration_ms: 1, trigger: "schedule" as const };
    receiver.respondWith(async (_, response) => {
      await deliveries.recordAttempt(delivery, other, next, "another");
      response.writeHead(code).end();
    });
    const sent = watchMessages();
    expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(allDone);
    const row = await rowOf(delivery);
    expect(row).toMatchObject({ status, attempt_count: 2, attempts: [other, { number: 2, status_code: code }] });
    // Only the number of the next attempt has changed.
    const isPending = status === "pending";
    expect("due_at" in row).toBe(isPending);
    expect(sent.map(({ message }) => message)).toEqual(isPending ? [dueAttempt(row, 3)] : []);
    if (isPending) expect(row).toMatchObject({ next_attempt_at: soon, due_at: soon, attempts_before_schedule: 1 });
  });
});

test("the next attempt is made when its message arrives before the previous attempt is finished", async () => {
  process.env.RETRY_SCHEDULE = "0";
  receiver.respondWith((_, response) => response.writeHead(receiver.received.length < 2 ? 500 : 200).end());
  interceptSqs(async ({ command }, send) => {
    const output = await send();
    // The message is delivered before the response of SendMessageBatch arrives.
    if (command === "SendMessageBatchCommand") await handler(sqsEvent(dueAttempt(delivery, 2)));
    return output;
  });
  expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(allDone);
  expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempt_count: 2 });
});

describe("the log line of an attempt", () => {
  const lines: { message: string; [field: string]: unknown }[] = [];
  const write = logSink.write;
  beforeEach(() => {
    lines.length = 0;
    logSink.write = (_, line) => void lines.push(line);
  });
  afterEach(() => {
    logSink.write = write;
  });

  const failWebhookWrites = () =>
    interceptDynamo(async ({ command, input }, send) => {
      if (command === "UpdateItemCommand" && String(input.TableName).endsWith("-webhooks"))
        throw new Error("unavailable");
      return send();
    });
  const failQueue = () => interceptSqs(() => Promise.reject(new Error("SQS is unavailable")));
  const first = { message: "attempt", attempt: 1, trigger: "schedule", Attempts: 1 };

  test("is written once, before the error, when recording fails, and counts the request only", async () => {
    failRecords();
    expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(allDone);
    expect(lines).toMatchObject([
      { ...first, outcome: "succeeded" },
      { message: "attempt not recorded, enqueued to be recorded later" },
    ]);
    expect(lines[0]).not.toHaveProperty("FirstAttemptSuccess");
  });

  test("is written once, before the failure, when neither recording nor enqueueing succeeds", async () => {
    failRecords();
    failQueue();
    expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(failed("m0"));
    expect(lines).toMatchObject([
      { ...first, outcome: "succeeded" },
      { message: "enqueue failed" },
      { message: "message failed" },
    ]);
  });

  test("is written once, before the failure, when updating the webhook fails, and counts the delivery", async () => {
    receiver.respondWith(410);
    failWebhookWrites();
    expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(failed("m0"));
    expect(lines).toMatchObject([
      { ...first, outcome: "http_status", FirstAttemptSuccess: 0, Exhausted: 1 },
      { message: "message failed" },
    ]);
    expect(lines[0]).not.toHaveProperty("WebhooksDisabled");
  });

  test("is written when a setting for the decision is not valid", async () => {
    process.env.RETRY_SCHEDULE = "soon";
    receiver.respondWith(500);
    expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(allDone);
    expect(lines).toMatchObject([
      { ...first, outcome: "http_status" },
      { message: "attempt not recorded, enqueued to be recorded later" },
    ]);
  });
});

describe("an internal error", () => {
  test.each(["attempt", '{"attempt":1}', ""])(
    "of an invalid message (%p) returns it to the queue, and the others are processed",
    async (junk) => {
      expect(await handler(sqsEvent(junk, dueAttempt(delivery)))).toEqual(failed("m0"));
      expect(await rowOf(delivery)).toMatchObject({ status: "succeeded" });
    },
  );

  test("when reading fails, sends nothing and returns the message to the queue", async () => {
    interceptDynamo(async ({ command }, send) => {
      if (command === "BatchGetItemCommand") throw new Error("unavailable");
      return send();
    });
    expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(failed("m0"));
    expect(receiver.received).toEqual([]);
    restoreAws();
    expect(await rowOf(delivery)).toEqual(delivery);
  });

  test.each(["deliveries", "webhooks", "webhook-secrets"])(
    "when %s is among the unprocessed keys, reads it again",
    async (table) => {
      let reads = 0;
      interceptDynamo(async ({ command, input }, send) => {
        if (command !== "BatchGetItemCommand") return send();
        reads += 1;
        const items = Object.entries(input.RequestItems as Record<string, unknown>);
        const left = items.filter(([name]) => name.endsWith(`-${table}`));
        if (reads > 2 || left.length === 0) return send();
        const others = items.filter(([name]) => !name.endsWith(`-${table}`));
        const output = others.length > 0 ? await send({ RequestItems: Object.fromEntries(others) }) : {};
        return { ...output, UnprocessedKeys: Object.fromEntries(left) };
      });
      expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(allDone);
      expect(reads).toBe(3);
      expect(await rowOf(delivery)).toMatchObject({ status: "succeeded" });
    },
  );

  test("when enqueueing the next attempt fails, leaves it to the sweep", async () => {
    receiver.respondWith(500);
    interceptSqs(() => Promise.reject(new Error("SQS is unavailable")));
    expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(allDone);
    expect(await rowOf(delivery)).toMatchObject({ status: "pending", attempt_count: 1 });
    expect(await dueIds(delivery.due_shard ?? -1)).toContain(delivery.id);
  });

  test("when updating the webhook fails, returns the message and does not repeat the attempt", async () => {
    receiver.respondWith(500);
    interceptDynamo(async ({ command, input }, send) => {
      if (command === "UpdateItemCommand" && String(input.TableName).endsWith("-webhooks"))
        throw new Error("unavailable");
      return send();
    });
    expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(failed("m0"));
    restoreAws();
    expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(allDone);
    expect(receiver.received).toHaveLength(1);
    expect(await rowOf(delivery)).toMatchObject({ status: "pending", attempt_count: 1 });
    expect(await dueIds(delivery.due_shard ?? -1)).toContain(delivery.id);
  });
});

test("a webhook that is deleted while it is read receives no request", async () => {
  interceptDynamo(async ({ command, input }, send) => {
    if (command !== "BatchGetItemCommand") return send();
    restoreAws();
    // The row of the secret is read last and is deleted by then.
    const items = Object.entries(input.RequestItems as Record<string, unknown>);
    const secrets = items.filter(([name]) => name.endsWith("-webhook-secrets"));
    const before = await send({ RequestItems: Object.fromEntries(items.filter((item) => !secrets.includes(item))) });
    await webhooks.remove(webhook.project_id, webhook.id);
    const after = await send({ RequestItems: Object.fromEntries(secrets) });
    return { ...before, Responses: { ...(before.Responses as object), ...(after.Responses as object) } };
  });
  expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(allDone);
  expect(receiver.received).toEqual([]);
  expect(await rowOf(delivery)).toMatchObject({ status: "cancelled" });
});

test("a webhook whose secret is lost keeps its delivery pending, and the message is received again", async () => {
  const delivery = await givenDelivery(webhook);
  await dynamo().send(new DeleteCommand({ TableName: tableName("webhookSecrets"), Key: { webhook_id: webhook.id } }));
  const { batchItemFailures } = await handler(sqsEvent(dueAttempt(delivery)));
  expect(batchItemFailures).toHaveLength(1);
  expect(receiver.received).toEqual([]);
  expect(await rowOf(delivery)).toEqual(delivery);
});

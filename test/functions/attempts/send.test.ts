import { DeleteCommand } from "@aws-sdk/lib-dynamodb";
import { handler } from "../../../functions/attempts/send.ts";
import type { Delivery } from "../../../functions/deliveries/delivery.ts";
import * as deliveries from "../../../functions/deliveries/delivery-store.ts";
import { dynamo } from "../../../functions/platform/aws.ts";
import { tableName } from "../../../functions/platform/env.ts";
import { logSink } from "../../../functions/platform/log.ts";
import type { Webhook } from "../../../functions/webhooks/webhook.ts";
import * as webhooks from "../../../functions/webhooks/webhook-store.ts";
import { interceptDynamo, interceptSqs, restoreAws, watchDynamo, watchQueue } from "../../support/aws-calls.ts";
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

test("a delivery costs three reads, in one request, and one write", async () => {
  const calls = watchDynamo();
  expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(allDone);
  // The write takes the row out of the index as well.
  expect(calls).toEqual([
    { command: "BatchGetItemCommand", units: 3 },
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
  test.each<[string, deliveries.NextState]>([
    ["a success", { status: "succeeded" }],
    ["a failure with a retry", { status: "pending", nextAttemptAt: soon, dueAt: soon }],
  ])("in another process, which recorded %s while this one waited for the response, counts once", async (_, next) => {
    const batches = watchQueue();
    const other = { number: 1, at: new Date().toISOString(), duration_ms: 1, trigger: "schedule" as const };
    receiver.respondWith(async (_, response) => {
      await deliveries.recordAttempt(delivery, other, next);
      response.writeHead(500).end();
    });
    expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(allDone);
    expect(receiver.received).toHaveLength(1);
    expect(await rowOf(delivery)).toMatchObject({ status: next.status, attempt_count: 1, attempts: [other] });
    expect(batches).toEqual([]);
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

  /** Fails writes to one table. */
  const failWritesTo = (table: string) =>
    interceptDynamo(async ({ command, input }, send) => {
      if (command === "UpdateItemCommand" && String(input.TableName).endsWith(`-${table}`))
        throw new Error("unavailable");
      return send();
    });
  const first = { message: "attempt", attempt: 1, trigger: "schedule", Attempts: 1 };

  test("is written once, before the failure, when recording fails, and counts the request only", async () => {
    failWritesTo("deliveries");
    expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(failed("m0"));
    expect(lines).toMatchObject([{ ...first, outcome: "succeeded" }, { message: "message failed" }]);
    expect(lines[0]).not.toHaveProperty("FirstAttemptSuccess");
  });

  test("is written once, before the failure, when updating the webhook fails, and counts the delivery", async () => {
    receiver.respondWith(410);
    failWritesTo("webhooks");
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
    expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(failed("m0"));
    expect(lines).toMatchObject([{ ...first, outcome: "http_status" }, { message: "message failed" }]);
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

  test("when recording fails, returns the message and repeats the attempt under the same id", async () => {
    interceptDynamo(async ({ command }, send) => {
      if (command === "UpdateItemCommand") throw new Error("DynamoDB is unavailable");
      return send();
    });
    expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(failed("m0"));
    expect(receiver.received).toHaveLength(1);
    restoreAws();
    // Still pending and due: the sweep would find it even without the message.
    expect(await rowOf(delivery)).toEqual(delivery);
    expect(await dueIds(delivery.due_shard ?? -1)).toContain(delivery.id);

    expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(allDone);
    expect(receiver.received.map(({ headers }) => headers["x-service-delivery"])).toEqual([delivery.id, delivery.id]);
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempt_count: 1 });
  });

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

import { handler } from "../../../functions/attempts/send.ts";
import type { Delivery } from "../../../functions/deliveries/delivery.ts";
import * as deliveries from "../../../functions/deliveries/delivery-store.ts";
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

test.each([200, 500])("a receiver that answers %i is no fault of ours", async (status) => {
  receiver.answerWith(status);
  expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(allDone);
  expect(await rowOf(delivery)).toMatchObject({ attempt_count: 1 });
});

test("a receiver that hangs does not hold up the others of its batch", async () => {
  const { webhook: stuck } = await givenWebhook({ url: receiver.url.replace("/hook", "/stuck") });
  const hanging = await givenDelivery(stuck);
  let letGo = () => {};
  receiver.answerWith(({ path }, response) => {
    if (path === "/stuck") letGo = () => response.end();
    else response.end();
  });
  const batch = handler(sqsEvent(dueAttempt(hanging), dueAttempt(delivery)));
  await eventually(async () => expect(await rowOf(delivery)).toMatchObject({ status: "succeeded" }));
  expect(await rowOf(hanging)).toMatchObject({ status: "pending", attempt_count: 0 });
  letGo();
  expect(await batch).toEqual(allDone);
  expect(await rowOf(hanging)).toMatchObject({ status: "succeeded" });
});

describe("a message that comes twice", () => {
  test.each([
    ["in one batch", (due: object) => [handler(sqsEvent(due, due))]],
    ["in two batches at once", (due: object) => [handler(sqsEvent(due)), handler(sqsEvent(due))]],
  ])("%s makes one POST", async (_, run) => {
    for (const result of await Promise.all(run(dueAttempt(delivery)))) expect(result).toEqual(allDone);
    expect(receiver.received).toHaveLength(1);
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempt_count: 1 });
  });

  const soon = new Date(Date.now() + 60_000).toISOString();
  test.each<[string, deliveries.NextState]>([
    ["a success", { status: "succeeded" }],
    ["a failure with another attempt to come", { status: "pending", nextAttemptAt: soon, dueAt: soon }],
  ])("to two processes counts once: the other has recorded %s while ours waits for the receiver", async (_, next) => {
    const batches = watchQueue();
    const other = { number: 1, at: new Date().toISOString(), duration_ms: 1, trigger: "schedule" as const };
    receiver.answerWith(async (_, response) => {
      await deliveries.recordAttempt(delivery, other, next);
      response.writeHead(500).end();
    });
    expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(allDone);
    expect(receiver.received).toHaveLength(1);
    expect(await rowOf(delivery)).toMatchObject({ status: next.status, attempt_count: 1, attempts: [other] });
    expect(batches).toEqual([]);
  });
});

test("the next attempt is made even if its message is here before the one before is quite finished", async () => {
  process.env.RETRY_SCHEDULE = "0";
  receiver.answerWith((_, response) => response.writeHead(receiver.received.length < 2 ? 500 : 200).end());
  interceptSqs(async ({ command }, send) => {
    const output = await send();
    // The queue hands the message out while its sender still waits to hear that the queue has it.
    if (command === "SendMessageBatchCommand") await handler(sqsEvent(dueAttempt(delivery, 2)));
    return output;
  });
  expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(allDone);
  expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempt_count: 2 });
});

describe("our own fault", () => {
  test.each(["attempt", '{"attempt":1}', ""])(
    "of a message that cannot be read (%p) brings that message back",
    async (junk) => {
      expect(await handler(sqsEvent(junk, dueAttempt(delivery)))).toEqual(failed("m0"));
      expect(await rowOf(delivery)).toMatchObject({ status: "succeeded" });
    },
  );

  test("of not reading sends nothing and brings the message back", async () => {
    interceptDynamo(async ({ command }, send) => {
      if (command === "BatchGetItemCommand") throw new Error("away");
      return send();
    });
    expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(failed("m0"));
    expect(receiver.received).toEqual([]);
    restoreAws();
    expect(await rowOf(delivery)).toEqual(delivery);
  });

  test.each(["deliveries", "webhooks", "webhook-secrets"])(
    "of reading the table %s at first is made up for: what was left unread is asked for again",
    async (table) => {
      let answers = 0;
      interceptDynamo(async ({ command, input }, send) => {
        if (command !== "BatchGetItemCommand") return send();
        answers += 1;
        const items = Object.entries(input.RequestItems as Record<string, unknown>);
        const left = items.filter(([name]) => name.endsWith(`-${table}`));
        if (answers > 2 || left.length === 0) return send();
        const others = items.filter(([name]) => !name.endsWith(`-${table}`));
        const output = others.length > 0 ? await send({ RequestItems: Object.fromEntries(others) }) : {};
        return { ...output, UnprocessedKeys: Object.fromEntries(left) };
      });
      expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(allDone);
      expect(answers).toBe(3);
      expect(await rowOf(delivery)).toMatchObject({ status: "succeeded" });
    },
  );

  test("of not recording an attempt brings the message back, and it is repeated under the same id", async () => {
    interceptDynamo(async ({ command }, send) => {
      if (command === "UpdateItemCommand") throw new Error("DynamoDB is away");
      return send();
    });
    expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(failed("m0"));
    expect(receiver.received).toHaveLength(1);
    restoreAws();
    // Still pending and still due: even without the message it would not be lost.
    expect(await rowOf(delivery)).toEqual(delivery);
    expect(await dueIds(delivery.due_shard ?? -1)).toContain(delivery.id);

    expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(allDone);
    expect(receiver.received.map(({ headers }) => headers["x-service-delivery"])).toEqual([delivery.id, delivery.id]);
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempt_count: 1 });
  });

  test("of not queueing the next attempt leaves it to the sweep", async () => {
    receiver.answerWith(500);
    interceptSqs(() => Promise.reject(new Error("SQS is away")));
    expect(await handler(sqsEvent(dueAttempt(delivery)))).toEqual(allDone);
    expect(await rowOf(delivery)).toMatchObject({ status: "pending", attempt_count: 1 });
    expect(await dueIds(delivery.due_shard ?? -1)).toContain(delivery.id);
  });

  test("of not noting that the receiver fails brings the message back, and the attempt is not repeated", async () => {
    receiver.answerWith(500);
    interceptDynamo(async ({ command, input }, send) => {
      if (command === "UpdateItemCommand" && String(input.TableName).endsWith("-webhooks")) throw new Error("away");
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

test("a webhook that is deleted while it is read gets nothing, least of all unsigned", async () => {
  interceptDynamo(async ({ command, input }, send) => {
    if (command !== "BatchGetItemCommand") return send();
    // The secret's row is read last, and is gone by then.
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

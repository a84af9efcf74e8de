import { jest } from "@jest/globals";
import { handler as send } from "../../../functions/attempts/send.ts";
import { type Delivery, parkingShardOf } from "../../../functions/deliveries/delivery.ts";
import type { Webhook } from "../../../functions/webhooks/webhook.ts";
import * as webhooks from "../../../functions/webhooks/webhook-store.ts";
import { carriedDelivery, firstAttempt, type SentMessage, watchMessages } from "../../support/attempts.ts";
import { interceptDynamo, interceptSqs, restoreAws } from "../../support/aws-calls.ts";
import {
  changeWebhook,
  dueAttempt,
  dueIds,
  givenDelivery,
  givenWebhook,
  prepareDeliveries,
  rowOf,
  sqsEvent,
  takeDueAttempts,
} from "../../support/deliveries.ts";
import { fakeDate } from "../../support/fake-date.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";

/* The sender and the circuit breaker: deliveries of a failing webhook are parked. The drain sends them (drain.ts). */

let receiver: Receiver;
let webhook: Webhook;
let waiting: Delivery[];
let sent: SentMessage[];
beforeAll(prepareDeliveries);
beforeEach(async () => {
  receiver = await startReceiver();
  ({ webhook } = await givenWebhook({ url: receiver.url }));
  waiting = await Promise.all([5, 4, 3, 2, 1].map((seconds) => givenDelivery(webhook, { at: new Date(at(-seconds)) })));
  sent = watchMessages();
});
afterEach(async () => {
  restoreAws();
  jest.useRealTimers();
  await takeDueAttempts();
  await receiver.close();
});

const at = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString();
const webhookNow = () => webhooks.find(webhook.project_id, webhook.id);
const sendAll = async (rows: Delivery[]) => {
  expect(await send(sqsEvent(...rows.map((row) => dueAttempt(row))))).toEqual({ batchItemFailures: [] });
};
const rowsNow = () => Promise.all(waiting.map(rowOf));
const parkedIds = () => dueIds(parkingShardOf(webhook.id));
const wakeUpNow = () => rowOf({ webhook_id: `wake-up:${webhook.id}`, id: webhook.id });

describe.each([
  ["the probe due now", undefined],
  ["the probe due in 20 s", 20],
  ["the probe due 10 s ago", -10],
])("with the circuit open and %s,", (_, probeInSeconds) => {
  let probeAt: string;
  beforeEach(async () => {
    fakeDate();
    await changeWebhook(webhook, {
      failing_since: at(-31),
      ...(probeInSeconds !== undefined && { probe_at: at(probeInSeconds) }),
    });
    probeAt = at(Math.max(0, probeInSeconds ?? 0));
  });

  test("deliveries with a row are parked in the order of their planned attempts, without counting an attempt", async () => {
    await sendAll(waiting.toReversed());
    expect(receiver.received).toEqual([]);
    expect(await rowsNow()).toEqual(
      waiting.map((row) => ({
        ...row,
        next_attempt_at: probeAt,
        due_at: row.next_attempt_at,
        due_shard: parkingShardOf(webhook.id),
      })),
    );
    expect(await parkedIds()).toEqual(waiting.map(({ id }) => id));
  });

  test("a carried delivery is parked with one write of its row", async () => {
    const delivery = carriedDelivery(webhook);
    expect(await send(sqsEvent(firstAttempt(delivery)))).toEqual({ batchItemFailures: [] });
    expect(receiver.received).toEqual([]);
    expect(await rowOf(delivery)).toEqual({
      ...delivery,
      next_attempt_at: probeAt,
      due_at: delivery.next_attempt_at,
      due_shard: parkingShardOf(webhook.id),
    });
  });

  test("the webhook is woken once, at the time of the probe, however many deliveries are parked", async () => {
    for (const row of waiting) await sendAll([row]);
    expect(sent).toEqual([
      {
        lane: "slow",
        delaySeconds: Math.max(0, probeInSeconds ?? 0),
        group: webhook.project_id,
        message: { kind: "wake-up", project_id: webhook.project_id, webhook_id: webhook.id, generation: 1 },
      },
    ]);
    // If the call is lost, the sweep wakes the webhook after the grace period.
    const dueAt = Date.parse((await wakeUpNow()).due_at ?? "");
    expect(dueAt - Date.parse(probeAt)).toBe(120_000);
  });

  test("the webhook is not changed", async () => {
    const before = await webhookNow();
    await sendAll(waiting);
    expect(await webhookNow()).toEqual(before);
  });
});

test("a retry is parked when the circuit has opened meanwhile", async () => {
  receiver.respondWith(500);
  const [row] = waiting;
  if (!row) throw new Error("no deliveries given");
  await sendAll([row]);
  await changeWebhook(webhook, { failing_since: at(-31) });
  const retry = await rowOf(row);
  expect(await send(sqsEvent(dueAttempt(retry, 2)))).toEqual({ batchItemFailures: [] });
  expect(receiver.received).toHaveLength(1);
  expect(await rowOf(row)).toMatchObject({ attempt_count: 1, due_at: retry.next_attempt_at });
  expect(await parkedIds()).toEqual([row.id]);
});

test("a parked delivery keeps its place when further messages for it arrive", async () => {
  const clock = fakeDate();
  await changeWebhook(webhook, { failing_since: at(-31), probe_at: at(20) });
  await sendAll(waiting);
  const parked = await rowsNow();
  clock.advance(10);
  await sendAll(waiting);
  clock.advance(60);
  await sendAll(waiting);
  expect(await rowsNow()).toEqual(parked);
});

test("a row is not parked before the wake-up of its webhook is written", async () => {
  await changeWebhook(webhook, { failing_since: at(-31) });
  const [row] = waiting;
  if (!row) throw new Error("no deliveries given");
  interceptDynamo(async ({ command, input }, proceed) => {
    if (command === "UpdateItemCommand" && String(input.UpdateExpression).includes("parkings")) {
      throw new Error("DynamoDB is unavailable");
    }
    return proceed();
  });
  const message = sqsEvent(dueAttempt(row));
  expect(await send(message)).toEqual({ batchItemFailures: [{ itemIdentifier: "m0" }] });
  expect(await parkedIds()).toEqual([]);
  restoreAws();
  sent = watchMessages();
  expect(await send(message)).toEqual({ batchItemFailures: [] });
  expect(await parkedIds()).toEqual([row.id]);
  expect(sent).toMatchObject([{ message: { kind: "wake-up", webhook_id: webhook.id } }]);
  expect(await wakeUpNow()).toMatchObject({ generation: 1 });
});

test("a webhook whose wake-up call SQS rejects is left to the sweep", async () => {
  const failing = jest.fn();
  await changeWebhook(webhook, { failing_since: at(-31) });
  restoreAws();
  interceptSqs(() => {
    failing();
    return Promise.reject(new Error("SQS is unavailable"));
  });
  await sendAll(waiting);
  expect(failing).toHaveBeenCalled();
  const { due_at = "", due_shard = -1 } = await wakeUpNow();
  expect(due_at < at(121)).toBe(true);
  expect(await dueIds(due_shard)).toContain(webhook.id);
});

test("the sender sends all deliveries during the first 30 seconds of failures", async () => {
  receiver.respondWith(500);
  await changeWebhook(webhook, { failing_since: at(-25) });
  await sendAll(waiting);
  expect(receiver.received).toHaveLength(5);
  expect(await parkedIds()).toEqual([]);
});

test("the sender does not park deliveries of another webhook in the project", async () => {
  const { webhook: healthy } = await givenWebhook({ url: receiver.url, projectId: webhook.project_id });
  const delivery = await givenDelivery(healthy);
  await changeWebhook(webhook, { failing_since: at(-3_600), probe_at: at(60) });
  await sendAll([...waiting, delivery]);
  expect(receiver.received.map(({ headers }) => headers["x-service-delivery"])).toEqual([delivery.id]);
});

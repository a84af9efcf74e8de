import { jest } from "@jest/globals";
import { handler as send } from "../../../functions/attempts/send.ts";
import type { Delivery } from "../../../functions/deliveries/delivery.ts";
import type { Webhook } from "../../../functions/webhooks/webhook.ts";
import * as webhooks from "../../../functions/webhooks/webhook-store.ts";
import { interceptDynamo, restoreAws, watchQueue } from "../../support/aws-calls.ts";
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
import { type Receiver, startReceiver } from "../../support/receiver.ts";

/*
 * The circuit breaker where it is wired: one delivery probes a failing webhook, the others wait without using up
 * attempts.
 */

let receiver: Receiver;
let webhook: Webhook;
let waiting: Delivery[];
beforeAll(prepareDeliveries);
beforeEach(async () => {
  receiver = await startReceiver();
  ({ webhook } = await givenWebhook({ url: receiver.url }));
  waiting = await Promise.all(Array.from({ length: 5 }, () => givenDelivery(webhook)));
});
afterEach(async () => {
  restoreAws();
  jest.restoreAllMocks();
  await takeDueAttempts();
  await receiver.close();
});

const at = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString();
const webhookNow = () => webhooks.find(webhook.project_id, webhook.id);
const sendAll = async (rows: Delivery[]) => {
  expect(await send(sqsEvent(...rows.map((row) => dueAttempt(row))))).toEqual({ batchItemFailures: [] });
};
const rowsNow = () => Promise.all(waiting.map(rowOf));
const isUntouched = ({ status, attempt_count, attempts }: Delivery) =>
  status === "pending" && attempt_count === 0 && attempts === undefined;

test("the sender sends one probe after 30 seconds of failures and postpones the other deliveries", async () => {
  receiver.respondWith(500);
  await changeWebhook(webhook, { failing_since: at(-31) });
  const batches = watchQueue();
  await sendAll(waiting);
  expect(receiver.received).toHaveLength(1);
  const rows = await rowsNow();
  const [probe, ...others] = rows.toSorted((a, b) => b.attempt_count - a.attempt_count);
  expect(probe).toMatchObject({ status: "pending", attempt_count: 1 });
  expect(others.filter(isUntouched)).toHaveLength(4);
  for (const { id, next_attempt_at = "", due_at = "", due_shard = -1 } of others) {
    // After the next probe, which is 30 seconds away, and spread over the next 30 seconds.
    const seconds = (Date.parse(next_attempt_at) - Date.now()) / 1000;
    expect(seconds).toBeGreaterThan(25);
    expect(seconds).toBeLessThan(60.1);
    expect(Date.parse(due_at) - Date.parse(next_attempt_at)).toBe(120_000);
    expect(await dueIds(due_shard)).toContain(id);
    const entry = batches.flatMap(({ Entries }) => Entries).find(({ MessageBody }) => MessageBody.includes(id));
    expect(JSON.parse(entry?.MessageBody ?? "")).toMatchObject({ delivery_id: id, attempt: 1 });
    expect(Math.abs((entry?.DelaySeconds ?? 0) - seconds)).toBeLessThan(2);
  }
});

test.each([
  [0, 60],
  [1, 360],
])(
  "with a random number of %p, a delivery waits %i s when the next probe is due in 60 s after ten minutes of failures",
  async (random, waitSeconds) => {
    const [delivery] = waiting;
    if (!delivery) throw new Error("no deliveries given");
    await changeWebhook(webhook, { failing_since: at(-600), probe_at: at(60) });
    jest.spyOn(Math, "random").mockReturnValue(random);
    await sendAll([delivery]);
    const seconds = (Date.parse((await rowOf(delivery)).next_attempt_at ?? "") - Date.now()) / 1000;
    expect(seconds).toBeGreaterThan(waitSeconds - 5);
    expect(seconds).toBeLessThanOrEqual(waitSeconds + 1);
  },
);

test("the sender sends nothing between a failed probe and the next probe", async () => {
  receiver.respondWith(500);
  await changeWebhook(webhook, { failing_since: at(-31) });
  await sendAll(waiting);
  const after = (await rowsNow()).filter(isUntouched);
  await sendAll(after);
  await sendAll(after);
  expect(receiver.received).toHaveLength(1);
  expect((await rowsNow()).filter(isUntouched)).toHaveLength(4);
});

test("the sender sends one delivery when the next probe is due", async () => {
  receiver.respondWith(500);
  const failing_since = at(-600);
  await changeWebhook(webhook, { failing_since, probe_at: at(-1) });
  await sendAll(waiting);
  expect(receiver.received).toHaveLength(1);
  const { failing_since: since, probe_at = "" } = (await webhookNow()) ?? {};
  expect(since).toBe(failing_since);
  expect((Date.parse(probe_at) - Date.now()) / 1000).toBeCloseTo(60, -1);
});

test("the sender sends all deliveries after a successful probe", async () => {
  await changeWebhook(webhook, { failing_since: at(-3_600), probe_at: at(-1) });
  await sendAll(waiting);
  expect(receiver.received).toHaveLength(1);
  expect(await webhookNow()).toEqual(webhook);
  await sendAll((await rowsNow()).filter(isUntouched));
  expect(receiver.received).toHaveLength(5);
  const sent = new Set(receiver.received.map(({ headers }) => headers["x-service-delivery"]));
  expect([...sent].sort()).toEqual(waiting.map(({ id }) => id).sort());
  for (const row of await rowsNow()) expect(row).toMatchObject({ status: "succeeded", attempt_count: 1 });
});

test("the sender sends all deliveries during the first 30 seconds of failures", async () => {
  receiver.respondWith(500);
  await changeWebhook(webhook, { failing_since: at(-25) });
  await sendAll(waiting);
  expect(receiver.received).toHaveLength(5);
});

test("the sender sends one probe when two senders claim it at the same time", async () => {
  receiver.respondWith(500);
  const [first, second] = waiting;
  if (!first || !second) throw new Error("no deliveries given");
  await changeWebhook(webhook, { failing_since: at(-31) });
  interceptDynamo(async ({ command, input }, proceed) => {
    const isClaim = command === "UpdateItemCommand" && String(input.UpdateExpression).startsWith("SET probe_at");
    if (!isClaim) return proceed();
    restoreAws();
    // The other sender claims the probe after this one has read the webhook.
    await sendAll([second]);
    return proceed();
  });
  await sendAll([first]);
  expect(receiver.received.map(({ headers }) => headers["x-service-delivery"])).toEqual([second.id]);
  expect(isUntouched(await rowOf(first))).toBe(true);
  expect(Date.parse((await rowOf(first)).next_attempt_at ?? "")).toBeGreaterThan(Date.now() + 25_000);
});

test("the sender does not postpone deliveries of another webhook in the project", async () => {
  const { webhook: healthy } = await givenWebhook({ url: receiver.url, projectId: webhook.project_id });
  const delivery = await givenDelivery(healthy);
  await changeWebhook(webhook, { failing_since: at(-3_600), probe_at: at(60) });
  await sendAll([...waiting, delivery]);
  expect(receiver.received.map(({ headers }) => headers["x-service-delivery"])).toEqual([delivery.id]);
});

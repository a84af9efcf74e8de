import type http from "node:http";
import { UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { jest } from "@jest/globals";
import { makeAttempt } from "../../../functions/attempts/attempt.ts";
import { handler as sendSlow } from "../../../functions/attempts/send-slow.ts";
import { type Delivery, type PendingDelivery, parkingShardOf } from "../../../functions/deliveries/delivery.ts";
import * as deliveries from "../../../functions/deliveries/delivery-store.ts";
import { ensureWakeUp } from "../../../functions/deliveries/parking-store.ts";
import { handler as sweep } from "../../../functions/deliveries/sweep.ts";
import { dynamo } from "../../../functions/platform/aws.ts";
import { tableName } from "../../../functions/platform/env.ts";
import { logSink } from "../../../functions/platform/log.ts";
import { handler as suspend } from "../../../functions/projects/suspend.ts";
import { readHealth } from "../../../functions/webhooks/health-store.ts";
import type { Webhook } from "../../../functions/webhooks/webhook.ts";
import * as webhooks from "../../../functions/webhooks/webhook-store.ts";
import {
  attemptOf,
  beforeRecords,
  carriedDelivery,
  givenParked,
  type SentMessage,
  watchMessages,
} from "../../support/attempts.ts";
import { beforeHold, interceptDynamo, restoreAws, watchDynamo } from "../../support/aws-calls.ts";
import {
  changeWebhook,
  dueIds,
  givenDelivery,
  givenWebhook,
  prepareDeliveries,
  rowOf,
  rowsOf,
  sqsEvent,
  takeDueAttempts,
} from "../../support/deliveries.ts";
import { fakeDate } from "../../support/fake-date.ts";
import { metricsIn, watchLog } from "../../support/metrics.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";

/* The drain of parked deliveries, on a fake date. */

const enoughTime = { getRemainingTimeInMillis: () => 50_000 };
const allDone = { batchItemFailures: [] };

let receiver: Receiver;
let webhook: Webhook;
let clock: ReturnType<typeof fakeDate>;
let sent: SentMessage[];
beforeAll(prepareDeliveries);
beforeEach(async () => {
  receiver = await startReceiver();
  ({ webhook } = await givenWebhook({ url: receiver.url }));
  clock = fakeDate();
  sent = watchMessages();
});
afterEach(async () => {
  restoreAws();
  jest.useRealTimers();
  await takeDueAttempts();
  await receiver.close();
});

const at = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString();
/** Ten minutes of failures: a probe every minute. */
const openCircuit = (probeInSeconds = 0) =>
  changeWebhook(webhook, { failing_since: at(-600), probe_at: at(probeInSeconds) });
const webhookNow = () => webhooks.find(webhook.project_id, webhook.id);
const wakeUpNow = () => rowOf({ webhook_id: `wake-up:${webhook.id}`, id: webhook.id });
const requestedIds = () => receiver.received.map(({ headers }) => String(headers["x-service-delivery"]));
const idsOf = (rows: Delivery[]) => rows.map(({ id }) => id);
const parkedIds = () => dueIds(parkingShardOf(webhook.id));
const rowsNow = (rows: Delivery[]) => Promise.all(rows.map(rowOf));
const statusesNow = async (rows: Delivery[]) => (await rowsNow(rows)).map(({ status }) => status);
const firstOf = <T>([first]: T[]): T => {
  if (first === undefined) throw new Error("nothing is given");
  return first;
};
const handle = async (call: object) => expect(await sendSlow(sqsEvent(call), enoughTime)).toEqual(allDone);

/** Takes the wake-up calls of the webhook that have been sent, with their delays. */
const takeCalls = () =>
  sent.splice(0).flatMap(({ message, delaySeconds }) => {
    const isOfWebhook = message.kind === "wake-up" && message.webhook_id === webhook.id;
    return isOfWebhook ? [{ call: message, delaySeconds }] : [];
  });

/** Receives the wake-up call after its delay. @returns the delay in seconds */
async function wakeUp(): Promise<number> {
  const calls = takeCalls();
  expect(calls).toHaveLength(1);
  const { call, delaySeconds } = firstOf(calls);
  clock.advance(delaySeconds);
  await handle(call);
  return delaySeconds;
}

describe("while the circuit is open", () => {
  let parked: PendingDelivery[];
  beforeEach(async () => {
    await openCircuit();
    parked = await givenParked(webhook, 5, new Date());
  });

  test("the oldest parked delivery probes the receiver; after a failure the others stay as they are", async () => {
    receiver.respondWith(500);
    const [, ...others] = await rowsNow(parked);
    await wakeUp();
    expect(requestedIds()).toEqual([parked[0]?.id]);
    expect(await rowOf(firstOf(parked))).toMatchObject({ status: "pending", attempt_count: 1 });
    expect(await rowsNow(others)).toEqual(others);
    expect(await webhookNow()).toMatchObject({ failing_since: at(-600), probe_at: at(60) });
  });

  test("the webhook is woken again at the time of the next probe, by one call", async () => {
    receiver.respondWith(500);
    await wakeUp();
    const [{ call, delaySeconds } = {}, ...others] = takeCalls();
    expect(delaySeconds).toBe(60);
    expect(others).toEqual([]);
    // A call that arrives early sends nothing and waits.
    clock.advance(20);
    await handle(call ?? {});
    expect(requestedIds()).toHaveLength(1);
    expect(await wakeUp()).toBe(40);
    expect(requestedIds()).toEqual(idsOf(parked.slice(0, 2)));
  });

  test("the webhook is probing, with the error of the latest probe; after a success it is healthy", async () => {
    const healthNow = async () => readHealth((await webhookNow()) ?? webhook, new Date());
    expect(await healthNow()).toMatchObject({
      state: "probing",
      since: at(-600),
      next_probe_at: at(0),
      last_error: null,
    });
    const since = at(-600);
    receiver.respondWith(503);
    await wakeUp();
    expect(await healthNow()).toMatchObject({
      state: "probing",
      next_probe_at: at(60),
      last_error: { hint: expect.stringContaining("503") },
    });
    receiver.respondWith(401);
    await wakeUp();
    expect(await healthNow()).toMatchObject({
      since,
      last_success_at: null,
      last_error: { hint: expect.stringContaining("401") },
    });
    receiver.respondWith(200);
    await wakeUp();
    const nulls = { since: null, last_error: null, next_probe_at: null };
    expect(await healthNow()).toEqual({ state: "healthy", ...nulls, last_success_at: expect.stringMatching(/Z$/) });
  });

  test("the webhook is failing while no delivery is parked, and probing when one is", async () => {
    const healthNow = async () => readHealth((await webhookNow()) ?? webhook, new Date());
    for (const row of parked) await deliveries.cancel(await rowOf(row));
    await wakeUp();
    expect(await healthNow()).toMatchObject({ state: "failing", next_probe_at: null });
    clock.advance(31);
    await givenParked(webhook, 1, new Date());
    expect(await healthNow()).toMatchObject({ state: "probing", next_probe_at: at(0) });
  });

  test("a call that is not the latest does nothing", async () => {
    receiver.respondWith(500);
    const { call } = firstOf(takeCalls());
    await handle(call);
    clock.advance(60);
    await handle(call);
    await handle({ ...call, generation: call.generation - 1 });
    expect(requestedIds()).toHaveLength(1);
  });

  test("two receives of a call at once make one probe, and one next call", async () => {
    receiver.respondWith(500);
    const { call } = firstOf(takeCalls());
    await Promise.all([handle(call), handle(call), handle(call)]);
    expect(requestedIds()).toHaveLength(1);
    expect(takeCalls()).toHaveLength(1);
  });

  test("a probe that finds no slot is not claimed, and is made soon after", async () => {
    const waiting: http.ServerResponse[] = [];
    receiver.respondWith((_, response) => void waiting.push(response));
    const redelivered = await Promise.all(
      Array.from({ length: 10 }, () => givenDelivery(webhook, { trigger: "redeliver" })),
    );
    const busy = redelivered.map((row) => makeAttempt(attemptOf(row)));
    await receiver.waitFor(10);
    const before = await webhookNow();
    await wakeUp();
    expect(receiver.received).toHaveLength(10);
    expect(await webhookNow()).toEqual(before);
    expect(await statusesNow(parked)).toEqual(Array(5).fill("pending"));

    receiver.respondWith(500);
    for (const response of waiting) response.writeHead(500).end();
    await Promise.all(busy);
    expect(await wakeUp()).toBe(10);
    expect(requestedIds().slice(10)).toEqual([parked[0]?.id]);
  });

  test("a success of another delivery wakes the webhook at once", async () => {
    await openCircuit(300);
    const redelivered = await givenDelivery(webhook, { trigger: "redeliver" });
    takeCalls();
    await makeAttempt(attemptOf(redelivered));
    expect(await wakeUp()).toBe(0);
    expect(await statusesNow(parked)).toEqual(Array(5).fill("succeeded"));
  });

  test("a delivery that ended meanwhile is passed over by the probe", async () => {
    receiver.respondWith(500);
    const oldest = await rowOf(firstOf(parked));
    interceptDynamo(async ({ command }, proceed) => {
      const output = await proceed();
      // The index is behind the table.
      if (command === "QueryCommand") {
        restoreAws();
        sent = watchMessages();
        expect(await deliveries.cancel(oldest)).toBe(true);
      }
      return output;
    });
    await wakeUp();
    expect(requestedIds()).toEqual([parked[1]?.id]);
  });
});

test.each([3, 300])("a failed probe costs the same messages and calls with %i parked deliveries", async (count) => {
  receiver.respondWith(500);
  await openCircuit();
  await givenParked(webhook, count, new Date());
  const { call } = firstOf(takeCalls());
  const calls = watchDynamo();
  await handle(call);
  expect(calls.map(({ command }) => command)).toEqual([
    // The wake-up is claimed, the webhook and the oldest row are found.
    "UpdateItemCommand",
    "GetItemCommand",
    "QueryCommand",
    // The attempt: read, claim of the probe, claim of the row, record.
    "BatchGetItemCommand",
    "UpdateItemCommand",
    "UpdateItemCommand",
    "UpdateItemCommand",
    // The hand-over.
    "UpdateItemCommand",
  ]);
  expect(sent.map(({ message }) => message.kind)).toEqual(["due", "wake-up"]);
});

describe("after a successful probe", () => {
  let parked: PendingDelivery[];
  beforeEach(async () => {
    await openCircuit();
    parked = await givenParked(webhook, 25, new Date());
  });

  test("all others are sent, oldest first, at most ten at once", async () => {
    let inFlight = 0;
    const inFlightAtArrival: number[] = [];
    receiver.respondWith((_, response) => {
      inFlight += 1;
      inFlightAtArrival.push(inFlight);
      setTimeout(() => {
        inFlight -= 1;
        response.end();
      }, 50);
    });
    await wakeUp();
    const sentIds = requestedIds();
    const pages = [sentIds.slice(0, 1), sentIds.slice(1, 11), sentIds.slice(11, 21), sentIds.slice(21)];
    const planned = idsOf(parked);
    expect(pages.map((page) => page.toSorted())).toEqual(
      [planned.slice(0, 1), planned.slice(1, 11), planned.slice(11, 21), planned.slice(21)].map((page) =>
        page.toSorted(),
      ),
    );
    expect(inFlightAtArrival[1]).toBe(1);
    expect(Math.max(...inFlightAtArrival)).toBeLessThanOrEqual(10);
    expect(Math.max(...inFlightAtArrival)).toBeGreaterThan(1);
    expect(await statusesNow(parked)).toEqual(Array(25).fill("succeeded"));
    expect(await parkedIds()).toEqual([]);
    expect(await webhookNow()).toEqual(webhook);
  });

  test("the first attempts do not count as such, because the deliveries waited for the receiver", async () => {
    const lines = watchLog();
    await wakeUp();
    logSink.write = () => {};
    const { attempts, firstAttemptSuccess, eventToFirstAttempt, deliveryLatency } = metricsIn(lines);
    expect([attempts?.length, firstAttemptSuccess, eventToFirstAttempt]).toEqual([25, undefined, undefined]);
    expect(deliveryLatency).toHaveLength(25);
  });

  test("no second drain is started", async () => {
    await wakeUp();
    expect(takeCalls()).toMatchObject([{ delaySeconds: 10 }]);
  });

  test("a failure in the middle stops the drain for ten seconds", async () => {
    const failing = parked[12]?.id;
    receiver.respondWith(({ headers }, response) =>
      response.writeHead(headers["x-service-delivery"] === failing ? 500 : 200).end(),
    );
    await wakeUp();
    // The probe, the page before, and the page of the failure.
    expect(requestedIds()).toHaveLength(21);
    const rest = parked.slice(21);
    expect(await parkedIds()).toEqual(idsOf(rest));
    expect(await statusesNow(rest)).toEqual(Array(4).fill("pending"));
    expect((await rowOf(firstOf(parked.slice(12)))).attempt_count).toBe(1);

    receiver.respondWith(200);
    expect(await wakeUp()).toBe(10);
    expect(await statusesNow(rest)).toEqual(Array(4).fill("succeeded"));
    expect(requestedIds()).toHaveLength(25);
  });

  test("the receiver's failure in the first page leaves the others parked until its circuit opens and a probe succeeds", async () => {
    receiver.respondWith((_, response) => response.writeHead(receiver.received.length === 1 ? 200 : 500).end());
    await wakeUp();
    expect(requestedIds()).toHaveLength(11);
    expect(await parkedIds()).toEqual(idsOf(parked.slice(11)));
    expect(await webhookNow()).toHaveProperty("failing_since");
  });

  test("two drains at once send each delivery once", async () => {
    const redelivered = await givenDelivery(webhook, { trigger: "redeliver" });
    let respondToProbe = () => {};
    receiver.respondWith(({ headers }, response) => {
      if (headers["x-service-delivery"] === parked[0]?.id) respondToProbe = () => response.end();
      else response.end();
    });
    const { call } = firstOf(takeCalls());
    const first = handle(call);
    await receiver.waitFor(1);
    // Its success closes the circuit while the probe is in flight, and wakes the webhook.
    await makeAttempt(attemptOf(redelivered));
    const second = wakeUp();
    await receiver.waitFor(7);
    respondToProbe();
    await Promise.all([first, second]);
    expect(requestedIds().toSorted()).toEqual(idsOf([...parked, redelivered]).toSorted());
    expect(await statusesNow(parked)).toEqual(Array(25).fill("succeeded"));
  });
});

describe("a change of the webhook while deliveries are parked", () => {
  let parked: PendingDelivery[];
  beforeEach(async () => {
    await openCircuit();
    parked = await givenParked(webhook, 25, new Date());
  });

  test("disabled: all are held", async () => {
    await changeWebhook(webhook, { disabled_at: at(-1), disabled_reason: "manual" });
    await wakeUp();
    expect(receiver.received).toEqual([]);
    const rows = await rowsNow(parked);
    expect(rows.map(({ status, attempt_count }) => `${status} ${attempt_count}`)).toEqual(Array(25).fill("held 0"));
    for (const row of rows) expect(row).not.toHaveProperty("due_at");
    expect(await parkedIds()).toEqual([]);
  });

  test("suspended with its project: all are held, without a probe", async () => {
    await suspend({ project_id: webhook.project_id, suspended: true });
    await wakeUp();
    expect(receiver.received).toEqual([]);
    expect(await statusesNow(parked)).toEqual(Array(25).fill("held"));
    expect(await parkedIds()).toEqual([]);
  });

  test("deleted: all are cancelled", async () => {
    await webhooks.remove(webhook.project_id, webhook.id);
    await wakeUp();
    expect(receiver.received).toEqual([]);
    expect(await statusesNow(parked)).toEqual(Array(25).fill("cancelled"));
    expect(await parkedIds()).toEqual([]);
  });

  test.each([
    ["enabled again", { enabled: true }],
    ["a new URL", { url: "http://127.0.0.1:1/" }],
  ])("%s: all are sent at the next wake-up", async (_, patch) => {
    const { url } = receiver;
    await webhooks.update(webhook.project_id, webhook.id, "url" in patch ? { url: `${url}/new` } : patch, at(0));
    await wakeUp();
    expect(requestedIds().toSorted()).toEqual(idsOf(parked).toSorted());
    expect(new Set(receiver.received.map(({ path }) => path))).toEqual(
      new Set(["url" in patch ? "/hook/new" : "/hook"]),
    );
    expect(await statusesNow(parked)).toEqual(Array(25).fill("succeeded"));
  });

  test("410 at the probe: the others are held", async () => {
    receiver.respondWith(410);
    await wakeUp();
    await wakeUp();
    expect(receiver.received).toHaveLength(1);
    expect(await statusesNow(parked)).toEqual(["failed", ...Array(24).fill("held")]);
  });

  test("enabled before a hold is written: the delivery is sent all the same", async () => {
    await changeWebhook(webhook, { disabled_at: at(-1), disabled_reason: "manual" });
    beforeHold(() => webhooks.update(webhook.project_id, webhook.id, { enabled: true }, at(0)));
    await wakeUp();
    expect(await statusesNow(parked)).not.toContain("held");
    await wakeUp();
    expect(await statusesNow(parked)).toEqual(Array(25).fill("succeeded"));
  });
});

describe("a lost wake-up call", () => {
  test("is repeated by the sweep after the grace period", async () => {
    await openCircuit();
    const parked = await givenParked(webhook, 3, new Date());
    takeCalls();
    clock.advance(119);
    await sweep({}, enoughTime);
    expect(takeCalls()).toEqual([]);
    clock.advance(2);
    await sweep({}, enoughTime);
    expect(await wakeUp()).toBe(0);
    expect(await statusesNow(parked)).toEqual(Array(3).fill("succeeded"));
  });

  test("of a drain that ended in the middle is repeated by the sweep", async () => {
    await openCircuit();
    const parked = await givenParked(webhook, 3, new Date());
    let isStopped = false;
    beforeRecords(async () => {
      if (isStopped) return;
      isStopped = true;
      throw new Error("the process ends");
    });
    interceptDynamo(async ({ command }, proceed) => {
      if (command === "QueryCommand" && isStopped) throw new Error("the process ends");
      return proceed();
    });
    const { call } = firstOf(takeCalls());
    expect((await sendSlow(sqsEvent(call), enoughTime)).batchItemFailures).toEqual([]);
    restoreAws();
    sent = watchMessages();
    clock.advance(200);
    await sweep({}, enoughTime);
    await wakeUp();
    expect(await statusesNow(parked.slice(1))).toEqual(["succeeded", "succeeded"]);
  });
});

describe("an empty parking", () => {
  const isWoken = async () => (await rowsOf({ id: `wake-up:${webhook.id}` })).length > 0;

  beforeEach(async () => {
    await openCircuit();
    await givenParked(webhook, 1, new Date());
    await wakeUp();
    expect(await wakeUp()).toBe(10);
    expect(await isWoken()).toBe(true);
    // No call is on its way: the sweep wakes the webhook.
    expect(takeCalls()).toEqual([]);
  });

  test("is visited by the sweep ten minutes later, and then its wake-up is removed", async () => {
    expect(await wakeUpNow()).toMatchObject({ due_at: at(600), empty_since: at(0) });
    clock.advance(599);
    await sweep({}, enoughTime);
    expect(takeCalls()).toEqual([]);
    clock.advance(1);
    await sweep({}, enoughTime);
    await wakeUp();
    expect(await isWoken()).toBe(false);
    expect(takeCalls()).toEqual([]);
  });

  test("keeps its wake-up when a delivery is parked before the second visit, and the delivery is sent", async () => {
    clock.advance(300);
    const parked = await givenParked(webhook, 1, new Date());
    expect(await wakeUp()).toBe(0);
    expect(await statusesNow(parked)).toEqual(["succeeded"]);
    expect(await isWoken()).toBe(true);
    expect(takeCalls()).toMatchObject([{ delaySeconds: 10 }]);
  });

  test("keeps its wake-up when a delivery is parked during the second visit, and the delivery is sent", async () => {
    clock.advance(600);
    await sweep({}, enoughTime);
    const calls = takeCalls();
    let parked: Delivery[] = [];
    interceptDynamo(async ({ command }, proceed) => {
      const output = await proceed();
      if (command === "QueryCommand" && parked.length === 0) parked = await givenParked(webhook, 1, new Date());
      return output;
    });
    await handle(firstOf(calls).call);
    expect(parked).toHaveLength(1);
    expect(await isWoken()).toBe(true);
    await wakeUp();
    expect(await statusesNow(parked)).toEqual(["succeeded"]);
  });
});

test("a wake-up is not removed when a delivery was parked during the visit and its sender ended before the call", async () => {
  await openCircuit();
  await givenParked(webhook, 1, new Date());
  await wakeUp();
  await wakeUp();
  clock.advance(600);
  await sweep({}, enoughTime);
  const calls = takeCalls();
  let parked: Delivery[] = [];
  interceptDynamo(async ({ command, input }, proceed) => {
    const isHandOver =
      command === "UpdateItemCommand" && String(input.UpdateExpression).includes("REMOVE empty_since, handovers");
    if (isHandOver && parked.length > 0) throw new Error("the process ends");
    const output = await proceed();
    if (command === "QueryCommand" && parked.length === 0) {
      parked = [carriedDelivery(webhook)];
      await expect(ensureParked(parked)).rejects.toThrow("the process ends");
    }
    return output;
  });
  await handle(firstOf(calls).call);
  restoreAws();
  sent = watchMessages();
  // The sweep wakes the webhook after the lease of the drain.
  clock.advance(180);
  await sweep({}, enoughTime);
  await wakeUp();
  expect(await statusesNow(parked)).toEqual(["succeeded"]);
});

async function ensureParked(rows: Delivery[]): Promise<void> {
  for (const row of rows) await deliveries.insertParked(row as PendingDelivery, at(0));
  await ensureWakeUp(webhook, new Date());
}

test("an empty parking of a webhook whose circuit is open is visited at the time of the next probe", async () => {
  await openCircuit();
  const [parked] = await givenParked(webhook, 1, new Date());
  await deliveries.cancel(await rowOf(parked ?? firstOf([])));
  await wakeUp();
  expect(receiver.received).toEqual([]);
  expect(takeCalls()).toEqual([]);
  expect(await wakeUpNow()).toMatchObject({ due_at: at(60), empty_since: at(0) });
});

test.each<[string, () => Promise<unknown>, Delivery["status"]]>([
  ["sends", async () => {}, "succeeded"],
  ["cancels", () => webhooks.remove(webhook.project_id, webhook.id), "cancelled"],
])(
  "a drain that %s its deliveries leaves those of another webhook in the same partition alone",
  async (_, change, status) => {
    await openCircuit();
    const { webhook: other } = await givenWebhook({ url: receiver.url });
    const parked = await givenParked(webhook, 2, new Date());
    const calls = takeCalls();
    const strangers = await givenParked(other, 2, new Date());
    const shard = parkingShardOf(webhook.id);
    await Promise.all(strangers.map((row) => changeShard(row, shard)));
    await change();
    await handle(firstOf(calls).call);
    expect(await statusesNow(parked)).toEqual([status, status]);
    expect(requestedIds().filter((id) => idsOf(strangers).includes(id))).toEqual([]);
    expect(await statusesNow(strangers)).toEqual(["pending", "pending"]);
  },
);

/** Moves a row to another partition of the index. */
async function changeShard({ webhook_id, id }: Delivery, shard: number): Promise<void> {
  await dynamo().send(
    new UpdateCommand({
      TableName: tableName("deliveries"),
      Key: { webhook_id, id },
      UpdateExpression: "SET due_shard = :shard",
      ExpressionAttributeValues: { ":shard": shard },
    }),
  );
}

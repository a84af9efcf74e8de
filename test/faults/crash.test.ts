import { randomUUID } from "node:crypto";
import type { Delivery } from "../../functions/deliveries/delivery.ts";
import type { Webhook } from "../../functions/webhooks/webhook.ts";
import { find as findWebhook } from "../../functions/webhooks/webhook-store.ts";
import { type CrashRig, startCrashRig } from "../support/crash-rig.ts";
import { changeWebhook, eventOf, givenDelivery, givenWebhook, rowsOf, wakeUpOf } from "../support/deliveries.ts";
import { eventually } from "../support/eventually.ts";
import type { Trap } from "../support/fault-proxy.ts";
import { type Received, type Receiver, startReceiver } from "../support/receiver.ts";

/*
 * The process is killed (SIGKILL) at every step between event, row, queue, send, record and delete, and restarted. The
 * engines keep running: a call that they responded to has taken effect, a call that did not reach them has not.
 */

const EVENTS = 3;
const WEBHOOKS = 2;
const DELIVERIES = EVENTS * WEBHOOKS;

let rig: CrashRig;
let receiver: Receiver;
const report: Record<string, { kills: number; duplicates: number }> = {};
beforeAll(async () => {
  // Longer than any run, so that the sweep only recovers deliveries that the test makes overdue.
  rig = await startCrashRig({ RETRY_SCHEDULE: "0,0,0,0", DELIVERY_GRACE_SECONDS: "3600" });
  receiver = await startReceiver();
});
afterAll(async () => {
  await rig.stop();
  await receiver.close();
  if (process.env.FAULT_REPORT) console.table(report);
});
beforeEach(() => {
  receiver.received.length = 0;
  receiver.respondWith(200);
});

const idOf = ({ headers }: Received) => String(headers["webhook-id"]);
const arrivalsOf = (id: string) => receiver.received.filter((request) => idOf(request) === id).length;

async function twoWebhooks(): Promise<Webhook[]> {
  const projectId = randomUUID();
  const given = Array.from({ length: WEBHOOKS }, () => givenWebhook({ url: receiver.url, projectId }));
  return (await Promise.all(given)).map(({ webhook }) => webhook);
}

async function publishEvents([webhook]: Webhook[]): Promise<void> {
  const events = Array.from({ length: EVENTS }, () => eventOf(webhook?.project_id ?? ""));
  await Promise.all(events.map((event) => rig.publish(event)));
}

const rowsOfAll = async (webhooks: Webhook[]): Promise<Delivery[]> => (await Promise.all(webhooks.map(rowsOf))).flat();

/** Kills the process at a call to an engine. Resolves when it has been killed. */
function killAt(trap: Omit<Trap, "act">): Promise<void> {
  return new Promise((resolve) => rig.proxy.set({ ...trap, act: () => rig.kill().then(resolve) }));
}

/** Kills the process when the receiver has received the nth request and has not responded. */
function killOnReceipt(nth: number): Promise<void> {
  return new Promise((resolve) => {
    let seen = 0;
    receiver.respondWith((_, response) => {
      seen += 1;
      if (seen === nth) void rig.kill().then(resolve);
      if (seen < nth) response.end();
    });
  });
}

/**
 * Makes messages, rows and wake-ups due and restarts the process.
 * @returns per delivery, the number of requests that arrived and were not recorded
 */
async function restart(webhooks: Webhook[]): Promise<Map<string, number>> {
  await rig.kill();
  const rows = await rowsOfAll(webhooks);
  const recorded = new Map(rows.map(({ id, attempt_count }) => [id, attempt_count]));
  const arrived = new Set(receiver.received.map(idOf));
  const unrecorded = new Map([...arrived].map((id) => [id, arrivalsOf(id) - (recorded.get(id) ?? 0)]));
  const wakeUps = (await Promise.all(webhooks.map(wakeUpOf))).flatMap((wakeUp) => wakeUp ?? []);
  await rig.expireLeases([...rows.filter(({ status }) => status === "pending"), ...wakeUps]);
  await Promise.all(webhooks.map(expireProbe));
  await rig.start();
  return unrecorded;
}

/** Makes the next probe of a failing webhook due. */
async function expireProbe({ project_id, id }: Webhook): Promise<void> {
  const webhook = await findWebhook(project_id, id);
  if (webhook?.probe_at) await changeWebhook(webhook, { probe_at: new Date().toISOString() });
}

/**
 * Expects every delivery to succeed, and the requests that arrived to be those of the recorded attempts, plus those
 * that a kill kept from being recorded. Of an attempt with two requests, one or both have arrived.
 */
async function expectDelivered(webhooks: Webhook[], unrecorded: Map<string, number>[]): Promise<void> {
  const rows = await eventually(async () => {
    const found = await rowsOfAll(webhooks);
    expect(found.map(({ status }) => status)).toEqual(Array(DELIVERIES).fill("succeeded"));
    return found;
  });
  // No message is left, so no further request can follow.
  await eventually(() => expect(rig.messagesLeft()).toBe(0));
  const arrived = new Map(receiver.received.map((request) => [idOf(request), request.body]));
  expect(arrived).toEqual(new Map(rows.map(({ id, body }) => [id, body])));

  const last = unrecorded.at(-1) ?? new Map<string, number>();
  let total = 0;
  for (const { id, attempt_count, attempts = [] } of rows) {
    const duplicates = arrivalsOf(id) - attempt_count;
    const sentAgain = attempts.filter(({ request_count }) => request_count === 2).length;
    const killed = last.get(id) ?? 0;
    expect(duplicates).toBeGreaterThanOrEqual(killed);
    expect(duplicates).toBeLessThanOrEqual(killed + sentAgain);
    expect(killed).toBeLessThanOrEqual(unrecorded.length);
    total += duplicates;
  }
  report[expect.getState().currentTestName?.replace(/^.*killed /, "") ?? ""] = {
    kills: unrecorded.length,
    duplicates: total,
  };
}

type Step = [call: string, nth: number, when: Trap["when"]];

describe("delivers every event, and twice only if the first request was not recorded, when the process is killed", () => {
  test.each<Step>([
    ["ReceiveMessage deployment-events", 1, "after"],
    ["PutItem events", 2, "after"],
    ["SendMessageBatch deliveries", 1, "before"],
    ["SendMessageBatch deliveries", 1, "after"],
    ["DeleteMessageBatch deployment-events", 1, "after"],
    ["ReceiveMessage deliveries", 1, "after"],
    ["BatchGetItem deliveries", 1, "before"],
    // The record of a delivery that had no row.
    ["PutItem deliveries", 1, "before"],
    ["PutItem deliveries", 1, "after"],
    ["DeleteMessageBatch deliveries", 1, "after"],
  ])("at %s, number %i, %s the engine acts", async (call, nth, when) => {
    await rig.start();
    const webhooks = await twoWebhooks();
    const killed = killAt({ call, nth, when });
    await publishEvents(webhooks);
    await killed;
    await expectDelivered(webhooks, [await restart(webhooks)]);
  });

  test.each<Step>([
    ["PutItem deliveries", 1, "before"],
    ["SendMessageBatch deliveries-slow", 1, "after"],
    // The claim of the attempt, and its record.
    ["UpdateItem deliveries", 1, "before"],
    ["UpdateItem deliveries", 2, "after"],
  ])("with slow webhooks, at %s, number %i, %s the engine acts", async (call, nth, when) => {
    await rig.start();
    const webhooks = await twoWebhooks();
    const slow_since = new Date().toISOString();
    await Promise.all(webhooks.map((webhook) => changeWebhook(webhook, { slow_since })));
    const killed = killAt({ call, nth, when });
    await publishEvents(webhooks);
    await killed;
    await expectDelivered(webhooks, [await restart(webhooks)]);
  });

  test.each<[...Step, containing: string]>([
    ["PutItem deliveries", 1, "after", ""],
    ["UpdateItem deliveries", 1, "after", "ADD parkings"],
    ["UpdateItem deliveries", 1, "after", "ADD generation"],
    ["SendMessageBatch deliveries-slow", 1, "after", ""],
    // The drain: its claim of the wake-up, the probe, the end of the failure, the other rows.
    ["UpdateItem deliveries", 2, "after", "ADD generation"],
    ["Query deliveries/due", 1, "after", "due_at <= :now"],
    ["UpdateItem webhooks", 1, "after", "SET probe_at"],
    ["UpdateItem webhooks", 2, "after", "REMOVE failing_since"],
  ])(
    "with webhooks whose circuit is open, at %s, number %i, %s the engine acts %s",
    async (call, nth, when, containing) => {
      await rig.start();
      const webhooks = await twoWebhooks();
      const failing_since = new Date(Date.now() - 60_000).toISOString();
      await Promise.all(webhooks.map((webhook) => changeWebhook(webhook, { failing_since })));
      const killed = killAt({ call, nth, when, containing });
      await publishEvents(webhooks);
      await killed;
      await expectDelivered(webhooks, [await restart(webhooks)]);
    },
  );

  test.each([1, 4])("while the receiver holds request number %i without a response", async (nth) => {
    await rig.start();
    const webhooks = await twoWebhooks();
    const killed = killOnReceipt(nth);
    await publishEvents(webhooks);
    await killed;
    receiver.respondWith(200);
    await expectDelivered(webhooks, [await restart(webhooks)]);
  });

  test("three times in a row while the receiver holds a request", async () => {
    await rig.start();
    const webhooks = await twoWebhooks();
    const unrecorded: Map<string, number>[] = [];
    let killed = killOnReceipt(1);
    await publishEvents(webhooks);
    for (let kills = 1; kills < 3; kills++) {
      await killed;
      killed = killOnReceipt(1);
      unrecorded.push(await restart(webhooks));
    }
    await killed;
    receiver.respondWith(200);
    unrecorded.push(await restart(webhooks));
    await expectDelivered(webhooks, unrecorded);
  });

  // The steps after a failed attempt: record it, mark the webhook, enqueue the next attempt, remove the mark.
  test.each<[...Step, containing: string]>([
    ["PutItem deliveries", 1, "before", '"attempt_count":{"N":"1"}'],
    ["PutItem deliveries", 1, "after", '"attempt_count":{"N":"1"}'],
    ["UpdateItem webhooks", 1, "after", "SET failing_since"],
    ["SendMessageBatch deliveries", 1, "before", '\\"attempt\\":2'],
    ["SendMessageBatch deliveries", 1, "after", '\\"attempt\\":2'],
    ["UpdateItem deliveries", 1, "before", '":number":{"N":"2"}'],
    ["UpdateItem webhooks", 1, "after", "REMOVE failing_since"],
  ])("in a retry, at %s, number %i, %s the engine acts (%s)", async (call, nth, when, containing) => {
    await rig.start();
    const webhooks = await twoWebhooks();
    receiver.respondWith((request, response) => {
      response.writeHead(arrivalsOf(idOf(request)) === 1 ? 500 : 200).end();
    });
    const killed = killAt({ call, nth, when, containing });
    await publishEvents(webhooks);
    await killed;
    await expectDelivered(webhooks, [await restart(webhooks)]);
  });

  test.each<Step>([
    ["Query deliveries/due", 20, "after"],
    ["UpdateItem deliveries", 1, "before"],
    ["UpdateItem deliveries", 1, "after"],
    ["SendMessageBatch deliveries", 1, "before"],
    ["SendMessageBatch deliveries", 1, "after"],
  ])("in a sweep of lost messages, at %s, number %i, %s the engine acts", async (call, nth, when) => {
    await rig.kill();
    const webhooks = await twoWebhooks();
    const at = new Date(Date.now() - 300_000);
    const lost = webhooks.flatMap((webhook) => Array.from({ length: EVENTS }, () => givenDelivery(webhook, { at })));
    await Promise.all(lost);
    const killed = killAt({ call, nth, when });
    await rig.start();
    await killed;
    await expectDelivered(webhooks, [await restart(webhooks)]);
  });
});

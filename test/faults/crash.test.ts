import { randomUUID } from "node:crypto";
import type { Delivery } from "../../functions/deliveries/delivery.ts";
import type { Webhook } from "../../functions/webhooks/webhook.ts";
import { type CrashRig, startCrashRig } from "../support/crash-rig.ts";
import { eventOf, givenDelivery, givenWebhook, rowsOf } from "../support/deliveries.ts";
import { eventually } from "../support/eventually.ts";
import type { Trap } from "../support/fault-proxy.ts";
import { type Received, type Receiver, startReceiver } from "../support/receiver.ts";

/*
 * The process is killed (SIGKILL) at every step between event, row, queue, send, record and delete, and started again. The
 * engines live on: what they have answered holds, what they have not seen has not happened.
 */

const EVENTS = 3;
const WEBHOOKS = 2;
const DELIVERIES = EVENTS * WEBHOOKS;

let rig: CrashRig;
let receiver: Receiver;
const report: Record<string, { kills: number; duplicates: number }> = {};
beforeAll(async () => {
  // A grace that no run reaches: while the process lives, the sweep has nothing to mend.
  rig = await startCrashRig({ RETRY_SCHEDULE: "0,0,0,0", DELIVERY_GRACE_SECONDS: "60" });
  receiver = await startReceiver();
});
afterAll(async () => {
  await rig.stop();
  await receiver.close();
  if (process.env.FAULT_REPORT) console.table(report);
});
beforeEach(() => {
  receiver.received.length = 0;
  receiver.answerWith(200);
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

/** Kills at a call to an engine, and tells when that has happened. */
function killAt(trap: Omit<Trap, "act">): Promise<void> {
  return new Promise((resolve) => rig.proxy.set({ ...trap, act: () => rig.kill().then(resolve) }));
}

/** Kills when the receiver has the nth request and has not answered it. */
function killOnReceipt(nth: number): Promise<void> {
  return new Promise((resolve) => {
    let seen = 0;
    receiver.answerWith((_, response) => {
      seen += 1;
      if (seen === nth) void rig.kill().then(resolve);
      if (seen < nth) response.end();
    });
  });
}

/** Starts the process again, after its queue messages and rows have become due. Returns what nobody can know to have arrived. */
async function restart(webhooks: Webhook[]): Promise<Map<string, number>> {
  await rig.kill();
  const rows = await rowsOfAll(webhooks);
  const inDoubt = new Map(rows.map(({ id, attempt_count }) => [id, arrivalsOf(id) - attempt_count]));
  await rig.outlast(rows.filter(({ status }) => status === "pending"));
  await rig.start();
  return inDoubt;
}

/**
 * All that the webhooks are owed has arrived: once for each recorded attempt, and once more only where the process was killed
 * between the request and its record.
 */
async function expectDelivered(webhooks: Webhook[], inDoubt: Map<string, number>[]): Promise<void> {
  const rows = await eventually(async () => {
    const found = await rowsOfAll(webhooks);
    expect(found.map(({ status }) => status)).toEqual(Array(DELIVERIES).fill("succeeded"));
    return found;
  }, 15_000);
  // Nothing is left that could send anything more.
  await eventually(() => expect(rig.messagesLeft()).toBe(0));
  const arrived = new Map(receiver.received.map((request) => [idOf(request), request.body]));
  expect(arrived).toEqual(new Map(rows.map(({ id, body }) => [id, body])));

  const last = inDoubt.at(-1) ?? new Map<string, number>();
  let total = 0;
  for (const { id, attempt_count } of rows) {
    const duplicates = arrivalsOf(id) - attempt_count;
    expect(duplicates).toBeGreaterThanOrEqual(0);
    expect(duplicates).toBeLessThanOrEqual(last.get(id) ?? 0);
    expect(duplicates).toBeLessThanOrEqual(inDoubt.length);
    total += duplicates;
  }
  report[expect.getState().currentTestName?.replace(/^.*killed /, "") ?? ""] = {
    kills: inDoubt.length,
    duplicates: total,
  };
}

type Step = [call: string, nth: number, when: Trap["when"]];

describe("every event arrives, and once more only where that was in doubt, when the process is killed", () => {
  test.each<Step>([
    ["ReceiveMessage deployment-events", 1, "after"],
    ["Query webhooks", 1, "before"],
    ["Query webhooks", 2, "after"],
    ["PutItem deliveries", 1, "before"],
    ["PutItem deliveries", 1, "after"],
    ["PutItem deliveries", 4, "after"],
    ["SendMessageBatch deliveries", 1, "before"],
    ["SendMessageBatch deliveries", 1, "after"],
    ["DeleteMessageBatch deployment-events", 1, "before"],
    ["DeleteMessageBatch deployment-events", 1, "after"],
    ["ReceiveMessage deliveries", 1, "after"],
    ["BatchGetItem deliveries", 1, "before"],
    ["BatchGetItem deliveries", 3, "after"],
    ["UpdateItem deliveries", 1, "before"],
    ["UpdateItem deliveries", 4, "before"],
    ["UpdateItem deliveries", 1, "after"],
    ["UpdateItem deliveries", 5, "after"],
    ["DeleteMessageBatch deliveries", 1, "before"],
    ["DeleteMessageBatch deliveries", 1, "after"],
  ])("at %s, number %i, %s the engine acts", async (call, nth, when) => {
    await rig.start();
    const webhooks = await twoWebhooks();
    const killed = killAt({ call, nth, when });
    await publishEvents(webhooks);
    await killed;
    await expectDelivered(webhooks, [await restart(webhooks)]);
  });

  test.each([1, 4])("with request number %i at the receiver and no answer yet", async (nth) => {
    await rig.start();
    const webhooks = await twoWebhooks();
    const killed = killOnReceipt(nth);
    await publishEvents(webhooks);
    await killed;
    receiver.answerWith(200);
    await expectDelivered(webhooks, [await restart(webhooks)]);
  });

  test("three times in a row with requests at the receiver", async () => {
    await rig.start();
    const webhooks = await twoWebhooks();
    const inDoubt: Map<string, number>[] = [];
    let killed = killOnReceipt(1);
    await publishEvents(webhooks);
    for (let kills = 1; kills < 3; kills++) {
      await killed;
      killed = killOnReceipt(1);
      inDoubt.push(await restart(webhooks));
    }
    await killed;
    receiver.answerWith(200);
    inDoubt.push(await restart(webhooks));
    await expectDelivered(webhooks, inDoubt);
  });

  // What follows a failed attempt: the record, the mark on the webhook, the next attempt, and the end of the mark.
  test.each<[...Step, containing: string]>([
    ["UpdateItem deliveries", 1, "before", '":number":{"N":"1"}'],
    ["UpdateItem deliveries", 1, "after", '":number":{"N":"1"}'],
    ["UpdateItem webhooks", 1, "before", "SET failing_since"],
    ["UpdateItem webhooks", 1, "after", "SET failing_since"],
    ["SendMessageBatch deliveries", 1, "before", '\\"attempt\\":2'],
    ["SendMessageBatch deliveries", 1, "after", '\\"attempt\\":2'],
    ["UpdateItem deliveries", 1, "before", '":number":{"N":"2"}'],
    ["UpdateItem webhooks", 1, "before", "REMOVE failing_since"],
    ["UpdateItem webhooks", 1, "after", "REMOVE failing_since"],
  ])("in a retry, at %s, number %i, %s the engine acts (%s)", async (call, nth, when, containing) => {
    await rig.start();
    const webhooks = await twoWebhooks();
    receiver.answerWith((request, response) => {
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

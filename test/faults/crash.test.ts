import { randomUUID } from "node:crypto";
import type { Delivery } from "../../functions/deliveries/line/delivery.ts";
import type { Webhook } from "../../functions/webhooks/webhook/webhook.ts";
import { type CrashRig, startCrashRig } from "../support/crash-rig.ts";
import { changeWebhook, eventOf, givenWebhook, rowsOf } from "../support/deliveries.ts";
import { eventually } from "../support/eventually.ts";
import type { Trap } from "../support/fault-proxy.ts";
import { type Received, type Receiver, startReceiver } from "../support/receiver.ts";

/*
 * The process is killed (SIGKILL) between two writes, and restarted. The engines keep running: a call that they responded to
 * has taken effect, a call that did not reach them has not. The model tries all other places.
 */

const EVENTS = 3;
const WEBHOOKS = 2;
const DELIVERIES = EVENTS * WEBHOOKS;

let rig: CrashRig;
let receiver: Receiver;
beforeAll(async () => {
  rig = await startCrashRig({ RETRY_SCHEDULE: "0,0,0,0" });
  receiver = await startReceiver();
});
afterAll(async () => {
  await rig.stop();
  await receiver.close();
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

/**
 * Makes all that waits due and restarts the process.
 * @returns per delivery, the number of requests that arrived and were not recorded
 */
async function restart(webhooks: Webhook[]): Promise<Map<string, number>> {
  const recorded = new Map((await rowsOfAll(webhooks)).map(({ id, attempt_count }) => [id, attempt_count]));
  const arrived = [...new Set(receiver.received.map(idOf))];
  await rig.expireLeases(webhooks);
  await rig.start();
  return new Map(arrived.map((id) => [id, arrivalsOf(id) - (recorded.get(id) ?? 0)]));
}

/**
 * Expects every delivery to succeed, and the requests that arrived to be those of the recorded attempts, plus those
 * that the kill kept from being recorded. Of an attempt with two requests, one or both have arrived.
 */
async function expectDelivered(webhooks: Webhook[], unrecorded: Map<string, number>): Promise<void> {
  // An event that is received again waits, because a message may carry its delivery.
  await eventually(async () => {
    expect(await rowsOfAll(webhooks)).toHaveLength(DELIVERIES);
    expect(rig.messagesLeft()).toBe(0);
  });
  await rig.expireLeases(webhooks);
  const rows = await eventually(async () => {
    const found = await rowsOfAll(webhooks);
    expect(found.map(({ status }) => status)).toEqual(Array(DELIVERIES).fill("succeeded"));
    return found;
  });
  // No message is left, so no further request can follow.
  await eventually(() => expect(rig.messagesLeft()).toBe(0));
  const arrived = new Map(receiver.received.map((request) => [idOf(request), request.body]));
  expect(arrived).toEqual(new Map(rows.map(({ id, body }) => [id, body])));
  for (const { id, attempt_count, attempts = [] } of rows) {
    const duplicates = arrivalsOf(id) - attempt_count;
    const sentAgain = attempts.filter(({ request_count }) => request_count === 2).length;
    const killed = unrecorded.get(id) ?? 0;
    expect(killed).toBeLessThanOrEqual(1);
    expect(duplicates).toBeGreaterThanOrEqual(killed);
    expect(duplicates).toBeLessThanOrEqual(killed + sentAgain);
  }
}

const RECORD = '"attempts":{';

test.each<[string, "carried" | "waiting", call: string, when: Trap["when"], containing: string]>([
  ["after the place", "waiting", "PutItem backlog", "after", ""],
  ["after the wake-up", "waiting", "UpdateItem backlog", "after", "ADD #wakes"],
  ["after the row and before its message", "waiting", "SendMessageBatch deliveries-slow", "before", ""],
  ["after a request and before its record", "carried", "PutItem deliveries", "before", RECORD],
  ["after a request and before its record", "waiting", "PutItem deliveries", "before", RECORD],
  ["at the end of a visit", "waiting", "DeleteItem backlog", "before", "wake-up#"],
])(
  "every event is delivered, twice only if its first request was not recorded, when the process is killed %s (%s)",
  async (_, road, call, when, containing) => {
    await rig.start();
    receiver.received.length = 0;
    const webhooks = await twoWebhooks();
    const slow_since = new Date().toISOString();
    if (road === "waiting") await Promise.all(webhooks.map((webhook) => changeWebhook(webhook, { slow_since })));
    const killed = killAt({ call, nth: 1, when, containing });
    await publishEvents(webhooks);
    await killed;
    await expectDelivered(webhooks, await restart(webhooks));
  },
);

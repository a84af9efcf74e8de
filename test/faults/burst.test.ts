import { randomUUID } from "node:crypto";
import { type CrashRig, startCrashRig } from "../support/crash-rig.ts";
import { eventOf, givenWebhook, rowsOf } from "../support/deliveries.ts";
import { eventually } from "../support/eventually.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";

/* A burst for one webhook: two processes share the engines, and no delivery is sent twice. */

const EVENTS = 100;
const RESPONSE_MS = 300;

let rig: CrashRig;
let receiver: Receiver;
beforeAll(async () => {
  rig = await startCrashRig({ RETRY_SCHEDULE: "0,0" }, { processes: 2, shortPollMs: 100 });
  receiver = await startReceiver();
});
afterAll(async () => {
  await rig.stop();
  await receiver.close();
});

test("100 deliveries to a receiver that takes 300 ms arrive once each, with about one message each", async () => {
  const { webhook } = await givenWebhook({ url: receiver.url, projectId: randomUUID() });
  let inFlight = 0;
  let maxInFlight = 0;
  receiver.respondWith((_, response) => {
    inFlight += 1;
    maxInFlight = Math.max(maxInFlight, inFlight);
    setTimeout(() => {
      inFlight -= 1;
      response.end();
    }, RESPONSE_MS);
  });
  await rig.start();
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: EVENTS }, () => rig.publish(eventOf(webhook.project_id))));
  const requests = () => new Set(receiver.received.map(({ headers }) => headers["webhook-id"])).size;
  await eventually(() => expect(requests()).toBe(EVENTS));
  const rows = await eventually(async () => {
    const found = await rowsOf(webhook);
    const statuses = Object.groupBy(found, ({ status }) => status);
    expect({ succeeded: statuses.succeeded?.length, rows: found.length }).toEqual({ succeeded: EVENTS, rows: EVENTS });
    return found;
  });
  await eventually(() => expect(rig.messagesLeft()).toBe(0));
  const ids = receiver.received.map(({ headers }) => headers["webhook-id"]);
  const messages = rig.proxy.messagesSentTo("deliveries") + rig.proxy.messagesSentTo("deliveries-slow");
  if (process.env.FAULT_REPORT) {
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    const repeated = rig.proxy.repeatedFirstAttempts();
    console.table({ repeated, requests: ids.length, deliveries: new Set(ids).size, messages, maxInFlight, seconds });
  }
  expect(new Set(ids).size).toBe(EVENTS);
  // None, unless the machine was so busy that the SDK sent a message again.
  expect(ids.length - EVENTS).toBeLessThanOrEqual(rig.proxy.repeatedFirstAttempts());
  expect(rows.reduce((sum, { attempt_count }) => sum + attempt_count, 0)).toBe(ids.length);
  // Where the machine is so busy that the receiver seems slow, rows wait, and a message calls the worker for many.
  expect(messages).toBeLessThanOrEqual(1.1 * EVENTS + rig.proxy.repeatedFirstAttempts());
});

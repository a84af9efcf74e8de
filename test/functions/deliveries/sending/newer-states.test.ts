import { randomUUID } from "node:crypto";
import { handler as fanOut } from "../../../../functions/deliveries/intake/fan-out.ts";
import { createDelivery, type Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import { NewerStates } from "../../../../functions/deliveries/sending/newer-states.ts";
import { parseDeploymentEvent } from "../../../../functions/foundation/events/parse-deployment-event.ts";
import type { Webhook } from "../../../../functions/webhooks/webhook/webhook.ts";
import * as webhooks from "../../../../functions/webhooks/webhook/webhook-store.ts";
import { carry, requestAgain, visitLine, watchMessages } from "../../../support/attempts.ts";
import { watchDynamo } from "../../../support/aws-calls.ts";
import {
  changeWebhook,
  eventOf,
  givenEvent,
  givenWebhook,
  makeDue,
  pipelineBatch,
  prepareDeliveries,
  rowOf,
  rowsOf,
  takeMessages,
} from "../../../support/deliveries.ts";
import { type Receiver, startReceiver } from "../../../support/receiver.ts";

/* Webhooks that want the latest state only. */

let receiver: Receiver;
let webhook: Webhook;
const deployment_id = randomUUID();
const minuteAgo = Date.now() - 60_000;

/** A state of the deployment, which was reported some seconds after the first one. */
const state = (event: string, seconds: number, data: object = {}) =>
  eventOf(webhook.project_id, {
    event,
    deployment_id,
    timestamp: new Date(minuteAgo + seconds * 1000).toISOString(),
    data,
  });
const started = () => state("deploy.started", 0);
const failed = (seconds = 30) => state("deploy.failed", seconds);

function deliveryOf(event: object): Delivery {
  const message = parseDeploymentEvent(JSON.stringify(event));
  if (!message.ok) throw new Error(message.reason);
  return createDelivery(message.event, webhook, new Date(), new Date());
}

/** Stores an event, and has its message carry the delivery. */
async function arrive(event: object): Promise<Delivery> {
  await givenEvent(event);
  const delivery = deliveryOf(event);
  await carry(delivery);
  return delivery;
}

const received = () => receiver.received.map(({ headers }) => headers["x-service-event"]);

beforeAll(prepareDeliveries);
beforeEach(async () => {
  process.env.RETRY_SCHEDULE = "0";
  receiver = await startReceiver();
  ({ webhook } = await givenWebhook({ url: receiver.url, events: ["deploy.*"] }));
  webhook = await webhooks.update(webhook.project_id, webhook.id, { delivery: "latest" }, new Date().toISOString());
});
afterEach(async () => {
  delete process.env.RETRY_SCHEDULE;
  await Promise.all([takeMessages("deliveries"), takeMessages("slowDeliveries")]);
  await receiver.close();
});

test("a retry of an older state is superseded by the newer one that was accepted", async () => {
  receiver.respondWith(503);
  const old = await arrive(started());
  receiver.respondWith(200);
  const newer = await arrive(failed());
  await makeDue(webhook);
  await visitLine(webhook);
  expect(received()).toEqual(["deploy.started", "deploy.failed"]);
  expect(await rowOf(newer)).toMatchObject({ status: "succeeded" });
  const row = await rowOf(old);
  expect(row).toMatchObject({ status: "superseded", superseded_by: newer.id, attempt_count: 1, body: old.body });
  expect(row).not.toHaveProperty("next_attempt_at");
});

test.each([
  ["a message is faster than that of an older state", 30, 0],
  ["a late event has an older time", 30, -1_200],
])("when %s, the older one is not sent at all, in one write", async (_, newerAt, olderAt) => {
  const newer = await arrive(failed(newerAt));
  const old = state("deploy.started", olderAt);
  await givenEvent(old, { storedAt: new Date() });
  const calls = watchDynamo();
  const delivery = deliveryOf(old);
  await carry(delivery);
  expect(calls.filter(({ command }) => command === "PutItemCommand")).toHaveLength(1);
  expect(received()).toEqual(["deploy.failed"]);
  expect(await rowOf(delivery)).toMatchObject({ status: "superseded", superseded_by: newer.id, attempt_count: 0 });
});

test("a newer state supersedes from its arrival on, before it is accepted, and is the one that is retried", async () => {
  receiver.respondWith(503);
  const old = await arrive(started());
  const newer = await arrive(failed());
  await makeDue(webhook);
  receiver.respondWith(200);
  await visitLine(webhook);
  expect(received()).toEqual(["deploy.started", "deploy.failed", "deploy.failed"]);
  expect([(await rowOf(old)).status, (await rowOf(newer)).status]).toEqual(["superseded", "succeeded"]);
});

test("what the newest state is follows from time, then from whether it is final, not from arrival", async () => {
  const accepted = [await arrive(failed(0)), await arrive(state("deploy.started", 31))];
  const older = [await arrive(started()), await arrive(failed(30))];
  expect(received()).toEqual(["deploy.failed", "deploy.started"]);
  const rows = await Promise.all(older.map(rowOf));
  expect(rows.map(({ superseded_by }) => superseded_by)).toEqual([accepted[1]?.id, accepted[1]?.id]);
});

test.each<[string, () => Record<string, unknown>, () => Promise<unknown>]>([
  ["another deployment", () => ({ ...failed(), deployment_id: randomUUID() }), async () => {}],
  ["an event that the webhook does not get", failed, () => changeWebhook(webhook, { events: ["deploy.started"] })],
  ["an event that its filter leaves out", failed, () => changeWebhook(webhook, { filter: { branch: ["main"] } })],
])("%s supersedes nothing", async (_, newer, before) => {
  await before();
  await givenEvent(newer());
  const delivery = deliveryOf(started());
  await carry(delivery);
  expect((await rowOf(delivery)).status).toBe("succeeded");
});

test("an event that arrived before the webhook subscribed to it supersedes only if it has a delivery", async () => {
  const at = new Date(Date.now() - 1_000).toISOString();
  await webhooks.update(webhook.project_id, webhook.id, { events: ["deploy.started", "deploy.failed"] }, at);
  const newer = failed();
  await givenEvent(newer);
  await carry(deliveryOf(started()));
  await carry(deliveryOf(newer));
  const older = deliveryOf(state("deploy.started", 1));
  await carry(older);
  expect(received()).toEqual(["deploy.started", "deploy.failed"]);
  expect((await rowOf(older)).status).toBe("superseded");
});

test("a webhook that gets every event, one that changes to it, and a redelivery get older states", async () => {
  await arrive(failed());
  const old = await arrive(started());
  await requestAgain(old);
  await visitLine(webhook);
  await webhooks.update(webhook.project_id, webhook.id, { delivery: "every" }, new Date().toISOString());
  const other = await arrive(state("deploy.started", 1));
  expect(received()).toEqual(["deploy.failed", "deploy.started", "deploy.started"]);
  for (const delivery of [old, other]) {
    const row = await rowOf(delivery);
    expect(row.status).toBe("succeeded");
    expect(row).not.toHaveProperty("superseded_by");
  }
});

test("a recovery does not send what is superseded since", async () => {
  receiver.respondWith(400);
  process.env.RETRY_SCHEDULE = "";
  const old = await arrive(started());
  await visitLine(webhook);
  receiver.respondWith(200);
  await arrive(failed());
  await requestAgain(old, "recover");
  await visitLine(webhook);
  expect(received().at(-1)).toBe("deploy.failed");
  expect((await rowOf(old)).status).toBe("superseded");
});

test("a first attempt costs one read more, and nothing for other webhooks", async () => {
  await givenEvent(started());
  const calls = watchDynamo();
  await carry(deliveryOf(started()));
  const commands = ["BatchGetItemCommand", "QueryCommand", "PutItemCommand"];
  expect(calls.map(({ command }) => command)).toEqual(commands);
  await webhooks.update(webhook.project_id, webhook.id, { delivery: "every" }, new Date().toISOString());
  calls.splice(0);
  await carry(deliveryOf(state("deploy.started", 2)));
  expect(calls.map(({ command }) => command)).toEqual(commands.filter((command) => command !== "QueryCommand"));
});

test("a visit reads what is newer once for all that waits, and what was stored since", async () => {
  receiver.respondWith(503);
  const olds: Delivery[] = [];
  for (let second = 0; second < 20; second++) olds.push(await arrive(state("deploy.started", second)));
  const last = await arrive(failed());
  await makeDue(webhook);
  receiver.respondWith(200);
  const calls = watchDynamo();
  await visitLine(webhook);
  // Of the events two: one finds what supersedes all others. The rest is the line.
  expect(calls.filter(({ command }) => command === "QueryCommand")).toHaveLength(5);
  expect(received().at(-1)).toBe("deploy.failed");
  expect((await rowsOf(webhook)).map(({ status }) => status)).toEqual([...olds.map(() => "superseded"), "succeeded"]);
  expect((await rowOf(last)).status).toBe("succeeded");
});

test("a read has a bound: what is near an old state is found behind it too, what is far supersedes nothing", async () => {
  const old = deliveryOf(started());
  for (let second = 1; second <= 24; second++) {
    await givenEvent({ ...state("deploy.started", second, { log: "x".repeat(200_000) }), deployment_id: randomUUID() });
  }
  const newer = deliveryOf(failed());
  await givenEvent(failed());
  const states = new NewerStates(webhook.project_id, 1);
  expect(await states.newerThan(old, webhook)).toBeUndefined();
  expect(await states.newerThan(deliveryOf(state("deploy.started", 25)), webhook)).toBe(newer.id);
  expect(await new NewerStates(webhook.project_id).newerThan(old, webhook)).toBe(newer.id);
});

test("with settle_seconds, messages are delayed, and of states that follow each other the newest is sent", async () => {
  await changeWebhook(webhook, { settle_seconds: 20 });
  const messages = watchMessages();
  const events = [started(), failed()];
  await fanOut(pipelineBatch(...events));
  expect(messages.map(({ queue, delaySeconds }) => [queue, delaySeconds])).toEqual([
    ["deliveries", 20],
    ["deliveries", 20],
  ]);
  for (const event of events) await carry(deliveryOf(event));
  expect(received()).toEqual(["deploy.failed"]);
});

test("the sequence grows with the states of a deployment, and is the same at each attempt", async () => {
  await webhooks.update(webhook.project_id, webhook.id, { delivery: "every" }, new Date().toISOString());
  receiver.respondWith(503);
  const old = await arrive(started());
  for (const event of [failed(0), state("deploy.started", 1), failed(1)]) await arrive(event);
  await requestAgain(old);
  await visitLine(webhook);
  const sequences = receiver.received.map(({ headers }) => Number(headers["x-service-sequence"]));
  expect(sequences.slice(0, 4)).toEqual(sequences.slice(0, 4).toSorted((a, b) => a - b));
  expect(new Set(sequences).size).toBe(4);
  expect(sequences[4]).toBe(sequences[0]);
});

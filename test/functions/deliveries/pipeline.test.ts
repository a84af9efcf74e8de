import { Webhook as Verifier } from "standardwebhooks";
import { interceptSqs, restoreAws, watchQueue } from "../../support/aws-calls.ts";
import { changeWebhook, eventOf, publish, rowsOf, takeMessages } from "../../support/deliveries.ts";
import { eventually } from "../../support/eventually.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";
import { type Api, useService } from "../../support/service.ts";

/* From the events queue to the receiver: fan-out, send and sweep together. */

let api: Api;
let projectId: string;
let receivers: Receiver[];
beforeAll(() => {
  process.env.RETRY_SCHEDULE = "0,0";
});
const service = useService({ deliver: true });
beforeEach(async () => {
  const user = service.user();
  api = user.api;
  projectId = await service.project(user.userId);
  receivers = [];
});
afterEach(async () => {
  restoreAws();
  await Promise.all(receivers.map((receiver) => receiver.close()));
});

async function newReceiver(): Promise<Receiver> {
  const receiver = await startReceiver();
  receivers.push(receiver);
  return receiver;
}

async function subscribe({ url }: Receiver) {
  const { status, body } = await api.post(`/v1/projects/${projectId}/webhooks`, { url, events: ["deploy.started"] });
  expect(status).toBe(201);
  return body.data;
}

test("an event on the queue reaches its receiver, signed with the secret that create returned", async () => {
  const receiver = await newReceiver();
  const webhook = await subscribe(receiver);
  const event = eventOf(projectId, { data: { note: "größer 🚀" } });
  await publish(event);
  const [request] = await receiver.waitFor(1);
  expect(request?.body).toBe(JSON.stringify(event));
  const headers = request?.headers as Record<string, string>;
  expect(new Verifier(webhook.secret).verify(request?.body ?? "", headers)).toEqual(event);
  await eventually(async () =>
    expect(await rowsOf(webhook)).toMatchObject([{ status: "succeeded", attempt_count: 1 }]),
  );
});

test("an event with U+FFFE and U+FFFF, which SQS refuses, reaches its receiver unchanged, with its first message", async () => {
  const receiver = await newReceiver();
  const webhook = await subscribe(receiver);
  const event = eventOf(projectId, { data: { "key \uffff": "text \ufffe", escaped: String.raw`\uffff` } });
  const batches = watchQueue();
  await publish(event);
  const [request] = await receiver.waitFor(1);
  expect(request?.body).toBe(JSON.stringify(event));
  await eventually(async () =>
    expect(await rowsOf(webhook)).toMatchObject([{ status: "succeeded", attempt_count: 1 }]),
  );
  const kinds = batches.flatMap(({ Entries }) => Entries.map(({ MessageBody }) => JSON.parse(MessageBody).kind));
  expect(kinds).toEqual(["first"]);
});

test("a failed delivery is retried under the same id, not before the time of Retry-After", async () => {
  const receiver = await newReceiver();
  const webhook = await subscribe(receiver);
  receiver.respondWith((_, response) => {
    if (receiver.received.length > 1) response.end();
    else response.writeHead(429, { "Retry-After": "2" }).end();
  });
  await publish(eventOf(projectId));
  const [first, second] = await receiver.waitFor(2);
  expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(1_900);
  expect(second?.headers["x-service-delivery"]).toBe(first?.headers["x-service-delivery"]);
  await eventually(async () =>
    expect(await rowsOf(webhook)).toMatchObject([{ status: "succeeded", attempt_count: 2 }]),
  );
  expect(receiver.received).toHaveLength(2);
});

test("a hanging receiver does not delay the others", async () => {
  const [hanging, healthy] = [await newReceiver(), await newReceiver()];
  hanging.respondWith(() => {});
  await subscribe(hanging);
  const webhook = await subscribe(healthy);
  const events = Array.from({ length: 30 }, (_, number) => eventOf(projectId, { data: { number } }));
  await Promise.all(events.map(publish));
  await healthy.waitFor(events.length);
  await eventually(async () => {
    const rows = await rowsOf(webhook);
    expect(rows.filter(({ status }) => status === "succeeded")).toHaveLength(events.length);
  });
  expect(hanging.received.length).toBeGreaterThan(0);
  const sent = new Set(healthy.received.map(({ headers }) => headers["x-service-delivery"]));
  expect({ requests: healthy.received.length, deliveries: sent.size }).toEqual({ requests: 30, deliveries: 30 });
});

test("a delivery that waits is sent after a message to its worker was lost, because the sweep calls it again", async () => {
  const receiver = await newReceiver();
  const webhook = await subscribe(receiver);
  // The deliveries of a slow webhook have a row before their first attempt.
  await changeWebhook({ project_id: projectId, id: webhook.id }, { slow_since: new Date().toISOString() });
  let lost = 0;
  interceptSqs(async ({ command, input }, send) => {
    const isMeant = command === "SendMessageBatchCommand" && JSON.stringify(input).includes(webhook.id);
    if (!isMeant || lost > 0) return send();
    lost = (input.Entries as unknown[]).length;
    return { Successful: [] };
  });
  await publish(eventOf(projectId));
  await receiver.waitFor(1);
  expect(lost).toBe(1);
  await eventually(async () =>
    expect(await rowsOf(webhook)).toMatchObject([{ status: "succeeded", attempt_count: 1 }]),
  );
});

test("an event that is published 12 times reaches the receiver once", async () => {
  const receiver = await newReceiver();
  const webhook = await subscribe(receiver);
  const event = eventOf(projectId);
  await Promise.all(Array.from({ length: 12 }, () => publish(event)));
  await publish(eventOf(projectId, { data: { last: true } }));
  await eventually(async () => {
    const rows = await rowsOf(webhook);
    expect(rows.map(({ status }) => status)).toEqual(["succeeded", "succeeded"]);
  });
  expect(receiver.received).toHaveLength(2);
});

test("an invalid event is moved to the dead-letter queue, and later events arrive", async () => {
  const receiver = await newReceiver();
  await subscribe(receiver);
  await publish({ event: "deploy.paused" });
  await publish(eventOf(projectId));
  await receiver.waitFor(1);
  const deadLetters = await eventually(async () => {
    const taken = await takeMessages("events", "dead letters");
    expect(taken).toHaveLength(1);
    return taken;
  });
  expect(deadLetters).toEqual([
    { body: '{"event":"deploy.paused"}', reason: expect.stringContaining("event must be one of") },
  ]);
});

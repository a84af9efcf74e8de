import { randomUUID } from "node:crypto";
import { PurgeQueueCommand } from "@aws-sdk/client-sqs";
import { DeleteCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import { jest } from "@jest/globals";
import { type ReplayResult, handler as replayFor } from "../../../../functions/deliveries/intake/replay.ts";
import { deliveryIdOf, eventIdOf } from "../../../../functions/foundation/events/deployment-event.ts";
import { parseDeploymentEvent } from "../../../../functions/foundation/events/parse-deployment-event.ts";
import { dynamo, sqs } from "../../../../functions/foundation/platform/aws.ts";
import { queueUrl, tableName } from "../../../../functions/foundation/platform/env.ts";
import type { Webhook } from "../../../../functions/webhooks/webhook/webhook.ts";
import { watchMessages } from "../../../support/attempts.ts";
import { interceptDynamo, interceptSqs, restoreAws, watchDynamo } from "../../../support/aws-calls.ts";
import { call } from "../../../support/call.ts";
import {
  changeWebhook,
  eventOf,
  givenWebhook,
  placesOf,
  prepareDeliveries,
  rowsOf,
  sqsEvent,
  takeDeliveryMessages,
  takeMessages,
  wakeUpOf,
  workCall,
} from "../../../support/deliveries.ts";
import { fakeDate } from "../../../support/fake-date.ts";
import { watchLog } from "../../../support/metrics.ts";
import { useReceiver } from "../../../support/receiver.ts";
import { itemsOf } from "../../../support/stored-items.ts";

const receiver = useReceiver();
beforeAll(prepareDeliveries);
afterEach(async () => {
  receiver.received.length = 0;
  receiver.respondWith(200);
  await purge();
});

const HOUR = 3_600_000;
const ago = (millis: number): string => new Date(Date.now() - millis).toISOString();
const replay = (project_id: string, more: object = {}) =>
  call<ReplayResult>("deliveries-replay", { project_id, since: ago(HOUR), ...more });

const complete = (counts: object) => ({ unreadable: 0, next_cursor: null, complete: true, ...counts });

/** Fans events out as if SQS had received them at the time `at`. */
async function receive(events: (object | string)[], at = new Date()): Promise<void> {
  const batch = sqsEvent(...events);
  for (const record of batch.Records) {
    record.attributes.SentTimestamp = String(at.getTime());
    record.messageId = randomUUID();
  }
  expect(await call("deliveries-fan-out", batch)).toEqual({ batchItemFailures: [] });
}

const purge = () =>
  Promise.all(
    (["deliveries", "slowDeliveries"] as const).map((queue) =>
      sqs().send(new PurgeQueueCommand({ QueueUrl: queueUrl(queue) })),
    ),
  );

/** Sends what is carried by these messages. */
async function sendAll(messages: string[]): Promise<void> {
  for (const body of messages) {
    expect(await call("attempts-send", sqsEvent(body))).toEqual({ batchItemFailures: [] });
  }
}

/** Lets the worker send what waits for a webhook, when a message that carries it would have ended. */
async function sendWaiting(webhook: Webhook): Promise<void> {
  jest.setSystemTime(Date.now() + 76_000);
  expect(await call("attempts-send-slow", sqsEvent(workCall(webhook)))).toEqual({ batchItemFailures: [] });
}

/** Removes the delay of messages from now on, so that they can be taken at once. @returns the delays, in seconds */
function withoutDelays(): number[] {
  const delays: number[] = [];
  interceptSqs(async ({ input }, send) => {
    const entries = input.Entries as { DelaySeconds: number }[] | undefined;
    if (!entries) return send();
    delays.push(...entries.map(({ DelaySeconds }) => DelaySeconds));
    return send({ ...input, Entries: entries.map((entry) => ({ ...entry, DelaySeconds: 0 })) });
  });
  return delays;
}

const bodiesIn = async (queue: "deliveries" | "slowDeliveries") => (await takeMessages(queue)).map(({ body }) => body);

/** A webhook that exists since a day, so that it gets the events of the last hours. */
async function oldWebhook(options: Parameters<typeof givenWebhook>[0] = {}) {
  const { webhook } = await givenWebhook({ url: receiver.url, ...options });
  await changeWebhook(webhook, { created_at: ago(24 * HOUR) });
  return webhook;
}

describe("after the queue was purged", () => {
  test("a delivery without a row is created under its id, enqueued with a delay, and sent once", async () => {
    const webhook = await oldWebhook();
    const event = eventOf(webhook.project_id);
    await receive([event]);
    await purge();
    expect(await rowsOf(webhook)).toEqual([]);

    fakeDate();
    const messages = watchMessages();
    expect(await replay(webhook.project_id)).toEqual(complete({ events: 1, deliveries: 1 }));
    expect(messages).toMatchObject([{ queue: "slowDeliveries", delaySeconds: 75, message: workCall(webhook) }]);
    const [row] = await rowsOf(webhook);
    expect(row).toMatchObject({ status: "pending", attempt_count: 0, body: JSON.stringify(event) });
    expect(Date.parse(row?.next_attempt_at ?? "") - Date.parse(row?.created_at ?? "")).toBe(75_000);

    await sendWaiting(webhook);
    expect(receiver.received.map(({ headers }) => headers["x-service-delivery"])).toEqual([row?.id]);
    expect(await rowsOf(webhook)).toMatchObject([{ id: row?.id, status: "succeeded", attempt_count: 1 }]);
  });

  test("deliveries that were attempted stay as they are, and a second replay creates nothing", async () => {
    const webhook = await oldWebhook();
    await receive([eventOf(webhook.project_id)]);
    await sendAll(await bodiesIn("deliveries"));
    receiver.respondWith(500);
    await receive([eventOf(webhook.project_id)]);
    await sendAll(await bodiesIn("deliveries"));
    const attempted = await rowsOf(webhook);
    expect(attempted.map(({ status }) => status).sort()).toEqual(["pending", "succeeded"]);
    await receive([eventOf(webhook.project_id), eventOf(webhook.project_id)]);
    await purge();

    withoutDelays();
    expect(await replay(webhook.project_id)).toEqual(complete({ events: 4, deliveries: 2 }));
    expect(await rowsOf(webhook)).toEqual(expect.arrayContaining(attempted));
    expect(await rowsOf(webhook)).toHaveLength(4);
    const entries = async () => (await placesOf(webhook)).map(({ entry }) => entry);
    const before = await entries();
    expect(before).toHaveLength(3);
    expect(await replay(webhook.project_id)).toEqual(complete({ events: 4, deliveries: 0 }));
    expect(await entries()).toEqual(before);
  });

  test("a delivery whose first message was not purged is sent once", async () => {
    const webhook = await oldWebhook();
    await receive([eventOf(webhook.project_id)]);
    const [first = ""] = await bodiesIn("deliveries");
    fakeDate();
    await replay(webhook.project_id);
    await sendAll([first]);
    await sendWaiting(webhook);
    expect(receiver.received).toHaveLength(1);
  });

  test.each<[string, Partial<Webhook>]>([
    ["slow", { slow_since: ago(1_000) }],
    ["disabled", { disabled_at: ago(1_000) }],
  ])(
    "a delivery that waits for a %s webhook gets its place and its wake-up back, which a restored table lacks",
    async (_, state) => {
      const { webhook } = await givenWebhook({ url: receiver.url });
      await changeWebhook(webhook, { slow_since: ago(1_000) });
      await receive([eventOf(webhook.project_id)]);
      const [place] = await placesOf(webhook);
      const { line, entry } = (await wakeUpOf(webhook)) ?? {};
      for (const Key of [
        { line: place?.line, entry: place?.entry },
        { line, entry },
      ]) {
        await dynamo().send(new DeleteCommand({ TableName: tableName("backlog"), Key }));
      }
      expect(await placesOf(webhook)).toEqual([]);
      await changeWebhook(webhook, state);
      const calls = watchDynamo();
      expect(await replay(webhook.project_id)).toEqual(complete({ events: 1, deliveries: 0 }));
      expect(await placesOf(webhook)).toEqual([{ ...place, written_at: expect.any(String) }]);
      // The place before the wake-up: a worker that found no place would remove the wake-up.
      const writes = calls.map(({ command }) => command).filter((command) => /^(Put|Update)/.test(command));
      expect(writes).toEqual(["PutItemCommand", "UpdateItemCommand"]);
      expect(await wakeUpOf(webhook)).toMatchObject({ due: place?.due, wakes: 1 });
    },
  );

  test("a delivery is created only if the filter of the webhook matches its event", async () => {
    const webhook = await oldWebhook({ filter: { environment: ["production"] } });
    const [wanted, other] = ["production", "staging"].map((environment) =>
      eventOf(webhook.project_id, { data: { environment } }),
    );
    await receive([wanted ?? "", other ?? ""]);
    await purge();
    expect(await replay(webhook.project_id)).toEqual(complete({ events: 2, deliveries: 1 }));
    expect(await rowsOf(webhook)).toMatchObject([{ body: JSON.stringify(wanted) }]);
  });

  test("two replays at the same time lead to one request per delivery", async () => {
    const webhook = await oldWebhook();
    await receive(Array.from({ length: 5 }, () => eventOf(webhook.project_id)));
    await purge();
    fakeDate();
    await Promise.all([replay(webhook.project_id), replay(webhook.project_id)]);
    await sendWaiting(webhook);
    expect(await rowsOf(webhook)).toMatchObject(Array(5).fill({ status: "succeeded", attempt_count: 1 }));
    expect(receiver.received).toHaveLength(5);
  });

  test("a delivery keeps the time at which its event was received", async () => {
    const webhook = await oldWebhook();
    const at = new Date(Date.now() - 600_000);
    await receive([eventOf(webhook.project_id)], at);
    await purge();
    await replay(webhook.project_id);
    expect(await rowsOf(webhook)).toMatchObject([{ event_received_at: at.toISOString() }]);
  });
});

test.each<[string, (projectId: string) => string]>([
  ["numbers beyond double precision", (id) => JSON.stringify(eventOf(id)).replace('"c0ffee"', "9007199254740993.10")],
  ["-0 and 1.0", (id) => JSON.stringify(eventOf(id)).replace('"c0ffee"', "[-0, 1.0, 1e400]")],
  [
    "keys in another order and white space",
    (id) => JSON.stringify(Object.fromEntries(Object.entries(eventOf(id)).reverse()), null, 2),
  ],
  [
    "ids in upper case",
    (id) => JSON.stringify(eventOf(id.toUpperCase(), { deployment_id: randomUUID().toUpperCase() })),
  ],
  ["the earliest time", (id) => JSON.stringify(eventOf(id, { timestamp: "2000-01-01T00:00:00Z" }))],
  [
    "half a surrogate pair and a key __proto__",
    (id) => JSON.stringify(eventOf(id)).replace('"commit"', '"a":"\\ud800","__proto__":{"b":1},"10":1,"9":2,"commit"'),
  ],
  ["repeated keys", (id) => JSON.stringify(eventOf(id)).replace('"commit"', '"a":1.50,"a":2.50,"commit"')],
])("an event with %s is replayed under the delivery id of its first message", async (_, write) => {
  const webhook = await oldWebhook();
  const text = write(webhook.project_id);
  await receive([text]);
  const [message = ""] = await bodiesIn("deliveries");
  const { delivery } = JSON.parse(message);
  const original = parseDeploymentEvent(text);
  expect(delivery.id).toBe(original.ok && deliveryIdOf(original.event, webhook.id));

  expect(await replay(webhook.project_id)).toEqual(complete({ events: 1, deliveries: 1 }));
  expect(await rowsOf(webhook)).toMatchObject([{ id: delivery.id, body: delivery.body }]);
});

describe("a webhook", () => {
  test("that was created after an event was received gets nothing, whatever time the event has", async () => {
    const projectId = randomUUID();
    const old = await oldWebhook({ projectId });
    const { webhook: young } = await givenWebhook({ url: receiver.url, projectId });
    const createdAt = new Date(Date.now() - 60_000);
    await changeWebhook(young, { created_at: createdAt.toISOString() });
    const inFuture = new Date(Date.now() + 23 * HOUR).toISOString();
    await receive([eventOf(projectId), eventOf(projectId, { timestamp: inFuture })], new Date(Date.now() - 120_000));
    await receive([eventOf(projectId, { timestamp: ago(2 * HOUR) })], createdAt);
    await purge();
    expect(await replay(projectId)).toEqual(complete({ events: 3, deliveries: 4 }));
    expect(await rowsOf(old)).toHaveLength(3);
    expect(await rowsOf(young)).toHaveLength(1);
  });

  test("that is disabled gets a held delivery, and no message", async () => {
    const webhook = await oldWebhook();
    await receive([eventOf(webhook.project_id)]);
    await purge();
    await changeWebhook(webhook, { disabled_at: ago(1_000), disabled_reason: "manual" });
    withoutDelays();
    expect(await replay(webhook.project_id)).toEqual(complete({ events: 1, deliveries: 1 }));
    expect(await rowsOf(webhook)).toMatchObject([{ status: "held" }]);
    expect(await takeDeliveryMessages()).toEqual([]);
    expect(await replay(webhook.project_id)).toEqual(complete({ events: 1, deliveries: 0 }));
  });
});

describe("since", () => {
  test("applies to the time of receipt, not to the time that the pipeline wrote", async () => {
    const webhook = await oldWebhook();
    const [late, early] = [
      eventOf(webhook.project_id, { timestamp: ago(20 * 24 * HOUR) }),
      eventOf(webhook.project_id, { timestamp: new Date(Date.now() + 24 * HOUR).toISOString() }),
    ];
    await receive([late]);
    await receive([early], new Date(Date.now() - 2 * HOUR));
    await purge();
    expect(await replay(webhook.project_id)).toEqual(complete({ events: 1, deliveries: 1 }));
    expect(await rowsOf(webhook)).toMatchObject([{ deployment_id: late.deployment_id }]);
  });

  test("includes the millisecond that it names", async () => {
    const webhook = await oldWebhook();
    const at = new Date(Date.now() - 60_000);
    await receive([eventOf(webhook.project_id)], at);
    const after = new Date(at.getTime() + 1).toISOString();
    expect(await replay(webhook.project_id, { since: after })).toMatchObject({ events: 0 });
    expect(await replay(webhook.project_id, { since: at.toISOString() })).toMatchObject({ events: 1 });
  });
});

test("an event whose row expires within the hour is left out: its deliveries may have been deleted", async () => {
  fakeDate();
  const webhook = await oldWebhook();
  await receive([eventOf(webhook.project_id)]);
  const left = async (seconds: number) => {
    await changeEvents(webhook.project_id, { expires_at: Math.floor(Date.now() / 1000) + seconds });
    return (await replay(webhook.project_id)).events;
  };
  expect(await left(-60)).toBe(0);
  expect(await left(3_600)).toBe(0);
  expect(await left(3_601)).toBe(1);
  expect(await replay(webhook.project_id, { since: new Date().toISOString() })).toMatchObject({ complete: true });
});

test("events of other projects are not read", async () => {
  const [one, other] = [await oldWebhook(), await oldWebhook()];
  await receive([eventOf(one.project_id), eventOf(other.project_id)]);
  expect(await replay(one.project_id)).toEqual(complete({ events: 1, deliveries: 1 }));
  expect(await rowsOf(other)).toEqual([]);
  const calls = watchDynamo();
  expect(await replay(randomUUID())).toEqual(complete({ events: 0, deliveries: 0 }));
  // Its events, and whether it is suspended.
  expect(calls.map(({ command }) => command)).toEqual(["QueryCommand", "QueryCommand"]);
});

describe("a damaged row", () => {
  test("is counted and logged, and the other events are replayed, which is logged with the counts", async () => {
    const webhook = await oldWebhook();
    const events = Array.from({ length: 3 }, () => eventOf(webhook.project_id));
    await receive(events);
    await purge();
    const [first, second] = events.map((event) => {
      const message = parseDeploymentEvent(JSON.stringify(event));
      return message.ok ? eventIdOf(message.event) : "";
    });
    await changeEvent(webhook.project_id, first ?? "", { body: "{" });
    await changeEvent(webhook.project_id, second ?? "", { body: JSON.stringify(eventOf(webhook.project_id)) });
    const lines = watchLog();
    expect(await replay(webhook.project_id)).toEqual(complete({ events: 3, deliveries: 1, unreadable: 2 }));
    expect(await rowsOf(webhook)).toMatchObject([{ deployment_id: events[2]?.deployment_id }]);
    const logged = lines.filter(({ message }) => message === "event not replayed");
    expect(logged.map(({ event_id }) => event_id).sort()).toEqual([first, second].sort());
    const counts = { project_id: webhook.project_id, events: 3, deliveries: 1, unreadable: 2, complete: true };
    expect(lines.filter(({ message }) => message === "replay")).toMatchObject([counts]);
  });
});

describe("many events", () => {
  /** A context whose time is over after a number of checks. */
  const timeFor = (checks: number) => {
    let left = checks;
    return { getRemainingTimeInMillis: () => (left-- > 0 ? 20_000 : 19_999) };
  };

  test("are replayed over three calls, each from the cursor of the one before", async () => {
    const webhook = await oldWebhook();
    const events = Array.from({ length: 60 }, () => eventOf(webhook.project_id));
    for (let start = 0; start < 60; start += 10) await receive(events.slice(start, start + 10));
    await purge();
    const input = { project_id: webhook.project_id, since: ago(HOUR) };
    const results: ReplayResult[] = [];
    let cursor: string | null | undefined;
    do {
      const result = await replayFor({ ...input, ...(cursor && { cursor }) }, timeFor(0));
      results.push(result);
      cursor = result.next_cursor;
    } while (cursor !== null);
    expect(results.map(({ events, deliveries, complete }) => ({ events, deliveries, complete }))).toEqual([
      { events: 25, deliveries: 25, complete: false },
      { events: 25, deliveries: 25, complete: false },
      { events: 10, deliveries: 10, complete: true },
    ]);
    const ids = (await rowsOf(webhook)).map(({ deployment_id }) => deployment_id);
    expect(ids.sort()).toEqual(events.map(({ deployment_id }) => deployment_id).sort());
  });

  test.each([[1], [7], [1_000]])("are all replayed when a query returns %i rows, matching or not", async (Limit) => {
    const webhook = await oldWebhook();
    const old = Array.from({ length: 9 }, () => eventOf(webhook.project_id));
    const young = Array.from({ length: 12 }, () => eventOf(webhook.project_id));
    for (const group of [old.slice(0, 5), old.slice(5)]) await receive(group, new Date(Date.now() - 2 * HOUR));
    for (const group of [young.slice(0, 6), young.slice(6)]) await receive(group);
    await purge();
    interceptDynamo(({ command, input }, send) =>
      send(command === "QueryCommand" && input.TableName === tableName("events") ? { ...input, Limit } : input),
    );
    expect(await replayFor({ project_id: webhook.project_id, since: ago(HOUR) }, timeFor(100))).toEqual(
      complete({ events: 12, deliveries: 12 }),
    );
    expect(await rowsOf(webhook)).toHaveLength(12);
  });
});

describe("when DynamoDB fails for one webhook", () => {
  test("the call fails, the deliveries of the others are enqueued, and a repeated call creates the rest", async () => {
    const projectId = randomUUID();
    const [one, failing] = [await oldWebhook({ projectId }), await oldWebhook({ projectId })];
    await receive([eventOf(projectId)]);
    await purge();
    interceptDynamo(async ({ command, input }, send) => {
      const isFailing =
        command === "PutItemCommand" && (input.Item as { webhook_id?: string }).webhook_id === failing.id;
      if (isFailing) throw new Error("DynamoDB is unavailable");
      return send();
    });
    withoutDelays();
    await expect(replay(projectId)).rejects.toThrow("DynamoDB is unavailable");
    expect(await takeDeliveryMessages()).toEqual(expect.arrayContaining([workCall(one)]));
    restoreAws();
    expect(await replay(projectId)).toEqual(complete({ events: 1, deliveries: 1 }));
    expect(await rowsOf(failing)).toHaveLength(1);
  });

  test("a rejected message leaves the row to the sweep", async () => {
    const webhook = await oldWebhook();
    await receive([eventOf(webhook.project_id)]);
    await purge();
    interceptSqs(() => Promise.reject(new Error("SQS is unavailable")));
    expect(await replay(webhook.project_id)).toEqual(complete({ events: 1, deliveries: 1 }));
    expect(await rowsOf(webhook)).toMatchObject([{ status: "pending" }]);
    expect(await wakeUpOf(webhook)).toBeDefined();
  });
});

const valid = { project_id: randomUUID(), since: "2026-01-31T09:30:00Z" };

test.each([
  ["undefined", undefined, ""],
  ["null", null, ""],
  ["no project", { ...valid, project_id: undefined }, "project_id"],
  ["a project that is not a UUID", { ...valid, project_id: "shop" }, "project_id"],
  ["no time", { ...valid, since: undefined }, "since"],
  ["a time that is a number", { ...valid, since: 1_769_851_800 }, "since"],
  ["a time in the future", { ...valid, since: "2999-01-01T00:00:00Z" }, "since"],
  ["a time after the year 9999", { ...valid, since: "9999-12-31T23:59:59-23:00" }, "since"],
  ["a cursor that is not an id", { ...valid, cursor: "#count" }, "cursor"],
  ["the cursor null", { ...valid, cursor: null }, "cursor"],
  ["an unknown field", { ...valid, limit: 1 }, "limit"],
])("throws validation_error for %s with the path of the field", async (_title, input, path) => {
  await expect(call("deliveries-replay", input)).rejects.toMatchObject({
    code: "validation_error",
    details: [{ path, message: expect.any(String) }],
  });
});

test.each([
  ["before 1970", { since: "0001-01-01T00:00:00Z" }],
  ["in the year 0, west of Greenwich", { since: "0000-01-01T00:00:00+23:00" }],
])("accepts a time %s", async (_, more) => {
  const webhook = await oldWebhook();
  await receive([eventOf(webhook.project_id)]);
  expect(await replay(webhook.project_id, more)).toMatchObject({ events: 1, complete: true });
});

test("a cursor of another project or beyond the last event reads no event of another project", async () => {
  const webhook = await oldWebhook();
  await receive([eventOf(webhook.project_id)]);
  expect(await replay(webhook.project_id, { cursor: "ffffffff-ffff-7fff-bfff-ffffffffffff" })).toEqual(
    complete({ events: 0, deliveries: 0 }),
  );
  expect(await replay(randomUUID(), { cursor: "00000000-0000-7000-8000-000000000000" })).toEqual(
    complete({ events: 0, deliveries: 0 }),
  );
});

async function changeEvents(projectId: string, values: object): Promise<void> {
  const rows = await eventRows(projectId);
  for (const row of rows) {
    await dynamo().send(new PutCommand({ TableName: tableName("events"), Item: { ...row, ...values } }));
  }
}

async function changeEvent(projectId: string, id: string, values: object): Promise<void> {
  const row = (await eventRows(projectId)).find((each) => each.id === id);
  await dynamo().send(new PutCommand({ TableName: tableName("events"), Item: { ...row, ...values } }));
}

const eventRows = (projectId: string) => itemsOf("events", { project_id: projectId });

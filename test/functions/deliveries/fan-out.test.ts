import { randomUUID } from "node:crypto";
import { QueryCommand } from "@aws-sdk/lib-dynamodb";
import { parkingShardOf } from "../../../functions/deliveries/delivery.ts";
import type { DeliveryMessage, FirstAttempt } from "../../../functions/deliveries/delivery-queue.ts";
import type { StoredEvent } from "../../../functions/deliveries/event-store.ts";
import { handler } from "../../../functions/deliveries/fan-out.ts";
import { eventNames } from "../../../functions/deployments/deployment-event.ts";
import { dynamo } from "../../../functions/platform/aws.ts";
import { tableName } from "../../../functions/platform/env.ts";
import type { Webhook } from "../../../functions/webhooks/webhook.ts";
import * as webhooks from "../../../functions/webhooks/webhook-store.ts";
import {
  beforeHold,
  failDynamo,
  interceptDynamo,
  interceptSqs,
  isCall,
  type QueueBatch,
  repeatDynamo,
  restoreAws,
  watchDynamo,
  watchQueue,
} from "../../support/aws-calls.ts";
import {
  changeWebhook,
  dueAttempt,
  dueIds,
  eventOf,
  givenWebhook,
  pipelineBatch,
  pipelineRecord,
  prepareDeliveries,
  rowsOf,
  takeDeliveryMessages,
  takeMessages,
  wakeUpOf,
} from "../../support/deliveries.ts";
import { eventually } from "../../support/eventually.ts";

const allDone = { batchItemFailures: [] };
const DUPLICATE_DELAY_SECONDS = 30;

let webhook: Webhook;
beforeAll(prepareDeliveries);
beforeEach(async () => {
  ({ webhook } = await givenWebhook());
});
afterEach(async () => {
  restoreAws();
  delete process.env.DELIVERY_GRACE_SECONDS;
  await Promise.all([takeDeliveryMessages(), takeMessages("events", "dead letters")]);
});

const publish = (...events: unknown[]) => handler(pipelineBatch(...events));
const receive = (event: unknown, options: Parameters<typeof pipelineRecord>[1]) =>
  handler({ Records: [pipelineRecord(event, options)] });

async function onlyRowOf(subscribed: Webhook) {
  const [row, ...others] = await rowsOf(subscribed);
  if (!row) throw new Error("the webhook has no delivery");
  expect(others).toEqual([]);
  return row;
}

async function storedEvents(projectId: string): Promise<StoredEvent[]> {
  const { Items } = await dynamo().send(
    new QueryCommand({
      TableName: tableName("events"),
      KeyConditionExpression: "project_id = :project",
      ExpressionAttributeValues: { ":project": projectId },
      ConsistentRead: true,
    }),
  );
  return Items as StoredEvent[];
}

const webhookOf = (message: DeliveryMessage): string =>
  message.kind === "first" ? message.delivery.webhook_id : message.webhook_id;
const summaryOf = (message: DeliveryMessage) => [message.kind, webhookOf(message)];
/** Takes the messages that are visible at once, as kind and webhook. */
const takenSummary = async () => (await takeDeliveryMessages()).map(summaryOf).sort();
/** Returns the batches that were sent, as delay and kinds. */
const summaryOfBatches = (batches: QueueBatch[]) =>
  batches.map(({ Entries }) =>
    Entries.map(({ DelaySeconds, MessageBody }) => [JSON.parse(MessageBody).kind, DelaySeconds]),
  );

describe("an event of a healthy webhook", () => {
  test("is stored once, and its message carries the delivery, which has no row", async () => {
    const projectId = randomUUID();
    const { webhook: one } = await givenWebhook({ projectId });
    const { webhook: both } = await givenWebhook({ projectId, events: ["deploy.failed", "deploy.started"] });
    const { webhook: other } = await givenWebhook({ projectId, events: ["deploy.succeeded"] });
    const { webhook: ofOtherProject } = await givenWebhook();
    const event = eventOf(projectId);
    const record = pipelineRecord(event);
    const before = Date.now();

    expect(await handler({ Records: [record] })).toEqual(allDone);

    const stored = {
      project_id: projectId,
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      event: "deploy.started",
      deployment_id: event.deployment_id,
      body: JSON.stringify(event),
      received_at: new Date(Number(record.attributes.SentTimestamp)).toISOString(),
      stored_at: expect.stringMatching(/Z$/),
      message_id: record.messageId,
      write_id: expect.any(String),
      expires_at: expect.any(Number),
    };
    const [row, ...others] = await storedEvents(projectId);
    expect(row).toEqual(stored);
    expect(others).toEqual([]);
    const thirtyDays = 30 * 24 * 3600;
    expect(row?.expires_at).toBeGreaterThanOrEqual(Math.floor(before / 1000) + thirtyDays);
    expect(row?.expires_at).toBeLessThanOrEqual(Math.floor(Date.now() / 1000) + thirtyDays);
    const messages = (await takeDeliveryMessages()) as FirstAttempt[];
    expect(messages.map(summaryOf).sort()).toEqual([one, both].map(({ id }) => ["first", id]).sort());
    for (const { delivery } of messages) {
      expect(delivery).toMatchObject({
        project_id: projectId,
        status: "pending",
        attempt_count: 0,
        event: "deploy.started",
        body: JSON.stringify(event),
        event_received_at: stored.received_at,
        next_attempt_at: delivery.created_at,
      });
    }
    expect(messages[0]?.delivery.id).not.toBe(messages[1]?.delivery.id);
    for (const each of [one, both, other, ofOtherProject]) expect(await rowsOf(each)).toEqual([]);
  });

  test.each([0, 1, 3])("with %i webhooks costs one query and one write", async (count) => {
    const projectId = randomUUID();
    await Promise.all(Array.from({ length: count }, () => givenWebhook({ projectId })));
    const calls = watchDynamo();
    await publish(eventOf(projectId));
    const units = expect.any(Number);
    expect(calls.sort((a, b) => a.command.localeCompare(b.command))).toEqual([
      { command: "PutItemCommand", units: 1 },
      { command: "QueryCommand", units },
    ]);
    expect(await takeDeliveryMessages()).toHaveLength(count);
  });

  test("for 20 webhooks is enqueued in batches of ten, each message in the group of the project", async () => {
    const projectId = randomUUID();
    await Promise.all(Array.from({ length: 20 }, () => givenWebhook({ projectId })));
    const batches = watchQueue();
    await publish(eventOf(projectId));
    expect(batches.map(({ Entries }) => Entries.length)).toEqual([10, 10]);
    const groups = batches.flatMap(({ Entries }) => Entries.map(({ MessageGroupId }) => MessageGroupId));
    expect(new Set(groups)).toEqual(new Set([projectId]));
  });

  test("shares batches with the other events that were received with it, up to 250 KB", async () => {
    const batches = watchQueue();
    const events = Array.from({ length: 6 }, () => eventOf(webhook.project_id, { data: { text: "x".repeat(55_000) } }));
    expect(await publish(...events)).toEqual(allDone);
    // Four of 55 KB and their metadata fit, five do not.
    expect(batches.map(({ Entries }) => Entries.length).sort()).toEqual([2, 4]);
    expect(await takeDeliveryMessages()).toHaveLength(6);
  });
});

describe("a row is written before the message", () => {
  test.each([
    ["is carried below 60,000 bytes", 58_000, "first"],
    ["gets a row first above 60,000 bytes", 62_000, "due"],
    ["gets a row first when it takes several bytes a character", 31_000, "due", "ü"],
  ])("of a large event: %s", async (_, length, kind, character = "x") => {
    const batches = watchQueue();
    await publish(eventOf(webhook.project_id, { data: { text: character.repeat(length) } }));
    expect(summaryOfBatches(batches)).toEqual([[[kind, 0]]]);
    expect(await rowsOf(webhook)).toHaveLength(kind === "due" ? 1 : 0);
    if (kind === "due") expect(await takeDeliveryMessages()).toEqual([dueAttempt(await onlyRowOf(webhook))]);
  });

  test("of a slow webhook, whose message goes to the slow queue", async () => {
    process.env.DELIVERY_GRACE_SECONDS = "7";
    await changeWebhook(webhook, { slow_since: new Date().toISOString() });
    expect(await publish(eventOf(webhook.project_id))).toEqual(allDone);
    const row = await onlyRowOf(webhook);
    const { created_at, next_attempt_at, due_at = "", due_shard = -1, id } = row;
    expect(row).toMatchObject({ status: "pending", attempt_count: 0 });
    expect(next_attempt_at).toBe(created_at);
    expect(Date.parse(due_at) - Date.parse(created_at)).toBe(7_000);
    expect(await dueIds(due_shard)).toContain(id);
    expect(await takeMessages("deliveries")).toEqual([]);
    expect((await takeMessages("slowDeliveries")).map(({ body }) => JSON.parse(body))).toEqual([dueAttempt(row)]);
  });
});

describe("while the circuit of a webhook is open", () => {
  const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
  const probeAt = new Date(Date.now() + 3_600_000).toISOString();
  beforeEach(() => changeWebhook(webhook, { failing_since: minutesAgo(10), probe_at: probeAt }));

  test("deliveries are parked, and one wake-up is written for all", async () => {
    const batches = watchQueue();
    expect(await publish(eventOf(webhook.project_id), eventOf(webhook.project_id))).toEqual(allDone);
    await publish(eventOf(webhook.project_id));
    const rows = await rowsOf(webhook);
    expect(rows).toHaveLength(3);
    for (const row of rows) {
      expect(row).toMatchObject({ status: "pending", next_attempt_at: probeAt, due_at: row.created_at });
      expect(row.due_shard).toBe(parkingShardOf(webhook.id));
    }
    expect(await wakeUpOf(webhook)).toMatchObject({ id: webhook.id, project_id: webhook.project_id });
    const kinds = batches.flatMap(({ Entries }) => Entries.map(({ MessageBody }) => JSON.parse(MessageBody).kind));
    expect(new Set(kinds)).toEqual(new Set(["wake-up"]));
    expect(kinds.length).toBeLessThanOrEqual(2);
  });

  test("a wake-up that was not written is written at the next receive of the event, and no row before it", async () => {
    const event = eventOf(webhook.project_id);
    failDynamo((call) => isCall(call, "UpdateItem", "deliveries"));
    const [messageId] = [randomUUID()];
    expect(await receive(event, { messageId })).toEqual({ batchItemFailures: [{ itemIdentifier: messageId }] });
    expect(await rowsOf(webhook)).toEqual([]);
    restoreAws();
    expect(await receive(event, { messageId, receives: 2 })).toEqual(allDone);
    await onlyRowOf(webhook);
    expect(await wakeUpOf(webhook)).toBeDefined();
  });
});

describe("for a disabled webhook", () => {
  const disabled = { disabled_at: new Date().toISOString(), disabled_reason: "failing" } as const;
  beforeEach(() => changeWebhook(webhook, disabled));

  test("the delivery is held: stored, not enqueued and never due", async () => {
    expect(await publish(eventOf(webhook.project_id))).toEqual(allDone);
    const row = await onlyRowOf(webhook);
    expect(row).toMatchObject({ status: "held", attempt_count: 0 });
    for (const field of ["due_at", "due_shard", "next_attempt_at"]) expect(row).not.toHaveProperty(field);
    expect(await takeDeliveryMessages()).toEqual([]);
  });

  test("that is enabled before the row is written, the delivery is sent", async () => {
    beforeHold(() => webhooks.update(webhook.project_id, webhook.id, { enabled: true }, new Date().toISOString()));
    expect(await publish(eventOf(webhook.project_id))).toEqual(allDone);
    expect(await takenSummary()).toEqual([["due", webhook.id]]);
    expect(await rowsOf(webhook)).toMatchObject([{ status: "pending" }]);
  });

  test("that is deleted before the row is written, nothing is enqueued", async () => {
    beforeHold(() => webhooks.remove(webhook.project_id, webhook.id));
    expect(await publish(eventOf(webhook.project_id))).toEqual(allDone);
    expect(await takeDeliveryMessages()).toEqual([]);
  });
});

describe("an event that was received before", () => {
  /** A repeated delivery: one row, and a message after the time in which the first message usually ends it. */
  async function expectRowFirst(batches: QueueBatch[]): Promise<void> {
    expect(summaryOfBatches(batches)).toEqual([[["due", DUPLICATE_DELAY_SECONDS]]]);
    const { created_at, due_at = "", due_shard = -1, id } = await onlyRowOf(webhook);
    expect(Date.parse(due_at) - Date.parse(created_at)).toBe((120 + DUPLICATE_DELAY_SECONDS) * 1000);
    expect(await dueIds(due_shard)).toContain(id);
  }

  test.each<[string, (event: object) => Promise<unknown>]>([
    ["in another message", (event) => receive(event, {})],
    ["in another message, with its keys in another order", (event) => receive(reversed(event), {})],
    ["in the same message", (event) => receive(event, { messageId: "first", receives: 2 })],
    // SQS may deliver a message twice, each time as the first receive.
    ["in the same message, as a first receive", (event) => receive(event, { messageId: "first" })],
  ])("%s gets its row first and one message after 30 s, then nothing", async (_, again) => {
    const event = eventOf(webhook.project_id);
    await receive(event, { messageId: "first" });
    expect(await takenSummary()).toEqual([["first", webhook.id]]);
    const batches = watchQueue();
    expect(await again(event)).toEqual(allDone);
    await expectRowFirst(batches);
    for (const receives of [1, 7]) expect(await receive(event, { receives })).toEqual(allDone);
    expect(batches).toHaveLength(1);
    expect(await storedEvents(webhook.project_id)).toMatchObject([{ message_id: "first" }]);
  });

  test("but crashed before its messages were sent, is delivered", async () => {
    const event = eventOf(webhook.project_id);
    failDynamo(({ command }) => command === "QueryCommand");
    expect(await receive(event, { messageId: "crashed" })).toMatchObject({ batchItemFailures: [{}] });
    restoreAws();
    expect(await storedEvents(webhook.project_id)).toHaveLength(1);
    const batches = watchQueue();
    // A dead letter that an operator moved back has another id.
    expect(await receive(event, { messageId: "redriven" })).toEqual(allDone);
    await expectRowFirst(batches);
  });

  test.each([
    ["in one batch", async (event: object) => [await publish(event, event)]],
    ["in two batches at once", (event: object) => Promise.all([publish(event), publish(event)])],
  ])("%s is carried by one message and has one row", async (_, run) => {
    const batches = watchQueue();
    for (const result of await run(eventOf(webhook.project_id))) expect(result).toEqual(allDone);
    const sent = batches.flatMap((batch) => summaryOfBatches([batch])).flat();
    expect(sent.sort()).toEqual([
      ["due", DUPLICATE_DELAY_SECONDS],
      ["first", 0],
    ]);
    await onlyRowOf(webhook);
    expect(await storedEvents(webhook.project_id)).toHaveLength(1);
  });

  test("is not taken for a repeat when only the SDK repeated the write of its row", async () => {
    repeatDynamo((call) => isCall(call, "PutItem", "events"));
    expect(await publish(eventOf(webhook.project_id))).toEqual(allDone);
    expect(await takenSummary()).toEqual([["first", webhook.id]]);
    expect(await rowsOf(webhook)).toEqual([]);
  });
});

const reversed = (event: object) => Object.fromEntries(Object.entries(event).reverse());

describe("a batch", () => {
  test("with an event whose reads are slow does not delay the messages of the others", async () => {
    const { webhook: slow } = await givenWebhook();
    const { promise: readReleased, resolve: releaseRead } = Promise.withResolvers<void>();
    interceptDynamo(async ({ command, input }, send) => {
      const isSlow = command === "QueryCommand" && JSON.stringify(input).includes(slow.project_id);
      if (isSlow) await readReleased;
      return send();
    });
    const batch = publish(eventOf(slow.project_id), eventOf(webhook.project_id));
    const first = await eventually(async () => {
      const taken = await takenSummary();
      expect(taken).toHaveLength(1);
      return taken;
    });
    expect(first).toEqual([["first", webhook.id]]);
    releaseRead();
    expect(await batch).toEqual(allDone);
    expect(await takenSummary()).toEqual([["first", slow.id]]);
  });

  test.each([
    ["its messages are enqueued", 0],
    // Longer than the upper bound for which the messages of other events wait.
    ["the messages of a slow event are enqueued", 1_100],
  ])("ends only after %s", async (_, readMs) => {
    let enqueued = 0;
    interceptDynamo(async ({ command }, send) => {
      if (command === "QueryCommand") await new Promise((resolve) => setTimeout(resolve, readMs));
      return send();
    });
    interceptSqs(async ({ input }, send) => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      const output = await send();
      enqueued += (input as unknown as QueueBatch).Entries.length;
      return output;
    });
    await publish(eventOf(webhook.project_id), eventOf(webhook.project_id));
    expect(enqueued).toBe(2);
  });
});

describe("an invalid event", () => {
  test.each<[string, string, string]>([
    ["text", "deploy.started!", "the message is not JSON"],
    ["an unknown event", '{"event":"deploy.paused"}', `event must be one of ${eventNames.join(", ")}`],
    [
      "as large as a message may be",
      `{"event":"deploy.failed","x":"${"x".repeat(256 * 1024 - 32)}"}`,
      "project_id is required; deployment_id is required; timestamp is required",
    ],
  ])("is moved to the dead-letter queue at once, unchanged and with the reason: %s", async (_, body, reason) => {
    expect(await publish(body)).toEqual(allDone);
    expect(await takeMessages("events", "dead letters")).toEqual([{ body, reason }]);
  });

  test("does not affect the others of its batch", async () => {
    expect(await publish("junk", eventOf(webhook.project_id), "{}")).toEqual(allDone);
    expect(await takenSummary()).toEqual([["first", webhook.id]]);
    expect((await takeMessages("events", "dead letters")).map(({ body }) => body).sort()).toEqual(["junk", "{}"]);
  });

  test("returns to the queue when the dead-letter queue does not accept it", async () => {
    interceptSqs(() => Promise.reject(new Error("SQS is unavailable")));
    expect(await receive("junk", { messageId: "junk" })).toEqual({ batchItemFailures: [{ itemIdentifier: "junk" }] });
  });
});

describe("when DynamoDB fails", () => {
  test("for one of several webhooks, the others are sent, and the event is retried for the missing one", async () => {
    const projectId = randomUUID();
    const { webhook: healthy } = await givenWebhook({ projectId });
    const { webhook: failing } = await givenWebhook({ projectId });
    await changeWebhook(failing, { slow_since: new Date().toISOString() });
    const event = eventOf(projectId);
    failDynamo((call) => isCall(call, "PutItem", "deliveries") && JSON.stringify(call.input).includes(failing.id));
    const messageId = randomUUID();
    expect(await receive(event, { messageId })).toEqual({ batchItemFailures: [{ itemIdentifier: messageId }] });
    expect(await takenSummary()).toEqual([["first", healthy.id]]);

    restoreAws();
    expect(await receive(event, { messageId, receives: 2 })).toEqual(allDone);
    await Promise.all([onlyRowOf(healthy), onlyRowOf(failing)]);
  });

  test.each<[string, (failing: Webhook) => void]>([
    [
      "for the list of webhooks",
      ({ project_id }) =>
        failDynamo(({ command, input }) => command === "QueryCommand" && JSON.stringify(input).includes(project_id)),
    ],
    [
      "for the row of the event",
      ({ project_id }) =>
        failDynamo((call) => isCall(call, "PutItem", "events") && JSON.stringify(call.input).includes(project_id)),
    ],
  ])("%s, only that event of the batch is retried", async (_, fail) => {
    const { webhook: failing } = await givenWebhook();
    fail(failing);
    const [record, other] = [pipelineRecord(eventOf(failing.project_id)), pipelineRecord(eventOf(webhook.project_id))];
    expect(await handler({ Records: [record, other] })).toEqual({
      batchItemFailures: [{ itemIdentifier: record.messageId }],
    });
    expect(await takenSummary()).toEqual([["first", webhook.id]]);
  });
});

describe("when SQS", () => {
  test("rejects a part of a batch, that part is sent again", async () => {
    const projectId = randomUUID();
    const created = await Promise.all(Array.from({ length: 3 }, () => givenWebhook({ projectId })));
    const sizes: number[] = [];
    interceptSqs(async ({ input }, send) => {
      const { Entries } = input as unknown as QueueBatch;
      sizes.push(Entries.length);
      if (sizes.length > 1) return send();
      const [first, ...others] = Entries;
      return { ...(await send({ ...input, Entries: others })), Failed: [{ Id: first?.Id, Code: "InternalError" }] };
    });
    expect(await publish(eventOf(projectId))).toEqual(allDone);
    expect(sizes).toEqual([3, 1]);
    restoreAws();
    expect(await takenSummary()).toEqual(created.map((each) => ["first", each.webhook.id]).sort());
    for (const each of created) expect(await rowsOf(each.webhook)).toEqual([]);
  });

  /** Makes SQS reject the messages with this text. */
  const rejectMessages = (text: string) =>
    interceptSqs(async ({ input }, send) => {
      const { Entries } = input as unknown as QueueBatch;
      const rejected = Entries.filter(({ MessageBody }) => MessageBody.includes(text));
      const accepted = Entries.filter((entry) => !rejected.includes(entry));
      const output = accepted.length > 0 ? await send({ ...input, Entries: accepted }) : {};
      return { ...output, Failed: rejected.map(({ Id }) => ({ Id, Code: "InternalError" })) };
    });

  test.each<[string, () => void]>([
    ["rejects a message every time", () => rejectMessages(webhook.id)],
    ["is unavailable", () => interceptSqs(() => Promise.reject(new Error("SQS is unavailable")))],
  ])("%s, the event succeeds, and its delivery becomes a row that is left to the sweep", async (_, fail) => {
    fail();
    expect(await publish(eventOf(webhook.project_id))).toEqual(allDone);
    const { status, due_shard = -1, id } = await onlyRowOf(webhook);
    expect(status).toBe("pending");
    expect(await dueIds(due_shard)).toContain(id);
  });

  test("and DynamoDB both fail, only that event of the batch is retried", async () => {
    const { webhook: failing } = await givenWebhook();
    const [record, other] = [pipelineRecord(eventOf(failing.project_id)), pipelineRecord(eventOf(webhook.project_id))];
    rejectMessages(failing.id);
    failDynamo((call) => isCall(call, "PutItem", "deliveries"));
    expect(await handler({ Records: [record, other] })).toEqual({
      batchItemFailures: [{ itemIdentifier: record.messageId }],
    });
    restoreAws();
    expect(await takenSummary()).toEqual([["first", webhook.id]]);
    expect(await receive(JSON.parse(record.body), { messageId: record.messageId, receives: 2 })).toEqual(allDone);
    await onlyRowOf(failing);
  });
});

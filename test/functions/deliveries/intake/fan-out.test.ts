import { randomUUID } from "node:crypto";
import { jest } from "@jest/globals";
import { toRecord } from "../../../../functions/deliveries/feed/event-presenter.ts";
import type { StoredEvent } from "../../../../functions/deliveries/feed/event-store.ts";
import { handler } from "../../../../functions/deliveries/intake/fan-out.ts";
import type { FirstAttempt } from "../../../../functions/deliveries/line/delivery-queue.ts";
import { eventNames } from "../../../../functions/foundation/manifest/events.ts";
import type { EventFilter } from "../../../../functions/webhooks/webhook/event-filter.ts";
import type { Webhook } from "../../../../functions/webhooks/webhook/webhook.ts";
import {
  failDynamo,
  interceptDynamo,
  interceptSqs,
  isCall,
  type QueueBatch,
  restoreAws,
  watchDynamo,
  watchQueue,
} from "../../../support/aws-calls.ts";
import {
  changeWebhook,
  eventOf,
  givenWebhook,
  pipelineBatch,
  pipelineRecord,
  placesOf,
  prepareDeliveries,
  rowsOf,
  takeDeliveryMessages,
  takeMessages,
  wakeUpOf,
  workCall,
} from "../../../support/deliveries.ts";
import { eventually } from "../../../support/eventually.ts";
import { itemsOf } from "../../../support/stored-items.ts";

const allDone = { batchItemFailures: [] };
const DUPLICATE_SECONDS = 75;

let webhook: Webhook;
beforeAll(prepareDeliveries);
beforeEach(async () => {
  ({ webhook } = await givenWebhook());
});
afterEach(() => Promise.all([takeDeliveryMessages(), takeMessages("events", "dead letters")]));

const publish = (...events: unknown[]) => handler(pipelineBatch(...events));
const receive = (event: unknown, options: Parameters<typeof pipelineRecord>[1]) =>
  handler({ Records: [pipelineRecord(event, options)] });

/** What a customer may choose, if the pipeline copies it to `data`. None may page the operator, as a dead letter does. */
test.each([
  ["the mark of a test delivery", '{"test":true}'],
  ["100,000 nested lists", `{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`],
  ["30,000 nested objects", `{"a":${'{"a":'.repeat(30_000)}1${"}".repeat(30_000)}}`],
  ["250 KB of text", JSON.stringify({ log: "x".repeat(250_000) })],
  ["250 KB of escaped characters", `{"log":"${"\\u0007".repeat(41_000)}"}`],
  ["20,000 fields", JSON.stringify(Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`k${n}`, n])))],
  ["numbers beyond double precision", '{"a":123456789012345678901234567890,"b":1e999,"c":-0,"d":[9007199254740993]}'],
  ["a lone surrogate", '{"branch":"\\ud800","\\udfff":1}'],
  ["NUL and noncharacters", '{"branch":"a\\u0000b\\ufffe\\uffff"}'],
  ["reserved names", '{"__proto__":{"x":1},"constructor":{"prototype":1},"toString":"x","toJSON":1,"rawJSON":"1"}'],
  ["empty names, and a name twice", '{"":"x"," ":"y","branch":"a","branch":"b"}'],
])("an event whose data has %s is delivered and stored, and is no dead letter", async (_title, data) => {
  const event = eventOf(webhook.project_id);
  const body = JSON.stringify({ ...event, data: "<data>" }).replace('"<data>"', () => data);
  expect(await handler({ Records: [{ ...pipelineRecord(event, {}), body }] })).toEqual(allDone);
  expect(await takeMessages("events", "dead letters")).toEqual([]);
  const rows = await itemsOf("events", { project_id: webhook.project_id });
  expect(rows.map((row) => JSON.parse(JSON.stringify(toRecord(row as never))).payload.event)).toEqual([event.event]);
  const [waiting, carried] = [await rowsOf(webhook), await takeDeliveryMessages()];
  expect(waiting.length + carried.length).toBeGreaterThan(0);
});

async function onlyRowOf(subscribed: Webhook) {
  const [row, ...others] = await rowsOf(subscribed);
  if (!row) throw new Error("the webhook has no delivery");
  expect(others).toEqual([]);
  return row;
}

const storedEvents = async (projectId: string) => (await itemsOf("events", { project_id: projectId })) as StoredEvent[];

/** Takes the messages that carry a delivery, and returns their webhooks. Expects no others. */
async function takenFirst(): Promise<string[]> {
  const messages = (await takeDeliveryMessages()) as FirstAttempt[];
  for (const { kind } of messages) expect(kind).toBe("first");
  return messages.map(({ delivery }) => delivery.webhook_id).sort();
}
/** Returns the batches that were sent, as delay and kinds. */
const summaryOfBatches = (batches: QueueBatch[]) =>
  batches.map(({ Entries }) =>
    Entries.map(({ DelaySeconds, MessageBody }) => [JSON.parse(MessageBody).kind, DelaySeconds]),
  );

describe("an event of a healthy webhook", () => {
  test("is delivered to those that subscribe to it, which have no row", async () => {
    const projectId = randomUUID();
    const { webhook: one } = await givenWebhook({ projectId });
    const { webhook: both } = await givenWebhook({ projectId, events: ["deploy.failed", "deploy.started"] });
    const { webhook: other } = await givenWebhook({ projectId, events: ["deploy.succeeded"] });
    const { webhook: ofOtherProject } = await givenWebhook();
    expect(await publish(eventOf(projectId))).toEqual(allDone);
    expect(await storedEvents(projectId)).toHaveLength(1);
    const messages = (await takeDeliveryMessages()) as FirstAttempt[];
    expect(messages.map(({ delivery }) => delivery.webhook_id).sort()).toEqual([one, both].map(({ id }) => id).sort());
    expect(messages[0]?.delivery.id).not.toBe(messages[1]?.delivery.id);
    for (const each of [one, both, other, ofOtherProject]) expect(await rowsOf(each)).toEqual([]);
  });

  test("is not delivered where a filter does not match, and is stored all the same", async () => {
    const projectId = randomUUID();
    const filters: EventFilter[] = [
      { environment: ["production"] },
      { environment: ["production"], branch: ["release/*"] },
    ];
    const [production] = await Promise.all(filters.map((filter) => givenWebhook({ projectId, filter })));
    const { webhook: all } = await givenWebhook({ projectId });
    await publish(
      eventOf(projectId, { data: { environment: "production", branch: "main" } }),
      eventOf(projectId, { data: { environment: "staging", branch: "release/1" } }),
      eventOf(projectId),
    );
    expect(await takenFirst()).toEqual([production?.webhook.id, all.id, all.id, all.id].sort());
    expect(await storedEvents(projectId)).toHaveLength(3);
  });

  test("shares a batch with the other events that were received with it", async () => {
    const batches = watchQueue();
    const events = Array.from({ length: 6 }, () => eventOf(webhook.project_id, { data: { text: "x".repeat(55_000) } }));
    expect(await publish(...events)).toEqual(allDone);
    expect(batches.map(({ Entries }) => Entries.length)).toEqual([6]);
    expect(await takeDeliveryMessages()).toHaveLength(6);
  });
});

/** Expects one delivery that waits: a row, its place, and a wake-up that is not later. */
async function expectWaits(seconds: number): Promise<void> {
  const { created_at, place = "", next_attempt_at = "", status } = await onlyRowOf(webhook);
  expect(status).toBe("pending");
  expect(Math.abs(Date.parse(next_attempt_at) - Date.parse(created_at) - seconds * 1000)).toBeLessThan(5_000);
  expect(await placesOf(webhook)).toMatchObject([{ entry: place, due: next_attempt_at, is_asked: false }]);
  expect((await wakeUpOf(webhook))?.due).toBe(next_attempt_at);
}

describe("a delivery waits in the backlog", () => {
  test.each([
    ["is carried below 60,000 bytes", 58_000, "first"],
    ["waits above 60,000 bytes", 62_000, "work"],
    ["waits when it takes several bytes a character", 31_000, "work", "ü"],
  ])("of a large event: %s", async (_, length, kind, character = "x") => {
    const batches = watchQueue();
    await publish(eventOf(webhook.project_id, { data: { text: character.repeat(length) } }));
    expect(summaryOfBatches(batches)).toEqual([[[kind, 0]]]);
    expect(await rowsOf(webhook)).toHaveLength(kind === "work" ? 1 : 0);
    if (kind === "work") await expectWaits(0);
  });

  test("of a slow webhook, whose worker is called in the slow queue", async () => {
    await changeWebhook(webhook, { slow_since: new Date().toISOString() });
    expect(await publish(eventOf(webhook.project_id))).toEqual(allDone);
    await expectWaits(0);
    expect(await takeMessages("deliveries")).toEqual([]);
    expect((await takeMessages("slowDeliveries")).map(({ body }) => JSON.parse(body))).toEqual([workCall(webhook)]);
  });
});

describe("while the circuit of a webhook is open", () => {
  const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
  const probeAt = new Date(Date.now() + 600_000).toISOString();
  beforeEach(() => changeWebhook(webhook, { failing_since: minutesAgo(10), probe_at: probeAt }));

  test("deliveries are due now and wait for the next probe, with one wake-up and one message for all, written once for a batch", async () => {
    const batches = watchQueue();
    await publish(eventOf(webhook.project_id));
    expect(await publish(eventOf(webhook.project_id), eventOf(webhook.project_id))).toEqual(allDone);
    const rows = await rowsOf(webhook);
    expect((await placesOf(webhook)).map(({ entry }) => entry).sort()).toEqual(rows.map(({ place }) => place).sort());
    for (const row of rows) expect(row).toMatchObject({ status: "pending", next_attempt_at: row.created_at });
    expect(await wakeUpOf(webhook)).toMatchObject({ due: probeAt, wakes: 2 });
    expect(summaryOfBatches(batches)).toEqual([[["work", expect.any(Number)]]]);
  });

  test("a wake-up that was not written is written at the next receive of the event, and no row before it", async () => {
    const event = eventOf(webhook.project_id);
    failDynamo((call) => isCall(call, "UpdateItem", "backlog"));
    const [messageId] = [randomUUID()];
    expect(await receive(event, { messageId })).toEqual({ batchItemFailures: [{ itemIdentifier: messageId }] });
    expect(await rowsOf(webhook)).toEqual([]);
    restoreAws();
    expect(await receive(event, { messageId, receives: 2 })).toEqual(allDone);
    await onlyRowOf(webhook);
    expect(await wakeUpOf(webhook)).toBeDefined();
  });
});

/** What one event costs: reads, writes of tables and of the index, and messages. A write too many is a price for all. */
describe("the calls for an event", () => {
  const event = () => eventOf(webhook.project_id);
  const marked = (values: Partial<Webhook>) => () => changeWebhook(webhook, values);
  const open = { failing_since: "2026-03-01T00:00:00.000Z", probe_at: new Date(Date.now() + 60_000).toISOString() };
  /** Of the read of the webhooks and the write of the event. */
  const both = [
    ["PutItem", 1],
    ["Query", 1],
  ];
  const waits = [
    ["PutItem", 1],
    ["UpdateItem", 2],
    ["PutItem", 1],
  ];
  test.each<[string, () => Promise<unknown>, unknown[], number]>([
    ["of a slow webhook", marked({ slow_since: "2026-03-01T00:00:00.000Z" }), waits, 1],
    ["of a webhook whose circuit is open", marked(open), waits, 1],
    [
      "of a webhook that has a look planned",
      async () => {
        await marked(open)();
        await publish(event());
      },
      [
        ["PutItem", 1],
        ["UpdateItem", 1],
        ["PutItem", 1],
      ],
      0,
    ],
  ])("%s", async (_, given, more, messages) => {
    await given();
    expect(await costOf(event())).toEqual({ calls: [...both, ...more], messages });
  });

  async function costOf(one: object) {
    restoreAws();
    const [calls, batches] = [watchDynamo(), watchQueue()];
    await publish(one);
    const [reads, others] = [calls.slice(0, 2), calls.slice(2)];
    const inOrder = [...reads.sort((a, b) => a.command.localeCompare(b.command)), ...others];
    return {
      calls: inOrder.map(({ command, units }) => [command.replace("Command", ""), units]),
      messages: batches.reduce((sum, { Entries }) => sum + Entries.length, 0),
    };
  }
});

test("an event is received again when a setting of the backlog is not valid", async () => {
  process.env.DUPLICATE_SECONDS = "soon";
  try {
    expect(await publish(eventOf(webhook.project_id))).not.toEqual(allDone);
  } finally {
    delete process.env.DUPLICATE_SECONDS;
  }
});

describe("an event that was received before", () => {
  /** A repeated delivery: one row, and a message after the time in which the first message usually ends it. */
  async function expectRowFirst(batches: QueueBatch[]): Promise<void> {
    expect(summaryOfBatches(batches)).toEqual([[["work", DUPLICATE_SECONDS]]]);
    await expectWaits(DUPLICATE_SECONDS);
  }

  test.each<[string, (event: object) => Promise<unknown>]>([
    ["in another message", (event) => receive(event, {})],
    ["in another message, with its keys in another order", (event) => receive(reversed(event), {})],
    ["in the same message", (event) => receive(event, { messageId: "first", receives: 2 })],
    // SQS may deliver a message twice, each time as the first receive.
    ["in the same message, as a first receive", (event) => receive(event, { messageId: "first" })],
  ])("%s waits longer than a message that carries it, then nothing", async (_, again) => {
    const event = eventOf(webhook.project_id);
    await receive(event, { messageId: "first" });
    expect(await takenFirst()).toEqual([webhook.id]);
    const batches = watchQueue();
    expect(await again(event)).toEqual(allDone);
    await expectRowFirst(batches);
    for (const receives of [1, 7]) expect(await receive(event, { receives })).toEqual(allDone);
    expect(batches).toHaveLength(1);
    expect(await storedEvents(webhook.project_id)).toMatchObject([{ message_id: "first" }]);
  });

  test("waits longer by the time in which its state settles, which delays the message too", async () => {
    await changeWebhook(webhook, { delivery: "latest", settle_seconds: 60 });
    const event = eventOf(webhook.project_id);
    await receive(event, { messageId: "first" });
    const batches = watchQueue();
    expect(await receive(event, {})).toEqual(allDone);
    expect(summaryOfBatches(batches)).toEqual([[["work", DUPLICATE_SECONDS + 60]]]);
    await expectWaits(DUPLICATE_SECONDS + 60);
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
  ])("%s is carried by one message and has one row that waits", async (_, run) => {
    const batches = watchQueue();
    for (const result of await run(eventOf(webhook.project_id))) expect(result).toEqual(allDone);
    const sent = batches.flatMap((batch) => summaryOfBatches([batch])).flat();
    expect(sent.sort()).toEqual([
      ["first", 0],
      ["work", DUPLICATE_SECONDS],
    ]);
    await onlyRowOf(webhook);
    expect(await storedEvents(webhook.project_id)).toHaveLength(1);
  });
});

const reversed = (event: object) => Object.fromEntries(Object.entries(event).reverse());

describe("a batch", () => {
  test("reads the webhooks of each project once", async () => {
    const { webhook: other } = await givenWebhook();
    const calls = watchDynamo();
    expect(await publish(...[webhook, other, webhook, webhook].map(({ project_id }) => eventOf(project_id)))).toEqual(
      allDone,
    );
    expect(calls.filter(({ command }) => command === "QueryCommand")).toHaveLength(2);
    expect(await takenFirst()).toEqual([other.id, webhook.id, webhook.id, webhook.id].sort());
  });

  test("with events whose reads are slow delays the messages of no other, nor of the faster one of these", async () => {
    const [{ webhook: slow }, { webhook: slowest }] = [await givenWebhook(), await givenWebhook()];
    const reads = [slow, slowest].map(({ project_id }) => ({ project_id, ...Promise.withResolvers<void>() }));
    interceptDynamo(async ({ command, input }, send) => {
      const read = reads.find(({ project_id }) => JSON.stringify(input).includes(project_id));
      if (command === "QueryCommand") await read?.promise;
      return send();
    });
    const batch = publish(...[slowest, slow, webhook].map(({ project_id }) => eventOf(project_id)));
    const takenNext = () =>
      eventually(async () => {
        const taken = await takenFirst();
        expect(taken).toHaveLength(1);
        return taken;
      });
    expect(await takenNext()).toEqual([webhook.id]);
    reads[0]?.resolve();
    expect(await takenNext()).toEqual([slow.id]);
    reads[1]?.resolve();
    expect(await batch).toEqual(allDone);
    expect(await takenFirst()).toEqual([slowest.id]);
  });

  test.each([
    ["its messages are enqueued", 0],
    // Longer than the upper bound for which the messages of other events wait.
    ["the messages of a slow event are enqueued", 1_100],
  ])("ends only after %s, without a timer, also with events that fail and that are not valid", async (_, readMs) => {
    let enqueued = 0;
    const { webhook: failing } = await givenWebhook();
    interceptDynamo(async ({ command, input }, send) => {
      if (command !== "QueryCommand") return send();
      if (JSON.stringify(input).includes(failing.project_id)) throw new Error("DynamoDB is unavailable");
      await new Promise((resolve) => setTimeout(resolve, readMs));
      return send();
    });
    interceptSqs(async ({ input }, send) => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      const output = await send();
      const { Entries = [] } = input as unknown as Partial<QueueBatch>;
      enqueued += Entries.length;
      return output;
    });
    const timers = [jest.spyOn(globalThis, "setInterval"), jest.spyOn(globalThis, "clearInterval")] as const;
    await publish(eventOf(webhook.project_id), "junk", eventOf(failing.project_id), eventOf(webhook.project_id));
    expect(enqueued).toBe(2);
    expect(timers[1].mock.calls).toEqual(timers[0].mock.results.map(({ value }) => [value]));
    jest.restoreAllMocks();
  });
});

describe("an invalid event", () => {
  test.each<[string, string, string]>([
    ["text", "deploy.started!", "the message is not JSON"],
    [
      "an unknown event",
      '{"event":"deploy.unknown"}',
      `event must be one of ${eventNames.join(", ")}; "deploy.unknown" is most like deploy.started; project_id is required; deployment_id is required; timestamp is required`,
    ],
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
    expect(await takenFirst()).toEqual([webhook.id]);
    expect((await takeMessages("events", "dead letters")).map(({ body }) => body).sort()).toEqual(["junk", "{}"]);
  });

  test("returns to the queue when the dead-letter queue does not accept it", async () => {
    interceptSqs(() => Promise.reject(new Error("SQS is unavailable")));
    expect(await receive("junk", { messageId: "junk" })).toEqual({ batchItemFailures: [{ itemIdentifier: "junk" }] });
  });
});

describe("when DynamoDB fails", () => {
  test.each(["slow_since", "disabled_at"])(
    "for one of several webhooks, with %s, the others are sent, and the event is retried for the missing one",
    async (field) => {
      const projectId = randomUUID();
      const { webhook: healthy } = await givenWebhook({ projectId });
      const { webhook: failing } = await givenWebhook({ projectId });
      await changeWebhook(failing, { [field]: new Date().toISOString() });
      const event = eventOf(projectId);
      failDynamo((call) => isCall(call, "PutItem", "deliveries") && JSON.stringify(call.input).includes(failing.id));
      const messageId = randomUUID();
      expect(await receive(event, { messageId })).toEqual({ batchItemFailures: [{ itemIdentifier: messageId }] });
      expect(await takenFirst()).toEqual([healthy.id]);

      restoreAws();
      expect(await receive(event, { messageId, receives: 2 })).toEqual(allDone);
      await Promise.all([onlyRowOf(healthy), onlyRowOf(failing)]);
    },
  );

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
    expect(await takenFirst()).toEqual([webhook.id]);
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
    expect(await takenFirst()).toEqual(created.map((each) => each.webhook.id).sort());
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
  ])("%s, the event succeeds, and its delivery becomes a row that waits for the sweep", async (_, fail) => {
    fail();
    expect(await publish(eventOf(webhook.project_id))).toEqual(allDone);
    await expectWaits(DUPLICATE_SECONDS);
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
    expect(await takenFirst()).toEqual([webhook.id]);
    expect(await receive(JSON.parse(record.body), { messageId: record.messageId, receives: 2 })).toEqual(allDone);
    await onlyRowOf(failing);
  });
});

import { randomUUID } from "node:crypto";
import { handler } from "../../../functions/deliveries/fan-out.ts";
import { eventNames } from "../../../functions/deployments/deployment-event.ts";
import {
  interceptDynamo,
  interceptSqs,
  type QueueBatch,
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
  prepareDeliveries,
  rowsOf,
  sqsEvent,
  takeDueAttempts,
  takeMessages,
} from "../../support/deliveries.ts";
import { eventually } from "../../support/eventually.ts";

const allDone = { batchItemFailures: [] };

beforeAll(prepareDeliveries);
afterEach(async () => {
  restoreAws();
  delete process.env.DELIVERY_GRACE_SECONDS;
  await Promise.all([takeDueAttempts(), takeMessages("events", "dead letters")]);
});

async function onlyRowOf(webhook: Parameters<typeof rowsOf>[0]) {
  const [row, ...others] = await rowsOf(webhook);
  if (!row) throw new Error("the webhook has no delivery");
  expect(others).toEqual([]);
  return row;
}

test("an event with slow reads does not delay the messages of other events", async () => {
  const { webhook: quick } = await givenWebhook();
  const { webhook: slow } = await givenWebhook();
  let releaseRead = () => {};
  const readReleased = new Promise<void>((resolve) => {
    releaseRead = resolve;
  });
  interceptDynamo(async ({ command, input }, send) => {
    const isSlow = command === "QueryCommand" && JSON.stringify(input).includes(slow.project_id);
    if (isSlow) await readReleased;
    return send();
  });
  const batch = handler(sqsEvent(eventOf(slow.project_id), eventOf(quick.project_id)));
  const first = await eventually(async () => {
    const due = await takeDueAttempts();
    expect(due).toHaveLength(1);
    return due;
  });
  expect(first).toMatchObject([{ webhook_id: quick.id }]);
  releaseRead();
  expect(await batch).toEqual(allDone);
  expect(await takeDueAttempts()).toMatchObject([{ webhook_id: slow.id }]);
});

test("the batch ends only after its messages are enqueued", async () => {
  const { webhook } = await givenWebhook();
  let enqueued = 0;
  interceptSqs(async ({ input }, send) => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const output = await send();
    enqueued += (input as unknown as QueueBatch).Entries.length;
    return output;
  });
  await handler(sqsEvent(eventOf(webhook.project_id), eventOf(webhook.project_id)));
  expect(enqueued).toBe(2);
});

test("the batch ends only after the messages of a slow event are enqueued", async () => {
  const { webhook } = await givenWebhook();
  let enqueued = 0;
  interceptDynamo(async ({ command }, send) => {
    // Longer than the upper bound for which the messages of other events wait.
    if (command === "QueryCommand") await new Promise((resolve) => setTimeout(resolve, 1_100));
    return send();
  });
  interceptSqs(async ({ input }, send) => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const output = await send();
    enqueued += (input as unknown as QueueBatch).Entries.length;
    return output;
  });
  await handler(sqsEvent(eventOf(webhook.project_id)));
  expect(enqueued).toBe(1);
});

describe("an event", () => {
  test("creates one delivery for each subscribed webhook of its project", async () => {
    const projectId = randomUUID();
    const { webhook: one } = await givenWebhook({ projectId });
    const { webhook: both } = await givenWebhook({ projectId, events: ["deploy.failed", "deploy.started"] });
    const { webhook: other } = await givenWebhook({ projectId, events: ["deploy.succeeded"] });
    const { webhook: ofOtherProject } = await givenWebhook();
    const event = eventOf(projectId);

    expect(await handler(sqsEvent(event))).toEqual(allDone);

    const rows = await Promise.all([onlyRowOf(one), onlyRowOf(both)]);
    for (const row of rows) {
      expect(row).toMatchObject({
        status: "pending",
        attempt_count: 0,
        event: "deploy.started",
        project_id: projectId,
      });
      expect(row.body).toBe(JSON.stringify(event));
    }
    expect(rows[0]?.id).not.toBe(rows[1]?.id);
    expect(await rowsOf(other)).toEqual([]);
    expect(await rowsOf(ofOtherProject)).toEqual([]);
    const messages = await takeDueAttempts();
    expect(messages).toHaveLength(2);
    expect(messages).toEqual(expect.arrayContaining(rows.map((row) => dueAttempt(row))));
  });

  test("of a project without webhooks succeeds and enqueues nothing", async () => {
    expect(await handler(sqsEvent(eventOf(randomUUID())))).toEqual(allDone);
    expect(await takeDueAttempts()).toEqual([]);
  });

  test("is enqueued at once and due for the sweep after the grace period", async () => {
    process.env.DELIVERY_GRACE_SECONDS = "7";
    const { webhook } = await givenWebhook();
    const before = Date.now();
    await handler(sqsEvent(eventOf(webhook.project_id)));
    const { created_at, next_attempt_at, due_at = "", due_shard = -1, expires_at, id } = await onlyRowOf(webhook);
    expect(Date.parse(created_at)).toBeGreaterThanOrEqual(before);
    expect(next_attempt_at).toBe(created_at);
    expect(Date.parse(due_at) - Date.parse(created_at)).toBe(7_000);
    expect(expires_at).toBe(Math.floor(Date.parse(created_at) / 1000) + 30 * 24 * 3600);
    expect(await dueIds(due_shard)).toContain(id);
  });

  test("stores the time at which SQS received it with its deliveries", async () => {
    const { webhook } = await givenWebhook();
    const [record] = sqsEvent(eventOf(webhook.project_id)).Records;
    const before = Date.now();
    await handler({ Records: [{ ...record, attributes: { SentTimestamp: "1767225600123" } } as never] });
    const row = await onlyRowOf(webhook);
    expect(row).toMatchObject({ event_received_at: "2026-01-01T00:00:00.123Z" });
    expect(Date.parse(row.created_at)).toBeGreaterThanOrEqual(before);
  });

  test("is held for a disabled webhook: stored, not enqueued and never due", async () => {
    const { webhook } = await givenWebhook();
    await changeWebhook(webhook, { disabled_at: new Date().toISOString(), disabled_reason: "failing" });
    expect(await handler(sqsEvent(eventOf(webhook.project_id)))).toEqual(allDone);
    const row = await onlyRowOf(webhook);
    expect(row).toMatchObject({ status: "held", attempt_count: 0 });
    expect(Object.keys(row)).not.toEqual(expect.arrayContaining(["due_at"]));
    expect(Object.keys(row)).not.toEqual(expect.arrayContaining(["due_shard"]));
    expect(await takeDueAttempts()).toEqual([]);
  });

  test("for 20 webhooks is enqueued in batches of ten, each message in the group of its webhook", async () => {
    const projectId = randomUUID();
    const created = await Promise.all(Array.from({ length: 20 }, () => givenWebhook({ projectId })));
    const batches = watchQueue();
    await handler(sqsEvent(eventOf(projectId)));
    expect(batches.map(({ Entries }) => Entries.length)).toEqual([10, 10]);
    const groups = batches.flatMap(({ Entries }) => Entries.map(({ MessageGroupId }) => MessageGroupId));
    expect(groups.sort()).toEqual(created.map(({ webhook }) => webhook.id).sort());
  });

  test("costs one query and one write per webhook", async () => {
    const projectId = randomUUID();
    await Promise.all([givenWebhook({ projectId }), givenWebhook({ projectId }), givenWebhook({ projectId })]);
    const calls = watchDynamo();
    await handler(sqsEvent(eventOf(projectId)));
    // A write counts twice: the row and its entry in the index.
    const put = { command: "PutItemCommand", units: 2 };
    expect(calls).toEqual([{ command: "QueryCommand", units: 1 }, put, put, put]);
  });
});

describe("a duplicate event", () => {
  test.each([
    ["in one batch", (event: object) => [handler(sqsEvent(event, event))]],
    ["in two batches at once", (event: object) => [handler(sqsEvent(event)), handler(sqsEvent(event))]],
  ])("%s creates one row and one message", async (_, run) => {
    const { webhook } = await givenWebhook();
    for (const result of await Promise.all(run(eventOf(webhook.project_id)))) expect(result).toEqual(allDone);
    expect(await takeDueAttempts()).toEqual([dueAttempt(await onlyRowOf(webhook))]);
  });

  test("with its keys in another order creates nothing", async () => {
    const { webhook } = await givenWebhook();
    const event = eventOf(webhook.project_id);
    await handler(sqsEvent(event));
    await takeDueAttempts();
    await handler(sqsEvent(Object.fromEntries(Object.entries(event).reverse())));
    await onlyRowOf(webhook);
    expect(await takeDueAttempts()).toEqual([]);
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
    expect(await handler(sqsEvent(body))).toEqual(allDone);
    expect(await takeMessages("events", "dead letters")).toEqual([{ body, reason }]);
  });

  test("does not affect the others of its batch", async () => {
    const { webhook } = await givenWebhook();
    expect(await handler(sqsEvent("junk", eventOf(webhook.project_id), "{}"))).toEqual(allDone);
    expect(await takeDueAttempts()).toEqual([dueAttempt(await onlyRowOf(webhook))]);
    expect((await takeMessages("events", "dead letters")).map(({ body }) => body).sort()).toEqual(["junk", "{}"]);
  });

  test("returns to the queue when the dead-letter queue does not accept it", async () => {
    interceptSqs(async () => {
      throw new Error("SQS is unavailable");
    });
    expect(await handler(sqsEvent("junk"))).toEqual({ batchItemFailures: [{ itemIdentifier: "m0" }] });
  });
});

describe("when DynamoDB fails", () => {
  test("for one of several webhooks, the event is retried for the missing one only", async () => {
    const projectId = randomUUID();
    const { webhook: one } = await givenWebhook({ projectId });
    const { webhook: failing } = await givenWebhook({ projectId });
    const { webhook: two } = await givenWebhook({ projectId });
    const event = eventOf(projectId);
    interceptDynamo(async ({ command, input }, send) => {
      if (command === "PutItemCommand" && (input.Item as { webhook_id: string }).webhook_id === failing.id) {
        throw new Error("DynamoDB is unavailable");
      }
      return send();
    });
    expect(await handler(sqsEvent(event))).toEqual({ batchItemFailures: [{ itemIdentifier: "m0" }] });
    const queued = (await takeDueAttempts()).map(({ webhook_id }) => webhook_id);
    expect(queued.sort()).toEqual([one.id, two.id].sort());
    expect(await rowsOf(failing)).toEqual([]);

    restoreAws();
    expect(await handler(sqsEvent(event))).toEqual(allDone);
    expect(await takeDueAttempts()).toEqual([dueAttempt(await onlyRowOf(failing))]);
    await Promise.all([onlyRowOf(one), onlyRowOf(two)]);
  });

  test("for the list of webhooks, only that event of the batch is retried", async () => {
    const { webhook } = await givenWebhook();
    const { webhook: failing } = await givenWebhook();
    interceptDynamo(async ({ command, input }, send) => {
      if (command === "QueryCommand" && JSON.stringify(input).includes(failing.project_id))
        throw new Error("unavailable");
      return send();
    });
    const batch = sqsEvent(eventOf(failing.project_id), eventOf(webhook.project_id));
    expect(await handler(batch)).toEqual({ batchItemFailures: [{ itemIdentifier: "m0" }] });
    expect(await takeDueAttempts()).toEqual([dueAttempt(await onlyRowOf(webhook))]);
  });
});

describe("when SQS", () => {
  test("rejects a part of a batch, that part is sent again", async () => {
    const projectId = randomUUID();
    const created = await Promise.all([
      givenWebhook({ projectId }),
      givenWebhook({ projectId }),
      givenWebhook({ projectId }),
    ]);
    const sizes: number[] = [];
    interceptSqs(async ({ input }, send) => {
      const { Entries } = input as unknown as QueueBatch;
      sizes.push(Entries.length);
      if (sizes.length > 1) return send();
      const [first, ...others] = Entries;
      return { ...(await send({ ...input, Entries: others })), Failed: [{ Id: first?.Id, Code: "InternalError" }] };
    });
    expect(await handler(sqsEvent(eventOf(projectId)))).toEqual(allDone);
    expect(sizes).toEqual([3, 1]);
    restoreAws();
    const queued = (await takeDueAttempts()).map(({ webhook_id }) => webhook_id);
    expect(queued.sort()).toEqual(created.map(({ webhook }) => webhook.id).sort());
  });

  test.each<[string, () => Promise<Record<string, unknown>>]>([
    ["rejects a message every time", async () => ({ Failed: [{ Id: "0", Code: "InternalError" }] })],
    ["is unavailable", () => Promise.reject(new Error("SQS is unavailable"))],
  ])("%s, the event succeeds and the row is left to the sweep", async (_, respond) => {
    const { webhook } = await givenWebhook();
    interceptSqs(respond);
    expect(await handler(sqsEvent(eventOf(webhook.project_id)))).toEqual(allDone);
    const { status, due_shard = -1, id } = await onlyRowOf(webhook);
    expect(status).toBe("pending");
    expect(await dueIds(due_shard)).toContain(id);
  });
});

import { setTimeout as sleep } from "node:timers/promises";
import { GetQueueAttributesCommand, SendMessageCommand } from "@aws-sdk/client-sqs";
import type { SQSEvent } from "aws-lambda";
import { type EventSources, startEventSources } from "../../../bin/emulator/event-sources.ts";
import type { LambdaHandler } from "../../../bin/emulator/lambda.ts";
import type { QueueKey } from "../../../functions/foundation/manifest/queues.ts";
import { sqs } from "../../../functions/foundation/platform/aws.ts";
import { queueUrl } from "../../../functions/foundation/platform/env.ts";
import { logSink } from "../../../functions/foundation/platform/log.ts";
import { interceptSqs, restoreAws } from "../../support/aws-calls.ts";
import { eventually } from "../../support/eventually.ts";
import { freshResources } from "../../support/resources.ts";

/* Queues and schedule of a local run, with stubs for handlers: what Lambda's event source mappings promise. */

let handlers: Record<string, LambdaHandler>;
let eventSources: EventSources | undefined;

beforeEach(async () => {
  await freshResources();
  logSink.write = () => {};
  handlers = {};
});
afterEach(async () => {
  restoreAws();
  await eventSources?.stop();
  eventSources = undefined;
});

async function start(sweepEverySeconds = 3600, deliveryBatchSize?: number): Promise<void> {
  eventSources = await startEventSources(
    sqs(),
    async (file) => async (event, context) => handlers[file]?.(event, context),
    sweepEverySeconds,
    deliveryBatchSize,
  );
}

const send = (queue: QueueKey, body: string) =>
  sqs().send(new SendMessageCommand({ QueueUrl: queueUrl(queue), MessageBody: body }));

/** Messages that a queue still holds, including those in flight. */
async function depth(queue: QueueKey): Promise<number> {
  const AttributeNames = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"] as const;
  const { Attributes = {} } = await sqs().send(
    new GetQueueAttributesCommand({ QueueUrl: queueUrl(queue), AttributeNames: [...AttributeNames] }),
  );
  return AttributeNames.reduce((sum, name) => sum + Number(Attributes[name]), 0);
}

const bodiesOf = (event: unknown) => (event as SQSEvent).Records.map(({ body }) => body);

test("the fan-out gets up to 10 events in a batch, and successes are deleted", async () => {
  await Promise.all(Array.from({ length: 10 }, (_, index) => send("events", String(index))));
  const batches: string[][] = [];
  handlers["deliveries-fan-out"] = async (event) => void batches.push(bodiesOf(event));
  await start();
  await eventually(async () => expect(await depth("events")).toBe(0));
  expect(batches.flat().map(Number).sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(Math.max(...batches.map((batch) => batch.length))).toBeGreaterThan(1);
});

test("messages of ten batches are deleted in one call", async () => {
  await Promise.all(Array.from({ length: 10 }, (_, index) => send("deliveries", String(index))));
  const deleted: number[] = [];
  interceptSqs(({ command, input }, proceed) => {
    if (command === "DeleteMessageBatchCommand") deleted.push([input.Entries].flat().length);
    return proceed();
  });
  handlers["attempts-send"] = async () => {};
  await start();
  await eventually(async () => expect(await depth("deliveries")).toBe(0));
  expect(deleted.reduce((sum, count) => sum + count, 0)).toBe(10);
  expect(Math.max(...deleted)).toBeGreaterThan(1);
});

test("an event published after 500 of another project is fanned out in the first two batches", async () => {
  const of = (project_id: string, number: number) => JSON.stringify({ project_id, number });
  for (let sent = 0; sent < 500; sent += 10) {
    await Promise.all(Array.from({ length: 10 }, (_, index) => send("events", of("busy", sent + index))));
  }
  await send("events", of("quiet", 0));
  const batches: string[][] = [];
  handlers["deliveries-fan-out"] = async (event) => void batches.push(bodiesOf(event));
  await start();
  await eventually(async () => expect(await depth("events")).toBe(0));
  expect(batches.findIndex((bodies) => bodies.includes(of("quiet", 0)))).toBeLessThan(2);
});

test("a record has the source, the receive count and the send time, as Lambda passes them", async () => {
  let records: SQSEvent["Records"] = [];
  handlers["deliveries-fan-out"] = async (event) => {
    records = (event as SQSEvent).Records;
  };
  await send("events", "one");
  await start();
  await eventually(() => expect(records).toHaveLength(1));
  expect(records[0]).toMatchObject({
    body: "one",
    eventSource: "aws:sqs",
    eventSourceARN: "arn:aws:sqs:us-east-1:000000000000:deployment-events",
    attributes: { ApproximateReceiveCount: "1", SentTimestamp: expect.stringMatching(/^\d{13}$/) },
  });
});

test.each<[string, string[], LambdaHandler]>([
  ["throws", ["a", "b"], async () => Promise.reject(new Error("failed"))],
  ["reports an unknown message id", ["a", "b"], async () => ({ batchItemFailures: [{ itemIdentifier: "unknown" }] })],
  [
    "reports one failed message",
    ["b"],
    async (event) => ({
      batchItemFailures: (event as SQSEvent).Records.filter(({ body }) => body === "b").map(({ messageId }) => ({
        itemIdentifier: messageId,
      })),
    }),
  ],
])("a handler that %s leaves %j in the queue", async (_, left, handler) => {
  const seen: string[] = [];
  handlers["deliveries-fan-out"] = async (event, context) => {
    seen.push(...bodiesOf(event));
    return handler(event, context);
  };
  await send("events", "a");
  await send("events", "b");
  await start();
  await eventually(() => expect(seen.sort()).toEqual(["a", "b"]));
  await eventSources?.stop();
  expect(await depth("events")).toBe(left.length);
});

test("a delivery whose receiver hangs does not delay the others", async () => {
  const { promise: hanging, resolve: release } = Promise.withResolvers<void>();
  const sent: string[] = [];
  let isHanging = false;
  handlers["attempts-send"] = async (event) => {
    const bodies = bodiesOf(event);
    expect(bodies).toHaveLength(1);
    isHanging ||= bodies[0] === "hangs";
    if (bodies[0] === "hangs") await hanging;
    sent.push(...bodies);
  };
  await Promise.all(["hangs", "a", "b"].map((body) => send("deliveries", body)));
  await start(3600, 1);
  await eventually(() => expect(isHanging).toBe(true));
  await send("deliveries", "later");
  await eventually(() => expect(sent.sort()).toEqual(["a", "b", "later"]));
  release();
  await eventually(() => expect(sent).toContain("hangs"));
});

test("a busy project has at most half of the places, in batches of up to seven, and another one is called at once", async () => {
  const of = (project_id: string, number: number) => JSON.stringify({ project_id, number });
  await Promise.all(Array.from({ length: 210 }, (_, index) => send("deliveries", of("busy", index))));
  const { promise: hanging, resolve: release } = Promise.withResolvers<void>();
  const batches: string[][] = [];
  handlers["attempts-send"] = async (event) => {
    batches.push(bodiesOf(event));
    await hanging;
  };
  await start(3600, 10);
  await eventually(() => expect(batches.flat()).toHaveLength(200));
  expect(Math.max(...batches.map((batch) => batch.length))).toBe(7);
  await send("deliveries", of("quiet", 0));
  await eventually(() => expect(batches.flat()).toContain(of("quiet", 0)));
  expect(batches.flat()).toHaveLength(201);
  release();
  await eventually(async () => expect(await depth("deliveries")).toBe(0));
});

test("a queue that could not be read is read again, after a second", async () => {
  const readAt: number[] = [];
  interceptSqs(({ command, input }, proceed) => {
    if (command !== "ReceiveMessageCommand" || input.QueueUrl !== queueUrl("events")) return proceed();
    const isFirst = readAt.push(performance.now()) === 1;
    return isFirst ? Promise.reject(new Error("SQS is unavailable")) : proceed();
  });
  let received: string[] = [];
  handlers["deliveries-fan-out"] = async (event) => {
    received = bodiesOf(event);
  };
  await send("events", "late");
  await start();
  await eventually(() => expect(received).toEqual(["late"]));
  const [first = 0, second = 0] = readAt;
  // Timers may fire one millisecond early.
  expect(second - first).toBeGreaterThanOrEqual(999);
});

test("the sweep runs at once and then at the given interval, also after a run that failed", async () => {
  const startedAt: number[] = [];
  handlers["deliveries-sweep"] = async () => {
    startedAt.push(performance.now());
    throw new Error("failed");
  };
  await start(0.3);
  await eventually(() => expect(startedAt.length).toBeGreaterThanOrEqual(4));
  const [first = 0, second = 0, third = 0] = startedAt;
  // Timers may fire one millisecond early.
  expect(second - first).toBeGreaterThanOrEqual(299);
  expect(third - second).toBeGreaterThanOrEqual(299);
});

test("stop waits for a message in flight, deletes it and receives no more", async () => {
  const handled = Promise.withResolvers<void>();
  let [runs, isStopping] = [0, false];
  handlers["attempts-send"] = () => {
    runs += 1;
    return handled.promise;
  };
  // The handler ends after the last poll.
  interceptSqs(async ({ command, input }, proceed) => {
    const output = await proceed();
    const isPoll = command === "ReceiveMessageCommand" && input.QueueUrl === queueUrl("deliveries");
    if (isPoll && isStopping) handled.resolve();
    return output;
  });
  await send("deliveries", "slow");
  await start();
  await eventually(() => expect(runs).toBe(1));
  isStopping = true;
  await eventSources?.stop();
  expect(await depth("deliveries")).toBe(0);
  await send("deliveries", "late");
  await sleep(100);
  expect({ runs, depth: await depth("deliveries") }).toEqual({ runs: 1, depth: 1 });
});

test("stop gives up on a handler that hangs after 3 s", async () => {
  let runs = 0;
  const { promise, resolve: release } = Promise.withResolvers<void>();
  handlers["attempts-send"] = () => {
    runs += 1;
    return promise;
  };
  await send("deliveries", "hangs");
  await start();
  await eventually(() => expect(runs).toBe(1));
  const stoppingAt = performance.now();
  await eventSources?.stop();
  const seconds = (performance.now() - stoppingAt) / 1000;
  expect(seconds).toBeGreaterThan(2.9);
  expect(seconds).toBeLessThan(15);
  release();
});

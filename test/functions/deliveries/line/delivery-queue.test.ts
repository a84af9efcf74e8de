import { randomUUID } from "node:crypto";
import type { SQSRecord } from "aws-lambda";
import { createDelivery, type Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import {
  type CertifyCall,
  type DeliveryMessage,
  enqueue,
  fitsInMessage,
  readDeliveryMessage,
  type UnrecordedAttempt,
} from "../../../../functions/deliveries/line/delivery-queue.ts";
import { parseDeploymentEvent } from "../../../../functions/foundation/events/parse-deployment-event.ts";
import { logSink } from "../../../../functions/foundation/platform/log.ts";
import { sqsConsumer } from "../../../../functions/foundation/platform/sqs-consumer.ts";
import type { WorkCall } from "../../../../functions/webhooks/webhook/worker-call.ts";
import { interceptSqs, type QueueBatch, restoreAws, watchQueue } from "../../../support/aws-calls.ts";
import {
  eventOf,
  prepareDeliveries,
  sqsEvent,
  takeDeliveryMessages,
  takeMessages,
} from "../../../support/deliveries.ts";
import { type LoggedLine, metricsIn } from "../../../support/metrics.ts";

beforeAll(prepareDeliveries);
afterEach(() => takeDeliveryMessages());

const workCalls = (count: number): WorkCall[] =>
  Array.from({ length: count }, () => ({ kind: "work", project_id: randomUUID(), webhook_id: randomUUID() }));
const sorted = (messages: DeliveryMessage[]) => messages.map((message) => JSON.stringify(message)).sort();

/** A delivery whose event has this text. */
function carriedDelivery(text = ""): Delivery {
  const message = parseDeploymentEvent(JSON.stringify(eventOf(randomUUID(), { data: { text } })));
  if (!message.ok) throw new Error(message.reason);
  return createDelivery(message.event, { id: randomUUID() }, new Date());
}

function unrecordedOf(basis: Delivery): UnrecordedAttempt {
  const at = "2026-01-02T03:04:05.678Z";
  const attempt = { number: 1, at, duration_ms: 12, status_code: 503, trigger: "schedule" } as const;
  const failed = { ...attempt, error_code: "http_status" } as const;
  return { kind: "unrecorded", project_id: basis.project_id, basis, attempt: failed, retry_after: "60" };
}

const enqueueFirst = async (deliveries: Delivery[]) =>
  (await enqueue(deliveries.map((delivery) => ({ kind: "first" as const, delivery })))).map(({ delivery }) => delivery);

const certifyCall = (): CertifyCall => {
  const ids = { project_id: randomUUID(), webhook_id: randomUUID(), certification_id: randomUUID() };
  return { kind: "certify", ...ids };
};

test.each([
  [0, []],
  [1, [1]],
  [10, [10]],
  [23, [10, 10, 3]],
  // More batches than are sent in parallel.
  [125, [10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 5]],
])("%i calls of workers are sent in batches of %j and arrive unchanged", async (count, sizes) => {
  const calls = workCalls(count);
  const batches = watchQueue();
  await enqueue(calls);
  expect(batches.map(({ Entries }) => Entries.length)).toEqual(sizes);
  expect(sorted(await takeDeliveryMessages())).toEqual(sorted(calls));
});

test("messages with characters that SQS refuses arrive unchanged", async () => {
  const text = "\ufffe\uffff\u0000\ud800";
  const delivery = carriedDelivery(text);
  const unrecorded = unrecordedOf(delivery);
  const withExcerpt = { ...unrecorded, attempt: { ...unrecorded.attempt, response_excerpt: text } };
  expect(await enqueueFirst([delivery])).toEqual([]);
  expect(await enqueue([withExcerpt])).toEqual([]);
  expect(await takeDeliveryMessages()).toEqual([{ kind: "first", delivery }, withExcerpt]);
});

test("ten messages that carry the largest deliveries are one batch, which SQS accepts", async () => {
  const [empty] = [carriedDelivery()];
  const overhead = Buffer.byteLength(JSON.stringify({ kind: "first", delivery: empty }));
  const carried = Array.from({ length: 10 }, () => carriedDelivery("x".repeat(60_000 - overhead)));
  expect(carried.map(fitsInMessage)).toEqual(Array(10).fill(true));
  const batches = watchQueue();
  expect(await enqueueFirst(carried)).toEqual([]);
  expect(batches.map(({ Entries }) => Entries.length)).toEqual([10]);
  const taken = (await takeDeliveryMessages()).flatMap((message) => (message.kind === "first" ? message.delivery : []));
  const byId = (a: Delivery, b: Delivery) => a.id.localeCompare(b.id);
  expect(taken.sort(byId)).toEqual(carried.sort(byId));
});

test("at most ten batches are sent in parallel", async () => {
  let inFlight = 0;
  let maxInFlight = 0;
  interceptSqs(async () => {
    inFlight += 1;
    maxInFlight = Math.max(maxInFlight, inFlight);
    await new Promise((resolve) => setTimeout(resolve, 5));
    inFlight -= 1;
    return {};
  });
  await enqueue(workCalls(250));
  expect(maxInFlight).toBe(10);
});

describe("a message", () => {
  const carried = carriedDelivery();
  const [call] = workCalls(1);
  const [unrecorded, certify] = [unrecordedOf(carried), certifyCall()];
  test.each<[string, () => Promise<unknown>, "deliveries" | "slowDeliveries", DeliveryMessage | undefined, number]>([
    ["that calls a worker", () => enqueue(call ? [call] : []), "slowDeliveries", call, 0],
    [
      "that calls a worker later, rounded up so that it is not early,",
      () => enqueue(call ? [call] : [], 4.1),
      "slowDeliveries",
      call,
      5,
    ],
    ["that carries a delivery", () => enqueueFirst([carried]), "deliveries", { kind: "first", delivery: carried }, 0],
    ["of an unrecorded attempt", () => enqueue([unrecorded], 15), "slowDeliveries", unrecorded, 15],
    ["that certifies a receiver", () => enqueue([certify]), "slowDeliveries", certify, 0],
  ])(
    "%s is sent to its queue, in the group of its project, and parsed as it was written",
    async (_, send, queue, message, delay) => {
      const batches = watchQueue();
      await send();
      const [entry, ...others] = batches.flatMap(({ Entries }) => Entries);
      expect(others).toEqual([]);
      const projectId = message?.kind === "first" ? message.delivery.project_id : message?.project_id;
      expect(entry).toMatchObject({ DelaySeconds: delay, MessageGroupId: projectId });
      expect(readDeliveryMessage(entry?.MessageBody ?? "")).toEqual(message);
      // A delayed message is not visible yet.
      expect(await takeMessages(queue)).toHaveLength(delay === 0 ? 1 : 0);
      expect(await takeMessages(queue === "deliveries" ? "slowDeliveries" : "deliveries")).toEqual([]);
    },
  );
});

test("only the messages that SQS rejected are sent again", async () => {
  const calls = workCalls(4);
  const sizes: number[] = [];
  interceptSqs(async ({ command, input }, send) => {
    if (command !== "SendMessageBatchCommand") return send();
    const { Entries } = input as unknown as QueueBatch;
    sizes.push(Entries.length);
    // The second and the last message fail, at the first and the second try.
    const rejected = sizes.length < 3 ? Entries.filter((_, index) => index === 1 || index === Entries.length - 1) : [];
    const accepted = Entries.filter((entry) => !rejected.includes(entry));
    return {
      ...(accepted.length > 0 && (await send({ ...input, Entries: accepted }))),
      Failed: rejected.map(({ Id }) => ({ Id, Code: "ThrottlingException", SenderFault: false })),
    };
  });
  await enqueue(calls);
  expect(sizes).toEqual([4, 2, 1]);
  expect(sorted(await takeDeliveryMessages())).toEqual(sorted(calls));
});

/** Makes SQS reject every message with this text. Returns the number of calls so far. */
function rejectMessages(text: string): () => number {
  let calls = 0;
  interceptSqs(async ({ command, input }, send) => {
    if (command !== "SendMessageBatchCommand") return send();
    calls += 1;
    const { Entries } = input as unknown as QueueBatch;
    const isRejected = ({ MessageBody }: QueueBatch["Entries"][number]) => MessageBody.includes(text);
    const accepted = Entries.filter((entry) => !isRejected(entry));
    const output = accepted.length > 0 ? await send({ ...input, Entries: accepted }) : {};
    return { ...output, Failed: Entries.filter(isRejected).map(({ Id }) => ({ Id, Code: "InternalError" })) };
  });
  return () => calls;
}

test("a message that SQS rejects three times is logged and returned to the caller, the others are not", async () => {
  const lines: LoggedLine[] = [];
  logSink.write = (level, line) => lines.push({ level, ...line });
  const [first, second] = [carriedDelivery(), carriedDelivery()];
  const calls = rejectMessages(second.id);
  expect(await enqueueFirst([first, second])).toEqual([second]);
  expect(calls()).toBe(3);
  restoreAws();
  const unrecorded = unrecordedOf(first);
  expect(await enqueue([unrecorded])).toEqual([]);
  rejectMessages(first.id);
  expect(await enqueue([unrecorded])).toEqual([unrecorded]);
  restoreAws();
  const certify = certifyCall();
  expect(await enqueue([certify])).toEqual([]);
  rejectMessages(certify.certification_id);
  expect(await enqueue([certify])).toEqual([certify]);
  const rejected = [second.id, first.id, `certification:${certify.certification_id}`];
  expect(lines.map(({ delivery_ids }) => delivery_ids)).toEqual(rejected);
});

test("of a batch that SQS has accepted in part before it fails, only the rest is returned", async () => {
  let tries = 0;
  interceptSqs(async ({ command, input }, send) => {
    if (command !== "SendMessageBatchCommand") return send();
    if (tries++ > 0) throw new Error("SQS is unavailable");
    const { Entries } = input as unknown as QueueBatch;
    await send({ ...input, Entries: Entries.slice(0, 2) });
    return { Failed: Entries.slice(2).map(({ Id }) => ({ Id, Code: "InternalError" })) };
  });
  const deliveries = [carriedDelivery(), carriedDelivery(), carriedDelivery()];
  expect(await enqueueFirst(deliveries)).toEqual(deliveries.slice(2));
  expect(await takeDeliveryMessages()).toHaveLength(2);
});

test("a batch that fails as a whole is returned to the caller, and the next batch is sent", async () => {
  const failFirst = () => {
    let calls = 0;
    interceptSqs(async (_, send) => {
      if (calls++ === 0) throw new Error("SQS is unavailable");
      return send();
    });
  };
  failFirst();
  const deliveries = Array.from({ length: 12 }, () => carriedDelivery());
  expect(await enqueueFirst(deliveries)).toEqual(deliveries.slice(0, 10));
  expect(await takeDeliveryMessages()).toHaveLength(2);
  restoreAws();
  failFirst();
  const calls = workCalls(12);
  // The sweep sends the others.
  await enqueue(calls);
  expect(sorted(await takeDeliveryMessages())).toEqual(sorted(calls.slice(10)));
});

test("a message may carry a delivery of up to 60,000 bytes in all", () => {
  const delivery = carriedDelivery();
  const overhead = Buffer.byteLength(JSON.stringify({ kind: "first", delivery: { ...delivery, body: "" } }));
  const fits = (body: string) => fitsInMessage({ ...delivery, body });
  expect([fits("x".repeat(60_000 - overhead)), fits("x".repeat(60_001 - overhead))]).toEqual([true, false]);
  expect(fits("ü".repeat(30_001))).toBe(false);
});

test("a message with unknown fields is accepted, so that a newer version may add some", () => {
  const [message] = workCalls(1);
  expect(readDeliveryMessage(JSON.stringify({ ...message, added: true }))).toEqual({ ...message, added: true });
});

test.each([
  ["invalid JSON", "attempt"],
  ["an empty text", ""],
  ["null", "null"],
  ["an array", "[]"],
  ["an object without ids", '{"kind":"work"}'],
  ["a carried delivery without ids", '{"kind":"first","delivery":{}}'],
  ["a kind that is no text", JSON.stringify({ ...workCalls(1)[0], kind: 1 })],
  ["no kind", JSON.stringify({ ...workCalls(1)[0], kind: undefined })],
])("a message with %s throws", (_, message) => {
  expect(() => readDeliveryMessage(message)).toThrow();
});

test("a message of a kind that only a newer release has is received again, and does not count as failed", async () => {
  const lines: LoggedLine[] = [];
  logSink.write = (level, line) => lines.push({ level, ...line });
  const body = JSON.stringify({ ...workCalls(1)[0], kind: "of-the-next-release" });
  const { Records } = sqsEvent(body, "not a message");
  const attributes = { ApproximateFirstReceiveTimestamp: String(Date.now()) };
  const handler = sqsConsumer(async ({ body }) => void readDeliveryMessage(body));
  expect(await handler({ Records: Records.map((record) => ({ ...record, attributes }) as SQSRecord) })).toEqual({
    batchItemFailures: [{ itemIdentifier: "m0" }, { itemIdentifier: "m1" }],
  });
  // One of the second message alone. The age of both counts, for the alarm messages-failing.
  expect(metricsIn(lines)).toMatchObject({
    messagesFailed: [1],
    failedMessageAge: [expect.anything(), expect.anything()],
  });
});

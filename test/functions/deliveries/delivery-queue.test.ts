import { randomUUID } from "node:crypto";
import { type DueAttempt, enqueue, readDueAttempt } from "../../../functions/deliveries/delivery-queue.ts";
import { interceptSqs, type QueueBatch, restoreAws, watchQueue } from "../../support/aws-calls.ts";
import { prepareDeliveries, takeDueAttempts } from "../../support/deliveries.ts";

beforeAll(prepareDeliveries);
afterEach(async () => {
  restoreAws();
  await takeDueAttempts();
});

const newDeliveries = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    project_id: randomUUID(),
    webhook_id: randomUUID(),
    id: randomUUID(),
    attempt_count: index,
  }));
/** The due attempt of a delivery: the one after those that were made. */
const dueOf = ({
  project_id,
  webhook_id,
  id,
  attempt_count,
}: ReturnType<typeof newDeliveries>[number]): DueAttempt => ({
  project_id,
  webhook_id,
  delivery_id: id,
  attempt: attempt_count + 1,
});
const byAttempt = (a: DueAttempt, b: DueAttempt) => a.attempt - b.attempt;

test.each([
  [0, []],
  [1, [1]],
  [10, [10]],
  [23, [10, 10, 3]],
  // More batches than are sent in parallel.
  [125, [10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 5]],
])("the next attempts of %i deliveries are sent in batches of %j and arrive unchanged", async (count, sizes) => {
  const deliveries = newDeliveries(count);
  const batches = watchQueue();
  await enqueue(deliveries);
  expect(batches.map(({ Entries }) => Entries.length)).toEqual(sizes);
  expect((await takeDueAttempts()).sort(byAttempt)).toEqual(deliveries.map(dueOf));
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
  await enqueue(newDeliveries(250));
  expect(maxInFlight).toBe(10);
});

test("a message has the delay and its webhook as message group", async () => {
  const deliveries = newDeliveries(1);
  const batches = watchQueue();
  await enqueue(deliveries, 900);
  expect(batches[0]?.Entries).toEqual(
    deliveries.map((delivery) => ({
      Id: "0",
      MessageBody: JSON.stringify(dueOf(delivery)),
      DelaySeconds: 900,
      MessageGroupId: delivery.webhook_id,
    })),
  );
  expect(await takeDueAttempts()).toEqual([]);
});

test("only the messages that SQS rejected are sent again", async () => {
  const deliveries = newDeliveries(4);
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
  await enqueue(deliveries);
  expect(sizes).toEqual([4, 2, 1]);
  expect((await takeDueAttempts()).sort(byAttempt)).toEqual(deliveries.map(dueOf));
});

test("a message that SQS rejects three times is left to the sweep", async () => {
  let tries = 0;
  interceptSqs(async () => {
    tries++;
    return { Failed: [{ Id: "0" }] };
  });
  await enqueue(newDeliveries(1));
  expect(tries).toBe(3);
});

test("a batch that fails as a whole does not stop the next batch", async () => {
  let calls = 0;
  interceptSqs(async (_, send) => {
    if (calls++ === 0) throw new Error("SQS is unavailable");
    return send();
  });
  const deliveries = newDeliveries(12);
  await enqueue(deliveries);
  expect((await takeDueAttempts()).sort(byAttempt)).toEqual(deliveries.slice(10).map(dueOf));
});

test("a message is parsed as it was written, and unknown fields are ignored", () => {
  const [attempt] = newDeliveries(1).map(dueOf);
  expect(readDueAttempt(JSON.stringify({ ...attempt, added: true }))).toEqual(attempt);
});

test.each([
  ["invalid JSON", "attempt"],
  ["an empty text", ""],
  ["null", "null"],
  ["an array", "[]"],
  ["an object without ids", '{"attempt":1}'],
  ["an attempt that is a string", JSON.stringify({ ...newDeliveries(1).map(dueOf)[0], attempt: "1" })],
])("a message with %s throws", (_, message) => {
  expect(() => readDueAttempt(message)).toThrow();
});

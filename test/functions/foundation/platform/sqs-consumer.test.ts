import { setImmediate as immediate } from "node:timers/promises";
import type { SQSRecord } from "aws-lambda";
import { log, logSink } from "../../../../functions/foundation/platform/log.ts";
import { sqsConsumer } from "../../../../functions/foundation/platform/sqs-consumer.ts";
import { sqsEvent } from "../../../support/deliveries.ts";
import { type LoggedLine, metricsIn } from "../../../support/metrics.ts";

let lines: LoggedLine[];
beforeEach(() => {
  lines = [];
  logSink.write = (level, line) => lines.push({ level, ...line });
});

test("returns no failures when all messages succeed", async () => {
  const bodies: string[] = [];
  const handler = sqsConsumer(async ({ body }) => {
    bodies.push(body);
  });
  expect(await handler(sqsEvent("a", "b"))).toEqual({ batchItemFailures: [] });
  expect(bodies).toEqual(["a", "b"]);
  expect(lines).toEqual([]);
});

test("returns no failures for an empty batch", async () => {
  const handler = sqsConsumer(() => Promise.reject(new Error("not called")));
  expect(await handler({ Records: [] })).toEqual({ batchItemFailures: [] });
});

test.each<[string, (body: string) => Promise<void>]>([
  ["rejects", (body) => (body === "bad" ? Promise.reject(new Error("handler failed")) : Promise.resolve())],
  [
    "throws synchronously",
    (body) => {
      if (body === "bad") throw new Error("handler failed");
      return Promise.resolve();
    },
  ],
])("a message whose handler %s is reported as a failure and logged, the others are not", async (_, handle) => {
  const handler = sqsConsumer(({ body }) => handle(body));
  expect(await handler(sqsEvent("good", "bad", "good", "bad"))).toEqual({
    batchItemFailures: [{ itemIdentifier: "m1" }, { itemIdentifier: "m3" }],
  });
  expect(lines).toMatchObject([
    { level: "error", message: "message failed", message_id: "m1", error: { message: "handler failed" } },
    { level: "error", message: "message failed", message_id: "m3", error: { message: "handler failed" } },
    { message: "metrics", MessagesFailed: [1, 1] },
  ]);
});

test("a failed message reports for how long it has been failing, not for how long it waited before", async () => {
  const [record] = sqsEvent("bad").Records;
  const hoursAgo = (hours: number) => String(Date.now() - hours * 3_600_000);
  const attributes = { SentTimestamp: hoursAgo(2), ApproximateFirstReceiveTimestamp: hoursAgo(1) };
  await sqsConsumer(() => Promise.reject(new Error("handler failed")))({
    Records: [{ ...record, attributes } as SQSRecord],
  });
  const { failedMessageAge: [seconds = 0] = [] } = metricsIn(lines);
  expect(seconds).toBeGreaterThanOrEqual(3_600);
  expect(seconds).toBeLessThan(3_700);
});

test("the failure of a message is logged with its own tags only", async () => {
  const handler = sqsConsumer(async ({ body }) => {
    log.tag({ delivery_id: `of ${body}` });
    await immediate();
    throw new Error("handler failed");
  });
  await handler(sqsEvent("a", "b"));
  expect(lines).toMatchObject([
    { message_id: "m0", delivery_id: "of a" },
    { message_id: "m1", delivery_id: "of b" },
    { message: "metrics" },
  ]);
  expect(JSON.stringify(lines.at(-1))).not.toContain("delivery_id");
});

test("the body of a failed message is not logged", async () => {
  const handler = sqsConsumer(() => Promise.reject(new Error("handler failed")));
  await handler(sqsEvent("whsec_secret"));
  expect(lines).toHaveLength(1);
  expect(JSON.stringify(lines)).not.toContain("whsec_secret");
});

test("messages are processed concurrently, and the batch ends with the last one", async () => {
  const ended: string[] = [];
  let release = () => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const handler = sqsConsumer(async ({ body }) => {
    // The first waits for the second: sequential processing would never end.
    if (body === "first") await gate;
    else release();
    ended.push(body);
  });
  expect(await handler(sqsEvent("first", "second"))).toEqual({ batchItemFailures: [] });
  expect(ended.sort()).toEqual(["first", "second"]);
});

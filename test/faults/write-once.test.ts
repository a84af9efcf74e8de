import { SetQueueAttributesCommand } from "@aws-sdk/client-sqs";
import type { BatchGetCommandInput } from "@aws-sdk/lib-dynamodb";
import { type QueueKey, queues } from "../../functions/foundation/manifest/queues.ts";
import { sqs } from "../../functions/foundation/platform/aws.ts";
import { queueUrl } from "../../functions/foundation/platform/env.ts";
import { failDynamo, interceptSqs, isCall } from "../support/aws-calls.ts";
import { eventOf, givenWebhook, messagesLeft, publish, rowsOf, takeMessages } from "../support/deliveries.ts";
import { eventually } from "../support/eventually.ts";
import { useReceiver } from "../support/receiver.ts";
import { useService } from "../support/service.ts";

/*
 * A delivery is written once, after its request, so until then its message is all there is: outages of DynamoDB and
 * duplicates of events must neither lose nor repeat it. Time is shortened: a failed message is visible again after two
 * or four seconds, and a message is delayed by at most four. A sender that has no CPU for so long looks like one that
 * failed, and its messages are rightly sent again: a second would be too short on a busy machine.
 */

const allQueues = Object.keys(queues) as QueueKey[];
const EVENTS = 10;
const VISIBILITY_SECONDS: Record<QueueKey, number> = { events: 2, deliveries: 4, slowDeliveries: 4 };
const MAX_DELAY_SECONDS = 4;

process.env.RETRY_SCHEDULE = "0,0";
useService({ deliver: true });
const receiver = useReceiver("test");
beforeAll(async () => {
  for (const queue of allQueues) {
    const Attributes = { VisibilityTimeout: String(VISIBILITY_SECONDS[queue]) };
    await sqs().send(new SetQueueAttributesCommand({ QueueUrl: queueUrl(queue), Attributes }));
  }
});
beforeEach(() =>
  interceptSqs(async ({ command, input }, send) => {
    if (command !== "SendMessageBatchCommand") return send();
    const entries = input.Entries as { DelaySeconds: number }[];
    return send({
      ...input,
      Entries: entries.map((entry) => ({ ...entry, DelaySeconds: Math.min(MAX_DELAY_SECONDS, entry.DelaySeconds) })),
    });
  }),
);

/** The number of requests by delivery. */
const requestCounts = () =>
  [...Map.groupBy(receiver.received, ({ headers }) => headers["webhook-id"]).values()].map(({ length }) => length);

async function expectDelivered(webhook: Parameters<typeof rowsOf>[0], count: number): Promise<void> {
  await eventually(async () => {
    const rows = await rowsOf(webhook);
    expect(rows.map(({ status, attempt_count }) => [status, attempt_count])).toEqual(
      Array(count).fill(["succeeded", 1]),
    );
  });
}

const deadLetters = async () =>
  (await Promise.all(allQueues.map((queue) => takeMessages(queue, "dead letters")))).flat();

test("while every put of a delivery is throttled, each gets one request, and all are recorded in the end", async () => {
  const { webhook } = await givenWebhook({ url: receiver.url });
  // Ten minutes are two receives of a message: its visibility timeout is 360 s.
  let throttled = 0;
  failDynamo((call) => {
    const isThrottled = isCall(call, "PutItem", "deliveries") && throttled < 4 * EVENTS;
    if (isThrottled) throttled += 1;
    return isThrottled;
  });
  await Promise.all(Array.from({ length: EVENTS }, () => publish(eventOf(webhook.project_id))));
  await expectDelivered(webhook, EVENTS);
  expect(throttled).toBe(4 * EVENTS);
  expect(requestCounts()).toEqual(Array(EVENTS).fill(1));
  expect(await deadLetters()).toEqual([]);
});

/** The deliveries of a batch share a read. */
const deliveriesIn = ({ RequestItems = {} }: Partial<BatchGetCommandInput>): number =>
  Object.entries(RequestItems).find(([table]) => table.endsWith("-deliveries"))?.[1].Keys?.length ?? 0;

test("an outage of DynamoDB of 30 minutes makes no dead letter, and all is delivered after it, once", async () => {
  const { webhook } = await givenWebhook({ url: receiver.url });
  // In 30 minutes an event is received ten times (180 s), and a delivery five times (360 s).
  const failed = { fanOut: 0, send: 0 };
  const [limitFanOut, limitSend] = [10 * EVENTS, 5 * EVENTS];
  failDynamo((call) => {
    if (failed.fanOut < limitFanOut) {
      if (isCall(call, "PutItem", "events")) failed.fanOut += 1;
      return isCall(call, "PutItem", "events") || isCall(call, "Query", "webhooks");
    }
    const isSend = call.command === "BatchGetItemCommand" && failed.send < limitSend;
    if (isSend) failed.send += deliveriesIn(call.input);
    return isSend;
  });
  await Promise.all(Array.from({ length: EVENTS }, () => publish(eventOf(webhook.project_id))));
  await expectDelivered(webhook, EVENTS);
  expect(failed.fanOut).toBe(limitFanOut);
  // The last read that fails may be one of several deliveries.
  expect(failed.send).toBeGreaterThanOrEqual(limitSend);
  expect(requestCounts()).toEqual(Array(EVENTS).fill(1));
  expect(await deadLetters()).toEqual([]);
});

test("20 events that are each published twice at once lead to one row and one request each", async () => {
  const { webhook } = await givenWebhook({ url: receiver.url });
  const events = Array.from({ length: 20 }, () => eventOf(webhook.project_id));
  await Promise.all(events.flatMap((event) => [publish(event), publish(event)]));
  await expectDelivered(webhook, events.length);
  // The second message of each finds that nothing is left to do.
  await eventually(async () => expect(await messagesLeft()).toBe(0));
  expect(requestCounts()).toEqual(Array(events.length).fill(1));
});

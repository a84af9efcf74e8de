import { handler as send } from "../../../functions/attempts/send.ts";
import { handler as sendSlow } from "../../../functions/attempts/send-slow.ts";
import type { Delivery } from "../../../functions/deliveries/delivery.ts";
import type { UnrecordedAttempt } from "../../../functions/deliveries/delivery-queue.ts";
import * as deliveries from "../../../functions/deliveries/delivery-store.ts";
import type { Webhook } from "../../../functions/webhooks/webhook.ts";
import * as webhooks from "../../../functions/webhooks/webhook-store.ts";
import {
  carriedDelivery,
  failRecords,
  firstAttempt,
  receivedAgain,
  type SentMessage,
  watchMessages,
} from "../../support/attempts.ts";
import { interceptDynamo, interceptSqs, restoreAws } from "../../support/aws-calls.ts";
import {
  dueAttempt,
  givenDelivery,
  givenWebhook,
  prepareDeliveries,
  rowOf,
  rowsOf,
  sqsEvent,
  takeDueAttempts,
} from "../../support/deliveries.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";

/* Attempts whose first record fails. */

const allDone = { batchItemFailures: [] };
const allFailed = { batchItemFailures: [{ itemIdentifier: "m0" }] };

let receiver: Receiver;
let webhook: Webhook;
let sent: SentMessage[];
beforeAll(prepareDeliveries);
beforeEach(async () => {
  receiver = await startReceiver();
  ({ webhook } = await givenWebhook({ url: receiver.url }));
  sent = watchMessages();
});
afterEach(async () => {
  restoreAws();
  delete process.env.RETRY_SCHEDULE;
  await takeDueAttempts();
  await receiver.close();
});

const requests: [string, () => Promise<{ delivery: Delivery; message: unknown }>][] = [
  [
    "a carried delivery",
    async () => {
      const delivery = carriedDelivery(webhook);
      return { delivery, message: firstAttempt(delivery) };
    },
  ],
  [
    "a row",
    async () => {
      const delivery = await givenDelivery(webhook);
      return { delivery, message: dueAttempt(delivery) };
    },
  ],
];

/** Sends while records fail. @returns the message that records the attempt later */
async function sendUnrecorded(message: unknown): Promise<UnrecordedAttempt> {
  failRecords();
  expect(await send(sqsEvent(message))).toEqual(allDone);
  restoreAws();
  const [unrecorded] = sent.splice(0);
  if (unrecorded?.message.kind !== "unrecorded") throw new Error("no unrecorded attempt was enqueued");
  expect(unrecorded).toMatchObject({ lane: "slow", delaySeconds: 15, group: webhook.project_id });
  sent = watchMessages();
  return unrecorded.message;
}
const recordUnrecorded = async (message: unknown) => expect(await sendSlow(sqsEvent(message))).toEqual(allDone);

describe.each(requests)("an attempt of %s that could not be recorded", (_, given) => {
  test("is recorded later as a success, without a second request", async () => {
    const { delivery, message } = await given();
    await recordUnrecorded(await sendUnrecorded(message));
    expect(receiver.received).toHaveLength(1);
    const row = await rowOf(delivery);
    expect(row).toMatchObject({ status: "succeeded", attempt_count: 1, attempts: [{ status_code: 200 }] });
    expect(row).not.toHaveProperty("due_at");
    expect(sent).toEqual([]);
  });

  test("is recorded later as a failure, and its retry is planned", async () => {
    receiver.respondWith((_, response) => response.writeHead(503, { "Retry-After": "600" }).end());
    const { delivery, message } = await given();
    await recordUnrecorded(await sendUnrecorded(message));
    expect(receiver.received).toHaveLength(1);
    const row = await rowOf(delivery);
    expect(row).toMatchObject({ status: "pending", attempt_count: 1, attempts: [{ status_code: 503 }] });
    expect(sent).toMatchObject([{ lane: "normal", delaySeconds: 600, message: dueAttempt(row, 2) }]);
    expect(await webhooks.find(webhook.project_id, webhook.id)).toMatchObject({
      failing_since: row.attempts?.[0]?.at,
    });
  });

  test("is recorded once when the message is received twice", async () => {
    receiver.respondWith(500);
    const { delivery, message } = await given();
    const unrecorded = await sendUnrecorded(message);
    await recordUnrecorded(unrecorded);
    const row = await rowOf(delivery);
    await recordUnrecorded(unrecorded);
    expect(await rowOf(delivery)).toEqual(row);
    expect(sent).toHaveLength(1);
  });

  test("is enqueued again as long as it cannot be recorded, without a request", async () => {
    const { delivery, message } = await given();
    const unrecorded = await sendUnrecorded(message);
    failRecords();
    const enqueued = watchMessages();
    for (let receive = 1; receive <= 3; receive++) {
      expect(await sendSlow(sqsEvent(unrecorded))).toEqual(allDone);
      expect(enqueued).toHaveLength(receive);
      expect(enqueued.at(-1)).toMatchObject({ lane: "slow", delaySeconds: 15, message: unrecorded });
    }
    restoreAws();
    await recordUnrecorded(unrecorded);
    expect(receiver.received).toHaveLength(1);
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempt_count: 1 });
  });

  test("is added to the log when the delivery was sent again meanwhile, and the success counts", async () => {
    const { delivery, message } = await given();
    const unrecorded = await sendUnrecorded(message);
    receiver.respondWith(500);
    // As the sweep does when the claim of the first sender has ended.
    await deliveries.insert(delivery);
    const other = { number: 1, at: new Date(0).toISOString(), duration_ms: 1, trigger: "schedule" as const };
    const soon = new Date(Date.now() + 60_000).toISOString();
    const retry = { status: "pending", nextAttemptAt: soon, due: { due_shard: 1, due_at: soon } } as const;
    expect(await deliveries.recordAttempt(delivery, { ...other, error_code: "timeout" }, retry, "another")).toBe(true);
    await recordUnrecorded(unrecorded);
    const row = await rowOf(delivery);
    expect(row).toMatchObject({ status: "succeeded", attempts: [{ error_code: "timeout" }, { status_code: 200 }] });
    expect(row).not.toHaveProperty("due_at");
  });

  test("and whose webhook was deleted is dropped", async () => {
    const { delivery, message } = await given();
    const unrecorded = await sendUnrecorded(message);
    await webhooks.remove(webhook.project_id, webhook.id);
    const before = await rowsOf(webhook);
    await recordUnrecorded(unrecorded);
    expect(await rowsOf(webhook)).toEqual(before);
    expect(before.map(({ id }) => id).filter((id) => id !== delivery.id)).toEqual([]);
  });

  test("returns its own message to the queue when it cannot be enqueued either", async () => {
    const { delivery, message } = await given();
    failRecords();
    interceptSqs(() => Promise.reject(new Error("SQS is unavailable")));
    expect(await send(sqsEvent(message))).toEqual(allFailed);
    expect(receiver.received).toHaveLength(1);
    restoreAws();
    // The second receive. The claim of the first sender has ended by then.
    if (await deliveries.find(webhook.id, delivery.id)) await endClaim(delivery);
    expect(await send(receivedAgain(message))).toEqual(allDone);
    expect(receiver.received).toHaveLength(2);
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded" });
  });
});

/** Claims the row at a time in the past, so that the claim has ended. */
async function endClaim(delivery: Delivery): Promise<void> {
  const farAhead = new Date(Date.now() + 3_600_000);
  const past = new Date(Date.now() - 1_000).toISOString();
  expect(await deliveries.claimSending(await rowOf(delivery), "ended", farAhead, past)).toBe(true);
}

test("an unrecorded success does not end a redelivery that was requested after the attempt", async () => {
  const delivery = await givenDelivery(webhook);
  const unrecorded = await sendUnrecorded(dueAttempt(delivery));
  await deliveries.reschedule(webhook.id, delivery.id, new Date(), 120);
  await recordUnrecorded(unrecorded);
  const row = await rowOf(delivery);
  expect(row).toMatchObject({ status: "pending", trigger: "redeliver", attempt_count: 1 });
  expect(sent.map(({ message }) => message)).toMatchObject([{ kind: "due", attempt: 2 }]);
  await endClaim(delivery);
  await send(sqsEvent(dueAttempt(row, 2)));
  expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempts: [{}, { trigger: "redeliver" }] });
});

test("a record whose response is lost is neither repeated nor enqueued", async () => {
  const delivery = await givenDelivery(webhook);
  let isRepeated = false;
  interceptDynamo(async ({ command, input }, proceed) => {
    if (
      command !== "UpdateItemCommand" ||
      !String(input.UpdateExpression).includes("attempts = :attempts") ||
      isRepeated
    ) {
      return proceed();
    }
    isRepeated = true;
    await proceed();
    return proceed();
  });
  receiver.respondWith(500);
  await send(sqsEvent(dueAttempt(delivery)));
  const row = await rowOf(delivery);
  expect(row).toMatchObject({ attempt_count: 1, attempts: [{ number: 1 }] });
  expect(sent.map(({ message }) => message)).toEqual([dueAttempt(row, 2)]);
});

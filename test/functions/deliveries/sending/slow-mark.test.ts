import type http from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { jest } from "@jest/globals";
import { markSlow, noteDuration, SLOW_AFTER_MS } from "../../../../functions/deliveries/sending/slow-mark.ts";
import type { Webhook } from "../../../../functions/webhooks/webhook/webhook.ts";
import * as webhooks from "../../../../functions/webhooks/webhook/webhook-store.ts";
import { attempt, carry, givenLine, visitLine } from "../../../support/attempts.ts";
import { failDynamo, interceptDynamo, isCall } from "../../../support/aws-calls.ts";
import {
  changeWebhook,
  givenWebhook,
  newDelivery,
  prepareDeliveries,
  rowOf,
  takeMessages,
} from "../../../support/deliveries.ts";
import { eventually } from "../../../support/eventually.ts";
import { useReceiver } from "../../../support/receiver.ts";

/* The mark of slow receivers. */

const hourAgo = () => new Date(Date.now() - 3_600_000).toISOString();

const receiver = useReceiver("test");
let webhook: Webhook;
let waiting: http.ServerResponse[];
const respond = () => waiting.splice(0).map((response) => response.end());
const webhookNow = async () => {
  const found = await webhooks.find(webhook.project_id, webhook.id);
  if (!found) throw new Error("the webhook is deleted");
  return found;
};
beforeAll(prepareDeliveries);
beforeEach(async () => {
  waiting = [];
  receiver.respondWith((_, response) => void waiting.push(response));
  ({ webhook } = await givenWebhook({ url: receiver.url }));
});
afterEach(async () => {
  jest.restoreAllMocks();
  await takeMessages("slowDeliveries");
});

/** Counts the writes to webhooks from now on. */
function watchWebhookWrites(): string[] {
  const writes: string[] = [];
  interceptDynamo(async ({ command, input }, proceed) => {
    if (command === "UpdateItemCommand" && String(input.TableName).endsWith("-webhooks")) {
      writes.push(String(input.UpdateExpression));
    }
    return proceed();
  });
  return writes;
}

describe("a receiver without an answer for two seconds", () => {
  test("counts as slow from then on", () => {
    expect(SLOW_AFTER_MS).toBe(2_000);
  });

  test("is marked once, while its requests are in flight, however many are slow", async () => {
    const writes = watchWebhookWrites();
    await givenLine(webhook, 3);
    const visit = visitLine(webhook);
    await receiver.waitFor(3);
    await eventually(async () => expect(await webhookNow()).toHaveProperty("slow_since"));
    const { slow_since } = await webhookNow();
    const latest = receiver.received[2]?.at ?? Number.NaN;
    await eventually(() => expect(Date.now() - latest).toBeGreaterThan(SLOW_AFTER_MS + 200));
    respond();
    await visit;
    expect(new Set(writes)).toEqual(new Set(["SET #slow_since = :v0"]));
    expect((await webhookNow()).slow_since).toBe(slow_since);
    writes.length = 0;
    await markSlow(await webhookNow());
    expect(writes).toEqual([]);
  });

  test("is marked before the attempt is recorded and ends: Lambda stops the process then", async () => {
    const responded = Promise.withResolvers<void>();
    const effects: string[] = [];
    interceptDynamo(async (call, proceed) => {
      const isMark = isCall(call, "UpdateItem", "webhooks");
      if (isMark) {
        effects.push("mark begun");
        await responded.promise;
        // Time enough to record the outcome, if the attempt does not wait for the mark.
        await sleep(200);
      }
      const output = await proceed();
      if (isMark) effects.push("mark written");
      if (isCall(call, "PutItem", "deliveries")) effects.push("outcome recorded");
      return output;
    });
    const sending = carry(newDelivery(webhook));
    await eventually(() => expect(effects).toEqual(["mark begun"]));
    respond();
    responded.resolve();
    await sending;
    expect(effects).toEqual(["mark begun", "mark written", "outcome recorded"]);
  });

  test("is not marked when the mark cannot be written, and the outcome is recorded all the same", async () => {
    const delivery = newDelivery(webhook);
    let failures = 0;
    failDynamo((call) => {
      const isMark = isCall(call, "UpdateItem", "webhooks");
      if (isMark) failures += 1;
      return isMark;
    });
    const sending = carry(delivery);
    await eventually(() => expect(failures).toBe(1));
    respond();
    await sending;
    expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempt_count: 1 });
    expect(await webhookNow()).toEqual(webhook);
  });
});

test("a receiver that answers within two seconds is not marked, and its webhook is not written", async () => {
  receiver.respondWith(200);
  const writes = watchWebhookWrites();
  await carry(newDelivery(webhook));
  expect(writes).toEqual([]);
  expect(await webhookNow()).toEqual(webhook);
});

test("a marked webhook gets its deliveries from its worker, and is unmarked after 20 fast responses", async () => {
  receiver.respondWith(200);
  // Each response is fast, however busy the machine is.
  jest.spyOn(performance, "now").mockReturnValue(0);
  await changeWebhook(webhook, { slow_since: hourAgo() });
  const writes = watchWebhookWrites();
  await givenLine(webhook, 19);
  await visitLine(webhook);
  expect([receiver.received.length, writes]).toEqual([19, []]);
  const delivery = newDelivery(webhook);
  await carry(delivery);
  expect(receiver.received).toHaveLength(19);
  await visitLine(webhook);
  expect([receiver.received.length, writes]).toEqual([20, ["REMOVE #slow_since"]]);
  expect(await webhookNow()).toEqual(webhook);
  await carry(newDelivery(webhook));
  expect(receiver.received).toHaveLength(21);
});

test("a connection that is refused at once does not count as fast", async () => {
  await changeWebhook(webhook, { slow_since: hourAgo() });
  await receiver.close();
  for (let count = 0; count < 20; count++) await attempt(newDelivery(webhook));
  expect(await webhookNow()).toHaveProperty("slow_since");
});

describe("the run of fast responses", () => {
  let marked: Webhook;
  beforeEach(async () => {
    await changeWebhook(webhook, { slow_since: hourAgo() });
    marked = await webhookNow();
  });
  const note = async (count: number, durationMs: number) => {
    for (let n = 0; n < count; n++) await noteDuration(marked, durationMs);
  };
  const isMarked = async () => "slow_since" in (await webhookNow());

  test("is forgotten when 10,000 webhooks have one, so that the memory is bounded", async () => {
    await note(19, 1);
    for (let other = 0; other < 10_000; other++) await noteDuration({ ...marked, id: String(other) }, 1);
    await note(1, 1);
    expect(await isMarked()).toBe(true);
  });

  test.each([
    ["19 fast responses", [[19, 1]], true],
    ["20 responses within a second", [[20, 1_000]], false],
    ["20 responses after more than a second", [[20, 1_001]], true],
    [
      "19 fast responses, one after more than a second and 19 fast ones",
      [
        [19, 1],
        [1, 1_500],
        [19, 1],
      ],
      true,
    ],
    [
      "the same and one more",
      [
        [19, 1],
        [1, 1_500],
        [20, 1],
      ],
      false,
    ],
  ])("%s", async (_, notes, expected) => {
    for (const [count = 0, durationMs = 0] of notes) await note(count, durationMs);
    expect(await isMarked()).toBe(expected);
  });

  test("at another URL leaves the mark as it is", async () => {
    await changeWebhook(webhook, { url: "https://example.com/new" });
    await note(20, 1);
    expect(await isMarked()).toBe(true);
  });

  test("starts again after a request without an answer for two seconds", async () => {
    await note(19, 1);
    await markSlow(marked);
    await note(19, 1);
    expect(await isMarked()).toBe(true);
  });
});

test("the mark belongs to the URL that was slow", async () => {
  await changeWebhook(webhook, { url: "https://example.com/new" });
  await markSlow(webhook);
  expect(await webhookNow()).not.toHaveProperty("slow_since");
});

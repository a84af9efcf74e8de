import { jest } from "@jest/globals";
import { enter, holdNew } from "../../../../functions/deliveries/line/backlog.ts";
import { change } from "../../../../functions/deliveries/line/change-delivery.ts";
import type { Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import * as deliveries from "../../../../functions/deliveries/line/delivery-store.ts";
import {
  insertedHeld,
  newRequest,
  type PlaceKey,
  requested,
} from "../../../../functions/deliveries/line/delivery-transitions.ts";
import type { Webhook } from "../../../../functions/webhooks/webhook/webhook.ts";
import * as webhooks from "../../../../functions/webhooks/webhook/webhook-store.ts";
import { watchMessages } from "../../../support/attempts.ts";
import { interceptDynamo, interceptSqs, restoreAws, watchDynamo } from "../../../support/aws-calls.ts";
import {
  givenDelivery,
  givenWaiting,
  givenWebhook,
  newDelivery,
  placesOf,
  prepareDeliveries,
  rowOf,
  takeDeliveryMessages,
  wakeUpOf,
  workCall,
} from "../../../support/deliveries.ts";
import { fakeDate } from "../../../support/fake-date.ts";

/* The way into the backlog: place, wake-up, row, message. */

const fromNow = (seconds: number) => new Date(Date.now() + seconds * 1000);

let webhook: Webhook;
beforeAll(prepareDeliveries);
beforeEach(async () => {
  ({ webhook } = await givenWebhook());
});
afterEach(() => takeDeliveryMessages());

const entering = (due: Date, delivery = newDelivery(webhook), isAsked = false) => ({ delivery, due, isAsked });
const work = (delaySeconds: number, of = webhook) => ({
  ...{ queue: "slowDeliveries", group: of.project_id },
  ...{ delaySeconds, message: workCall(of) },
});

/** While a row waits, it has a place, and a wake-up that is not later. */
async function expectInvariant({ webhook_id, id }: Pick<Delivery, "webhook_id" | "id">): Promise<boolean> {
  const row = await deliveries.find(webhook_id, id);
  if (row?.status !== "pending") return false;
  const place = (await placesOf(webhook)).find(({ entry }) => entry === row.place);
  expect(place).toMatchObject({ delivery_id: id, due: row.next_attempt_at });
  const { due = "none" } = (await wakeUpOf(webhook)) ?? {};
  expect(Date.parse(due)).toBeLessThanOrEqual(Math.max(Date.now(), Date.parse(place?.due ?? "")));
  return true;
}

describe("a row that enters", () => {
  test("costs three writes and no message when a look is planned before", async () => {
    await givenWaiting(webhook, { due: fromNow(5) });
    const [calls, messages] = [watchDynamo(), watchMessages()];
    await enter(webhook, [entering(fromNow(10))]);
    expect(calls.map(({ units }) => units)).toEqual([1, 1, 1]);
    expect(messages).toEqual([]);
  });

  test("with many others shares the wake-up and the message", async () => {
    const [calls, messages] = [watchDynamo(), watchMessages()];
    // The earliest is not the first.
    const all = Array.from({ length: 120 }, (_, n) => entering(fromNow(119 - n)));
    const changes = await enter(webhook, all);
    expect(changes.map(({ row }) => row?.id)).toEqual(all.map(({ delivery }) => delivery.id));
    expect(calls.reduce((sum, { units }) => sum + units, 0)).toBe(120 * 2 + 2);
    expect(messages).toHaveLength(1);
    expect(await wakeUpOf(webhook)).toMatchObject({ due: all.at(-1)?.due.toISOString() });
  });

  test("beyond the maximum delay of a message is left to the sweep", async () => {
    fakeDate();
    const messages = watchMessages();
    await enter(webhook, [entering(fromNow(900.001))]);
    expect(messages).toEqual([]);
    expect(await wakeUpOf(webhook)).toBeDefined();
    await enter(webhook, [entering(fromNow(900))]);
    expect(messages).toEqual([work(900)]);
    jest.useRealTimers();
  });

  test("moves a later look forward, and calls the worker", async () => {
    await givenWaiting(webhook, { due: fromNow(3_600) });
    const messages = watchMessages();
    const one = entering(fromNow(0));
    await enter(webhook, [one]);
    expect(messages).toEqual([work(0)]);
    expect(await wakeUpOf(webhook)).toMatchObject({ due: one.due.toISOString(), wakes: 2 });
  });

  test("stays as it is when it exists, and leaves no place", async () => {
    const row = await givenDelivery(webhook);
    const messages = watchMessages();
    expect(await enter(webhook, [entering(fromNow(0), row)])).toMatchObject([{ isWritten: false, row }]);
    expect(await placesOf(webhook)).toEqual([]);
    // The worker removes the wake-up.
    expect(messages).toEqual([work(0)]);
  });
});

test("a due time beyond the longest delay of a message is left to the sweep", async () => {
  const messages = watchMessages();
  const later = entering(fromNow(7_200));
  await enter(webhook, [later]);
  expect(await wakeUpOf(webhook)).toMatchObject({ due: later.due.toISOString() });
  expect(messages).toEqual([]);
});

describe("the look at a place", () => {
  const probeAt = fromNow(200);
  const open = { failing_since: fromNow(-600).toISOString(), probe_at: probeAt.toISOString() };
  const opensAt = fromNow(21);
  const failing = { failing_since: fromNow(-9).toISOString() };
  test.each<[string, Partial<Webhook>, number, boolean, () => Date]>([
    ["is at its due time", {}, 60, false, () => fromNow(60)],
    ["is now for what a user asked for", open, 0, true, () => fromNow(0)],
    ["is at the next probe while the circuit is open", open, 0, false, () => probeAt],
    ["is at the next probe also when it is due later", open, 500, false, () => probeAt],
    ["is when the circuit opens, if it is due later", failing, 60, false, () => opensAt],
    ["is at its due time before the circuit opens", failing, 5, false, () => fromNow(5)],
    [
      "is now when the probe is overdue",
      { ...open, probe_at: fromNow(-9).toISOString() },
      -60,
      false,
      () => fromNow(0),
    ],
  ])("%s", async (_, health, seconds, isAsked, at) => {
    await enter({ ...webhook, ...health }, [entering(fromNow(seconds), newDelivery(webhook), isAsked)]);
    const { due = "" } = (await wakeUpOf(webhook)) ?? {};
    expect(Math.abs(Date.parse(due) - at().getTime())).toBeLessThan(2_000);
  });
});

/** Fails one of the writes, before or after it takes effect, and all that follow, as when the process dies. */
function dieAt(write: number, isAfter: boolean): void {
  let writes = 0;
  const fail = () => Promise.reject(new Error("died"));
  interceptDynamo(async ({ command }, send) => {
    if (!/^(Put|Update|Delete)/.test(command)) return send();
    writes += 1;
    if (writes === write && isAfter) await send();
    return writes < write ? send() : fail();
  });
  interceptSqs(fail);
}

test.each([
  ["before it takes effect", "a new delivery", false],
  ["after it took effect", "a new delivery", true],
  ["before it takes effect", "a redelivery", false],
  ["after it took effect", "a redelivery", true],
])(
  "a process that dies at a write, %s, leaves no row that waits without a place and a wake-up: %s",
  async (_, kind, isAfter) => {
    const waited: boolean[] = [];
    // Place, wake-up, for the redelivery also its earlier time, row.
    for (let write = 1; write <= 4; write++) {
      ({ webhook } = await givenWebhook());
      await givenWaiting(webhook, { due: fromNow(kind === "a redelivery" ? 3_600 : 5) });
      const ended = await givenDelivery(webhook, { status: "failed" });
      const transition = (place: PlaceKey) => requested("redeliver", newRequest(new Date()))(place);
      const asked = { delivery: ended, due: fromNow(0), isAsked: true, transition };
      const each = kind === "a redelivery" ? asked : entering(fromNow(60));
      dieAt(write, isAfter);
      await Promise.allSettled([enter(webhook, [each])]);
      restoreAws();
      waited.push(await expectInvariant(each.delivery));
      await enter(webhook, [each]);
      expect(await expectInvariant(each.delivery)).toBe(true);
    }
    const rowWrite = (kind === "a redelivery" ? 4 : 3) + (isAfter ? 0 : 1);
    expect(waited).toEqual([1, 2, 3, 4].map((write) => write >= rowWrite));
  },
);

describe("a delivery that is held", () => {
  test("of a webhook that is deleted meanwhile stays held", async () => {
    const delivery = newDelivery(webhook);
    await webhooks.remove(webhook.project_id, webhook.id);
    await holdNew(delivery);
    expect(await rowOf(delivery)).toMatchObject({ status: "held" });
  });

  test("of a webhook that is enabled meanwhile waits, for longer than a message that carries it", async () => {
    const delivery = newDelivery(webhook);
    expect(await holdNew(delivery)).toBe(true);
    expect(await expectInvariant(delivery)).toBe(true);
    const { next_attempt_at = "" } = await rowOf(delivery);
    expect(Math.abs(Date.parse(next_attempt_at) - fromNow(75).getTime())).toBeLessThan(2_000);
  });

  test("and was held before waits too when its webhook is enabled", async () => {
    const delivery = newDelivery(webhook);
    await change(delivery, insertedHeld(delivery));
    expect(await holdNew(delivery)).toBe(false);
    expect(await expectInvariant(delivery)).toBe(true);
  });

  test("and exists with another status stays as it is", async () => {
    const row = await givenDelivery(webhook);
    expect(await holdNew(row)).toBe(false);
    expect(await rowOf(row)).toEqual(row);
  });
});

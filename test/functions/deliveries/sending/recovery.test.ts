import { randomBytes } from "node:crypto";
import { jest } from "@jest/globals";
import { createCertification } from "../../../../functions/deliveries/certification/certification.ts";
import * as certifications from "../../../../functions/deliveries/certification/certification-store.ts";
import { certify } from "../../../../functions/deliveries/certification/certify.ts";
import type { Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import { MeteredReads } from "../../../../functions/foundation/budgets/metered-reads-store.ts";
import { readHealth } from "../../../../functions/webhooks/webhook/health-store.ts";
import type { Webhook } from "../../../../functions/webhooks/webhook/webhook.ts";
import * as webhooks from "../../../../functions/webhooks/webhook/webhook-store.ts";
import { catchUp } from "../../../../functions/webhooks/webhook/worker-call.ts";
import { attempt, carry, givenLine, requestAgain, visitLine } from "../../../support/attempts.ts";
import { interceptDynamo } from "../../../support/aws-calls.ts";
import {
  changeWebhook,
  givenDelivery,
  givenWaiting,
  givenWebhook,
  newDelivery,
  placesOf,
  prepareDeliveries,
  rowOf,
  takeMessages,
  wakeUpOf,
} from "../../../support/deliveries.ts";
import { fakeDate } from "../../../support/fake-date.ts";
import { useReceiver } from "../../../support/receiver.ts";

/* A receiver that fails and comes back, on a fake date: the probes, and when what waits is sent. */

const receiver = useReceiver("test");
let webhook: Webhook;
let clock: ReturnType<typeof fakeDate>;
beforeAll(prepareDeliveries);
beforeEach(async () => {
  clock = fakeDate();
  jest.spyOn(Math, "random").mockReturnValue(0.5);
  ({ webhook } = await givenWebhook({ url: receiver.url }));
});
afterEach(async () => {
  jest.restoreAllMocks();
  delete process.env.RETRY_SCHEDULE;
  await takeMessages("slowDeliveries");
});

const at = (seconds: number) => new Date(Date.now() + 1_000 * seconds);
const webhookNow = async () => (await webhooks.find(webhook.project_id, webhook.id)) ?? webhook;
const requestedIds = () => receiver.received.map(({ headers }) => String(headers["webhook-id"]));
const idsOf = (rows: Pick<Delivery, "id">[]) => rows.map(({ id }) => id);
const statusesNow = async (rows: Delivery[]) => (await Promise.all(rows.map(rowOf))).map(({ status }) => status);
const attemptsOf = async (row: Delivery) => (await rowOf(row)).attempts?.length;

const unmetered = () => new MeteredReads(`user:${webhook.project_id}`, new Date());

/** Visits the line whenever its wake-up is due, as the calls of the worker and the sweep do, until so many seconds have passed. */
async function pass(seconds: number): Promise<void> {
  const end = at(seconds);
  for (;;) {
    const due = new Date((await wakeUpOf(webhook))?.due ?? "9999-01-01T00:00:00Z");
    const next = Math.min(end.getTime(), due.getTime());
    clock.advance(Math.max(0, (next - Date.now()) / 1_000));
    if (due > end) return;
    await visitLine(webhook);
  }
}

/** Lets the first two attempts of deliveries fail: the third is planned in five minutes. */
async function givenOutage(count: number): Promise<Delivery[]> {
  receiver.respondWith(500);
  const rows = await givenLine(webhook, count);
  await pass(25);
  return rows;
}
const givenFailing = async (): Promise<Delivery> => {
  const [row] = await givenOutage(1);
  if (!row) throw new Error("nothing is given");
  return row;
};

test("one delivery is sent every 30 s in ten minutes, then at least every 5 min, beside its schedule", async () => {
  const row = await givenFailing();
  const since = Date.parse((await webhookNow()).failing_since ?? "") / 1_000;
  await pass(4 * 3_600);
  const times = receiver.received.map(({ headers }) => Number(headers["webhook-timestamp"]) - Math.floor(since));
  const gaps = times.slice(1).map((time, index) => ({ time, gap: time - (times[index] ?? 0) }));
  expect(Math.max(...gaps.filter(({ time }) => time <= 600).map(({ gap }) => gap))).toBeLessThanOrEqual(31);
  expect(Math.max(...gaps.map(({ gap }) => gap))).toBeLessThanOrEqual(301);
  const { status, attempts, attempt_count, attempts_before_schedule = 0 } = await rowOf(row);
  // Those at 0 s, 5 s, 5 min, 35 min and 2 h 35 min count.
  expect([status, attempt_count - attempts_before_schedule]).toEqual(["pending", 5]);
  expect(attempt_count).toBe(times.length);
  expect(attempts?.map(({ number }) => number)).toEqual(times.slice(-50).map((_, index) => times.length - 49 + index));
});

test("the oldest delivery is the first probe while none is due, and each further one is the next", async () => {
  const rows = await givenOutage(3);
  const before = receiver.received.length;
  await pass(110);
  const [one, two, three] = idsOf(rows);
  expect(requestedIds().slice(before, before + 4)).toEqual([one, two, three, one]);
});

test.each<[string, () => Promise<unknown>]>([
  ["by the next probe", async () => {}],
  ["at once after a change by a user", () => catchUp(webhook, new Date())],
])("of a repaired receiver that rejects only the oldest delivery, the others are sent %s", async (_, act) => {
  process.env.RETRY_SCHEDULE = "1,7200,7200";
  const [oldest, ...others] = await givenOutage(6);
  receiver.respondWith(({ headers }, response) =>
    response.writeHead(headers["webhook-id"] === oldest?.id ? 400 : 200).end(),
  );
  await act();
  await pass(61);
  expect(await statusesNow(others)).toEqual(Array(5).fill("succeeded"));
});

test("after a catch-up in which some fail and some succeed, the line is planned by the state that is stored", async () => {
  process.env.RETRY_SCHEDULE = "1,7200,7200";
  const rows = await givenOutage(12);
  receiver.respondWith(({ headers }, response) =>
    response.writeHead(headers["webhook-id"] === rows[0]?.id ? 400 : 200).end(),
  );
  await catchUp(webhook, new Date());
  await pass(45);
  const [stored, wakeUp] = [await webhookNow(), await wakeUpOf(webhook)];
  const { state, next_probe_at } = await readHealth(stored, new Date(), unmetered());
  if (stored.failing_since === undefined) expect(state).toBe("healthy");
  else expect([state, wakeUp?.due]).toEqual(["probing", next_probe_at]);
});

test("rejected deliveries of a receiver that accepts others are sent early less and less often", async () => {
  process.env.RETRY_SCHEDULE = "1,36000,36000";
  const rejected = await givenOutage(5);
  const ids = new Set(idsOf(rejected));
  receiver.respondWith(({ headers }, response) =>
    response.writeHead(ids.has(String(headers["webhook-id"])) ? 400 : 200).end(),
  );
  for (let minute = 0; minute < 60; minute++) {
    await givenWaiting(webhook, { at: at(0), due: at(0) });
    await pass(60);
  }
  const counts = await Promise.all(rejected.map(async (row) => (await rowOf(row)).attempt_count));
  // Two at first; then, while no success came between, as probes, and a few times to catch up.
  expect(Math.max(...counts)).toBeLessThanOrEqual(2 + 60 / 5 + 12);
});

test("after a success all that waits is sent in the same visit, oldest event first, whatever its own time", async () => {
  const minutes = [50, 40, 30, 20, 10];
  const old = await Promise.all(
    minutes.map((age) => givenWaiting(webhook, { at: at(-60 * age), due: at(60 * age), attempt_count: 3 })),
  );
  const recent = await givenLine(webhook, 3);
  await changeWebhook(webhook, { failing_since: at(-600).toISOString(), probe_at: at(0).toISOString() });
  const begun: string[] = [];
  interceptDynamo(({ command, input }, send) => {
    if (command === "BatchGetItemCommand") begun.push(JSON.stringify(input));
    return send();
  });
  await visitLine(webhook);
  // Several are in flight at once. They begin in this order.
  const [probe, ...rest] = idsOf(recent);
  const expected = [probe, ...idsOf(old), ...rest];
  expect(begun.map((input) => expected.findIndex((id = "") => input.includes(id)))).toEqual([...expected.keys()]);
  expect(requestedIds().toSorted()).toEqual(expected.toSorted());
  expect([await placesOf(webhook), await wakeUpOf(webhook)]).toEqual([[], undefined]);
});

test.each<[string, () => Promise<unknown>]>([
  ["the success of a carried delivery", async () => attempt(newDelivery(await webhookNow()))],
  ["the success of a redelivery", async () => requestAgain(await givenDelivery(webhook))],
  ["a certification", certifyNow],
  ["a change by a user", () => catchUp(webhook, new Date())],
])("after %s all that waits is sent at once", async (_, act) => {
  const rows = await givenOutage(3);
  receiver.respondWith(200);
  await act();
  await pass(1);
  expect(await statusesNow(rows)).toEqual(Array(3).fill("succeeded"));
  expect(await webhookNow()).not.toHaveProperty("failing_since");
  expect([await placesOf(webhook), await wakeUpOf(webhook)]).toEqual([[], undefined]);
});

async function certifyNow(): Promise<void> {
  const { project_id, id: webhook_id } = webhook;
  const certification = createCertification(webhook_id, new Date(), randomBytes(16));
  await certifications.insert(certification);
  await certify({ kind: "certify", project_id, webhook_id, certification_id: certification.id }, () => 60_000);
}

test("a success that is not the first leaves each delivery its own time", async () => {
  const later = await givenWaiting(webhook, { due: at(60), attempt_count: 2 });
  await givenLine(webhook, 1);
  await visitLine(webhook);
  expect(requestedIds()).toHaveLength(1);
  expect(await rowOf(later)).toEqual(later);
});

test("a delivery that alone is rejected holds up no others, and is sent early at most twice a minute", async () => {
  const rejected = await givenFailing();
  receiver.respondWith(({ headers }, response) =>
    response.writeHead(headers["webhook-id"] === rejected.id ? 500 : 200).end(),
  );
  for (let second = 0; second < 240; second += 10) {
    const event = await givenWaiting(webhook, { at: at(0), due: at(0) });
    await pass(30);
    expect(await rowOf(event)).toMatchObject({ status: "succeeded" });
  }
  const { attempt_count, attempts_before_schedule = 0 } = await rowOf(rejected);
  expect(attempt_count - attempts_before_schedule).toBe(3);
  expect(attempt_count).toBeLessThanOrEqual(2 + 26);
});

test("a receiver that asks for a pause with Retry-After gets no probe before its end, or for five minutes", async () => {
  receiver.respondWith((_, response) => response.writeHead(503, { "Retry-After": "900" }).end());
  const [row = newDelivery(webhook)] = await givenLine(webhook, 1);
  // A longer pause than five minutes applies to the retry, not to the probe.
  await pass(295);
  expect(await attemptsOf(row)).toBe(1);
  await pass(20);
  expect(await attemptsOf(row)).toBe(2);
});

test.each([
  [429, "20", 20],
  [503, "20", 20],
  [503, "900", 300],
])(
  "after a %d with Retry-After: %s, new events wait for %d s, and a redelivery does not",
  async (status, value, seconds) => {
    receiver.respondWith((_, response) => response.writeHead(status, { "Retry-After": value }).end());
    await attempt(newDelivery(webhook));
    receiver.respondWith(200);
    await pass(1);
    const [carried, asked] = [newDelivery(webhook), await givenDelivery(webhook, { status: "failed" })];
    await carry(carried);
    await requestAgain(asked);
    await visitLine(webhook);
    // The success of the redelivery ends the pause: the receiver accepts requests.
    expect(requestedIds().slice(1)).toContain(asked.id);
    await pass(1);
    expect(await statusesNow([carried, asked])).toEqual(["succeeded", "succeeded"]);

    receiver.respondWith((_, response) => response.writeHead(status, { "Retry-After": value }).end());
    await attempt(newDelivery(webhook));
    receiver.respondWith(200);
    const later = newDelivery(webhook);
    await carry(later);
    const before = receiver.received.length;
    await pass(seconds - 1);
    expect(receiver.received.length).toBe(before);
    await pass(2);
    expect(await statusesNow([later])).toEqual(["succeeded"]);
  },
);

test("a 500 with Retry-After is about one delivery: new events are sent", async () => {
  receiver.respondWith((_, response) => response.writeHead(500, { "Retry-After": "20" }).end());
  await attempt(newDelivery(webhook));
  receiver.respondWith(200);
  const next = newDelivery(webhook);
  await carry(next);
  expect(await statusesNow([next])).toEqual(["succeeded"]);
});

test("next_probe_at of the health is when something is sent", async () => {
  const row = await givenFailing();
  await pass(100);
  const { state, next_probe_at } = await readHealth(await webhookNow(), new Date(), unmetered());
  expect(state).toBe("probing");
  const count = (await attemptsOf(row)) ?? 0;
  await pass((Date.parse(next_probe_at ?? "") - Date.now()) / 1_000 - 1);
  expect(await attemptsOf(row)).toBe(count);
  await pass(1);
  expect(await attemptsOf(row)).toBe(count + 1);
});

test("a first attempt that a message may carry is not sent early", async () => {
  const carried = await givenWaiting(webhook, { at: at(-1), due: at(75) });
  await changeWebhook(webhook, { failing_since: at(-5).toISOString() });
  await catchUp(webhook, new Date());
  await visitLine(webhook);
  expect(receiver.received).toEqual([]);
  expect(await rowOf(carried)).toEqual(carried);
});

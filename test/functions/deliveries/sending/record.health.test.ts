import type { Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import { MeteredReads } from "../../../../functions/foundation/budgets/metered-reads-store.ts";
import { readHealth } from "../../../../functions/webhooks/webhook/health-store.ts";
import * as receiverState from "../../../../functions/webhooks/webhook/receiver-state-store.ts";
import type { Webhook } from "../../../../functions/webhooks/webhook/webhook.ts";
import * as webhooks from "../../../../functions/webhooks/webhook/webhook-store.ts";
import { attempt, carry } from "../../../support/attempts.ts";
import {
  changeWebhook,
  givenWaiting,
  givenWebhook,
  newDelivery,
  prepareDeliveries,
  rowOf,
  takeMessages,
} from "../../../support/deliveries.ts";
import { notificationsAbout } from "../../../support/notifications.ts";
import { useReceiver } from "../../../support/receiver.ts";

/* How attempts change the health of a webhook, and when they disable it. */

const receiver = useReceiver("test");
let webhook: Webhook;
let delivery: Delivery;
beforeAll(prepareDeliveries);
beforeEach(async () => {
  ({ webhook } = await givenWebhook({ url: receiver.url }));
  delivery = newDelivery(webhook);
});
afterEach(async () => {
  delete process.env.RETRY_SCHEDULE;
  await takeMessages("slowDeliveries");
});

const daysAgo = (days: number) => new Date(Date.now() - days * 24 * 3600_000).toISOString();
const webhookNow = async () => await webhooks.find(webhook.project_id, webhook.id);

test.each([410, 500])(
  "%i from the previous URL does not change the health of a webhook whose URL has changed",
  async (status) => {
    receiver.respondWith(async (_, response) => {
      await changeWebhook(webhook, { url: "https://example.com/new" });
      response.writeHead(status).end();
    });
    await attempt(delivery);
    expect((await rowOf(delivery)).attempts).toMatchObject([{ status_code: status }]);
    expect(await webhookNow()).toEqual({ ...webhook, url: "https://example.com/new" });
  },
);

test("a webhook without a success for five days is disabled while its deliveries have attempts left", async () => {
  await changeWebhook(webhook, { failing_since: daysAgo(6) });
  receiver.respondWith(500);
  const second = await givenWaiting(webhook, { attempt_count: 1 });
  await attempt(second);
  expect(await webhookNow()).toMatchObject({ disabled_reason: "failing" });
  await carry(delivery);
  expect((await rowOf(delivery)).status).toBe("held");
});

describe("health", () => {
  const healthNow = async () =>
    readHealth((await webhookNow()) ?? webhook, new Date(), new MeteredReads(`user:${webhook.project_id}`, new Date()));

  test("does not change with a failed test delivery", async () => {
    receiver.respondWith(500);
    const sample: Delivery = { ...newDelivery(webhook), test: true, trigger: "test" };
    await attempt(sample);
    expect(await healthNow()).toMatchObject({ state: "new", last_error: null });
  });
});

test("failing_since keeps the value of the first of two concurrent failures", async () => {
  const firstFailure = daysAgo(0.1);
  receiver.respondWith(async (_, response) => {
    await changeWebhook(webhook, { failing_since: firstFailure });
    response.writeHead(500).end();
  });
  await attempt(delivery);
  expect(await rowOf(delivery)).toMatchObject({ attempt_count: 1 });
  expect((await webhookNow())?.failing_since).toBe(firstFailure);
});

test("the last attempt after five days without a success disables the webhook as failing", async () => {
  process.env.RETRY_SCHEDULE = "60";
  receiver.respondWith(500);
  await changeWebhook(webhook, { failing_since: daysAgo(5), probe_at: daysAgo(1) });
  delivery = await givenWaiting(webhook, { attempt_count: 1 });
  await attempt(delivery);
  expect(await webhookNow()).toMatchObject({ disabled_reason: "failing", disabled_at: expect.stringMatching(/Z$/) });
  expect(await rowOf(delivery)).toMatchObject({ status: "failed", attempt_count: 2 });
});

test("a shorter Retry-After does not end the pause that a longer one began", async () => {
  receiver.respondWith((_, response) => response.writeHead(503, { "Retry-After": "5" }).end());
  const probe_at = daysAgo(-4 / 1440);
  await changeWebhook(webhook, { failing_since: daysAgo(1 / 1440), probe_at });
  await attempt(delivery);
  expect(await webhookNow()).toMatchObject({ probe_at });
});

test("a failed first attempt does not disable the webhook after 50 days of failures", async () => {
  receiver.respondWith(500);
  await changeWebhook(webhook, { failing_since: daysAgo(50) });
  await attempt(delivery);
  expect(await webhookNow()).not.toHaveProperty("disabled_at");
  expect(await rowOf(delivery)).toMatchObject({ status: "pending", attempt_count: 1 });
});

test("a webhook with a success during the attempt is not disabled as failing", async () => {
  process.env.RETRY_SCHEDULE = "60";
  await changeWebhook(webhook, { failing_since: daysAgo(5) });
  delivery = await givenWaiting(webhook, { attempt_count: 1 });
  receiver.respondWith(async (_, response) => {
    await receiverState.clearFailing(webhook);
    response.writeHead(500).end();
  });
  await attempt(delivery);
  expect(await rowOf(delivery)).toMatchObject({ status: "failed" });
  expect(await webhookNow()).not.toHaveProperty("disabled_at");
});

test("the last attempt after less than five days without a success keeps the webhook enabled", async () => {
  receiver.respondWith(500);
  process.env.RETRY_SCHEDULE = "60";
  await changeWebhook(webhook, { failing_since: daysAgo(4.99) });
  delivery = await givenWaiting(webhook, { attempt_count: 1 });
  await attempt(delivery);
  expect(await webhookNow()).not.toHaveProperty("disabled_at");
  expect(await rowOf(delivery)).toMatchObject({ status: "failed", attempt_count: 2 });
});

test("410 to a test delivery disables the webhook", async () => {
  receiver.respondWith(410);
  await attempt({ ...delivery, test: true, trigger: "test" });
  expect(await webhookNow()).toMatchObject({ disabled_reason: "gone" });
});

test("DISABLE_AFTER_SECONDS is the time without a success after which a webhook is disabled", async () => {
  process.env.RETRY_SCHEDULE = "60";
  process.env.DISABLE_AFTER_SECONDS = "15";
  receiver.respondWith(500);
  const reasonAfter = async (seconds: number) => {
    await changeWebhook(webhook, { failing_since: daysAgo(seconds / 86_400) });
    await attempt(await givenWaiting(webhook, { attempt_count: 1 }));
    return (await webhookNow())?.disabled_reason;
  };
  expect([await reasonAfter(5), await reasonAfter(20)]).toEqual([undefined, "failing"]);
  delete process.env.DISABLE_AFTER_SECONDS;
});

test("the failure that began failing_since is stored with it, with its detail", async () => {
  receiver.respondWith((_, response) => response.writeHead(308, { Location: "https://new.example.com/hook" }).end());
  await attempt(delivery);
  const { at } = (await rowOf(delivery)).attempts?.[0] ?? {};
  const failure = { at, error_code: "http_status", status_code: 308, detail: "https://new.example.com/hook" };
  expect((await webhookNow())?.last_error).toEqual(failure);
});

test.each([500, 410])("a webhook that is deleted while it returns %i is not recreated", async (status) => {
  receiver.respondWith(async (_, response) => {
    await webhooks.remove(webhook.project_id, webhook.id);
    response.writeHead(status).end();
  });
  await attempt(delivery);
  expect(receiver.received).toHaveLength(1);
  expect(await webhookNow()).toBeUndefined();
});

test("two senders that get 410 at once disable the webhook and notify its owners once", async () => {
  const rows = [delivery, newDelivery(webhook)];
  receiver.respondWith(async (_, response) => {
    // Neither is answered before both requests have arrived.
    await receiver.waitFor(2);
    response.writeHead(410).end();
  });
  await Promise.all(rows.map((row) => attempt(row)));
  expect(await Promise.all(rows.map(rowOf))).toMatchObject([{ status: "failed" }, { status: "failed" }]);
  expect(await notificationsAbout(webhook.id)).toMatchObject([
    { type: "webhook.disabled", data: { reason: "gone", status_code: 410, error_code: "http_status" } },
  ]);
});

test.each([
  ["for 10 minutes", 10, {}, []],
  ["for 31 minutes", 31, {}, ["webhook.failing"]],
  ["for 31 minutes, and its owners know it", 31, { failing_notified_at: daysAgo(0) }, []],
])(
  "the owners of a webhook that fails %s are notified at a failed probe: case %#",
  async (_, minutes, state, types) => {
    await changeWebhook(webhook, { failing_since: daysAgo(minutes / 1440), ...state });
    receiver.respondWith(503);
    await attempt(delivery);
    await attempt(delivery);
    expect((await notificationsAbout(webhook.id)).map(({ type }) => type)).toEqual(types);
    expect(await rowOf(delivery)).toMatchObject({ status: "pending", attempt_count: 2 });
  },
);

test("the owners of a webhook whose next attempt is hours away are notified when it has failed for 30 minutes", async () => {
  receiver.respondWith((_, response) => response.writeHead(503, { "Retry-After": "36000" }).end());
  await attempt(delivery);
  const { failing_since = "" } = (await webhookNow()) ?? {};
  const due_at = new Date(Math.ceil(Date.parse(failing_since) / 300_000) * 300_000 + 1_800_000).toISOString();
  expect(await notificationsAbout(webhook.id)).toMatchObject([
    { type: "webhook.failing", due_at, timestamp: due_at, is_planned: true, data: { failing_since, status_code: 503 } },
  ]);
});

test("a success after 31 minutes of failures notifies no one, and the next outage is a new one", async () => {
  await changeWebhook(webhook, { failing_since: daysAgo(31 / 1440), failing_notified_at: daysAgo(1 / 1440) });
  await attempt(delivery);
  expect(await notificationsAbout(webhook.id)).toEqual([]);
  expect(await webhookNow()).not.toHaveProperty("failing_notified_at");
});

test("a failed test delivery does not notify that a webhook is failing", async () => {
  await changeWebhook(webhook, { failing_since: daysAgo(31 / 1440) });
  receiver.respondWith(503);
  const sample: Delivery = { ...newDelivery(webhook), test: true, trigger: "test" };
  await attempt(sample);
  expect(await notificationsAbout(webhook.id)).toEqual([]);
});

test.each<[string, Partial<Webhook>, Partial<Delivery>]>([
  ["a test delivery", { slow_since: daysAgo(1) }, { test: true, trigger: "test" }],
  ["a redelivery to a disabled webhook", { disabled_at: daysAgo(1) }, { trigger: "redeliver" }],
])("%s that fails is not retried", async (_, state, changes) => {
  await changeWebhook(webhook, state);
  receiver.respondWith(500);
  await attempt({ ...delivery, ...changes });
  expect(await rowOf(delivery)).toMatchObject({ status: "failed", attempt_count: 1 });
});

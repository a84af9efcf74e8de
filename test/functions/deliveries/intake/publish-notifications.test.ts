import { randomBytes, randomUUID } from "node:crypto";
import { jest } from "@jest/globals";
import { handler as fanOut } from "../../../../functions/deliveries/intake/fan-out.ts";
import { handler } from "../../../../functions/deliveries/intake/publish-notifications.ts";
import type { WebhookEventName } from "../../../../functions/foundation/events/webhook-event.ts";
import { logSink } from "../../../../functions/foundation/platform/log.ts";
import { postpone, remove } from "../../../../functions/foundation/records/notification-store.ts";
import { API_KEY_RANDOM_BYTES, type ApiKey, createApiKey } from "../../../../functions/identity/api-keys/api-key.ts";
import * as apiKeys from "../../../../functions/identity/api-keys/api-key-store.ts";
import * as receiverState from "../../../../functions/webhooks/webhook/receiver-state-store.ts";
import type { Webhook, WebhookPatch } from "../../../../functions/webhooks/webhook/webhook.ts";
import * as webhooks from "../../../../functions/webhooks/webhook/webhook-store.ts";
import { failDynamo, interceptSns, isCall, restoreAws } from "../../../support/aws-calls.ts";
import {
  changeWebhook,
  eventOf,
  givenWebhook,
  pipelineBatch,
  prepareDeliveries,
  rowsOf,
  takeDeliveryMessages,
  takeMessages,
} from "../../../support/deliveries.ts";
import { fakeDate } from "../../../support/fake-date.ts";
import { type Mail, notifications, notificationsAbout, subscribeToTopic } from "../../../support/notifications.ts";

const enoughTime = { getRemainingTimeInMillis: () => 50_000 };
const run = (context = enoughTime) => handler({}, context);
const both: WebhookEventName[] = ["webhook.failing", "webhook.disabled"];
const gone = { status_code: 410, error_code: "http_status" } as const;

let takeMail: () => Promise<Mail[]>;
beforeAll(async () => {
  await prepareDeliveries();
  takeMail = await subscribeToTopic();
});
afterEach(async () => {
  jest.restoreAllMocks();
  for (const row of await notifications()) await remove(row);
  await takeMail();
  await takeDeliveryMessages();
});

/** Creates a webhook that is to be disabled and others in its project. */
async function givenProject(...others: WebhookEventName[][]): Promise<{ webhook: Webhook; others: Webhook[] }> {
  const projectId = randomUUID();
  const url = "https://user-token.example.com:8443/path-token?query-token=1";
  const { webhook } = await givenWebhook({ projectId, url, events: ["deploy.started", ...both] });
  const rest: Webhook[] = [];
  for (const events of others) rest.push((await givenWebhook({ projectId, events })).webhook);
  return { webhook, others: rest };
}

const disable = async (webhook: Webhook) => receiverState.disable(webhook, "gone", new Date().toISOString(), gone);

test("a disabled webhook is published to the webhooks that subscribe to it, and to the topic", async () => {
  const { webhook, others } = await givenProject(["webhook.disabled"], ["deploy.started"], ["webhook.failing"], both);
  await disable(webhook);
  const [row] = await notificationsAbout(webhook.id);
  await run();
  const deliveries = await Promise.all(others.map(rowsOf));
  expect(deliveries.map((rows) => rows.length)).toEqual([1, 0, 0, 1]);
  const data = {
    webhook_id: webhook.id,
    host: "user-token.example.com:8443",
    failing_since: null,
    status_code: 410,
    error_code: "http_status",
    reason: "gone",
  };
  const { project_id } = webhook;
  const [delivery] = deliveries[0] ?? [];
  expect(delivery).toMatchObject({ status: "pending", event: "webhook.disabled", deployment_id: null, project_id });
  const { timestamp } = row ?? {};
  expect(JSON.parse(delivery?.body ?? "")).toEqual({
    event: "webhook.disabled",
    project_id,
    deployment_id: null,
    timestamp,
    data,
  });
  expect(await takeMail()).toEqual([
    {
      subject: `webhook.disabled in project ${project_id}`,
      attributes: { type: "webhook.disabled", project_id },
      message: { id: row?.id, type: "webhook.disabled", project_id, timestamp, data },
    },
  ]);
  expect(await notificationsAbout(webhook.id)).toEqual([]);
  // Their messages are enqueued at once.
  const sent = (await takeDeliveryMessages()).flatMap((message) => ("webhook_id" in message ? message.webhook_id : []));
  expect(sent.sort()).toEqual([others[0]?.id, others[3]?.id].sort());
});

test("an event about a webhook is delivered whatever the filter of its receiver is", async () => {
  const { webhook, others } = await givenProject(["webhook.disabled"]);
  const [other = webhook] = others;
  await changeWebhook(other, { filter: { environment: ["production"] } });
  await disable(webhook);
  await run();
  expect(await rowsOf(other)).toHaveLength(1);
});

test("a notification about a webhook with a name has it, beside the host", async () => {
  const { webhook, others } = await givenProject(both);
  const named = { ...webhook, name: "Chat" };
  await changeWebhook(webhook, { name: "Chat" });
  await disable(named);
  await run();
  const [delivery] = await rowsOf(others[0] as Webhook);
  expect(JSON.parse(delivery?.body ?? "").data).toMatchObject({ name: "Chat", host: "user-token.example.com:8443" });
  expect(await takeMail()).toMatchObject([{ message: { data: { name: "Chat" } } }]);
});

describe("a planned notification", () => {
  const since = "2026-01-01T00:00:00.000Z";

  /** Plans the notification of a failing webhook. It is due in the past. */
  async function givenPlanned(dueAt = "2026-01-01T00:30:00.000Z") {
    const project = await givenProject(both);
    await changeWebhook(project.webhook, { failing_since: since });
    const failing = { ...project.webhook, failing_since: since };
    await receiverState.notifyFailing(failing, gone, since, new Date(dueAt));
    return { ...project, failing };
  }

  test("is published when the webhook still fails, with the time at which it is due", async () => {
    const { webhook, others } = await givenPlanned();
    await run();
    const mail = await takeMail();
    expect(mail).toMatchObject([{ message: { type: "webhook.failing", timestamp: "2026-01-01T00:30:00.000Z" } }]);
    expect(JSON.stringify(mail)).not.toContain("is_planned");
    expect(await Promise.all(others.map(rowsOf))).toMatchObject([[{ event: "webhook.failing" }]]);
    expect(await notificationsAbout(webhook.id)).toEqual([]);
  });

  test.each<[string, (failing: Webhook) => Promise<unknown>]>([
    ["recovered", (failing) => receiverState.clearFailing(failing)],
    [
      "fails again since another time",
      (failing) => changeWebhook(failing, { failing_since: "2026-01-01T00:20:00.000Z" }),
    ],
    ["is disabled", (failing) => changeWebhook(failing, { disabled_at: "2026-01-01T00:20:00.000Z" })],
    ["is deleted", ({ project_id, id }) => webhooks.remove(project_id, id)],
  ])("is dropped when the webhook %s", async (_, change) => {
    const { webhook, others, failing } = await givenPlanned();
    await change(failing);
    await run();
    expect([await takeMail(), await Promise.all(others.map(rowsOf))]).toEqual([[], [[]]]);
    expect(await notificationsAbout(webhook.id)).toEqual([]);
  });

  test("that is due at once is published although the webhook has recovered", async () => {
    const { failing } = await givenPlanned(since);
    await receiverState.clearFailing(failing);
    await run();
    expect(await takeMail()).toMatchObject([{ message: { type: "webhook.failing", timestamp: since } }]);
  });
});

test.each<[string, (webhook: Webhook) => Promise<unknown>]>([
  ["enabled", ({ project_id, id }) => webhooks.update(project_id, id, { enabled: true }, new Date().toISOString())],
  ["deleted", ({ project_id, id }) => webhooks.remove(project_id, id)],
])("the notification of a disabled webhook is dropped when it is %s before", async (_, change) => {
  const { webhook, others } = await givenProject(both);
  await disable(webhook);
  await change(webhook);
  await run();
  expect([await takeMail(), await Promise.all(others.map(rowsOf))]).toEqual([[], [[]]]);
  expect(await notificationsAbout(webhook.id)).toEqual([]);
});

const live = { enabled: true, mode: "live" as const };
test.each<[string, WebhookPatch[], string]>([
  ["is switched to shadow mode", [{ mode: "shadow" }], "shadow"],
  ["is switched to shadow mode, and disabled", [{ mode: "shadow" }, { enabled: false }], "manual"],
  ["is disabled, and enabled in shadow mode", [{ enabled: false }, { enabled: true, mode: "shadow" }], "shadow"],
  ["is in shadow mode, disabled and enabled", [{ mode: "shadow" }, { enabled: false }, { enabled: true }], "shadow"],
  ["is in shadow mode, and live again", [{ mode: "shadow" }, { mode: "live" }], "shadow"],
  ["is disabled in shadow mode, and live again", [{ mode: "shadow" }, { enabled: false }, live], "shadow"],
])("a webhook that %s is announced with the reason that applies", async (_, patches, reason) => {
  const { webhook, others } = await givenProject(both);
  const { project_id, id } = webhook;
  for (const patch of patches) await webhooks.update(project_id, id, patch, new Date().toISOString());
  await run();
  const mail = await takeMail();
  const events = (await Promise.all(others.map(rowsOf))).flat().map(({ body }) => JSON.parse(body).data.reason);
  expect(mail.map(({ message }) => message.data)).toMatchObject(reason ? [{ webhook_id: id, reason }] : []);
  expect(events).toEqual(reason ? [reason] : []);
});

test("a webhook that is disabled and enabled for 40 s is announced at once, and after ten minutes if it is disabled then", async () => {
  const clock = fakeDate();
  const [endsDisabled, endsEnabled] = [await givenProject(both), await givenProject(both)];
  const enable = ({ project_id, id }: Webhook, enabled: boolean) =>
    webhooks.update(project_id, id, { enabled }, new Date().toISOString());
  const hosts = async () =>
    (await takeMail()).map(({ message }) => ("webhook_id" in message.data ? message.data.webhook_id : ""));
  for (const { webhook } of [endsDisabled, endsEnabled]) await enable(webhook, false);
  await run();
  expect((await hosts()).sort()).toEqual([endsDisabled.webhook.id, endsEnabled.webhook.id].sort());
  for (let count = 0; count < 20; count++) {
    clock.advance(2);
    for (const { webhook } of [endsDisabled, endsEnabled]) await enable(webhook, count % 2 === 0);
    if (count % 7 === 0) await run();
  }
  await enable(endsEnabled.webhook, true);
  await run();
  expect(await hosts()).toEqual([]);
  expect(await notificationsAbout(endsDisabled.webhook.id)).toHaveLength(1);
  clock.advance(600);
  await run();
  expect(await hosts()).toEqual([endsDisabled.webhook.id]);
  const events = await Promise.all([...endsDisabled.others, ...endsEnabled.others].map(rowsOf));
  expect(events.map((rows) => rows.length)).toEqual([2, 1]);
});

test("a webhook is not notified about itself, and not in another project", async () => {
  const { webhook } = await givenProject();
  const { webhook: foreign } = await givenWebhook({ events: both });
  await disable(webhook);
  await run();
  expect([await rowsOf(webhook), await rowsOf(foreign)]).toEqual([[], []]);
  expect(await takeMail()).toHaveLength(1);
});

test.each([
  ["disabled", { disabled_at: "2026-01-01T00:00:00.000Z" }, "held"],
  ["of a suspended project", { suspended_at: "2026-01-01T00:00:00.000Z" }, "held"],
  ["failing", { failing_since: "2026-01-01T00:00:00.000Z" }, "pending"],
])("a notification for a webhook that is %s is stored as its deliveries are", async (_, state, status) => {
  const { webhook, others } = await givenProject(both);
  const [other] = others as [Webhook];
  await changeWebhook(other, state);
  await disable(webhook);
  await run();
  expect(await rowsOf(other)).toMatchObject([{ status }]);
});

describe("after a crash", () => {
  test.each<[string, () => void]>([
    ["the rows of the deliveries are written", () => interceptSns(() => Promise.reject(new Error("killed")))],
    ["the message is published", () => failDynamo((call) => isCall(call, "DeleteItem", "notifications"))],
  ])("when %s, the next run makes the same deliveries and sends the same id", async (_, crash) => {
    const clock = fakeDate();
    const { webhook, others } = await givenProject(both);
    const [other] = others as [Webhook];
    await disable(webhook);
    crash();
    await run();
    const before = await rowsOf(other);
    expect(await notificationsAbout(webhook.id)).toHaveLength(1);
    restoreAws();
    clock.advance(60);
    await run();
    expect(before).toHaveLength(1);
    expect(await rowsOf(other)).toEqual(before);
    const ids = new Set((await takeMail()).map(({ message }) => message.id));
    expect(ids.size).toBe(1);
    expect(await notificationsAbout(webhook.id)).toEqual([]);
  });

  test("runs at the same time make one delivery", async () => {
    const { webhook, others } = await givenProject(both);
    await disable(webhook);
    await Promise.all([run(), run(), run()]);
    expect(await rowsOf(others[0] as Webhook)).toHaveLength(1);
    expect(await notificationsAbout(webhook.id)).toEqual([]);
  });
});

/** Collects the messages of the errors that are logged. */
function watchErrors(): string[] {
  const errors: string[] = [];
  jest.spyOn(logSink, "write").mockImplementation((level, line) => {
    if (level === "error") errors.push(String(line.message));
  });
  return errors;
}

test.each<[string, string]>([
  ["published", "webhooks"],
  ["read", "notifications"],
])("a notification that cannot be %s does not keep others back", async (_, table) => {
  const [broken, healthy] = [await givenProject(both), await givenProject(both)];
  for (const { webhook } of [broken, healthy]) await disable(webhook);
  failDynamo((call) => isCall(call, "Query", table) && JSON.stringify(call.input).includes(broken.webhook.project_id));
  const errors = watchErrors();
  await run();
  expect(errors).toEqual(["notification failed"]);
  expect(await rowsOf(healthy.others[0] as Webhook)).toHaveLength(1);
  expect(await notificationsAbout(broken.webhook.id)).toHaveLength(1);
});

test("a notification that fails is retried when its time has come, and given up after 14 failures", async () => {
  const clock = fakeDate();
  const errors = watchErrors();
  const { webhook } = await givenProject(both);
  await disable(webhook);
  interceptSns(() => Promise.reject(new Error("down")));
  for (let failures = 1; failures < 14; failures++) {
    await run();
    await run();
    const [row] = await notificationsAbout(webhook.id);
    expect([row?.failures, errors.length]).toEqual([failures, failures]);
    clock.advance((Date.parse(row?.retry_at ?? "") - Date.now()) / 1000);
  }
  await run();
  expect(errors.slice(-2)).toEqual(["notification failed", "notification given up"]);
  expect(await notificationsAbout(webhook.id)).toEqual([]);
});

test("no notification is begun when 10 s or less are left", async () => {
  const { webhook } = await givenProject(both);
  await disable(webhook);
  await run({ getRemainingTimeInMillis: () => 10_000 });
  expect(await notificationsAbout(webhook.id)).toHaveLength(1);
  await run({ getRemainingTimeInMillis: () => 10_001 });
  expect(await notificationsAbout(webhook.id)).toEqual([]);
});

describe("clock skew", () => {
  test("a notification of a function whose clock is ahead waits until it is due, and one whose clock is behind does not", async () => {
    const [ahead, behind] = [await givenProject(), await givenProject()];
    const clock = fakeDate();
    clock.advance(120);
    await disable(ahead.webhook);
    clock.advance(-240);
    await disable(behind.webhook);
    jest.useRealTimers();
    await run();
    expect((await takeMail()).map(({ message }) => message.data)).toMatchObject([{ webhook_id: behind.webhook.id }]);
    fakeDate().advance(121);
    await run();
    expect((await takeMail()).map(({ message }) => message.data)).toMatchObject([{ webhook_id: ahead.webhook.id }]);
  });
});

describe("reminders of a key", () => {
  const DAY_SECONDS = 24 * 3600;

  async function givenKey(days: number): Promise<ApiKey> {
    const expires_at = new Date(Date.now() + days * DAY_SECONDS * 1000);
    const input = { name: "ci", expires_at };
    const { apiKey } = createApiKey(`user-${randomUUID()}`, input, new Date(), randomBytes(API_KEY_RANDOM_BYTES));
    await apiKeys.insert(apiKey);
    return apiKey;
  }

  const daysLeft = (mail: Mail[]) =>
    mail.map(({ message }) => message.data).map((data) => "days_left" in data && data.days_left);

  test("are published 30, 7 and 1 days before it expires, with its name of then", async () => {
    const clock = fakeDate();
    const apiKey = await givenKey(31);
    await apiKeys.update(apiKey.user_id, apiKey.id, { name: "new name" });
    const seen: unknown[] = [];
    for (const [days, seconds] of [
      [0, 0],
      [1, 0],
      [22, 0],
      [1, 0],
      [5, 0],
      [1, 1],
      [1, 0],
    ] as const) {
      clock.advance(days * DAY_SECONDS + seconds);
      await run();
      seen.push(daysLeft(await takeMail()));
    }
    expect(seen).toEqual([[], [30], [], [7], [], [1], []]);
    expect(await notificationsAbout(apiKey.id)).toEqual([]);
  });

  test("are one row, which moves forward when it is published and is deleted with the key", async () => {
    const clock = fakeDate();
    const [kept, deleted, moved] = [await givenKey(31), await givenKey(31), await givenKey(31)];
    const daysOf = async (key: ApiKey) => {
      const rows = (await notificationsAbout(key.id)).filter(({ type }) => type === "api_key.expiring");
      return rows.map(({ due_at }) => (Date.parse(key.expires_at ?? "") - Date.parse(due_at)) / DAY_SECONDS / 1000);
    };
    expect([await daysOf(kept), await daysOf(deleted), await daysOf(moved)]).toEqual([[30], [30], [30]]);
    await apiKeys.remove(deleted.user_id, deleted.id);
    expect(await daysOf(deleted)).toEqual([]);
    clock.advance(DAY_SECONDS);
    await run();
    expect([await daysOf(kept), await daysOf(moved)]).toEqual([[7], [7]]);
    await apiKeys.remove(moved.user_id, moved.id);
    expect(await daysOf(moved)).toEqual([]);
  });

  test("that are given up are followed by the next one", async () => {
    const clock = fakeDate();
    const apiKey = await givenKey(31);
    const [row] = await notificationsAbout(apiKey.id);
    if (row) await postpone({ ...row, failures: 13 });
    interceptSns(() => Promise.reject(new Error("down")));
    clock.advance(DAY_SECONDS);
    await run();
    expect(await notificationsAbout(apiKey.id)).toMatchObject([{ data: { days_left: 7 } }]);
  });

  test("that are late replace those that are later still", async () => {
    const clock = fakeDate();
    const apiKey = await givenKey(31);
    clock.advance(25 * DAY_SECONDS);
    await run();
    expect(await notificationsAbout(apiKey.id)).toMatchObject([{ data: { days_left: 1 } }]);
  });

  test("that another run has published meanwhile are not written again", async () => {
    const clock = fakeDate();
    const apiKey = await givenKey(8);
    clock.advance(DAY_SECONDS);
    const [row] = await notificationsAbout(apiKey.id);
    interceptSns(async (_call, send) => {
      if (row) await remove(row);
      return send();
    });
    await run();
    expect(await notificationsAbout(apiKey.id)).toEqual([]);
  });

  test("name the key, and contain no secret", async () => {
    const clock = fakeDate();
    const apiKey = await givenKey(2);
    clock.advance(DAY_SECONDS);
    await run();
    const [mail] = await takeMail();
    const { id, user_id, name, key_prefix, expires_at } = apiKey;
    expect(mail).toMatchObject({ subject: "api_key.expiring", attributes: { type: "api_key.expiring" } });
    expect(mail?.message).toEqual({
      id: expect.any(String),
      type: "api_key.expiring",
      project_id: null,
      timestamp: new Date().toISOString(),
      data: { api_key_id: id, user_id, name, key_prefix, expires_at, days_left: 1 },
    });
  });

  test("are dropped when the key is deleted before, or has expired", async () => {
    const clock = fakeDate();
    const [deleted, expired] = [await givenKey(2), await givenKey(2)];
    await apiKeys.remove(deleted.user_id, deleted.id);
    await run();
    await takeMail();
    clock.advance(2 * DAY_SECONDS);
    await run();
    expect(await takeMail()).toEqual([]);
    expect([...(await notificationsAbout(deleted.id)), ...(await notificationsAbout(expired.id))]).toEqual([]);
  });
});

test("every run emits by how much the longest overdue notification is late", async () => {
  const lags: unknown[] = [];
  const write = logSink.write;
  logSink.write = (_level, line) => void (line.message === "notifications" && lags.push(line.NotificationLag));
  await run();
  const { webhook } = await givenProject();
  await disable(webhook);
  const clock = fakeDate();
  clock.advance(60);
  await run();
  failDynamo((call) => isCall(call, "Query", "notifications"));
  await expect(run()).rejects.toThrow();
  logSink.write = write;
  expect(lags).toEqual([0, expect.closeTo(60, 0)]);
});

test("the pipeline cannot send an event about a webhook", async () => {
  const { others } = await givenProject(both);
  const [other] = others as [Webhook];
  const batch = pipelineBatch(eventOf(other.project_id, { event: "webhook.disabled" }));
  expect(await fanOut(batch)).toEqual({ batchItemFailures: [] });
  expect(await takeMessages("events", "dead letters")).toMatchObject([
    { reason: expect.stringMatching(/^event must be/) },
  ]);
  expect(await rowsOf(other)).toEqual([]);
});

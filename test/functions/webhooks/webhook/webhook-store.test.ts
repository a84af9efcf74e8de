import { createHash, randomBytes, randomUUID } from "node:crypto";
import { jest } from "@jest/globals";
import { plannedFailingTime } from "../../../../functions/foundation/records/notification.ts";
import {
  claimProbe,
  clearFailing,
  disable,
  markFailing,
  notifyFailing,
} from "../../../../functions/webhooks/webhook/receiver-state-store.ts";
import {
  createWebhook,
  WEBHOOK_RANDOM_BYTES,
  type Webhook,
  type WebhookPatch,
} from "../../../../functions/webhooks/webhook/webhook.ts";
import { find, get, insert, remove, update } from "../../../../functions/webhooks/webhook/webhook-store.ts";
import { interceptDynamo, loseNextResponse, restoreAws } from "../../../support/aws-calls.ts";
import { changeWebhook } from "../../../support/deliveries.ts";
import { notificationsAbout } from "../../../support/notifications.ts";
import { freshResources } from "../../../support/resources.ts";
import { itemsOf } from "../../../support/stored-items.ts";

/* The writes of the senders: each has a condition, because senders run concurrently with each other and with users. */

beforeAll(freshResources);

const first = "2026-03-01T12:00:00.000Z";
const second = "2026-03-01T12:01:00.000Z";
const otherUrl = "https://example.com/other";

async function givenWebhook() {
  const project = `project-${randomBytes(8).toString("hex")}`;
  const input = { url: "https://example.com/hook", events: ["deploy.failed" as const] };
  const { webhook, secret } = createWebhook(
    input,
    project,
    new Date("2026-01-01T00:00:00.000Z"),
    randomBytes(WEBHOOK_RANDOM_BYTES),
  );
  await insert({ webhook, secret });
  /** Returns the stored webhook without the id of its last change. */
  const stored = async () => {
    const found = await find(webhook.project_id, webhook.id);
    if (!found) return undefined;
    const { change_id, ...rest } = found;
    return rest;
  };
  return { webhook, secret, stored };
}

/** By field of a change: one that sets it, what is then stored and in the audit log, and a change that takes it back. */
const changes = {
  url: {
    set: { url: otherUrl },
    stored: { url: otherUrl },
    audited: { url: { host: "example.com", sha256: createHash("sha256").update(otherUrl).digest("hex") } },
    undo: { url: "https://example.com/hook" },
  },
  name: { set: { name: "Chat" }, stored: { name: "Chat" }, audited: { name: "Chat" }, undo: { name: null } },
  events: {
    set: { events: ["deploy.started"] },
    stored: { events: ["deploy.started"], subscribed_at: first },
    audited: { events: ["deploy.started"] },
    undo: { events: ["deploy.failed"] },
  },
  filter: {
    set: { filter: { branch: ["main"] } },
    stored: { filter: { branch: ["main"] }, subscribed_at: first },
    audited: { filter: { branch: ["main"] } },
    undo: { filter: null },
  },
  enabled: {
    set: { enabled: false },
    stored: { disabled_at: first, disabled_reason: "manual", disabled_notified_at: expect.any(String) },
    audited: { enabled: false },
    undo: { enabled: true },
  },
  mode: {
    set: { mode: "shadow" },
    stored: { mode: "shadow", disabled_notified_at: expect.any(String) },
    audited: { mode: "shadow" },
    undo: { mode: "live" },
  },
  format: {
    set: { format: "slack" },
    stored: { format: "slack" },
    audited: { format: "slack" },
    undo: { format: "standard" },
  },
  headers: {
    set: { headers: [["Authorization", "Bearer value-of-header"]] },
    stored: { header_names: ["Authorization"] },
    audited: { header_names: ["Authorization"] },
    undo: { headers: null },
  },
  signatures: {
    set: { signatures: ["hmac", "http"] },
    stored: { signatures: ["hmac", "http"] },
    audited: { signatures: ["hmac", "http"] },
    undo: { signatures: ["hmac"] },
  },
  delivery: {
    set: { delivery: "latest" },
    stored: { delivery: "latest" },
    audited: { delivery: "latest" },
    undo: { delivery: "every" },
  },
  settle_seconds: {
    set: { delivery: "latest", settle_seconds: 10 },
    stored: { delivery: "latest", settle_seconds: 10 },
    audited: { delivery: "latest", settle_seconds: 10 },
    undo: { delivery: "every" },
  },
} satisfies Record<keyof WebhookPatch, { set: WebhookPatch; stored: object; audited: object; undo: WebhookPatch }>;

test.each(Object.entries(changes))("a change of %s alone is stored, and logged as it was stored", async (_, change) => {
  const { webhook, stored } = await givenWebhook();
  await update(webhook.project_id, webhook.id, change.set, first);
  expect(await stored()).toEqual({ ...webhook, ...change.stored });
  await update(webhook.project_id, webhook.id, change.undo, second);
  const { disabled_notified_at, subscribed_at, ...rest } = (await stored()) ?? {};
  expect(rest).toEqual(webhook);
  const logged = await itemsOf("auditEvents", { scope: `project:${webhook.project_id}` });
  expect(logged.filter(({ action }) => action === "webhook.updated").map(({ details }) => details)).toContainEqual(
    change.audited,
  );
});

test("a change while other requests keep changing the webhook is the error of its users, 429, and changes nothing", async () => {
  const { webhook, stored } = await givenWebhook();
  let changes = 0;
  const random = jest.spyOn(Math, "random");
  interceptDynamo(async ({ command }, send) => {
    if (command === "TransactWriteItemsCommand") await changeWebhook(webhook, { url: `${otherUrl}/${changes++}` });
    return send();
  });
  const change = update(webhook.project_id, webhook.id, { events: ["deploy.started"] }, first);
  await expect(change).rejects.toMatchObject({ status: 429, code: "rate_limited", headers: { "Retry-After": "1" } });
  expect(changes).toBe(10);
  // A random pause after each try.
  expect(random.mock.calls.length).toBeGreaterThanOrEqual(10);
  random.mockRestore();
  expect(await stored()).toMatchObject({ events: webhook.events });
});

test.each([
  [{ enabled: false }, { enabled: true }, { disabled_at: second, disabled_reason: "manual" }],
  [{ mode: "shadow" }, { mode: "live" }, { mode: "shadow" }],
] as const)(
  "a change to %j while another request makes it %j is made again, with a notification",
  async (stop, go, end) => {
    const { webhook, stored } = await givenWebhook();
    await update(webhook.project_id, webhook.id, stop, first);
    let isUndone = false;
    interceptDynamo(async ({ command }, send) => {
      if (command === "TransactWriteItemsCommand" && !isUndone) {
        isUndone = true;
        await update(webhook.project_id, webhook.id, go, second);
      }
      return send();
    });
    await update(webhook.project_id, webhook.id, stop, second);
    restoreAws();
    expect(await stored()).toMatchObject(end);
    expect(await notificationsAbout(webhook.id)).toHaveLength(2);
  },
);

test("claimProbe succeeds for one of several senders, for the first and for later probes", async () => {
  const { webhook, stored } = await givenWebhook();
  for (const next of [first, second]) {
    const seen = (await stored()) ?? webhook;
    const claims = await Promise.all(Array.from({ length: 5 }, () => claimProbe(seen, next, "d")));
    expect(claims.filter((isClaimed) => isClaimed)).toHaveLength(1);
    expect(await stored()).toEqual({ ...webhook, probe_at: next, probed_id: "d" });
  }
});

describe("disable", () => {
  test.each(["gone", "failing", "manual"] as const)("sets the time and the reason %s, once", async (reason) => {
    const { webhook, stored } = await givenWebhook();
    expect(await disable(webhook, reason, first)).toBe(true);
    expect(await disable(webhook, reason === "gone" ? "failing" : "gone", second)).toBe(false);
    expect(await stored()).toEqual({
      ...webhook,
      disabled_at: first,
      disabled_reason: reason,
      disabled_notified_at: first,
    });
  });

  test("ignores a reason that belongs to a URL that has been replaced", async () => {
    const { webhook, stored } = await givenWebhook();
    await changeWebhook(webhook, { url: otherUrl });
    expect(await disable(webhook, "gone", first)).toBe(false);
    expect(await stored()).toEqual({ ...webhook, url: otherUrl });
  });

  test("with the reason failing ignores a webhook that has had a success, or has been failing since another time", async () => {
    const { webhook, stored } = await givenWebhook();
    const failing = { ...webhook, failing_since: first };
    expect(await disable(failing, "failing", second)).toBe(false);
    await changeWebhook(webhook, { failing_since: second });
    expect(await disable(failing, "failing", second)).toBe(false);
    expect(await stored()).toEqual({ ...webhook, failing_since: second });
    await changeWebhook(webhook, { failing_since: first });
    expect(await disable(failing, "failing", second)).toBe(true);
  });
});

test("no write recreates a deleted webhook", async () => {
  const { webhook, stored } = await givenWebhook();
  await remove(webhook.project_id, webhook.id);
  const failing = { ...webhook, failing_since: first };
  expect(await markFailing(webhook, first)).toBe(false);
  await clearFailing(failing);
  expect(await claimProbe(webhook, second, "d")).toBe(false);
  expect(await disable(webhook, "gone", second)).toBe(false);
  expect(await stored()).toBeUndefined();
});

test("a write that conflicts with a transaction is repeated", async () => {
  const { webhook, stored } = await givenWebhook();
  let conflicts = 0;
  interceptDynamo(({ command }, send) => {
    if (command !== "UpdateItemCommand" || conflicts === 3) return send();
    conflicts += 1;
    throw Object.assign(new Error("Transaction is ongoing for the item"), { name: "TransactionConflictException" });
  });
  expect(await markFailing(webhook, first)).toBe(true);
  expect(conflicts).toBe(3);
  expect(await stored()).toMatchObject({ failing_since: first });
});

/* The other writes are in calls.test.ts. */
describe("when the response is lost and the SDK sends the write again,", () => {
  test.each<[string, Partial<Webhook>, (webhook: Webhook) => Promise<boolean>, Partial<Webhook>]>([
    [
      "claimProbe, for a later probe,",
      { probe_at: first },
      (row) => claimProbe(row, second, "d"),
      { probe_at: second, probed_id: "d" },
    ],
    [
      "disable with the reason failing",
      { failing_since: first },
      (webhook) => disable(webhook, "failing", second),
      { failing_since: first, disabled_at: second, disabled_reason: "failing", disabled_notified_at: second },
    ],
  ])("%s returns true", async (title, before, write, after) => {
    const { webhook, stored } = await givenWebhook();
    if (Object.keys(before).length > 0) await changeWebhook(webhook, before);
    const sent = loseNextResponse(title.startsWith("disable") ? "TransactWriteItemsCommand" : "UpdateItemCommand");
    expect(await write({ ...webhook, ...before })).toBe(true);
    expect(sent.requests).toBe(2);
    expect(await stored()).toEqual({ ...webhook, ...after });
  });

  test("claimProbe returns false for a sender whose claim of the same time was too late", async () => {
    const { webhook } = await givenWebhook();
    expect(await claimProbe(webhook, first, "d")).toBe(true);
    const sent = loseNextResponse("UpdateItemCommand");
    // The engine rejects both requests. The first rejection is lost.
    expect(await claimProbe(webhook, first, "d")).toBe(false);
    expect(sent.requests).toBe(2);
  });
});

describe("notifications", () => {
  const failure = { status_code: 500, error_code: "http_status" } as const;
  const typesAbout = async ({ id }: Webhook) => (await notificationsAbout(id)).map(({ type }) => type);

  test("a failed write writes none", async () => {
    const { webhook } = await givenWebhook();
    await changeWebhook(webhook, { url: otherUrl });
    await disable(webhook, "gone", first);
    await notifyFailing({ ...webhook, failing_since: first }, failure, second);
    expect(await typesAbout(webhook)).toEqual([]);
  });

  test("users who disable a webhook at the same time, one with another URL too, write one", async () => {
    const { webhook, stored } = await givenWebhook();
    const patches = [{ enabled: false }, { enabled: false, url: otherUrl }, { enabled: false }, { enabled: false }];
    await Promise.all(patches.map((patch) => update(webhook.project_id, webhook.id, patch, first)));
    expect(await stored()).toMatchObject({ disabled_at: first, url: otherUrl });
    expect(await notificationsAbout(webhook.id)).toMatchObject([
      { type: "webhook.disabled", data: { reason: "manual", status_code: null, error_code: null } },
    ]);
  });

  test("disabling writes one, enabling and other changes of a disabled webhook write none", async () => {
    const { webhook, stored } = await givenWebhook();
    const change = (patch: Parameters<typeof update>[2]) => update(webhook.project_id, webhook.id, patch, first);
    await change({ events: ["deploy.started"] });
    await change({ enabled: true });
    expect(await typesAbout(webhook)).toEqual([]);
    await change({ enabled: false });
    await change({ enabled: false });
    await change({ enabled: false, url: otherUrl });
    expect(await typesAbout(webhook)).toHaveLength(1);
    expect(await stored()).toMatchObject({ disabled_at: first, url: otherUrl });
    await change({ enabled: true });
    expect(await typesAbout(webhook)).toHaveLength(1);
  });

  test("a switch to shadow mode writes one, as disabling does, and once", async () => {
    const { webhook } = await givenWebhook();
    const change = (patch: Parameters<typeof update>[2], at = first) =>
      update(webhook.project_id, webhook.id, patch, at);
    await change({ mode: "live" });
    expect(await typesAbout(webhook)).toEqual([]);
    await Promise.all([1, 2, 3].map(() => change({ mode: "shadow" })));
    await change({ mode: "shadow", url: otherUrl });
    expect(await notificationsAbout(webhook.id)).toMatchObject([
      { type: "webhook.disabled", data: { reason: "shadow" } },
    ]);
    await change({ mode: "live" });
    expect(await typesAbout(webhook)).toHaveLength(1);
    await change({ mode: "shadow" }, "2026-03-01T12:09:59.999Z");
    await change({ enabled: false }, "2026-03-01T12:09:59.999Z");
    await change({ enabled: true, mode: "live" }, "2026-03-01T12:09:59.999Z");
    await change({ mode: "shadow" }, "2026-03-01T12:09:59.999Z");
    const dues = (await notificationsAbout(webhook.id)).map(({ due_at }) => due_at);
    expect(dues).toEqual([first, "2026-03-01T12:10:00.000Z"]);
  });

  test("a webhook that is created in shadow mode, enabled or not, writes none", async () => {
    const { webhook } = await givenWebhook();
    const created = { ...webhook, id: randomUUID(), mode: "shadow" as const, disabled_at: first };
    await insert({ webhook: created, secret: "whsec_1" });
    await update(created.project_id, created.id, { enabled: true }, first);
    await update(created.project_id, created.id, { mode: "shadow", url: otherUrl }, first);
    await update(created.project_id, created.id, { mode: "live" }, first);
    expect(await typesAbout(created)).toEqual([]);
  });

  test("disabling again within ten minutes writes one that is due when they are over, with the latest reason", async () => {
    const { webhook, stored } = await givenWebhook();
    const { project_id, id } = webhook;
    const disableAt = (at: string) => update(project_id, id, { enabled: false }, at);
    const enable = () => update(project_id, id, { enabled: true }, first);
    const dues = async () =>
      (await notificationsAbout(id)).map(({ due_at, data }) => [due_at, "reason" in data && data.reason]);
    await disableAt(first);
    await enable();
    await disableAt("2026-03-01T12:09:59.999Z");
    const [now, planned] = [first, "2026-03-01T12:10:00.000Z"];
    expect(await dues()).toEqual([
      [now, "manual"],
      [planned, "manual"],
    ]);
    await enable();
    await disable(await get(project_id, id), "gone", "2026-03-01T12:09:59.999Z");
    expect(await dues()).toEqual([
      [now, "manual"],
      [planned, "gone"],
    ]);
    expect(await stored()).toMatchObject({ disabled_notified_at: planned });
    await enable();
    await disableAt("2026-03-01T12:20:00.000Z");
    expect(await dues()).toHaveLength(3);
  });

  test("after a webhook was disabled and enabled, a user who has read it before plans the next one, and a sender leaves it enabled", async () => {
    const { webhook, stored } = await givenWebhook();
    const { project_id, id } = webhook;
    let hasToggled = false;
    interceptDynamo(async ({ command }, send) => {
      if (command === "TransactWriteItemsCommand" && !hasToggled) {
        hasToggled = true;
        for (const enabled of [false, true]) await update(project_id, id, { enabled }, first);
      }
      return send();
    });
    await update(project_id, id, { enabled: false }, second);
    await update(project_id, id, { enabled: true }, second);
    expect(await disable(webhook, "gone", second)).toBe(false);
    expect(await stored()).not.toHaveProperty("disabled_at");
    const dues = (await notificationsAbout(id)).map(({ due_at }) => due_at);
    expect(dues).toEqual([first, "2026-03-01T12:10:00.000Z"]);
  });

  test("a webhook that has failed for long has one until its next success, from whichever sender", async () => {
    const { webhook } = await givenWebhook();
    await markFailing(webhook, first);
    const failing = { ...webhook, failing_since: first };
    const noticed = await Promise.all(Array.from({ length: 6 }, () => notifyFailing(failing, failure, second)));
    expect(noticed.filter((isFirst) => isFirst)).toHaveLength(1);
    expect(await notificationsAbout(webhook.id)).toMatchObject([
      { type: "webhook.failing", data: { host: "example.com", failing_since: first, ...failure } },
    ]);
    await clearFailing(failing);
    expect(await notifyFailing(failing, failure, second)).toBe(false);
    await markFailing(webhook, second);
    expect(await notifyFailing({ ...webhook, failing_since: second }, failure, "2026-03-01T12:02:00.000Z")).toBe(true);
    expect(await typesAbout(webhook)).toHaveLength(2);
  });

  test("a webhook that fails and recovers again and again has one that is planned", async () => {
    const { webhook } = await givenWebhook();
    for (const failing_since of [first, second, "2026-03-01T12:02:00.000Z"]) {
      await markFailing(webhook, failing_since);
      const failing = { ...webhook, failing_since };
      expect(await notifyFailing(failing, failure, failing_since, plannedFailingTime(failing_since))).toBe(true);
      await clearFailing(failing);
    }
    expect(await notificationsAbout(webhook.id)).toMatchObject([
      { due_at: "2026-03-01T12:30:00.000Z", data: { failing_since: first } },
      { due_at: "2026-03-01T12:35:00.000Z", data: { failing_since: "2026-03-01T12:02:00.000Z" } },
    ]);
  });

  test("those that are planned are deleted with their webhook", async () => {
    const [{ webhook }, { webhook: other }] = [await givenWebhook(), await givenWebhook()];
    for (const each of [webhook, other]) {
      await markFailing(each, first);
      await notifyFailing({ ...each, failing_since: first }, failure, first, plannedFailingTime(first));
      await changeWebhook(each, { disabled_notified_at: first });
      await disable({ ...each, disabled_notified_at: first }, "gone", second);
    }
    expect((await notificationsAbout(webhook.id)).map(({ type, due_at }) => [type, due_at])).toEqual([
      ["webhook.disabled", "2026-03-01T12:10:00.000Z"],
      ["webhook.failing", "2026-03-01T12:30:00.000Z"],
    ]);
    await remove(webhook.project_id, webhook.id);
    expect(await typesAbout(webhook)).toEqual([]);
    expect(await typesAbout(other)).toHaveLength(2);
  });

  test("a disabled webhook is not reported as failing", async () => {
    const { webhook } = await givenWebhook();
    await changeWebhook(webhook, { failing_since: first, disabled_at: second });
    expect(await notifyFailing({ ...webhook, failing_since: first }, failure, second)).toBe(false);
  });
});

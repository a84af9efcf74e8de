import { randomUUID } from "node:crypto";
import { handler } from "../../../../functions/deliveries/intake/publish-notifications.ts";
import { addSeconds } from "../../../../functions/foundation/platform/time.ts";
import { createNotification, type Notification } from "../../../../functions/foundation/records/notification.ts";
import { findDueOwners } from "../../../../functions/foundation/records/notification-store.ts";
import * as receiverState from "../../../../functions/webhooks/webhook/receiver-state-store.ts";
import type { Webhook } from "../../../../functions/webhooks/webhook/webhook.ts";
import * as webhooks from "../../../../functions/webhooks/webhook/webhook-store.ts";
import { interceptDynamo, interceptSns, restoreAws } from "../../../support/aws-calls.ts";
import { changeWebhook, givenWebhook, prepareDeliveries } from "../../../support/deliveries.ts";
import { fakeDate } from "../../../support/fake-date.ts";
import { notifications, notificationsAbout } from "../../../support/notifications.ts";
import { putAll } from "../../../support/put-all.ts";

/* One owner with very many notifications. */

beforeEach(prepareDeliveries);

const run = () => handler({}, { getRemainingTimeInMillis: () => 50_000 });
const disable = (webhook: Webhook) => receiverState.disable(webhook, "gone", new Date().toISOString());

const revocation = (api_key_id: string, user_id: string) => ({
  api_key_id,
  user_id,
  name: "ci",
  key_prefix: "svc_12345678",
  reason: "deleted" as const,
  secret: "current" as const,
});

const revoked = (keyId: string, userId: string, dueAt: Date): Notification =>
  createNotification({ type: "api_key.revoked", data: revocation(keyId, userId) }, dueAt);

const givenRows = (rows: Notification[]) => putAll("notifications", rows);

/** Returns the ids of new users, `perShard` of each shard. */
function usersOf(shards: number[], perShard: number): string[] {
  return shards.flatMap((shard) => {
    const found: string[] = [];
    while (found.length < perShard) {
      const user = `user-${randomUUID()}`;
      if (revoked("k", user, new Date()).due_shard === shard) found.push(user);
    }
    return found;
  });
}

/** Counts the notifications that are left, by owner. */
async function leftOf(owners: string[]): Promise<Record<string, number>> {
  const left: Record<string, number> = {};
  for (const { owner } of await notifications()) if (owners.includes(owner)) left[owner] = (left[owner] ?? 0) + 1;
  return left;
}

test("a run publishes 100 notifications of one owner, and those of others of its shard beside them", async () => {
  const [flooding = "", other = ""] = usersOf([3], 2);
  const start = Date.now() - 600_000;
  await givenRows(Array.from({ length: 130 }, (_, index) => revoked(`k${index}`, flooding, new Date(start + index))));
  await givenRows([revoked("k", other, new Date())]);
  await run();
  expect(await leftOf([flooding, other])).toEqual({ [flooding]: 30 });
});

test("four notifications of one owner that fail in every run do not hold up its later ones", async () => {
  const clock = fakeDate();
  const [broken = "", other = ""] = usersOf([3], 2);
  const start = Date.now() - 600_000;
  await givenRows(Array.from({ length: 4 }, (_, index) => revoked(`broken-${index}`, broken, new Date(start + index))));
  await givenRows([revoked("k", broken, new Date(start + 4)), revoked("k", other, new Date(start + 4))]);
  interceptSns(({ input }, send) => {
    return JSON.stringify(input).includes("broken-") ? Promise.reject(new Error("down")) : send();
  });
  await run();
  expect(await leftOf([broken, other])).toEqual({ [broken]: 5 });
  clock.advance(60);
  await run();
  expect(await leftOf([broken, other])).toEqual({ [broken]: 4 });
});

test("owners are found on several pages, and the longest overdue notification is on the first", async () => {
  const [one = "", two = ""] = usersOf([3], 2);
  const dueAt = new Date(Date.now() - 180_000);
  await givenRows([revoked("k", one, dueAt), revoked("k", two, new Date())]);
  interceptDynamo(({ input }, send) => send({ ...input, Limit: 1 }));
  expect(await findDueOwners(3, new Date(), 10)).toEqual({ owners: [one, two], longestDueAt: dueAt.toISOString() });
});

test("a run that has no time left publishes no more, and the next run the rest", async () => {
  const [owner = ""] = usersOf([3], 1);
  await givenRows(
    Array.from({ length: 5 }, (_, index) => revoked(`k${index}`, owner, new Date(Date.now() - 9 + index))),
  );
  let published = 0;
  interceptSns((_call, send) => {
    published += 1;
    return send();
  });
  await handler({}, { getRemainingTimeInMillis: () => (published < 2 ? 50_000 : 0) });
  expect(await leftOf([owner])).toEqual({ [owner]: 3 });
  await run();
  expect(await leftOf([owner])).toEqual({});
});

/** Stores notifications of a project that are due: of keys that were deleted, or that expire. */
const givenDue = (project_id: string, count: number, type: "api_key.revoked" | "api_key.expiring") =>
  givenRows(
    Array.from({ length: count }, (_, index) => {
      const dueAt = new Date(Date.now() - 60_000 + index);
      const [key, user] = [`k${index}`, "service-account:1"];
      if (type === "api_key.revoked")
        return createNotification({ type, project_id, data: revocation(key, user) }, dueAt);
      const data = { api_key_id: key, user_id: user, expires_at: "2099-01-01T00:00:00.000Z", days_left: 30 };
      return createNotification({ type, project_id, data }, dueAt);
    }),
  );

test("500 reminders of keys that are due hold up no other notification of their project", async () => {
  const { webhook } = await givenWebhook();
  await givenDue(webhook.project_id, 500, "api_key.expiring");
  await changeWebhook(webhook, { created_at: "2026-01-01T00:00:00.000Z" });
  await disable(await webhooks.get(webhook.project_id, webhook.id));
  expect(await notificationsAbout(webhook.id)).toHaveLength(1);
  await run();
  expect(await notificationsAbout(webhook.id)).toEqual([]);
});

test("the owners of a failing webhook are notified at a later failure if 500 of their notifications wait", async () => {
  const { webhook } = await givenWebhook();
  const { project_id, id } = webhook;
  await givenDue(project_id, 500, "api_key.revoked");
  const failing_since = addSeconds(new Date(), -3600);
  await changeWebhook(webhook, { failing_since });
  const failing = { ...webhook, failing_since };
  const notify = () =>
    receiverState.notifyFailing(failing, { status_code: 500, error_code: "http_status" }, new Date().toISOString());
  expect(await notify()).toBe(false);
  expect(await webhooks.get(project_id, id)).not.toHaveProperty("failing_notified_at");
  await run();
  expect(await notify()).toBe(true);
  expect(await notificationsAbout(id)).toHaveLength(1);
});

test("an owner with 500 notifications that wait gets no more, and the change is made", async () => {
  const { webhook } = await givenWebhook();
  const { project_id } = webhook;
  await givenDue(project_id, 499, "api_key.revoked");
  const { webhook: second } = await givenWebhook({ projectId: project_id });
  expect([await disable(webhook), await disable(second)]).toEqual([true, true]);
  expect(await notificationsAbout(webhook.id)).toHaveLength(1);
  expect(await notificationsAbout(second.id)).toEqual([]);
  expect((await webhooks.get(project_id, second.id)).disabled_reason).toBe("gone");
  // Concurrent changes may write more, which are not read.
  await givenDue(project_id, 100, "api_key.revoked");
  const { webhook: third } = await givenWebhook({ projectId: project_id });
  const rowsRead: unknown[] = [];
  interceptDynamo(async ({ command }, send) => {
    const output = await send();
    if (command === "QueryCommand") rowsRead.push(output.ScannedCount);
    return output;
  });
  await disable(third);
  expect(rowsRead).toEqual([500]);
});

test("thousands of notifications in two shards keep back none of 200 other owners, and few of their rows are read", async () => {
  const [flooding = "", alsoFlooding = ""] = usersOf([1, 3], 1);
  const victims = usersOf([0, 1, 2, 3], 50);
  // Due at shared moments before all others: in two minutes, each with more rows than a page of the index has.
  const start = Math.floor(Date.now() / 60_000) * 60_000 - 600_000;
  const dueAt = (index: number) => new Date(start + (index % 2) * 60_000 + index);
  const floodOf = (user: string, count: number) =>
    Array.from({ length: count }, (_, index) => revoked(`k${index}`, user, dueAt(index)));
  await givenRows([...floodOf(flooding, 2_100), ...floodOf(alsoFlooding, 200)]);
  await givenRows(victims.map((user, index) => revoked("k", user, new Date(start + 300_000 + index))));
  let rowsRead = 0;
  interceptDynamo(async (_call, send) => {
    const output = await send();
    rowsRead += Array.isArray(output.Items) ? output.Items.length : 0;
    return output;
  });
  await run();
  restoreAws();
  expect(await leftOf([flooding, alsoFlooding, ...victims])).toEqual({ [flooding]: 2_000, [alsoFlooding]: 100 });
  // Of the index a page for each of the two minutes, and the rest once; of an owner what a run publishes, and at most 500 rows.
  expect(rowsRead).toBe(2 * 1_000 + 200 + 200 + 500 + 200 + 200);
});

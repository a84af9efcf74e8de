import {
  afterFailure,
  createNotification,
  disabledNotificationTime,
  dueBound,
  dueOwnerBound,
  failingNotificationTime,
  NOTIFICATION_SHARDS,
  type NotificationInput,
  nextReminder,
  ownerOf,
  plannedFailingTime,
} from "../../../../functions/foundation/records/notification.ts";

const at = new Date("2026-03-01T12:00:00.000Z");
const key = { api_key_id: "key", user_id: "user", expires_at: "2026-04-01T12:00:00.000Z", days_left: 30 };
const reminder: NotificationInput = { type: "api_key.expiring", data: key };

test("the row is in order of its due time, and its time is that of the change", () => {
  const row = createNotification(reminder, at);
  expect(row).toMatchObject({ due: `2026-03-01T12:00:00.000Z#${row.id}`, timestamp: at.toISOString(), data: key });
  expect(row.due < dueBound(at)).toBe(true);
  expect(row.due < dueBound(new Date(at.getTime() - 1))).toBe(false);
});

test("the row is found by the minute in which it is due", () => {
  const row = createNotification(reminder, new Date("2026-03-01T12:00:59.999Z"));
  expect(row).toMatchObject({ owner: "reminders#user", due_owner: "2026-03-01T12:00#reminders#user" });
  expect(row.due_owner < dueOwnerBound(at)).toBe(true);
  expect(row.due_owner < dueOwnerBound(new Date("2026-03-01T11:59:59.999Z"))).toBe(false);
});

test("only a notification of the same type about the same thing, due at the same time, is the same row", () => {
  const disabled: NotificationInput = {
    type: "webhook.disabled",
    project_id: "p",
    data: { webhook_id: "w", host: "h", failing_since: null, status_code: null, error_code: null, reason: "manual" },
  };
  const earlier: NotificationInput = {
    type: "api_key.revoked",
    data: { api_key_id: "key", user_id: "user", name: "ci", key_prefix: "svc_1", reason: "leaked", secret: "earlier" },
  };
  const rows = [
    createNotification(disabled, at),
    createNotification(disabled, new Date(at.getTime() + 1)),
    createNotification({ ...disabled, type: "webhook.failing" }, at),
    createNotification({ ...disabled, data: { ...disabled.data, webhook_id: "v" } }, at),
    createNotification(earlier, at),
    createNotification({ ...earlier, data: { ...earlier.data, key_prefix: "svc_2" } }, at),
  ];
  expect(new Set(rows.map(({ due }) => due)).size).toBe(rows.length);
  const replaced = createNotification({ ...disabled, data: { ...disabled.data, reason: "gone" } }, at);
  expect([replaced.owner, replaced.due]).toEqual([rows[0]?.owner, rows[0]?.due]);
});

test("the rows of one owner are in one shard, those of many owners in all", () => {
  const shardOf = (user_id: string) =>
    createNotification({ type: "api_key.expiring", data: { ...key, user_id } }, at).due_shard;
  expect(shardOf("user-1")).toBe(shardOf("user-1"));
  const shards = new Set(Array.from({ length: 200 }, (_, index) => shardOf(`user-${index}`)));
  expect([...shards].sort()).toEqual(Array.from({ length: NOTIFICATION_SHARDS }, (_, shard) => shard));
});

const revoked: NotificationInput = {
  type: "api_key.revoked",
  data: { api_key_id: "key", user_id: "user", name: null, key_prefix: null, reason: "deleted", secret: "current" },
};
test.each<[string, NotificationInput, string]>([
  ["the key of a person", revoked, "user"],
  ["the key of a service account", { ...revoked, project_id: "project" }, "project"],
  ["a reminder of the key of a person", reminder, "reminders#user"],
  ["a reminder of the key of a service account", { ...reminder, project_id: "project" }, "reminders#project"],
])("the owner of %s", (_, input, owner) => {
  expect(ownerOf(input)).toBe(owner);
});

test("a notification that fails is retried after 30 s, twice as long after each failure, and given up after 14 in 68 hours", () => {
  let row = createNotification(reminder, at);
  const delays: number[] = [];
  for (let now = at, next = afterFailure(row, now); next; next = afterFailure(row, now)) {
    const retryAt = new Date(next.retry_at ?? "");
    delays.push((retryAt.getTime() - now.getTime()) / 1000);
    [row, now] = [next, retryAt];
  }
  expect(delays.slice(0, 4)).toEqual([30, 60, 120, 240]);
  expect(delays).toHaveLength(13);
  expect(Math.round(delays.reduce((sum, delay) => sum + delay, 0) / 3600)).toBe(68);
});

test.each([
  ["2026-03-01T11:30:00.000Z", "2026-03-01T12:00:00.000Z"],
  ["2026-03-01T11:30:00.001Z", "2026-03-01T12:05:00.000Z"],
  ["2026-03-01T11:35:00.000Z", "2026-03-01T12:05:00.000Z"],
])("the notification of a webhook that fails since %s is planned for %s", (since, expected) => {
  expect(plannedFailingTime(since).toISOString()).toBe(expected);
});

test.each([
  [undefined, undefined],
  ["2026-03-02T12:00:00.000Z", undefined],
  ["2026-03-02T12:00:00.001Z", "1: 2026-03-01T12:00:00.001Z"],
  ["2026-03-08T12:00:00.000Z", "1: 2026-03-07T12:00:00.000Z"],
  ["2026-03-09T00:00:00.000Z", "7: 2026-03-02T00:00:00.000Z"],
  ["2026-06-01T00:00:00.000Z", "30: 2026-05-02T00:00:00.000Z"],
])("the next reminder of a key that expires at %s", (expires_at, expected) => {
  const found = nextReminder({ id: "key", user_id: "user", ...(expires_at && { expires_at }) }, at);
  expect(found && `${"days_left" in found.data && found.data.days_left}: ${found.due_at}`).toBe(expected);
});

test.each([
  ["never before, of a webhook of a day ago", "2026-02-28T12:00:00.000Z", undefined, at.toISOString()],
  ["never before, of a new webhook", "2026-03-01T11:59:00.000Z", undefined, "2026-03-01T12:09:00.000Z"],
  ["ten minutes ago", "2026-02-28T12:00:00.000Z", "2026-03-01T11:50:00.000Z", at.toISOString()],
  ["less than ten minutes ago", "2026-02-28T12:00:00.000Z", "2026-03-01T11:50:00.001Z", "2026-03-01T12:00:00.001Z"],
  ["now", "2026-02-28T12:00:00.000Z", at.toISOString(), "2026-03-01T12:10:00.000Z"],
  ["in three minutes", "2026-02-28T12:00:00.000Z", "2026-03-01T12:03:00.000Z", "2026-03-01T12:03:00.000Z"],
])(
  "the owners are notified that a webhook is disabled, with the last notification %s",
  (_, created_at, last, expected) => {
    const webhook = { created_at, ...(last && { disabled_notified_at: last }) };
    expect(disabledNotificationTime(webhook, at).toISOString()).toBe(expected);
  },
);

const halfAnHourAgo = "2026-03-01T11:30:00.000Z";
const planned = "2026-03-01T12:10:00.000Z";
const failing = { failing_since: "2026-03-01T11:40:00.000Z" };
test.each<
  [string, Parameters<typeof failingNotificationTime>[0], next: string | undefined, expected: string | undefined]
>([
  ["is not failing", {}, undefined, undefined],
  ["has failed for 30 minutes", { failing_since: halfAnHourAgo }, "2026-03-01T12:01:00.000Z", at.toISOString()],
  ["has failed for 30 minutes, and no attempt follows", { failing_since: halfAnHourAgo }, undefined, at.toISOString()],
  ["fails, with an attempt before 45 minutes", failing, "2026-03-01T12:25:00.000Z", undefined],
  ["fails, with the next attempt after 45 minutes", failing, "2026-03-01T12:25:00.001Z", planned],
  ["fails, and no attempt follows", failing, undefined, planned],
  [
    "was reported before",
    { failing_since: "2026-03-01T10:00:00.000Z", failing_notified_at: halfAnHourAgo },
    undefined,
    undefined,
  ],
  ["is disabled", { failing_since: "2026-03-01T10:00:00.000Z", disabled_at: halfAnHourAgo }, undefined, undefined],
  [
    "fails by a clock that is ahead",
    { failing_since: "2026-03-01T12:30:00.000Z" },
    "2026-03-01T12:05:00.000Z",
    undefined,
  ],
])("the time at which the owners of a webhook are notified that %s", (_, webhook, next, expected) => {
  expect(failingNotificationTime(webhook, at, next)?.toISOString()).toBe(expected);
});

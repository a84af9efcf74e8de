import {
  createNotification,
  dueBound,
  failingNotificationTime,
  NOTIFICATION_SHARDS,
  type NotificationInput,
  ownerOf,
  remindersOf,
} from "../../../functions/notifications/notification.ts";

const at = new Date("2026-03-01T12:00:00.000Z");
const random = Buffer.alloc(16, 7);
const key = { api_key_id: "key", user_id: "user", expires_at: "2026-04-01T12:00:00.000Z", days_left: 30 };
const reminder: NotificationInput = { type: "api_key.expiring", data: key };

test("the row is in order of its due time, and its time is that of the change", () => {
  const row = createNotification(reminder, at, random);
  expect(row).toMatchObject({ due: `2026-03-01T12:00:00.000Z#${row.id}`, timestamp: at.toISOString(), data: key });
  expect(row.due < dueBound(at)).toBe(true);
  expect(row.due < dueBound(new Date(at.getTime() - 1))).toBe(false);
});

test("the rows of one owner are in one shard, those of many owners in all", () => {
  const shardOf = (user_id: string) =>
    createNotification({ type: "api_key.expiring", data: { ...key, user_id } }, at, random).due_shard;
  expect(shardOf("user-1")).toBe(shardOf("user-1"));
  const shards = new Set(Array.from({ length: 200 }, (_, index) => shardOf(`user-${index}`)));
  expect([...shards].sort()).toEqual(Array.from({ length: NOTIFICATION_SHARDS }, (_, shard) => String(shard)));
});

test.each<[string, NotificationInput, string]>([
  ["the key of a person", reminder, "user"],
  ["the key of a service account", { ...reminder, project_id: "project" }, "project"],
])("the owner of %s", (_, input, owner) => {
  expect(ownerOf(input)).toBe(owner);
});

test.each([
  [undefined, []],
  ["2026-03-02T12:00:00.000Z", []],
  ["2026-03-02T12:00:00.001Z", ["1: 2026-03-01T12:00:00.001Z"]],
  ["2026-03-09T00:00:00.000Z", ["7: 2026-03-02T00:00:00.000Z", "1: 2026-03-08T00:00:00.000Z"]],
  [
    "2026-06-01T00:00:00.000Z",
    ["30: 2026-05-02T00:00:00.000Z", "7: 2026-05-25T00:00:00.000Z", "1: 2026-05-31T00:00:00.000Z"],
  ],
])("a key that expires at %s has these reminders", (expires_at, expected) => {
  const found = remindersOf({ id: "key", user_id: "user", ...(expires_at && { expires_at }) }, at);
  expect(
    found.map(({ input, dueAt }) => `${"days_left" in input.data && input.data.days_left}: ${dueAt.toISOString()}`),
  ).toEqual(expected);
});

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

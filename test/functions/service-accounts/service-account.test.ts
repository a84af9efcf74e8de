import { createServiceAccount, toListItem } from "../../../functions/service-accounts/service-account.ts";

const now = new Date("2026-03-01T12:00:00.000Z");

test("a service account has the user id of its own id, and shows nothing of its removal", () => {
  const input = { name: "deploy", role: "viewer" } as const;
  const account = createServiceAccount(input, "project-1", "user-1", now, Buffer.alloc(16, 1));
  expect(account.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-/);
  expect(toListItem({ ...account, removing_at: now.toISOString() })).toEqual({
    id: account.id,
    project_id: "project-1",
    user_id: `service-account:${account.id}`,
    name: "deploy",
    role: "viewer",
    created_at: now.toISOString(),
    created_by: "user-1",
  });
});

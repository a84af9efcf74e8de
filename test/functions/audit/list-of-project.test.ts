import { handler as removeMember } from "../../../functions/projects/remove-member.ts";
import { handler as suspend } from "../../../functions/projects/suspend.ts";
import * as webhooks from "../../../functions/webhooks/webhook-store.ts";
import { startTestService, type TestService } from "../../support/service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

type Entry = { action: string; actor: Record<string, string>; resource_id: string; details: object };

async function givenWebhook() {
  const admin = service.user();
  const project = await service.project(admin.userId);
  const path = `/v1/projects/${project}/webhooks`;
  const hook = { url: "https://hooks.example.com/in?token=abc", events: ["deploy.failed"] };
  const { id, secret } = (await admin.api.post(path, hook)).body.data;
  const log = async (): Promise<Entry[]> => {
    const { data } = (await admin.api.get(`/v1/projects/${project}/audit-events`)).body;
    return data.filter(({ action }: Entry) => action.startsWith("webhook."));
  };
  return { ...admin, project, path: `${path}/${id}`, id, secret, log };
}

test("shows every change of a webhook and its secret, newest first, without a secret", async () => {
  const { api, userId, path, id, secret, log } = await givenWebhook();
  await api.patch(path, { url: "https://hooks.example.com/other?token=def", enabled: false });
  const rotated = (await api.post(`${path}/rotate-secret`, { overlap_seconds: 60 })).body.data;
  await api.delete(path);
  const entries = await log();
  expect(entries.map(({ action, details }) => [action, details])).toEqual([
    ["webhook.deleted", {}],
    ["webhook.secret_rotated", { previous_expires_at: expect.stringMatching(/Z$/) }],
    ["webhook.updated", { url: "https://hooks.example.com/other", enabled: false }],
    ["webhook.created", { url: "https://hooks.example.com/in", events: ["deploy.failed"] }],
  ]);
  for (const { actor, resource_id } of entries) {
    expect({ ...actor, resource_id }).toMatchObject({ type: "jwt", user_id: userId, resource_id: id });
  }
  expect(JSON.stringify(entries)).not.toMatch(new RegExp(`${secret}|${rotated.secret}|token=`));
});

test("shows that the service disabled a webhook, once", async () => {
  const { project, id, log } = await givenWebhook();
  const webhook = await webhooks.get(project, id);
  const at = new Date().toISOString();
  expect(await webhooks.disable(webhook, "gone", at)).toBe(true);
  expect(await webhooks.disable(webhook, "gone", at)).toBe(false);
  expect((await log()).filter(({ action }) => action === "webhook.disabled")).toEqual([
    expect.objectContaining({ actor: { type: "system" }, resource_id: id, details: { reason: "gone" } }),
  ]);
});

test("has no entry for a change that failed", async () => {
  const { api, path, log } = await givenWebhook();
  await api.patch(path, { url: "http://192.0.2.1/" });
  await api.delete(path);
  await api.patch(path, { enabled: false });
  await api.post(`${path}/rotate-secret`, {});
  expect((await log()).map(({ action }) => action)).toEqual(["webhook.deleted", "webhook.created"]);
});

test("shows the changes of members, and the suspension once", async () => {
  const { api, userId, project } = await givenWebhook();
  const viewer = service.user();
  await service.project(viewer.userId, { projectId: project, role: "viewer" });
  // A repeated call changes nothing.
  await service.project(viewer.userId, { projectId: project, role: "viewer" });
  const member = { user_id: viewer.userId, project_id: project };
  expect([await removeMember(member), await removeMember(member)]).toEqual([{ removed: true }, { removed: false }]);
  for (const suspended of [true, true, false, false]) await suspend({ project_id: project, suspended });
  const { data } = (await api.get(`/v1/projects/${project}/audit-events`)).body;
  const entries = data.filter(({ action }: Entry) => !action.startsWith("webhook."));
  const by = { type: "platform" };
  expect(entries).toMatchObject([
    { action: "project.resumed", actor: by, resource_id: project },
    { action: "project.suspended", actor: by, resource_id: project },
    { action: "member.removed", actor: by, resource_id: viewer.userId },
    { action: "member.updated", actor: by, resource_id: viewer.userId, details: { role: "viewer" } },
    { action: "member.updated", actor: by, resource_id: userId, details: { role: "admin" } },
  ]);
});

test("is closed to viewers and to other users", async () => {
  const { project } = await givenWebhook();
  const viewer = service.user();
  await service.project(viewer.userId, { projectId: project, role: "viewer" });
  expect((await viewer.api.get(`/v1/projects/${project}/audit-events`)).status).toBe(403);
  expect((await service.user().api.get(`/v1/projects/${project}/audit-events`)).status).toBe(404);
});

test("the webhook itself shows who created and changed it, and when its secret was rotated", async () => {
  const { api, userId, project, path } = await givenWebhook();
  const shown = async () => (await api.get(path)).body.data;
  expect(await shown()).toMatchObject({ created_by: userId, updated_by: null, secret_rotated_at: null });
  const other = service.user();
  await service.project(other.userId, { projectId: project });
  await other.api.patch(path, { events: ["deploy.started"] });
  const rotated = (await other.api.post(`${path}/rotate-secret`, {})).body.data;
  const { secret_rotated_at } = rotated;
  expect(await shown()).toMatchObject({ created_by: userId, updated_by: other.userId, secret_rotated_at });
  expect(Date.now() - Date.parse(secret_rotated_at)).toBeLessThan(5_000);
});

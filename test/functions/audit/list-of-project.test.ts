import { handler as removeMember } from "../../../functions/projects/remove-member.ts";
import { handler as suspend } from "../../../functions/projects/suspend.ts";
import * as receiverState from "../../../functions/webhooks/receiver-state-store.ts";
import * as webhooks from "../../../functions/webhooks/webhook-store.ts";
import { failDynamo, isCall, restoreAws } from "../../support/aws-calls.ts";
import { givenDelivery, rowsOf } from "../../support/deliveries.ts";
import { givenUsedBudget } from "../../support/request-budget.ts";
import { useService } from "../../support/service.ts";

const service = useService();

type Entry = { action: string; actor: Record<string, string>; resource_id: string; details: object };

async function givenWebhook() {
  const admin = service.user();
  const project = await service.project(admin.userId);
  const path = `/v1/projects/${project}/webhooks`;
  const hook = { url: "https://hooks.example.com/services/T0/in?token=abc", events: ["deploy.failed"] };
  const { id, secret } = (await admin.api.post(path, hook)).body.data;
  const log = async (): Promise<Entry[]> => {
    const { data } = (await admin.api.get(`/v1/projects/${project}/audit-events`)).body;
    return data.filter(({ action }: Entry) => action.startsWith("webhook."));
  };
  return { ...admin, project, path: `${path}/${id}`, id, secret, log };
}

test("shows every change of a webhook and its secret, newest first, without a secret", async () => {
  const { api, userId, path, id, secret, log } = await givenWebhook();
  await api.patch(path, { url: "https://hooks.example.com/services/T0/other?token=def", enabled: false });
  const rotated = (await api.post(`${path}/rotate-secret`, { overlap_seconds: 60 })).body.data;
  await api.delete(path);
  const entries = await log();
  expect(entries.map(({ action, details }) => [action, details])).toEqual([
    ["webhook.deleted", {}],
    ["webhook.secret_rotated", { previous_expires_at: expect.stringMatching(/Z$/) }],
    [
      "webhook.updated",
      {
        // printf %s 'https://hooks.example.com/services/T0/other?token=def' | sha256sum
        url: { host: "hooks.example.com", sha256: "ac94d01f45d0c9262a1fa746091ae400369f1e59ada4ca685c45e3a2458d17bd" },
        enabled: false,
      },
    ],
    [
      "webhook.created",
      {
        url: { host: "hooks.example.com", sha256: "d99bcf2be0fa3a15f3636b2e8c9e09cf82f06599b6b2d03a53b7c91eaa10a4aa" },
        events: ["deploy.failed"],
      },
    ],
  ]);
  for (const { actor, resource_id } of entries) {
    expect({ ...actor, resource_id }).toMatchObject({ type: "jwt", user_id: userId, resource_id: id });
  }
  expect(JSON.stringify(entries)).not.toMatch(new RegExp(`${secret}|${rotated.secret}|token=|services`));
});

test("shows that the service disabled a webhook, once", async () => {
  const { project, id, log } = await givenWebhook();
  const webhook = await webhooks.get(project, id);
  const at = new Date().toISOString();
  expect(await receiverState.disable(webhook, "gone", at)).toBe(true);
  expect(await receiverState.disable(webhook, "gone", at)).toBe(false);
  expect((await log()).filter(({ action }) => action === "webhook.disabled")).toEqual([
    expect.objectContaining({ actor: { type: "system" }, resource_id: id, details: { reason: "gone" } }),
  ]);
});

test("shows each request for a test, a certification, a redelivery and a recovery, with its caller", async () => {
  const { api, userId, path, id, log } = await givenWebhook();
  const ids: (string | null)[] = [];
  const post = async (action: string, body?: object) => {
    const { status, headers, body: answer } = await api.post(`${path}/${action}`, body);
    expect(status).toBe(202);
    ids.unshift(headers.get("x-request-id"));
    return answer.data;
  };
  const { id: delivery_id } = await post("test", { event: "deploy.failed" });
  const certification = await post("certify");
  await post(`deliveries/${delivery_id}/redeliver`);
  const recovery = { since: "2026-03-01T00:00:00.000Z", status: "failed" };
  await post("recover", recovery);
  const entries = (await log()).slice(0, 4);
  expect(entries.map(({ action, details }) => [action, details])).toEqual([
    ["webhook.recovery_requested", recovery],
    ["webhook.redelivery_requested", { delivery_id }],
    ["webhook.certification_requested", { certification_id: certification.id }],
    ["webhook.test_requested", { delivery_id, event: "deploy.failed" }],
  ]);
  expect(entries.map(({ actor }) => actor.request_id)).toEqual(ids);
  for (const { actor, resource_id } of entries) {
    expect({ ...actor, resource_id }).toMatchObject({ type: "jwt", user_id: userId, resource_id: id });
  }
});

test("has no entry for a request that was rejected, or for a delivery that does not exist", async () => {
  const { api, project, path, id, log } = await givenWebhook();
  expect((await api.post(`${path}/deliveries/${project}/redeliver`)).status).toBe(404);
  const spent = await givenDelivery(await webhooks.get(project, id), { status: "failed", attempt_count: 50 });
  expect((await api.post(`${path}/deliveries/${spent.id}/redeliver`)).status).toBe(409);
  await givenUsedBudget(project, 120);
  for (const action of ["test", "certify", `deliveries/${project}/redeliver`]) {
    expect((await api.post(`${path}/${action}`)).status).toBe(429);
  }
  expect((await api.post(`${path}/recover`, { since: "2026-03-01T00:00:00Z" })).status).toBe(429);
  expect((await log()).map(({ action }) => action)).toEqual(["webhook.created"]);
});

test.each(["test", "certify", "redeliver", "recover"])(
  "%s does nothing if its entry cannot be written",
  async (action) => {
    const { api, project, path, id } = await givenWebhook();
    const failed = await givenDelivery(await webhooks.get(project, id), { status: "failed" });
    failDynamo((call) => isCall(call, "PutItem", "audit-events"));
    const target = action === "redeliver" ? `deliveries/${failed.id}/redeliver` : action;
    const body = action === "recover" ? { since: failed.created_at } : undefined;
    expect((await api.post(`${path}/${target}`, body)).status).toBe(503);
    restoreAws();
    expect([await rowsOf({ id }), await rowsOf({ id: `certification:${id}` })]).toEqual([[failed], []]);
  },
);

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

import { handler as removeMember } from "../../../../functions/identity/members/remove-member.ts";
import { handler as suspend } from "../../../../functions/webhooks/webhook/suspend.ts";
import * as webhooks from "../../../../functions/webhooks/webhook/webhook-store.ts";
import { failDynamo, interceptDynamo, isCall, restoreAws } from "../../../support/aws-calls.ts";
import { givenDelivery, rowsOf } from "../../../support/deliveries.ts";
import { expectPages } from "../../../support/pages.ts";
import { givenUsedBudget } from "../../../support/request-budget.ts";
import { useService } from "../../../support/service.ts";

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

test("has no entry for a request that was rejected, or for a delivery that does not exist", async () => {
  const { api, project, path, log } = await givenWebhook();
  expect((await api.post(`${path}/deliveries/${project}/redeliver`)).status).toBe(404);
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

test("an entry of a user and the change are written together or not at all", async () => {
  const { api } = service.user();
  interceptDynamo(({ command, input }, send) => {
    if (!command.startsWith("TransactWrite")) return send();
    const items = (input.TransactItems ?? []) as { Put?: { TableName: string } }[];
    expect(items.filter(({ Put }) => Put?.TableName.endsWith("audit-events"))).toHaveLength(1);
    throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
  });
  expect((await api.post("/v1/api-keys", { name: "ci" })).status).toBe(503);
  restoreAws();
  expect((await api.get("/v1/audit-events")).body).toEqual({ data: [] });
  expect((await api.get("/v1/api-keys")).body).toEqual({ data: [] });
});

test("the log of a user is returned in pages that follow each other", async () => {
  const { api } = service.user();
  const keys: string[] = [];
  for (let count = 0; count < 4; count++) keys.unshift((await api.post("/v1/api-keys", { name: "ci" })).body.data.id);
  await expectPages(api, "/v1/audit-events", keys, "resource_id");
});

test("the log of a user is closed to a key that is limited to projects, and the whole of it is shown to any other", async () => {
  const { api, userId } = service.user();
  const project_ids = [await service.project(userId)];
  for (const limits of [{ project_ids }, { project_ids, permissions: ["audit:read"] }]) {
    const { key } = (await api.post("/v1/api-keys", { name: "ci", ...limits })).body.data;
    const { status, body } = await service.as(key).get("/v1/audit-events");
    expect({ status, code: body.error.code }).toEqual({ status: 403, code: "insufficient_permission" });
  }
  const { key } = (await api.post("/v1/api-keys", { name: "ci", permissions: ["audit:read"] })).body.data;
  const log = (await api.get("/v1/audit-events")).body;
  expect(log.data).toHaveLength(3);
  expect((await service.as(key).get("/v1/audit-events")).body).toEqual(log);
});

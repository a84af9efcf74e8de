import { randomUUID } from "node:crypto";
import { PutCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../../../functions/platform/aws.ts";
import { tableName } from "../../../functions/platform/env.ts";
import type { Webhook } from "../../../functions/webhooks/webhook.ts";
import { interceptDynamo, restoreAws } from "../../support/aws-calls.ts";
import { givenDelivery } from "../../support/deliveries.ts";
import { useService } from "../../support/service.ts";

const service = useService();

const fresh = { state: "new", since: null, last_success_at: null, last_error: null, next_probe_at: null };
const webhookTo = (path: string) => ({ url: `https://example.com/${path}`, events: ["deploy.failed"] });

async function projectOfAdmin() {
  const { api, userId, token } = service.user();
  const project = await service.project(userId);
  return { api, token, userId, project, path: `/v1/projects/${project}/webhooks` };
}

test("returns an empty array for a project without webhooks", async () => {
  const { api, path } = await projectOfAdmin();
  const { status, body } = await api.get(path);
  expect({ status, body }).toEqual({ status: 200, body: { data: [] } });
});

test("returns all webhooks in order of creation, without their secrets", async () => {
  const { api, path } = await projectOfAdmin();
  const created = [];
  for (const name of ["c", "a", "d", "b"]) created.push((await api.post(path, webhookTo(name))).body.data);
  const { status, body } = await api.get(path);
  expect(status).toBe(200);
  const state = { enabled: true, disabled_reason: null, health: fresh };
  expect(body).toEqual({ data: created.map(({ secret: _, ...shown }) => ({ ...shown, ...state })) });
  expect(JSON.stringify(body)).not.toContain("whsec_");
});

test("returns no webhook of another project of the same user", async () => {
  const { api, userId, path } = await projectOfAdmin();
  const other = `/v1/projects/${await service.project(userId)}/webhooks`;
  await api.post(path, webhookTo("here"));
  await api.post(other, webhookTo("there"));
  expect((await api.get(path)).body.data).toMatchObject([{ url: "https://example.com/here" }]);
  expect((await api.get(other)).body.data).toMatchObject([{ url: "https://example.com/there" }]);
});

test("returns the reason of disabling and the health, without the internal failure state", async () => {
  const { api, path, project } = await projectOfAdmin();
  const Item = {
    id: randomUUID(),
    project_id: project,
    ...webhookTo("gone"),
    created_at: "2026-03-01T12:00:00.000Z",
    disabled_at: "2026-03-02T12:00:00.000Z",
    disabled_reason: "gone",
    failing_since: "2026-03-02T12:00:00.000Z",
    probe_at: "2026-03-02T12:00:00.000Z",
  };
  await dynamo().send(new PutCommand({ TableName: tableName("webhooks"), Item }));
  const { disabled_at, failing_since, probe_at, ...shown } = Item;
  const health = { ...fresh, state: "disabled", since: disabled_at };
  expect((await api.get(path)).body).toEqual({ data: [{ ...shown, enabled: false, health }] });
});

test("returns the health of each of 20 webhooks, with one small query for each that works", async () => {
  const { api, path, project } = await projectOfAdmin();
  const created: Webhook[] = [];
  for (let index = 0; index < 20; index++) {
    const webhook = (await api.post(path, webhookTo(`${index}`))).body.data;
    created.push(webhook);
    const at = `2026-03-01T12:00:${String(index + 10)}.000Z`;
    const attempt = { number: 1, at, duration_ms: 5, status_code: 200, trigger: "schedule" as const };
    await givenDelivery({ ...webhook, project_id: project }, { status: "succeeded", attempts: [attempt] });
  }
  const queries: unknown[] = [];
  interceptDynamo(async ({ command, input }, send) => {
    if (command.startsWith("Query") && String(input.TableName).endsWith("-deliveries")) queries.push(input.Limit);
    return send();
  });
  const { body } = await api.get(path);
  restoreAws();
  expect(body.data.map(({ health }: { health: unknown }) => health)).toEqual(
    created.map((_, index) => ({ ...fresh, state: "healthy", last_success_at: `2026-03-01T12:00:${index + 10}.000Z` })),
  );
  expect(queries).toEqual(Array(20).fill(3));
});

test("reflects each create and each delete at once", async () => {
  const { api, path } = await projectOfAdmin();
  for (let round = 0; round < 10; round++) {
    const { id } = (await api.post(path, webhookTo(`${round}`))).body.data;
    expect((await api.get(path)).body.data).toMatchObject([{ id }]);
    await api.delete(`${path}/${id}`);
    expect((await api.get(path)).body.data).toEqual([]);
  }
});

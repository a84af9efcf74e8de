import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import { type TableKey, tables } from "../../../../functions/foundation/manifest/tables.ts";
import { dynamo } from "../../../../functions/foundation/platform/aws.ts";
import { tableName } from "../../../../functions/foundation/platform/env.ts";
import type { Webhook } from "../../../../functions/webhooks/webhook/webhook.ts";
import { find } from "../../../../functions/webhooks/webhook/webhook-store.ts";
import { beforeTransaction, interceptDynamo, restoreAws } from "../../../support/aws-calls.ts";
import { changeWebhook, givenDelivery, rowOf, takeDeliveryMessages } from "../../../support/deliveries.ts";
import { errorOf, invalidFieldsOf, useScenario } from "../../../support/scenario.ts";
import { useService } from "../../../support/service.ts";

const service = useService();

describe("a creation", () => {
  afterEach(() => {
    process.env.WEBHOOK_ALLOW_CIDRS = "127.0.0.0/8,::1/128";
  });

  const url = "https://example.com/hook";
  const events = ["deploy.failed"];

  async function projectOfAdmin() {
    const { api, userId } = service.user();
    const path = `/v1/projects/${await service.project(userId)}/webhooks`;
    return { api, path, create: (body: unknown = { url, events }) => api.post(path, body) };
  }

  test("accepts a filter with a name that objects inherit, and later requests the ids in upper case", async () => {
    const { api, path, create } = await projectOfAdmin();
    const filter = { toString: ["x"], branch: ["*"] };
    const { status, body } = await create({ url, events, filter });
    expect({ status, filter: body.data.filter }).toEqual({ status: 201, filter });
    const upperCase = path.replaceAll(/[0-9a-f-]{36}/g, (id) => id.toUpperCase());
    expect((await api.get(upperCase)).body.data).toMatchObject([{ filter }]);
    expect((await api.delete(`${upperCase}/${body.data.id.toUpperCase()}`)).status).toBe(204);
    expect((await api.get(path)).body.data).toEqual([]);
  });

  test("stores the secret only in the table of secrets", async () => {
    const { create } = await projectOfAdmin();
    const { secret } = (await create()).body.data;
    const found: string[] = [];
    for (const key of Object.keys(tables) as TableKey[]) {
      const { Items, LastEvaluatedKey } = await dynamo().send(new ScanCommand({ TableName: tableName(key) }));
      expect(LastEvaluatedKey).toBeUndefined();
      if (JSON.stringify(Items).includes(secret.slice("whsec_".length))) found.push(key);
    }
    expect(found).toEqual(["webhookSecrets"]);
  });

  test("returns 409 after 20 webhooks of a project, with 40 concurrent requests", async () => {
    const { api, userId } = service.user();
    const [full, other] = [await service.project(userId), await service.project(userId)];
    const create = (project: string) => api.post(`/v1/projects/${project}/webhooks`, { url, events });
    const responses = await Promise.all(Array.from({ length: 40 }, () => create(full)));
    const created = responses.filter(({ status }) => status === 201);
    expect(created).toHaveLength(20);
    for (const { status, body } of responses.filter((response) => !created.includes(response))) {
      expect({ status, code: body.error.code }).toEqual({ status: 409, code: "webhook_limit_reached" });
    }
    const listed = (await api.get(`/v1/projects/${full}/webhooks`)).body.data.map(({ id }: { id: string }) => id);
    expect(listed.toSorted()).toEqual(created.map(({ body }) => body.data.id).toSorted());
    expect((await create(other)).status).toBe(201);
    expect(new Set(created.map(({ body }) => body.data.secret)).size).toBe(20);
  });

  test.each([
    [" 10.0.0.0/8 , 127.0.0.1/32 ", 201],
    ["10.0.0.0/8", 400],
    ["", 400],
    [undefined, 400],
  ])("with WEBHOOK_ALLOW_CIDRS=%j, returns %i for a receiver on this machine", async (cidrs, status) => {
    const { create } = await projectOfAdmin();
    if (cidrs === undefined) delete process.env.WEBHOOK_ALLOW_CIDRS;
    else process.env.WEBHOOK_ALLOW_CIDRS = cidrs;
    expect((await create({ url: "http://127.0.0.1:8080/hook", events })).status).toBe(status);
    expect((await create()).status).toBe(201);
  });

  test("returns 500 without details when WEBHOOK_ALLOW_CIDRS is invalid", async () => {
    const { create } = await projectOfAdmin();
    process.env.WEBHOOK_ALLOW_CIDRS = "127.0.0.0";
    const { status, body } = await create();
    expect({ status, code: body.error.code }).toEqual({ status: 500, code: "internal_error" });
    expect(JSON.stringify(body)).not.toMatch(/127\.|CIDR/);
  });
});

test("the list has the health of each of 20 webhooks, with one small query for each that works", async () => {
  const { api, userId } = service.user();
  const project = await service.project(userId);
  const path = `/v1/projects/${project}/webhooks`;
  const webhookTo = (name: string) => ({ url: `https://example.com/${name}`, events: ["deploy.failed"] });
  const fresh = { state: "new", since: null, last_success_at: null, last_error: null, next_probe_at: null };
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

describe("a change", () => {
  const scenario = useScenario(service);

  const change = (body: unknown) => scenario.api.patch(scenario.path, body);
  const shown = async () => (await scenario.api.get(scenario.path)).body.data;
  const by = { updated_by: expect.stringMatching(/^user-/) };
  const row = () => find(scenario.projectId, scenario.webhook.id);

  test("of the mode is shown and stored only for shadow, and clears the failure state", async () => {
    const before = await shown();
    const failing = { failing_since: new Date().toISOString(), probe_at: new Date().toISOString() };
    for (const [mode, isKept] of [
      ["live", true],
      ["shadow", false],
      ["shadow", true],
      ["live", false],
    ] as const) {
      await changeWebhook(scenario.webhook, failing);
      const { status, body } = await change({ mode });
      expect({ status, mode: body.data.mode }).toEqual({ status: 200, mode: mode === "live" ? undefined : mode });
      expect((await row())?.failing_since).toBe(isKept ? failing.failing_since : undefined);
    }
    expect(await shown()).toEqual({ ...before, ...by });
    const log = (await scenario.api.get(`/v1/projects/${scenario.projectId}/audit-events?limit=1`)).body.data;
    expect(log).toMatchObject([{ action: "webhook.updated", details: { mode: "live" } }]);
  });

  test("of different fields in concurrent requests loses none", async () => {
    const changes = [{ url: "https://example.com/raced" }, { events: ["deploy.failed"] }, { enabled: false }];
    await Promise.all(changes.map(change));
    expect(await shown()).toMatchObject({ ...changes[0], ...changes[1], ...changes[2], disabled_reason: "manual" });
  });

  test.each(["gone", "failing"] as const)(
    "that disables a webhook which is disabled as %s keeps its reason and time",
    async (reason) => {
      await changeWebhook(scenario.webhook, { disabled_at: "2026-03-02T12:00:00.000Z", disabled_reason: reason });
      const before = await shown();
      const { status, body } = await change({ enabled: false });
      expect({ status, data: body.data }).toEqual({ status: 200, data: { ...before, ...by } });
      expect(before).toMatchObject({ disabled_reason: reason, disabled_at: "2026-03-02T12:00:00.000Z" });
    },
  );

  test.each(["enabled", "disabled"])(
    "to another URL clears the state of a slow, failing, %s webhook; the same URL, events and enabling it again do not",
    async (is) => {
      const state = {
        failing_since: "2026-02-25T12:00:00.000Z",
        probe_at: "2026-02-25T12:05:00.000Z",
        slow_since: "2026-02-25T12:00:00.000Z",
      };
      await changeWebhook(scenario.webhook, state);
      const { url } = scenario.webhook;
      for (const body of [{ url }, { enabled: true }, { url, enabled: true, events: ["deploy.failed"] }]) {
        expect((await change(body)).status).toBe(200);
        expect(await row()).toMatchObject(state);
      }
      expect(await row()).toMatchObject({ events: ["deploy.failed"] });
      if (is === "disabled") await change({ enabled: false });
      await change({ url: "https://example.com/fixed" });
      expect((await row())?.disabled_reason).toBe(is === "disabled" ? "manual" : undefined);
      for (const field of Object.keys(state)) expect(await row()).not.toHaveProperty(field);
    },
  );

  test("that enables the webhook sends no stored deliveries", async () => {
    await change({ enabled: false });
    const held = await givenDelivery(scenario.webhook, { status: "held" });
    const failed = await givenDelivery(scenario.webhook, { status: "failed", attempt_count: 8 });
    await change({ enabled: true });
    expect(await takeDeliveryMessages()).toEqual([]);
    expect([await rowOf(held), await rowOf(failed)]).toEqual([held, failed]);
  });

  test("is rejected for an invalid field with the same message as a creation", async () => {
    const invalid: [title: string, field: object][] = [
      ["plain http", { url: "http://example.com/" }],
      ["a private address", { url: "https://10.0.0.1/" }],
      ["an unknown event", { events: ["deploy.unknown"] }],
    ];
    const valid = { url: "https://example.com/", events: ["deploy.failed"] };
    for (const [title, wrong] of invalid) {
      const created = await scenario.api.post(`/v1/projects/${scenario.projectId}/webhooks`, { ...valid, ...wrong });
      const changed = await change(wrong);
      expect({ title, fields: invalidFieldsOf(changed).length }).toEqual({ title, fields: 1 });
      expect(changed.body.error.details).toEqual(created.body.error.details);
    }
  });

  test("of a deleted webhook returns 404, and does not create it", async () => {
    await scenario.api.delete(scenario.path);
    expect(errorOf(await change({ url: "https://example.com/back" }))).toEqual({ status: 404, code: "not_found" });
    expect(await row()).toBeUndefined();
  });
});

describe("a deletion", () => {
  const scenario = useScenario(service);

  test("that a concurrent request makes first returns 404", async () => {
    beforeTransaction(() => scenario.api.delete(scenario.path));
    expect(errorOf(await scenario.api.delete(scenario.path))).toEqual({ status: 404, code: "not_found" });
  });
});

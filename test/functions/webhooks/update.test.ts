import { find } from "../../../functions/webhooks/webhook-store.ts";
import { changeWebhook, givenDelivery, rowOf, takeDeliveryMessages } from "../../support/deliveries.ts";
import { errorOf, invalidFieldsOf, useScenario } from "../../support/scenario.ts";
import { useService } from "../../support/service.ts";

const service = useService();
const scenario = useScenario(service);

const change = (body: unknown) => scenario.api.patch(scenario.path, body);
const shown = async () => (await scenario.api.get(scenario.path)).body.data;
const by = { updated_by: expect.stringMatching(/^user-/) };
const row = () => find(scenario.projectId, scenario.webhook.id);

describe("changes", () => {
  test.each<[string, object]>([
    ["only the URL", { url: "https://example.com/other" }],
    ["only the name", { name: "Chat" }],
    ["only the filter", { filter: { environment: ["production"], branch: ["main", "release/*"] } }],
    ["only the events", { events: ["deploy.failed", "deploy.succeeded"] }],
    ["both", { url: "https://example.com/both", events: ["deploy.failed"] }],
    ["both, and disables the webhook", { url: "https://example.com/off", events: ["deploy.failed"], enabled: false }],
  ])("%s, and keeps the other fields", async (_, changes) => {
    const before = await shown();
    const { status, body } = await change(changes);
    const time = expect.stringMatching(/Z$/);
    const health = { ...before.health, state: "disabled", since: time };
    const state = "enabled" in changes && { disabled_reason: "manual", disabled_at: time, health };
    expect({ status, body }).toEqual({ status: 200, body: { data: { ...before, ...by, ...changes, ...state } } });
    expect(await shown()).toEqual(body.data);
  });

  test("the name, which null removes and other changes keep, each with an entry in the audit log", async () => {
    const before = await shown();
    await change({ name: "Chat" });
    expect((await change({ events: before.events })).body.data).toEqual({ ...before, ...by, name: "Chat" });
    const { body } = await change({ name: null });
    expect(body.data).toEqual({ ...before, ...by });
    expect(await row()).not.toHaveProperty("name");
    expect((await change({ name: null })).status).toBe(200);
    const log = (await scenario.api.get(`/v1/projects/${scenario.projectId}/audit-events?limit=4`)).body.data;
    const details = log.map((entry: { details: object }) => entry.details);
    expect(details).toEqual([{ name: null }, { name: null }, { events: before.events }, { name: "Chat" }]);
  });

  test("the mode, which is shown and stored only for shadow, and clears the failure state when it changes", async () => {
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

  test("the filter, which null removes and other changes keep, each with an entry in the audit log", async () => {
    const before = await shown();
    const filter = { environment: ["production"] };
    await change({ filter });
    expect((await change({ events: before.events })).body.data).toEqual({ ...before, ...by, filter });
    expect((await change({ filter: null })).body.data).toEqual({ ...before, ...by });
    expect(await row()).not.toHaveProperty("filter");
    const log = (await scenario.api.get(`/v1/projects/${scenario.projectId}/audit-events?limit=3`)).body.data;
    const details = log.map((entry: { details: object }) => entry.details);
    expect(details).toEqual([{ filter: null }, { events: before.events }, { filter }]);
  });

  test("duplicate events to one", async () => {
    const { body } = await change({ events: ["deploy.failed", "deploy.failed"] });
    expect(body.data.events).toEqual(["deploy.failed"]);
  });

  test("different fields in concurrent requests without losing one", async () => {
    const changes = [{ url: "https://example.com/raced" }, { events: ["deploy.failed"] }, { enabled: false }];
    await Promise.all(changes.map(change));
    expect(await shown()).toMatchObject({ ...changes[0], ...changes[1], ...changes[2], disabled_reason: "manual" });
  });

  test("the webhook without returning its secret", async () => {
    expect(JSON.stringify((await change({ enabled: true })).body)).not.toContain("whsec_");
  });
});

describe("disabling", () => {
  test("sets the reason manual, and has no effect when repeated", async () => {
    const { body } = await change({ enabled: false });
    expect(body.data).toMatchObject({ enabled: false, disabled_reason: "manual" });
    expect(Math.abs(Date.now() - Date.parse(body.data.disabled_at))).toBeLessThan(10_000);
    expect((await change({ enabled: false })).body).toEqual(body);
  });

  test.each(["gone", "failing"] as const)(
    "a webhook that is disabled as %s keeps its reason and time",
    async (reason) => {
      await changeWebhook(scenario.webhook, { disabled_at: "2026-03-02T12:00:00.000Z", disabled_reason: reason });
      const before = await shown();
      const { status, body } = await change({ enabled: false });
      expect({ status, data: body.data }).toEqual({ status: 200, data: { ...before, ...by } });
      expect(before).toMatchObject({ disabled_reason: reason, disabled_at: "2026-03-02T12:00:00.000Z" });
    },
  );

  test("is not undone by a change of another field", async () => {
    await change({ enabled: false });
    const { body } = await change({ url: "HTTPS://Example.com:443/old/../fixed" });
    expect(body.data).toMatchObject({ enabled: false, disabled_reason: "manual", url: "https://example.com/fixed" });
  });
});

test("a new URL clears the failure state, new events do not", async () => {
  const failing = { failing_since: "2026-02-25T12:00:00.000Z", probe_at: "2026-02-25T12:05:00.000Z" };
  await changeWebhook(scenario.webhook, failing);
  await change({ events: ["deploy.started"] });
  expect(await row()).toMatchObject(failing);
  await change({ url: "https://example.com/fixed" });
  expect(await row()).not.toHaveProperty("failing_since");
  expect(await row()).not.toHaveProperty("probe_at");
});

test.each(["enabled", "disabled"])(
  "another URL clears the state of a slow, failing, %s webhook; the same URL and enabling it again do not",
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

describe("enabling", () => {
  test.each(["gone", "failing", "manual"] as const)("clears the reason %s and the failure state", async (reason) => {
    const failing_since = "2026-02-25T12:00:00.000Z";
    const disabled_at = "2026-03-02T12:00:00.000Z";
    await changeWebhook(scenario.webhook, {
      disabled_at,
      disabled_reason: reason,
      failing_since,
      probe_at: disabled_at,
    });
    const { status, body } = await change({ enabled: true });
    expect(status).toBe(200);
    expect(body.data).toMatchObject({ enabled: true, disabled_reason: null, disabled_at: null });
    const { secret, ...created } = scenario.webhook;
    expect(await row()).toEqual({ ...created, ...by, created_by: by.updated_by });
  });

  test("is possible together with a new URL", async () => {
    await changeWebhook(scenario.webhook, { disabled_at: "2026-03-02T12:00:00.000Z", disabled_reason: "gone" });
    const { body } = await change({ enabled: true, url: "https://example.com/moved" });
    expect(body.data).toMatchObject({ enabled: true, disabled_reason: null, url: "https://example.com/moved" });
  });

  test("sends no stored deliveries", async () => {
    await change({ enabled: false });
    const held = await givenDelivery(scenario.webhook, { status: "held" });
    const failed = await givenDelivery(scenario.webhook, { status: "failed", attempt_count: 8 });
    await change({ enabled: true });
    expect(await takeDeliveryMessages()).toEqual([]);
    expect([await rowOf(held), await rowOf(failed)]).toEqual([held, failed]);
  });

  test("an enabled webhook changes nothing", async () => {
    const before = await shown();
    const { status, body } = await change({ enabled: true });
    expect({ status, data: body.data }).toEqual({ status: 200, data: { ...before, ...by } });
  });
});

describe("rejects", () => {
  test("an invalid body with 400, and changes nothing", async () => {
    const before = await row();
    const invalid: [title: string, body: unknown, fields: string[]][] = [
      ["an empty object", {}, [""]],
      ["no body", undefined, [""]],
      ["an array", [], [""]],
      ["a string", "enabled", [""]],
      ["null", null, [""]],
      ["an unknown field", { enabled: true, secret: "whsec_00" }, ["secret"]],
      ["a read-only field", { disabled_reason: "gone" }, ["disabled_reason", ""]],
      ["another id", { id: "1" }, ["id", ""]],
      ["enabled as a string", { enabled: "true" }, ["enabled"]],
      ["enabled as a number", { enabled: 1 }, ["enabled"]],
      ["enabled as null", { enabled: null }, ["enabled"]],
      ["a null URL", { url: null }, ["url"]],
      ["null events", { events: null }, ["events"]],
      ["an unknown mode", { mode: "dry" }, ["mode"]],
      ["a null mode", { mode: null }, ["mode"]],
      [
        "several invalid fields",
        { url: "nowhere", events: ["deploy.paused"], enabled: 0 },
        ["url", "events.0", "enabled"],
      ],
    ];
    for (const [title, body, fields] of invalid) {
      expect({ title, fields: invalidFieldsOf(await change(body)) }).toEqual({ title, fields });
    }
    expect(await row()).toEqual(before);
  });

  test("an invalid field with the same message as create", async () => {
    const invalid: [title: string, field: object][] = [
      ["plain http", { url: "http://example.com/" }],
      ["a private address", { url: "https://10.0.0.1/" }],
      ["the metadata service", { url: "https://169.254.169.254/" }],
      ["the port of a mail server", { url: "https://example.com:25/" }],
      ["a local name", { url: "https://printer.local/" }],
      ["credentials in the URL", { url: "https://user:pass@example.com/" }],
      ["a URL of more than 2,048 characters", { url: `https://example.com/${"x".repeat(2_048)}` }],
      ["a number as URL", { url: 7 }],
      ["no events", { events: [] }],
      ["an unknown event", { events: ["deploy.paused"] }],
      ["events as a string", { events: "deploy.failed" }],
    ];
    const valid = { url: "https://example.com/", events: ["deploy.failed"] };
    for (const [title, wrong] of invalid) {
      const created = await scenario.api.post(`/v1/projects/${scenario.projectId}/webhooks`, { ...valid, ...wrong });
      const changed = await change(wrong);
      expect({ title, fields: invalidFieldsOf(changed).length }).toEqual({ title, fields: 1 });
      expect(changed.body.error.details).toEqual(created.body.error.details);
    }
  });

  test("a deleted webhook with 404, and does not create it", async () => {
    await scenario.api.delete(scenario.path);
    expect(errorOf(await change({ url: "https://example.com/back" }))).toEqual({ status: 404, code: "not_found" });
    expect(await row()).toBeUndefined();
  });
});

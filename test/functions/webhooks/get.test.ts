import type { Webhook } from "../../../functions/webhooks/webhook.ts";
import { changeWebhook } from "../../support/deliveries.ts";
import { useScenario } from "../../support/scenario.ts";
import { useService } from "../../support/service.ts";

const service = useService();
const scenario = useScenario(service);

const health = { state: "new", since: null, last_success_at: null, last_error: null, next_probe_at: null };
const changes = { created_by: expect.stringMatching(/^user-/), updated_by: null, secret_rotated_at: null };

test("returns the webhook with its state and without its secret", async () => {
  const { secret, ...created } = scenario.webhook;
  const { status, body, headers } = await scenario.api.get(scenario.path);
  expect(status).toBe(200);
  const state = { enabled: true, disabled_reason: null, disabled_at: null };
  expect(body).toEqual({ data: { ...created, ...state, ...changes, health } });
  expect(JSON.stringify(body)).not.toContain("whsec_");
  expect(headers.get("cache-control")).toBe("no-store");
});

test.each<Webhook["disabled_reason"] & string>(["gone", "failing", "manual"])(
  "returns the time and the reason of disabling: %s",
  async (disabled_reason) => {
    const disabled_at = "2026-03-02T12:00:00.000Z";
    await changeWebhook(scenario.webhook, { disabled_at, disabled_reason, failing_since: "2026-02-25T12:00:00.000Z" });
    const { secret, ...created } = scenario.webhook;
    const { body } = await scenario.api.get(scenario.path);
    expect(body).toEqual({
      data: {
        ...created,
        enabled: false,
        disabled_reason,
        disabled_at,
        ...changes,
        health: { ...health, state: "disabled", since: disabled_at },
      },
    });
  },
);

test("returns the failure state as health only", async () => {
  const { body } = await scenario.api.get(scenario.path);
  await changeWebhook(scenario.webhook, {
    failing_since: "2026-03-02T12:00:00.000Z",
    probe_at: "2026-03-02T12:01:00.000Z",
  });
  const failing = { ...health, state: "failing", since: "2026-03-02T12:00:00.000Z" };
  expect((await scenario.api.get(scenario.path)).body).toEqual({ data: { ...body.data, health: failing } });
});

test("returns 404 after a delete", async () => {
  await scenario.api.delete(scenario.path);
  expect((await scenario.api.get(scenario.path)).status).toBe(404);
});

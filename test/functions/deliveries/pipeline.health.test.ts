import { Webhook as Verifier } from "standardwebhooks";
import { changeWebhook, eventOf, publish, rowsOf } from "../../support/deliveries.ts";
import { eventually } from "../../support/eventually.ts";
import { useReceiver } from "../../support/receiver.ts";
import { useScenario } from "../../support/scenario.ts";
import { useService } from "../../support/service.ts";

/* A webhook fails, is disabled and recovers, observed through the API. */

const receiver = useReceiver("test");
beforeAll(() => {
  process.env.RETRY_SCHEDULE = "0";
});
const service = useService({ deliver: true });
const scenario = useScenario(service, () => ({ url: receiver.url }));
beforeEach(() => {
  delete process.env.DISABLE_AFTER_SECONDS;
});

const secondsAgo = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString();
const webhookNow = async () => (await scenario.api.get(scenario.path)).body.data;
const listDeliveries = async () => (await scenario.api.get(`${scenario.path}/deliveries`)).body.data;

/** Publishes an event and waits until the API returns its delivery with this status. */
async function publishUntil(status: string) {
  const event = eventOf(scenario.projectId);
  await publish(event);
  return eventually(async () => {
    const delivery = (await listDeliveries()).find(
      (each: { deployment_id: string }) => each.deployment_id === event.deployment_id,
    );
    expect(delivery).toMatchObject({ status });
    return delivery;
  });
}

/** Waits until the webhook is disabled and returns it. */
const disabledWebhook = () =>
  eventually(async () => {
    const webhook = await webhookNow();
    expect(webhook.enabled).toBe(false);
    return webhook;
  });

test("410 disables the webhook and holds later events; enabling sends nothing; recover sends all", async () => {
  receiver.respondWith(410);
  const rejected = await publishUntil("failed");
  expect(rejected).toMatchObject({ attempt_count: 1, next_attempt_at: null });
  expect(await disabledWebhook()).toMatchObject({ disabled_reason: "gone", disabled_at: expect.stringMatching(/Z$/) });
  const held = [await publishUntil("held"), await publishUntil("held")];
  expect(receiver.received).toHaveLength(1);

  receiver.respondWith(200);
  await scenario.api.patch(scenario.path, { enabled: true });
  expect((await listDeliveries()).map(({ status }: { status: string }) => status)).toEqual(["held", "held", "failed"]);
  const since = new Date(Date.parse(rejected.created_at) - 60_000).toISOString();
  const { body } = await scenario.api.post(`${scenario.path}/recover`, {
    since,
  });
  expect(body).toEqual({ data: { count: 3, complete: true, next_cursor: null } });
  const arrived = (await receiver.waitFor(4)).slice(1);
  const ids = arrived.map(({ headers }) => headers["webhook-id"]);
  expect(ids.toSorted()).toEqual([rejected.id, ...held.map(({ id }) => id)].sort());
  for (const { body, headers } of arrived) {
    new Verifier(scenario.webhook.secret).verify(body, headers as Record<string, string>);
  }
  await eventually(async () => {
    for (const row of await rowsOf(scenario.webhook)) expect(row).toMatchObject({ status: "succeeded" });
  });
  expect(receiver.received).toHaveLength(4);
});

test("the last failed attempt disables the webhook after DISABLE_AFTER_SECONDS without a success", async () => {
  receiver.respondWith(500);
  await publishUntil("failed");
  expect((await webhookNow()).enabled).toBe(true);
  process.env.DISABLE_AFTER_SECONDS = "15";
  await publishUntil("failed");
  // Both failed within fifteen seconds of the first failure.
  expect((await webhookNow()).enabled).toBe(true);
  await changeWebhook(scenario.webhook, { failing_since: secondsAgo(20) });
  await publishUntil("failed");
  expect(await disabledWebhook()).toMatchObject({
    disabled_reason: "failing",
    disabled_at: expect.stringMatching(/Z$/),
  });
  await publishUntil("held");
});

test("a success clears failing_since, and the time starts again", async () => {
  receiver.respondWith(500);
  await publishUntil("failed");
  await changeWebhook(scenario.webhook, { failing_since: secondsAgo(20) });
  receiver.respondWith(200);
  await publishUntil("succeeded");
  process.env.DISABLE_AFTER_SECONDS = "15";
  receiver.respondWith(500);
  await publishUntil("failed");
  // If the webhook were disabled, this delivery would be held.
  await publishUntil("failed");
  expect(await webhookNow()).toMatchObject({ enabled: true, disabled_reason: null });
});

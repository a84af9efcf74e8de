import { MeteredReads } from "../../../../functions/foundation/budgets/metered-reads-store.ts";
import { addSeconds } from "../../../../functions/foundation/platform/time.ts";
import { readHealth } from "../../../../functions/webhooks/webhook/health-store.ts";
import type { Webhook } from "../../../../functions/webhooks/webhook/webhook.ts";
import { find } from "../../../../functions/webhooks/webhook/webhook-store.ts";
import { visitLine } from "../../../support/attempts.ts";
import { watchDynamo } from "../../../support/aws-calls.ts";
import {
  changeWebhook,
  givenDelivery,
  givenWaiting,
  givenWebhook,
  prepareDeliveries,
  wakeUpOf,
} from "../../../support/deliveries.ts";
import { useReceiver } from "../../../support/receiver.ts";

/* The health of a webhook whose circuit is open: from its newest deliveries, and from what waits in its line. */

const minutes = (count: number) => new Date(Date.now() + count * 60_000).toISOString();

const receiver = useReceiver("test");
let webhook: Webhook;
beforeAll(prepareDeliveries);
beforeEach(async () => {
  ({ webhook } = await givenWebhook({ url: receiver.url }));
});
afterEach(() => receiver.close());

const given = (values: Partial<Webhook>) => changeWebhook(webhook, values);
const reads = () => new MeteredReads(`user:${webhook.project_id}`, new Date());
const healthNow = async () => readHealth((await find(webhook.project_id, webhook.id)) ?? webhook, new Date(), reads());

test("a webhook is failing while nothing waits for it, and probing while something does", async () => {
  const probe_at = minutes(5);
  await given({ failing_since: minutes(-10), probe_at });
  expect(await healthNow()).toMatchObject({ state: "failing", next_probe_at: null });
  await givenWaiting(webhook);
  expect(await healthNow()).toMatchObject({ state: "probing", next_probe_at: probe_at });
});

test("the error is that of the last failed probe, whose delivery may be older than the newest ones", async () => {
  const failing_since = minutes(-10);
  await given({ failing_since });
  await givenWaiting(webhook, { at: new Date(minutes(-60)), due: new Date() });
  receiver.respondWith(503);
  await visitLine(webhook);
  expect(receiver.received).toHaveLength(1);
  // Ten newer deliveries hide it.
  for (let n = 1; n <= 10; n++) await givenDelivery(webhook, { at: new Date(minutes(-20 + n)) });
  const { state, since, last_error, next_probe_at } = await healthNow();
  expect({ state, since }).toEqual({ state: "probing", since: failing_since });
  expect(last_error).toMatchObject({ error_code: "http_status", hint: expect.stringContaining("503") });
  expect(Date.parse(next_probe_at ?? "")).toBeGreaterThan(Date.now());
  await changeWebhook(webhook, { probed_id: "expired" });
  expect(await healthNow()).toMatchObject({ state: "probing" });
});

test("the error is that of a delivery whose event has the time of the first failure", async () => {
  const failing_since = minutes(-10);
  await given({ failing_since });
  const failed = { number: 1, at: failing_since, duration_ms: 3, trigger: "schedule", error_code: "timeout" } as const;
  await givenDelivery(webhook, { at: new Date(failing_since), status: "failed", attempts: [failed] });
  expect(await healthNow()).toMatchObject({ last_error: { error_code: "timeout" } });
});

test.each([
  ["suspended, and then disabled", { suspended_at: minutes(-10), disabled_at: minutes(-5) }],
  ["disabled, and then suspended", { suspended_at: minutes(-5), disabled_at: minutes(-10) }],
  ["disabled", { disabled_at: minutes(-10) }],
  ["suspended", { suspended_at: minutes(-10) }],
])("the last success of a webhook that was %s is found behind what is held since", async (_, state) => {
  const success = { number: 1, at: minutes(-20), duration_ms: 3, trigger: "schedule" } as const;
  await given(state);
  await givenDelivery(webhook, { at: new Date(success.at), status: "succeeded", attempts: [success] });
  for (const age of [8, 7, 6]) await givenDelivery(webhook, { at: new Date(minutes(-age)), status: "held" });
  expect(await healthNow()).toMatchObject({ state: "disabled", last_success_at: success.at });
});

test("a probe that succeeds makes the webhook healthy, with all that waited sent", async () => {
  await given({ failing_since: minutes(-10) });
  for (const age of [3, 2, 1]) await givenWaiting(webhook, { at: new Date(minutes(-age)), due: new Date() });
  await visitLine(webhook);
  expect(receiver.received).toHaveLength(3);
  expect(await healthNow()).toMatchObject({ state: "healthy", last_error: null, last_success_at: expect.any(String) });
  expect(await wakeUpOf(webhook)).toBeUndefined();
});

describe("a webhook without a success is", () => {
  test("new, with deliveries that were not attempted and with failed tests", async () => {
    expect(await healthNow()).toMatchObject({ state: "new", since: null });
    await givenWaiting(webhook);
    await givenWaiting(webhook);
    expect(await healthNow()).toMatchObject({ state: "new" });
    const attempts = [{ number: 1, at: minutes(0), duration_ms: 3, trigger: "test", error_code: "timeout" } as const];
    for (let n = 1; n <= 3; n++) await givenDelivery(webhook, { test: true, attempts, at: new Date(minutes(n)) });
    expect(await healthNow()).toMatchObject({ state: "new" });
  });

  test("healthy while three newer deliveries wait, behind which an earlier one may have succeeded", async () => {
    for (let n = 1; n <= 3; n++) await givenWaiting(webhook);
    expect(await healthNow()).toMatchObject({ state: "healthy" });
  });
});

test.each([
  ["one query while the circuit is closed", 29, true, 1],
  ["three while it is open", 30, true, 3],
  ["two while it is open and nothing waits", 30, false, 2],
])("reading the health of a failing webhook costs %s", async (_, seconds, isWaiting, queries) => {
  if (isWaiting) await givenWaiting(webhook);
  const calls = watchDynamo();
  const now = new Date();
  await readHealth({ ...webhook, failing_since: addSeconds(now, -seconds), probed_id: "probe" }, now, reads());
  expect(calls.map(({ command }) => command)).toEqual(Array(queries).fill("QueryCommand"));
});

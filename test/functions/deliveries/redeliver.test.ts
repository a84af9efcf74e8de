import { randomUUID } from "node:crypto";
import type http from "node:http";
import { jest } from "@jest/globals";
import { change } from "../../../functions/deliveries/change-delivery.ts";
import { type Attempt, type Delivery, deliveryStatuses } from "../../../functions/deliveries/delivery.ts";
import { find } from "../../../functions/webhooks/webhook-store.ts";
import { requestAgain, visitLine } from "../../support/attempts.ts";
import { failDynamo, interceptDynamo, isCall, restoreAws } from "../../support/aws-calls.ts";
import { changeWebhook, givenDelivery, givenWaiting, givenWebhook, placesOf, rowOf } from "../../support/deliveries.ts";
import { eventually } from "../../support/eventually.ts";
import { fakeDate } from "../../support/fake-date.ts";
import { useReceiver } from "../../support/receiver.ts";
import { errorOf, useScenario } from "../../support/scenario.ts";
import { useService } from "../../support/service.ts";

const receiver = useReceiver("test");
const service = useService({ deliver: true });
const scenario = useScenario(service, () => ({ url: receiver.url }));
beforeEach(() => {
  process.env.RETRY_SCHEDULE = "0,0";
});
afterEach(() => {
  jest.useRealTimers();
  return receiver.close();
});

const pathOf = (id: string, webhook = scenario.path) => `${webhook}/deliveries/${id}/redeliver`;
const webhookNow = () => find(scenario.projectId, scenario.webhook.id);

async function redeliver({ id }: Delivery) {
  const { status, body } = await scenario.api.post(pathOf(id));
  expect(status).toBe(202);
  return body.data;
}

/** Waits until the delivery is finished and returns its row. */
const ended = (delivery: Delivery) =>
  eventually(async () => {
    const row = await rowOf(delivery);
    expect(row.status).not.toBe("pending");
    return row;
  });

const failedAttempts = (count: number): Attempt[] =>
  Array.from({ length: count }, (_, index) => ({
    number: index + 1,
    at: "2026-03-01T00:00:00.000Z",
    duration_ms: 5,
    status_code: 500,
    error_code: "http_status",
    trigger: "schedule",
  }));
/** Creates a delivery with this number of failed attempts. One that waits is due in an hour. */
function given(status: Delivery["status"], attempts: number): Promise<Delivery> {
  const made = { attempt_count: attempts, attempts: failedAttempts(attempts) };
  if (status !== "pending") return givenDelivery(scenario.webhook, { ...made, status });
  return givenWaiting(scenario.webhook, { ...made, due: new Date(Date.now() + 3_600_000), at: new Date() });
}

test("redeliver returns the delivery, pending, with an attempt due now", async () => {
  const { id, deployment_id, created_at } = await given("failed", 3);
  const before = Date.now();
  const { status, body } = await scenario.api.post(pathOf(id));
  const { next_attempt_at, ...rest } = body.data;
  expect({ status, rest }).toEqual({
    status: 202,
    rest: {
      id,
      webhook_id: scenario.webhook.id,
      event: "deploy.started",
      deployment_id,
      status: "pending",
      test: false,
      created_at,
      waiting_for: null,
      attempt_count: 3,
      last_attempt: expect.objectContaining({ error_code: "http_status", status_code: 500 }),
    },
  });
  expect(Date.parse(next_attempt_at)).toBeGreaterThanOrEqual(before);
  expect(Date.parse(next_attempt_at)).toBeLessThanOrEqual(Date.now());
});

test("redeliver renews the retention to 30 days from now and stores the time of the request", async () => {
  const delivery = await givenDelivery(scenario.webhook, { at: new Date("2026-03-01T00:00:00Z"), status: "failed" });
  expect(delivery.expires_at).toBe(Date.parse("2026-03-31T00:00:00Z") / 1000);
  const before = Date.now();
  await redeliver(delivery);
  const { expires_at, requested_at = "" } = await ended(delivery);
  const requestedAt = Date.parse(requested_at);
  expect(requestedAt).toBeGreaterThanOrEqual(before);
  expect(requestedAt).toBeLessThanOrEqual(Date.now());
  expect(expires_at).toBe(Math.floor(requestedAt / 1000) + 30 * 24 * 3600);
});

test.each(deliveryStatuses)(
  "redeliver sends a delivery that is %s again under the same id with the same body",
  async (status) => {
    const attempts = status === "held" || status === "cancelled" ? 0 : 2;
    const delivery = await given(status, attempts);
    await redeliver(delivery);
    const row = await ended(delivery);
    expect(row).toMatchObject({ status: "succeeded", attempt_count: attempts + 1 });
    expect(row.attempts?.slice(0, -1)).toEqual(failedAttempts(attempts));
    expect(row.attempts?.at(-1)).toMatchObject({ number: attempts + 1, trigger: "redeliver", status_code: 200 });
    expect(receiver.received).toHaveLength(1);
    const [request] = receiver.received;
    expect(request?.body).toBe(delivery.body);
    expect(request?.headers).toMatchObject({ "x-service-delivery": delivery.id, "webhook-id": delivery.id });
  },
);

test("redeliver sends a delivery now whose next attempt is planned in an hour, and leaves nothing of that plan", async () => {
  const delivery = await given("pending", 0);
  await redeliver(delivery);
  expect(await ended(delivery)).toMatchObject({ status: "succeeded", attempt_count: 1 });
  expect(await placesOf(scenario.webhook)).toEqual([]);
});

test("redeliver restarts the schedule, which is the trigger of the following attempts", async () => {
  receiver.respondWith(500);
  const delivery = await given("failed", 3);
  await redeliver(delivery);
  const { status, attempts = [] } = await ended(delivery);
  expect(status).toBe("failed");
  const newAttempts = attempts.slice(3).map(({ number, trigger }) => ({ number, trigger }));
  expect(newAttempts).toEqual([
    { number: 4, trigger: "redeliver" },
    { number: 5, trigger: "schedule" },
    { number: 6, trigger: "schedule" },
  ]);
});

test("redeliver returns 409 for a delivery with 50 attempts, also if the last is recorded meanwhile, and accepts one with 49", async () => {
  const delivery = await givenDelivery(scenario.webhook, { attempt_count: 50, status: "failed" });
  const { status, body } = await scenario.api.post(pathOf(delivery.id));
  expect([status, body.error.code]).toEqual([409, "conflict"]);
  expect(await rowOf(delivery)).toMatchObject({ status: "failed", attempt_count: 50 });
  const last = await givenDelivery(scenario.webhook, { attempt_count: 49, status: "failed" });
  interceptDynamo(async (call, send) => {
    if (isCall(call, "PutItem", "backlog")) {
      restoreAws();
      await change(last, (row) => row && { ...row, attempt_count: 50 });
    }
    return send();
  });
  expect((await scenario.api.post(pathOf(last.id))).status).toBe(409);
  const { id } = await redeliver(await givenDelivery(scenario.webhook, { attempt_count: 49, status: "failed" }));
  await receiver.waitFor(1);
  expect(receiver.received.map(({ headers }) => headers["x-service-delivery"])).toEqual([id]);
});

test("redeliver sends nothing if its entry in the audit log cannot be written", async () => {
  const delivery = await given("failed", 3);
  failDynamo((call) => isCall(call, "PutItem", "audit-events"));
  const response = await scenario.api.post(pathOf(delivery.id));
  restoreAws();
  expect(errorOf(response)).toEqual({ status: 503, code: "service_unavailable" });
  expect(await rowOf(delivery)).toEqual(delivery);
  expect(await placesOf(scenario.webhook)).toEqual([]);
});

test("a redelivery can be repeated, and each attempt is recorded", async () => {
  const delivery = await given("succeeded", 0);
  for (let round = 1; round <= 3; round++) {
    await redeliver(delivery);
    expect(await ended(delivery)).toMatchObject({ status: "succeeded", attempt_count: round });
  }
  expect(receiver.received).toHaveLength(3);
});

describe("a redelivery while an attempt is in flight", () => {
  /** Starts an attempt to which the receiver responds only when `respond` is called. */
  async function inFlight(status: number) {
    const waiting: http.ServerResponse[] = [];
    receiver.respondWith((_, response) => {
      if (receiver.received.length === 1) waiting.push(response);
      else response.end();
    });
    const delivery = await givenWaiting(scenario.webhook);
    await receiver.waitFor(1);
    return { delivery, respond: () => waiting[0]?.writeHead(status).end() };
  }

  test.each([
    ["that fails and has a retry in an hour", "3600", 500],
    ["that fails the delivery and disables the webhook", "0", 410],
    ["that succeeds", "0", 200],
  ])("%s, makes another attempt after it", async (_, schedule, status) => {
    process.env.RETRY_SCHEDULE = schedule;
    const { delivery, respond } = await inFlight(status);
    await redeliver(delivery);
    respond();
    await receiver.waitFor(2);
    expect(await ended(delivery)).toMatchObject({ status: "succeeded", attempt_count: 2 });
  });
});

test("a redelivery during an attempt restarts the schedule after that attempt", async () => {
  process.env.RETRY_SCHEDULE = "0";
  receiver.respondWith(async (_, response) => {
    if (receiver.received.length === 1) await redeliver(delivery);
    response.writeHead(500).end();
  });
  const delivery = await givenWaiting(scenario.webhook);
  await receiver.waitFor(1);
  const { status, attempts = [] } = await ended(delivery);
  expect(status).toBe("failed");
  expect(attempts.map(({ trigger }) => trigger)).toEqual(["schedule", "redeliver", "schedule"]);
});

test("sixty redeliveries of one delivery in parallel lead to one request, which is recorded", async () => {
  let respond = () => {};
  receiver.respondWith((_, response) => {
    respond = () => response.end();
  });
  const delivery = await given("failed", 8);
  const returned = await Promise.all(Array.from({ length: 60 }, () => redeliver(delivery)));
  expect(new Set(returned.map(({ id, status }) => `${id} ${status}`))).toEqual(new Set([`${delivery.id} pending`]));
  await receiver.waitFor(1);
  // All sixty calls are over, and the request is still in flight.
  expect(await redeliver(delivery)).toMatchObject({ id: delivery.id, status: "pending" });
  respond();
  expect(await ended(delivery)).toMatchObject({ status: "succeeded", attempt_count: 9 });
  expect(receiver.received).toHaveLength(1);
});

describe("a redelivery, requested while the worker is about to", () => {
  const minutes = (count: number) => new Date(Date.now() + count * 60_000).toISOString();
  test.each<[string, () => Promise<unknown>]>([
    ["hold the delivery, because the webhook is disabled", () => scenario.api.patch(scenario.path, { enabled: false })],
    [
      "let the delivery wait, because the circuit is open",
      () => changeWebhook(scenario.webhook, { failing_since: minutes(-10), probe_at: minutes(10) }),
    ],
  ])("%s, is sent anyway", async (_, change) => {
    // The message to the worker is delayed, so that only this test visits the line.
    const delivery = await givenWaiting(scenario.webhook, { due: new Date(Date.now() + 60_000) });
    await change();
    fakeDate().advance(61);
    interceptDynamo(async ({ command }, send) => {
      const output = await send();
      if (command !== "BatchGetItemCommand") return output;
      restoreAws();
      await requestAgain(delivery);
      return output;
    });
    await visitLine({ project_id: delivery.project_id, id: delivery.webhook_id });
    expect(await ended(delivery)).toMatchObject({ status: "succeeded", attempt_count: 1 });
    expect(receiver.received).toHaveLength(1);
  });
});

describe("a disabled webhook", () => {
  beforeEach(async () => {
    await scenario.api.patch(scenario.path, { enabled: false });
  });

  test("receives the redelivery and stays disabled", async () => {
    const before = await webhookNow();
    const delivery = await given("held", 0);
    await redeliver(delivery);
    expect(await ended(delivery)).toMatchObject({ status: "succeeded", attempt_count: 1 });
    expect(await webhookNow()).toEqual(before);
  });

  test.each([500, 410])("that returns %i receives it once", async (status) => {
    receiver.respondWith(status);
    const { disabled_at, disabled_reason } = (await webhookNow()) ?? {};
    const delivery = await given("held", 0);
    await redeliver(delivery);
    expect(await ended(delivery)).toMatchObject({ status: "failed", attempt_count: 1 });
    expect(receiver.received).toHaveLength(1);
    expect(await webhookNow()).toMatchObject({ disabled_at, disabled_reason });
  });
});

test("a redelivery is sent although the circuit is open, and a success closes the circuit", async () => {
  const failing_since = new Date(Date.now() - 600_000).toISOString();
  await changeWebhook(scenario.webhook, { failing_since, probe_at: new Date(Date.now() + 600_000).toISOString() });
  const delivery = await given("failed", 8);
  await redeliver(delivery);
  expect(await ended(delivery)).toMatchObject({ status: "succeeded" });
  await eventually(async () => expect(await webhookNow()).not.toHaveProperty("failing_since"));
  expect(await webhookNow()).not.toHaveProperty("probe_at");
});

describe("redeliver rejects", () => {
  test("an unknown id, an id that is not a UUID, and the id of another webhook's delivery with 404", async () => {
    const { webhook: sibling } = await givenWebhook({ projectId: scenario.projectId });
    const foreign = await givenDelivery(sibling, { status: "failed" });
    for (const id of [randomUUID(), "7", foreign.id]) {
      expect(errorOf(await scenario.api.post(pathOf(id)))).toEqual({ status: 404, code: "not_found" });
    }
    expect(await rowOf(foreign)).toEqual(foreign);
  });
});

import { type Attempt, type Delivery, deliveryStatuses } from "../../../../functions/deliveries/line/delivery.ts";
import { requestAgain, visitLine } from "../../../support/attempts.ts";
import { interceptDynamo, restoreAws } from "../../../support/aws-calls.ts";
import { changeWebhook, givenDelivery, givenWaiting, rowOf } from "../../../support/deliveries.ts";
import { eventually } from "../../../support/eventually.ts";
import { fakeDate } from "../../../support/fake-date.ts";
import { useReceiver } from "../../../support/receiver.ts";
import { useScenario } from "../../../support/scenario.ts";
import { useService } from "../../../support/service.ts";

const receiver = useReceiver("test");
const service = useService({ deliver: true });
const scenario = useScenario(service, () => ({ url: receiver.url }));
beforeEach(() => {
  process.env.RETRY_SCHEDULE = "0,0";
});
afterEach(() => receiver.close());

const pathOf = (id: string, webhook = scenario.path) => `${webhook}/deliveries/${id}/redeliver`;

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

test("redeliver sends a delivery again however many attempts it has, of which its row keeps the newest 50", async () => {
  const delivery = await given("failed", 50);
  await redeliver(delivery);
  const row = await ended(delivery);
  expect(row.attempts?.map(({ number }) => number)).toEqual(Array.from({ length: 50 }, (_, index) => index + 2));
  expect(row.attempt_count).toBe(51);
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

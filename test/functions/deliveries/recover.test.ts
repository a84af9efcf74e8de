import { makeAttempt } from "../../../functions/attempts/attempt.ts";
import { type Delivery, deliveryStatuses } from "../../../functions/deliveries/delivery.ts";
import { restoreAws, watchQueue } from "../../support/aws-calls.ts";
import { dueIds, givenDelivery, rowOf, rowsOf, takeDueAttempts } from "../../support/deliveries.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";
import {
  errorOf,
  expectForbidden,
  expectNotFound,
  newScenario,
  type Scenario,
  wrongFieldsOf,
} from "../../support/scenario.ts";
import { startTestService, type TestService } from "../../support/service.ts";

let service: TestService;
let receiver: Receiver;
let scenario: Scenario;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());
beforeEach(async () => {
  receiver = await startReceiver();
  scenario = await newScenario(service, { url: receiver.url });
});
afterEach(async () => {
  restoreAws();
  await takeDueAttempts();
  await receiver.close();
});

const start = Date.parse("2026-03-01T00:00:00.000Z");
const since = new Date(start).toISOString();
const post = (body?: unknown) => scenario.api.post(`${scenario.path}/recover`, body);

async function recover(body: object = { since }): Promise<number> {
  const answer = await post(body);
  expect({ status: answer.status, fields: Object.keys(answer.body.data) }).toEqual({ status: 202, fields: ["count"] });
  return answer.body.data.count;
}

/** Deliveries of events that were a second apart from `start` on, with these states. */
const given = (...statuses: Delivery["status"][]) =>
  Promise.all(
    statuses.map((status, index) => givenDelivery(scenario.webhook, { at: new Date(start + index * 1000), status })),
  );
const takenIds = async () => (await takeDueAttempts()).map(({ delivery_id }) => delivery_id);

describe("sends once more", () => {
  test("what failed or was held, and nothing else", async () => {
    const rows = await given(...deliveryStatuses);
    const before = new Map(rows.map((row) => [row.id, row]));
    expect(await recover()).toBe(2);
    for (const row of await rowsOf(scenario.webhook)) {
      const seen = before.get(row.id);
      const isRecovered = seen?.status === "failed" || seen?.status === "held";
      if (isRecovered) expect(row).toMatchObject({ status: "pending", trigger: "recover", attempt_count: 0 });
      else expect(row).toEqual(seen);
    }
    const recovered = rows.filter(({ status }) => status === "failed" || status === "held");
    expect((await takenIds()).sort()).toEqual(recovered.map(({ id }) => id).sort());
    for (const { id } of recovered) {
      const { due_shard = -1 } = (await rowsOf(scenario.webhook)).find((row) => row.id === id) ?? {};
      expect(await dueIds(due_shard)).toContain(id);
    }
  });

  test.each(["failed", "held"] as const)("what is %s alone, when that is asked for", async (status) => {
    const rows = await given("failed", "held", "succeeded", "failed", "held");
    expect(await recover({ since, status })).toBe(2);
    expect((await takenIds()).sort()).toEqual(rows.filter((row) => row.status === status).map(({ id }) => id));
  });

  test("the oldest first", async () => {
    const statuses = Array.from({ length: 35 }, (_, index) => (index % 2 === 0 ? "failed" : "held"));
    const rows = await given(...(statuses as Delivery["status"][]));
    const batches = watchQueue();
    expect(await recover()).toBe(35);
    const order = batches.flatMap(({ Entries }) => Entries.map(({ MessageBody }) => JSON.parse(MessageBody)));
    expect(order.map(({ delivery_id }) => delivery_id)).toEqual(rows.map(({ id }) => id));
  });

  test("under the same id, as an attempt that recover triggered, with the schedule from its start", async () => {
    const [delivery] = await given("failed");
    if (!delivery) throw new Error("there is no delivery");
    await recover();
    const [due] = await takeDueAttempts();
    receiver.answerWith(500);
    if (due) await makeAttempt(due);
    expect(receiver.received[0]?.headers["x-service-delivery"]).toBe(delivery.id);
    const row = await rowOf(delivery);
    expect(row).toMatchObject({ status: "pending", attempts: [{ number: 1, trigger: "recover", status_code: 500 }] });
    // The first wait of the schedule, give or take a fifth.
    const waits = Date.parse(row.next_attempt_at ?? "") - Date.now();
    expect(waits).toBeGreaterThan(1_000);
    expect(waits).toBeLessThan(6_001);
  });

  test("no test delivery", async () => {
    const test = await givenDelivery(scenario.webhook, { status: "failed", test: true });
    expect(await recover()).toBe(0);
    expect(await rowOf(test)).toEqual(test);
  });

  test("nothing that was recovered before", async () => {
    await given("failed", "held");
    expect([await recover(), await recover()]).toEqual([2, 0]);
    expect(await takenIds()).toHaveLength(2);
  });

  test("nothing of the project's other webhooks", async () => {
    const other = await newScenario(service);
    const foreign = await givenDelivery(other.webhook, { status: "failed" });
    expect(await recover()).toBe(0);
    expect(await rowOf(foreign)).toEqual(foreign);
  });

  test("nothing at all when there is nothing", async () => {
    expect(await recover()).toBe(0);
    expect(await takenIds()).toEqual([]);
  });
});

describe("since", () => {
  test.each([
    ["a millisecond before the first event", "2026-02-28T23:59:59.999Z", 3],
    ["the first event, that one included", "2026-03-01T00:00:00Z", 3],
    ["a millisecond after the first event", "2026-03-01T00:00:00.001Z", 2],
    ["the last event, in another time zone", "2026-03-01T02:00:02+02:00", 1],
    ["after the last event", "2026-03-01T00:00:02.001Z", 0],
    ["before all time", "1969-12-31T00:00:00Z", 3],
    ["the far future", "9999-12-31T23:59:59Z", 0],
  ])("%s", async (_, from, count) => {
    await given("failed", "held", "failed");
    expect(await recover({ since: from })).toBe(count);
  });
});

test("409 for a disabled webhook, which may have enabled it first", async () => {
  const rows = await given("held", "failed");
  await scenario.api.patch(scenario.path, { enabled: false });
  const answer = await post({ since });
  expect(errorOf(answer)).toEqual({ status: 409, code: "conflict" });
  expect(answer.body.error.message).toContain('{"enabled":true}');
  for (const row of rows) expect(await rowOf(row)).toEqual(row);
  await scenario.api.patch(scenario.path, { enabled: true });
  expect(await recover()).toBe(2);
});

describe("refuses", () => {
  test.each<[string, unknown, string]>([
    ["no body", undefined, "since"],
    ["no time", {}, "since"],
    ["a time of null", { since: null }, "since"],
    ["a number", { since: 1_772_323_200_000 }, "since"],
    ["a day", { since: "2026-03-01" }, "since"],
    ["a time without a zone", { since: "2026-03-01T00:00:00" }, "since"],
    ["a day that does not exist", { since: "2026-02-31T00:00:99Z" }, "since"],
    ["words", { since: "yesterday" }, "since"],
    ["another status", { since, status: "succeeded" }, "status"],
    ["a status of null", { since, status: null }, "status"],
    ["an unknown field", { since, until: since }, "until"],
  ])("%s, and sends nothing", async (_, body, field) => {
    const rows = await given("failed", "held");
    expect(wrongFieldsOf(await post(body))).toEqual([field]);
    for (const row of rows) expect(await rowOf(row)).toEqual(row);
  });

  test("a viewer, and sends nothing", async () => {
    const [row] = await given("failed");
    await expectForbidden(scenario.viewer.post(`${scenario.path}/recover`, { since }));
    expect(await rowsOf(scenario.webhook)).toEqual([row]);
  });

  test("what is not there for the caller", async () => {
    await expectNotFound(scenario, (path) => scenario.api.post(`${path}/recover`, { since }));
  });
});

test("may be asked with an API key of an admin", async () => {
  expect((await scenario.key.post(`${scenario.path}/recover`, { since })).body).toEqual({ data: { count: 0 } });
});

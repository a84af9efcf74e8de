import { DeleteCommand } from "@aws-sdk/lib-dynamodb";
import { type Delivery, deliveryStatuses } from "../../../../functions/deliveries/line/delivery.ts";
import { listCursor } from "../../../../functions/deliveries/log/list-cursor.ts";
import { dynamo } from "../../../../functions/foundation/platform/aws.ts";
import { tableName } from "../../../../functions/foundation/platform/env.ts";
import {
  givenDelivery,
  placesOf,
  rowOf,
  rowsOf,
  takeDeliveryMessages,
  wakeUpOf,
  workCall,
} from "../../../support/deliveries.ts";
import { useReceiver } from "../../../support/receiver.ts";
import { errorOf, invalidFieldsOf, newScenario, useScenario } from "../../../support/scenario.ts";
import { useService } from "../../../support/service.ts";

const receiver = useReceiver("test");
const service = useService();
const scenario = useScenario(service, () => ({ url: receiver.url }));
afterEach(() => takeDeliveryMessages());

const start = Date.parse("2026-03-01T00:00:00.000Z");
const since = new Date(start).toISOString();
const post = (body?: unknown) => scenario.api.post(`${scenario.path}/recover`, body);

/** Recovers in one call, which reaches the newest delivery. */
async function recover(body: object = { since }): Promise<number> {
  const { status, body: response } = await post(body);
  const { count, ...rest } = response.data;
  expect({ status, ...rest }).toEqual({ status: 202, complete: true, next_cursor: null });
  return count;
}

/** Creates deliveries with these statuses, of events one second apart from `start` on. */
const given = (...statuses: Delivery["status"][]) =>
  Promise.all(
    statuses.map((status, index) => givenDelivery(scenario.webhook, { at: new Date(start + index * 1000), status })),
  );
/** Returns the deliveries that wait, in the order in which the worker sends them. */
const waitingIds = async () => (await placesOf(scenario.webhook)).map(({ delivery_id }) => delivery_id);

describe("recover sends again", () => {
  test("failed and held deliveries, and no others", async () => {
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
    expect((await waitingIds()).sort()).toEqual(recovered.map(({ id }) => id).sort());
    expect(Date.parse((await wakeUpOf(scenario.webhook))?.due ?? "")).toBeLessThanOrEqual(Date.now());
    expect(await takeDeliveryMessages()).toEqual([workCall({ ...scenario.webhook, project_id: scenario.projectId })]);
  });

  test.each(["failed", "held", "shadowed"] as const)("only %s deliveries for that status", async (status) => {
    const rows = await given("failed", "held", "succeeded", "shadowed", "failed", "held", "shadowed");
    expect(await recover({ since, status })).toBe(2);
    expect((await waitingIds()).sort()).toEqual(rows.filter((row) => row.status === status).map(({ id }) => id));
  });

  test("the oldest delivery first", async () => {
    const statuses = Array.from({ length: 35 }, (_, index) => (index % 2 === 0 ? "failed" : "held"));
    const rows = await given(...(statuses as Delivery["status"][]));
    expect(await recover()).toBe(35);
    expect(await waitingIds()).toEqual(rows.map(({ id }) => id));
  });

  test("no test deliveries", async () => {
    const test = await givenDelivery(scenario.webhook, { status: "failed", test: true });
    expect(await recover()).toBe(0);
    expect(await rowOf(test)).toEqual(test);
  });

  test("no delivery that was recovered before", async () => {
    await given("failed", "held");
    expect([await recover(), await recover()]).toEqual([2, 0]);
    expect(await waitingIds()).toHaveLength(2);
  });

  test("no deliveries of another webhook", async () => {
    const other = await newScenario(service);
    const foreign = await givenDelivery(other.webhook, { status: "failed" });
    expect(await recover()).toBe(0);
    expect(await rowOf(foreign)).toEqual(foreign);
  });
});

describe("recover with since", () => {
  test.each([
    ["a millisecond before the first event", "2026-02-28T23:59:59.999Z", 3],
    ["the first event, inclusive", "2026-03-01T00:00:00Z", 3],
    ["a millisecond after the first event", "2026-03-01T00:00:00.001Z", 2],
    ["the last event, in another time zone", "2026-03-01T02:00:02+02:00", 1],
    ["after the last event", "2026-03-01T00:00:02.001Z", 0],
    ["before 1970", "1969-12-31T00:00:00Z", 3],
    ["the far future", "9999-12-31T23:59:59Z", 0],
  ])("%s", async (_, from, count) => {
    await given("failed", "held", "failed");
    expect(await recover({ since: from })).toBe(count);
  });
});

describe("recover with a cursor", () => {
  const cursorAfter = ({ webhook_id, id }: Delivery) =>
    listCursor({ after: id }, { scope: `recovery:${webhook_id}`, filters: {} });

  test("sends only later deliveries", async () => {
    const rows = await given("failed", "failed", "succeeded", "failed");
    expect(await recover({ since, cursor: cursorAfter(rows[1] as Delivery) })).toBe(1);
    expect(await waitingIds()).toEqual([rows[3]?.id]);
  });

  test("continues although the delivery at the cursor has expired", async () => {
    const rows = await given("failed", "failed");
    const [first] = rows;
    if (!first) throw new Error("no delivery given");
    const Key = { webhook_id: first.webhook_id, id: first.id };
    await dynamo().send(new DeleteCommand({ TableName: tableName("deliveries"), Key }));
    expect(await recover({ since, cursor: cursorAfter(first) })).toBe(1);
  });

  test("and a later since starts at since, with an earlier one at the cursor", async () => {
    const rows = await given("failed", "failed", "failed", "failed");
    const cursor = cursorAfter(rows[1] as Delivery);
    expect(await recover({ since: "2026-03-01T00:00:03Z", cursor })).toBe(1);
    expect(await recover({ since: "2026-01-01T00:00:00Z", cursor })).toBe(1);
    expect(await waitingIds()).toEqual([rows[3]?.id, rows[2]?.id]);
  });

  test("and another status than before sends the deliveries with that status", async () => {
    const rows = await given("failed", "held", "failed");
    expect(await recover({ since, status: "held", cursor: cursorAfter(rows[0] as Delivery) })).toBe(1);
    expect(await waitingIds()).toEqual([rows[1]?.id]);
  });

  test.each<[string, (own: Delivery, foreign: Delivery) => unknown]>([
    ["null", () => null],
    ["a number", () => 7],
    ["a list", () => ["A"]],
    ["an empty text", () => ""],
    ["a UUID", ({ id }) => id],
    ["one of another webhook", (_, foreign) => cursorAfter(foreign)],
    [
      "one of a list",
      ({ webhook_id, id }) => listCursor({ after: id }, { scope: `webhook:${webhook_id}`, filters: {} }),
    ],
    ["a changed digest", (own) => cursorAfter(own).replace(/.$/, (last) => (last === "A" ? "B" : "A"))],
    ["padding", (own) => `${cursorAfter(own)}=`],
    ["a trailing line break", (own) => `${cursorAfter(own)}\n`],
    ["the other base64 alphabet", () => "+/".repeat(21).concat("+")],
    ["only zero bytes", () => "A".repeat(43)],
    ["60 KB", () => "A".repeat(60_000)],
  ])("rejects %s, and sends nothing", async (_, cursorOf) => {
    const [own] = await given("failed");
    const other = await newScenario(service);
    const foreign = await givenDelivery(other.webhook, { at: new Date(start), status: "failed" });
    if (!own) throw new Error("no delivery given");
    expect(invalidFieldsOf(await post({ since, cursor: cursorOf(own, foreign) }))).toEqual(["cursor"]);
    expect(await rowOf(own)).toEqual(own);
  });
});

test("recover returns 409 for a disabled webhook, and works after enabling it", async () => {
  const rows = await given("held", "failed");
  await scenario.api.patch(scenario.path, { enabled: false });
  const response = await post({ since });
  expect(errorOf(response)).toEqual({ status: 409, code: "conflict" });
  expect(response.body.error.message).toContain('{"enabled":true}');
  for (const row of rows) expect(await rowOf(row)).toEqual(row);
  await scenario.api.patch(scenario.path, { enabled: true });
  expect(await recover()).toBe(2);
});

test("recover returns 409 for a webhook in shadow mode, and works after the switch to live", async () => {
  const rows = await given("shadowed", "failed");
  await scenario.api.patch(scenario.path, { mode: "shadow" });
  const response = await post({ since, status: "shadowed" });
  expect(errorOf(response)).toEqual({ status: 409, code: "conflict" });
  expect(response.body.error.message).toContain('{"mode":"live"}');
  for (const row of rows) expect(await rowOf(row)).toEqual(row);
  await scenario.api.patch(scenario.path, { mode: "live" });
  expect(await recover({ since, status: "shadowed" })).toBe(1);
});

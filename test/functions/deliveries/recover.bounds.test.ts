import { jest } from "@jest/globals";
import type { Delivery } from "../../../functions/deliveries/delivery.ts";
import { findByStatus } from "../../../functions/deliveries/delivery-list-store.ts";
import { reschedule, rescheduleAll } from "../../../functions/deliveries/delivery-store.ts";
import { inParallel } from "../../../functions/platform/parallel.ts";
import { interceptDynamo, interceptSqs, restoreAws } from "../../support/aws-calls.ts";
import { givenDelivery, rowOf, rowsOf, takeDueAttempts } from "../../support/deliveries.ts";
import { newScenario, type Scenario } from "../../support/scenario.ts";
import { startTestService, type TestService } from "../../support/service.ts";

/* Recovery of many deliveries: upper bounds of a call, and concurrent changes. */

let service: TestService;
let scenario: Scenario;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());
beforeEach(async () => {
  scenario = await newScenario(service);
});
afterEach(async () => {
  restoreAws();
  jest.restoreAllMocks();
  await takeDueAttempts();
});

const start = Date.parse("2026-03-01T00:00:00.000Z");

async function recover(): Promise<number> {
  const since = new Date(start).toISOString();
  const { status, body } = await scenario.api.post(`${scenario.path}/recover`, { since });
  expect(status).toBe(202);
  return body.data.count;
}

/** Creates deliveries with these statuses, of events one second apart from `start` on. */
const given = (...statuses: Delivery["status"][]) =>
  inParallel([...statuses.entries()], 20, ([index, status]) =>
    givenDelivery(scenario.webhook, { at: new Date(start + index * 1000), status }),
  );
const takenIds = async () => (await takeDueAttempts()).map(({ delivery_id }) => delivery_id);

describe("many rows to recover", () => {
  /** Creates failed deliveries, and succeeded ones where `isFailed` returns false, oldest first. */
  const givenMany = (count: number, isFailed = (_index: number) => true) =>
    given(
      ...Array.from({ length: count }, (_, index) => (isFailed(index) ? "failed" : "succeeded") as Delivery["status"]),
    );

  test("are found in pages, oldest first, each once, and rescheduled", async () => {
    const rows = await givenMany(1_200, (index) => index % 4 !== 0);
    const expected = rows.filter(({ status }) => status === "failed").map(({ id }) => id);
    const found: string[] = [];
    let pages = 0;
    for await (const page of findByStatus(scenario.webhook.id, new Date(start), ["failed", "held"])) {
      pages += 1;
      const rescheduled = await rescheduleAll(page, 120);
      expect(rescheduled.map(({ id }) => id)).toEqual(page.map(({ id }) => id));
      found.push(...rescheduled.map(({ id }) => id));
    }
    expect(pages).toBeGreaterThan(2);
    expect(found).toEqual(expected);
    const statuses = new Set((await rowsOf(scenario.webhook)).map(({ status }) => status));
    expect([...statuses].sort()).toEqual(["pending", "succeeded"]);
  });

  /** Recovers all, with a clock that jumps during the first page. */
  async function recoverWhile(jumpMs: number): Promise<number> {
    const now = Date.now.bind(Date);
    let lateMs = 0;
    jest.spyOn(Date, "now").mockImplementation(() => now() + lateMs);
    interceptDynamo(async ({ command }, send) => {
      if (command === "UpdateItemCommand") lateMs = jumpMs;
      return send();
    });
    return await recover();
  }

  test("that take 10 s are recovered in one call", async () => {
    await givenMany(600);
    expect(await recoverWhile(10_000)).toBe(600);
  });

  test("that take more than 20 s are continued by the next call", async () => {
    await givenMany(600);
    const first = await recoverWhile(20_001);
    expect(first).toBeGreaterThan(0);
    expect(first).toBeLessThan(600);
    restoreAws();
    // Freeze the clock, so that the duration limit does not end the call on a slow machine.
    jest.restoreAllMocks();
    jest.spyOn(Date, "now").mockReturnValue(Date.now());
    expect(first + (await recover())).toBe(600);
    expect(new Set(await takenIds()).size).toBe(600);
  });

  test("beyond 10,000 are left to the next call", async () => {
    const row = await givenDelivery(scenario.webhook, { status: "failed" });
    const Items = Array.from({ length: 4_000 }, (_, index) => ({ ...row, id: `row-${index}` }));
    let writes = 0;
    // Creating that many rows takes too long: return three full pages as DynamoDB would.
    interceptDynamo(async ({ command, input }, send) => {
      const isDeliveries = String(input.TableName).endsWith("-deliveries");
      if (isDeliveries && command === "QueryCommand") return { Items, LastEvaluatedKey: { id: "more" } };
      if (isDeliveries && command === "UpdateItemCommand") {
        writes += 1;
        return { Attributes: row };
      }
      return send();
    });
    jest.spyOn(Date, "now").mockReturnValue(Date.now());
    let queued = 0;
    interceptSqs(async ({ input }) => {
      queued += (input.Entries as unknown[]).length;
      return {};
    });
    expect(await recover()).toBe(10_000);
    expect({ writes, queued }).toEqual({ writes: 10_000, queued: 10_000 });
  });
});

test("recover skips a delivery that changed after it was read", async () => {
  const [changed, kept] = await given("failed", "failed");
  if (!changed || !kept) throw new Error("no deliveries given");
  interceptDynamo(async ({ command, input }, send) => {
    const output = await send();
    if (command === "QueryCommand" && String(input.TableName).endsWith("-deliveries")) {
      restoreAws();
      await reschedule(changed.webhook_id, changed.id, new Date(), 120);
    }
    return output;
  });
  expect(await recover()).toBe(1);
  expect(await takenIds()).toEqual([kept.id]);
  expect(await rowOf(changed)).toMatchObject({ status: "pending", trigger: "redeliver" });
});

test("one of three concurrent recover calls sends each delivery once", async () => {
  await given(...Array.from({ length: 40 }, () => "held" as const));
  const counts = await Promise.all([recover(), recover(), recover()]);
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(40);
  expect(await takenIds()).toHaveLength(40);
});

import { AsyncLocalStorage } from "node:async_hooks";
import { ConditionalCheckFailedException } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { jest } from "@jest/globals";
import type { Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import { findByStatus } from "../../../../functions/deliveries/log/delivery-list-store.ts";
import { inParallel } from "../../../../functions/foundation/platform/parallel.ts";
import { requestAgain } from "../../../support/attempts.ts";
import { interceptDynamo, interceptSqs, isCall, restoreAws } from "../../../support/aws-calls.ts";
import { givenDelivery, placesOf, rowOf, rowsOf, takeDeliveryMessages } from "../../../support/deliveries.ts";
import { fakeDate } from "../../../support/fake-date.ts";
import { useScenario } from "../../../support/scenario.ts";
import { useService } from "../../../support/service.ts";

/* Recovery of many deliveries: upper bounds of a call, and concurrent changes. */

const service = useService();
const scenario = useScenario(service);
afterEach(async () => {
  jest.restoreAllMocks();
  await takeDeliveryMessages();
});

const start = Date.parse("2026-03-01T00:00:00.000Z");

interface Result {
  count: number;
  complete: boolean;
  next_cursor: string | null;
}

async function recoverFrom(cursor?: string | null): Promise<Result> {
  const since = new Date(start).toISOString();
  const { status, body } = await scenario.api.post(`${scenario.path}/recover`, { since, ...(cursor && { cursor }) });
  expect({ status, fields: Object.keys(body.data) }).toEqual({
    status: 202,
    fields: ["count", "complete", "next_cursor"],
  });
  expect(body.data.next_cursor === null).toBe(body.data.complete);
  return body.data;
}
const recover = async () => (await recoverFrom()).count;

/** Creates deliveries with these statuses, of events one second apart from `start` on. */
const given = (...statuses: Delivery["status"][]) =>
  inParallel([...statuses.entries()], 20, ([index, status]) =>
    givenDelivery(scenario.webhook, { at: new Date(start + index * 1000), status }),
  );
const waitingIds = async () => (await placesOf(scenario.webhook)).map(({ delivery_id }) => delivery_id);

describe("many rows to recover", () => {
  /** Creates failed deliveries, and succeeded ones where `isFailed` returns false, oldest first. */
  const givenMany = (count: number, isFailed = (_index: number) => true) =>
    given(
      ...Array.from({ length: count }, (_, index) => (isFailed(index) ? "failed" : "succeeded") as Delivery["status"]),
    );

  /** Lets a query return 50 rows instead of 500. */
  const readSmallPages = () =>
    interceptDynamo((call, send) =>
      send(isCall(call, "Query", "deliveries") ? { ...call.input, Limit: 50 } : call.input),
    );

  /** Rows that are read cost less than those that are recovered. */
  const isTenth = (index: number) => index % 10 === 0;

  test("are found in pages, oldest first, each once, and wait in that order", async () => {
    const rows = await givenMany(110, isTenth);
    readSmallPages();
    const expected = rows.filter(({ status }) => status === "failed").map(({ id }) => id);
    const found: string[] = [];
    let pages = 0;
    const range = { since: new Date(start) };
    for await (const page of findByStatus(scenario.webhook.id, range, ["failed", "held"])) {
      pages += 1;
      found.push(...page.found.map(({ id }) => id));
    }
    expect(pages).toBeGreaterThan(2);
    expect(found).toEqual(expected);
    expect(await recover()).toBe(11);
    expect(await waitingIds()).toEqual(expected);
    const statuses = new Set((await rowsOf(scenario.webhook)).map(({ status }) => status));
    expect([...statuses].sort()).toEqual(["pending", "succeeded"]);
  });

  /** Recovers all, with a clock that jumps during the first page. */
  async function recoverWhile(jumpMs: number): Promise<Result> {
    const now = Date.now.bind(Date);
    let lateMs = 0;
    jest.spyOn(Date, "now").mockImplementation(() => now() + lateMs);
    readSmallPages();
    interceptDynamo(async (call, send) => {
      if (isCall(call, "PutItem", "deliveries")) lateMs = jumpMs;
      return send();
    });
    return await recoverFrom();
  }

  test("that take 10 s are recovered in one call", async () => {
    await givenMany(60, isTenth);
    expect(await recoverWhile(10_000)).toMatchObject({ count: 6, complete: true });
  });

  test("that take more than 20 s are continued at the cursor by the next call", async () => {
    await givenMany(60, isTenth);
    const first = await recoverWhile(20_001);
    expect(first).toMatchObject({ complete: false });
    expect(first.count).toBe(5);
    restoreAws();
    // Freeze the clock, so that the duration limit does not end the call on a slow machine.
    jest.restoreAllMocks();
    jest.spyOn(Date, "now").mockReturnValue(Date.now());
    expect(await recoverFrom(first.next_cursor)).toEqual({
      count: 1,
      complete: true,
      next_cursor: null,
    });
    expect(new Set(await waitingIds()).size).toBe(6);
  });

  test("behind thousands of succeeded ones are reached by continuing, not by repeating", async () => {
    const rows = await givenMany(251, (index) => index === 250);
    readSmallPages();
    // Each row read counts as a hundred, so that a call reads 250 of the rows instead of 25,000.
    interceptDynamo(async (call, send) => {
      const output = await send();
      const Items = output.Items as Delivery[];
      return isCall(call, "Query", "deliveries")
        ? { ...output, Items: [...Items, ...Items.flatMap((row) => Array(99).fill({ ...row, test: true }))] }
        : output;
    });
    jest.spyOn(Date, "now").mockReturnValue(Date.now());
    const first = await recoverFrom();
    expect(first).toMatchObject({ count: 0, complete: false });
    expect(await recoverFrom()).toEqual(first);
    expect(await recoverFrom(first.next_cursor)).toEqual({ count: 1, complete: true, next_cursor: null });
    expect(await waitingIds()).toEqual([rows.at(-1)?.id]);
  });

  test("end a call after 6,000 read units, when rows are large", async () => {
    await givenMany(160, () => false);
    readSmallPages();
    // Each page consumes as much as a megabyte of larger rows.
    interceptDynamo(async (call, send) => {
      const isScan = isCall(call, "Query", "deliveries");
      return isScan ? { ...(await send()), ConsumedCapacity: { CapacityUnits: 2_000 } } : send();
    });
    const first = await recoverFrom();
    expect(first).toMatchObject({ count: 0, complete: false });
    expect(await recoverFrom(first.next_cursor)).toEqual({ count: 0, complete: true, next_cursor: null });
  });

  describe("in full pages of failed rows", () => {
    const idOf = (index: number) => `01950000-0000-7000-8000-${String(index).padStart(12, "0")}`;
    /** Returns the id of the delivery after which a cursor continues. */
    const idIn = ({ next_cursor }: Result) =>
      Buffer.from(next_cursor ?? "", "base64url")
        .toString("hex")
        .slice(0, 32)
        .replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
    let seen: { writes: number; queued: number };

    /**
     * Returns the pages of so many failed rows, as DynamoDB would: creating the rows takes too long.
     * @param changed the indexes of rows that have changed since they were read
     */
    async function fakeRows(count: number, changed: number[] = []): Promise<void> {
      const row = await givenDelivery(scenario.webhook, { status: "failed" });
      seen = { writes: 0, queued: 0 };
      let returned = 0;
      interceptDynamo(async ({ command, input }, send) => {
        const isDeliveries = String(input.TableName).endsWith("-deliveries");
        if (isDeliveries && command === "QueryCommand") {
          const length = Math.min(500, count - returned);
          const Items = Array.from({ length }, (_, index) => ({ ...row, id: idOf(returned + index) }));
          returned += length;
          return { Items, ...(returned < count && { LastEvaluatedKey: { id: idOf(returned - 1) } }) };
        }
        if (isDeliveries && command === "PutItemCommand") {
          seen.writes += 1;
          const { id } = input.Item as { id: string };
          if (!changed.map(idOf).includes(id)) return {};
          const Item = marshall({ ...row, id, status: "succeeded" });
          throw new ConditionalCheckFailedException({ message: "changed", $metadata: {}, Item });
        }
        const isPlace = command !== "UpdateItemCommand" && String(input.TableName).endsWith("-backlog");
        return isPlace ? {} : send();
      });
      jest.spyOn(Date, "now").mockReturnValue(Date.now());
      interceptSqs(async ({ input }) => {
        seen.queued += (input.Entries as unknown[]).length;
        return {};
      });
    }

    test("stop after 10,000 deliveries, at the end of a page before the last", async () => {
      await fakeRows(20_000);
      const result = await recoverFrom();
      expect(result).toMatchObject({ count: 10_000, complete: false });
      expect(seen).toEqual({ writes: 10_000, queued: 1 });
      expect(idIn(result)).toBe(idOf(9_999));
    });

    test("that have changed since they were read do not count, and no call sends more than 10,000", async () => {
      await fakeRows(10_300, [8_500, 8_501, 9_999]);
      const first = await recoverFrom();
      expect(first).toMatchObject({ count: 9_997, complete: false });
      expect(await recoverFrom(first.next_cursor)).toEqual({ count: 300, complete: true, next_cursor: null });
    });

    test("are complete after exactly 10,000 deliveries", async () => {
      await fakeRows(10_000);
      expect(await recoverFrom()).toEqual({ count: 10_000, complete: true, next_cursor: null });
    });
  });
});

test("recover skips a delivery that changed after it was read", async () => {
  const [changed, kept] = await given("failed", "failed");
  if (!changed || !kept) throw new Error("no deliveries given");
  // A user's call, with other grants.
  const outside = AsyncLocalStorage.snapshot();
  interceptDynamo(async ({ command, input }, send) => {
    const output = await send();
    if (command === "QueryCommand" && String(input.TableName).endsWith("-deliveries")) {
      restoreAws();
      await outside(() => requestAgain(changed));
    }
    return output;
  });
  expect(await recover()).toBe(1);
  expect(await waitingIds()).toEqual([changed.id, kept.id]);
  expect(await rowOf(changed)).toMatchObject({ status: "pending", trigger: "redeliver" });
});

test("one of three recover calls in the same millisecond sends each delivery once", async () => {
  fakeDate();
  await given(...Array.from({ length: 40 }, () => "held" as const));
  const counts = await Promise.all([recover(), recover(), recover()]);
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(40);
  expect(await waitingIds()).toHaveLength(40);
});

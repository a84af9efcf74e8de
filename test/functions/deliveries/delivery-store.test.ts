import type { Attempt, Delivery, PendingDelivery } from "../../../functions/deliveries/delivery.ts";
import * as deliveries from "../../../functions/deliveries/delivery-store.ts";
import { isCall, repeatDynamo, restoreAws } from "../../support/aws-calls.ts";
import { givenDelivery, givenWebhook, newDelivery, prepareDeliveries, rowOf } from "../../support/deliveries.ts";

/*
 * Every write of a delivery is idempotent: when it took effect, its answer was lost and the SDK repeats it, the caller
 * learns that it took effect. And no write takes that of another sender for its own.
 */

beforeAll(prepareDeliveries);
afterEach(restoreAws);

const attemptOf = (number: number, duration_ms = 7): Attempt => {
  const at = new Date().toISOString();
  return { number, at, duration_ms, status_code: 503, error_code: "http_status", trigger: "schedule" };
};
const inAMinute = () => new Date(Date.now() + 60_000).toISOString();
const retry = (): deliveries.NextState => {
  const at = inAMinute();
  return { status: "pending", nextAttemptAt: at, due: { due_at: at, due_shard: 3 } };
};

interface Write {
  /** Whether the row exists before. */
  isStored: boolean;
  /** Runs before the write. */
  given?: (row: Delivery) => Promise<unknown>;
  /** Makes the write as one of several senders. Returns whether it took effect. */
  run: (delivery: PendingDelivery, sender: string) => Promise<boolean>;
  /** How many of two concurrent senders succeed. */
  winners: 1 | 2;
}

const writes: Record<string, Write> = {
  insertAttempted: {
    isStored: false,
    run: (delivery, sender) => deliveries.insertAttempted(delivery, attemptOf(1), retry(), sender),
    winners: 1,
  },
  "insert of a row that is being sent": {
    isStored: false,
    run: (delivery, sender) => deliveries.insert({ ...delivery, sending_until: inAMinute(), sending_id: sender }),
    winners: 1,
  },
  claimSending: {
    isStored: true,
    run: (delivery, sender) => deliveries.claimSending(delivery, sender, new Date(), inAMinute()),
    winners: 1,
  },
  recordAttempt: {
    isStored: true,
    run: (delivery, sender) => deliveries.recordAttempt(delivery, attemptOf(1), retry(), sender),
    winners: 1,
  },
  "recordAttempt of a success": {
    isStored: true,
    run: (delivery, sender) => deliveries.recordAttempt(delivery, attemptOf(1), { status: "succeeded" }, sender),
    winners: 1,
  },
  recordOvertaken: {
    isStored: true,
    given: ({ webhook_id, id }) => deliveries.reschedule(webhook_id, id, new Date(), 120),
    run: (delivery, sender) => deliveries.recordOvertaken(delivery, attemptOf(1), sender),
    winners: 1,
  },
  recordAfterAnother: {
    isStored: true,
    run: async (delivery, sender) =>
      (await deliveries.recordAfterAnother(delivery, attemptOf(1), false, sender)) !== undefined,
    winners: 1,
  },
  "recordAfterAnother of a success": {
    isStored: true,
    run: async (delivery, sender) =>
      (await deliveries.recordAfterAnother(delivery, attemptOf(1), true, sender)) !== undefined,
    winners: 1,
  },
  reschedule: {
    isStored: true,
    run: async ({ webhook_id, id }) => (await deliveries.reschedule(webhook_id, id, new Date(), 120)).isNew,
    winners: 1,
  },
  "rescheduleAll of a failed delivery": {
    isStored: true,
    given: async (row) => deliveries.recordAttempt(row, attemptOf(1), { status: "failed" }, "before"),
    run: async (delivery) => (await deliveries.rescheduleAll([{ ...delivery, status: "failed" }], 120)).length === 1,
    winners: 1,
  },
  park: { isStored: true, run: (delivery) => deliveries.park(delivery, inAMinute()), winners: 2 },
  insertParked: { isStored: false, run: (delivery) => deliveries.insertParked(delivery, inAMinute()), winners: 2 },
};

describe.each(Object.entries(writes))("%s", (_, { isStored, given, run, winners }) => {
  let delivery: PendingDelivery;
  beforeEach(async () => {
    const { webhook } = await givenWebhook();
    delivery = isStored ? ((await givenDelivery(webhook)) as PendingDelivery) : newDelivery(webhook);
    await given?.(delivery);
  });

  test("takes effect once and succeeds when the SDK repeats it", async () => {
    const before = isStored ? (await rowOf(delivery)).attempt_count : 0;
    repeatDynamo((call) => isCall(call, "PutItem", "deliveries") || isCall(call, "UpdateItem", "deliveries"));
    expect(await run(delivery, "one")).toBe(true);
    restoreAws();
    const { attempts = [], attempt_count } = await rowOf(delivery);
    expect(attempts).toHaveLength(attempt_count);
    expect(attempt_count - before).toBeLessThanOrEqual(1);
  });

  test(`succeeds for ${winners} of two senders`, async () => {
    const results = [await run(delivery, "one"), await run(delivery, "two")];
    expect(results.filter(Boolean)).toHaveLength(winners);
    expect(results[0]).toBe(true);
  });
});

test("one of many concurrent redeliveries is new, the others return the row", async () => {
  const { webhook } = await givenWebhook();
  const { id } = await givenDelivery(webhook);
  const now = Date.now();
  const results = await Promise.all(
    Array.from({ length: 20 }, (_, index) => deliveries.reschedule(webhook.id, id, new Date(now + index), 120)),
  );
  expect(results.filter(({ isNew }) => isNew)).toHaveLength(1);
  expect(new Set(results.map(({ delivery }) => delivery.requested_at)).size).toBe(1);
});

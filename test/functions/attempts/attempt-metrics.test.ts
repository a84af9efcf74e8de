import { type AttemptEffects, attemptMetrics } from "../../../functions/attempts/attempt-metrics.ts";
import type { Attempt, Delivery } from "../../../functions/deliveries/delivery.ts";
import { metrics } from "../../../functions/manifest/metrics.ts";

const created_at = "2026-11-21T12:00:00.500Z";
const delivery = {
  arrived_at: "2026-11-21T12:00:00.000Z",
  created_at,
  next_attempt_at: created_at,
  attempt_count: 0,
  status: "pending",
} as Delivery;
const success: Attempt = { number: 1, at: "2026-11-21T12:00:01.000Z", duration_ms: 70, trigger: "schedule" };
const failure: Attempt = { ...success, error_code: "http_status", status_code: 500 };
const ended: AttemptEffects = { isDecisive: true, isOver: true, hasDisabled: false };
const goesOn = { ...ended, isOver: false };

/** What is counted, by the metrics' keys. */
const measured = (changes: Partial<Delivery>, attempt: Attempt, came = ended, hasWaitedForSlot = false) =>
  JSON.parse(JSON.stringify(attemptMetrics({ ...delivery, ...changes }, attempt, hasWaitedForSlot, came)));

const first = { attempts: 1, firstAttemptSuccess: 1, eventToFirstAttempt: 1_000 };

test.each<[string, object, object]>([
  ["a first attempt that succeeds", measured({}, success), { ...first, deliveryLatency: 1_070 }],
  ["a first attempt that fails", measured({}, failure, goesOn), { ...first, firstAttemptSuccess: 0 }],
  [
    "a retry that succeeds",
    measured({ attempt_count: 1 }, { ...success, number: 2 }),
    { attempts: 1, retries: 1, deliveryLatency: 1_070 },
  ],
  [
    "a retry that fails",
    measured({ attempt_count: 1 }, { ...failure, number: 2 }, goesOn),
    { attempts: 1, retries: 1 },
  ],
  [
    "the last retry",
    measured({ attempt_count: 7 }, { ...failure, number: 8 }),
    { attempts: 1, retries: 1, exhausted: 1 },
  ],
  [
    "an answer 410",
    measured({}, failure, { ...ended, hasDisabled: true }),
    { ...first, firstAttemptSuccess: 0, exhausted: 1, webhooksDisabled: 1 },
  ],
  [
    "an address that is not public",
    measured({}, { ...failure, error_code: "address_blocked" }, goesOn),
    { ...first, firstAttemptSuccess: 0, blockedAddresses: 1 },
  ],
])("%s counts for what it is", (_, actual, expected) => expect(actual).toEqual(expected));

test.each<[string, object, object]>([
  ["a sample that succeeds", measured({ test: true }, { ...success, trigger: "test" }), { attempts: 1 }],
  ["a sample that fails", measured({ test: true }, { ...failure, trigger: "test" }), { attempts: 1 }],
  ["a redelivery", measured({ requested_at: created_at }, { ...success, trigger: "redeliver" }), { attempts: 1 }],
  [
    "a held delivery, recovered",
    measured({ requested_at: created_at }, { ...success, trigger: "recover" }),
    { attempts: 1 },
  ],
  [
    "a retry after a redelivery",
    measured({ requested_at: created_at, attempt_count: 3 }, { ...success, number: 4 }),
    { attempts: 1, retries: 1 },
  ],
  [
    "a first attempt that the breaker put off",
    measured({ next_attempt_at: "2026-11-21T12:10:00.000Z" }, success),
    { attempts: 1, deliveryLatency: 1_070 },
  ],
  [
    "a first attempt that waited for a busy receiver",
    measured({}, success, ended, true),
    { attempts: 1, deliveryLatency: 1_070 },
  ],
  [
    "an attempt that another process has recorded, or none",
    measured({}, success, { ...ended, isDecisive: false }),
    { attempts: 1 },
  ],
])("%s says nothing about first attempts, nor about times that are not ours", (_, actual, expected) =>
  expect(actual).toEqual(expected),
);

test("a row from before arrivals were kept counts from its creation", () => {
  const { arrived_at, ...old } = delivery;
  expect(attemptMetrics(old, success, false, ended)).toMatchObject({ eventToFirstAttempt: 500, deliveryLatency: 570 });
});

test("clocks that disagree make no negative time", () => {
  expect(measured({ arrived_at: "2026-11-21T12:00:09.000Z" }, success)).toMatchObject({ eventToFirstAttempt: 0 });
});

test("what is measured has a row", () => {
  expect(Object.keys(metrics)).toEqual(
    expect.arrayContaining(Object.keys(attemptMetrics(delivery, success, false, ended))),
  );
});

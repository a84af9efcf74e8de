import type { Attempt, Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import { type AttemptEffects, attemptMetrics } from "../../../../functions/deliveries/sending/attempt-metrics.ts";
import { metrics } from "../../../../functions/foundation/manifest/metrics.ts";

const created_at = "2026-11-21T12:00:00.500Z";
const delivery = {
  event_received_at: "2026-11-21T12:00:00.000Z",
  created_at,
  attempt_count: 0,
  status: "pending",
} as Delivery;
const success: Attempt = { number: 1, at: "2026-11-21T12:00:01.000Z", duration_ms: 70, trigger: "schedule" };
const failure: Attempt = { ...success, error_code: "http_status", status_code: 500 };
const last: AttemptEffects = { isDecisive: true, isLast: true, hasDisabledWebhook: false };
const retried = { ...last, isLast: false };

/** The metrics that have a value, by key. */
const measured = (changes: Partial<Delivery>, attempt: Attempt, effects = last, road: "carried" | "line" = "carried") =>
  JSON.parse(JSON.stringify(attemptMetrics({ ...delivery, ...changes }, attempt, road, effects)));

const first = { attempts: 1, firstAttemptSuccess: 1, eventToFirstAttempt: 1_000 };

test.each<[string, object, object]>([
  ["a first attempt that succeeds", measured({}, success), { ...first, deliveryLatency: 1_070 }],
  ["a first attempt that fails", measured({}, failure, retried), { ...first, firstAttemptSuccess: 0 }],
  [
    "a retry that succeeds",
    measured({ attempt_count: 1 }, { ...success, number: 2 }),
    { attempts: 1, retries: 1, deliveryLatency: 1_070 },
  ],
  [
    "a retry that fails",
    measured({ attempt_count: 1 }, { ...failure, number: 2 }, retried),
    { attempts: 1, retries: 1 },
  ],
  [
    "the last retry",
    measured({ attempt_count: 7 }, { ...failure, number: 8 }),
    { attempts: 1, retries: 1, exhausted: 1 },
  ],
  [
    "a 410 response",
    measured({}, failure, { ...last, hasDisabledWebhook: true }),
    { ...first, firstAttemptSuccess: 0, exhausted: 1, webhooksDisabled: 1 },
  ],
  [
    "an address that is not public",
    measured({}, { ...failure, error_code: "address_blocked" }, retried),
    { ...first, firstAttemptSuccess: 0, blockedAddresses: 1 },
  ],
])("%s is counted", (_, actual, expected) => expect(actual).toEqual(expected));

test.each<[string, object, object]>([
  ["a test delivery that succeeds", measured({ test: true }, { ...success, trigger: "test" }), { attempts: 1 }],
  ["a test delivery that fails", measured({ test: true }, { ...failure, trigger: "test" }), { attempts: 1 }],
  ["a redelivery", measured({ requested_at: created_at }, { ...success, trigger: "redeliver" }), { attempts: 1 }],
  ["a recovered delivery", measured({ requested_at: created_at }, { ...success, trigger: "recover" }), { attempts: 1 }],
  [
    "a retry after a redelivery",
    measured({ requested_at: created_at, attempt_count: 3 }, { ...success, number: 4 }),
    { attempts: 1, retries: 1 },
  ],
  [
    "a first attempt that waited in the backlog",
    measured({}, success, last, "line"),
    { attempts: 1, deliveryLatency: 1_070 },
  ],
  [
    "an attempt that this process has not recorded",
    measured({}, success, { ...last, isDecisive: false }),
    { attempts: 1 },
  ],
])("%s has no first-attempt metrics", (_, actual, expected) => expect(actual).toEqual(expected));

test("latency starts at created_at for a row without event_received_at", () => {
  const { event_received_at, ...old } = delivery;
  expect(attemptMetrics(old, success, "carried", last)).toMatchObject({
    eventToFirstAttempt: 500,
    deliveryLatency: 570,
  });
});

test("latency is 0 when the clock of SQS is ahead", () => {
  expect(measured({ event_received_at: "2026-11-21T12:00:09.000Z" }, success)).toMatchObject({
    eventToFirstAttempt: 0,
  });
});

test("every measured value has a metric row", () => {
  expect(Object.keys(metrics)).toEqual(
    expect.arrayContaining(Object.keys(attemptMetrics(delivery, success, "carried", last))),
  );
});

import { type Health, healthOf, type ReadAttempt } from "../../../../functions/webhooks/webhook/health.ts";

const now = new Date("2026-03-01T12:00:00.000Z");
const at = (seconds: number) => new Date(now.getTime() + seconds * 1000).toISOString();
const success = (seconds: number): ReadAttempt => ({ at: at(seconds), status_code: 200, isTest: false });
const failure = (seconds: number, status_code = 500): ReadAttempt => ({
  at: at(seconds),
  error_code: "http_status",
  status_code,
  isTest: false,
});
const healthy: Health = { state: "healthy", since: null, last_success_at: null, last_error: null, next_probe_at: null };

type Webhook = Parameters<typeof healthOf>[0];

test.each<[string, Webhook, boolean, Partial<Health>]>([
  ["of which no delivery was read is healthy", {}, false, {}],
  ["that is marked as slow is slow", { slow_since: at(-9) }, false, { state: "slow", since: at(-9) }],
  ["that began to fail is failing", { failing_since: at(-9) }, false, { state: "failing", since: at(-9) }],
  [
    "that fails for 29 s is failing, although deliveries of an earlier outage wait",
    { failing_since: at(-29), probe_at: at(-1) },
    true,
    { state: "failing", since: at(-29) },
  ],
  [
    "that asked for a pause 29 s after it began to fail is probing, at the end of the pause",
    { failing_since: at(-29), probe_at: at(9) },
    true,
    { state: "probing", since: at(-29), next_probe_at: at(9) },
  ],
  [
    "whose circuit is open is failing while no delivery waits for a probe",
    { failing_since: at(-99), probe_at: at(9) },
    false,
    { state: "failing", since: at(-99) },
  ],
  [
    "whose circuit is open is probing while deliveries wait",
    { failing_since: at(-99), probe_at: at(9), slow_since: at(-300) },
    true,
    { state: "probing", since: at(-99), next_probe_at: at(9) },
  ],
  [
    "with an overdue probe is probing now",
    { failing_since: at(-99), probe_at: at(-9) },
    true,
    { state: "probing", since: at(-99), next_probe_at: at(0) },
  ],
  [
    "without an earlier probe is probing now",
    { failing_since: at(-99) },
    true,
    { state: "probing", since: at(-99), next_probe_at: at(0) },
  ],
  [
    "that fails since a later time of another clock is failing",
    { failing_since: at(5) },
    false,
    { state: "failing", since: at(5) },
  ],
  ["in shadow mode is in shadow", { mode: "shadow", failing_since: at(-9) }, false, { state: "shadow" }],
  [
    "that is disabled is disabled, whatever else is true",
    {
      mode: "shadow",
      disabled_at: at(-9),
      failing_since: at(-99),
      probe_at: at(9),
      slow_since: at(-300),
      suspended_at: at(-1),
    },
    true,
    { state: "disabled", since: at(-9) },
  ],
  ["of a suspended project is disabled", { suspended_at: at(-9) }, false, { state: "disabled", since: at(-9) }],
])("a webhook %s", (_, webhook, hasWaiting, expected) => {
  expect(healthOf(webhook, { attempts: [], isComplete: false, hasWaiting }, now)).toEqual({ ...healthy, ...expected });
});

test.each<[string, ReadAttempt[], Webhook, Health["state"]]>([
  ["was never called is new", [], {}, "new"],
  ["failed test deliveries only is new", [{ ...failure(-9), isTest: true }], {}, "new"],
  ["failed before it was enabled again is new", [failure(-9)], {}, "new"],
  ["had its first success is healthy", [failure(-9), success(-3)], {}, "healthy"],
  ["had its first success with a test delivery is healthy", [{ ...success(-3), isTest: true }], {}, "healthy"],
  ["fails its first attempts is failing", [failure(-9)], { failing_since: at(-9) }, "failing"],
  ["was disabled before the first is disabled", [], { disabled_at: at(-9) }, "disabled"],
])("a webhook that %s", (_, attempts, webhook, state) => {
  expect(healthOf(webhook, { attempts, isComplete: true, hasWaiting: false }, now).state).toBe(state);
});

test("last_success_at is the latest success in whatever order the attempts are, also of a test delivery", () => {
  const healthWith = (attempts: ReadAttempt[]) =>
    healthOf({}, { attempts, isComplete: true, hasWaiting: false }, now).last_success_at;
  expect(healthWith([success(-9), success(-3), failure(-1), success(-6)])).toBe(at(-3));
  expect(healthWith([success(-9), { ...success(-3), isTest: true }])).toBe(at(-3));
  expect(healthWith([failure(-3)])).toBeNull();
});

describe("last_error", () => {
  const stored = { at: at(-60), error_code: "connection_refused" as const };
  const lastError = (webhook: Webhook, attempts: ReadAttempt[]) =>
    healthOf(webhook, { attempts, isComplete: true, hasWaiting: false }, now).last_error;

  test("is null for a webhook that has not failed since its last success", () => {
    expect(lastError({}, [failure(-9), success(-3)])).toBeNull();
  });

  test("is the stored failure while no later one was read", () => {
    expect(lastError({ failing_since: at(-60), last_error: stored }, [failure(-300), success(-200)])).toEqual({
      error_code: "connection_refused",
      hint: expect.stringContaining("Nothing accepts connections"),
    });
  });

  test("is the latest failure that was read, with its own hint", () => {
    expect(lastError({ failing_since: at(-60), last_error: stored }, [failure(-3, 401), failure(-9)])).toEqual({
      error_code: "http_status",
      hint: expect.stringContaining("401"),
    });
  });

  test("is never that of a test delivery", () => {
    expect(lastError({ failing_since: at(-60), last_error: stored }, [{ ...failure(-3), isTest: true }])).toMatchObject(
      {
        error_code: "connection_refused",
      },
    );
  });

  test("is null when the failure is not known", () => {
    expect(lastError({ failing_since: at(-60) }, [failure(-300)])).toBeNull();
  });

  test("stays when the webhook is disabled", () => {
    const gone = {
      failing_since: at(-60),
      disabled_at: at(-60),
      last_error: { ...stored, status_code: 410, error_code: "http_status" as const },
    };
    expect(lastError(gone, [])?.hint).toContain("410");
  });
});

import type {
  Certification,
  Probe,
  ProbeResult,
} from "../../../../functions/deliveries/certification/certification.ts";
import { type CheckName, toResponse } from "../../../../functions/deliveries/certification/certification-presenter.ts";

const now = new Date("2026-11-21T04:04:29.027Z");
const accepted: ProbeResult = { duration_ms: 40, status_code: 204 };
const returned = (status_code: number): ProbeResult => ({ duration_ms: 30, status_code, error_code: "http_status" });
const perfect: Record<Probe, ProbeResult> = {
  valid: accepted,
  repeated: accepted,
  unusual_body: accepted,
  forged_signature: returned(401),
  stale_timestamp: returned(400),
  cut_body: returned(499),
};

function reportOf(results: Partial<Record<Probe, ProbeResult>>) {
  const times = { created_at: now.toISOString(), finished_at: now.toISOString() };
  const certification: Certification = {
    webhook_id: "certification:webhook",
    id: "id",
    expires_at: 0,
    ...times,
    results,
  };
  return toResponse(certification, now);
}

const checkOf = (name: CheckName, results: Partial<Record<Probe, ProbeResult>>) =>
  reportOf(results).checks.find(({ check }) => check === name);

test("the report of a receiver that passes has the webhook's id, and no hints", () => {
  const { webhook_id, passed, checks } = reportOf(perfect);
  expect({ webhook_id, passed }).toEqual({ webhook_id: "webhook", passed: true });
  expect(checks.map(({ passed, hint }) => [passed, hint])).toEqual(Array(7).fill([true, null]));
});

test.each<[Probe, ProbeResult, boolean]>([
  ["valid", { duration_ms: 1, status_code: 200 }, true],
  ["valid", { duration_ms: 1, status_code: 299 }, true],
  ["valid", returned(304), false],
  ["valid", { duration_ms: 15_000, status_code: 200, error_code: "timeout" }, false],
  ["forged_signature", returned(400), true],
  ["forged_signature", returned(404), true],
  ["forged_signature", returned(399), false],
  ["forged_signature", returned(500), false],
  ["forged_signature", returned(408), false],
  ["forged_signature", returned(429), false],
  ["forged_signature", { duration_ms: 15_000, status_code: 401, error_code: "timeout" }, false],
  ["forged_signature", { duration_ms: 1, error_code: "connection_reset" }, false],
])("the check %s of the result %j: passed is %s", (probe, result, passed) => {
  expect(reportOf({ ...perfect, [probe]: result }).passed).toBe(passed);
  const check = checkOf(probe, { ...perfect, [probe]: result });
  expect(check?.passed).toBe(passed);
  expect(check?.hint).toEqual(passed ? null : expect.stringMatching(/\w.*\.$/));
});

test.each<[CheckName, string, Partial<Record<Probe, ProbeResult>>, string]>([
  ["valid", "401", { valid: returned(401) }, "did not accept the signature"],
  ["valid", "410", { valid: returned(410) }, "a delivery with this response disables the webhook"],
  ["repeated", "409", { repeated: returned(409) }, "returned 409: return 2xx for a delivery that was received before"],
  ["unusual_body", "401", { unusual_body: returned(401) }, "over the raw bytes of the body"],
  [
    "unusual_body",
    "401, as valid",
    { unusual_body: returned(401), valid: returned(401) },
    "did not accept the signature",
  ],
  ["unusual_body", "a timeout", { unusual_body: { duration_ms: 15_000, error_code: "timeout" } }, "within 15 seconds"],
  ["forged_signature", "200", { forged_signature: accepted }, "signed with another secret"],
  ["forged_signature", "302", { forged_signature: returned(302) }, "redirects are not followed"],
  ["stale_timestamp", "200", { stale_timestamp: accepted }, "Only the Standard Webhooks scheme protects"],
  ["cut_body", "200", { cut_body: accepted }, "over the complete raw body"],
  ["cut_body", "500", { cut_body: returned(500) }, "respond with 401"],
])("the hint of %s for %s says how to fix the receiver", (check, _, changes, hint) => {
  expect(checkOf(check, { ...perfect, ...changes })?.hint).toContain(hint);
});

test.each([
  [599_999, "running"],
  [600_000, "unfinished"],
])("a certification without results is, %i ms after its request, %s", (ms, status) => {
  const created_at = new Date(now.getTime() - ms).toISOString();
  const certification = { webhook_id: "certification:webhook", id: "id", created_at, expires_at: 0 };
  expect(toResponse(certification, now)).toMatchObject({ status, passed: null, checks: [] });
});

test("the response time is that of the slowest request", () => {
  const slow = { duration_ms: 14_900, status_code: 204 };
  expect(checkOf("response_time", { ...perfect, unusual_body: slow })).toMatchObject({
    passed: true,
    duration_ms: 14_900,
  });
});

test.each([undefined, 401])(
  "the response time does not pass without a complete response (status %s)",
  (status_code) => {
    const reset = { duration_ms: 1, error_code: "connection_reset", status_code } as const;
    const hint = expect.stringContaining("The connection was closed before the response was complete");
    const shown = { ...reset, status_code: status_code ?? null, passed: false, hint };
    expect(checkOf("response_time", { ...perfect, cut_body: reset })).toMatchObject(shown);
  },
);

test("without a single request, every check says that nothing was sent", () => {
  const { passed, checks } = reportOf({});
  expect(passed).toBe(false);
  for (const check of checks)
    expect(check).toMatchObject({
      passed: false,
      status_code: null,
      duration_ms: null,
      hint: expect.stringContaining("Nothing was sent"),
    });
});

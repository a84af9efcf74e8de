import type { Attempt } from "../../../../functions/deliveries/line/delivery.ts";
import type { FailureCode } from "../../../../functions/foundation/events/failure-code.ts";
import { failureHint } from "../../../../functions/webhooks/receiver/failure-hints.ts";

const attemptWith = (outcome: Partial<Attempt>): Attempt => ({
  number: 1,
  at: "2026-01-01T00:00:00.000Z",
  duration_ms: 12,
  trigger: "schedule",
  ...outcome,
});
const hintOfStatus = (status_code: number, detail?: string) =>
  failureHint(attemptWith({ error_code: "http_status", status_code, detail })) ?? "";

test.each([200, 204, 299])("a success with %i has no hint", (status_code) => {
  expect(failureHint(attemptWith({ status_code }))).toBeUndefined();
});

test.each<[FailureCode, RegExp]>([
  ["timeout", /^Respond within 15 seconds/],
  ["dns_error", /does not resolve.*DNS/],
  ["connection_refused", /Nothing accepts connections.*firewall/],
  ["connection_reset", /connection was closed before the response was complete/],
  ["tls_error", /TLS connection failed/],
  ["address_blocked", /not public/],
  ["invalid_response", /not valid HTTP\/1\.1/],
])("%s has a hint that matches %s", (error_code, expected) => {
  expect(failureHint(attemptWith({ error_code }))).toMatch(expected);
});

test("the hint for a timeout without a connection does not mention the response time", () => {
  const hint = failureHint(attemptWith({ error_code: "timeout", detail: "NOT_CONNECTED" }));
  expect(hint).toMatch(/^No connection was established: .*reachable.*firewall/);
  expect(hint).not.toContain("15 seconds");
});

test("the hint for a port that is not allowed names the port, not the address", () => {
  const hint = failureHint(attemptWith({ error_code: "address_blocked", detail: "PORT_BLOCKED" }));
  expect(hint).toMatch(/^The port of the URL .*use 443/);
});

test("the hint for a DNS timeout names the name servers", () => {
  const hint = failureHint(attemptWith({ error_code: "dns_error", detail: "ETIMEOUT" }));
  expect(hint).toMatch(/did not resolve within 3 seconds: .*name servers/);
});

test.each([401, 403])("the hint for %i never suggests to accept requests without credentials", (status) => {
  expect(hintOfStatus(status)).not.toMatch(/without/);
});

test.each([
  ["CERT_HAS_EXPIRED", "renew the certificate"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "public authority"],
  ["SELF_SIGNED_CERT_IN_CHAIN", "public authority"],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "full certificate chain"],
  ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "full certificate chain"],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "names the host"],
  ["EPROTO", "TLS configuration"],
])("the hint for the TLS failure %s names the cause and contains: %s", (detail, expected) => {
  const hint = failureHint(attemptWith({ error_code: "tls_error", detail }));
  expect(hint).toContain(`(${detail})`);
  expect(hint).toContain(expected);
});

test.each([301, 307, 308])("the hint for a %i redirect names the target to register", (status) => {
  expect(hintOfStatus(status, "https://new.example.com/hook")).toBe(
    "Redirects are not followed: register https://new.example.com/hook instead.",
  );
});

test.each([300, 304, 399])(
  "the hint for a %i redirect without a usable target states that redirects are not followed",
  (status) => {
    const hint = hintOfStatus(status);
    expect(hint).toContain(String(status));
    expect(hint).toContain("redirects are not followed");
  },
);

test("the hint for a 401 that asks for credentials names their scheme, and no wrong secret", () => {
  expect(hintOfStatus(401, "Basic")).toBe(
    "The receiver returned 401: it asks for Basic credentials. Verify the signature on this path instead, or add an Authorization header to the webhook.",
  );
});

const rotated = "2025-12-31T12:00:00.000Z";
test.each<[string, Partial<Attempt>, string, boolean]>([
  ["a 401 minutes after it", { status_code: 401 }, "2025-12-31T23:50:00.000Z", true],
  ["a 403 23 hours after it", { status_code: 403 }, "2025-12-31T01:00:00.000Z", true],
  ["a 401 25 hours after it", { status_code: 401 }, "2025-12-30T23:00:00.000Z", false],
  ["a 401 before it", { status_code: 401 }, "2026-01-01T00:00:01.000Z", false],
  ["a 401 that asks for credentials", { status_code: 401, detail: "Basic" }, rotated, false],
  ["a 404", { status_code: 404 }, rotated, false],
  ["a 500", { status_code: 500 }, rotated, false],
])(
  "a rotation of the secret and %s: its hint names the rotation only if it may be the cause",
  (_title, attempt, at, named) => {
    const hint = failureHint(attemptWith({ error_code: "http_status", ...attempt }), at) ?? "";
    expect(hint.includes(`the secret was rotated at ${at}: store the new secret`)).toBe(named);
    expect(hint).toContain(String(attempt.status_code));
  },
);

test.each([
  [400, "did not accept the request"],
  [401, "did not accept the signature"],
  [401, "the secret of another webhook"],
  [401, "with this webhook's secret"],
  [403, "with this webhook's secret"],
  [403, "firewall"],
  [404, "path"],
  [405, "POST"],
  [410, "the webhook was disabled"],
  [413, "256 KB"],
  [415, "application/json"],
  [429, "Retry-After"],
  [418, "return 2xx"],
  [499, "return 2xx"],
  [500, "log"],
  [503, "log"],
  [599, "log"],
])("the hint for status %i names it and contains: %s", (status, expected) => {
  const hint = hintOfStatus(status);
  expect(hint).toContain(`returned ${status}`);
  expect(hint).toContain(expected);
});

const errors: FailureCode[] = [
  "timeout",
  "dns_error",
  "connection_refused",
  "connection_reset",
  "tls_error",
  "address_blocked",
  "invalid_response",
  "http_status",
];
test.each(errors.flatMap((error_code) => [undefined, 307, 404, 500].map((status) => [error_code, status] as const)))(
  "the hint for %s with status %p is one sentence on one line",
  (error_code, status_code) => {
    const hint = failureHint(attemptWith({ error_code, status_code })) ?? "";
    expect(hint).toMatch(/^[A-Z][^\n]*\.$/);
    expect(hint).not.toMatch(/undefined|null|NaN|\. [A-Z]/);
  },
);

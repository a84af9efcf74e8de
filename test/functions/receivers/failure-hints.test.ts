import type { Attempt } from "../../../functions/deliveries/delivery.ts";
import type { FailureCode } from "../../../functions/receivers/failure-code.ts";
import { failureHint } from "../../../functions/receivers/failure-hints.ts";

const made = (outcome: Partial<Attempt>): Attempt => ({
  number: 1,
  at: "2026-01-01T00:00:00.000Z",
  duration_ms: 12,
  trigger: "schedule",
  ...outcome,
});
const hintOfStatus = (status_code: number, detail?: string) =>
  failureHint(made({ error_code: "http_status", status_code, detail })) ?? "";

test.each([200, 204, 299])("a success with %i needs no hint", (status_code) => {
  expect(failureHint(made({ status_code }))).toBeUndefined();
});

test.each<[FailureCode, RegExp]>([
  ["timeout", /^Answer within 15 seconds/],
  ["dns_error", /does not resolve.*DNS/],
  ["connection_refused", /Nothing accepts connections.*firewall/],
  ["connection_reset", /closed the connection before it had answered/],
  ["tls_error", /TLS connection failed/],
  ["address_blocked", /not public/],
  ["invalid_response", /not a valid HTTP\/1\.1 response/],
])("%s is explained", (error_code, expected) => {
  expect(failureHint(made({ error_code }))).toMatch(expected);
});

test.each([
  ["CERT_HAS_EXPIRED", "renew the certificate"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "public authority"],
  ["SELF_SIGNED_CERT_IN_CHAIN", "public authority"],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "full certificate chain"],
  ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "full certificate chain"],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "names the host"],
  ["EPROTO", "TLS configuration"],
])("a TLS failure by %s names the cause and says: %s", (detail, expected) => {
  const hint = failureHint(made({ error_code: "tls_error", detail }));
  expect(hint).toContain(`(${detail})`);
  expect(hint).toContain(expected);
});

test.each([301, 302, 303, 307, 308])("a redirect with %i names the target to register instead", (status) => {
  expect(hintOfStatus(status, "https://new.example.com/hook")).toBe(
    "Redirects are not followed: register https://new.example.com/hook instead.",
  );
});

test.each([300, 304, 399])("a redirect with %i and no usable target says that redirects are not followed", (status) => {
  const hint = hintOfStatus(status);
  expect(hint).toContain(String(status));
  expect(hint).toContain("redirects are not followed");
});

test.each([
  [400, "did not accept the request"],
  [401, "credentials"],
  [403, "refuses"],
  [404, "path"],
  [405, "POST"],
  [410, "the webhook was disabled"],
  [413, "256 KB"],
  [415, "application/json"],
  [429, "Retry-After"],
  [418, "answer 2xx"],
  [499, "answer 2xx"],
  [500, "log"],
  [503, "log"],
  [599, "log"],
])("the status %i is named and explained: %s", (status, expected) => {
  const hint = hintOfStatus(status);
  expect(hint).toContain(`answered ${status}`);
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
  "%s with status %p is one sentence on one line",
  (error_code, status_code) => {
    const hint = failureHint(made({ error_code, status_code })) ?? "";
    expect(hint).toMatch(/^[A-Z][^\n]*\.$/);
    expect(hint).not.toMatch(/undefined|null|NaN|\. [A-Z]/);
  },
);

import { type Attempt, isOnRequest, withAttempt } from "../../../../functions/deliveries/line/delivery.ts";

test("users wait for redeliveries and test deliveries, not for recoveries and retries", () => {
  const triggers = ["redeliver", "test", "recover", "schedule"] as const;
  expect(triggers.map((trigger) => isOnRequest({ trigger }))).toEqual([true, true, false, false]);
  expect(isOnRequest({})).toBe(false);
});

describe("withAttempt", () => {
  const attemptOf = (number: number, changes: Partial<Attempt> = {}): Attempt => {
    const response = {
      status_code: 308,
      error_code: "http_status" as const,
      response_excerpt: "x",
      response_headers: { server: "x" },
      response_header_pairs: [["server", "x"]] as [string, string][],
      detail: "https://new.example",
    };
    return { number, at: "2026-03-01T00:00:00.000Z", duration_ms: 3, trigger: "redeliver", ...response, ...changes };
  };

  test("keeps the responses of the newest three attempts only, and everything else of all", () => {
    let attempts: Attempt[] | undefined;
    for (let number = 1; number <= 5; number++) attempts = withAttempt({ attempts }, attemptOf(number));
    const { response_excerpt, response_headers, response_header_pairs, detail, ...older } = attemptOf(1);
    expect(attempts).toEqual([older, { ...older, number: 2 }, attemptOf(3), attemptOf(4), attemptOf(5)]);
  });

  test("keeps the cause of an older attempt without a response, which is short", () => {
    const first = attemptOf(1, { status_code: undefined, error_code: "tls_error", detail: "CERT_HAS_EXPIRED" });
    const attempts = withAttempt({ attempts: [first, attemptOf(2), attemptOf(3)] }, attemptOf(4));
    expect(attempts[0]).toMatchObject({ error_code: "tls_error", detail: "CERT_HAS_EXPIRED" });
    expect(attempts[0]).not.toHaveProperty("response_excerpt");
  });
});

import { jest } from "@jest/globals";
import { type ClientOptions, createClient } from "../../../packages/client/src/client.ts";

/* The default retries, with a fake clock. */

let random: jest.SpiedFunction<typeof Math.random>;
beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ["queueMicrotask", "nextTick", "setImmediate"] });
  random = jest.spyOn(Math, "random").mockReturnValue(0);
});
afterEach(() => {
  jest.useRealTimers();
  random.mockRestore();
});

const codes = { 429: "rate_limited", 503: "service_unavailable", 500: "internal_error" };

/** Lists the projects of a service that always returns an error. @returns the times between the requests, in seconds */
async function waitsBetweenRequests(
  status: keyof typeof codes,
  retryAfter: string | undefined,
  options: Partial<ClientOptions> = {},
): Promise<number[]> {
  const times: number[] = [];
  const client = createClient({
    baseUrl: "https://api.test",
    token: "svc_1",
    fetch: async () => {
      times.push(Date.now());
      const error = { code: codes[status], message: "No.", request_id: "r-1" };
      const headers: Record<string, string> = retryAfter === undefined ? {} : { "Retry-After": retryAfter };
      return Response.json({ error }, { status, headers });
    },
    ...options,
  });
  let isSettled = false;
  const failed = client.listProjects().catch((error) => error);
  failed.finally(() => {
    isSettled = true;
  });
  while (!isSettled) {
    await jest.advanceTimersByTimeAsync(250);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await failed).toMatchObject({ status, code: codes[status] });
  return times.slice(1).map((time, index) => (time - (times[index] ?? 0)) / 1000);
}

test.each([429, 503] as const)("retries four times after a %i, and doubles the wait", async (status) => {
  expect(await waitsBetweenRequests(status, undefined)).toEqual([1, 2, 4, 8]);
});

test("waits at least as long as Retry-After", async () => {
  expect(await waitsBetweenRequests(429, "3")).toEqual([3, 3, 4, 8]);
});

test("adds up to half of the wait as jitter", async () => {
  random.mockReturnValue(0.5);
  expect(await waitsBetweenRequests(429, undefined)).toEqual([1.25, 2.5, 5, 10]);
  random.mockReturnValue(0.999);
  const [first = 0] = await waitsBetweenRequests(429, "20", { maxRetries: 1 });
  expect(first).toBeGreaterThan(29.9);
  expect(first).toBeLessThan(30);
});

test("stops after maxRetries", async () => {
  expect(await waitsBetweenRequests(503, undefined, { maxRetries: 2 })).toEqual([1, 2]);
  expect(await waitsBetweenRequests(503, undefined, { maxRetries: 0 })).toEqual([]);
});

test("throws without a retry when Retry-After exceeds maxWaitSeconds, which defaults to 30", async () => {
  expect(await waitsBetweenRequests(429, "31")).toEqual([]);
  expect(await waitsBetweenRequests(429, "30", { maxRetries: 1 })).toEqual([30]);
  expect(await waitsBetweenRequests(429, "6", { maxWaitSeconds: 5 })).toEqual([]);
});

test("gives each request 35 seconds by default", async () => {
  const timeout = jest.spyOn(AbortSignal, "timeout");
  await waitsBetweenRequests(429, undefined, { maxRetries: 1 });
  expect(timeout.mock.calls).toEqual([[35_000], [35_000]]);
  timeout.mockRestore();
});

test("does not retry after another error", async () => {
  expect(await waitsBetweenRequests(500, "1")).toEqual([]);
});

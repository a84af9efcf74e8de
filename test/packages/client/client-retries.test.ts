import { getEventListeners } from "node:events";
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

describe("waits", () => {
  test("that have ended leave no listener at the signal", async () => {
    const { signal } = new AbortController();
    await waitsBetweenRequests(429, undefined, { signal });
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  test.each([
    ["before it begins", (stop: () => void) => ({ onWait: stop })],
    ["after a second", (stop: () => void) => ({ onWait: () => void setTimeout(stop, 1_000) })],
  ])("that the signal ends %s throw its reason at once, and leave no timer", async (_, optionsOf) => {
    const stopping = new AbortController();
    const stop = () => stopping.abort(new Error("enough"));
    const client = createClient({
      ...{ baseUrl: "https://api.test", signal: stopping.signal, ...optionsOf(stop) },
      fetch: async () =>
        new Response('{"error":{"code":"rate_limited","message":"No."}}', {
          status: 429,
          headers: { "Retry-After": "20" },
        }),
    });
    const listed = client.listProjects().catch((error: Error) => error.message);
    await jest.advanceTimersByTimeAsync(1_000);
    expect(stopping.signal.aborted).toBe(true);
    expect(jest.getTimerCount()).toBe(0);
    expect(await listed).toBe("enough");
  });
});

test("followEvents requests the pages of a pass at once, then waits 1 s after events, and up to 10 s while there are none", async () => {
  const stopping = new AbortController();
  const requests: [after: string | null, order: string | null, at: number][] = [];
  // Two pages with events, then passes without any, and one with events.
  const passes = ["next", "monitor", ...Array(12).fill("none"), "monitor", "none"];
  const client = createClient({
    ...{ baseUrl: "https://api.test", signal: stopping.signal },
    fetch: async (input) => {
      const { searchParams } = new URL((input as Request).url);
      requests.push([searchParams.get("after"), searchParams.get("order"), Date.now()]);
      const kind = passes[requests.length - 1];
      if (kind === undefined) stopping.abort(new Error("enough"));
      const rel = kind === "next" ? "next" : "monitor";
      const Link = `<https://api.test/v1?after=c${requests.length}>; rel="${rel}"`;
      return Response.json({ data: kind === "next" || kind === "monitor" ? [{ id: "e" }] : [] }, { headers: { Link } });
    },
  });
  const cursors: string[] = [];
  const followed = (async () => {
    for await (const { cursor } of client.followEvents("p", { after: "c0" })) cursors.push(cursor);
  })().catch((error: Error) => error.message);
  for (let elapsed = 0; elapsed < 120_000; elapsed += 50) {
    await jest.advanceTimersByTimeAsync(50);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await followed).toBe("enough");
  expect(cursors).toEqual(["c1", "c2", "c15"]);
  expect(requests.map(([after, order]) => [after, order])).toEqual(requests.map((_, index) => [`c${index}`, "oldest"]));
  const waits = requests.slice(1).map(([, , at], index) => (at - (requests[index]?.[2] ?? 0)) / 1000);
  const inTenths = waits.map((seconds) => Math.round(seconds * 10) / 10);
  expect([inTenths.slice(0, 4), inTenths.slice(12)]).toEqual([
    [0, 1, 1.3, 1.7],
    [10, 10, 1, 1.3],
  ]);
});

import { jest } from "@jest/globals";
import { type ClientOptions, createClient } from "../../../packages/client/src/client.ts";
import { NetworkError } from "../../../packages/client/src/errors.ts";

/* The options that the console needs: retries that it decides on and shows, its own `fetch`, cancelled requests. */

interface Step {
  status: number;
  headers?: Record<string, string>;
  body?: unknown;
}

const error = (code: string) => ({ error: { code, message: "No.", request_id: "r-1" } });
const rateLimited = (retryAfter?: string): Step => ({
  status: 429,
  ...(retryAfter !== undefined && { headers: { "Retry-After": retryAfter } }),
  body: error("rate_limited"),
});
const unavailable: Step = { status: 503, headers: { "Retry-After": "1" }, body: error("service_unavailable") };
const ok: Step = { status: 200, body: { data: [] } };
const place = { projectId: "p", webhookId: "w" };

/** A client whose `fetch` returns these responses in turn. */
function scripted(steps: Step[], options: Partial<ClientOptions> = {}) {
  const methods: string[] = [];
  const waits: number[] = [];
  const client = createClient({
    baseUrl: "https://api.test",
    token: "svc_1",
    onWait: (seconds) => waits.push(seconds),
    fetch: async (request) => {
      const { status, headers, body } = steps[methods.length] ?? { status: 500 };
      methods.push((request as Request).method);
      return new Response(status === 204 ? null : JSON.stringify(body), { status, ...(headers && { headers }) });
    },
    ...options,
  });
  return { client, methods, waits };
}

let random: jest.SpiedFunction<typeof Math.random>;
beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ["queueMicrotask", "nextTick", "setImmediate"] });
  random = jest.spyOn(Math, "random").mockReturnValue(0);
});
afterEach(() => {
  jest.useRealTimers();
  random.mockRestore();
});

/** Lets the clock run until the promise is settled. */
async function settled<Value>(promise: Promise<Value>): Promise<Value> {
  let isSettled = false;
  const done = promise.finally(() => {
    isSettled = true;
  });
  done.catch(() => {});
  while (!isSettled) {
    await jest.advanceTimersByTimeAsync(500);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return done;
}

describe("onWait", () => {
  test("receives the length of each wait in seconds before the wait", async () => {
    const { client, methods, waits } = scripted([rateLimited("7"), rateLimited(), ok]);
    const listed = client.listProjects();
    await jest.advanceTimersByTimeAsync(0);
    expect([methods.length, waits]).toEqual([1, [7]]);
    await jest.advanceTimersByTimeAsync(6_990);
    expect(methods).toHaveLength(1);
    await settled(listed);
    expect([methods.length, waits]).toEqual([3, [7, 2]]);
  });

  test.each([
    ["61", 60, 61],
    ["0", 0, 0],
    ["Sun, 22 Nov 2026 00:00:00 GMT", 0, undefined],
  ])("is not called when the error is thrown instead, with Retry-After: %s", async (given, maxWaitSeconds, read) => {
    const { client, waits } = scripted([rateLimited(given)], { maxWaitSeconds });
    await expect(client.listProjects()).rejects.toMatchObject({ code: "rate_limited", retryAfterSeconds: read });
    expect(waits).toEqual([]);
  });
});

describe("maxWaitSeconds", () => {
  test.each([0, 0.99])(
    "includes a Retry-After of the same length, and limits the jitter (random %d)",
    async (value) => {
      random.mockReturnValue(value);
      const { client, waits } = scripted([rateLimited("60"), ok], { maxWaitSeconds: 60 });
      await settled(client.listProjects());
      expect(waits).toEqual([60]);
    },
  );
});

describe("mayRetry", () => {
  const readsOnly: ClientOptions["mayRetry"] = ({ method, status }) => status === 429 || method === "GET";

  test("limits which requests are repeated after a 503", async () => {
    const write = scripted([unavailable, ok], { mayRetry: readsOnly });
    await expect(write.client.updateWebhook(place, { enabled: true })).rejects.toMatchObject({ status: 503 });
    expect(write.methods).toEqual(["PATCH"]);
    const read = scripted([unavailable, ok], { mayRetry: readsOnly });
    expect(await settled(read.client.listProjects())).toEqual([]);
    expect(read.methods).toEqual(["GET", "GET"]);
  });

  test("defaults to repeat a POST with an idempotency key after a 503, with the same key", async () => {
    const keys: (string | null)[] = [];
    const hook = { url: "https://example.com/", events: ["deploy.failed" as const] };
    const client = createClient({
      baseUrl: "https://api.example.com",
      maxWaitSeconds: 2,
      fetch: async (request) => {
        keys.push(new Request(request).headers.get("idempotency-key"));
        return keys.length === 1
          ? Response.json(error("service_unavailable"), { status: 503 })
          : Response.json({ data: {} }, { status: 201 });
      },
    });
    await settled(client.createWebhook(place.projectId, hook, { idempotencyKey: "run-1" }));
    expect(keys).toEqual(["run-1", "run-1"]);
  });

  test("is not called for other errors", async () => {
    const { client, methods } = scripted([{ status: 500, body: error("internal_error") }, ok], {
      mayRetry: () => true,
    });
    await expect(client.listProjects()).rejects.toMatchObject({ status: 500 });
    expect(methods).toHaveLength(1);
  });

  test("defaults to all methods after a 429, and to all but POST after a 503", async () => {
    const requestsAfter = async (step: Step, call: "POST" | "PATCH" | "DELETE") => {
      const { client, methods } = scripted([step, call === "DELETE" ? { status: 204 } : { ...ok, body: { data: {} } }]);
      const request = {
        POST: () => client.createApiKey({ name: "ci" }),
        PATCH: () => client.updateWebhook(place, {}),
        DELETE: () => client.deleteApiKey("k"),
      }[call]();
      await settled(request.then(null, () => {}));
      return methods.length;
    };
    expect(await requestsAfter(rateLimited("1"), "POST")).toBe(2);
    expect(await requestsAfter(unavailable, "POST")).toBe(1);
    expect(await requestsAfter(unavailable, "PATCH")).toBe(2);
    expect(await requestsAfter(unavailable, "DELETE")).toBe(2);
  });
});

describe("fetch", () => {
  test("keeps the message of a NetworkError that it throws", async () => {
    const offline = new NetworkError("This device is offline.");
    const { client } = scripted([], { fetch: () => Promise.reject(offline) });
    await expect(client.listProjects()).rejects.toBe(offline);
  });
});

const cursor = "01a1fc46-ece3-72cf-a63b-96f2a7307b8c";

test.each([
  [undefined, undefined],
  ["", undefined],
  [`<http://127.0.0.1:3000/v1/x?limit=20&cursor=${cursor}>; rel="next"`, cursor],
  [`<https://elsewhere.example/v1/x?cursor=${cursor}>; rel="prev"`, undefined],
  ['<https://api.example.com/v1/x>; rel="next"', undefined],
  ['<not a URL>; rel="next"', undefined],
])("reads only the cursor from the Link header %s", async (link, nextCursor) => {
  const { client } = scripted([{ ...ok, ...(link !== undefined && { headers: { Link: link } }) }]);
  expect((await client.listDeliveries(place)).nextCursor).toBe(nextCursor);
});

test.each(["<", "<a>;", "<a>; rel=", " "])("reads a Link header of many %s in a few milliseconds", async (part) => {
  const link = part.repeat(30_000 / part.length).trim();
  const { client } = scripted([{ ...ok, headers: { Link: `x${link}` } }]);
  const before = process.threadCpuUsage();
  expect((await client.listDeliveries(place)).nextCursor).toBeUndefined();
  expect(process.threadCpuUsage(before).user).toBeLessThan(200_000);
});

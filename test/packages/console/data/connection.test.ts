import { join } from "node:path";
import { jest } from "@jest/globals";
import type { Client } from "../../../../packages/client/src/client.ts";

/* How the console uses the client, with a stub in place of the browser's `fetch`. */

interface ConnectionModule {
  connectionTo(options: {
    baseUrl: string;
    token: string;
    onWait(seconds: number): void;
  }): (signal?: AbortSignal) => Client;
}
// Not a literal, because the module needs the types of a browser, which the tests do not have.
const path = join(import.meta.dirname, "../../../../packages/console/src/data/connection.ts");
const { connectionTo } = (await import(path)) as ConnectionModule;

const place = { projectId: "p", webhookId: "w" };
const errorBody = (code: string) => JSON.stringify({ error: { code, message: "No.", request_id: "r-1" } });
const busy = (status: number, retryAfter: string) =>
  new Response(errorBody("busy"), { status, headers: { "Retry-After": retryAfter } });
const ok = () => new Response('{"data":[]}');

let requests: { request: Request; init: RequestInit | undefined }[];
let waits: number[];

/** Returns a client whose requests get these responses in turn. A thrown error stands for a lost connection. */
function clientFor(responses: (() => Response)[], { isOnline = true, signal }: ConnectOptions = {}): Client {
  jest.replaceProperty(globalThis, "navigator", { onLine: isOnline } as unknown as Navigator);
  jest.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    requests.push({ request: input as Request, init });
    const next = responses[requests.length - 1] ?? (() => new Response("", { status: 500 }));
    return next();
  });
  const onWait = (seconds: number) => waits.push(seconds);
  return connectionTo({ baseUrl: "https://api.test/prod", token: "svc_1", onWait })(signal);
}
interface ConnectOptions {
  isOnline?: boolean;
  signal?: AbortSignal;
}

beforeEach(() => {
  requests = [];
  waits = [];
  jest.useFakeTimers({ doNotFake: ["queueMicrotask", "nextTick", "setImmediate"] });
  jest.spyOn(Math, "random").mockReturnValue(0.99);
});
afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});

/** Lets the clock run for ten minutes, and returns the result or the error. */
async function result<Value>(promise: Promise<Value>): Promise<Value | Error> {
  const settled = promise.catch((error: Error) => error);
  for (let halfMinutes = 0; halfMinutes < 20; halfMinutes++) {
    await jest.advanceTimersByTimeAsync(30_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return settled;
}

test("sends the credential only in its header, without cookies, redirects and the cache", async () => {
  await result(clientFor([ok]).listProjects());
  const [sent] = requests;
  expect(sent?.request.url).toBe("https://api.test/prod/v1/projects");
  expect(sent?.request.headers.get("authorization")).toBe("Bearer svc_1");
  expect(sent?.init).toMatchObject({ credentials: "omit", redirect: "error", cache: "no-store" });
});

test.each([
  [true, "Could not reach the service."],
  [false, "This device is offline."],
])("explains a lost connection when navigator.onLine is %s", async (isOnline, message) => {
  const lost = () => {
    throw new TypeError("Failed to fetch");
  };
  const error = await result(clientFor([lost], { isOnline }).listProjects());
  expect(error).toMatchObject({ name: "NetworkError", message });
  expect(requests).toHaveLength(1);
});

const calls: Record<"GET" | "POST" | "PATCH" | "DELETE", (client: Client) => Promise<unknown>> = {
  GET: (client: Client) => client.listProjects(),
  POST: (client: Client) => client.createApiKey({ name: "ci" }),
  PATCH: (client: Client) => client.updateWebhook(place, {}),
  DELETE: (client: Client) => client.deleteApiKey("k"),
};
type Method = keyof typeof calls;

test.each<[Method, status: number, requests: number]>([
  ["GET", 429, 2],
  ["POST", 429, 2],
  ["PATCH", 429, 2],
  ["DELETE", 429, 2],
  ["GET", 503, 2],
  ["POST", 503, 1],
  ["PATCH", 503, 1],
  ["DELETE", 503, 1],
  ["GET", 500, 1],
])("after a %s with %d and a Retry-After, the number of requests is %d", async (method, status, count) => {
  await result(calls[method](clientFor([() => busy(status, "1"), ok])));
  expect(requests.map(({ request }) => request.method)).toEqual(Array(count).fill(method));
  expect(waits).toHaveLength(count - 1);
});

test.each<[retryAfter: string, waits: number[]]>([
  ["60", [60]],
  ["61", []],
])("waits for a Retry-After of at most 60 seconds: %s s gives the waits %j", async (retryAfter, expected) => {
  const outcome = await result(clientFor([() => busy(429, retryAfter), ok]).listProjects());
  expect(waits).toEqual(expected);
  expect(outcome).toEqual(expected.length === 0 ? expect.objectContaining({ retryAfterSeconds: 61 }) : []);
});

test("gives up after three retries", async () => {
  const responses = Array.from({ length: 9 }, () => () => busy(429, "1"));
  expect(await result(clientFor(responses).listProjects())).toMatchObject({ status: 429, requestId: "r-1" });
  expect(requests).toHaveLength(4);
});

test("keeps the digits of numbers that a double cannot hold", async () => {
  const body = '{"data":{"payload":{"build":9007199254740993,"share":0.10,"small":7}}}';
  const delivery = await result(clientFor([() => new Response(body)]).getDelivery(place, "d"));
  expect(JSON.stringify(delivery)).toBe('{"payload":{"build":9007199254740993,"share":0.10,"small":7}}');
});

test("an aborted signal ends the wait for a retry", async () => {
  const unmounted = new AbortController();
  const client = clientFor([() => busy(429, "30"), ok], { signal: unmounted.signal });
  const listed = client.listProjects().catch((error: Error) => error);
  await jest.advanceTimersByTimeAsync(1_000);
  unmounted.abort(new Error("unmounted"));
  expect(await listed).toMatchObject({ message: "unmounted" });
  await jest.advanceTimersByTimeAsync(120_000);
  expect(requests).toHaveLength(1);
});

test("a request without a response in time has timed out, which is no lost connection", async () => {
  const timeout = new DOMException("Timed out.", "TimeoutError");
  jest.spyOn(AbortSignal, "timeout").mockReturnValue(AbortSignal.abort(timeout));
  const late = () => {
    throw timeout;
  };
  const outcome = await result(clientFor([late]).listProjects());
  expect(outcome).toMatchObject({ name: "NetworkError", message: expect.stringContaining("within") });
});

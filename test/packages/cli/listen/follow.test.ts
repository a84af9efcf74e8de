import { randomUUID } from "node:crypto";
import { once } from "node:events";
import net, { type AddressInfo } from "node:net";
import { jest } from "@jest/globals";
import { parseJsonExactly } from "../../../../functions/foundation/events/deployment-event.ts";
import { follow } from "../../../../packages/cli/src/listen/follow.ts";
import type { Destination } from "../../../../packages/cli/src/listen/forward.ts";
import { forwardDelivery, readForwardUrl } from "../../../../packages/cli/src/listen/forward.ts";
import { generateSecret } from "../../../../packages/cli/src/listen/forward-secret.ts";
import { diagnose } from "../../../../packages/cli/src/verify/diagnose.ts";
import { type Client, createClient } from "../../../../packages/client/src/client.ts";
import { parseExactly } from "../../../../packages/client/src/exact-json.ts";
import { eventOf, givenEvent, publish } from "../../../support/deliveries.ts";
import { eventually } from "../../../support/eventually.ts";
import { type Received, type Receiver, startReceiver } from "../../../support/receiver.ts";
import { type Api, useService } from "../../../support/service.ts";

/* The feed of the real service, forwarded to a real receiver. */

const service = useService({ deliver: true });
let receiver: Receiver;
let api: Api;
let token: string;
let projectId: string;
let destination: Destination;

let noted: string;
let printed: string;
const stop = new Set<AbortController>();
beforeEach(async () => {
  receiver = await startReceiver();
  const user = service.user();
  projectId = await service.project(user.userId);
  [api, token] = [user.api, user.token];
  destination = { url: new URL(receiver.url), secrets: [generateSecret()] };
  [noted, printed] = ["", ""];
  jest.spyOn(process.stderr, "write").mockImplementation((text) => {
    noted += text;
    return true;
  });
  jest.spyOn(process.stdout, "write").mockImplementation((text) => {
    printed += text;
    return true;
  });
});
afterEach(async () => {
  for (const each of stop) each.abort();
  stop.clear();
  await receiver.close();
  jest.restoreAllMocks();
  process.exitCode = undefined;
});

/** Follows the feed of the project, and returns when it has begun. */
async function following({
  credential = token,
  send = fetch,
  ...options
}: Partial<Parameters<typeof follow>[2]> & { credential?: string; send?: typeof fetch } = {}) {
  const interrupted = new AbortController();
  stop.add(interrupted);
  const { signal } = interrupted;
  const client = createClient({
    ...{ baseUrl: service.baseUrl, token: credential, signal, parseJson: parseExactly, fetch: send },
    onWait: () => process.stderr.write("waiting\n"),
  });
  const impatient: Client = {
    ...client,
    followEvents: (project, query, followOptions) =>
      client.followEvents(project, query, { ...followOptions, minPauseSeconds: 0.05, maxPauseSeconds: 0.1 }),
  };
  const defaults = { events: undefined, destination, count: undefined, json: true, signal };
  const ended = follow(impatient, projectId, { ...defaults, ...options });
  const outcome = ended.then(
    () => "counted",
    (error: Error) => error,
  );
  await eventually(() => expect(noted).toContain("Listening"));
  return { interrupted, outcome };
}

const lines = () =>
  printed
    .trim()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));

const deploymentOf = ({ body }: Received): string => JSON.parse(body).deployment_id;

const strange = String.raw`{"big":9007199254740993,"one":1.0,"tiny":1e-400,"minus":-0,"text":"é 🚀 \u2028 \u0007 \ud800","10":"b","9":"a","__proto__":{"x":1},"nested":[{},[],null]}`;

test("forwards the bytes and headers that a webhook gets, with both signatures valid", async () => {
  const direct = await startReceiver();
  const { body } = await api.post(`/v1/projects/${projectId}/webhooks`, { url: direct.url, events: ["deploy.failed"] });
  await following();
  const event = JSON.stringify(eventOf(projectId, { event: "deploy.failed", data: "DATA" })).replace('"DATA"', strange);
  await publish(parseJsonExactly(event) as object);
  const [[delivered], [forwarded]] = await Promise.all([direct.waitFor(1), receiver.waitFor(1)]);
  await direct.close();
  if (!delivered || !forwarded) throw new Error("nothing arrived");
  expect(forwarded.body).toBe(delivered.body);
  expect(forwarded.body).toContain('"big":9007199254740993,"one":1.0,"tiny":1e-400,"minus":-0');
  expect(forwarded.method).toBe("POST");
  expect(Object.keys(forwarded.headers).sort()).toEqual(Object.keys(delivered.headers).sort());
  const plain = ["content-type", "user-agent", "x-service-event", "content-length", "accept-encoding", "connection"];
  expect(forwarded.headers.host).toBe(destination.url.host);
  for (const name of plain) expect({ [name]: forwarded.headers[name] }).toEqual({ [name]: delivered.headers[name] });
  // The id of another delivery of the same event.
  expect(forwarded.headers["webhook-id"]?.slice(0, 13)).toBe(delivered.headers["webhook-id"]?.slice(0, 13));
  expect(forwarded.headers["webhook-id"]).not.toBe(delivered.headers["webhook-id"]);
  expect(forwarded.headers["x-service-delivery"]).toBe(forwarded.headers["webhook-id"]);
  const verdictsOf = ({ headers, body }: Received, secret: string) => {
    const verdicts = diagnose(
      {
        headers: new Map(Object.entries(headers).map(([name, value]) => [name, String(value)])),
        body: Buffer.from(body),
      },
      [secret],
      { now: new Date(), toleranceSeconds: 300 },
    );
    return verdicts.map(({ isValid }) => isValid);
  };
  expect(verdictsOf(forwarded, destination.secrets[0] ?? "")).toEqual([true, true]);
  expect(verdictsOf(delivered, body.data.secret)).toEqual([true, true]);
});

test("shows each event with the response to it, and stops after --count with exit code 1 if one failed", async () => {
  receiver.respondWith((request, response) => {
    response.writeHead(deploymentOf(request) === first ? 202 : 500).write("noted ");
    // Later, so that the response arrives in two parts.
    setTimeout(() => response.end("\u001b[2J"), 50);
  });
  const [first, second] = [randomUUID(), randomUUID()];
  const { outcome } = await following({ count: 2, json: false, events: ["deploy.failed"] });
  await publish(eventOf(projectId, { event: "deploy.started" }));
  await publish(eventOf(projectId, { event: "deploy.failed", deployment_id: first }));
  await receiver.waitFor(1);
  await publish(eventOf(projectId, { event: "deploy.failed", deployment_id: second }));
  expect(await outcome).toBe("counted");
  expect(process.exitCode).toBe(1);
  expect(printed).toMatch(
    /deploy\.failed\ndelivery {13}[0-9a-f-]{36}\nforwarded {12}202 in \d+ ms\nresponse {13}noted \[2J\n\{\n {2}"event"/,
  );
  expect(printed).toMatch(/forwarded {12}500 in/);
  expect(receiver.received.map(deploymentOf)).toEqual([first, second]);
});

test("without a destination shows the events only", async () => {
  const { interrupted, outcome } = await following({ destination: undefined });
  const deployment_id = randomUUID();
  await publish(eventOf(projectId, { deployment_id }));
  await eventually(() => expect(lines()).toMatchObject([{ deployment_id, forwarded: null }]));
  interrupted.abort();
  expect(await outcome).toMatchObject({ name: "AbortError" });
});

test("forwards an event once that is stored late, and none from before the start", async () => {
  const before = randomUUID();
  await publish(eventOf(projectId, { deployment_id: before }));
  const path = `/v1/projects/${projectId}/events`;
  await eventually(async () => expect((await api.get(path)).body.data).toHaveLength(1));
  await following();
  const deployments = [randomUUID(), randomUUID()];
  // The second one is an hour late.
  for (const [index, deployment_id] of deployments.entries()) {
    const timestamp = new Date(Date.now() - index * 3_600_000).toISOString();
    await givenEvent(eventOf(projectId, { deployment_id, timestamp }));
    await receiver.waitFor(index + 1);
  }
  const last = randomUUID();
  await publish(eventOf(projectId, { deployment_id: last }));
  await receiver.waitFor(3);
  expect(receiver.received.map(deploymentOf)).toEqual([...deployments, last]);
});

test("without --count continues after a receiver that is down, and after one that hangs; neither sets the exit code", async () => {
  receiver.respondWith(() => {});
  const { interrupted, outcome } = await following({ destination: { ...destination, timeoutMs: 300 } });
  await publish(eventOf(projectId));
  await receiver.waitFor(1);
  await eventually(() => expect(lines()).toMatchObject([{ forwarded: { status_code: null, error_code: "timeout" } }]));
  receiver.respondWith(204);
  await publish(eventOf(projectId));
  await receiver.waitFor(2);
  await eventually(() => expect(lines()[1]).toMatchObject({ forwarded: { status_code: 204, error_code: null } }));
  await receiver.close();
  await publish(eventOf(projectId));
  await eventually(() => expect(lines()[2]).toMatchObject({ forwarded: { error_code: "connection_refused" } }));
  interrupted.abort();
  expect(await outcome).toMatchObject({ name: "AbortError" });
  expect(process.exitCode).toBeUndefined();
});

test("is interrupted while a receiver hangs", async () => {
  receiver.respondWith(() => {});
  const { interrupted, outcome } = await following();
  await publish(eventOf(projectId));
  await receiver.waitFor(1);
  interrupted.abort();
  expect(await outcome).toMatchObject({ name: "AbortError" });
  expect(lines()).toEqual([]);
});

test("ends with the API's 401 when its credential ends", async () => {
  const { data } = (await api.post("/v1/api-keys", { name: "ci", permissions: ["events:read"] })).body;
  const { outcome } = await following({ credential: data.key });
  await api.delete(`/v1/api-keys/${data.id}`);
  expect(await outcome).toMatchObject({ name: "ApiError", status: 401, code: "invalid_api_key" });
});

test("continues after 429 of the API, and misses no event of that time", async () => {
  let rejected = 0;
  const deployment_id = randomUUID();
  const send: typeof fetch = async (input, init) => {
    if (!noted.includes("Listening") || rejected >= 1) return fetch(input, init);
    rejected += 1;
    await publish(eventOf(projectId, { deployment_id }));
    const error = { code: "rate_limited", message: "Too many requests.", request_id: "r" };
    return Response.json({ error }, { status: 429, headers: { "retry-after": "0" } });
  };
  await following({ send });
  await receiver.waitFor(1);
  expect(receiver.received.map(deploymentOf)).toEqual([deployment_id]);
  expect(noted).toContain("waiting\n");
});

describe("forwardDelivery", () => {
  const delivery = { id: randomUUID(), event: "deploy.failed", body: Buffer.from("{}") };

  /** Starts a server that sends these bytes on each connection, and does not close it. */
  async function rawServer(text: string) {
    const sockets: net.Socket[] = [];
    const server = net.createServer((socket) => {
      sockets.push(socket.on("error", () => {}).resume());
      socket.write(text);
    });
    server.listen(0, "127.0.0.1").unref();
    await once(server, "listening");
    return { url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`), sockets };
  }

  test.each([
    ["an endless body", `HTTP/1.1 200 OK\r\n\r\n${"x".repeat(200_000)}`, { status_code: 200, error_code: null }],
    [
      "a body that does not end",
      "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx",
      { status_code: 200, error_code: "timeout" },
    ],
    ["another protocol", "SSH-2.0-OpenSSH_9.6\r\n", { status_code: null, error_code: "invalid_response" }],
    [
      "a redirect",
      "HTTP/1.1 300 Multiple Choices\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n",
      { status_code: 300, error_code: "http_status" },
    ],
  ])("returns a result for a receiver with %s, and keeps no connection", async (_, text, expected) => {
    const { url, sockets } = await rawServer(text);
    const timeoutMs = expected.error_code === "timeout" ? 500 : 20_000;
    const result = await forwardDelivery(delivery, { ...destination, url, timeoutMs });
    await eventually(() => expect(sockets.map(({ closed }) => closed)).toEqual([true]));
    expect(result).toMatchObject(expected);
    if (expected.error_code !== "timeout") expect(result.duration_ms).toBeLessThan(timeoutMs);
    expect((result.response_excerpt ?? "").length).toBeLessThanOrEqual(1024);
  });

  test("returns tls_error and dns_error for an https URL without TLS and an unknown name", async () => {
    const { port } = new URL(receiver.url);
    const results = [`https://127.0.0.1:${port}`, "https://receiver.invalid/"].map((url) =>
      forwardDelivery(delivery, { ...destination, url: new URL(url) }),
    );
    expect(await Promise.all(results)).toMatchObject([{ error_code: "tls_error" }, { error_code: "dns_error" }]);
  });

  test.each(["http://127.0.0.1:8080/hook", "http://localhost/", "http://[::1]:1/", "https://example.com/hook"])(
    "may use %s",
    (url) => expect(readForwardUrl(url).href).toBe(url),
  );
  test("leaves out the root dot of the host, as the service does", () => {
    expect(readForwardUrl("https://example.com./hook").href).toBe("https://example.com/hook");
  });
  test.each([
    "there",
    "ftp://127.0.0.1/",
    "http://example.com/",
    "http://127.0.0.1.example.com/",
    "http://10.0.0.1/",
    "http://u:p@127.0.0.1/",
  ])("may not use %s", (url) => expect(() => readForwardUrl(url)).toThrow(expect.objectContaining({ exitCode: 2 })));
});

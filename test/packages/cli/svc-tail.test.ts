import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { eventOf, publish } from "../../support/deliveries.ts";
import { eventually } from "../../support/eventually.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";
import { type Api, startTestService, type TestService } from "../../support/service.ts";
import { type Running, startSvc, svc } from "../../support/svc.ts";

/* `svc deliveries tail` against the real service, with and without faults. */

let service: TestService;
let receiver: Receiver;
let proxy: FaultProxy;
let api: Api;
let token: string;
let projectId: string;

beforeAll(async () => {
  process.env.RETRY_SCHEDULE = "2";
  service = await startTestService({ deliver: true });
  receiver = await startReceiver();
  proxy = await startFaultProxy(service.baseUrl);
});
afterAll(async () => {
  delete process.env.RETRY_SCHEDULE;
  await service.stop();
  await receiver.close();
  proxy.close();
});
beforeEach(async () => {
  const user = service.user();
  ({ api, token } = user);
  projectId = await service.project(user.userId);
  receiver.respondWith(200);
  proxy.mode = "pass";
});

const running: Running[] = [];
afterEach(() => {
  for (const { child } of running.splice(0)) child.kill("SIGKILL");
});

interface FaultProxy {
  url: string;
  mode: "pass" | "429" | "503" | "hang up" | "401";
  rejected: number;
  close(): void;
}

/** Starts a proxy in front of the service that rejects requests while a fault is set. */
async function startFaultProxy(target: string): Promise<FaultProxy> {
  const codes = { 429: "rate_limited", 503: "service_unavailable", 401: "invalid_token" };
  const server = http.createServer((request, response) => {
    if (proxy.mode === "pass") {
      const { method, headers, url = "" } = request;
      const forwarded = http.request(`${target}${url}`, { method: method ?? "GET", headers }, (upstream) => {
        response.writeHead(upstream.statusCode ?? 502, upstream.headers);
        upstream.pipe(response);
      });
      return request.pipe(forwarded);
    }
    proxy.rejected += 1;
    if (proxy.mode === "hang up") return request.socket.destroy();
    const code = codes[proxy.mode];
    const error = { error: { code, message: "Not now.", request_id: "r-1" } };
    return response.writeHead(Number(proxy.mode), { "Retry-After": "1" }).end(JSON.stringify(error));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, mode: "pass", rejected: 0, close: () => server.close().closeAllConnections() };
}

async function newWebhook(): Promise<string> {
  const body = { url: receiver.url, events: ["deploy.started"] };
  return (await api.post(`/v1/projects/${projectId}/webhooks`, body)).body.data.id;
}

async function tailing(...args: string[]): Promise<Running> {
  const env = { SVC_BASE_URL: proxy.url, SVC_API_KEY: token };
  const tail = startSvc(["deliveries", "tail", ...args], { env });
  running.push(tail);
  await eventually(() => expect(tail.stderr()).toContain("Following"));
  return tail;
}

const records = (tail: Running) =>
  tail
    .stdout()
    .split("\n")
    .filter((line) => line !== "")
    .map((line): { id: string; status: string; attempt_count: number } => JSON.parse(line));
const states = (tail: Running) => records(tail).map(({ status, attempt_count }) => `${status} ${attempt_count}`);

test("prints each new delivery and each status change once, and exits with 0 on Ctrl-C", async () => {
  await newWebhook();
  const tail = await tailing("--json");
  await publish(eventOf(projectId));
  await eventually(() => expect(states(tail).at(-1)).toBe("succeeded 1"));
  receiver.respondWith(500);
  await publish(eventOf(projectId));
  await eventually(() => expect(states(tail).at(-1)).toBe("failed 2"));
  const seen = records(tail).map(({ id, status, attempt_count }) => `${id} ${status} ${attempt_count}`);
  expect(new Set(seen).size).toBe(seen.length);
  expect(states(tail)).toContain("pending 1");
  tail.child.kill("SIGINT");
  expect(await tail.ended).toMatchObject({ code: 0 });
});

test("starts with the latest deliveries, --last at most, oldest first", async () => {
  const id = await newWebhook();
  const ids: string[] = [];
  for (let n = 0; n < 4; n++) ids.push((await api.post(`/v1/projects/${projectId}/webhooks/${id}/test`)).body.data.id);
  const list = async () => (await api.get(`/v1/projects/${projectId}/webhooks/${id}/deliveries`)).body.data;
  await eventually(async () => {
    for (const { status } of await list()) expect(status).toBe("succeeded");
  });
  expect(records(await tailing("--json", "--last", "2")).map((record) => record.id)).toEqual(ids.sort().slice(2));
  expect(records(await tailing("--json", "--last", "0"))).toEqual([]);
});

test("without --json prints the result, the hint and the response of a failed attempt", async () => {
  await newWebhook();
  receiver.respondWith((_, response) => response.writeHead(404).end("no such hook"));
  const tail = await tailing("--last", "0");
  await publish(eventOf(projectId));
  await eventually(() => expect(tail.stdout()).toContain("failed     deploy.started"));
  expect(tail.stdout()).toMatch(
    /failing .* attempt 1 {2}404 in \d+ ms {2}retry (?:in \d s|now)\n +→ The receiver returned 404.*\n +response: no such hook\n/,
  );
});

test.each(["429", "503", "hang up"] as const)(
  "continues through %s, and prints the changes that happened meanwhile",
  async (mode) => {
    await newWebhook();
    const tail = await tailing("--json");
    proxy.mode = mode;
    proxy.rejected = 0;
    await eventually(() => expect(tail.stderr()).toContain("Retrying."));
    await publish(eventOf(projectId));
    await receiver.waitFor(1);
    await eventually(() => expect(proxy.rejected).toBeGreaterThan(1));
    proxy.mode = "pass";
    await eventually(() => expect(states(tail)).toEqual(["succeeded 1"]));
    expect(tail.stderr().match(/Retrying/g)).toHaveLength(1);
    expect(tail.stderr()).toContain("The service is available again.");
    tail.child.kill("SIGINT");
    expect(await tail.ended).toMatchObject({ code: 0 });
  },
  60_000,
);

test("exits with 3 when the credential is rejected, with 4 when the webhook was deleted", async () => {
  const id = await newWebhook();
  const rejected = await tailing();
  proxy.mode = "401";
  expect(await rejected.ended).toMatchObject({ code: 3, stderr: expect.stringContaining("invalid_token") });
  proxy.mode = "pass";
  const deleted = await tailing("--webhook", id);
  await api.delete(`/v1/projects/${projectId}/webhooks/${id}`);
  expect(await deleted.ended).toMatchObject({ code: 4, stderr: expect.stringContaining("not_found") });
});

test("continues when one of several webhooks was deleted, and exits with 4 when all were deleted", async () => {
  const [one, other] = [await newWebhook(), await newWebhook()];
  const tail = await tailing("--json");
  await api.delete(`/v1/projects/${projectId}/webhooks/${one}`);
  await eventually(() => expect(tail.stderr()).toContain(`The webhook ${one} was deleted.`));
  await publish(eventOf(projectId));
  await eventually(() => expect(states(tail)).toContain("succeeded 1"));
  await api.delete(`/v1/projects/${projectId}/webhooks/${other}`);
  expect(await tail.ended).toMatchObject({ code: 4 });
});

test("exits with 5 when the service is unavailable at the start", async () => {
  proxy.mode = "503";
  const env = { SVC_BASE_URL: proxy.url, SVC_API_KEY: token };
  expect(await svc(["deliveries", "tail"], { env })).toMatchObject({ code: 5 });
});

import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { closeAfterFile } from "../../support/cleanup.ts";
import { eventOf, publish } from "../../support/deliveries.ts";
import { eventually } from "../../support/eventually.ts";
import { useReceiver } from "../../support/receiver.ts";
import { type Api, useService } from "../../support/service.ts";
import { type Running, startSvc } from "../../support/svc.ts";
import { svcHere } from "../../support/svc-here.ts";

/* `svc deliveries tail` against the real service, with and without faults. */

process.env.RETRY_SCHEDULE = "2";
const service = useService({ deliver: true });
const receiver = useReceiver();
let proxy: FaultProxy;
let api: Api;
let token: string;
let projectId: string;

beforeAll(async () => {
  proxy = await startFaultProxy(service.baseUrl);
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
  const proxy: FaultProxy = { url: "", mode: "pass", rejected: 0, close: () => server.close().closeAllConnections() };
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
  proxy.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  closeAfterFile(async () => proxy.close());
  return proxy;
}

async function newWebhook(): Promise<string> {
  const body = { url: receiver.url, events: ["deploy.started"] };
  return (await api.post(`/v1/projects/${projectId}/webhooks`, body)).body.data.id;
}

const tailing = (...args: string[]): Promise<Running> => tailingAt(proxy.url, ...args);

async function tailingAt(SVC_BASE_URL: string, ...args: string[]): Promise<Running> {
  const env = { SVC_BASE_URL, SVC_API_KEY: token };
  const tail = startSvc(["deliveries", "tail", ...args], { env });
  running.push(tail);
  await eventually(() => expect(tail.stderr()).toContain("Following"));
  return tail;
}

/** Lets an attempt fail, and its retry too, once the attempt is shown. @returns when it is shown */
function failTwice(status: number, body: string, isShown: () => void): Promise<void> {
  const shown = eventually(isShown);
  let attempts = 0;
  receiver.respondWith(async (_, response) => {
    attempts += 1;
    if (attempts > 1) await shown;
    response.writeHead(status).end(body);
  });
  return shown;
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
  const firstIsShown = failTwice(500, "", () => expect(states(tail)).toContain("pending 1"));
  await publish(eventOf(projectId));
  await firstIsShown;
  await eventually(() => expect(states(tail).at(-1)).toBe("failed 2"));
  const seen = records(tail).map(({ id, status, attempt_count }) => `${id} ${status} ${attempt_count}`);
  expect(new Set(seen).size).toBe(seen.length);
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
  const last = async (count: string) => {
    const tail = await tailing("--json", "--last", count);
    tail.child.kill("SIGINT");
    await tail.ended;
    return records(tail).map((record) => record.id);
  };
  expect(await last("2")).toEqual(ids.sort().slice(2));
  expect(await last("0")).toEqual([]);
});

test("without --json prints the result, the hint and the response of a failed attempt", async () => {
  await newWebhook();
  const tail = await tailing("--last", "0");
  const firstIsShown = failTwice(404, "no such hook", () =>
    expect(tail.stdout()).toMatch(
      /failing .* attempt 1 {2}404 in \d+ ms {2}retry (?:in \d s|now)\n +→ The receiver returned 404.*\n +response: no such hook\n/,
    ),
  );
  await publish(eventOf(projectId));
  await firstIsShown;
  await eventually(() => expect(tail.stdout()).toContain("failed     deploy.started"));
});

test("continues through 429, 503 and closed connections, and prints the changes that happened meanwhile", async () => {
  await newWebhook();
  const proxies = await Promise.all([1, 2, 3].map(() => startFaultProxy(service.baseUrl)));
  const tails = await Promise.all(proxies.map(({ url }) => tailingAt(url, "--json")));
  const stderrOfEach = () => tails.map((tail) => tail.stderr());
  for (const [index, mode] of (["429", "503", "hang up"] as const).entries())
    Object.assign(proxies[index] ?? {}, { mode });
  await eventually(() => expect(stderrOfEach()).toEqual(tails.map(() => expect.stringContaining("Retrying."))));
  await publish(eventOf(projectId));
  await eventually(() => expect(Math.min(...proxies.map(({ rejected }) => rejected))).toBeGreaterThan(1));
  for (const each of proxies) each.mode = "pass";
  await eventually(() => expect(tails.map(states)).toEqual(tails.map(() => ["succeeded 1"])));
  for (const tail of tails) {
    tail.child.kill("SIGINT");
    const { code, stderr } = await tail.ended;
    expect({ code, retries: stderr.match(/Retrying/g) }).toEqual({ code: 0, retries: ["Retrying"] });
    expect(stderr).toContain("The service is available again.");
  }
});

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
  expect(await svcHere(["deliveries", "tail"], { env })).toMatchObject({ code: 5 });
});

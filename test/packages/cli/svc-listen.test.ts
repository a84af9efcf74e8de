import { createHmac } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { signatureHeaders } from "../../../functions/webhooks/receiver/signature.ts";
import { eventOf, publish } from "../../support/deliveries.ts";
import { eventually } from "../../support/eventually.ts";
import { freePort } from "../../support/free-port.ts";
import { type Received, useReceiver } from "../../support/receiver.ts";
import { type Api, useService } from "../../support/service.ts";
import { type Environment, type Running, startSvc } from "../../support/svc.ts";
import { svcHere } from "../../support/svc-here.ts";

/* `svc listen` and `svc trigger` with the real service, and `svc verify` with real deliveries. */

const service = useService({ deliver: true });
const receiver = useReceiver();
let api: Api;
let projectId: string;
/** The service and the credential of commands that call it. */
let signedIn: Environment;
const folder = mkdtempSync(join(tmpdir(), "listen-"));

beforeAll(async () => {
  const user = service.user();
  api = user.api;
  projectId = await service.project(user.userId);
  signedIn = { SVC_BASE_URL: service.baseUrl, SVC_API_KEY: user.token };
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
});

const running: Running[] = [];
afterEach(() => {
  for (const { child } of running.splice(0)) child.kill("SIGKILL");
});

/** Starts a listener and creates a webhook that delivers to it. */
async function listening(args: string[], { withSecret = true, path = "hook" } = {}) {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/${path}`;
  const { body } = await api.post(`/v1/projects/${projectId}/webhooks`, { url, events: ["deploy.failed"] });
  const { id, secret } = body.data;
  const env: Environment = withSecret ? { SVC_WEBHOOK_SECRET: `a secret before it,${secret}` } : {};
  const listener = startSvc(["listen", "--port", String(port), ...args], { env });
  running.push(listener);
  await eventually(() => expect(listener.stderr()).toContain(`Listening on http://127.0.0.1:${port}/`));
  const webhook = `/v1/projects/${projectId}/webhooks/${id}`;
  const sendTest = async () => (await api.post(`${webhook}/test`)).body.data.id as string;
  return { listener, url, secret, webhook, sendTest };
}

test("shows each delivery with its verified signatures, and marks a repeated delivery", async () => {
  const { listener, sendTest, webhook } = await listening([]);
  await sendTest();
  const id = await sendTest();
  const shown = new RegExp(
    `deploy.failed\ndelivery +${id}\nX-Service-Signature {2}✔ valid, secret 2 of 2\nwebhook-signature {4}✔ valid, secret 2 of 2\nresponse +200\n\\{\n {2}"event": "deploy.failed",\n`,
  );
  await eventually(() => expect(listener.stdout()).toMatch(shown));
  expect(listener.stdout()).not.toContain("repeated delivery");
  await eventually(async () =>
    expect((await api.get(`${webhook}/deliveries/${id}`)).body.data.status).toBe("succeeded"),
  );
  await api.post(`${webhook}/deliveries/${id}/redeliver`);
  await eventually(() => expect(listener.stdout()).toContain("(repeated delivery)"));
  listener.child.kill("SIGINT");
  expect(await listener.ended).toMatchObject({ code: 0 });
});

test("marks a delivery as repeated if it is one of the last thousand", async () => {
  const port = await freePort();
  const listener = svcHere(["listen", "--port", String(port), "--count", "1003"]);
  const send = (id: number) =>
    fetch(`http://127.0.0.1:${port}/`, { method: "POST", headers: { "x-service-delivery": `d-${id}-` } });
  await eventually(() => send(0));
  for (let id = 1; id <= 1_000; id++) await send(id);
  for (const id of [1, 0]) await send(id);
  const { stdout } = await listener;
  expect(stdout.match(/repeated.*\n.*/g)).toEqual(["repeated delivery)\ndelivery             d-1-"]);
});

test("stops on SIGTERM while a request is incomplete", async () => {
  const { listener, url } = await listening([]);
  const socket = net.connect(Number(new URL(url).port), "127.0.0.1");
  socket.on("error", () => {});
  await once(socket, "connect");
  socket.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc");
  await eventually(() => expect(socket.bytesWritten).toBeGreaterThan(50));
  listener.child.kill("SIGTERM");
  expect(await listener.ended).toMatchObject({ code: 0 });
});

test("--json prints a delivery that svc verify accepts, and svc verify explains later changes to it", async () => {
  const { listener, sendTest, secret } = await listening(["--json", "--count", "1"]);
  const id = await sendTest();
  const { code, stdout } = await listener.ended;
  expect(code).toBe(0);
  const arrival = JSON.parse(stdout);
  expect(arrival).toMatchObject({
    method: "POST",
    path: "/hook",
    headers: { "webhook-id": id, "x-service-event": "deploy.failed", "x-service-test": "true" },
    signatures: [
      { holds: true, secret: 2 },
      { holds: true, secret: 2 },
    ],
    answered: 200,
  });
  const verify = async (delivery: object, given = secret) => {
    const file = join(folder, "delivery.json");
    writeFileSync(file, JSON.stringify(delivery));
    const run = await svcHere(["verify", "--delivery", file, "--json"], { env: { SVC_WEBHOOK_SECRET: given } });
    const { signatures } = JSON.parse(run.stdout);
    return [run.code, ...signatures.map(({ remarks }: { remarks: { code: string }[] }) => remarks[0]?.code ?? "holds")];
  };
  expect(await verify(arrival)).toEqual([0, "holds", "holds"]);
  const { headers, body } = arrival;
  const reprinted = JSON.stringify(JSON.parse(body), null, 2);
  expect(await verify({ headers, body: reprinted })).toEqual([1, "body_reserialised", "body_reserialised"]);
  expect(await verify({ headers, body: `${body}\n` })).toEqual([1, "newline_added", "newline_added"]);
  expect(await verify({ headers, body: `\ufeff${body}` })).toEqual([1, "body_reserialised", "body_reserialised"]);
  const withoutPrefix = await verify(arrival, secret.slice("whsec_".length));
  expect(withoutPrefix).toEqual([1, "secret_without_prefix", "secret_without_prefix"]);
  const upper = headers["x-service-signature"].toUpperCase().replace("SHA256", "sha256");
  expect(await verify({ headers: { ...headers, "x-service-signature": upper }, body })).toEqual([
    1,
    "upper_case_hex",
    "holds",
  ]);
  const late = { ...headers, "webhook-timestamp": String(Number(headers["webhook-timestamp"]) - 3600) };
  expect((await verify({ headers: late, body }))[1]).toBe("holds");
});

test("exits with 1 after --count when one of the signatures was invalid", async () => {
  const { listener, url, secret, sendTest } = await listening(["--count", "2"]);
  const signed = signatureHeaders({ deliveryId: "d", at: new Date(), body: "{}" }, secret);
  const headers = { ...signed, "X-Service-Signature": `sha256=${"0".repeat(64)}` };
  await fetch(url, { method: "POST", headers, body: "{}" });
  await eventually(() => expect(listener.stdout()).toContain("✘ invalid"));
  await sendTest();
  expect(await listener.ended).toMatchObject({ code: 1, stdout: expect.stringContaining("✔ valid") });
});

test("shows deliveries without checking signatures when no secret is given", async () => {
  const { listener, sendTest } = await listening(["--count", "1"], { withSecret: false });
  await sendTest();
  const { code, stdout, stderr } = await listener.ended;
  expect({ code, stdout, stderr }).toMatchObject({
    code: 0,
    stdout: expect.not.stringContaining("X-Service-Signature"),
    stderr: expect.stringContaining("signatures are not checked"),
  });
});

test("responds with the status code of --status", async () => {
  const { sendTest, webhook } = await listening(["--status", "418"]);
  const id = await sendTest();
  await eventually(async () => {
    const { data } = (await api.get(`${webhook}/deliveries/${id}`)).body;
    expect(data.attempts).toMatchObject([{ status_code: 418 }]);
  });
});

test("accepts a body of 1 MiB and rejects a larger one with 413", async () => {
  const { url } = await listening([]);
  const post = (bytes: number) => fetch(url, { method: "POST", body: "x".repeat(bytes) });
  expect((await post(1024 * 1024)).status).toBe(200);
  expect((await post(1024 * 1024 + 1)).status).toBe(413);
  // The response is not lost: the body is read to its end.
  expect((await post(20 * 1024 * 1024)).status).toBe(413);
});

test("survives oversized, incomplete and invalid requests, and escapes control characters of a delivery", async () => {
  const { listener, url } = await listening(["--count", "1"]);
  const large = await fetch(url, { method: "POST", body: "x".repeat(1024 * 1024 + 1) });
  expect(large.status).toBe(413);
  const { port } = new URL(url);
  const half = net.connect(Number(port), "127.0.0.1");
  half.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf");
  await once(half, "connect");
  await eventually(() => expect(half.bytesWritten).toBeGreaterThan(0));
  half.destroy();
  const junk = net.connect(Number(port), "127.0.0.1");
  junk.resume().end("hello\r\n\r\n");
  await once(junk, "close");
  const hostile = { method: "POST", body: "\u001b[2J not JSON", headers: { "x-service-event": "e\u009b2J" } };
  expect((await fetch(url, hostile)).status).toBe(200);
  const { stdout } = await listener.ended;
  expect(stdout).toContain("\\u001b[2J not JSON");
  for (const control of ["\u001b", "\u009b"]) expect(stdout).not.toContain(control);
});

test("listens on the loopback address only, and reports a port that is in use", async () => {
  const { url } = await listening([]);
  const { port } = new URL(url);
  const others = Object.values(networkInterfaces()).flatMap((list = []) => list.filter(({ internal }) => !internal));
  for (const { address, family } of others) {
    const host = family === "IPv6" ? `[${address}]` : address;
    await expect(fetch(`http://${host}:${port}/`, { signal: AbortSignal.timeout(2_000) })).rejects.toThrow();
  }
  const taken = await svcHere(["listen", "--port", port]);
  expect(taken).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`Could not listen on port ${port}: it is already in use`),
  });
});

test("--forward shows the signing secret of this machine, which verifies what it sends, and stops on SIGINT", async () => {
  receiver.respondWith(200);
  const listener = startSvc(["listen", "--project", projectId, "--forward", receiver.url], {
    env: signedIn,
    showsSecret: "stderr",
  });
  running.push(listener);
  await eventually(() => expect(listener.stderr()).toContain(`forwarding to ${receiver.url}`));
  const secret = /Signing secret of this machine: (whsec_[0-9a-f]{64}) /.exec(listener.stderr())?.[1] ?? "";
  const event = eventOf(projectId);
  await publish(event);
  const isForwarded = ({ body }: Received) => body.includes(String(event.deployment_id));
  await eventually(() => expect(receiver.received.find(isForwarded)).toBeDefined());
  const { headers, body = "" } = receiver.received.find(isForwarded) ?? {};
  expect(headers?.["x-service-signature"]).toBe(`sha256=${createHmac("sha256", secret).update(body).digest("hex")}`);
  await eventually(() => expect(listener.stdout()).toMatch(/forwarded {12}200 in/));
  listener.child.kill("SIGINT");
  expect(await listener.ended).toMatchObject({ code: 0 });
});

describe("svc trigger", () => {
  async function newProject(webhooks: { events: string[]; enabled?: boolean }[]): Promise<string> {
    const user = service.user();
    const project = await service.project(user.userId);
    for (const [index, { events, enabled = true }] of webhooks.entries()) {
      const url = `${receiver.url}/${index}`;
      const { body } = await user.api.post(`/v1/projects/${project}/webhooks`, { url, events });
      if (!enabled) await user.api.patch(`/v1/projects/${project}/webhooks/${body.data.id}`, { enabled });
    }
    env = { SVC_BASE_URL: service.baseUrl, SVC_API_KEY: user.token };
    return project;
  }
  let env: Environment;

  test("sends a test delivery to each enabled webhook that receives the event, and says to how many", async () => {
    receiver.respondWith(200);
    const [failed, started] = [{ events: ["deploy.started", "deploy.failed"] }, { events: ["deploy.started"] }];
    const project = await newProject([failed, started, failed, { ...failed, enabled: false }]);
    const { code, stdout, stderr } = await svcHere(["trigger", "deploy.failed", "--json"], { env });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "Sending deploy.failed to 2 of the project's 4 webhooks.\n" });
    const lines = stdout
      .trim()
      .split("\n")
      .map((line): unknown => JSON.parse(line));
    expect(lines).toMatchObject([1, 2].map(() => ({ event: "deploy.failed", test: true, status: "succeeded" })));
    receiver.respondWith(({ path }, response) => response.writeHead(path.endsWith("/0") ? 500 : 200).end());
    const named = await svcHere(["trigger", "deploy.failed"], { env });
    expect(named.stderr.split("\n").slice(1)).toEqual([`${receiver.url}/0`, `${receiver.url}/2`, ""]);
    expect({ code: named.code, stdout: named.stdout }).toEqual({
      code: 1,
      stdout: expect.stringMatching(/^failed .*\nsucceeded /s),
    });
    const none = await svcHere(["trigger", "deploy.succeeded", "--project", project], { env });
    expect(none).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("No enabled webhook of the project receives deploy.succeeded.\n→ Add the event"),
    });
    const misspelt = await svcHere(["trigger", "deploy.fialed", "--project", project], { env });
    expect(misspelt).toMatchObject({ code: 1, stderr: expect.stringContaining("→ Check the name") });
  });

  test("sends to the disabled webhook of --webhook, and never an event that it does not receive; exit code 1 if it fails", async () => {
    receiver.respondWith(503);
    await newProject([{ events: ["deploy.started"] }]);
    const only = await svcHere(["trigger", "deploy.started"], { env });
    expect(only).toMatchObject({ code: 1, stdout: expect.stringContaining("503 in") });
    const other = await svcHere(["trigger", "deploy.failed"], { env });
    expect(other).toMatchObject({ code: 1, stdout: "" });
    const user = { ...env };
    const project = await newProject([{ events: ["deploy.started"] }, { events: ["deploy.failed"], enabled: false }]);
    receiver.respondWith(200);
    const { data } = (await service.as(env.SVC_API_KEY ?? "").get(`/v1/projects/${project}/webhooks`)).body;
    const chosen = await svcHere(["trigger", "deploy.failed", "--webhook", data[1].id], { env });
    expect(chosen).toMatchObject({ code: 0, stdout: expect.stringContaining("deploy.failed"), stderr: "" });
    const refused = await svcHere(["trigger", "deploy.failed", "--webhook", data[0].id], { env });
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("subscribes: deploy.started") });
    expect((await svcHere(["trigger", "deploy.failed", "--project", project], { env: user })).code).toBe(4);
  });

  test("--forward sends a signed sample without a service and without a credential", async () => {
    receiver.respondWith((_, response) => response.writeHead(201).end("thanks"));
    const secret = `whsec_${"0f".repeat(32)}`;
    const { length } = receiver.received;
    const args = ["trigger", "deploy.succeeded", "--forward", receiver.url, "--project", projectId.toUpperCase()];
    const sent = await svcHere([...args, "--secret", secret], { env: { XDG_CONFIG_HOME: folder } });
    expect(sent).toMatchObject({ code: 0, stderr: "" });
    expect(sent.stdout).toMatch(/^delivery {13}[0-9a-f-]{36}\nforwarded {12}201 in \d+ ms\nresponse {13}thanks\n$/);
    const { headers, body = "" } = receiver.received[length] ?? {};
    expect(headers?.["x-service-signature"]).toBe(`sha256=${createHmac("sha256", secret).update(body).digest("hex")}`);
    expect(JSON.parse(body)).toMatchObject({ event: "deploy.succeeded", project_id: projectId, data: { test: true } });
    expect(headers).toHaveProperty("x-service-test", "true");
    const config = join(folder, "svc/config.json");
    mkdirSync(join(folder, "svc"));
    writeFileSync(config, '{"base_url":"https://api.example.com"}');
    const down = ["trigger", "deploy.failed", "--json", "--forward", `http://127.0.0.1:${await freePort()}/`];
    const failed = await svcHere(down, { env: { XDG_CONFIG_HOME: folder }, showsSecret: "stderr" });
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining("Signing secret of this machine") });
    expect(JSON.parse(failed.stdout)).toMatchObject({ forwarded: { error_code: "connection_refused" } });
    const forward_secret = expect.stringMatching(/^whsec_/);
    expect(JSON.parse(readFileSync(config, "utf8"))).toMatchObject({
      base_url: "https://api.example.com",
      forward_secret,
    });
    const asText = down.filter((word) => word !== "--json");
    const again = await svcHere(asText, { env: { XDG_CONFIG_HOME: folder }, showsSecret: "stderr" });
    expect(again.stderr).toBe(failed.stderr);
    expect(again.stdout).toMatch(/^forwarded +connection_refused in \d+ ms\n +→ Nothing accepts connections at/m);
    const data = join(folder, "data.json");
    writeFileSync(data, '{"reason":"out of memory","test":false}');
    await svcHere([...args, "--secret", secret, "--data", data], { env: { XDG_CONFIG_HOME: folder } });
    expect(JSON.parse(receiver.received.at(-1)?.body ?? "")).toMatchObject({
      data: { reason: "out of memory", test: true },
    });
  });
});

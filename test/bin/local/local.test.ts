import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { eventually } from "../../support/eventually.ts";
import { freshDataDir, type LocalRun, runCommand, startLocalRun } from "../../support/local-run.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";
import { send } from "../../support/service.ts";

/* `npm start` as its users meet it: a process that prints a page, answers, survives kill -9 and ends on Ctrl-C. */

const runs: LocalRun[] = [];
const receivers: Receiver[] = [];

async function start(settings: Record<string, string>): Promise<LocalRun> {
  const run = await startLocalRun(settings);
  runs.push(run);
  return run;
}

async function receiver(): Promise<Receiver> {
  const started = await startReceiver();
  receivers.push(started);
  return started;
}

afterEach(async () => {
  await Promise.all(runs.splice(0).map((run) => run.end("SIGKILL")));
  await Promise.all(receivers.splice(0).map((each) => each.close()));
});

const bearer = (token: string) => ({ authorization: `Bearer ${token}`, "content-type": "application/json" });
const post = ({ baseUrl, token }: LocalRun, path: string, body: object) =>
  send(`${baseUrl}${path}`, { method: "POST", headers: bearer(token), body: JSON.stringify(body) });

async function sendEvent({ eventsQueueUrl, projectId }: LocalRun, data: object = {}): Promise<string> {
  const deployment_id = randomUUID();
  const event = {
    data,
    event: "deploy.failed",
    project_id: projectId,
    deployment_id,
    timestamp: new Date().toISOString(),
  };
  const sqs = new SQSClient({ endpoint: new URL(eventsQueueUrl).origin });
  await sqs.send(new SendMessageCommand({ QueueUrl: eventsQueueUrl, MessageBody: JSON.stringify(event) }));
  return deployment_id;
}

const subscribe = (run: LocalRun, url: string) =>
  post(run, `/v1/projects/${run.projectId}/webhooks`, { url, events: ["deploy.failed"] });

test("shows a page whose token and project work, and ends it with the line that scripts wait for", async () => {
  const run = await start({ DATA_DIR: freshDataDir() });
  expect(run.page.trimEnd().split("\n").at(-1)).toBe(`ready ${run.baseUrl}`);
  const { status, body } = await send(`${run.baseUrl}/v1/projects`, { headers: bearer(run.token) });
  expect(status).toBe(200);
  expect(body.data).toEqual([expect.objectContaining({ id: run.projectId, role: "admin" })]);
});

test("listens on 127.0.0.1 and on no other address", async () => {
  const run = await start({ DATA_DIR: freshDataDir() });
  for (const url of [run.baseUrl, run.eventsQueueUrl, run.dynamoEndpoint]) {
    const port = Number(new URL(url).port);
    expect(await canConnect("127.0.0.1", port)).toBe(true);
    // An address of the loopback too: whoever listens on all interfaces answers here.
    expect(await canConnect("127.0.0.2", port)).toBe(false);
  }
});

test("ends cleanly on Ctrl-C, and again after a second of its kind at the same moment", async () => {
  const run = await start({ DATA_DIR: freshDataDir() });
  run.process.kill("SIGINT");
  expect(await run.end("SIGINT")).toBe(0);
});

test("ends on Ctrl-C although a client holds a connection and says nothing", async () => {
  const run = await start({ DATA_DIR: freshDataDir() });
  const socket = net.connect({ host: "127.0.0.1", port: Number(new URL(run.baseUrl).port) });
  await new Promise((resolve) => socket.once("connect", resolve));
  expect(await run.end("SIGINT")).toBe(0);
  socket.destroy();
}, 10_000);

test("ends on Ctrl-C although a receiver hangs", async () => {
  const run = await start({ DATA_DIR: freshDataDir() });
  const hanging = await receiver();
  hanging.answerWith(() => {});
  await subscribe(run, hanging.url);
  await sendEvent(run);
  await hanging.waitFor(1);
  expect(await run.end("SIGINT")).toBe(0);
}, 10_000);

test("is not taken for another service that came to its address after a kill -9", async () => {
  const killed = { DATA_DIR: freshDataDir() };
  const run = await start(killed);
  const { port } = new URL(run.baseUrl);
  await run.end("SIGKILL");
  await start({ DATA_DIR: freshDataDir(), PORT: port });
  const again = await start(killed);
  expect(again.baseUrl).not.toBe(run.baseUrl);
});

test("keeps its log when a second start over the same directory is refused", async () => {
  const settings = { DATA_DIR: freshDataDir() };
  const run = await start(settings);
  const target = await receiver();
  await subscribe(run, target.url);
  await sendEvent(run);
  await target.waitFor(1);
  const log = () => readFileSync(join(settings.DATA_DIR, "service.log"), "utf8");
  await eventually(() => expect(log()).toContain('"attempt"'));
  expect((await runCommand("local", [], settings)).code).toBe(1);
  expect(log()).toContain('"attempt"');
});

test("takes events with characters of all kinds, as SQS does", async () => {
  const run = await start({ DATA_DIR: freshDataDir(), AWS_REGION: "eu-west-1" });
  const target = await receiver();
  await subscribe(run, target.url);
  await sendEvent(run, { commit: "🚀 Grüße, 世界" });
  const [arrived] = await target.waitFor(1);
  expect(JSON.parse(arrived?.body ?? "").data).toEqual({ commit: "🚀 Grüße, 世界" });
});

test("keeps keys, webhooks and tokens over kill -9", async () => {
  const settings = { DATA_DIR: freshDataDir() };
  const before = await start(settings);
  const key = (await post(before, "/v1/api-keys", { name: "kept" })).body.data.key;
  const webhook = (await subscribe(before, "https://example.com/hook")).body.data;
  await before.end("SIGKILL");

  const after = await start(settings);
  const listed = await send(`${after.baseUrl}/v1/projects/${after.projectId}/webhooks`, { headers: bearer(key) });
  expect(listed.body.data).toEqual([expect.objectContaining({ id: webhook.id })]);
  expect((await send(`${after.baseUrl}/v1/api-keys`, { headers: bearer(before.token) })).status).toBe(200);
});

test("delivers after a restart what was on its way when the process was killed", async () => {
  const settings = { DATA_DIR: freshDataDir(), RETRY_SCHEDULE: "1,1,1" };
  const hanging = await receiver();
  hanging.answerWith(() => {});
  const before = await start(settings);
  await subscribe(before, hanging.url);
  const deploymentId = await sendEvent(before);
  const [first] = await hanging.waitFor(1);
  await before.end("SIGKILL");

  hanging.answerWith(200);
  await start(settings);
  const [, second] = await hanging.waitFor(2);
  expect(JSON.parse(second?.body ?? "")).toMatchObject({ deployment_id: deploymentId });
  expect(second?.headers["webhook-id"]).toBe(first?.headers["webhook-id"]);
  expect(hanging.received).toHaveLength(2);
});

test("delivers after a restart what was queued while it was down or had just been queued", async () => {
  const settings = { DATA_DIR: freshDataDir() };
  const target = await receiver();
  const before = await start(settings);
  await subscribe(before, target.url);
  const sent = await Promise.all(Array.from({ length: 10 }, () => sendEvent(before)));
  await before.end("SIGKILL");

  await start(settings);
  // One that was being sent when the process was killed may come twice.
  await eventually(() => {
    const arrived = new Set(target.received.map(({ body }) => JSON.parse(body).deployment_id));
    expect([...arrived].sort()).toEqual([...sent].sort());
  });
});

test("leaves no engine behind when it is killed", async () => {
  const run = await start({ DATA_DIR: freshDataDir() });
  const port = Number(new URL(run.dynamoEndpoint).port);
  expect(await canConnect("127.0.0.1", port)).toBe(true);
  await run.end("SIGKILL");
  for (let tries = 0; tries < 100 && (await canConnect("127.0.0.1", port)); tries++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(await canConnect("127.0.0.1", port)).toBe(false);
});

test("refuses a data directory that another service uses, and says where that one is", async () => {
  const settings = { DATA_DIR: freshDataDir() };
  const run = await start(settings);
  const second = await runCommand("local", [], settings);
  expect(second.code).toBe(1);
  expect(second.stderr).toBe(
    `The service at ${run.baseUrl} uses ${settings.DATA_DIR}. Stop it, or set another DATA_DIR.\n`,
  );
});

test.each([
  ["AWS_ENDPOINT_URL_DYNAMODB", "The DynamoDB engine at http://127.0.0.1:9 cannot be used"],
  ["AWS_ENDPOINT_URL_SQS", "The SQS engine at http://127.0.0.1:9 cannot be used"],
])("says in one sentence that nothing answers at %s", async (setting, sentence) => {
  const settings = { DATA_DIR: freshDataDir(), [setting]: "http://127.0.0.1:9" };
  const { code, stderr, stdout } = await runCommand("local", [], settings);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain(sentence);
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
});

test("says in one sentence that there is no engine for this platform", async () => {
  const elsewhere = "data:text/javascript,Object.defineProperty(process,`platform`,{value:`sunos`})";
  const settings = { DATA_DIR: freshDataDir(), NODE_OPTIONS: `--import ${elsewhere}` };
  const { code, stderr } = await runCommand("local", [], settings);
  expect(code).toBe(1);
  expect(stderr).toContain("(@dynoxide/sunos-x64 is not installed). Start DynamoDB Local or LocalStack");
});

test.each(["PORT", "SQS_PORT"])("says in one sentence that the port in %s is taken", async (setting) => {
  const server = net.createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as net.AddressInfo;
  const { code, stderr, stdout } = await runCommand("local", [], { DATA_DIR: freshDataDir(), [setting]: String(port) });
  server.close();
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toBe(`Port ${port} is taken by another program. Stop it, or choose another port with ${setting}.\n`);
});

test.each([
  ["PORT", "eighty", "PORT takes a port from 0 (any free one) to 65535"],
  ["PORT", "70000", "PORT takes a port from 0 (any free one) to 65535"],
  ["SQS_PORT", "-1", "SQS_PORT takes a port from 0 (any free one) to 65535"],
  ["JWT_SECRET", "too short", "JWT_SECRET must be at least 32 bytes long"],
  ["RETRY_SCHEDULE", "5,soon", "RETRY_SCHEDULE takes whole seconds"],
  ["LAST_USED_RESOLUTION_SECONDS", "1.5", "LAST_USED_RESOLUTION_SECONDS takes whole seconds"],
  ["WEBHOOK_ALLOW_CIDRS", "everything", 'WEBHOOK_ALLOW_CIDRS: "everything" is not an address range'],
  ["JWKS_ISSUER", "notaurl", "JWKS_URI, or else JWKS_ISSUER, must be an https URL"],
  ["AWS_ENDPOINT_URL_SQS", "localhost:4566", "AWS_ENDPOINT_URL_SQS takes an http(s) URL"],
  ["DATA_DIR", "/dev/null/data", "The data directory /dev/null/data cannot be used"],
])("refuses %s=%s in one sentence", async (setting, value, sentence) => {
  const { code, stderr, stdout } = await runCommand("local", [], { DATA_DIR: freshDataDir(), [setting]: value });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain(sentence);
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
});

function canConnect(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect({ host, port });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

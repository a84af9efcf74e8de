import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import { join } from "node:path";
import { GetQueueAttributesCommand, SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { mintToken } from "../../../bin/command/mint-token.ts";
import { readSettings } from "../../../bin/command/settings.ts";
import { childProcesses } from "../../support/broken-process.ts";
import { commandHere } from "../../support/command-here.ts";
import { eventually } from "../../support/eventually.ts";
import { freePort } from "../../support/free-port.ts";
import { listening } from "../../support/listening.ts";
import { freshDataDir, type LocalRun, runCommand, startLocalRun } from "../../support/local-run.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";
import { send } from "../../support/service.ts";

/* `npm start` as a user runs it: a process that prints a page, serves requests, survives kill -9 and ends on Ctrl-C. */

const bearer = (token: string) => ({ authorization: `Bearer ${token}`, "content-type": "application/json" });
const post = ({ baseUrl, token }: LocalRun, path: string, body: object) =>
  send(`${baseUrl}${path}`, { method: "POST", headers: bearer(token), body: JSON.stringify(body) });

async function sendEvent(
  { eventsQueueUrl, projectId }: LocalRun,
  { event: name = "deploy.failed", data = {} } = {},
): Promise<string> {
  const deployment_id = randomUUID();
  const event = {
    data,
    event: name,
    project_id: projectId,
    deployment_id,
    timestamp: new Date().toISOString(),
  };
  const sqs = new SQSClient({ endpoint: new URL(eventsQueueUrl).origin });
  await sqs.send(new SendMessageCommand({ QueueUrl: eventsQueueUrl, MessageBody: JSON.stringify(event) }));
  return deployment_id;
}

/** Number of events that a consumer has received and not deleted. */
async function inFlightEvents({ eventsQueueUrl }: LocalRun): Promise<number> {
  const sqs = new SQSClient({ endpoint: new URL(eventsQueueUrl).origin });
  const name = "ApproximateNumberOfMessagesNotVisible";
  const counts = new GetQueueAttributesCommand({ QueueUrl: eventsQueueUrl, AttributeNames: [name] });
  return Number((await sqs.send(counts)).Attributes?.[name]);
}

const subscribe = (run: LocalRun, url: string, event = "deploy.failed") =>
  post(run, `/v1/projects/${run.projectId}/webhooks`, { url, events: [event] });

describe("a running service", () => {
  const settings = { DATA_DIR: freshDataDir(), AWS_REGION: "eu-west-1" };
  let run: LocalRun;
  let early: Response;
  beforeAll(async () => {
    const umask = process.umask(0);
    const PORT = String(await freePort());
    const headers = bearer(mintToken(readSettings(settings).jwtSecret, "early"));
    try {
      [run, early] = await Promise.all([
        startLocalRun({ ...settings, PORT }),
        eventually(() => fetch(`http://127.0.0.1:${PORT}/v1/projects`, { headers })),
      ]);
    } finally {
      process.umask(umask);
    }
  });

  test("answers a request that arrived while it started, as soon as it is ready", async () => {
    expect({ status: early.status, body: await early.json() }).toMatchObject({ status: 200, body: { data: [] } });
  });

  test("prints a page whose token and project work, and whose last line is the one that scripts wait for", async () => {
    expect(run.page.trimEnd().split("\n").at(-1)).toBe(`ready ${run.baseUrl}`);
    const { status, body } = await send(`${run.baseUrl}/v1/projects`, { headers: bearer(run.token) });
    expect(status).toBe(200);
    expect(body.data).toEqual([expect.objectContaining({ id: run.projectId, role: "admin" })]);
  });

  test("listens on a loopback address and on no other address", async () => {
    for (const url of [run.baseUrl, run.eventsQueueUrl, run.dynamoEndpoint]) {
      const { hostname, port: digits } = new URL(url);
      const port = Number(digits);
      expect(hostname).toMatch(/^127\./);
      expect(await canConnect(hostname, port)).toBe(true);
      // Also a loopback address: a server that listens on all interfaces accepts connections here.
      expect(await canConnect("127.0.0.2", port)).toBe(false);
    }
  });

  test("stores nothing that another user of this machine can read, whatever the umask", () => {
    const files = readdirSync(settings.DATA_DIR, { recursive: true, encoding: "utf8" });
    expect(files).toEqual(expect.arrayContaining(["dynamodb.sqlite", "jwt-secret", "running.json", "sqs/fauxqs.db"]));
    expect(files.filter((name) => statSync(join(settings.DATA_DIR, name)).mode & 0o077)).toEqual([]);
  });

  test("prints commands that end in a delivery when they are pasted from top to bottom", async () => {
    const commands = tryItCommands(run);
    expect(commands).toContain(" listen --port 4000 --count 1 & ");
    expect(commands).toMatch(/\nwait\n\n.*\n.* -X DELETE\n/);
    // Another program may use the port.
    const port = String(await freePort());
    const { code, output } = await runInShell(commands.replaceAll("4000", port));
    expect({ code, output }).toEqual({ code: 0, output: expect.stringMatching(/"key":"svc_[0-9a-f]{64}"/) });
    expect(output).toContain('"name":"Demo project"');
    const [, deployment = "none"] = /queued deploy\.succeeded of deployment (\S+)/.exec(output) ?? [];
    const received = output.slice(output.indexOf("Listening on"));
    expect(received).toMatch(/deploy\.succeeded\S*\ndelivery +\S+/);
    // Once in the line of the event command, once in the delivery.
    expect(received.split(deployment).length).toBeGreaterThan(2);
    const left = await send(`${run.baseUrl}/v1/projects/${run.projectId}/webhooks`, {
      headers: { authorization: `Bearer ${run.token}` },
    });
    expect(JSON.stringify(left.body)).not.toContain(`:${port}/`);
  });

  test("accepts events with any Unicode character, as SQS does", async () => {
    const target = await startReceiver();
    await subscribe(run, target.url);
    await sendEvent(run, { data: { commit: "🚀 Grüße, 世界" } });
    const [arrived] = await target.waitFor(1);
    expect(JSON.parse(arrived?.body ?? "").data).toEqual({ commit: "🚀 Grüße, 世界" });
  });

  test("keeps its data directory and its log when a second start with them fails, which prints its address", async () => {
    const log = () => readFileSync(join(settings.DATA_DIR, "service.log"), "utf8");
    await eventually(() => expect(log()).toContain('"attempt"'));
    const second = await runCommand("local", [], settings);
    expect(second.code).toBe(1);
    expect(second.stderr).toBe(
      `The service at ${run.baseUrl} already uses the data directory ${settings.DATA_DIR}. ` +
        "Stop it, or set another DATA_DIR.\n",
    );
    expect(log()).toContain('"attempt"');
  });

  test("ends with exit code 0 on Ctrl-C, also when the signal arrives twice at the same moment", async () => {
    let stderr = "";
    run.process.stderr?.on("data", (text) => {
      stderr += text;
    });
    run.process.kill("SIGINT");
    expect(await run.end("SIGINT")).toBe(0);
    await eventually(() => expect(stderr).toMatch(/\nStopped\.\n$/));
    expect(readdirSync(settings.DATA_DIR)).not.toContain("running.json");
  });
});

describe("a service that is killed with kill -9 while a delivery is in flight and events are queued", () => {
  const settings = { DATA_DIR: freshDataDir(), RETRY_SCHEDULE: "1,1,1" };
  let before: LocalRun;
  let after: LocalRun;
  let strict: LocalRun;
  const strictSettings = { DATA_DIR: freshDataDir(), WEBHOOK_ALLOW_CIDRS: "" };
  let hanging: Receiver;
  let target: Receiver;
  let key: string;
  let webhookIds: string[];
  let inFlight: string;
  let queued: string[];
  beforeAll(async () => {
    [hanging, target, before] = await Promise.all([startReceiver(), startReceiver(), startLocalRun(settings)]);
    hanging.respondWith(() => {});
    key = (await post(before, "/v1/api-keys", { name: "kept" })).body.data.key;
    const webhooks = [await subscribe(before, hanging.url), await subscribe(before, target.url, "deploy.started")];
    webhookIds = webhooks.map(({ body }) => body.data.id);
    inFlight = await sendEvent(before);
    await hanging.waitFor(1);
    await eventually(async () => expect(await inFlightEvents(before)).toBe(0));
    queued = await Promise.all(Array.from({ length: 10 }, () => sendEvent(before, { event: "deploy.started" })));
    await before.end("SIGKILL");
  });

  test("leaves no engine running", async () => {
    const { port } = new URL(before.dynamoEndpoint);
    await eventually(async () => expect(await canConnect("127.0.0.1", Number(port))).toBe(false));
  });

  test("starts again although another service has its old address", async () => {
    hanging.respondWith(200);
    strict = await startLocalRun({ ...strictSettings, PORT: new URL(before.baseUrl).port });
    after = await startLocalRun(settings);
    expect(after.baseUrl).not.toBe(before.baseUrl);
  });

  test("has its keys, webhooks and tokens", async () => {
    const listed = await send(`${after.baseUrl}/v1/projects/${after.projectId}/webhooks`, { headers: bearer(key) });
    expect(listed.body.data.map(({ id }: { id: string }) => id)).toEqual(webhookIds);
    expect((await send(`${after.baseUrl}/v1/api-keys`, { headers: bearer(before.token) })).status).toBe(200);
  });

  test("delivers again what was in flight", async () => {
    const [first, second] = await hanging.waitFor(2);
    expect(JSON.parse(second?.body ?? "")).toMatchObject({ deployment_id: inFlight });
    expect(second?.headers["webhook-id"]).toBe(first?.headers["webhook-id"]);
    expect(hanging.received).toHaveLength(2);
  });

  test("delivers all events that were queued", async () => {
    // A delivery that was in flight when the process was killed may arrive twice.
    await eventually(() => {
      const arrived = new Set(target.received.map(({ body }) => JSON.parse(body).deployment_id));
      expect([...arrived].sort()).toEqual(queued.toSorted());
    });
  });

  test("ends on Ctrl-C while a client holds an idle connection, and before a receiver that hangs has its timeout", async () => {
    const socket = net.connect({ host: "127.0.0.1", port: Number(new URL(after.baseUrl).port) });
    await once(socket, "connect");
    hanging.respondWith(() => {});
    await sendEvent(after);
    await hanging.waitFor(3);
    const errors = () => readFileSync(join(settings.DATA_DIR, "service.log"), "utf8").match(/.*"level":"error".*/g);
    const [stoppedAt, known] = [performance.now(), errors()];
    expect(await after.end("SIGINT")).toBe(0);
    expect(performance.now() - stoppedAt).toBeLessThan(14_000);
    // The engines are the last to stop.
    expect(errors()).toEqual(known);
    socket.destroy();
  });

  test("beside it, one with an empty WEBHOOK_ALLOW_CIDRS allows no private address, as on AWS, and no demo", async () => {
    const { status, body } = await subscribe(strict, "http://127.0.0.1:4000/");
    expect({ status, code: body.error?.code }).toEqual({ status: 400, code: "validation_error" });
    expect(tryItCommands(strict)).not.toContain("4000");
    expect(strict.page).not.toContain("npm run --silent demo");
    const { DATA_DIR } = strictSettings;
    expect(await runCommand("demo", [], { DATA_DIR })).toEqual({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("This run allows no receivers on this machine"),
    });
  });

  test("beside it, one whose engine ends exits with 1 and prints how to start again", async () => {
    let stderr = "";
    strict.process.stderr?.on("data", (text) => {
      stderr += text;
    });
    const ended = once(strict.process, "close");
    for (const pid of childProcesses(strict.process.pid)) process.kill(Number(pid));
    expect(await ended).toEqual([1, null]);
    expect(stderr).toMatch(/^An embedded engine has ended, .* No data is lost\. Start again: DATA_DIR=.* npm start\n$/);
  });
});

test("prints one line when no engine responds at AWS_ENDPOINT_URL_DYNAMODB", async () => {
  const settings = { DATA_DIR: freshDataDir(), AWS_ENDPOINT_URL_DYNAMODB: "http://127.0.0.1:9" };
  expect(await commandHere("local", [], settings)).toEqual({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^The DynamoDB engine at http:\/\/127\.0\.0\.1:9 cannot be used: .*\n$/),
  });
});

test("a start that fails ends with its message, also while requests wait for it", async () => {
  const PORT = String(await freePort());
  const requests: Promise<unknown>[] = [];
  const engine = http.createServer((_request, response) => {
    requests.push(fetch(`http://127.0.0.1:${PORT}/v1/projects`).catch(() => "closed"));
    response.writeHead(400).end();
  });
  const settings = { DATA_DIR: freshDataDir(), PORT, AWS_ENDPOINT_URL_SQS: await listening(engine) };
  const { code, stderr } = await runCommand("local", [], settings);
  const line = expect.stringMatching(/^The SQS engine at .* cannot be used: .*\n$/);
  expect({ code, stderr }).toEqual({ code: 1, stderr: line });
  expect(new Set(await Promise.all(requests))).toEqual(new Set(["closed"]));
});

test.each(["PORT", "SQS_PORT"])("prints one line when the port in %s is in use", async (setting) => {
  const server = net.createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as net.AddressInfo;
  const { code, stderr, stdout } = await commandHere("local", [], {
    DATA_DIR: freshDataDir(),
    [setting]: String(port),
  });
  server.close();
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toBe(
    `Port ${port} is in use by another program. Stop that program, or choose another port with ${setting}.\n`,
  );
});

test("does not start when its log cannot be written and prints one line", async () => {
  const DATA_DIR = freshDataDir();
  mkdirSync(join(DATA_DIR, "service.log"));
  const { code, stdout, stderr } = await commandHere("local", [], { DATA_DIR });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/^The data directory .+ cannot be used: EISDIR.+ Set DATA_DIR to a folder that .+\n$/);
  rmSync(join(DATA_DIR, "service.log"), { recursive: true });
});

/** The commands below "Try it" on the page of a run, as a person copies them. */
function tryItCommands({ page }: LocalRun): string {
  const [, rest = ""] = page.split(/^Try it.*$/m);
  const [block = ""] = rest.split(/^More$/m);
  return block.replaceAll(/^ {2}/gm, "");
}

function runInShell(script: string): Promise<{ code: number | null; output: string }> {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  const options = { cwd: join(import.meta.dirname, "../../.."), env: { PATH, HOME, NODE_COMPILE_CACHE } };
  return new Promise((resolve) => {
    const child = spawn("bash", ["-c", script], options);
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    }
    child.once("close", (code) => resolve({ code, output }));
  });
}

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

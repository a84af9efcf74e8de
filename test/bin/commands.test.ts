import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import jwt from "jsonwebtoken";
import { mintToken } from "../../bin/command/mint-token.ts";
import { commandHere } from "../support/command-here.ts";
import { eventually } from "../support/eventually.ts";
import {
  environment,
  freshDataDir,
  type LocalRun,
  runCommand,
  startLocalRun,
  startProgram,
} from "../support/local-run.ts";
import { useReceiver } from "../support/receiver.ts";
import { send } from "../support/service.ts";

/* The commands that talk to a running service: token, project, invoke, event, demo. */

const root = join(import.meta.dirname, "../..");
const settings = { DATA_DIR: freshDataDir() };
let run: LocalRun;
const receiver = useReceiver();

beforeAll(async () => {
  run = await startLocalRun(settings);
});

const call = (token: string, path: string, body?: object) =>
  send(`${run.baseUrl}${path}`, {
    method: body ? "POST" : "GET",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });

const tokenFor = (user: string) => mintToken(readFileSync(join(settings.DATA_DIR, "jwt-secret"), "utf8").trim(), user);

test("token prints a JWT with a lifetime of one hour, and nothing else", async () => {
  const { code, stdout, stderr } = await commandHere("token", ["--user", "alice"], settings);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/);
  const { sub, iat = 0, exp = 0 } = jwt.decode(stdout.trim()) as jwt.JwtPayload;
  expect({ sub, seconds: exp - iat }).toEqual({ sub: "alice", seconds: 3600 });
  expect((await call(stdout.trim(), "/v1/projects")).status).toBe(200);
});

test("console prints a link with a token that the service accepts", async () => {
  const { code, stdout } = await commandHere("console", ["--user", "alice"], settings);
  const [, base = "", token = ""] = /^(\S+)\/console\/#token=(\S+)\n$/.exec(stdout) ?? [];
  expect({ code, base, sub: jwt.decode(token)?.sub }).toEqual({ code: 0, base: run.baseUrl, sub: "alice" });
  expect((await call(token, "/v1/projects")).status).toBe(200);
});

test("token --expires-in sets the lifetime, and the service accepts at most an hour", async () => {
  const withLifetime = async (seconds: string) =>
    (await commandHere("token", ["--user", "alice", "--expires-in", seconds], settings)).stdout.trim();
  expect((await call(await withLifetime("60"), "/v1/projects")).status).toBe(200);
  expect((await call(await withLifetime("-1"), "/v1/projects")).body.error.code).toBe("token_expired");
  expect((await call(await withLifetime("86400"), "/v1/projects")).body.error.code).toBe("invalid_token");
});

test("project puts a user into a project and prints its id", async () => {
  const user = randomUUID();
  const { stdout } = await commandHere("project", ["--user", user, "--name", "Shop"], settings);
  const { body } = await call(tokenFor(user), "/v1/projects");
  expect(body.data).toEqual([expect.objectContaining({ id: stdout.trim(), name: "Shop", role: "admin" })]);
});

test("project --id --role puts another user into the same project as a viewer", async () => {
  const user = randomUUID();
  const options = ["--user", user, "--name", "Demo project", "--id", run.projectId, "--role", "viewer"];
  expect((await commandHere("project", options, settings)).stdout).toBe(`${run.projectId}\n`);
  const webhook = { url: receiver.url, events: ["deploy.started"] };
  const { status } = await call(tokenFor(user), `/v1/projects/${run.projectId}/webhooks`, webhook);
  expect(status).toBe(403);
});

const invoke = (name: string, payload: object) => commandHere("invoke", [name, JSON.stringify(payload)], settings);

test("invoke calls a function of the platform, and prints what it returns or why it failed", async () => {
  const user = randomUUID();
  const id = (await commandHere("project", ["--user", user, "--name", "Shop"], settings)).stdout.trim();
  const { code, stdout, stderr } = await invoke("projects-suspend", { project_id: id, suspended: true });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(JSON.parse(stdout)).toMatchObject({ project_id: id, suspended: true, webhooks: [] });
  const webhook = { url: "http://127.0.0.1:9/hook", events: ["deploy.started"] };
  const { body } = await call(tokenFor(user), `/v1/projects/${id}/webhooks`, webhook);
  expect(body.error.code).toBe("project_suspended");
  const removal = { user_id: user, project_id: id };
  expect((await invoke("projects-remove-member", removal)).stdout).toContain('"removed":true');
  expect((await call(tokenFor(user), "/v1/projects")).body.data).toEqual([]);
  const failed = await invoke("projects-suspend", { project_id: id });
  expect(failed).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("suspended") });
  expect(failed.stderr).not.toContain("    at ");
});

test("event queues a deployment event, and the webhook is called", async () => {
  const webhook = { url: receiver.url, events: ["deploy.succeeded"] };
  expect((await call(run.token, `/v1/projects/${run.projectId}/webhooks`, webhook)).status).toBe(201);
  const deployment = randomUUID();
  const options = ["--project", run.projectId, "--event", "deploy.succeeded", "--deployment", deployment];
  const { code, stdout } = await commandHere("event", [...options, "--url", "https://shop.example.com"], settings);
  expect({ code, stdout }).toEqual({ code: 0, stdout: `queued deploy.succeeded of deployment ${deployment}\n` });
  const [received] = await receiver.waitFor(1);
  expect(JSON.parse(received?.body ?? "")).toMatchObject({
    event: "deploy.succeeded",
    deployment_id: deployment,
    data: { url: "https://shop.example.com", status: "running" },
  });
});

const eventWith = (name: string, ...options: string[]) => ["--project", randomUUID(), "--event", name, ...options];

test.each([
  ["token", [], "--user is missing."],
  ["token", ["--user", "a", "--expires-in", "60s60"], "--expires-in must be whole seconds."],
  ["token", ["--user", "a", "--expires-in", "1000000000"], "--expires-in must be whole seconds."],
  ["token", ["--usr", "a"], "Unknown option '--usr'."],
  ["project", ["--user", "a"], "--name is missing."],
  ["project", ["--user", "a", "--name", "n", "--id", "7"], "--id must be a UUID."],
  ["project", ["--user", "a", "--name", " ", "--role", "owner"], "--name must not be blank."],
  ["project", ["--user", "a", "--name", "n", "--role", "owner"], '--role must be "admin" or "viewer"'],
  ["project", ["--name", "n"], "--user is missing."],
  ["project", ["remove", "--user", "a", "--name", "n"], "Unexpected argument"],
  ["invoke", [], "No function named ."],
  ["invoke", ["deliveries-fan-out", "{}"], "No function named deliveries-fan-out."],
  ["invoke", ["projects-suspend"], "Pass one JSON object."],
  ["invoke", ["projects-suspend", "{}", "{}"], "Pass one JSON object."],
  ["event", ["--project", randomUUID()], "--event is missing."],
  ["event", ["--project", "7", "--event", "deploy.failed"], "--project must be a UUID."],
  ["event", eventWith("deploy.exploded"), "--event must be one of deploy.started"],
  ["event", eventWith("deploy.failed", "--deployment", "7"), "--deployment must be a UUID."],
  ["event", eventWith("deploy.failed", "--deployment="), "--deployment must be a UUID."],
  ["event", eventWith("deploy.failed", "--url", "shop"), "--url must be an http(s) URL."],
  ["event", eventWith("deploy.succeeded", "--url", "ftp://a"), "--url must be an http(s) URL."],
  [
    "event",
    eventWith("deploy.succeeded", "--data", '{"url":7}'),
    "The service would not accept this event: data.url does not fit",
  ],
])("%s %j exits with 2 and names the mistake", async (file, args, message) => {
  const { code, stdout, stderr } = await commandHere(file, args, settings);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr.startsWith(message)).toBe(true);
  expect(stderr).not.toContain("    at ");
});

// As after a kill -9, which leaves the file with the addresses of the service.
test.each<[string, () => object]>([
  ["has another one at its address", () => ({ pid: spawnSync("true").pid, baseUrl: run.baseUrl })],
  ["has another process with its id", () => ({ pid: process.pid, baseUrl: "http://127.0.0.1:9" })],
])("every command prints how to start a service when the one that was running %s", async (_, left) => {
  const nowhere = { DATA_DIR: freshDataDir(), PORT: "3999" };
  const stale = { ...left(), dynamoEndpoint: "http://127.0.0.1:9", sqsEndpoint: "http://127.0.0.1:9" };
  writeFileSync(join(nowhere.DATA_DIR, "running.json"), JSON.stringify(stale));
  for (const [file, args] of [
    ["project", ["--user", "a", "--name", "n"]],
    ["event", eventWith("deploy.failed")],
    ["console", []],
    ["dlq", ["list"]],
    ["import", ["keys", "file"]],
    ["invoke", ["projects-suspend", "{}"]],
  ] as const) {
    const { code, stderr } = await commandHere(file, [...args], nowhere);
    expect({ file, code, stderr }).toEqual({
      file,
      code: 1,
      stderr:
        `No service is running with the data directory ${nowhere.DATA_DIR}. ` +
        `Start it in another terminal: DATA_DIR=${nowhere.DATA_DIR} PORT=3999 SQS_PORT=0 npm start\n`,
    });
  }
});

test("commands use the engines of their settings, whether or not a service is running", async () => {
  const engines = {
    AWS_ENDPOINT_URL_DYNAMODB: run.dynamoEndpoint,
    AWS_ENDPOINT_URL_SQS: new URL(run.eventsQueueUrl).origin,
  };
  const event = ["event", eventWith("deploy.failed")] as const;
  const project = ["project", ["--user", randomUUID(), "--name", "Shop"]] as const;
  for (const [file, args] of [event, project]) {
    expect(await commandHere(file, [...args], { DATA_DIR: freshDataDir(), ...engines })).toMatchObject({ code: 0 });
  }
  const otherTable = { ...settings, PROJECTS_TABLE: "another" };
  await expect(commandHere(project[0], [...project[1]], otherTable)).rejects.toThrow("resource not found");
  const unreachable = "http://127.0.0.1:9";
  const failures: [setting: string, name: string, args: readonly string[]][] = [
    ["AWS_ENDPOINT_URL_SQS", ...event],
    ["AWS_ENDPOINT_URL_DYNAMODB", ...project],
  ];
  for (const [setting, name, args] of failures) {
    expect(await runCommand(name, [...args], { ...settings, [setting]: unreachable })).toEqual({
      code: 1,
      stdout: "",
      stderr: `Could not reach ${unreachable} (ECONNREFUSED). Start the service at this address, or correct ${setting}.\n`,
    });
  }
});

interface Shown {
  health: { last_success_at: string | null };
}

test("demo shows every step on the running service, and deletes what it created", async () => {
  const webhooks = async () => {
    const { body } = await call(run.token, `/v1/projects/${run.projectId}/webhooks`);
    // The demo's event is a further success of the webhooks that exist.
    return body.data.map(({ health: { last_success_at, ...health }, ...webhook }: Shown) => ({ ...webhook, health }));
  };
  const before = await webhooks();
  const { code, stdout, stderr } = await commandHere("demo", [], settings);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout.match(/✔ verified/g)).toHaveLength(2);
  // Six steps and what they show.
  expect(stdout.match(/^(\d {2}| {3})\S/gm)).toHaveLength(14);
  expect(stdout).toContain("the next request with it is rejected: invalid_api_key");
  expect((await call(run.token, "/v1/api-keys")).body.data).toEqual([]);
  expect(await webhooks()).toEqual(before);
});

test("demo starts its own service when none is running, and prints how to start one", async () => {
  const DATA_DIR = freshDataDir();
  const { code, stdout } = await runCommand("demo", [], { DATA_DIR });
  expect(code).toBe(0);
  expect(stdout.match(/✔ verified/g)).toHaveLength(2);
  expect(stdout).toContain(`To try it yourself: DATA_DIR=${DATA_DIR} PORT=0 SQS_PORT=0 npm start\n`);
});

test("demo ends when its own service cannot start, and leaves nothing behind", async () => {
  const TMPDIR = freshDataDir();
  const engines = { DATA_DIR: freshDataDir(), TMPDIR, AWS_ENDPOINT_URL_SQS: "http://127.0.0.1:9" };
  const { code, stderr } = await runCommand("demo", [], engines);
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: expect.stringMatching(/^The SQS engine at .* cannot be used/),
  });
  expect(readdirSync(TMPDIR)).toEqual([]);
});

// test/bin/emulator/local.test.ts tests the setting of the ranges when only the running service has it.
test.each([
  [
    "the error of the API when it is rejected",
    { ...settings, JWT_SECRET: "another secret than that of the running service" },
    { stderr: "The JWT is not signed by the identity provider.\n" },
  ],
  [
    "why it cannot start a service without receivers on this machine, before its first step",
    { DATA_DIR: freshDataDir(), WEBHOOK_ALLOW_CIDRS: "" },
    {
      stdout: "",
      stderr:
        "This run allows no receivers on this machine (WEBHOOK_ALLOW_CIDRS). " +
        "Start the service with the default to run the demo.\n",
    },
  ],
])("demo prints %s", async (_, env, printed) => {
  expect(await commandHere("demo", [], env)).toMatchObject({ code: 1, ...printed });
});

test("the running service sweeps every 5 s", async () => {
  const startsOfSweeps = () =>
    readFileSync(join(settings.DATA_DIR, "service.log"), "utf8")
      .split("\n")
      .filter((line) => line.includes('"message":"sweep"'))
      .map((line) => Date.parse(JSON.parse(line).time));
  await eventually(() => expect(startsOfSweeps().length).toBeGreaterThanOrEqual(3));
  const times = startsOfSweeps();
  // A busy machine may delay a sweep, and then the one after it is early.
  const seconds = ((times.at(-1) ?? 0) - (times[0] ?? 0)) / (times.length - 1) / 1000;
  expect(seconds).toBeGreaterThan(4.5);
  expect(seconds).toBeLessThan(9);
});

/** Programs that print a credential are refused with a closed stdout. Whether a new one is, is said here. */
const printing = ["console", "token"];
const others =
  "app build demo dlq drill engines event import invoke issuer local lock openapi project smoke trace".split(" ");

test("each program is known to print a credential or not", () => {
  const names = readdirSync(join(root, "bin/commands")).filter((name) => name.endsWith(".ts"));
  expect(names.map((name) => name.replace(".ts", "")).sort()).toEqual([...printing, ...others].sort());
});

describe("a stdout that cannot be written", () => {
  /** Runs a program of `bin/` with this redirection of a shell. */
  const into = (redirection: string, args: string[]) => {
    const script = `exec "$0" "$@" ${redirection}`;
    const node = join(root, "node_modules/.bin/node");
    const options = { cwd: root, env: environment(settings), encoding: "utf8" } as const;
    const { status, stderr } = spawnSync("sh", ["-c", script, node, ...args], options);
    return { status, stderr };
  };
  const programs = [
    ["token", "--user", "alice"],
    ["console", "--user", "alice"],
    ["event", "--project", randomUUID(), "--event", "deploy.started"],
    ["project", "--user", "alice", "--name", "Lost"],
    ["invoke", "api-keys-revoke-all", '{"user_id":"no-such-user"}'],
    ["demo"],
    ["token", "--help"],
  ];

  test.each(programs)("%s %s reports a full device, with exit code 1", (name, ...args) => {
    const expected = { status: 1, stderr: "Could not write to stdout (ENOSPC).\n" };
    expect(into("> /dev/full", ["bin/run.cjs", name, ...args])).toEqual(expected);
  });

  test.each(printing)("%s is refused with a closed one", (name) => {
    const { status, stderr } = into(">&-", ["bin/run.cjs", name, "--user", "alice"]);
    expect({ status, stderr }).toEqual({ status: 1, stderr: "stdout is closed: the secret would be lost.\n" });
  });

  test("token whose reader has closed the pipe exits with 1", async () => {
    const child = startProgram(["bin/run.cjs", "token", "--user", "alice"], settings);
    child.stdout.destroy();
    expect(await once(child, "close")).toEqual([1, null]);
  });
});

import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DynamoDBClient, QueryCommand } from "@aws-sdk/client-dynamodb";
import jwt from "jsonwebtoken";
import { mintToken } from "../../bin/command/mint-token.ts";
import { tables } from "../../functions/foundation/manifest/tables.ts";
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

/* The commands that talk to a running service: token, project, event, demo. */

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

test("project remove takes the user out of the project", async () => {
  const user = randomUUID();
  const { stdout: id } = await commandHere("project", ["--user", user, "--name", "Shop"], settings);
  const remove = () => commandHere("project", ["remove", "--user", user, "--id", id.trim()], settings);
  expect(await remove()).toEqual({ code: 0, stdout: `${user} removed\n`, stderr: "" });
  expect((await call(tokenFor(user), "/v1/projects")).body.data).toEqual([]);
  expect((await remove()).stdout).toBe(`${user} was not a member\n`);
});

async function storedStatuses(webhookId: string): Promise<string[]> {
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const dynamo = new DynamoDBClient({ region: "us-east-1", credentials, endpoint: run.dynamoEndpoint });
  const query = new QueryCommand({
    TableName: tables.deliveries.name,
    KeyConditionExpression: "webhook_id = :id",
    ExpressionAttributeValues: { ":id": { S: webhookId } },
  });
  const { Items = [] } = await dynamo.send(query).finally(() => dynamo.destroy());
  return Items.map(({ status }) => status?.S ?? "");
}

test("project suspend holds the events of a project, and resume ends that and names what to recover", async () => {
  const user = randomUUID();
  const id = (await commandHere("project", ["--user", user, "--name", "Shop"], settings)).stdout.trim();
  const token = tokenFor(user);
  const webhook = { url: "http://127.0.0.1:9/hook", events: ["deploy.started"] };
  const { body } = await call(token, `/v1/projects/${id}/webhooks`, webhook);
  const path = `/v1/projects/${id}/webhooks/${body.data.id}`;
  const suspended = await commandHere("project", ["suspend", "--id", id], settings);
  expect(suspended).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^suspended since \S+Z, with 1 webhooks\n$/),
    stderr: "",
  });
  const since = /since (\S+Z)/.exec(suspended.stdout)?.[1];
  expect((await call(token, path)).body.data.suspended_at).toBe(since);
  expect((await call(token, `${path}/test`, {})).body.error.code).toBe("project_suspended");
  await commandHere("event", ["--project", id, "--event", "deploy.started"], settings);
  expect((await call(token, `${path}/deliveries`)).body.error.code).toBe("project_suspended");
  await eventually(async () => expect(await storedStatuses(body.data.id)).toEqual(["held"]));
  const resumed = await commandHere("project", ["resume", "--id", id], settings);
  expect(resumed.stdout).toContain(`was suspended since ${since}\n`);
  expect(resumed.stdout).toContain(`recover --project ${id} --webhook ${body.data.id} --since <time> --status held`);
  expect((await call(token, `${path}/test`, {})).status).toBe(202);
  expect((await commandHere("project", ["resume", "--id", id], settings)).stdout).toBe("was not suspended\n");
  const empty = (await commandHere("project", ["--user", user, "--name", "Empty"], settings)).stdout.trim();
  await commandHere("project", ["suspend", "--id", empty], settings);
  const withoutWebhooks = await commandHere("project", ["resume", "--id", empty], settings);
  expect(withoutWebhooks.stdout).toMatch(/^was suspended since \S+Z\n$/);
});

test("keys revoke-all deletes the keys of a user", async () => {
  const user = randomUUID();
  const token = tokenFor(user);
  const { key } = (await call(token, "/v1/api-keys", { name: "ci" })).body.data;
  expect((await call(key, "/v1/projects")).status).toBe(200);
  const revokeAll = () => commandHere("keys", ["revoke-all", "--user", user], settings);
  // As a process, whose output has no line of the log.
  const revoked = await runCommand("keys", ["revoke-all", "--user", user], settings);
  expect(revoked).toEqual({ code: 0, stdout: "1 API key deleted\n", stderr: "" });
  expect((await call(key, "/v1/projects")).body.error.code).toBe("invalid_api_key");
  expect((await revokeAll()).stdout).toBe("0 API keys deleted\n");
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

test.each([
  ["token", [], "--user is missing."],
  ["token", ["--user", "a", "--expires-in", "60s60"], "--expires-in must be whole seconds."],
  ["token", ["--user", "a", "--expires-in", "1000000000"], "--expires-in must be whole seconds."],
  ["token", ["--usr", "a"], "Unknown option '--usr'."],
  ["demo", ["ci", "now"], "Unexpected argument 'now'."],
  ["project", ["--user", "a"], "--name is missing."],
  ["project", ["--user", "a", "--name", "n", "--id", "7"], "--id must be a UUID."],
  ["project", ["--user", "a", "--name", " ", "--role", "owner"], "--name must not be blank."],
  ["project", ["--user", "a", "--name", "n", "--role", "owner"], '--role must be "admin" or "viewer"'],
  ["project", ["--name", "n"], "--user is missing."],
  ["project", ["remove", "--id", randomUUID()], "--user is missing."],
  ["project", ["remove", "--user", "a"], "--id is missing."],
  ["project", ["suspend"], "--id is missing."],
  ["project", ["resume", "--id", "7"], "--id must be a UUID."],
  ["project", ["pause", "--id", randomUUID()], "No command named pause. Pass remove, suspend or resume, or none."],
  ["project", ["resume", "all", "--id", randomUUID()], "No command named resume all."],
  ["keys", ["revoke-all"], "--user is missing."],
  ["keys", ["revoke-all", "--user", " "], "--user must have 1 to 255 characters."],
  ["keys", ["--user", "a"], "Pass revoke-all."],
  ["keys", ["revoke-all", "bob", "--user", "a"], "Pass revoke-all."],
  ["event", ["--project", randomUUID()], "--event is missing."],
  ["event", ["--project", randomUUID(), "--event", "deploy.exploded"], "--event must be one of deploy.started"],
  ["event", ["--project", "7", "--event", "deploy.failed"], "--project must be a UUID."],
  [
    "event",
    ["--project", randomUUID(), "--event", "deploy.failed", "--deployment", "7"],
    "--deployment must be a UUID.",
  ],
  ["event", ["--project", randomUUID(), "--event", "deploy.failed", "--deployment="], "--deployment must be a UUID."],
  ["event", ["--project", randomUUID(), "--event", "deploy.failed", "--url", "shop"], "--url must be an http(s) URL."],
  [
    "event",
    ["--project", randomUUID(), "--event", "deploy.succeeded", "--url", "ftp://a"],
    "--url must be an http(s) URL.",
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
    ["event", ["--project", randomUUID(), "--event", "deploy.failed"]],
    ["console", []],
    ["dlq", ["list"]],
    ["import", ["keys", "file"]],
    ["replay", ["--project", randomUUID(), "--since", "2026-01-31T09:30:00Z"]],
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
  const event = ["event", ["--project", randomUUID(), "--event", "deploy.failed"]] as const;
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

test.each([[[]], [["ci"]]])(
  "demo %j ends when its own service cannot start, and leaves nothing behind",
  async (args) => {
    const TMPDIR = freshDataDir();
    const engines = { DATA_DIR: freshDataDir(), TMPDIR, AWS_ENDPOINT_URL_SQS: "http://127.0.0.1:9" };
    const { code, stderr } = await runCommand("demo", args, engines);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^The SQS engine at .* cannot be used/),
    });
    expect(readdirSync(TMPDIR)).toEqual([]);
  },
);

test("demo prints the error of the API when it is rejected", async () => {
  const other = { ...settings, JWT_SECRET: "another secret than that of the running service" };
  const { code, stderr } = await commandHere("demo", [], other);
  expect({ code, stderr }).toEqual({ code: 1, stderr: "The JWT is not signed by the identity provider.\n" });
});

test("demo ci shows a job without a key, and that everything else is refused, beside a running service", async () => {
  const { code, stdout, stderr } = await runCommand("demo", ["ci"], settings);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const refused = [...stdout.matchAll(/✔ (\d{3} \w+) +(.+)/g)].map(([, answer, what]) => `${what}: ${answer}`);
  expect(refused).toEqual([
    "another repository of the same name: 401 workflow_not_trusted",
    "a pull request of this repository: 401 workflow_not_trusted",
    "a token for another service: 401 invalid_token",
    "another project: 404 not_found",
    "a permission that it was not given: 403 insufficient_permission",
    "an API key for later: 403 session_required",
    "the next request with the same token: 401 workflow_not_trusted",
  ]);
  expect(stdout.match(/^(\d {2}| {3})\S/gm)).toHaveLength(19);
  expect(stdout).toMatch(/npm run --silent issuer\s+$/);
  expect(stdout).toMatch(/the log names workflow:[0-9a-f-]{36}, acme\/shop, refs\/heads\/main, run 30\n/);
  expect(stdout).not.toContain("✘");
});

// test/bin/emulator/local.test.ts tests it when only the running service has the setting.
test("demo prints why it cannot start a service without receivers on this machine, before its first step", async () => {
  const own = { DATA_DIR: freshDataDir(), WEBHOOK_ALLOW_CIDRS: "" };
  expect(await commandHere("demo", [], own)).toEqual({
    code: 1,
    stdout: "",
    stderr:
      "This run allows no receivers on this machine (WEBHOOK_ALLOW_CIDRS). " +
      "Start the service with the default to run the demo.\n",
  });
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

/** Whether a program prints a credential: then it is refused with a closed stdout. */
const printsCredential: Record<string, boolean> = {
  ...{ app: false, build: false, demo: false, dlq: false, drill: false, event: false, import: false, issuer: false },
  ...{
    keys: false,
    local: false,
    lock: false,
    openapi: false,
    project: false,
    replay: false,
    smoke: false,
    trace: false,
  },
  ...{ console: true, token: true },
};

test("each program is known to print a credential or not", () => {
  const names = readdirSync(join(root, "bin/commands")).filter((name) => name.endsWith(".ts"));
  expect(names.map((name) => name.replace(".ts", "")).sort()).toEqual(Object.keys(printsCredential).sort());
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
    ["keys", "revoke-all", "--user", "no-such-user"],
    ["demo"],
    ["token", "--help"],
  ];

  test.each(programs)("%s %s reports a full device, with exit code 1", (name, ...args) => {
    const expected = { status: 1, stderr: "Could not write to stdout (ENOSPC).\n" };
    expect(into("> /dev/full", ["bin/run.cjs", name, ...args])).toEqual(expected);
  });

  test.each(Object.keys(printsCredential).filter((name) => printsCredential[name]))(
    "%s is refused with a closed one",
    (name) => {
      const { status, stderr } = into(">&-", ["bin/run.cjs", name, "--user", "alice"]);
      expect({ status, stderr }).toEqual({ status: 1, stderr: "stdout is closed: the secret would be lost.\n" });
    },
  );

  test("token whose reader has closed the pipe exits with 1", async () => {
    const child = startProgram(["bin/run.cjs", "token", "--user", "alice"], settings);
    child.stdout.destroy();
    expect(await once(child, "close")).toEqual([1, null]);
  });
});

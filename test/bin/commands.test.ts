import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import jwt from "jsonwebtoken";
import { freshDataDir, type LocalRun, runCommand, startLocalRun } from "../support/local-run.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { send } from "../support/service.ts";

/* The commands that talk to a running service: token, project, event, demo. */

const settings = { DATA_DIR: freshDataDir() };
let run: LocalRun;
let receiver: Receiver;

beforeAll(async () => {
  receiver = await startReceiver();
  run = await startLocalRun(settings);
});
afterAll(async () => {
  await run.end("SIGKILL");
  await receiver.close();
});

const call = (token: string, path: string, body?: object) =>
  send(`${run.baseUrl}${path}`, {
    method: body ? "POST" : "GET",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });

const tokenFor = async (user: string) => (await runCommand("token", ["--user", user], settings)).stdout.trim();

test("token prints one JWT of an hour and nothing else", async () => {
  const { code, stdout, stderr } = await runCommand("token", ["--user", "alice"], settings);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/);
  const { sub, iat = 0, exp = 0 } = jwt.decode(stdout.trim()) as jwt.JwtPayload;
  expect({ sub, seconds: exp - iat }).toEqual({ sub: "alice", seconds: 3600 });
  expect((await call(stdout.trim(), "/v1/projects")).status).toBe(200);
});

test("token --expires-in sets the lifetime, an hour at most being accepted by the service", async () => {
  const withLifetime = async (seconds: string) =>
    (await runCommand("token", ["--user", "alice", "--expires-in", seconds], settings)).stdout.trim();
  expect((await call(await withLifetime("60"), "/v1/projects")).status).toBe(200);
  expect((await call(await withLifetime("-1"), "/v1/projects")).body.error.code).toBe("token_expired");
  expect((await call(await withLifetime("86400"), "/v1/projects")).body.error.code).toBe("invalid_token");
});

test("project puts a user into a project and prints its id", async () => {
  const user = randomUUID();
  const { stdout } = await runCommand("project", ["--user", user, "--name", "Shop"], settings);
  const { body } = await call(await tokenFor(user), "/v1/projects");
  expect(body.data).toEqual([expect.objectContaining({ id: stdout.trim(), name: "Shop", role: "admin" })]);
});

test("project --id --role puts another user into the same project as a viewer", async () => {
  const user = randomUUID();
  const options = ["--user", user, "--name", "Demo project", "--id", run.projectId, "--role", "viewer"];
  expect((await runCommand("project", options, settings)).stdout).toBe(`${run.projectId}\n`);
  const webhook = { url: receiver.url, events: ["deploy.started"] };
  const { status } = await call(await tokenFor(user), `/v1/projects/${run.projectId}/webhooks`, webhook);
  expect(status).toBe(403);
});

test("event puts a deployment event on the queue, and the webhook is called", async () => {
  const webhook = { url: receiver.url, events: ["deploy.succeeded"] };
  expect((await call(run.token, `/v1/projects/${run.projectId}/webhooks`, webhook)).status).toBe(201);
  const deployment = randomUUID();
  const options = ["--project", run.projectId, "--event", "deploy.succeeded", "--deployment", deployment];
  const { code, stdout } = await runCommand("event", [...options, "--url", "https://shop.example.com"], settings);
  expect({ code, stdout }).toEqual({ code: 0, stdout: `queued deploy.succeeded of deployment ${deployment}\n` });
  const [received] = await receiver.waitFor(1);
  expect(JSON.parse(received?.body ?? "")).toMatchObject({
    event: "deploy.succeeded",
    deployment_id: deployment,
    data: { url: "https://shop.example.com", status: "running" },
  });
});

test.each([
  ["token", [], "--user is missing"],
  ["token", ["--user", "a", "--expires-in", "soon"], "--expires-in takes whole seconds"],
  ["token", ["--usr", "a"], "Unknown option '--usr'"],
  ["project", ["--user", "a"], "--name is missing"],
  ["project", ["--user", "a", "--name", "n", "--id", "7"], "project_id must be a UUID"],
  ["project", ["--user", "a", "--name", "n", "--role", "owner"], 'role must be "admin" or "viewer"'],
  ["event", ["--project", randomUUID()], "--event is missing"],
  ["event", ["--project", randomUUID(), "--event", "deploy.exploded"], "--event must be one of deploy.started"],
  ["event", ["--project", "7", "--event", "deploy.failed"], "project_id must be a UUID"],
])("%s %j says what is wrong with it", async (file, args, message) => {
  const { code, stdout, stderr } = await runCommand(file, args, settings);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain(message);
  expect(stderr).not.toContain("    at ");
});

test("project and event say when no service runs", async () => {
  const nowhere = { DATA_DIR: freshDataDir() };
  // As after a kill -9: the file is there and nobody answers.
  const stale = {
    baseUrl: "http://127.0.0.1:9",
    dynamoEndpoint: "http://127.0.0.1:9",
    sqsEndpoint: "http://127.0.0.1:9",
  };
  writeFileSync(join(nowhere.DATA_DIR, "running.json"), JSON.stringify(stale));
  for (const [file, args] of [
    ["project", ["--user", "a", "--name", "n"]],
    ["event", ["--project", randomUUID(), "--event", "deploy.failed"]],
  ] as const) {
    const { code, stderr } = await runCommand(file, [...args], nowhere);
    expect(code).toBe(1);
    expect(stderr).toContain("Start it with npm start");
  }
});

test("demo tells the whole story on the running service, and leaves nothing behind", async () => {
  const { code, stdout, stderr } = await runCommand("demo", [], settings);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout.match(/✔ verified/g)).toHaveLength(2);
  expect(stdout).toContain("the next request with it: invalid_api_key");
  expect((await call(run.token, "/v1/api-keys")).body.data).toEqual([]);
});

test("demo starts a service of its own when none runs", async () => {
  const { code, stdout } = await runCommand("demo", [], { DATA_DIR: freshDataDir() });
  expect(code).toBe(0);
  expect(stdout.match(/✔ verified/g)).toHaveLength(2);
});

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import http from "node:http";
import { join, relative } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { jest } from "@jest/globals";
import { mintToken } from "../../../bin/command/mint-token.ts";
import { createProgram } from "../../../packages/cli/src/program.ts";
import { type CiSystem, startCiSystem } from "../../support/ci-system.ts";
import { eventOf, publish } from "../../support/deliveries.ts";
import { eventually } from "../../support/eventually.ts";
import { listening } from "../../support/listening.ts";
import { needs } from "../../support/optional-program.ts";
import { useReceiver } from "../../support/receiver.ts";
import { type Api, useService } from "../../support/service.ts";
import { environment, freshConfigHome, program, svc, svcOnTerminal } from "../../support/svc.ts";
import { svcHere } from "../../support/svc-here.ts";

/* `svc` against the real service: effects, output and exit codes. */

const service = useService({ deliver: true });
const receiver = useReceiver();
let api: Api;
let token: string;
let key: string;
let userId: string;
let projectId: string;
let ci: CiSystem;
/** The environment of a user with an API key and one project. */
let env: Record<string, string>;

process.env.RETRY_SCHEDULE = "1,1";
beforeAll(async () => {
  ci = await startCiSystem("ci");
  ({ api, token, userId } = service.user());
  projectId = await service.project(userId);
  key = (await api.post("/v1/api-keys", { name: "svc" })).body.data.key;
  env = { SVC_BASE_URL: service.baseUrl, SVC_API_KEY: key };
});

const json = ({ stdout }: { stdout: string }) => JSON.parse(stdout);
const path = (id: string) => `/v1/projects/${projectId}/webhooks/${id}`;

async function newWebhook(events = ["deploy.succeeded"], url = receiver.url): Promise<{ id: string; secret: string }> {
  const { status, body } = await api.post(`/v1/projects/${projectId}/webhooks`, { url, events });
  expect(status).toBe(201);
  return body.data;
}
/** For the tests that create webhooks. */
async function deleteWebhooks(): Promise<void> {
  receiver.respondWith(200);
  for (const { id } of (await api.get(`/v1/projects/${projectId}/webhooks`)).body.data) await api.delete(path(id));
}

/** Starts a server that returns one response to all requests, and records their headers. */
async function startStub(status: number, headers: Record<string, string>, body: string) {
  const requests: http.IncomingHttpHeaders[] = [];
  const server = http.createServer((request, response) => {
    requests.push(request.headers);
    response.writeHead(status, headers).end(body);
  });
  return { url: await listening(server), requests };
}

describe("signing in", () => {
  const configFile = (home: string) => join(home, "svc/config.json");

  test("stores an accepted credential in a file that only its owner can read", async () => {
    const XDG_CONFIG_HOME = freshConfigHome();
    const login = await svc(["login", "--base-url", `${service.baseUrl}//`, "--with-token"], {
      env: { XDG_CONFIG_HOME },
      input: `${key}\n`,
    });
    expect(login).toMatchObject({ code: 0, stdout: "" });
    expect(login.stderr).toContain(`Signed in to ${service.baseUrl} with the API key ${key.slice(0, 12)}…: 1 project.`);
    expect(statSync(configFile(XDG_CONFIG_HOME)).mode & 0o777).toBe(0o600);
    expect(statSync(join(XDG_CONFIG_HOME, "svc")).mode & 0o777).toBe(0o700);
    expect(JSON.parse(readFileSync(configFile(XDG_CONFIG_HOME), "utf8"))).toEqual({
      base_url: service.baseUrl,
      credentials: { [service.baseUrl]: key },
    });
    expect(json(await svcHere(["whoami", "--json"], { env: { XDG_CONFIG_HOME } }))).toEqual({
      base_url: service.baseUrl,
      kind: "api_key",
      key_prefix: key.slice(0, 12),
      user_id: userId,
      permissions: null,
      project_ids: null,
      expires_at: null,
      source: "svc login",
      project_count: 1,
    });
  });

  test("stores nothing when the service rejects the credential", async () => {
    const XDG_CONFIG_HOME = freshConfigHome();
    const { code, stderr } = await svcHere(["login", "--base-url", service.baseUrl, "--with-token"], {
      env: { XDG_CONFIG_HOME },
      input: `svc_${"0".repeat(64)}`,
    });
    expect(code).toBe(3);
    expect(stderr).toMatch(/\(invalid_api_key, request [\w-]+\)\n→ .*svc login/);
    expect(existsSync(configFile(XDG_CONFIG_HOME))).toBe(false);
  });

  test("--local finds the service of npm start by its data directory, and reports when none runs", async () => {
    const XDG_CONFIG_HOME = freshConfigHome();
    const cwd = freshConfigHome();
    const login = () => svc(["login", "--local", "--with-token"], { env: { XDG_CONFIG_HOME }, cwd, input: token });
    expect(await login()).toMatchObject({ code: 4, stderr: expect.stringContaining("Start it with npm start") });
    mkdirSync(join(cwd, ".local"));
    writeFileSync(join(cwd, ".local/running.json"), JSON.stringify({ baseUrl: service.baseUrl }));
    expect(await login()).toMatchObject({ code: 0, stderr: expect.stringContaining(`with the JWT of ${userId}`) });
    // The directory may belong to someone else.
    writeFileSync(join(cwd, ".local/running.json"), JSON.stringify({ baseUrl: "https://127.0.0.1.elsewhere.invalid" }));
    expect(await login()).toMatchObject({ code: 4, stderr: expect.stringContaining("not on this machine") });
  });

  test("login and logout change only the credential of the service", async () => {
    const XDG_CONFIG_HOME = freshConfigHome();
    const other = "https://other.example.com";
    mkdirSync(join(XDG_CONFIG_HOME, "svc"));
    const kept = { base_url: other, projects: { [other]: projectId }, forward_secret: "secret" };
    const config = { ...kept, credentials: { [other]: "theirs" } };
    writeFileSync(configFile(XDG_CONFIG_HOME), JSON.stringify(config), { mode: 0o644 });
    const login = ["login", "--base-url", service.baseUrl, "--with-token"];
    await svcHere(login, { env: { XDG_CONFIG_HOME }, input: key });
    expect((await svcHere(["logout"], { env: { XDG_CONFIG_HOME, SVC_API_KEY: key } })).stderr).toBe(
      `Signed out of ${service.baseUrl}.\nSVC_API_KEY is still set.\n`,
    );
    const stored = JSON.parse(readFileSync(configFile(XDG_CONFIG_HOME), "utf8"));
    expect(stored).toEqual({ ...config, base_url: service.baseUrl });
    expect(statSync(configFile(XDG_CONFIG_HOME)).mode & 0o777).toBe(0o600);
    expect((await svcHere(["whoami"], { env: { XDG_CONFIG_HOME } })).code).toBe(3);
  });

  test("sends a stored credential only to its own service", async () => {
    const XDG_CONFIG_HOME = freshConfigHome();
    await svcHere(["login", "--base-url", service.baseUrl, "--with-token"], { env: { XDG_CONFIG_HOME }, input: key });
    const stranger = await startStub(200, {}, '{"data":[]}');
    for (const [args, more] of [
      [["--base-url", stranger.url], {}],
      [[], { SVC_BASE_URL: stranger.url }],
    ] as const) {
      const { code, stderr } = await svcHere([...args, "projects", "list"], { env: { XDG_CONFIG_HOME, ...more } });
      expect({ code, stderr }).toMatchObject({
        code: 3,
        stderr: expect.stringContaining(`not signed in to ${stranger.url}`),
      });
    }
    expect(stranger.requests).toEqual([]);
  });

  test("SVC_BASE_URL and SVC_API_KEY override stored values, and --base-url overrides both", async () => {
    const XDG_CONFIG_HOME = freshConfigHome();
    const nowhere = "http://127.0.0.1:9";
    const login = async (more: Record<string, string>, ...args: string[]) =>
      (await svcHere(["login", "--with-token", ...args], { env: { XDG_CONFIG_HOME, ...more }, input: key })).stderr;
    const taken = await login({ SVC_API_KEY: token, SVC_BASE_URL: nowhere }, "--base-url", service.baseUrl);
    expect(taken.match(/\w+ is set and takes precedence/g)).toHaveLength(2);
    expect(await login({ SVC_API_KEY: " ", SVC_BASE_URL: service.baseUrl })).not.toContain("precedence");
    expect(await login({})).toContain(`Signed in to ${service.baseUrl} `);
    const whoami = async (more: Record<string, string>, ...args: string[]) =>
      json(await svcHere(["whoami", "--json", ...args], { env: { XDG_CONFIG_HOME, ...more } }));
    expect(await whoami({ SVC_API_KEY: token, SVC_BASE_URL: " " })).toMatchObject({
      kind: "jwt",
      subject: userId,
      expires_at: expect.stringMatching(/Z$/),
      source: "SVC_API_KEY",
    });
    expect(await whoami({ SVC_API_KEY: key, SVC_BASE_URL: nowhere }, "--base-url", service.baseUrl)).toMatchObject({
      base_url: service.baseUrl,
    });
    expect(
      (await svcHere(["whoami"], { env: { XDG_CONFIG_HOME, SVC_API_KEY: key, SVC_BASE_URL: nowhere } })).code,
    ).toBe(5);
  });

  test.each<[string, string[], string, number, string]>([
    [
      "a plain http URL on another machine",
      ["--base-url", "http://127.0.0.1.example.com"],
      "svc_1",
      2,
      "must start with https://",
    ],
    ["a base URL without a scheme", ["--base-url", "api.example.com"], "svc_1", 2, "must be an absolute https URL"],
    ["a base URL with a password", ["--base-url", "https://:p@example.com"], "svc_1", 2, "no user name"],
    ["a base URL with a user name", ["--base-url", "https://u@example.com"], "svc_1", 2, "no user name"],
    ["a base URL with a query", ["--base-url", "https://example.com/?a=1"], "svc_1", 2, "no query and no fragment"],
    ["a base URL with a fragment", ["--base-url", "https://example.com/#a"], "svc_1", 2, "no query and no fragment"],
    ["a missing base URL", [], "svc_1", 2, "No base URL given"],
    ["an empty credential", ["--base-url", "https://api.example.com"], "", 2, "The credential is empty"],
    ["a signing secret", ["--base-url", "https://api.example.com"], "whsec_00", 2, "signing secret, not an API key"],
    ["text that is not a credential", ["--base-url", "https://api.example.com"], "two words", 2, "neither an API key"],
  ])("login rejects %s", async (_, args, input, code, message) => {
    const env = { XDG_CONFIG_HOME: freshConfigHome(), SVC_BASE_URL: " " };
    const rejected = await svcHere(["login", "--with-token", ...args], { env, input });
    expect(rejected).toMatchObject({ code, stdout: "", stderr: expect.stringContaining(message) });
    expect(rejected.stderr).not.toContain("    at ");
  });

  test("names a config file that is invalid, without quoting it, or that cannot be read", async () => {
    const XDG_CONFIG_HOME = freshConfigHome();
    mkdirSync(join(XDG_CONFIG_HOME, "svc"));
    writeFileSync(configFile(XDG_CONFIG_HOME), `{"credentials": ${key}`);
    const { code, stderr } = await svcHere(["projects", "list"], { env: { XDG_CONFIG_HOME } });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^Could not read .*config\.json: not valid JSON\.$/m);
    rmSync(configFile(XDG_CONFIG_HOME));
    mkdirSync(configFile(XDG_CONFIG_HOME));
    const unread = await svcHere(["projects", "list"], { env: { XDG_CONFIG_HOME } });
    expect(unread).toMatchObject({ code: 1, stderr: expect.stringMatching(/^Could not read .*config\.json: EISDIR/) });
    const login = ["login", "--base-url", service.baseUrl, "--with-token"];
    rmSync(configFile(XDG_CONFIG_HOME), { recursive: true });
    const input = new PassThrough();
    const unwritten = svcHere(login, { env: { XDG_CONFIG_HOME }, input });
    // Now it has read the file.
    await eventually(() => expect(input.listenerCount("readable")).toBeGreaterThan(0));
    mkdirSync(configFile(XDG_CONFIG_HOME));
    input.end(key);
    expect(await unwritten).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^Could not read .*config\.json: E/),
    });
    // No draft with the credential is left.
    expect(readdirSync(join(XDG_CONFIG_HOME, "svc"))).toEqual(["config.json"]);
  });
});

describe("on a terminal", () => {
  afterEach(deleteWebhooks);

  const onTerminal = needs("python3").test;

  onTerminal("login asks for base URL and key, and does not echo the key", async () => {
    const XDG_CONFIG_HOME = freshConfigHome();
    const answers: [string, string][] = [
      ["Base URL of the service: ", `${service.baseUrl}\r`],
      ["(not shown): ", `${key}\r`],
    ];
    const { code, stdout } = await svcOnTerminal(["login", "--with-token"], answers, { XDG_CONFIG_HOME });
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining("Signed in to") });
    expect(stdout).not.toContain(key.slice(12));
    expect(JSON.parse(readFileSync(join(XDG_CONFIG_HOME, "svc/config.json"), "utf8")).credentials).toEqual({
      [service.baseUrl]: key,
    });
  });

  onTerminal("Ctrl-C at a question exits with 130 and changes nothing", async () => {
    const XDG_CONFIG_HOME = freshConfigHome();
    const file = join(XDG_CONFIG_HOME, "svc/config.json");
    const stored = JSON.stringify({ base_url: service.baseUrl });
    mkdirSync(join(XDG_CONFIG_HOME, "svc"));
    writeFileSync(file, stored);
    const answers: [string, string][] = [
      [`[${service.baseUrl}]: `, "\r"],
      [`API key or JWT for ${service.baseUrl} (not shown): `, "\u0003"],
    ];
    const { code } = await svcOnTerminal(["login", "--with-token"], answers, { XDG_CONFIG_HOME });
    expect(code).toBe(130);
    expect(readFileSync(file, "utf8")).toBe(stored);
  });

  onTerminal("delete asks for confirmation and proceeds only after yes", async () => {
    const { id } = await newWebhook();
    const remove = (answer: string) => svcOnTerminal(["webhooks", "delete", id], [["[y/N] ", answer]], env);
    expect(await remove("\r")).toMatchObject({ code: 2, stdout: expect.stringContaining("Nothing was changed") });
    expect((await api.get(path(id))).status).toBe(200);
    const file = join(freshConfigHome(), "none.json");
    writeFileSync(file, '{"webhooks":[]}');
    expect((await svcOnTerminal(["apply", "-f", file], [], env)).code).toBe(0);
    const pruned = await svcOnTerminal(["apply", "-f", file, "--prune", "--json"], [["[y/N] ", "yet\r"]], env);
    expect(pruned).toMatchObject({ code: 2, stdout: expect.stringMatching(`- .*${id}, [^]*Delete webhooks: 1[?]`) });
    expect((await api.get(path(id))).status).toBe(200);
    expect((await remove("y\r")).code).toBe(0);
    expect((await api.get(path(id))).status).toBe(404);
  });

  onTerminal("the password of a URL is sent in a header after a yes, and nothing is changed otherwise", async () => {
    const { id } = await newWebhook();
    const update = ["webhooks", "update", id, "--url", receiver.url.replace("//", "//ann:p%40ss@")];
    const declined = await svcOnTerminal(update, [["[y/N] ", "\r"]], env);
    expect(declined).toMatchObject({ code: 2, stdout: expect.stringContaining("which are never sent") });
    expect((await api.get(path(id))).body.data).not.toHaveProperty("header_names");
    const { code, stdout } = await svcOnTerminal(update, [["[y/N] ", "y\r"]], env);
    expect({ code, hasPassword: /p(%40|@)ss/.test(stdout) }).toEqual({ code: 0, hasPassword: false });
    await svcHere(["webhooks", "test"], { env });
    expect(receiver.received.at(-1)?.headers.authorization).toBe(`Basic ${btoa("ann:p@ss")}`);
  });

  onTerminal("output has colors on a terminal without NO_COLOR, and none in a pipe", async () => {
    await newWebhook();
    const dim = "\u001b[2mnew";
    expect((await svcOnTerminal(["webhooks", "list"], [], env)).stdout).toContain(dim);
    expect((await svcOnTerminal(["webhooks", "list"], [], { ...env, NO_COLOR: "1" })).stdout).not.toContain(
      "\u001b[2m",
    );
    expect((await svcHere(["webhooks", "list"], { env })).stdout).not.toContain("\u001b");
  });
});

describe("keys", () => {
  afterEach(deleteWebhooks);

  const session = () => ({ SVC_BASE_URL: service.baseUrl, SVC_API_KEY: token });

  test("login accepts a key that may not list projects", async () => {
    const limits = { permissions: ["deliveries:read"], project_ids: [projectId] };
    const narrow = (await api.post("/v1/api-keys", { name: "narrow", ...limits })).body.data.key;
    const { code, stderr } = await svcHere(["login", "--base-url", service.baseUrl, "--with-token"], {
      env: { XDG_CONFIG_HOME: freshConfigHome() },
      input: narrow,
    });
    expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining(`${narrow.slice(0, 12)}….`) });
  });

  test("create and trust accept a permission that the platform adds, and leave an unknown one to the service", async () => {
    process.env.PERMISSIONS = JSON.stringify([{ name: "registry:push", description: "push images" }]);
    try {
      const create = (permission: string) =>
        svcHere(["keys", "create", "push", "--permission", permission, "--json"], {
          env: session(),
          showsSecret: true,
        });
      const created = json(await create("webhooks:read,registry:push"));
      expect(created.permissions).toEqual(["webhooks:read", "registry:push"]);
      const { code, stderr } = await create("registry:pull");
      expect({ code, stderr }).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/must be one of .*registry:push/),
      });
      const args = ["workflows", "trust", "42", "--permission", "registry:push", "--project", projectId, "--json"];
      const trusted = json(await svcHere(args, { env: session() }));
      expect(trusted.permissions).toEqual(["registry:push"]);
      await svcHere(["workflows", "untrust", trusted.id, "--yes", "--project", projectId], { env: session() });
    } finally {
      delete process.env.PERMISSIONS;
    }
  });

  test("create with an idempotency key creates nothing again, and says what exists", async () => {
    const create = (name: string) =>
      svcHere(["keys", "create", name, "--idempotency-key", "run-7"], { env: session(), showsSecret: true });
    const key = (await create("once")).stdout.trim();
    const { id } = (await service.as(key).get("/v1/api-keys/current")).body.data.api_key;
    const repeat = await create("once");
    expect(repeat).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining(`already created ${id}`) });
    expect(repeat.stderr).toContain("svc keys roll");
    expect((await create("twice")).stderr).toContain("Pass another --idempotency-key");
  });

  test("revoke-leaked ends the keys in a text without a credential", async () => {
    const { data } = (await api.post("/v1/api-keys", { name: "leaked" })).body;
    const leaked = {
      env: { SVC_BASE_URL: service.baseUrl },
      input: Buffer.from(`export SVC_API_KEY="${data.key}" # and ${data.key.toUpperCase()}\n`, "utf16le").toString(),
    };
    const { code, stdout, stderr } = await svcHere(["keys", "revoke-leaked"], leaked);
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: "",
      stderr: expect.stringContaining("Revoked 1 key:"),
    });
    expect((await service.as(data.key).get("/v1/projects")).status).toBe(401);
    const prefixed = ["keys", "revoke-leaked", "--prefix", "acme_", "--json"];
    process.env.IMPORTED_KEYS = '[{"prefix":"acme_","hash":"sha256"}]';
    const imported = await svcHere(prefixed, { ...leaked, input: "It is acme_0123456789abcdef." });
    delete process.env.IMPORTED_KEYS;
    expect(imported).toMatchObject({ code: 0, stdout: '{"received":1}\n' });
    const nothing = await svcHere(["keys", "revoke-leaked"], { ...leaked, input: `no key: svc_${"0".repeat(64)}` });
    expect(nothing).toMatchObject({ code: 2, stderr: expect.stringContaining("Found no API key") });
  });
});

describe("workflows", () => {
  afterEach(deleteWebhooks);

  const session = () => ({ SVC_BASE_URL: service.baseUrl, SVC_API_KEY: token });
  const workflows = (...args: string[]) => svcHere(["workflows", ...args], { env: session() });

  test("trust rejects the name of a repository, an unknown permission, and no permission", async () => {
    const named = await workflows("trust", "acme/shop", "--permission", "webhooks:read");
    expect(named).toMatchObject({ code: 2, stderr: expect.stringContaining("because a name can be taken over") });
    expect((await workflows("trust", "1", "--permission", "keys:write")).code).toBe(2);
    expect((await workflows("trust", "1")).code).toBe(2);
  });

  test("the token of a job finds a project by its id only, not that of a stranger who trusts it and took the name", async () => {
    const [stranger, owner] = [service.user(), service.user()];
    const captured = await service.project(stranger.userId);
    const shop = await service.project(owner.userId);
    await stranger.api.post(`/v1/projects/${captured}/trusted-workflows`, ci.trust);
    const job = { SVC_BASE_URL: service.baseUrl, SVC_API_KEY: ci.token() };
    const webhooks = [{ url: "https://example.com/?token=private", events: ["deploy.failed"] }];
    const apply = (project?: string) =>
      svcHere(["apply", "-f", "-"], { env: job, input: JSON.stringify({ project, webhooks }), showsSecret: true });
    const create = ["webhooks", "create", "https://example.com/?token=private", "--events", "deploy.failed"];
    const refused = [
      await apply("Project"),
      await apply(),
      await svcHere([...create, "--project", "Project"], { env: job }),
      await svcHere(create, { env: job }),
      await svcHere(["deliveries", "list"], { env: job }),
    ];
    for (const { code, stdout, stderr } of refused) {
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toMatch(/^With the token of a workflow, .*the id of the project/);
    }
    expect((await stranger.api.get(`/v1/projects/${captured}/webhooks`)).body.data).toEqual([]);

    await owner.api.post(`/v1/projects/${shop}/trusted-workflows`, ci.trust);
    expect((await apply(shop)).code).toBe(0);
    expect((await svcHere(["webhooks", "list", "--project", shop], { env: job })).code).toBe(0);
    expect((await owner.api.get(`/v1/projects/${shop}/webhooks`)).body.data).toMatchObject(webhooks);
  });
});

describe("projects", () => {
  test("--project accepts an id or a name, and defaults to the only project", async () => {
    const user = service.user();
    const as = { SVC_BASE_URL: service.baseUrl, SVC_API_KEY: user.token };
    const list = (...args: string[]) => svcHere(["webhooks", "list", ...args], { env: as });
    expect(await list()).toMatchObject({
      code: 4,
      stderr: expect.stringContaining("You are not a member of any project."),
    });
    const first = await service.project(user.userId);
    expect((await list()).code).toBe(0);
    expect((await list("--project", "Project")).code).toBe(0);
    expect(await list("--project", "Shop")).toMatchObject({ code: 4, stderr: expect.stringContaining(first) });
    const second = await service.project(user.userId);
    for (const args of [[], ["--project", "Project"]]) {
      const { code, stderr } = await list(...args);
      expect(code).toBe(2);
      expect(stderr).toContain(first);
      expect(stderr).toContain(second);
    }
    expect((await list("--project", second)).code).toBe(0);
    expect((await list("--project", randomUUID())).code).toBe(4);
  });
});

describe("webhooks", () => {
  afterEach(deleteWebhooks);

  test('create and update --filter set the filter, which show has, apply reads, test-filter tries and "" removes', async () => {
    const environment = ["--filter", "environment=production"];
    const args = ["webhooks", "create", receiver.url, "--events", "deploy.started", "--json", ...environment];
    const { id, filter } = json(await svcHere(args, { env, showsSecret: true }));
    expect(filter).toEqual({ environment: ["production"] });
    for (const data of [{ environment: "staging" }, { environment: "production", branch: "release/2" }]) {
      await publish(eventOf(projectId, { data }));
    }
    const feed = () => api.get(`/v1/projects/${projectId}/events`);
    await eventually(async () => expect((await feed()).body.data).toHaveLength(2));
    const tried = await svcHere(["webhooks", "test-filter"], { env });
    expect(tried.stdout).toMatch(/^sent +\S+Z +deploy.started +environment is production +/m);
    expect(tried.stdout).toMatch(/^not sent +\S+Z +deploy.started +environment is staging +/m);
    expect(tried.stderr).toBe("1 of 2 are sent.\n");

    const other = await svcHere(["webhooks", "test-filter", id, "--json", "--filter", "brnch=*", "branch=main"], {
      env,
    });
    const decisions = other.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(decisions).toMatchObject([{ received: false }, { received: false }]);
    expect(decisions[0]).not.toHaveProperty("payload");
    expect(decisions.map(({ reason }) => reason)).toContainEqual(expect.stringContaining("; branch is release/2"));
    expect(other.stderr).toContain('the field "brnch" in its data. Is it misspelt?');
    expect((await api.get(path(id))).body.data.filter).toEqual(filter);

    await svcHere(["webhooks", "update", id, "--filter", "branch=main", "branch=release/*", "a=b c"], { env });
    const shown = (await svcHere(["webhooks", "show", id], { env })).stdout;
    expect(shown).toMatch(/^filter +a=b c, branch=main, branch=release\/\*$/m);
    const unfiltered = json(await svcHere(["webhooks", "update", id, "--filter", "", "--json"], { env }));
    expect(unfiltered).not.toHaveProperty("filter");

    const declared = { url: receiver.url, events: ["deploy.started"], filter };
    const input = JSON.stringify({ webhooks: [declared] });
    expect((await svcHere(["apply", "-f", "-"], { env, input })).stderr).toContain(
      "+   filter: environment=production\n",
    );
    expect((await api.get(path(id))).body.data.filter).toEqual(filter);
  });
});

describe("apply", () => {
  afterEach(deleteWebhooks);

  const file = (...webhooks: object[]) => ({ env, input: JSON.stringify({ webhooks }), showsSecret: true });
  const apply = (options: ReturnType<typeof file>, ...args: string[]) =>
    svcHere(["apply", "-f", "-", ...args], options);
  const stored = async () =>
    (await api.get(`/v1/projects/${projectId}/webhooks`)).body.data.map(
      ({ url, events, enabled }: Record<string, unknown>) => ({ url, events, enabled }),
    );

  test("creates, updates and, only with --prune, deletes; a repetition changes nothing", async () => {
    const old = await newWebhook(["deploy.started"], `${receiver.url}/old`);
    const changed = await newWebhook(["deploy.started"], `${receiver.url}/changed`);
    const wanted = [
      { url: `${receiver.url}/changed`, events: ["deploy.failed"], enabled: true },
      { url: `${receiver.url}/new`, events: ["deploy.succeeded"], enabled: false },
    ];
    const before = await stored();
    const planned = await apply(file(...wanted), "--dry-run");
    expect({ code: planned.code, stderr: planned.stderr }).toEqual({ code: 0, stderr: "" });
    expect(planned.stdout).toMatch(/\n1 to create, 1 to update, 1 not in the file \(--prune deletes them\)\.\n$/);
    const misspelt = { url: `${receiver.url}/changed`, events: ["deploy.*", "deploy.failed", "deploy.suceeded"] };
    expect((await apply(file(misspelt), "--dry-run")).stdout).toMatch(/^! deploy\.suceeded: only valid if .*\.\n[-~+]/);
    expect((await apply(file(misspelt), "--dry-run", "--json")).stderr).toMatch(/^! deploy\.suceeded: /);
    expect((await apply(file(...wanted), "--dry-run", "--exit-code", "--json")).code).toBe(2);
    expect((await apply(file(...wanted), "--dry-run", "--require-certified")).code).toBe(1);
    expect(await apply(file(...wanted), "--require-certified")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`\n  svc webhooks certify ${changed.id} --project ${projectId}\n`),
    });
    expect(await stored()).toEqual(before);

    const { code, stdout, stderr } = await apply(file(...wanted));
    expect(code).toBe(0);
    const [, id = "", secret = ""] = /^(\S{36}) {2}(whsec_[0-9a-f]{64}) {2}\S+\/new\n$/.exec(stdout) ?? [];
    expect(secret).not.toBe("");
    expect(stderr).toContain(
      `~ ${receiver.url}/changed  ${changed.id}\n-   events: deploy.started\n+   events: deploy.failed\n`,
    );
    expect(stderr).toMatch(/Changes made: 2\.\n$/);
    expect(await stored()).toEqual([before[0], ...wanted]);

    expect((await apply(file(...wanted), "--dry-run", "--exit-code")).code).toBe(0);
    const isNotConfirmed = { code: 2, stderr: expect.stringContaining("Pass --yes to confirm") };
    expect(await apply(file(...wanted), "--prune")).toMatchObject(isNotConfirmed);
    const repeated = await apply(file(...wanted), "--prune", "--yes", "--json");
    expect(
      repeated.stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toEqual([
      { action: "delete", id: old.id, url: `${receiver.url}/old` },
      { action: "unchanged", id: changed.id, url: `${receiver.url}/changed` },
      { action: "unchanged", id, url: `${receiver.url}/new` },
    ]);
    expect(await stored()).toEqual(wanted);
    expect(await apply(file(...wanted), "--prune")).toMatchObject({
      code: 0,
      stdout: "",
      stderr: expect.stringMatching(/2 unchanged\.\nNothing to change\.\n$/),
    });
  });

  test("what a webhook gets, and how, is set and changed, and a repetition changes nothing", async () => {
    const url = `${receiver.url}/formed`;
    const headers = { Authorization: { env: "HOOK_AUTHORIZATION" }, "x-team": { env: "HOOK_AUTHORIZATION" } };
    const latest = { events: ["deploy.*"], delivery: "latest", settle_seconds: 5 };
    const states = [
      [
        { url, ...latest, format: "cloudevents", headers },
        { ...latest, format: "cloudevents", header_names: Object.keys(headers) },
      ],
      [{ url, events: ["*"], format: "standard", headers: null, delivery: "every" }, { events: ["*"] }],
      [
        { url, ...latest, settle_seconds: 0 },
        { events: ["deploy.*"], delivery: "latest" },
      ],
      [
        { url, events: ["deploy.*"], delivery: "latest", settle_seconds: 7 },
        { ...latest, settle_seconds: 7 },
      ],
    ] as const;
    for (const [declared, expected] of states) {
      const options = { ...file(declared), env: { ...env, HOOK_AUTHORIZATION: "Bearer value" } };
      expect((await apply(options)).code).toBe(0);
      const [webhook] = (await api.get(`/v1/projects/${projectId}/webhooks`)).body.data;
      const { events, format, header_names, delivery, settle_seconds } = webhook;
      expect({ events, format, header_names, delivery, settle_seconds }).toEqual({ ...expected });
      expect((await apply(file(declared), "--dry-run", "--exit-code")).code).toBe(0);
    }
  });

  test("prints the secret of a created webhook although a later change fails, and reports which", async () => {
    const { code, stdout, stderr } = await apply(
      file(
        { url: receiver.url, events: ["deploy.failed"] },
        { url: "https://localhost/", events: ["deploy.failed"] },
        { url: "ftp://example.com/", events: ["deploy.failed"] },
      ),
      "--json",
    );
    expect(code).toBe(2);
    expect(JSON.parse(stdout.split("\n")[0] ?? "")).toMatchObject({
      action: "create",
      secret: expect.stringMatching(/^whsec_/),
    });
    const lines = stderr.trim().split("\n");
    expect(lines[0]).toContain("Could not create ftp://example.com/. Changes made before: 2. Correct the cause, and");
    expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ error: { code: "validation_error" } });
  });
});

describe("deliveries", () => {
  afterEach(deleteWebhooks);

  /** Creates a webhook and waits until its first delivery has a status. */
  async function newDelivery(status: "succeeded" | "failed", changes: object = {}) {
    const webhook = await newWebhook(["deploy.started"]);
    if (status === "failed") receiver.respondWith((_, response) => response.writeHead(503).end("\u001b[2J Grüße"));
    await publish(eventOf(projectId, changes));
    const [delivery] = await eventually(async () => {
      const { data } = (await api.get(`${path(webhook.id)}/deliveries`)).body;
      expect(data[0]?.status).toBe(status);
      return data;
    });
    return { webhook, delivery };
  }

  test("list and show name the webhook, and have its id for a key that may not read webhooks", async () => {
    const { webhook, delivery } = await newDelivery("succeeded", {});
    await api.patch(path(webhook.id), { name: "Chat" });
    const commands = [
      ["deliveries", "list"],
      ["deliveries", "show", delivery.id, "--webhook", webhook.id],
    ];
    const limits = { permissions: ["deliveries:read"], project_ids: [projectId] };
    const { key } = (await api.post("/v1/api-keys", { name: "ci", ...limits })).body.data;
    for (const command of commands) {
      expect((await svcHere(command, { env })).stdout).toMatch(/ Chat ( |\()/);
      const withKey = await svcHere(command, { env: { ...env, SVC_API_KEY: key } });
      expect(withKey).toMatchObject({ code: 0, stdout: expect.stringMatching(` ${webhook.id}\\b`) });
    }
    const urls = ["a", "b"].map((name) => `${receiver.url}/${name}`);
    for (const url of urls) await api.post(`${path((await newWebhook(["deploy.failed"], url)).id)}/test`);
    const { stdout } = await svcHere(["deliveries", "list"], { env });
    for (const url of urls) expect(stdout).toContain(` ${url.replace("http://", "")} `);
  });

  test("show prints the numbers of a payload as they were sent", async () => {
    const { delivery } = await newDelivery("succeeded", { data: { size: JSON.rawJSON("9007199254740993") } });
    const { stdout } = await svcHere(["deliveries", "show", delivery.id, "--json"], { env });
    expect(stdout).toContain('"size":9007199254740993');
  });

  describe("recover of more than one call", () => {
    const since = "2026-11-20T00:00:00Z";
    const webhookId = "0193f8a0-0000-7000-8000-000000000001";
    type Response = [status: number, body: object, headers?: Record<string, string>];
    const result = (count: number, next_cursor: string | null): Response => [
      202,
      { data: { count, complete: next_cursor === null, next_cursor } },
    ];
    const limited = (seconds: number): Response => [
      429,
      { error: { code: "rate_limited", message: "The budget is used up.", request_id: "r-1" } },
      { "Retry-After": String(seconds) },
    ];

    /** Runs the command with a service that returns these responses to its calls of recover. */
    async function recoverWith(responses: Response[], ...args: string[]) {
      const bodies: unknown[] = [];
      const project = { id: "0193f8a0-0000-7000-8000-000000000000", name: "shop", role: "admin" };
      const server = http.createServer(async (request, response) => {
        const lists: Record<string, object> = { "/v1/projects": [project] };
        const isRecover = request.method === "POST";
        if (isRecover) bodies.push(JSON.parse(await text(request)));
        const data = lists[request.url ?? ""] ?? [{ id: webhookId, url: "https://example.com/", events: [] }];
        const [status, body, headers] = isRecover ? (responses[bodies.length - 1] ?? [500, {}]) : [200, { data }];
        response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
      });
      const SVC_BASE_URL = await listening(server);
      const command = ["deliveries", "recover", "--since", since, ...args];
      const ended = await svcHere(command, { env: { ...env, SVC_BASE_URL } });
      return { ...ended, bodies };
    }

    test("continues until it is complete, and notes the progress", async () => {
      const { code, stdout, stderr, bodies } = await recoverWith([
        result(10_000, "a"),
        result(0, "b"),
        result(7, null),
      ]);
      expect({ code, stdout }).toEqual({ code: 0, stdout: "10007 sent again.\n" });
      expect(stderr).toBe("10000 sent again so far, continuing.\n10000 sent again so far, continuing.\n");
      expect(bodies).toEqual([{ since }, { since, cursor: "a" }, { since, cursor: "b" }]);
    });

    test("prints the total with --json", async () => {
      const { stdout } = await recoverWith([result(10_000, "a"), result(7, null)], "--json");
      expect(JSON.parse(stdout)).toEqual({ count: 10_007, complete: true, next_cursor: null });
    });

    test("waits for the next window of the budget and says so", async () => {
      const { setTimeout } = globalThis;
      const isLong = (ms = 0) => ms >= 60_000;
      const clock = jest.spyOn(globalThis, "setTimeout");
      clock.mockImplementation((run, ms) => setTimeout(run, isLong(ms) ? 0 : ms));
      const { code, stdout, stderr } = await recoverWith([result(5, "a"), limited(60), result(2, null)]);
      clock.mockRestore();
      expect({ code, stdout }).toEqual({ code: 0, stdout: "7 sent again.\n" });
      expect(stderr).toContain("Trying again in 60 s.");
    });

    test("exits with 5 when the wait is too long, with the service's message and the progress", async () => {
      const { code, stdout, stderr } = await recoverWith([result(5, "a"), limited(61)]);
      expect({ code, stdout }).toEqual({ code: 5, stdout: "" });
      expect(stderr).toContain("5 sent again before the error. Repeat the command to continue.\n");
      expect(stderr).toContain("The budget is used up. (rate_limited, request r-1)\n→ Wait a moment and try again");
    });
  });
});

test.each<[string[], number, string]>([
  [["webhooks", "create", "ftp://example.com/", "--events", "deploy.failed"], 2, "(validation_error, request "],
  [["webhooks", "show", "000"], 4, "at least the first 4 characters of one: svc webhooks list"],
  [["webhooks", "show", "0000g"], 4, "No webhook of the project has the name or the id 0000g."],
  [["webhooks", "show", randomUUID()], 4, "(not_found, request "],
  [["webhooks", "show"], 4, "svc webhooks create"],
  [["webhooks", "update", "--enable", "--disable"], 2, "not both"],
  [["webhooks", "explode"], 2, "unknown command"],
  [["webhooks"], 2, "Usage: svc webhooks"],
  [["webhooks", "help"], 2, "unknown command 'help'"],
  [["login", "--base-url", "https://api.example.com"], 2, "No credential given and stdin is not a terminal."],
  [["webhoks"], 2, "Did you mean webhooks?"],
  [["certify"], 2, "unknown command 'certify'\nDid you mean:\n  svc webhooks certify\n"],
  [["webhoks", "--json"], 2, '{"error":{"code":"usage_error","message":"unknown command \'webhoks\' (Did'],
  [["webhooks", "--json"], 2, '{"error":{"code":"usage_error","message":"A command is missing.'],
  [["webhoks", "--", "--json"], 2, "unknown command 'webhoks'\n"],
  [["help", "webhooks", "explode"], 2, "Unknown command: svc webhooks explode."],
  [["deliveries", "show", "7"], 2, "7 is not a valid delivery id"],
  [["deliveries", "show", randomUUID()], 4, "No delivery with the id"],
  [["deliveries", "tail"], 4, "The project has no webhooks"],
  [["completion", "tcsh"], 2, "Allowed choices are"],
  [["--verbose"], 2, "unknown option"],
])("%j exits with %i and the reason", async (args, code, message) => {
  const rejected = await svcHere(args, { env });
  expect(rejected).toMatchObject({ code, stdout: "", stderr: expect.stringContaining(message) });
  expect(rejected.stderr).not.toContain("    at ");
  if (args[1] === "--json") expect(() => JSON.parse(rejected.stderr)).not.toThrow();
});

describe("when a request fails", () => {
  const error = (code: string) => JSON.stringify({ error: { code, message: "Not now.", request_id: "r-1" } });

  test.each<[string, number, string, number, string]>([
    ["an unavailable service", 503, error("service_unavailable"), 5, "Not now. (service_unavailable, request r-1)"],
    ["a response of another service", 200, "<html>", 5, "not JSON"],
    ["a response of a proxy", 502, "<html>", 5, "not from this API"],
  ])("exits with 5 for %s", async (_, status, body, code, message) => {
    const stub = await startStub(status, { "Retry-After": "60", "Content-Type": "application/json" }, body);
    const id = randomUUID();
    for (const args of [
      ["projects", "list"],
      ["deliveries", "show", id, "--webhook", id, "--project", id],
    ]) {
      const { code: ended, stderr } = await svcHere(args, { env: { ...env, SVC_BASE_URL: stub.url } });
      expect({ ended, stderr }).toEqual({ ended: code, stderr: expect.stringContaining(message) });
    }
  });

  test("tail, which retries itself, makes one request of a service that is unavailable at its start", async () => {
    const stub = await startStub(503, { "Retry-After": "1" }, error("service_unavailable"));
    const { code } = await svcHere(["deliveries", "tail"], { env: { ...env, SVC_BASE_URL: stub.url } });
    expect([code, stub.requests.length]).toEqual([5, 1]);
  });

  test("exits with 3 and the reason for an expired JWT", async () => {
    const SVC_API_KEY = mintToken(process.env.JWT_SECRET ?? "", userId, -1);
    const { code, stderr } = await svcHere(["projects", "list"], { env: { ...env, SVC_API_KEY } });
    expect({ code, stderr }).toEqual({
      code: 3,
      stderr: expect.stringMatching(/token_expired, .*\n→ A JWT is valid for at most an hour\. Set SVC_API_KEY/),
    });
  });

  test("exits with 3 and names svc login when there is no credential; a relative XDG_CONFIG_HOME is not read", async () => {
    const home = freshConfigHome();
    mkdirSync(join(home, "svc"));
    writeFileSync(join(home, "svc/config.json"), JSON.stringify({ base_url: service.baseUrl }));
    const XDG_CONFIG_HOME = relative(process.cwd(), home);
    // A process of its own: in this one, the home directory is the user's, where a login may be stored.
    const { stderr } = await svc(["projects", "list"], { env: { XDG_CONFIG_HOME }, cwd: process.cwd() });
    expect(stderr).toContain("No service is configured.");
    expect(await svcHere(["projects", "list"], { env: { SVC_BASE_URL: service.baseUrl } })).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("svc login"),
    });
  });
});

test("--debug logs requests without their content", async () => {
  const { stderr } = await svcHere(["--debug", "webhooks", "list"], { env });
  const lines = stderr.trim().split("\n").slice(0, 3);
  expect(lines).toEqual([
    expect.stringMatching(/^GET \/v1\/api-keys\/current 200 [\w-]{36}$/),
    expect.stringMatching(/^GET \/v1\/projects 200 [\w-]{36}$/),
    expect.stringMatching(/^GET \/v1\/projects\/[\w-]{36}\/webhooks 200 [\w-]{36}$/),
  ]);
});

test("every command has a summary, a description and descriptions of its options", async () => {
  const program = createProgram();
  const all = program.commands.flatMap((command) => [command, ...command.commands]);
  expect(all.length).toBeGreaterThan(20);
  for (const command of all) {
    expect({ name: command.name(), summary: command.summary() }).toEqual({
      name: command.name(),
      summary: expect.stringMatching(/^[^.]+$/),
    });
    expect(command.description().length).toBeGreaterThan(command.name().length + 10);
    for (const option of command.options) expect(option.description).not.toBe("");
    if (command.name() === "list") expect(command.aliases()).toEqual(["ls"]);
  }
  const { code, stdout } = await svcHere(["deliveries", "recover", "--help"]);
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining("Examples:") });
  expect(await svcHere(["help", "deliveries", "recover"])).toEqual({ code: 0, stdout, stderr: "" });
});

/** A Node on this machine that cannot run TypeScript. */
const olderNode = (process.env.PATH ?? "")
  .split(":")
  .map((folder) => join(folder, "node"))
  .find((file) => existsSync(file) && /^v2[01]\./.test(execFileSync(file, ["--version"], { encoding: "utf8" })));

needs({ name: "Node 20 or 21", isInstalled: olderNode !== undefined }).test(
  "the checkout runs on an older Node, through a symbolic link",
  async () => {
    const folder = freshConfigHome();
    symlinkSync(program, join(folder, "svc"));
    const start = (...args: string[]) =>
      spawn(olderNode ?? "", [join(folder, "svc"), ...args], { cwd: folder, env: environment(env) });
    const ended = async (child: ChildProcess) => (await once(child, "close")) as [number | null, string | null];
    expect(await ended(start("projects", "list"))).toEqual([0, null]);
    expect(await ended(start("nonsense"))).toEqual([2, null]);
    // stdin and SIGTERM reach the child process.
    const verify = start("verify", "--signature", "sha256=00", "--secret", "whsec_00", "--json");
    let stdout = "";
    verify.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    verify.stdin.end("{}");
    expect(await ended(verify)).toEqual([1, null]);
    expect(JSON.parse(stdout)).toMatchObject({ verified: false });
    const listen = start("listen", "--port", "0");
    await once(listen.stderr, "data");
    listen.kill("SIGTERM");
    expect(await ended(listen)).toEqual([0, null]);
  },
);

import { once } from "node:events";
import { readFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { stripVTControlCharacters } from "node:util";
import { helpPage, readArguments, UsageError } from "../../bin/command/command.ts";
import type { Limits } from "../../bin/smoke/check.ts";
import { readSmokeOptions, type SmokeOptions, smokeProgram } from "../../bin/smoke/options.ts";
import { groups, smoke } from "../../bin/smoke/run.ts";
import { commandHere } from "../support/command-here.ts";
import { freePort } from "../support/free-port.ts";
import { listening } from "../support/listening.ts";
import { runCommand, startProgram } from "../support/local-run.ts";
import { startReceiver } from "../support/receiver.ts";
import { type TestService, useService } from "../support/service.ts";
import {
  type ProxiedRequest,
  type ProxiedResponse,
  startTamperingProxy,
  type Tampering,
} from "../support/tampering-proxy.ts";

/* `npm run smoke` passes on a healthy stage, and names the fault of a faulty one. */

const root = join(import.meta.dirname, "../..");
const fixture = (name: string) => readFileSync(join(root, "test/fixtures", name), "utf8");
const tls = { cert: fixture("tls-cert.pem"), key: fixture("tls-key.pem") };

/** Closes the proxies of a test, also after a failure. */
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function openProxy(...args: Parameters<typeof startTamperingProxy>) {
  const proxy = await startTamperingProxy(...args);
  closers.push(() => proxy.close());
  return proxy;
}

const never = new AbortController().signal;

const KEY_PROJECTS = "the key sees the projects of its owner, and cannot create keys";
const KEY_DELETED = "the key is deleted, and the next request with it is rejected";
const WEBHOOK_CREATED = "a webhook is created with the key, and disabled";
const ACCEPTED = "The API accepted a request that it must reject.";
const ofGateway = [
  "an unknown route returns 404",
  "an unknown route returns 404 with any Authorization too",
  "an unsupported method returns 405 with the allowed ones",
  "a request without credentials returns 401",
  "a malformed JWT is rejected",
  "a partner key is treated as a JWT and rejected",
  "an unknown API key is rejected",
  "a body over 64 KB returns 413",
];

const service = useService({ deliver: true });
let user: ReturnType<TestService["user"]>;
let projectId: string;
beforeEach(async () => {
  user = service.user();
  projectId = await service.project(user.userId);
});

async function check(options: Partial<SmokeOptions> & { baseUrl: string }, limits: Partial<Limits> = {}, stop = never) {
  const lines: string[] = [];
  const print = (line: string) => void lines.push(stripVTControlCharacters(line));
  // Generous, for slow machines: tests of a limit set their own.
  const bounds = { totalMs: 90_000, ...limits };
  const hasPassed = await smoke({ token: user.token, ...options }, print, stop, bounds);
  const claims = (verdict: string) =>
    lines.flatMap((line) => new RegExp(`^ {2}${verdict} +\\d+ ms {2}(.*)$`).exec(line)?.[1] ?? []);
  return { hasPassed, text: lines.join("\n"), ok: claims("ok"), FAIL: claims("FAIL") };
}

/** Checks the service through a proxy that tampers with it. */
async function checkThroughProxy(
  tampering: Tampering,
  options: Partial<SmokeOptions> = {},
  limits: Partial<Limits> = {},
  stop = never,
) {
  const proxy = await openProxy(service.baseUrl, tampering);
  return { ...(await check({ baseUrl: proxy.url, ...options }, limits, stop)), requests: proxy.requests };
}

const keys = async () => (await user.api.get("/v1/api-keys")).body.data;
const webhooks = async () => (await user.api.get(`/v1/projects/${projectId}/webhooks`)).body.data;
async function expectNothingRemains(): Promise<void> {
  expect({ keys: await keys(), webhooks: await webhooks() }).toEqual({ keys: [], webhooks: [] });
}

function expectNoSecrets(text: string): void {
  expect(text).not.toContain(user.token);
  expect(text).not.toMatch(/svc_[0-9a-f]{16}|whsec_\w{8}/);
}

describe("a healthy stage", () => {
  test("passes every check, and nothing remains on it", async () => {
    const { hasPassed, ok, text } = await check({ baseUrl: service.baseUrl, receiver: "listen" });
    expect(hasPassed).toBe(true);
    expect(ok).toEqual([
      "the stage responds",
      ...ofGateway,
      "the JWT is that of an admin of a project",
      "a key is created, and the list does not show it",
      KEY_PROJECTS,
      WEBHOOK_CREATED,
      expect.stringMatching(/^a test delivery arrives \(status 200 after \d+ ms, both signatures verified\)$/),
      "the webhook is deleted, and then returns 404",
      KEY_DELETED,
      "everything that was created is removed (0 removed)",
    ]);
    expect(text).toMatch(/\n\nSmoke test passed: 17 ok, 0 failed, in \d+\.\d s\.\n$/);
    expectNoSecrets(text);
    await expectNothingRemains();
  });

  test.each(["none", "viewer"] as const)("fails when the role of the user in a project is %s", async (role) => {
    user = service.user();
    if (role === "viewer") await service.project(user.userId, { role });
    const { hasPassed, FAIL, text } = await check({ baseUrl: service.baseUrl });
    expect({ hasPassed, FAIL }).toEqual({ hasPassed: false, FAIL: ["the JWT is that of an admin of a project"] });
    expect(text).toContain("the user is not an admin of any project");
  });

  test("without a receiver sends no test delivery", async () => {
    const { hasPassed, requests } = await checkThroughProxy({});
    expect(hasPassed).toBe(true);
    expect(requests.some(({ path }) => path.endsWith("/test"))).toBe(false);
    await expectNothingRemains();
  });

  test("sends one test delivery to --receiver, and does not print its URL, even when the stage returns it", async () => {
    const receiver = await startReceiver();
    closers.push(() => receiver.close());
    const url = `${receiver.url}/hidden-path?token=hidden`;
    const { hasPassed, ok, text } = await check({ baseUrl: service.baseUrl, receiver: { url } });
    expect(hasPassed).toBe(true);
    expect(ok).toContainEqual(expect.stringMatching(/^a test delivery arrives \(status 200/));
    expect(receiver.received.map(({ path }) => path)).toEqual(["/hook/hidden-path?token=hidden"]);
    const response = (received: ProxiedResponse, request: ProxiedRequest) => {
      if (!createsWebhook(request)) return;
      const error = { code: "internal_error", message: request.body, request_id: "r" };
      Object.assign(received, { status: 500, body: JSON.stringify({ error }) });
    };
    const echoed = await checkThroughProxy({ response }, { receiver: { url } });
    expect(echoed.text).toMatch(/got 500 internal_error: \{"name":"smoke-[^"]+","url":"…"/);
    expect(text + echoed.text).not.toContain("hidden");
  });

  test("loses the resources of killed runs, and no others", async () => {
    for (const name of ["smoke-20200101T000000Z-abcdef", "smoke-tests", "smoke-20200101T000000Z-000000"]) {
      await user.api.post("/v1/api-keys", { name });
    }
    for (const name of ["smoke-20200101T000000Z-abcdef", "smoke-tests", undefined]) {
      const webhook = { name, url: "https://smoke.invalid/", events: ["deploy.failed"] };
      await user.api.post(`/v1/projects/${projectId}/webhooks`, webhook);
    }
    // Makes the resources whose names end in abcdef more than an hour old.
    const response = (response: ProxiedResponse) => {
      const old = (record: Record<string, string>) =>
        /abcdef$/.test(record.name ?? "") ? { ...record, created_at: "2020-01-01T00:00:00.000Z" } : record;
      const { data, ...rest } = response.body === "" ? {} : JSON.parse(response.body);
      if (Array.isArray(data)) response.body = JSON.stringify({ ...rest, data: data.map(old) });
    };
    const { hasPassed, ok } = await checkThroughProxy({ response });
    expect(hasPassed).toBe(true);
    expect(ok).toContain("everything that was created is removed (2 removed)");
    expect((await keys()).map(({ name }: { name: string }) => name)).toEqual([
      "smoke-tests",
      "smoke-20200101T000000Z-000000",
    ]);
    expect((await webhooks()).map(({ name }: { name?: string }) => name)).toEqual(["smoke-tests", undefined]);
  });
});

/* Stages with faults, each with the checks that must fail because of them, and what each reports. No other check may fail. */

const is = (method: string, path: RegExp) => (request: ProxiedRequest) =>
  request.method === method && path.test(request.path);
const createsKey = is("POST", /^\/v1\/api-keys$/);
const listsKeys = is("GET", /^\/v1\/api-keys$/);
const listsProjects = is("GET", /^\/v1\/projects(\?|$)/);
const createsWebhook = is("POST", /\/webhooks$/);
const changesWebhook = is("PATCH", /./);

/** Changes the data of a successful response. */
// biome-ignore lint/suspicious/noExplicitAny: the JSON of any response
const edit = (response: ProxiedResponse, change: (data: any) => void) => {
  if (response.status >= 300) return;
  const json = JSON.parse(response.body);
  change(json.data);
  response.body = JSON.stringify(json);
};
const tokenOf = (request: ProxiedRequest) => (request.headers.authorization ?? "").replace("Bearer ", "");

const faultyStages: [
  title: string,
  findings: [claim: string, note: string | RegExp][],
  tampering: () => Tampering,
  limits?: Partial<Limits>,
][] = [
  [
    "errors of API Gateway, without the headers of errors",
    [
      [
        "an unknown route returns 404",
        'GET /v1/smoke-test/no-such-route: expected 404 not_found, got 403 {"message":"Missing Authentication Token"}',
      ],
      ["an unknown route returns 404 with any Authorization too", "x-request-id is not the id in the body"],
      [
        "an unsupported method returns 405 with the allowed ones",
        "expected allow to match /\\bGET\\b/, got no such header",
      ],
      [
        "a request without credentials returns 401",
        'expected www-authenticate to match /^Bearer\\b/, got Basic realm="api"',
      ],
      ["a malformed JWT is rejected", "expected x-content-type-options to match /^nosniff$/, got no such header"],
      ["a partner key is treated as a JWT and rejected", /expected 401 invalid_token, got 401 .*"code":"unknown_key"/],
      ["an unknown API key is rejected", "expected cache-control to match /no-store/, got no such header"],
      [
        "a body over 64 KB returns 413",
        "POST /v1/api-keys: expected 413 payload_too_large, got 500 with an empty body",
      ],
    ],
    () => ({
      request(request) {
        if (tokenOf(request).startsWith("svcp_")) request.headers.authorization = `Bearer svc_${"0".repeat(64)}`;
      },
      response(response, request) {
        const { headers } = response;
        const token = tokenOf(request);
        if (request.path.includes("no-such")) {
          Object.assign(response, { status: 403, body: '{"message":"Missing Authentication Token"}' });
        }
        if (request.path.endsWith("/nonsense")) headers["x-request-id"] = "another";
        if (token === "junk.junk.junk") delete headers["x-content-type-options"];
        if (token === `svc_${"0".repeat(64)}`) response.body = response.body.replace("invalid_api_key", "unknown_key");
        else if (/^svc_/.test(token) && response.status === 401 && !accepted.has(token))
          delete headers["cache-control"];
        delete headers.allow;
        if (token === "" && response.status === 401) headers["www-authenticate"] = 'Basic realm="api"';
        if (response.status === 413) Object.assign(response, { status: 500, body: "" });
        if (response.status === 200) accepted.add(token);
      },
    }),
  ],
  [
    "a list that shows keys",
    [["a key is created, and the list does not show it", "the list contains the key, which only creation may show"]],
    () => {
      let key = "";
      return {
        response(response, request) {
          if (createsKey(request)) edit(response, (data) => (key = data.key));
          if (listsKeys(request))
            edit(response, (data) => {
              for (const each of data) each.key = key;
            });
        },
      };
    },
  ],
  [
    "a key that can do too much",
    [[KEY_PROJECTS, ACCEPTED]],
    () => ({
      request(request) {
        if (createsKey(request) && tokenOf(request).startsWith("svc_"))
          request.headers.authorization = `Bearer ${user.token}`;
      },
    }),
  ],
  [
    "a key with other projects than its owner",
    [[KEY_PROJECTS, "the key sees other projects than its owner does"]],
    () => ({
      response(response, request) {
        if (listsProjects(request) && tokenOf(request).startsWith("svc_")) edit(response, (data) => data.splice(0));
      },
    }),
  ],
  [
    "webhooks that cannot be created",
    [[WEBHOOK_CREATED, "got 500 internal_error: Broken."]],
    () => ({
      response(response, request) {
        if (!createsWebhook(request)) return;
        const error = { code: "internal_error", message: "Broken.", request_id: "r" };
        Object.assign(response, { status: 500, body: JSON.stringify({ error }) });
      },
    }),
  ],
  [
    "a webhook that stays enabled",
    [[WEBHOOK_CREATED, "the webhook is still enabled"]],
    () => ({
      response(response, request) {
        if (changesWebhook(request)) edit(response, (data) => (data.enabled = true));
      },
    }),
  ],
  [
    "deliveries that are never sent",
    [["a test delivery arrives", "still pending after 1.5 s: the sender does not process its queue"]],
    () => ({
      response(response) {
        response.body = response.body.replace('"status":"succeeded"', '"status":"pending"');
      },
    }),
    { deliveryMs: 1_500 },
  ],
  [
    "deliveries with another signature",
    [["a test delivery arrives", "no signature matches"]],
    () => ({
      response(response, request) {
        if (createsWebhook(request)) edit(response, (data) => (data.secret = `whsec_${"0".repeat(64)}`));
      },
    }),
  ],
  [
    "a deletion of a webhook that does nothing",
    [["the webhook is deleted, and then returns 404", ACCEPTED]],
    () => ({ respond: firstDeletionOf(/\/webhooks\//) }),
  ],
  [
    "a deletion of a key that does nothing",
    [[KEY_DELETED, ACCEPTED]],
    () => ({ respond: firstDeletionOf(/\/api-keys\//) }),
  ],
  [
    "an authorizer that caches",
    [[KEY_DELETED, ACCEPTED]],
    () => {
      const cached = new Map<string, ProxiedResponse>();
      return {
        respond: (request) => (listsProjects(request) ? structuredClone(cached.get(tokenOf(request))) : undefined),
        response(response, request) {
          if (listsProjects(request) && response.status === 200)
            cached.set(tokenOf(request), structuredClone(response));
        },
      };
    },
  ],
];

/** Responds to the first deletion at such a path with 204, and deletes nothing. */
function firstDeletionOf(path: RegExp): NonNullable<Tampering["respond"]> {
  let isSeen = false;
  return (request) => {
    if (isSeen || request.method !== "DELETE" || !path.test(request.path)) return undefined;
    isSeen = true;
    return { status: 204, headers: {}, body: "" };
  };
}

/** Credentials that the first faulty stage has accepted. */
const accepted = new Set<string>();

const STRICT_TRANSPORT = "responses over TLS require it (Strict-Transport-Security)";

test("names only sections that docs/runbook.md has", () => {
  const runbook = readFileSync(join(root, "docs/runbook.md"), "utf8");
  const named = groups.flatMap(({ sections }) => sections);
  for (const section of new Set(named)) expect(runbook).toMatch(new RegExp(`^#+ ${section}$`, "m"));
});

describe("a stage with faults", () => {
  test.each(faultyStages)(
    "%s: fails exactly the checks concerned, says why, and removes everything",
    async (_, findings, tampering, limits = {}) => {
      const { hasPassed, text } = await checkThroughProxy(tampering(), { receiver: "listen" }, limits);
      expect(hasPassed).toBe(false);
      const failed = /^ {2}FAIL +\d+ ms {2}(.*)\n {18}(.*)\n {18}see docs\/runbook\.md: .+$/gm;
      expect([...text.matchAll(failed)].map(([, claim, note]) => [claim, note])).toEqual(
        findings.map(([claim, note]) => [
          claim,
          typeof note === "string" ? expect.stringContaining(note) : expect.stringMatching(note),
        ]),
      );
      expect(text).toMatch(new RegExp(`\nSmoke test failed: \\d+ ok, ${findings.length} failed, `));
      await expectNothingRemains();
      expectNoSecrets(text);
    },
  );

  test("a rejected JWT: runs no check that needs it, and creates nothing", async () => {
    const { FAIL, requests, text } = await checkThroughProxy(
      {},
      { token: "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1In0.c2lnbmF0dXJl" },
    );
    expect(FAIL).toEqual(["a body over 64 KB returns 413", "the JWT is that of an admin of a project"]);
    expect(text).toContain("got 401 invalid_token");
    expect(text).toContain("\nA check failed: the remaining checks were not run.");
    expect(requests.filter(({ method, body }) => method === "POST" && body.length < 1_000)).toEqual([]);
    expect(text).not.toContain("eyJhbGci");
  });

  test("a receiver that refuses connections: prints the attempt's hint", async () => {
    const { FAIL, text } = await check({ baseUrl: service.baseUrl, receiver: { url: "http://127.0.0.1:9/" } });
    expect(FAIL).toEqual(["a test delivery arrives"]);
    expect(text).toContain("the test delivery failed: connection_refused. Nothing accepts connections");
  });

  test("a lost response to a creation: the resource is found by its mark and removed", async () => {
    const response = (_: ProxiedResponse, request: ProxiedRequest) =>
      createsWebhook(request) ? ("cut" as const) : undefined;
    const { FAIL, text } = await checkThroughProxy({ response });
    expect(FAIL).toEqual([WEBHOOK_CREATED]);
    expect(text).toContain("everything that was created is removed (2 removed)");
    await expectNothingRemains();
  });

  test.each<[string, (request: ProxiedRequest) => boolean]>([
    ["deletions: each remaining resource", ({ method }) => method === "DELETE"],
    ["lists: the mark of what remains", is("GET", /\/(api-keys|webhooks)$/)],
  ])("failing %s is named", async (what, isFailing) => {
    const body = '{"error":{"code":"internal_error","message":"Broken.","request_id":"r"}}';
    const respond = (request: ProxiedRequest) => (isFailing(request) ? { status: 500, headers: {}, body } : undefined);
    const { hasPassed, FAIL, text } = await checkThroughProxy({ respond });
    expect({ hasPassed, last: FAIL.at(-1) }).toEqual({
      hasPassed: false,
      last: "everything that was created is removed",
    });
    const [key] = await keys();
    const [webhook] = await webhooks();
    const named = what.startsWith("deletions")
      ? [`API key ${key.id} (Broken.)`, `webhook ${webhook.id} of project ${projectId} (Broken.)`]
      : ["any API key named smoke-", "any webhook named smoke-"];
    for (const each of named) expect(text).toContain(each);
  });

  test("a slow stage: ends within the time limit and removes everything", async () => {
    const request = () => sleep(150);
    const { hasPassed, text } = await checkThroughProxy({ request }, {}, { totalMs: 2_000 });
    expect(hasPassed).toBe(false);
    expect(text).toContain("Time limit of 2 s reached: the remaining checks were not run.");
    expect(text).toContain("Smoke test not finished:");
    await expectNothingRemains();
  });

  test("an interrupt during the creation of a key: the key is removed", async () => {
    const interrupt = new AbortController();
    const response = (_: ProxiedResponse, request: ProxiedRequest) => {
      if (createsKey(request) && request.body.includes("smoke-")) interrupt.abort();
    };
    const { hasPassed, text } = await checkThroughProxy({ response }, {}, {}, interrupt.signal);
    expect(hasPassed).toBe(false);
    expect(text).toContain("Interrupted: the remaining checks were not run.");
    expect(text).toContain("everything that was created is removed (1 removed)");
    await expectNothingRemains();
  });

  test("a server that always redirects: the token is not sent to the target", async () => {
    const elsewhere = await openProxy(service.baseUrl);
    const respond = ({ path }: ProxiedRequest) => ({
      status: 301,
      headers: { location: elsewhere.url + path },
      body: "",
    });
    const { FAIL } = await checkThroughProxy({ respond });
    expect(FAIL).toContain("the JWT is that of an admin of a project");
    expect(elsewhere.requests).toEqual([]);
  });

  test("a stage that returns the credentials of requests: none is printed", async () => {
    const response = (received: ProxiedResponse, { headers, body }: ProxiedRequest) => {
      const message = `${headers.authorization} ${body} ${received.body}`;
      if (received.status < 300) return;
      received.body = JSON.stringify({ error: { code: "internal_error", message, request_id: "r" } });
    };
    const { text } = await checkThroughProxy({ response });
    expect(text).toContain("Bearer svc_…");
    expectNoSecrets(text);
  });
});

const unusedUrl = async () => `http://127.0.0.1:${await freePort()}`;

test.each<[string, () => Promise<string> | string, string]>([
  ["a port where nothing listens", unusedUrl, "(ECONNREFUSED)"],
  [
    "a name that does not resolve",
    () => "https://no-such-host.invalid",
    "Could not reach https://no-such-host.invalid",
  ],
  ["a server that never responds", () => listening(http.createServer(() => {})), "No complete response from http"],
  ["https to a port that speaks plain http", () => service.baseUrl.replace("http:", "https:"), "Could not reach https"],
])("%s: one check fails with the cause, and no other runs", async (_, url, message) => {
  const { hasPassed, FAIL, ok, text } = await check({ baseUrl: await url() }, { requestMs: 500 });
  expect({ hasPassed, FAIL, ok }).toEqual({
    hasPassed: false,
    FAIL: ["the stage responds"],
    ok: ["everything that was created is removed (0 removed)"],
  });
  expect(text).toContain(message);
  expectNoSecrets(text);
});

describe("over TLS", () => {
  const trusted = getCACertificates("default");
  beforeAll(() => setDefaultCACertificates([...trusted, tls.cert]));
  afterAll(() => setDefaultCACertificates(trusted));

  test.each([true, false])("responses with Strict-Transport-Security pass, others fail (%s)", async (isSent) => {
    const response = ({ headers }: ProxiedResponse) => {
      if (isSent) headers["strict-transport-security"] = "max-age=63072000";
      else delete headers["strict-transport-security"];
    };
    const { url } = await openProxy(service.baseUrl, { response }, tls);
    const { FAIL } = await check({ baseUrl: url });
    expect(FAIL).toEqual(isSent ? [] : [STRICT_TRANSPORT]);
  });
});

describe("the command line", () => {
  const url = "https://api.example.com";
  const token = "eyJhbGciOiJIUzI1NiJ9.e30.c2ln";

  const read = (args: string[], env: Record<string, string>) =>
    readSmokeOptions(readArguments(smokeProgram, args).values, env);

  test.each<[string[], Record<string, string>, object]>([
    [["--url", `${url}/prod/`], { SMOKE_TOKEN: token }, { baseUrl: `${url}/prod`, token }],
    [["--url", url], { SMOKE_TOKEN: `${token}\n` }, { baseUrl: url, token }],
    [["--url", url, "--receiver", `${url}/hook`], { SMOKE_TOKEN: token }, { receiver: { url: `${url}/hook` } }],
    [["--url", "http://127.0.0.1:3000", "--listen"], { SMOKE_TOKEN: token }, { receiver: "listen" }],
    [["--url", "http://localhost:3000"], { SMOKE_TOKEN: token }, { baseUrl: "http://localhost:3000" }],
    [["--url", url, "--stage", "dev"], { SMOKE_TOKEN: token }, { stage: "dev" }],
  ])("parses %j with the environment %j", (args, env, expected) => {
    expect(read(args, env)).toMatchObject(expected);
  });

  test.each<[string[], string, string?]>([
    [[], "--url is missing"],
    [["--url", url], "SMOKE_TOKEN is missing", ""],
    [["--url", "api.example.com"], "--url must be an absolute https URL"],
    [["--url", "http://api.example.com"], "--url must start with https://"],
    [["--url", "http://localhost.example.com"], "--url must start with https://"],
    [["--url", "http://my-localhost"], "--url must start with https://"],
    [["--url", "http://127.0.0.1.example.com"], "--url must start with https://"],
    [["--url", "https://me:pw@api.example.com"], "--url must be a base URL without user name"],
    [["--url", `${url}?x=1`], "--url must be a base URL without user name"],
    [["--url", url], "SMOKE_TOKEN must be a JWT", `svc_${"0".repeat(64)}`],
    [["--url", url, "--receiver", "http://hooks.example.com"], "--receiver must be an absolute https URL"],
    [["--url", url, "--receiver", "http://127.0.0.1:4000"], "--receiver must be an absolute https URL"],
    // As of a workflow without the address of a receiver.
    [["--url", url, "--receiver", ""], "--receiver must be an absolute https URL"],
    [["--url", url, "--listen"], "--listen starts a receiver on this machine"],
    [["--url", "http://127.0.0.1:1", "--listen", "--receiver", url], "--listen or --receiver, not both"],
    [["--url", url, "--stage", "a b"], "--stage must be the name of a stage"],
    [["--url", url, "--tokn", token], "Unknown option '--tokn'"],
    [["--url"], "'--url <value>' argument missing"],
    [["--url", url, token], "Unexpected argument"],
  ])("rejects %j in one sentence that does not repeat the token", (args, message, SMOKE_TOKEN = token) => {
    let thrown: unknown;
    try {
      read(args, { SMOKE_TOKEN });
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(UsageError);
    const text = (thrown as Error).message;
    expect(text).toContain(message);
    expect(text).toMatch(/^[^\n]+\.$/);
    expect(text).not.toContain(token);
  });
});

describe("the command", () => {
  test("exits with 0 when every check passes", async () => {
    const env = { SMOKE_TOKEN: user.token };
    const { code, stdout } = await runCommand("smoke", ["--listen", "--url", service.baseUrl], env);
    expect(code).toBe(0);
    expect(stdout).toContain("both signatures verified");
    expect(stdout).not.toContain(user.token);
  });

  test("exits with 1 when a check fails, and with 2 on a usage error", async () => {
    const SMOKE_TOKEN = user.token;
    const { code, stdout, stderr } = await commandHere("smoke", ["--url", await unusedUrl()], { SMOKE_TOKEN });
    expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
    expect(stdout).toContain("Smoke test failed: 1 ok, 1 failed");
    const wrong = await commandHere("smoke", ["--url", service.baseUrl, user.token], { SMOKE_TOKEN });
    expect({ code: wrong.code, stdout: wrong.stdout }).toEqual({ code: 2, stdout: "" });
    expect(wrong.stderr).toMatch(
      /^Unexpected argument: every value needs an option\.\nUsage: npm run --silent smoke -- --url/,
    );
    expect(wrong.stderr).not.toContain(user.token);
  });

  test("has every option on its help page", () => {
    const page = helpPage(smokeProgram);
    expect(page).toMatch(/^Usage: npm run --silent smoke -- --url/m);
    const options = [...page.matchAll(/^ {2}(?:-\w, )?(--[\w-]+)/gm)].map(([, name]) => name);
    expect(options).toEqual(["--url", "--receiver", "--listen", "--stage", "--help"]);
  });

  /** Starts the program as a process. */
  function startSmoke(url: string) {
    const child = startProgram(["bin/run.cjs", "smoke", "--url", url], { SMOKE_TOKEN: user.token });
    const stdout = text(child.stdout);
    return { child, ended: once(child, "close"), stdout };
  }

  test("exits with 130 on Ctrl-C and removes everything it created", async () => {
    const { promise: webhookIsCreated, resolve: sawWebhook } = Promise.withResolvers<void>();
    const proxy = await openProxy(service.baseUrl, {
      response(_, request) {
        if (!createsWebhook(request)) return;
        sawWebhook();
        // Time for the signal to arrive.
        return sleep(300);
      },
    });
    const { child, ended, stdout } = startSmoke(proxy.url);
    await webhookIsCreated;
    child.kill("SIGINT");
    // npm receives the terminal's signal too, and forwards it.
    child.kill("SIGINT");
    expect((await ended)[0]).toBe(130);
    await proxy.close();
    expect(await stdout).toContain("Interrupted: the remaining checks were not run.");
    expect(await stdout).toContain("everything that was created is removed");
    await expectNothingRemains();
  });
});

import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { stripVTControlCharacters } from "node:util";
import { helpPage, readArguments, UsageError } from "../../bin/local/command.ts";
import { credentials, everyResponse, reach } from "../../bin/smoke/auth-checks.ts";
import { readSmokeOptions, type SmokeOptions, smokeProgram } from "../../bin/smoke/options.ts";
import { checkGroups, type Limits, operatorGroups, smoke } from "../../bin/smoke/run.ts";
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

/** Generous, for slow machines: tests of a timeout set their own limits. */
const limits: Limits = { requestMs: 10_000, deliveryMs: 20_000, totalMs: 90_000 };
const never = new AbortController().signal;

const service = useService({ deliver: true });
let user: ReturnType<TestService["user"]>;
let projectId: string;
beforeEach(async () => {
  user = service.user();
  projectId = await service.project(user.userId);
});

interface Report {
  hasPassed: boolean;
  text: string;
  /** Claims by verdict. */
  ok: string[];
  warn: string[];
  skip: string[];
  FAIL: string[];
}

async function check(
  options: Partial<SmokeOptions> & { baseUrl: string },
  more: Partial<Limits> = {},
  stop = never,
  groups?: typeof checkGroups,
) {
  const lines: string[] = [];
  const print = (line: string) => void lines.push(stripVTControlCharacters(line));
  const hasPassed = await smoke({ token: user.token, ...options }, print, stop, { ...limits, ...more }, groups);
  const text = lines.join("\n");
  const claims = (verdict: string) =>
    lines.flatMap((line) => new RegExp(`^ {2}${verdict} +(?:\\d+ ms)? {2}(.*)$`).exec(line)?.[1]?.trim() ?? []);
  const report: Report = {
    hasPassed,
    text,
    ok: claims("ok"),
    warn: claims("warn"),
    skip: claims("skip"),
    FAIL: claims("FAIL"),
  };
  return report;
}

/** Checks the service through a proxy that tampers with it. */
async function checkThroughProxy(
  tampering: Tampering,
  options: Partial<SmokeOptions> = {},
  more: Partial<Limits> = {},
  stop = never,
) {
  const proxy = await openProxy(service.baseUrl, tampering);
  return { ...(await check({ baseUrl: proxy.url, ...options }, more, stop)), requests: proxy.requests };
}

const keys = async () => (await user.api.get("/v1/api-keys")).body.data;
const webhooks = async () => (await user.api.get(`/v1/projects/${projectId}/webhooks`)).body.data;
async function expectNothingRemains(): Promise<void> {
  expect({ keys: await keys(), webhooks: await webhooks() }).toEqual({ keys: [], webhooks: [] });
}

describe("a healthy stage", () => {
  test("passes every check, and nothing remains on it", async () => {
    await service.project(user.userId, { role: "viewer" });
    const { hasPassed, ok, skip, FAIL, warn, text } = await check({ baseUrl: service.baseUrl, receiver: "listen" });
    expect({ hasPassed, FAIL, warn }).toEqual({ hasPassed: true, FAIL: [], warn: [] });
    expect(skip).toEqual([expect.stringContaining("Strict-Transport-Security")]);
    expect(ok).toEqual(
      expect.arrayContaining([
        "the next request with the deleted key is rejected",
        "a viewer can read but not change",
        expect.stringMatching(/^a test delivery arrives \(status 200 after \d+ ms, both signatures verified\)$/),
        "the secret is rotated (a delivery is signed with both secrets)",
        "everything that was created is removed",
      ]),
    );
    expect(text).toMatch(/\n\nSmoke test passed: 3\d ok, 1 skipped, in \d+\.\d s\.\n$/);
    await expectNothingRemains();
  });

  test("skips the webhook checks with a reason when the user is not an admin of a project", async () => {
    user = service.user();
    const none = await check({ baseUrl: service.baseUrl });
    expect(none.hasPassed).toBe(true);
    expect(none.skip).toContain("a webhook is created: not checked, the user has no project");
    expect(none.skip).toContain("the webhook is deleted, and then returns 404: not checked, no webhook was created");
    expect(none.text).toMatch(/\nSmoke test passed: \d+ ok, 9 skipped, in /);
    projectId = await service.project(user.userId, { role: "viewer" });
    const viewer = await check({ baseUrl: service.baseUrl });
    expect(viewer.skip).toContain("a webhook is created: not checked, the user is not an admin of any project");
    const other = await check({ baseUrl: service.baseUrl, projectId: randomUUID() });
    expect(other.skip).toContain("a webhook is created: not checked, the user is not a member of --project");
  });

  test("fails with --all when the user is not an admin of a project, and reports the cause once", async () => {
    user = service.user();
    const none = await check({ baseUrl: service.baseUrl, receiver: "listen", requiresAll: true });
    expect(none.hasPassed).toBe(false);
    expect(none.FAIL).toEqual(["a receiver with a private address is rejected", "a webhook is created"]);
    expect(none.text).toContain("not checked, but --all requires it: the user has no project");
    await service.project(user.userId, { role: "viewer" });
    const viewer = await check({ baseUrl: service.baseUrl, receiver: "listen", requiresAll: true });
    expect(viewer.FAIL).toEqual(none.FAIL);
    expect(viewer.text).toContain("requires it: the user is not an admin of any project");
  });

  test("fails with --all when there is no receiver", async () => {
    const { hasPassed, FAIL, text } = await check({ baseUrl: service.baseUrl, requiresAll: true });
    expect({ hasPassed, FAIL }).toEqual({ hasPassed: false, FAIL: ["a test delivery arrives"] });
    expect(text).toContain("requires it: pass --receiver <https url>");
    await expectNothingRemains();
  });

  test("uses the project given with --project, and without a receiver sends no test delivery and names the option", async () => {
    const second = await service.project(user.userId);
    const { hasPassed, skip, requests } = await checkThroughProxy({}, { projectId: second });
    expect(hasPassed).toBe(true);
    expect(requests.some(({ path }) => path.includes(second))).toBe(true);
    expect(requests.some(({ path }) => path.includes(projectId))).toBe(false);
    expect(skip).toContainEqual(expect.stringMatching(/^a test delivery arrives: .*--receiver/));
    expect(requests.some(({ path }) => path.endsWith("/test"))).toBe(false);
  });

  test("sends one test delivery to --receiver, and does not print its URL", async () => {
    const receiver = await startReceiver();
    const url = `${receiver.url}/hidden-path?token=hidden`;
    try {
      const { hasPassed, ok, text } = await check({ baseUrl: service.baseUrl, receiver: { url } });
      expect(hasPassed).toBe(true);
      expect(ok).toContainEqual(expect.stringMatching(/^a test delivery arrives \(status 200/));
      expect(receiver.received.map(({ path }) => path)).toEqual(["/hook/hidden-path?token=hidden"]);
      expect(text).not.toContain("hidden");
    } finally {
      await receiver.close();
    }
  });

  test("does not print the URL of --receiver, even when the stage returns it", async () => {
    const url = "http://127.0.0.1:9/hidden-path?token=hidden";
    const response = (received: ProxiedResponse, request: ProxiedRequest) => {
      if (createsWebhook(request)) Object.assign(received, { status: 500, body: request.body });
    };
    const { FAIL, text } = await checkThroughProxy({ response }, { receiver: { url } });
    expect(FAIL).toContain("a webhook is created");
    expect(text).toContain('got 500 {"url":"…#smoke-');
    expect(text).not.toContain("hidden");
  });

  test("passes when some requests are throttled, by retrying after Retry-After", async () => {
    let count = 0;
    const body = '{"error":{"code":"rate_limited","message":"Wait.","request_id":"r"}}';
    const headers = {
      "retry-after": "1",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "x-request-id": "r",
    };
    /** Milliseconds between a 429 and the request after it. */
    const waits: number[] = [];
    let throttledAt: number | undefined;
    const respond = () => {
      if (throttledAt !== undefined) waits.push(performance.now() - throttledAt);
      count += 1;
      throttledAt = count % 7 === 0 ? performance.now() : undefined;
      return throttledAt === undefined ? undefined : { status: 429, headers, body };
    };
    const tampering: Tampering = { respond };
    const { hasPassed, FAIL } = await checkThroughProxy(tampering);
    expect({ hasPassed, FAIL }).toEqual({ hasPassed: true, FAIL: [] });
    expect(count).toBeGreaterThan(30);
    expect(waits.length).toBeGreaterThan(3);
    // The cleanup sends requests in parallel; the other waits are those of Retry-After.
    expect(Math.min(...waits.slice(0, 3))).toBeGreaterThan(990);
  });

  test("gets a warning when its clock differs by two minutes", async () => {
    const response = ({ headers }: ProxiedResponse) => {
      headers.date = new Date(Date.now() - 120_000).toUTCString();
    };
    const { hasPassed, warn, text } = await checkThroughProxy({ response });
    expect({ hasPassed, warn }).toEqual({ hasPassed: true, warn: ["its clock agrees with this machine's clock"] });
    expect(text).toMatch(/this machine is (119|12[01]) s ahead/);
  });

  test("loses the resources of killed runs, and no others", async () => {
    for (const name of ["smoke-20200101T000000Z-abcdef", "smoke-tests", "smoke-20200101T000000Z-000000"]) {
      await user.api.post("/v1/api-keys", { name });
    }
    const url = "https://smoke.invalid/";
    for (const fragment of ["#smoke-20200101T000000Z-abcdef", "#smoke-tests", ""]) {
      await user.api.post(`/v1/projects/${projectId}/webhooks`, { url: url + fragment, events: ["deploy.failed"] });
    }
    // Makes the resources whose names end in abcdef more than an hour old.
    const response = (response: ProxiedResponse) => {
      const old = (record: Record<string, string>) =>
        /abcdef$/.test(record.name ?? record.url ?? "")
          ? { ...record, created_at: "2020-01-01T00:00:00.000Z" }
          : record;
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
    expect((await webhooks()).map((webhook: { url: string }) => webhook.url)).toEqual([`${url}#smoke-tests`, url]);
  });
});

/* Stages with faults, each with the checks that must fail because of them, and what each reports. No other check may fail. */

const is = (method: string, path: RegExp) => (request: ProxiedRequest) =>
  request.method === method && path.test(request.path);
const createsKey = is("POST", /^\/v1\/api-keys$/);
const listsKeys = is("GET", /^\/v1\/api-keys$/);
const listsProjects = is("GET", /^\/v1\/projects$/);
const createsWebhook = is("POST", /\/webhooks$/);
const listsWebhooks = is("GET", /\/webhooks$/);
const rotatesSecret = is("POST", /\/rotate-secret$/);
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
const empty = (list: unknown[]) => void list.splice(0);

/** Responds to the first deletion below a path with 204, and deletes nothing. */
function losesDeletionBelow(path: string): NonNullable<Tampering["respond"]> {
  let isFirst = true;
  const headers = { "cache-control": "no-store", "x-content-type-options": "nosniff", "x-request-id": "r" };
  return (request) => {
    if (request.method !== "DELETE" || !request.path.startsWith(path) || !isFirst) return undefined;
    isFirst = false;
    return { status: 204, headers, body: "" };
  };
}

/** Returns the secret of the webhook that a run created. */
function secretOfCreation() {
  let secret = "";
  return (response: ProxiedResponse, request: ProxiedRequest): string => {
    if (createsWebhook(request))
      edit(response, (data) => {
        secret = data.secret;
      });
    return secret;
  };
}

const faultyStages: [
  title: string,
  findings: [claim: string, note: string | RegExp][],
  tampering: () => Tampering,
  more?: Partial<Limits>,
][] = [
  [
    "errors of API Gateway, and bodies that are not checked",
    [
      [
        "an unknown route returns 404",
        'GET /v1/smoke-test/no-such-route: expected 404 not_found, got 403 {"message":"Missing Authentication Token"}',
      ],
      [
        "an unknown route of a project returns 404, with and without Authorization",
        /GET \/v1\/projects\/[\w-]+\/nonsense: expected 404 not_found, got 403 .*"Authorization header requires 'Credential'/,
      ],
      ["an unsupported method returns 405 with the allowed ones", "expected Allow: GET, got no Allow header"],
      [
        "a request without credentials returns 401 with a Bearer challenge",
        'expected WWW-Authenticate: Bearer, got Basic realm="api"',
      ],
      ["a malformed JWT is rejected", 'expected WWW-Authenticate: Bearer, got Basic realm="api"'],
      ["invalid JSON returns 400", "expected 400 invalid_json, got 400 <html> <body>Bad Request</body> </html>"],
      ["a content type other than JSON returns 415", "POST /v1/api-keys: expected 415 unsupported_media_type, got 201"],
      ["invalid input returns 400 and names the field", 'error.details does not list the field "name"'],
      ["a body over 64 KB returns 413", "expected 413 payload_too_large, got 201"],
      [
        "forbids caching and content sniffing",
        /GET \/v1\/projects: the 401 response does not have X-Content-Type-Options: nosniff \(nor do \d+ of \d+ other responses\)/,
      ],
      [
        "has a request id, which errors repeat in the body",
        "does not have the same id in x-request-id and error.request_id",
      ],
    ],
    () => ({
      request(request) {
        request.headers["content-type"] &&= "application/json";
        request.body = request.body.replace(/,"padding":"x+"/, "");
      },
      response(response, { path, headers, body }) {
        const forbidden = (message: string) =>
          Object.assign(response, { status: 403, body: JSON.stringify({ message }) });
        if (path.includes("no-such")) forbidden("Missing Authentication Token");
        if (path.endsWith("/nonsense") && headers.authorization !== undefined) {
          forbidden("Authorization header requires 'Credential' parameter.");
        }
        delete response.headers.allow;
        if (response.status === 401) {
          response.headers["www-authenticate"] = 'Basic realm="api"';
          delete response.headers["x-content-type-options"];
        }
        if (/"smoke-[\w-]+$/.test(body)) response.body = "<html>\n<body>Bad Request</body>\n</html>";
        response.body = response.body.replace(/,"details":\[.*\]/, "");
      },
    }),
  ],
  [
    "wrong codes, lists that lack or show too much, and a viewer who can delete",
    [
      [
        "an unknown route of a project returns 404, with and without Authorization",
        /nonsense: expected 404 not_found, got 401/,
      ],
      [
        "a partner key (svcp_) is treated as a JWT and rejected",
        /expected 401 invalid_token, got 401 .*"code":"unknown_key"/,
      ],
      ["an unknown API key is rejected", "expected 401 invalid_api_key, got 401"],
      ["the list shows the new key, but only its prefix", "the list does not contain the key that was just created"],
      [
        "the key is accepted immediately, as its owner",
        "GET /v1/projects: the key sees other projects than its owner does",
      ],
      ["the use of the key is recorded", "the list does not contain the key that was just created"],
      ["the key is deleted", /DELETE \/v1\/api-keys\/[0-9a-f-]{36}: expected 204, got 200 \{\}/],
      ["the next request with the deleted key is rejected", "expected 401 invalid_api_key, got 401"],
      ["a project of other users returns 404", "expected 404 not_found, got 200"],
      ["a viewer can read but not change", "expected 403 forbidden, got 204 with an empty body"],
      [
        "the list shows the new webhook without its secret",
        "the list contains a secret, which only creation and rotation may show",
      ],
      ["the webhook is disabled", 'enabled is not false, or disabled_reason is not "manual"'],
      ["a test delivery arrives", "the delivery arrived, but its X-Service-Signature does not match the secret"],
      ["the secret is rotated", /its (X-Service-Signature-Previous|webhook-signature) does not match the secret/],
      [
        "forbids caching and content sniffing",
        /GET \/v1\/projects: the 200 response does not have Cache-Control: no-store \(nor do \d+ of \d+ other responses\)/,
      ],
      [
        "has a request id, which errors repeat in the body",
        "does not have the same id in x-request-id and error.request_id",
      ],
    ],
    () => {
      const secretOf = secretOfCreation();
      return {
        request(request) {
          if (tokenOf(request).startsWith("svcp_")) request.headers.authorization = `Bearer svc_${"0".repeat(64)}`;
        },
        response(response, request) {
          const { path, method, headers } = request;
          response.body = response.body.replace("invalid_api_key", "unknown_key");
          if (path.endsWith("/nonsense") && headers.authorization === undefined) {
            response.status = 401;
            response.body = response.body.replace("not_found", "unauthorized");
          }
          if (listsKeys(request)) edit(response, empty);
          if (listsProjects(request) && tokenOf(request).startsWith("svc_")) edit(response, empty);
          if (response.status === 204 && path.startsWith("/v1/api-keys/"))
            Object.assign(response, { status: 200, body: "{}" });
          if (listsWebhooks(request) && response.status === 404)
            Object.assign(response, { status: 200, body: '{"data":[]}' });
          if (method === "DELETE" && response.status === 403) Object.assign(response, { status: 204, body: "" });
          if (createsWebhook(request))
            edit(response, (data) => {
              data.secret = `whsec_${randomBytes(32).toString("hex")}`;
            });
          const secret = secretOf(response, request);
          if (listsWebhooks(request))
            edit(response, (data) => {
              for (const each of data) each.secret = secret;
            });
          if (changesWebhook(request))
            edit(response, (data) => {
              data.enabled = true;
            });
          if (response.status === 200) delete response.headers["cache-control"];
          if (response.status === 404) response.headers["x-request-id"] = "another";
        },
      };
    },
  ],
  [
    "a malformed key, and webhooks that cannot be created",
    [
      ["a key is created with the JWT", "POST /v1/api-keys: data.key is missing or does not have the documented form"],
      ["a receiver with a private address is rejected", "expected 400 validation_error, got 503"],
      ["a webhook is created", "expected 201, got 503"],
      [
        "has a request id, which errors repeat in the body",
        "POST /v1/api-keys: the 400 response does not have x-request-id (nor",
      ],
    ],
    () => ({
      response(response, request) {
        if (createsWebhook(request)) response.status = 503;
        if (!createsKey(request)) return;
        delete response.headers["x-request-id"];
        edit(response, (data) => {
          data.key = "svc_not-hexadecimal-at-all";
        });
      },
    }),
  ],
  [
    "an authorizer that caches its results, a list that shows keys, and deliveries that are never sent",
    [
      [
        "the list shows the new key, but only its prefix",
        "the list contains the key itself, which only creation may show",
      ],
      ["the use of the key is recorded", "the list contains the key itself, which only creation may show"],
      ["the next request with the deleted key is rejected", "expected 401 invalid_api_key, got 200"],
      ["a receiver with a private address is rejected", "expected 400 validation_error, got 201"],
      ["the webhook is disabled", 'enabled is not false, or disabled_reason is not "manual"'],
      [
        "a test delivery arrives",
        "the test delivery is still pending after 1.5 s: the sender does not process its queue",
      ],
      ["the secret is rotated", "the new secret equals the old one"],
      ["the webhook is deleted, and then returns 404", "expected 404 not_found, got 200"],
    ],
    () => {
      const secretOf = secretOfCreation();
      let key = "";
      const accepted = new Map<string, ProxiedResponse>();
      const respondToDeletion = losesDeletionBelow(`/v1/projects/${projectId}/webhooks/`);
      return {
        request(request) {
          request.body = request.body.replace("169.254.169.254", "hooks.example.com");
        },
        respond: (request) =>
          listsProjects(request) && accepted.has(tokenOf(request))
            ? structuredClone(accepted.get(tokenOf(request)))
            : respondToDeletion(request),
        response(response, request) {
          if (listsProjects(request) && response.status === 200)
            accepted.set(tokenOf(request), structuredClone(response));
          if (createsKey(request))
            edit(response, (data) => {
              key = data.key;
            });
          if (listsKeys(request))
            edit(response, (data) => {
              for (const each of data) each.key = key;
            });
          if (changesWebhook(request))
            edit(response, (data) => {
              data.disabled_reason = "failing";
            });
          response.body = response.body.replace('"status":"succeeded"', '"status":"pending"');
          const secret = secretOf(response, request);
          if (rotatesSecret(request))
            edit(response, (data) => {
              data.secret = secret;
            });
        },
      };
    },
    { deliveryMs: 1_500 },
  ],
  [
    "a key that can do too much, a deletion that does nothing, and a rotation without the signatures of the old secret",
    [
      ["the key cannot create keys", "expected 403 session_required, got 201"],
      ["the use of the key is recorded", "last_used_at is null although the key was used"],
      ["the next request with the deleted key is rejected", "expected 401 invalid_api_key, got 200"],
      [
        "the secret is rotated",
        /the delivery arrived, but its (X-Service-Signature-Previous|webhook-signature) does not match the secret/,
      ],
    ],
    () => ({
      request(request) {
        if (rotatesSecret(request)) request.body = '{"overlap_seconds":0}';
        if (createsKey(request) && tokenOf(request).startsWith("svc_"))
          request.headers.authorization = `Bearer ${user.token}`;
      },
      respond: losesDeletionBelow("/v1/api-keys/"),
      response(response) {
        response.body = response.body.replaceAll(/"last_used_at":"[^"]+"/g, '"last_used_at":null');
      },
    }),
  ],
];

const STRICT_TRANSPORT = "requires TLS (Strict-Transport-Security)";
/** Claims whose failure other tests below cause. */
const testedBelow = [
  "the stage responds",
  "its clock agrees with this machine's clock",
  "the JWT is accepted",
  STRICT_TRANSPORT,
];

test("every check has a fault that makes it fail", () => {
  // The faults of the others are in smoke/operator-checks.test.ts.
  const ofUsers = checkGroups.filter((group) => !operatorGroups.includes(group));
  const claims = ofUsers.flatMap(({ checks }) => checks.map(({ claim }) => claim));
  const tested = new Set([...faultyStages.flatMap(([, findings]) => findings.map(([claim]) => claim)), ...testedBelow]);
  expect([...tested].sort()).toEqual(claims.sort());
});

describe("a stage with faults", () => {
  test.each(faultyStages)(
    "%s: fails exactly the checks concerned, says why, and removes everything",
    async (_, findings, tampering, more = {}) => {
      await service.project(user.userId, { role: "viewer" });
      const { hasPassed, text } = await checkThroughProxy(tampering(), { receiver: "listen" }, more);
      expect(hasPassed).toBe(false);
      const failed = /^ {2}FAIL +\d+ ms {2}(.*)\n {18}(.*)\n {18}see docs\/runbook\.md: [\w-].*$/gm;
      expect([...text.matchAll(failed)].map(([, claim, note]) => [claim, note])).toEqual(
        findings.map(([claim, note]) => [
          claim,
          typeof note === "string" ? expect.stringContaining(note) : expect.stringMatching(note),
        ]),
      );
      expect(text).toMatch(new RegExp(`\nSmoke test failed: \\d+ ok, ${findings.length} failed, \\d+ skipped, in `));
      await expectNothingRemains();
      expectNoSecrets(text);
    },
  );

  test("a rejected JWT: skips the checks that need it and sends no POST", async () => {
    const { FAIL, skip, requests, text } = await checkThroughProxy(
      {},
      { token: "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1In0.c2lnbmF0dXJl" },
    );
    expect(FAIL).toEqual(["the JWT is accepted"]);
    expect(text).toContain("expected 200, got 401");
    expect(skip).toContain("a key is created with the JWT: not checked, the JWT was not accepted");
    expect(requests.filter(({ method }) => method === "POST")).toEqual([]);
    expect(text).not.toContain("eyJhbGci");
  });

  test("a receiver that refuses connections: prints the attempt's hint", async () => {
    const { FAIL, text } = await check({ baseUrl: service.baseUrl, receiver: { url: "http://127.0.0.1:9/" } });
    expect(FAIL).toEqual(["a test delivery arrives"]);
    expect(text).toContain("the test delivery failed: connection_refused. Nothing accepts connections");
  });

  test("a lost response to a creation: the resource is found by its mark and removed", async () => {
    const response = (_: ProxiedResponse, request: ProxiedRequest) =>
      createsWebhook(request) || createsKey(request) ? ("cut" as const) : undefined;
    const { FAIL, text } = await checkThroughProxy({ response });
    expect(FAIL).toEqual(expect.arrayContaining(["a key is created with the JWT", "a webhook is created"]));
    expect(text).toContain("POST /v1/api-keys failed: the connection closed before the response was complete");
    expect(text).toContain("everything that was created is removed (2 removed)");
    await expectNothingRemains();
  });

  test("failing deletions and lists: each remaining resource is named with the request that removes it", async () => {
    const body = '{"error":{"code":"internal_error","message":"x","request_id":"r"}}';
    const headers = { "x-request-id": "r", "cache-control": "no-store", "x-content-type-options": "nosniff" };
    const isFailing = ({ method, path }: ProxiedRequest) =>
      method === "DELETE" || (method === "GET" && /\/(api-keys|webhooks)$/.test(path));
    const respond = (request: ProxiedRequest) => (isFailing(request) ? { status: 500, headers, body } : undefined);
    const { hasPassed, FAIL, text } = await checkThroughProxy({ respond });
    expect({ hasPassed, last: FAIL.at(-1) }).toEqual({
      hasPassed: false,
      last: "everything that was created is removed",
    });
    expect(text).toMatch(/any webhook marked smoke-\S+ \(GET /);
    const [key] = await keys();
    const [webhook] = await webhooks();
    expect(text).toContain(`API key: DELETE /v1/api-keys/${key.id}`);
    expect(text).toContain(`webhook: DELETE /v1/projects/${projectId}/webhooks/${webhook.id}`);
  });

  test("a stage that always returns 429: fails within the time limit", async () => {
    const body = '{"error":{"code":"rate_limited","message":"Wait.","request_id":"r"}}';
    const respond = () => ({ status: 429, headers: { "retry-after": "1" }, body });
    const { hasPassed, text } = await checkThroughProxy({ respond }, {}, { requestMs: 2_000, totalMs: 10_000 });
    expect(hasPassed).toBe(false);
    expect(text).toContain("expected 404 not_found, got 429");
    expect(text).toContain("Time limit of 6 s reached: the remaining checks were not run.");
  });

  test("a slow stage: ends within the time limit and removes everything", async () => {
    const request = () => sleep(150);
    const { hasPassed, text } = await checkThroughProxy({ request }, {}, { requestMs: 4_000, totalMs: 10_500 });
    expect(hasPassed).toBe(false);
    expect(text).toContain("Time limit of 2.5 s reached: the remaining checks were not run.");
    expect(text).toContain("Smoke test not finished:");
    await expectNothingRemains();
  });

  test("an interrupt during the creation of a key: the key is removed", async () => {
    const interrupt = new AbortController();
    const response = (_: ProxiedResponse, { body }: ProxiedRequest) => {
      if (/"smoke-[\w-]+"}$/.test(body)) interrupt.abort();
    };
    const request = (request: ProxiedRequest) => {
      request.headers["content-type"] &&= "application/json";
    };
    const { hasPassed, text } = await checkThroughProxy({ response, request }, {}, {}, interrupt.signal);
    expect(hasPassed).toBe(false);
    expect(text).toContain("Interrupted: the remaining checks were not run.");
    expect(text).toContain("everything that was created is removed (1 removed)");
    await expectNothingRemains();
  });
});

/* Where no stage responds, one check fails with the cause and no other check runs. */

async function expectUnreachable(baseUrl: string, message: string): Promise<void> {
  const { hasPassed, FAIL, ok, text } = await check({ baseUrl }, { requestMs: 500 });
  expect({ hasPassed, FAIL, ok }).toEqual({
    hasPassed: false,
    FAIL: ["the stage responds"],
    ok: ["everything that was created is removed"],
  });
  expect(text).toContain(message);
  expectNoSecrets(text);
}

const unusedUrl = async () => `http://127.0.0.1:${await freePort()}`;

test("names only sections that docs/runbook.md has", () => {
  const runbook = readFileSync(join(root, "docs/runbook.md"), "utf8");
  const named = checkGroups.flatMap(({ sections, checks }) => [sections, ...checks.map((each) => each.sections ?? [])]);
  for (const section of new Set(named.flat())) expect(runbook).toMatch(new RegExp(`^#+ ${section}$`, "m"));
});

describe("an address without a stage: fails with the cause", () => {
  test("a port where nothing listens", async () =>
    expectUnreachable(await unusedUrl(), "nothing accepts connections at that host and port (ECONNREFUSED)"));

  test("a name that does not resolve", () =>
    expectUnreachable("https://no-such-host.invalid", "the host name does not resolve"));

  test("a server that never responds", async () => {
    const server = http.createServer(() => {});
    const url = await listening(server);
    await expectUnreachable(url, "GET /v1/projects got no complete response within 0.5 s");
  });

  test("a server that never ends its response", async () => {
    const server = http.createServer((_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const drip = setInterval(() => response.write(" "), 50);
      response.on("close", () => clearInterval(drip));
    });
    const url = await listening(server);
    await expectUnreachable(url, "got no complete response within 0.5 s");
  });

  test("a server whose response exceeds 1 MB", async () => {
    const server = http.createServer((_, response) => {
      const chunk = "x".repeat(64 * 1024);
      const stream = setInterval(() => response.write(chunk), 1);
      response.on("close", () => clearInterval(stream));
    });
    const url = await listening(server);
    await expectUnreachable(url, "GET /v1/projects failed: the response exceeds 1048576 bytes");
  });

  test("a server that does not speak HTTP", async () => {
    const server = net.createServer((socket) => {
      socket.on("error", () => {});
      socket.end("220 mail.example.com ESMTP\r\n");
    });
    const url = await listening(server);
    await expectUnreachable(url, "failed: the response is not HTTP");
  });

  test("a certificate that is not valid", async () => {
    const proxy = await openProxy(service.baseUrl, {}, tls);
    await expectUnreachable(proxy.url, "the TLS certificate is not valid");
  });

  test("https to a port that speaks plain http", () =>
    expectUnreachable(service.baseUrl.replace("http:", "https:"), "the server does not speak TLS"));

  test("a server that always returns 500: fails the checks with the start of its response, and creates nothing", async () => {
    const respond = () => ({ status: 500, headers: {}, body: "x".repeat(10_000) });
    const { hasPassed, FAIL, text, requests } = await checkThroughProxy({ respond });
    expect(hasPassed).toBe(false);
    expect(FAIL).toEqual(expect.arrayContaining(["an unknown route returns 404", "the JWT is accepted"]));
    expect(text).toMatch(/got 500 x{160}$/m);
    expect(requests.filter(({ method }) => method === "POST")).toEqual([]);
  });

  test("a server that redirects every request: the token is not sent to the target", async () => {
    const elsewhere = await openProxy(service.baseUrl);
    const respond = ({ path }: ProxiedRequest) => ({
      status: 301,
      headers: { location: elsewhere.url + path },
      body: "",
    });
    const { FAIL, text } = await checkThroughProxy({ respond });
    expect(FAIL).toContain("the JWT is accepted");
    expect(text).toContain(`expected 200, got 301, a redirect to ${elsewhere.url}/v1/projects`);
    expect(elsewhere.requests).toEqual([]);
  });
});

describe("over TLS", () => {
  const trusted = getCACertificates("default");
  beforeAll(() => setDefaultCACertificates([...trusted, tls.cert]));
  afterAll(() => setDefaultCACertificates(trusted));

  test("requires Strict-Transport-Security on every response", async () => {
    const overTls = async (tampering: Tampering) =>
      check({ baseUrl: (await openProxy(service.baseUrl, tampering, tls)).url }, {}, never, [
        reach,
        credentials,
        everyResponse,
      ]);
    const insist = ({ headers }: ProxiedResponse) => {
      headers["strict-transport-security"] = "max-age=63072000";
    };
    const everywhere = await overTls({ response: insist });
    expect(everywhere.ok).toContain("the stage responds (over TLS, certificate verified)");
    expect(everywhere).toMatchObject({ hasPassed: true, ok: expect.arrayContaining([STRICT_TRANSPORT]) });
    const partly = await overTls({
      response(response) {
        insist(response);
        if (response.status === 401) delete response.headers["strict-transport-security"];
      },
    });
    expect(partly).toMatchObject({ hasPassed: false, FAIL: [STRICT_TRANSPORT] });
    expect(partly.text).toContain("GET /v1/projects: the 401 response does not have Strict-Transport-Security");
    const nowhere = await overTls({ response: ({ headers }) => void delete headers["strict-transport-security"] });
    expect(nowhere).toMatchObject({ hasPassed: false, FAIL: [STRICT_TRANSPORT] });
    expect(nowhere.text).toMatch(
      /the 401 response does not have Strict-Transport-Security \(nor do (\d+) of \1 other responses\)/,
    );
  });
});

function expectNoSecrets(text: string): void {
  expect(text).not.toContain(user.token);
  expect(text).not.toMatch(/svc_[0-9a-f]{16}|whsec_\w{8}/);
}

test("prints no credential, even when the stage returns it", async () => {
  const echo = (response: ProxiedResponse, request: ProxiedRequest) => {
    if (request.headers.authorization === undefined) return;
    Object.assign(response, {
      status: 500,
      body: JSON.stringify({ seen: request.headers.authorization, original: response.body }),
    });
  };
  let hasPassedOnce = false;
  const { text } = await checkThroughProxy({
    response(response, request) {
      // Lets one request through, so that the checks that create keys and secrets run.
      if (listsProjects(request) && response.status === 200 && !hasPassedOnce) hasPassedOnce = true;
      else echo(response, request);
    },
  });
  expect(text).toContain('{"seen":"Bearer …"');
  expectNoSecrets(text);
});

describe("the command line", () => {
  const url = "https://api.example.com";
  const token = "eyJhbGciOiJIUzI1NiJ9.e30.c2ln";

  const read = (args: string[], env: Record<string, string>) =>
    readSmokeOptions(readArguments(smokeProgram, args).values, env);

  test.each<[string[], Record<string, string>, object]>([
    [["--url", `${url}/prod/`], { SMOKE_TOKEN: token }, { baseUrl: `${url}/prod`, token }],
    [[], { SMOKE_URL: url, SMOKE_TOKEN: `${token}\n` }, { baseUrl: url, token }],
    [
      ["--token", token, "--url", url],
      { SMOKE_URL: "https://other.example.com", SMOKE_TOKEN: "other" },
      { baseUrl: url, token },
    ],
    [["--receiver", `${url}/hook#x`], { SMOKE_URL: url, SMOKE_TOKEN: token }, { receiver: { url: `${url}/hook` } }],
    [["--listen"], { SMOKE_URL: "http://127.0.0.1:3000", SMOKE_TOKEN: token }, { receiver: "listen" }],
    [["--all"], { SMOKE_URL: url, SMOKE_TOKEN: token }, { baseUrl: url, requiresAll: true }],
    [["--listen"], { SMOKE_URL: "http://localhost:3000", SMOKE_TOKEN: token }, { baseUrl: "http://localhost:3000" }],
    [
      ["--operator", "--stage", "dev"],
      { SMOKE_URL: url, SMOKE_TOKEN: token },
      { operator: { stage: "dev", closesEndpoint: false } },
    ],
    [
      ["--operator", "--stage", "dev", "--close-endpoint"],
      { SMOKE_URL: url, SMOKE_TOKEN: token },
      { operator: { stage: "dev", closesEndpoint: true } },
    ],
  ])("parses %j with the environment %j", (args, env, expected) => {
    expect(read(args, env)).toMatchObject(expected);
  });

  test.each<[string[], string]>([
    [[], "--url (or SMOKE_URL) is missing"],
    [["--url", url], "SMOKE_TOKEN (or --token) is missing"],
    [["--url", "api.example.com", "--token", token], "--url must be an absolute https URL"],
    [["--url", "http://api.example.com", "--token", token], "--url must start with https://"],
    [["--url", "http://localhost.example.com", "--token", token], "--url must start with https://"],
    [["--url", "http://my-localhost", "--token", token], "--url must start with https://"],
    [["--url", "http://127.0.0.1.example.com", "--token", token], "--url must start with https://"],
    [["--url", "https://me:pw@api.example.com", "--token", token], "--url must be a base URL without user name"],
    [["--url", `${url}?x=1`, "--token", token], "--url must be a base URL without user name"],
    [["--url", url, "--token", `svc_${"0".repeat(64)}`], "SMOKE_TOKEN must be a JWT"],
    [["--url", url, "--token", "two words"], "SMOKE_TOKEN is not a JWT"],
    [["--url", url, "--token", token, "--project", "7"], "--project must be the UUID"],
    [
      ["--url", url, "--token", token, "--receiver", "http://hooks.example.com"],
      "--receiver must be an absolute https URL",
    ],
    [
      ["--url", url, "--token", token, "--receiver", "http://127.0.0.1:4000"],
      "--receiver must be an absolute https URL",
    ],
    [["--url", url, "--token", token, "--listen"], "--listen starts a receiver on this machine"],
    [
      ["--url", "http://127.0.0.1:1", "--token", token, "--listen", "--receiver", url],
      "--listen or --receiver, not both",
    ],
    [["--url", url, "--token", token, "--operator"], "--operator needs --stage"],
    [["--url", url, "--token", token, "--operator", "--stage", "a b"], "--operator needs --stage"],
    [["--url", url, "--token", token, "--close-endpoint"], "work only with --operator"],
    [["--url", url, "--token", token, "--stage", "dev"], "work only with --operator"],
    [["--url", url, "--tokn", token], "Unknown option '--tokn'"],
    [["--url"], "'--url <value>' argument missing"],
    [["--url", url, token], "Unexpected argument"],
  ])("rejects %j in one sentence that does not repeat the token", (args, message) => {
    let thrown: unknown;
    try {
      read(args, {});
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
  test("exits with 0, reports every check, and accepts with --all that the excused ones are skipped", async () => {
    const env = { SMOKE_URL: service.baseUrl, SMOKE_TOKEN: user.token };
    const { code, stdout } = await runCommand("smoke", ["--listen", "--all"], env);
    expect(code).toBe(0);
    expect(stdout).toContain("both signatures verified");
    expect(stdout).toMatch(/\nSmoke test passed: 3\d ok, 2 skipped, in \d+\.\d s\.\n\n$/);
    expect(stdout).toMatch(
      /skip .* a viewer can read but not change: not checked, the user is not a viewer of any project\n/,
    );
    expect(stdout).toMatch(/skip .*Strict-Transport-Security.*: not checked, the connection is plain http\n/);
    expect(stdout).not.toContain("FAIL");
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
      /^Unexpected argument: every value needs an option\.\nUsage: npm run --silent smoke -- \[--url/,
    );
    expect(wrong.stderr).not.toContain(user.token);
  });

  test("has every option on its help page", () => {
    const page = helpPage(smokeProgram);
    expect(page).toMatch(/^Usage: npm run --silent smoke -- \[--url/m);
    const options = [...page.matchAll(/^ {2}(?:-\w, )?(--[\w-]+)/gm)].map(([, name]) => name);
    const ofUsers = ["--url", "--token", "--project", "--receiver", "--listen", "--all"];
    expect(options).toEqual([...ofUsers, "--operator", "--stage", "--close-endpoint", "--help"]);
  });

  /** Starts the program as a process. */
  function startSmoke(url: string) {
    const child = startProgram(["bin/smoke.ts", "--url", url], { SMOKE_TOKEN: user.token });
    const stdout = text(child.stdout);
    return { child, ended: once(child, "close"), stdout };
  }

  test("exits with 130 on a second Ctrl-C, without waiting for the request in flight", async () => {
    const { promise: isRequested, resolve: onRequest } = Promise.withResolvers<void>();
    const server = http.createServer(() => onRequest());
    const { child, ended, stdout } = startSmoke(await listening(server));
    await isRequested;
    child.kill("SIGINT");
    // A signal that arrives sooner counts as the copy that npm forwards.
    await sleep(600);
    child.kill("SIGINT");
    expect((await ended)[0]).toBe(130);
    // The cleanup starts when the request in flight has ended, which is after its timeout of 10 s.
    expect(await stdout).not.toContain("Cleanup");
  });

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

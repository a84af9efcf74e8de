import { execFile, spawn } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import http from "node:http";
import net, { type AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify, stripVTControlCharacters } from "node:util";
import { BadArguments, readSmokeOptions, type SmokeOptions } from "../../bin/smoke/options.ts";
import { checkGroups, type Limits, smoke } from "../../bin/smoke/run.ts";
import { freshDataDir, type LocalRun, runCommand, startLocalRun } from "../support/local-run.ts";
import { startReceiver } from "../support/receiver.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { type Answered, type Asked, type Spoil, startSpoilingProxy } from "../support/spoiling-proxy.ts";

/* `npm run smoke`: says that a stage is well when it is, and what is wrong when it is not. */

const root = join(import.meta.dirname, "../..");
const fixture = (name: string) => readFileSync(join(root, "test/fixtures", name), "utf8");
const tls = { cert: fixture("tls-cert.pem"), key: fixture("tls-key.pem") };

const limits: Limits = { requestMs: 2_000, deliveryMs: 1_500, totalMs: 30_000 };
const never = new AbortController().signal;

let service: TestService;
let user: ReturnType<TestService["user"]>;
let projectId: string;
beforeAll(async () => {
  service = await startTestService({ deliver: true });
});
afterAll(() => service.stop());
beforeEach(async () => {
  user = service.user();
  projectId = await service.project(user.userId);
});

interface Told {
  isWell: boolean;
  text: string;
  /** The claims by what came of them. */
  ok: string[];
  warn: string[];
  skip: string[];
  FAIL: string[];
}

async function check(options: Partial<SmokeOptions> & { baseUrl: string }, more: Partial<Limits> = {}, stop = never) {
  const lines: string[] = [];
  const print = (line: string) => void lines.push(stripVTControlCharacters(line));
  const isWell = await smoke({ token: user.token, ...options }, print, stop, { ...limits, ...more });
  const text = lines.join("\n");
  const claims = (verdict: string) =>
    lines.flatMap((line) => new RegExp(`^ {2}${verdict} +(?:\\d+ ms)? {2}(.*)$`).exec(line)?.[1]?.trim() ?? []);
  const told: Told = {
    isWell,
    text,
    ok: claims("ok"),
    warn: claims("warn"),
    skip: claims("skip"),
    FAIL: claims("FAIL"),
  };
  return told;
}

/** Checks the service through something that spoils it. */
async function checkSpoilt(
  spoil: Spoil,
  options: Partial<SmokeOptions> = {},
  more: Partial<Limits> = {},
  stop = never,
) {
  const proxy = await startSpoilingProxy(service.baseUrl, spoil);
  try {
    return { ...(await check({ baseUrl: proxy.url, ...options }, more, stop)), asked: proxy.asked };
  } finally {
    await proxy.close();
  }
}

const keys = async () => (await user.api.get("/v1/api-keys")).body.data;
const webhooks = async () => (await user.api.get(`/v1/projects/${projectId}/webhooks`)).body.data;
async function expectNothingLeft(): Promise<void> {
  expect({ keys: await keys(), webhooks: await webhooks() }).toEqual({ keys: [], webhooks: [] });
}

describe("a stage that is well", () => {
  test("keeps every promise, and nothing is left on it", async () => {
    await service.project(user.userId, { role: "viewer" });
    const { isWell, ok, skip, FAIL, warn, text } = await check({ baseUrl: service.baseUrl, receiver: "listen" });
    expect({ isWell, FAIL, warn }).toEqual({ isWell: true, FAIL: [], warn: [] });
    expect(skip).toEqual([expect.stringContaining("Strict-Transport-Security")]);
    expect(ok).toEqual(
      expect.arrayContaining([
        "it is refused on the very next request",
        "a viewer may look but not change",
        expect.stringMatching(/^a test delivery arrives \(answered 200 after \d+ ms, both signatures verified\)$/),
        "its secret is rotated (a delivery is signed with the new and the old)",
        "nothing is left behind",
      ]),
    );
    expect(text).toMatch(/\n\nAll is well, with 1 check not made: 3\d ok, in \d+\.\d s\.\n$/);
    await expectNothingLeft();
  });

  test("without an administered project says why webhooks are not checked", async () => {
    user = service.user();
    const none = await check({ baseUrl: service.baseUrl });
    expect(none.isWell).toBe(true);
    expect(none.skip).toContain("a webhook is made: not checked, the user has no project");
    expect(none.skip).toContain("it is deleted, and gone: not checked, no webhook was made");
    expect(none.text).toContain("All is well, with 9 checks not made: ");
    projectId = await service.project(user.userId, { role: "viewer" });
    const viewer = await check({ baseUrl: service.baseUrl });
    expect(viewer.skip).toContain("a webhook is made: not checked, the user administers no project");
    const other = await check({ baseUrl: service.baseUrl, projectId: randomUUID() });
    expect(other.skip).toContain("a webhook is made: not checked, --project is none of the user's");
  });

  test("without an administered project is not well when all is to be checked, and that is told once", async () => {
    user = service.user();
    const none = await check({ baseUrl: service.baseUrl, receiver: "listen", wantsAll: true });
    expect(none.isWell).toBe(false);
    expect(none.FAIL).toEqual(["an address inside the network is no receiver", "a webhook is made"]);
    expect(none.text).toContain("not checked, although --all wants it: the user has no project");
    await service.project(user.userId, { role: "viewer" });
    const viewer = await check({ baseUrl: service.baseUrl, receiver: "listen", wantsAll: true });
    expect(viewer.FAIL).toEqual(none.FAIL);
    expect(viewer.text).toContain("wants it: the user administers no project");
  });

  test("without a receiver is not well when all is to be checked", async () => {
    const { isWell, FAIL, text } = await check({ baseUrl: service.baseUrl, wantsAll: true });
    expect({ isWell, FAIL }).toEqual({ isWell: false, FAIL: ["a test delivery arrives"] });
    expect(text).toContain("wants it: give --receiver <https url>");
    await expectNothingLeft();
  });

  test("is well with what cannot be checked there, even when all is to be", async () => {
    const { isWell, skip } = await check({ baseUrl: service.baseUrl, receiver: "listen", wantsAll: true });
    expect({ isWell, skip }).toEqual({
      isWell: true,
      skip: [
        "a viewer may look but not change: not checked, the user is nowhere a viewer",
        expect.stringMatching(/Strict-Transport-Security.*: not checked, it is spoken to over plain http$/),
      ],
    });
  });

  test("uses the project it is given", async () => {
    const second = await service.project(user.userId);
    const { asked } = await checkSpoilt({}, { projectId: second });
    expect(asked.some(({ path }) => path.includes(second))).toBe(true);
    expect(asked.some(({ path }) => path.includes(projectId))).toBe(false);
  });

  test("without a receiver makes no delivery, and says how to have one", async () => {
    const { isWell, skip, asked } = await checkSpoilt({});
    expect(isWell).toBe(true);
    expect(skip).toContainEqual(expect.stringMatching(/^a test delivery arrives: .*--receiver/));
    expect(asked.some(({ path }) => path.endsWith("/test"))).toBe(false);
  });

  test("sends a given receiver one test delivery and none of its project's events; its URL is not printed", async () => {
    const receiver = await startReceiver();
    const url = `${receiver.url}/hidden-path?token=hidden`;
    try {
      const { isWell, ok, text } = await check({ baseUrl: service.baseUrl, receiver: { url } });
      expect(isWell).toBe(true);
      expect(ok).toContainEqual(expect.stringMatching(/^a test delivery arrives \(answered 200/));
      expect(receiver.received.map(({ path }) => path)).toEqual(["/hook/hidden-path?token=hidden"]);
      expect(text).not.toContain("hidden");
    } finally {
      await receiver.close();
    }
  });

  test("is waited for when it throttles", async () => {
    let count = 0;
    const body = '{"error":{"code":"rate_limited","message":"Wait.","request_id":"r"}}';
    const headers = {
      "retry-after": "1",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "x-request-id": "r",
    };
    const spoil: Spoil = { instead: () => (++count % 7 === 0 ? { status: 429, headers, body } : undefined) };
    const { isWell, FAIL } = await checkSpoilt(spoil);
    expect({ isWell, FAIL }).toEqual({ isWell: true, FAIL: [] });
    expect(count).toBeGreaterThan(30);
  });

  test("whose clock is another gets a warning", async () => {
    const answer = ({ headers }: Answered) => {
      headers.date = new Date(Date.now() + 120_000).toUTCString();
    };
    const { isWell, warn, text } = await checkSpoilt({ answer });
    expect({ isWell, warn }).toEqual({ isWell: true, warn: ["its clock and this one agree"] });
    expect(text).toMatch(/this machine is (119|12[01]) s behind/);
  });

  test("loses what killed runs have left there, and nothing else", async () => {
    for (const name of ["smoke-20200101T000000Z-abcdef", "smoke-tests", "smoke-20200101T000000Z-000000"]) {
      await user.api.post("/v1/api-keys", { name });
    }
    const url = "https://smoke.invalid/";
    for (const fragment of ["#smoke-20200101T000000Z-abcdef", "#smoke-tests", ""]) {
      await user.api.post(`/v1/projects/${projectId}/webhooks`, { url: url + fragment, events: ["deploy.failed"] });
    }
    // Only those that end so have been there for more than an hour.
    const answer = (answered: Answered) => {
      const old = (record: Record<string, string>) =>
        /abcdef$/.test(record.name ?? record.url ?? "")
          ? { ...record, created_at: "2020-01-01T00:00:00.000Z" }
          : record;
      const { data, ...rest } = answered.body === "" ? {} : JSON.parse(answered.body);
      if (Array.isArray(data)) answered.body = JSON.stringify({ ...rest, data: data.map(old) });
    };
    const { isWell, ok } = await checkSpoilt({ answer });
    expect(isWell).toBe(true);
    expect(ok).toContain("nothing is left behind (2 removed)");
    expect((await keys()).map(({ name }: { name: string }) => name)).toEqual([
      "smoke-tests",
      "smoke-20200101T000000Z-000000",
    ]);
    expect((await webhooks()).map((webhook: { url: string }) => webhook.url)).toEqual([`${url}#smoke-tests`, url]);
  });
});

/* What is wrong, and what fails because of it. Everything else is well. */

const is = (method: string, path: RegExp) => (asked: Asked) => asked.method === method && path.test(asked.path);
const createsKey = is("POST", /^\/v1\/api-keys$/);
const listsKeys = is("GET", /^\/v1\/api-keys$/);
const listsProjects = is("GET", /^\/v1\/projects$/);
const createsWebhook = is("POST", /\/webhooks$/);
const listsWebhooks = is("GET", /\/webhooks$/);

// biome-ignore lint/suspicious/noExplicitAny: the test knows what it edits
const edit = (answered: Answered, change: (json: any) => void) => {
  const json = JSON.parse(answered.body);
  change(json);
  answered.body = JSON.stringify(json);
};
const anyToken = (asked: Asked) => (asked.headers.authorization ?? "").replace("Bearer ", "");

const faults: [title: string, claims: string[], told: string | RegExp, spoil: () => Spoil][] = [
  [
    "an unknown route answered as API Gateway does by itself",
    ["an unknown route is a 404", "every answer has its request's id, errors in the body too"],
    'GET /v1/smoke-test/no-such-route: wanted 404 not_found, got 403 {"message":"Missing Authentication Token"}',
    () => ({
      answer(answered, { path }) {
        if (path.includes("no-such"))
          Object.assign(answered, { status: 403, body: '{"message":"Missing Authentication Token"}' });
      },
    }),
  ],
  [
    "a 405 without Allow",
    ["another method is a 405 that lists those allowed"],
    "wanted Allow: GET, got no Allow",
    () => ({ answer: ({ headers }) => void delete headers.allow }),
  ],
  [
    "a 401 that asks for another scheme",
    ["without credentials it is a 401 that asks for them", "a JWT that is none is refused"],
    'wanted WWW-Authenticate: Bearer, got Basic realm="api"',
    () => ({
      answer({ status, headers }) {
        if (status === 401) headers["www-authenticate"] = 'Basic realm="api"';
      },
    }),
  ],
  [
    "a partner key taken for an API key",
    ["a partner key (svcp_) is taken for a JWT"],
    /wanted 401 invalid_token, got 401 .*"code":"invalid_api_key"/,
    () => ({
      request(asked) {
        if (anyToken(asked).startsWith("svcp_")) asked.headers.authorization = `Bearer svc_${"0".repeat(64)}`;
      },
    }),
  ],
  [
    "an unknown key told from a token",
    ["an API key that never was is refused", "it is refused on the very next request"],
    "wanted 401 invalid_api_key, got 401",
    () => ({
      answer: (answered) => {
        answered.body = answered.body.replace("invalid_api_key", "unknown_key");
      },
    }),
  ],
  [
    "the content type ignored",
    ["a body that is not JSON is a 415"],
    "POST /v1/api-keys: wanted 415 unsupported_media_type, got 201",
    () => ({
      request: ({ headers }) => {
        headers["content-type"] &&= "application/json";
      },
    }),
  ],
  [
    "a body of any size taken",
    ["a body of more than 64 KB is a 413"],
    "wanted 413 payload_too_large, got 201",
    () => ({
      request: (asked) => {
        asked.body = asked.body.replace(/,"padding":"x+"/, "");
      },
    }),
  ],
  [
    "an error without details",
    ["wrong input is a 400 that says where"],
    "error.details does not name it",
    () => ({
      answer(answered, asked) {
        if (createsKey(asked) && answered.status === 400) edit(answered, ({ error }) => delete error.details);
      },
    }),
  ],
  [
    "broken JSON answered with HTML",
    ["broken JSON is a 400", "every answer has its request's id, errors in the body too"],
    "wanted 400 invalid_json, got 400 <html> <body>Bad Request</body> </html>",
    () => ({
      answer(answered, { body }) {
        if (/"smoke-[\w-]+$/.test(body)) answered.body = "<html>\n<body>Bad Request</body>\n</html>";
      },
    }),
  ],
  [
    "a key that is not made of hexadecimal digits",
    ["the JWT makes a key"],
    "POST /v1/api-keys: data.key is missing or not of the promised form",
    () => ({
      answer(answered, asked) {
        if (createsKey(asked) && answered.status === 201)
          edit(answered, ({ data }) => {
            data.key = "svc_not-hexadecimal-at-all";
          });
      },
    }),
  ],
  [
    "a key missing in the list",
    ["it is listed at once, and never shown again", "its use is on record"],
    "the key that was just made is not in the list",
    () => ({
      answer(answered, asked) {
        if (listsKeys(asked))
          edit(answered, (json) => {
            json.data = [];
          });
      },
    }),
  ],
  [
    "a key shown in the list",
    ["it is listed at once, and never shown again", "its use is on record"],
    "the list shows the key, which is to be shown once",
    () => {
      let key = "";
      return {
        answer(answered, asked) {
          if (createsKey(asked) && answered.status === 201) key = JSON.parse(answered.body).data.key;
          if (listsKeys(asked))
            edit(answered, ({ data }) => {
              for (const each of data) each.key = key;
            });
        },
      };
    },
  ],
  [
    "a key that makes keys",
    ["it cannot make keys"],
    "wanted 403 session_required, got 201",
    () => ({
      request(asked) {
        if (createsKey(asked) && anyToken(asked).startsWith("svc_"))
          asked.headers.authorization = `Bearer ${user.token}`;
      },
    }),
  ],
  [
    "a use that is not recorded",
    ["its use is on record"],
    "last_used_at is null although the key was used",
    () => ({
      answer(answered) {
        answered.body = answered.body.replaceAll(/"last_used_at":"[^"]+"/g, '"last_used_at":null');
      },
    }),
  ],
  [
    "an authorizer that caches",
    ["it is refused on the very next request"],
    "wanted 401 invalid_api_key, got 200",
    () => {
      const letIn = new Map<string, Answered>();
      return {
        answer(answered, asked) {
          if (listsProjects(asked) && answered.status === 200) letIn.set(anyToken(asked), structuredClone(answered));
        },
        instead: (asked) => (listsProjects(asked) ? structuredClone(letIn.get(anyToken(asked))) : undefined),
      };
    },
  ],
  [
    "a deletion that does nothing",
    ["it is refused on the very next request"],
    "wanted 401 invalid_api_key, got 200",
    () => {
      let isFirst = true;
      const headers = { "cache-control": "no-store", "x-content-type-options": "nosniff", "x-request-id": "r" };
      return {
        instead({ method, path }) {
          if (method !== "DELETE" || !path.startsWith("/v1/api-keys/") || !isFirst) return undefined;
          isFirst = false;
          return { status: 204, headers, body: "" };
        },
      };
    },
  ],
  [
    "a receiver inside the network",
    ["an address inside the network is no receiver"],
    "wanted 400 validation_error, got 201",
    () => ({
      request: (asked) => {
        asked.body = asked.body.replace("169.254.169.254", "hooks.example.com");
      },
    }),
  ],
  [
    "a webhook that cannot be made",
    [
      "an address inside the network is no receiver",
      "a webhook is made",
      "every answer has its request's id, errors in the body too",
    ],
    "wanted 201, got 503",
    () => ({
      answer(answered, asked) {
        if (createsWebhook(asked)) answered.status = 503;
      },
    }),
  ],
  [
    "a secret shown in the list",
    ["it is listed at once, and its secret never shown again"],
    "the list shows a secret, which is to be shown once",
    () => {
      let secret = "";
      return {
        answer(answered, asked) {
          if (createsWebhook(asked) && answered.status === 201) secret = JSON.parse(answered.body).data.secret;
          if (listsWebhooks(asked) && answered.status === 200) {
            edit(answered, ({ data }) => {
              for (const each of data) each.secret = secret;
            });
          }
        },
      };
    },
  ],
  [
    "deliveries that nobody sends",
    ["a test delivery arrives", "its secret is rotated"],
    "the test delivery is still pending after 1.5 s: nobody takes it from the queue",
    () => ({
      answer: (answered) => {
        answered.body = answered.body.replace('"status":"succeeded"', '"status":"pending"');
      },
    }),
  ],
  [
    "deliveries signed with another secret",
    ["a test delivery arrives", "its secret is rotated"],
    "the delivery came, and its X-Service-Signature does not match the secret",
    () => ({
      answer(answered, asked) {
        if (createsWebhook(asked) && answered.status === 201) {
          edit(answered, ({ data }) => {
            data.secret = `whsec_${randomBytes(32).toString("hex")}`;
          });
        }
      },
    }),
  ],
  [
    "successes without Cache-Control",
    ["no answer may be cached or sniffed"],
    /GET \/v1\/projects, answered 200, has not Cache-Control: no-store \(and \d+ of \d+ other answers\)/,
    () => ({
      answer({ status, headers }) {
        if (status === 200) delete headers["cache-control"];
      },
    }),
  ],
  [
    "errors of the gateway without nosniff",
    ["no answer may be cached or sniffed"],
    "GET /v1/projects, answered 401, has not X-Content-Type-Options: nosniff",
    () => ({
      answer({ status, headers }) {
        if (status === 401) delete headers["x-content-type-options"];
      },
    }),
  ],
  [
    "a request id that the body does not have",
    ["every answer has its request's id, errors in the body too"],
    "has not the same id in x-request-id and error.request_id",
    () => ({
      answer(answered) {
        if (answered.status === 404) answered.headers["x-request-id"] = "another";
      },
    }),
  ],
];

describe("a stage with one fault", () => {
  test.each(faults)("%s: exactly that is told, and nothing is left", async (_, claims, told, spoil) => {
    const { isWell, FAIL, text } = await checkSpoilt(spoil(), { receiver: "listen" });
    expect(FAIL).toEqual(claims);
    expect(isWell).toBe(false);
    expect(text).toMatch(told);
    expect(text).toMatch(/\n {18}see docs\/runbook\.md: [\w-]/);
    expect(text).toMatch(/\nSomething is wrong here, with \d+ checks? not made: \d+ ok, \d failed/);
    await expectNothingLeft();
    expectNoSecrets(text);
  });

  test("the JWT refused: what needs it is not checked, and nothing is asked with it again", async () => {
    const { FAIL, skip, asked, text } = await checkSpoilt(
      {},
      { token: "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1In0.c2lnbmF0dXJl" },
    );
    expect(FAIL).toEqual(["the JWT is let in"]);
    expect(text).toContain("wanted 200, got 401");
    expect(skip).toContain("the JWT makes a key: not checked, the JWT was not let in");
    expect(asked.filter(({ method }) => method === "POST")).toEqual([]);
    expect(text).not.toContain("eyJhbGci");
  });

  test("a receiver that does not answer: the attempt's hint is told", async () => {
    const { FAIL, text } = await check({ baseUrl: service.baseUrl, receiver: { url: "http://127.0.0.1:9/" } });
    expect(FAIL).toEqual(["a test delivery arrives"]);
    expect(text).toContain("the test delivery failed: connection_refused. Nothing accepts connections");
  });

  test("an answer lost on the way: what was made is found by its mark and removed", async () => {
    const answer = (_: Answered, asked: Asked) =>
      createsWebhook(asked) || createsKey(asked) ? ("cut" as const) : undefined;
    const { FAIL, text } = await checkSpoilt({ answer });
    expect(FAIL).toEqual(expect.arrayContaining(["the JWT makes a key", "a webhook is made"]));
    expect(text).toContain("POST /v1/api-keys was cut off before its answer was complete");
    expect(text).toContain("nothing is left behind (2 removed)");
    await expectNothingLeft();
  });

  test("deletions that fail: what is left is named, with the request that removes it", async () => {
    const body = '{"error":{"code":"internal_error","message":"x","request_id":"r"}}';
    const headers = { "x-request-id": "r", "cache-control": "no-store", "x-content-type-options": "nosniff" };
    const instead = ({ method }: Asked) => (method === "DELETE" ? { status: 500, headers, body } : undefined);
    const { isWell, FAIL, text } = await checkSpoilt({ instead });
    expect({ isWell, last: FAIL.at(-1) }).toEqual({ isWell: false, last: "nothing is left behind" });
    const [key] = await keys();
    const [webhook] = await webhooks();
    expect(text).toContain(`API key: DELETE /v1/api-keys/${key.id}`);
    expect(text).toContain(`webhook: DELETE /v1/projects/${projectId}/webhooks/${webhook.id}`);
  });

  test("throttled for good: 429 is told, in bounded time", async () => {
    const body = '{"error":{"code":"rate_limited","message":"Wait.","request_id":"r"}}';
    const instead = () => ({ status: 429, headers: { "retry-after": "1" }, body });
    const { isWell, text } = await checkSpoilt({ instead }, {}, { totalMs: 10_000 });
    expect(isWell).toBe(false);
    expect(text).toContain("wanted 404 not_found, got 429");
    expect(text).toContain("6 s are up: the rest is not checked.");
  });

  test("slow: it ends in time, and nothing is left", async () => {
    const startedAt = Date.now();
    const request = () => sleep(150);
    const { isWell, text } = await checkSpoilt({ request }, {}, { requestMs: 1_000, totalMs: 4_500 });
    expect(Date.now() - startedAt).toBeLessThan(6_000);
    expect(isWell).toBe(false);
    expect(text).toContain("2.5 s are up: the rest is not checked.");
    expect(text).toContain("Not finished:");
    await expectNothingLeft();
  });

  test("interrupted while a key is made: the key is removed", async () => {
    const interrupt = new AbortController();
    const answer = (_: Answered, { body }: Asked) => {
      if (/"smoke-[\w-]+"}$/.test(body)) interrupt.abort();
    };
    const request = (asked: Asked) => {
      asked.headers["content-type"] &&= "application/json";
    };
    const { isWell, text } = await checkSpoilt({ answer, request }, {}, {}, interrupt.signal);
    expect(isWell).toBe(false);
    expect(text).toContain("Interrupted: the rest is not checked.");
    expect(text).toContain("nothing is left behind (1 removed)");
    await expectNothingLeft();
  });
});

/* Where no service is at all: one line says what is there, and nothing else is tried. */

async function expectUnreachable(baseUrl: string, told: string): Promise<void> {
  const startedAt = Date.now();
  const { isWell, FAIL, ok, text } = await check({ baseUrl }, { requestMs: 500 });
  expect({ isWell, FAIL, ok }).toEqual({ isWell: false, FAIL: ["it answers"], ok: ["nothing is left behind"] });
  expect(text).toContain(told);
  expect(Date.now() - startedAt).toBeLessThan(3_000);
  expectNoSecrets(text);
}

async function listening(server: net.Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

async function nobodysUrl(): Promise<string> {
  const server = net.createServer();
  const port = await listening(server);
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

test("points to sections that the runbook has", () => {
  const runbook = readFileSync(join(root, "docs/runbook.md"), "utf8");
  const named = checkGroups.flatMap(({ sections, checks }) => [sections, ...checks.map((each) => each.sections ?? [])]);
  for (const section of new Set(named.flat())) expect(runbook).toMatch(new RegExp(`^#+ ${section}$`, "m"));
});

describe("no stage at all", () => {
  test("a port where nothing listens", async () =>
    expectUnreachable(await nobodysUrl(), "nothing accepts connections at that host and port (ECONNREFUSED)"));

  test("a name that does not resolve", () =>
    expectUnreachable("https://no-such-host.invalid", "the host name does not resolve"));

  test("a server that takes requests and says nothing", async () => {
    const server = http.createServer(() => {});
    const port = await listening(server);
    await expectUnreachable(`http://127.0.0.1:${port}`, "GET /v1/projects had no complete answer within 0.5 s");
    server.closeAllConnections();
    server.close();
  });

  test("a server that never ends its answer", async () => {
    const server = http.createServer((_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const drip = setInterval(() => response.write(" "), 50);
      response.on("close", () => clearInterval(drip));
    });
    const port = await listening(server);
    await expectUnreachable(`http://127.0.0.1:${port}`, "had no complete answer within 0.5 s");
    server.closeAllConnections();
    server.close();
  });

  test("a server that does not speak HTTP", async () => {
    const server = net.createServer((socket) => {
      socket.on("error", () => {});
      socket.end("220 mail.example.com ESMTP\r\n");
    });
    const port = await listening(server);
    await expectUnreachable(`http://127.0.0.1:${port}`, "was answered with what is not HTTP");
    server.close();
  });

  test("a certificate that does not hold", async () => {
    const proxy = await startSpoilingProxy(service.baseUrl, {}, tls);
    await expectUnreachable(proxy.url, "the TLS certificate does not hold");
    await proxy.close();
  });

  test("https to a port that speaks plain http", () =>
    expectUnreachable(service.baseUrl.replace("http:", "https:"), "no TLS is spoken there"));

  test("a server that answers 500 to all: everything is told, nothing is made", async () => {
    const instead = () => ({ status: 500, headers: {}, body: "" });
    const { isWell, FAIL, asked } = await checkSpoilt({ instead });
    expect(isWell).toBe(false);
    expect(FAIL).toEqual(expect.arrayContaining(["an unknown route is a 404", "the JWT is let in"]));
    expect(asked.filter(({ method }) => method === "POST")).toEqual([]);
  });

  test("a server that sends everybody elsewhere: the token does not follow", async () => {
    const elsewhere = await startSpoilingProxy(service.baseUrl);
    const instead = ({ path }: Asked) => ({ status: 301, headers: { location: elsewhere.url + path }, body: "" });
    const { FAIL, text } = await checkSpoilt({ instead });
    expect(FAIL).toContain("the JWT is let in");
    expect(text).toContain(`wanted 200, got 301, a redirect to ${elsewhere.url}/v1/projects`);
    expect(elsewhere.asked).toEqual([]);
    await elsewhere.close();
  });
});

function expectNoSecrets(text: string): void {
  expect(text).not.toContain(user.token);
  expect(text).not.toMatch(/svc_[0-9a-f]{16}|whsec_\w{8}/);
}

test("no credential is printed, even when the stage sends it back", async () => {
  const answer = (answered: Answered, asked: Asked) => {
    if (asked.headers.authorization === undefined) return;
    Object.assign(answered, {
      status: 500,
      body: JSON.stringify({ seen: asked.headers.authorization, answered: answered.body }),
    });
  };
  let isLetIn = false;
  const { text } = await checkSpoilt({
    answer(answered, asked) {
      // Past the door, so that keys and secrets come by too.
      if (listsProjects(asked) && answered.status === 200 && !isLetIn) isLetIn = true;
      else answer(answered, asked);
    },
  });
  expect(text).toContain('{"seen":"Bearer …"');
  expectNoSecrets(text);
});

describe("arguments", () => {
  const url = "https://api.example.com";
  const token = "eyJhbGciOiJIUzI1NiJ9.e30.c2ln";

  test.each<[string[], Record<string, string>, object]>([
    [["--url", `${url}/prod/`], { SMOKE_TOKEN: token }, { baseUrl: `${url}/prod`, token }],
    [[], { SMOKE_URL: url, SMOKE_TOKEN: `${token}\n` }, { baseUrl: url, token }],
    [["--token", token], { SMOKE_URL: url, SMOKE_TOKEN: "other" }, { baseUrl: url, token }],
    [["--receiver", `${url}/hook#x`], { SMOKE_URL: url, SMOKE_TOKEN: token }, { receiver: { url: `${url}/hook` } }],
    [["--listen"], { SMOKE_URL: "http://127.0.0.1:3000", SMOKE_TOKEN: token }, { receiver: "listen" }],
    [["--all"], { SMOKE_URL: url, SMOKE_TOKEN: token }, { baseUrl: url, wantsAll: true }],
    [["--listen"], { SMOKE_URL: "http://localhost:3000", SMOKE_TOKEN: token }, { baseUrl: "http://localhost:3000" }],
  ])("%j and %j are understood", (args, env, expected) => {
    expect(readSmokeOptions(args, env)).toMatchObject(expected);
  });

  test.each<[string[], string]>([
    [[], "--url (or SMOKE_URL) is missing"],
    [["--url", url], "SMOKE_TOKEN (or --token) is missing"],
    [["--url", "api.example.com", "--token", token], "--url takes an absolute https URL"],
    [["--url", "http://api.example.com", "--token", token], "--url must start with https://"],
    [["--url", "https://me:pw@api.example.com", "--token", token], "--url takes a base URL alone"],
    [["--url", `${url}?x=1`, "--token", token], "--url takes a base URL alone"],
    [["--url", url, "--token", `svc_${"0".repeat(64)}`], "SMOKE_TOKEN must be a JWT"],
    [["--url", url, "--token", "two words"], "SMOKE_TOKEN is no JWT"],
    [["--url", url, "--token", token, "--project", "7"], "--project takes the UUID"],
    [
      ["--url", url, "--token", token, "--receiver", "http://hooks.example.com"],
      "--receiver takes an absolute https URL",
    ],
    [["--url", url, "--token", token, "--receiver", "http://127.0.0.1:4000"], "--receiver takes an absolute https URL"],
    [["--url", url, "--token", token, "--listen"], "--listen opens a receiver on this machine"],
    [
      ["--url", "http://127.0.0.1:1", "--token", token, "--listen", "--receiver", url],
      "--listen or --receiver, not both",
    ],
    [["--url", url, "--tokn", token], "Unknown option '--tokn'"],
    [["--url"], "'--url <value>' argument missing"],
    [["--url", url, token], "Every argument belongs to an option"],
  ])("%j is refused in one sentence, which does not repeat the token", (args, message) => {
    let thrown: unknown;
    try {
      readSmokeOptions(args, {});
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(BadArguments);
    const text = (thrown as Error).message;
    expect(text).toContain(message);
    expect(text).toMatch(/^[^\n]+\.$/);
    expect(text).not.toContain(token);
  });
});

describe("the command, against npm start", () => {
  let run: LocalRun;
  beforeAll(async () => {
    run = await startLocalRun({ DATA_DIR: freshDataDir() });
  });
  afterAll(() => run.end("SIGKILL"));

  test("npm run smoke is well within seconds, and exits with 0", async () => {
    const { PATH, HOME } = process.env;
    const env = { PATH, HOME, SMOKE_URL: run.baseUrl, SMOKE_TOKEN: run.token };
    const args = ["run", "--silent", "smoke", "--", "--listen", "--all"];
    const { stdout } = await promisify(execFile)("npm", args, { cwd: root, env });
    expect(stdout).toContain("both signatures verified");
    expect(stdout).toMatch(/\nAll is well, with 2 checks not made: 3\d ok, in \d+\.\d s\.\n\n$/);
    expect(stdout).not.toContain("FAIL");
    expect(stdout).not.toContain(run.token);
  });

  test("over TLS says so, and wants Strict-Transport-Security everywhere", async () => {
    const overTls = async (spoil: Spoil) => {
      const proxy = await startSpoilingProxy(run.baseUrl, spoil, tls);
      const trust = { NODE_EXTRA_CA_CERTS: join(root, "test/fixtures/tls-cert.pem"), SMOKE_TOKEN: run.token };
      const finished = await runCommand("smoke", ["--url", proxy.url], trust);
      await proxy.close();
      return finished;
    };
    const insist = ({ headers }: Answered) => {
      headers["strict-transport-security"] = "max-age=63072000";
    };
    const everywhere = await overTls({ answer: insist });
    expect(everywhere.stdout).toContain("it answers (over TLS, certificate verified)");
    expect(everywhere.stdout).toMatch(/ok .*every answer insists on TLS/);
    expect(everywhere.code).toBe(0);
    const partly = await overTls({
      answer(answered) {
        insist(answered);
        if (answered.status === 401) delete answered.headers["strict-transport-security"];
      },
    });
    expect(partly.stdout).toMatch(/FAIL .*every answer insists on TLS/);
    expect(partly.stdout).toContain("GET /v1/projects, answered 401, has not Strict-Transport-Security");
    expect(partly.code).toBe(1);
    const nowhere = await overTls({ answer: ({ headers }) => void delete headers["strict-transport-security"] });
    expect(nowhere.stdout).toMatch(/answered 401, has not Strict-Transport-Security \(and (\d+) of \1 other answers\)/);
    expect(nowhere.code).toBe(1);
  });

  test("exits with 1 where something is wrong, and with 2 when it is called wrongly", async () => {
    const SMOKE_TOKEN = run.token;
    const { code, stdout, stderr } = await runCommand("smoke", ["--url", await nobodysUrl()], { SMOKE_TOKEN });
    expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
    expect(stdout).toContain("Something is wrong here: 1 ok, 1 failed");
    const wrong = await runCommand("smoke", ["--url", run.baseUrl, run.token], { SMOKE_TOKEN });
    expect({ code: wrong.code, stdout: wrong.stdout }).toEqual({ code: 2, stdout: "" });
    expect(wrong.stderr).toMatch(/^Every argument belongs to an option\.\nUsage: npm run --silent smoke -- --url/);
    expect(wrong.stderr).not.toContain(run.token);
  });

  test("Ctrl-C in the middle ends it with 130 and leaves nothing behind", async () => {
    let sawWebhook: () => void = () => {};
    const webhookIsMade = new Promise<void>((resolve) => {
      sawWebhook = resolve;
    });
    const proxy = await startSpoilingProxy(run.baseUrl, {
      answer(_, asked) {
        if (!createsWebhook(asked)) return;
        sawWebhook();
        // Time for the signal to get there.
        return sleep(300);
      },
    });
    const { PATH, HOME } = process.env;
    const env = { PATH, HOME, SMOKE_TOKEN: run.token };
    const child = spawn(join(root, "node_modules/.bin/node"), ["bin/smoke.ts", "--url", proxy.url], { cwd: root, env });
    let stdout = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    const ended = once(child, "close");
    await webhookIsMade;
    child.kill("SIGINT");
    // As npm does, which gets the signal of the terminal too.
    child.kill("SIGINT");
    expect((await ended)[0]).toBe(130);
    await proxy.close();
    expect(stdout).toContain("Interrupted: the rest is not checked.");
    expect(stdout).toContain("nothing is left behind");
    const get = async (path: string) => {
      const response = await fetch(run.baseUrl + path, { headers: { authorization: `Bearer ${run.token}` } });
      return ((await response.json()) as { data: unknown[] }).data;
    };
    expect(await get("/v1/api-keys")).toEqual([]);
    expect(await get(`/v1/projects/${run.projectId}/webhooks`)).toEqual([]);
  });
});

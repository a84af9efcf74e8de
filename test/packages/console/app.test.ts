import { getEventListeners } from "node:events";
import { join } from "node:path";
import { jest } from "@jest/globals";
import {
  browser,
  click,
  count,
  elapse,
  enter,
  open,
  shows,
  textOf,
  textsOf,
  until,
} from "../../support/browser-page.ts";

/* What the console shows when the API responds slowly, with errors or page by page. The API is a stub in place of `fetch`. */
interface Sent {
  method: string;
  path: string;
  query: Record<string, string>;
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what is under test
  body: any;
  signal: AbortSignal | undefined;
}
interface Preact {
  h(component: unknown, props: object): unknown;
  render(node: unknown, parent: unknown): void;
}
// Not literals, because the modules need the types of a browser, which the tests do not have.
const source = (file: string) => import(join(import.meta.dirname, "../../../packages/console/src", file));
const { h, render }: Preact = await import("preact" as string);

let App: unknown;
let sent: Sent[];
/** By method and end of the path, such as `GET deliveries`. The last row that matches responds. */
let routes: [route: string, respond: (request: Sent) => Response | Promise<Response>][];

const now = Date.parse("2026-11-21T12:00:00Z");
const at = new Date(now).toISOString();
const [projectId, webhookId] = ["0193a000-0000-7000-8000-00000000d301", "0193b000-0000-7000-8000-00000000d301"];
const hash = `#/projects/${projectId}/webhooks/${webhookId}`;
const webhook = {
  ...{ id: webhookId, project_id: projectId, url: "https://example.com/hook", events: ["deploy.failed"] },
  ...{ created_at: at, enabled: true, disabled_at: null, disabled_reason: null },
  health: { state: "healthy", since: null, last_success_at: null, last_error: null, next_probe_at: null },
};
const deliveryOf = (number: number, status = "succeeded") => ({
  ...{ id: `0193${String(number).padStart(4, "0")}-0000-7000-8000-00000000d301`, webhook_id: webhookId, status },
  ...{ event: "deploy.failed", deployment_id: null, test: false, created_at: at, attempt_count: 1 },
  ...{ waiting_for: null, next_attempt_at: null, last_attempt: null },
});
const attempt = {
  ...{ number: 1, at, duration_ms: 5, request_count: 1, status_code: 200, error_code: null, hint: null },
  ...{ response_excerpt: null, trigger: "schedule" },
};

const json = (data: unknown, headers = {}, status = 200) => new Response(JSON.stringify({ data }), { status, headers });
const failure = (status: number, code: string, message: string, headers = {}) =>
  new Response(JSON.stringify({ error: { code, message, request_id: "r-42" } }), { status, headers });
const respond = (route: string, response: (request: Sent) => Response | Promise<Response>) =>
  void routes.push([route, response]);
const sentTo = (route: string) =>
  sent.filter(({ method, path }) => {
    const [expected, end] = route.split(" ");
    return method === expected && path.endsWith(`/${end}`);
  });

/** Opens the console with a session that ends after an hour. */
async function start(address = hash, expiresInSeconds = 3600): Promise<void> {
  const part = (claims: object) => Buffer.from(JSON.stringify(claims)).toString("base64url");
  browser.stored.set("credential", `${part({})}.${part({ sub: "me", exp: now / 1000 + expiresInSeconds })}.c2ln`);
  browser.location.hash = address;
  render(h(App, { apiUrl: "https://api.test", canSendEvents: true }), browser.page.body);
  await shows("Sign out");
}

beforeEach(async () => {
  jest.useFakeTimers({ doNotFake: ["queueMicrotask", "nextTick", "setImmediate"], now });
  jest.spyOn(Math, "random").mockReturnValue(0);
  sent = [];
  routes = [
    ["GET v1/projects", () => json([{ id: projectId, name: "Shop", role: "admin", created_at: at }])],
    ["GET v1/api-keys", () => json([])],
    [`GET ${webhookId}`, () => json(webhook)],
    ["GET deliveries", () => json([])],
  ];
  jest.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = input instanceof Request ? input : new Request(new URL(String(input), "https://api.test/"), init);
    const { pathname: path, searchParams } = new URL(request.url);
    const text = await request.text();
    const each: Sent = {
      ...{ method: request.method, path, query: Object.fromEntries(searchParams), signal: init?.signal ?? undefined },
      body: text === "" ? undefined : JSON.parse(text),
    };
    sent.push(each);
    const [, response] = routes.findLast(([route]) => sentTo(route).includes(each)) ?? [];
    return response?.(each) ?? failure(404, "not_found", `No stub for ${each.method} ${path}.`);
  });
  ({ App } = await source("app.tsx"));
});
afterEach(async () => {
  render(null, browser.page.body);
  // The longest message.
  await elapse(5_000);
  const left = ["online", "offline"].flatMap((name) => getEventListeners(browser.window, name));
  expect([...left, ...getEventListeners(browser.page, "visibilitychange")]).toEqual([]);
  expect(jest.getTimerCount()).toBe(0);
  Object.assign(browser, { isOnline: true });
  browser.page.hidden = false;
  jest.restoreAllMocks();
  jest.useRealTimers();
});

test.each([
  ["in a local run shows the command that prints a link", "npm run --silent console"],
  ["elsewhere shows no command", undefined],
])("the sign-in page %s", async (_, signInCommand) => {
  browser.stored.clear();
  render(h(App, { apiUrl: "https://api.test", canSendEvents: true, signInCommand }), browser.page.body);
  await shows("JWT or API key");
  expect(textOf().includes("npm run")).toBe(signInCommand !== undefined);
});

test("the subject of a token is read from base64url", async () => {
  const { sessionOf } = await source("session.ts");
  const sub = "ü?>ÿ".repeat(3);
  const claims = Buffer.from(JSON.stringify({ sub })).toString("base64url");
  expect(claims).toMatch(/_.*-|-.*_/);
  expect(sessionOf(`Bearer e30.${claims}.c2ln`)).toMatchObject({ kind: "jwt", user: sub, expiresAt: undefined });
});

test("a link that is clicked as soon as the page is shown leads to its screen", async () => {
  await start("");
  render(null, browser.page.body);
  render(h(App, { apiUrl: "https://api.test", canSendEvents: true }), browser.page.body);
  browser.location.hash = "#/keys";
  browser.window.dispatchEvent(new Event("hashchange"));
  await shows("No API keys yet");
});

describe("a failed load", () => {
  test("a 429 is sent again after its Retry-After, which is shown, and also after the client has given up", async () => {
    let left = 5;
    respond("GET v1/api-keys", () => {
      left -= 1;
      return left < 0 ? json([]) : failure(429, "rate_limited", "Wait.", { "Retry-After": "2" });
    });
    await start("#/keys");
    await shows("Retrying in 2 s.");
    await elapse(1_500);
    expect([sentTo("GET v1/api-keys").length, textsOf("alert")]).toEqual([1, []]);
    await shows("try again in 2 s");
    expect(sentTo("GET v1/api-keys")).toHaveLength(4);
    await shows("No API keys yet");
    expect([sentTo("GET v1/api-keys").length, textsOf("alert")]).toEqual([6, []]);
  });

  test("an error shows its message, code and request id, the loaded rows stay, and it is retried", async () => {
    respond("GET deliveries", () => json([deliveryOf(1)]));
    await start();
    await until(() => count("tr") === 2);
    respond("GET deliveries", () => failure(500, "internal_error", "Something went wrong on our side."));
    await shows("not live");
    expect(textsOf("alert")).toEqual([
      expect.stringMatching(/^Something went wrong on our side\. internal_error.*request r-42/),
    ]);
    expect(count("tr")).toBe(2);
    respond("GET deliveries", () => json([deliveryOf(1)]));
    await until(() => textsOf("alert").length === 0);
  });

  test("an outage of every load is shown once, and Retry loads everything again", async () => {
    await start();
    await shows("No deliveries yet");
    const fetched = jest.mocked(globalThis.fetch);
    const stub = fetched.getMockImplementation();
    fetched.mockRejectedValue(new TypeError("Failed to fetch"));
    await elapse(6_000);
    expect(textsOf("alert")).toEqual([expect.stringContaining("Could not reach the service.")]);
    expect(textOf()).toContain("not live");
    if (stub) fetched.mockImplementation(stub);
    sent = [];
    await click("Retry now");
    expect(textsOf("alert")).toEqual([]);
    expect(sent.map(({ path }) => path.split("/").at(-1)).sort()).toEqual([webhookId, "deliveries"].sort());
  });

  const { id } = deliveryOf(1);
  test.each([
    ["projects", "#/projects", "v1/projects", [{ id: projectId, name: "Shop", role: "admin", created_at: at }], "Shop"],
    ["API keys", "#/keys", "v1/api-keys", [], "No API keys yet"],
    ["a project", `#/projects/${projectId}`, "webhooks", [webhook], "example.com/hook"],
    ["a webhook", hash, webhookId, webhook, "Rotate secret"],
    ["a delivery", `${hash}/deliveries/${id}`, id, { ...deliveryOf(1), payload: {}, attempts: [] }, "Copy payload"],
    ["service accounts", `#/projects/${projectId}/access`, "service-accounts", [], "No service accounts yet"],
  ])(
    "the screen of %s shows one heading, no skeleton, and keeps what it has loaded",
    async (_, address, end, data, shown) => {
      const isFailing = () => textsOf("alert").some((text) => text.includes("Out of order."));
      const classes = () => browser.page.body.all().map((node) => node.getAttribute("class"));
      const fail = () => failure(500, "internal_error", "Out of order.");
      respond(`GET ${end}`, fail);
      await start(address);
      await until(isFailing);
      expect([count("h1"), classes().includes("skeleton")]).toEqual([1, false]);
      respond(`GET ${end}`, () => json(data));
      await until(() => !isFailing());
      await shows(shown);
      respond(`GET ${end}`, fail);
      await until(isFailing);
      expect([count("h1"), textOf()]).toEqual([1, expect.stringContaining(shown)]);
    },
  );

  test("a 404 is shown, and not requested again", async () => {
    respond(`GET ${webhookId}`, () => failure(404, "not_found", "There is no such webhook."));
    await start();
    await shows("not_found");
    expect([count("h1"), textOf()]).toEqual([1, expect.stringContaining("Projects / Shop Webhook")]);
    await elapse(60_000);
    expect(sentTo(`GET ${webhookId}`)).toHaveLength(1);
  });

  test("retries wait for 2, 4, 8, 16 and then 30 seconds, and for a device that is online again not at all", async () => {
    const times: number[] = [];
    respond("GET api-keys", () => {
      times.push(Date.now());
      return failure(500, "internal_error", "No.");
    });
    await start("#/keys");
    await elapse(95_000);
    const waits = times.slice(1).map((time, index) => Math.round((time - (times[index] ?? 0)) / 1000));
    expect(waits.slice(0, 6)).toEqual([2, 4, 8, 16, 30, 30]);
    const before = times.length;
    for (const _ of [1, 2]) browser.window.dispatchEvent(new Event("online"));
    await elapse(100);
    expect(times).toHaveLength(before + 2);
    // The wait before it has ended too: the next retry is one, 30 seconds later.
    await elapse(29_000);
    expect(times).toHaveLength(before + 2);
    await elapse(2_000);
    expect(times).toHaveLength(before + 3);
    await open("#/projects");
    expect(textsOf("alert")).toEqual([]);
    const left = times.length;
    browser.window.dispatchEvent(new Event("online"));
    await elapse(100);
    expect(times).toHaveLength(left);
  });

  test("retries begin with 2 seconds again after a success", async () => {
    const outcomes: [isOk: boolean, at: number][] = [];
    respond("GET deliveries", () => {
      const isOk = outcomes.length === 3;
      outcomes.push([isOk, Date.now()]);
      return isOk ? json([]) : failure(500, "internal_error", "No.");
    });
    await start();
    await until(() => outcomes.length === 6);
    const waits = outcomes.slice(1).map(([, at], index) => Math.round((at - (outcomes[index]?.[1] ?? 0)) / 1000));
    expect([waits.slice(0, 3), waits.slice(4)]).toEqual([[2, 4, 8], [2]]);
  });
});

test("signing out forgets the signing secrets that were shown, and the rotations", async () => {
  const { previousSecretExpiresAt, recordRotation, revealedSecrets } = await source("session.ts");
  respond(`GET ${webhookId}`, () => json({ ...webhook, health: { ...webhook.health, last_success_at: at } }));
  await start();
  await shows("No deliveries yet");
  expect(textOf()).not.toContain("does it reject what is forged?");
  revealedSecrets.set(webhookId, "whsec_shown");
  // Its first steps stay for the session that created it.
  await shows("does it reject what is forged?");
  for (const [id, expiresAt] of Object.entries({ [webhookId]: now + 60_000, other: now + 120_000 })) {
    recordRotation(id, expiresAt);
  }
  await shows("The previous one expires in 00:");
  expect(previousSecretExpiresAt("other")).toBe(now + 120_000);
  await click("Sign out");
  expect([...revealedSecrets]).toEqual([]);
  expect(browser.stored.size).toBe(0);
});

describe("requests of a screen", () => {
  test("a closed screen cancels its request in flight, and sends no more", async () => {
    await start();
    await shows("No deliveries yet");
    respond("GET deliveries", ({ signal }) => new Promise((_, reject) => signal?.addEventListener("abort", reject)));
    sent = [];
    await until(() => sentTo("GET deliveries").length === 1);
    const [inFlight] = sentTo("GET deliveries");
    await open("#/keys");
    expect(inFlight?.signal?.aborted).toBe(true);
    sent = [];
    await elapse(60_000);
    expect(new Set(sent.map(({ path }) => path))).toEqual(new Set(["/v1/api-keys", "/v1/projects"]));
  });

  test("a hidden tab sends none, and loads when it is shown again", async () => {
    await start();
    await shows("No deliveries yet");
    browser.page.hidden = true;
    sent = [];
    await elapse(60_000);
    expect(sent).toEqual([]);
    browser.page.hidden = false;
    browser.page.dispatchEvent(new Event("visibilitychange"));
    await elapse(100);
    expect(sentTo("GET deliveries")).toHaveLength(1);
  });
});

test("an action runs once at a time", async () => {
  const sentEvent = Promise.withResolvers<Response>();
  respond("POST events", () => sentEvent.promise);
  await start();
  for (let clicks = 0; clicks < 2; clicks++) await click("Send deployment event");
  expect(sentTo("POST events")).toHaveLength(1);
  sentEvent.resolve(json({}));
  await shows("deploy.succeeded was added to the queue.");
  await elapse(3_000);
  sent = [];
  await until(() => sentTo("GET deliveries").length === 1);
  await click("Send deployment event");
  expect(sentTo("POST events")).toHaveLength(1);
  // The event is not a delivery at once.
  await elapse(200);
  expect(sentTo("GET deliveries")).toHaveLength(1);
  await elapse(100);
  expect(sentTo("GET deliveries")).toHaveLength(2);
  // Each message is shown for four seconds, also one that follows another.
  await elapse(3_000);
  expect(textOf()).toContain("deploy.succeeded was added to the queue.");
  await elapse(1_000);
  expect(textOf()).not.toContain("deploy.succeeded was added to the queue.");
});

describe("an action that fails", () => {
  test("ends the session with a 401", async () => {
    respond(`PATCH ${webhookId}`, () => failure(401, "invalid_api_key", "The API key is not valid."));
    await start();
    await click("Disable");
    await click("Disable webhook");
    await shows("Your session has ended");
    expect([...browser.stored]).toEqual([]);
  });

  test.each([
    ["a redelivery", ["Redeliver"], "POST redeliver"],
    ["disabling a webhook", ["Disable", "Disable webhook"], `PATCH ${webhookId}`],
    ["simulating a deployment", ["Send deployment event"], "POST events"],
  ])("shows the error of %s, with its request id", async (_, buttons, route) => {
    const { id } = deliveryOf(1);
    respond(`GET ${id}`, () => json({ ...deliveryOf(1), payload: {}, attempts: [attempt] }));
    respond(route, () => failure(409, "conflict", "Not now."));
    await start(`${hash}/deliveries/${id}`);
    await shows("Attempt 1");
    for (const name of buttons) await click(name);
    await until(() => textsOf("alert").length > 0);
    expect(textsOf("alert")).toEqual([expect.stringMatching(/^Not now\. conflict .*request r-42$/)]);
    respond(route, () => json({}, {}, 202));
    await click(buttons.at(-1) ?? "");
    expect(textsOf("alert")).toEqual([]);
  });
});

test("a key of a service account is deleted by a second click, and then no longer listed", async () => {
  let keys = [{ id: "k-1", name: "ci", key_prefix: "svc_1", created_at: at, last_used_at: null }];
  respond("GET service-accounts", () =>
    json([{ id: "a-1", project_id: projectId, name: "job", role: "viewer", created_at: at, created_by: "me" }]),
  );
  respond("GET trusted-workflows", () => json([]));
  respond("GET api-keys", () => json(keys));
  respond("DELETE k-1", () => {
    keys = [];
    return new Response(null, { status: 204 });
  });
  await start(`#/projects/${projectId}/access`);
  for (const name of ["Keys job", "Delete ci"]) await click(name);
  expect(keys).toHaveLength(1);
  await click("Confirm: delete ci");
  await shows("No keys yet");
});

const newest = deliveryOf(1);
test.each([
  [
    "a webhook that is created",
    `#/projects/${projectId}`,
    "webhooks",
    ["New webhook"],
    { URL: " https://example.com " },
    ["Create webhook"],
  ],
  ["a key that is created", "#/keys", "api-keys", ["New key"], { Name: "ci" }, ["Create key"]],
  ["a webhook that is disabled", hash, webhookId, ["Disable"], {}, ["Disable webhook"]],
  ["a delivery that is redelivered", `${hash}/deliveries/${newest.id}`, newest.id, [], {}, ["Redeliver"]],
  ["deliveries that are sent again", hash, "deliveries", [], { "Select all shown": true }, ["Resend 1", "Resend 1"]],
] as const)("%s: what the screen shows is loaded again at once", async (_, address, end, open, fields, send) => {
  respond("GET webhooks", () => json([]));
  respond("GET deliveries", () => json([newest]));
  respond(`GET ${newest.id}`, () => json({ ...newest, payload: {}, attempts: [] }));
  const created = { ...webhook, id: "w-2", secret: "whsec_1", name: "ci", key: "svc_1" };
  for (const each of ["POST webhooks", "POST api-keys", "POST redeliver", `PATCH ${webhookId}`])
    respond(each, () => json(created));
  await start(address);
  await until(() => sentTo(`GET ${end}`).length === 1);
  for (const name of open) await click(name);
  for (const [label, value] of Object.entries(fields)) await enter(label, value);
  for (const name of send) await click(name);
  expect(sentTo(`GET ${end}`)).toHaveLength(2);
  for (const { body } of sentTo("POST webhooks")) expect(body.url).toBe("https://example.com");
});

describe("a certification", () => {
  const last_certification = { id: "c-1", finished_at: at, passed: true };
  const certified = { ...webhook, last_certification };
  const report = { id: "c-1", webhook_id: webhookId, status: "finished", created_at: at, passed: true };

  test("that finished last is on the webhook and in the list, and its report on the tab without an id", async () => {
    respond(`GET ${webhookId}`, () => json(certified));
    respond("GET webhooks", () => json([certified, { ...webhook, id: "w-2" }]));
    const check = { check: "valid", expected: "2xx", status_code: 204, error_code: null, duration_ms: 3 };
    respond("GET c-1", () => json({ ...report, checks: [{ ...check, passed: true, hint: null }] }));
    await start(`${hash}/certification`);
    await shows("a valid delivery");
    await elapse(120_000);
    expect(sentTo("GET c-1")).toHaveLength(1);
    expect(textOf()).toContain("healthy certified");
    await open(`#/projects/${projectId}`);
    await until(() => count("tr") === 3);
    expect(textOf().match(/certified/g)).toHaveLength(1);
  });

  test("whose report is no longer kept is not an error", async () => {
    respond(`GET ${webhookId}`, () =>
      json({ ...certified, last_certification: { ...last_certification, passed: false } }),
    );
    respond("GET c-1", () => failure(404, "not_found", "No certification with this id exists."));
    await start(`${hash}/certification`);
    await shows("no longer kept");
    expect([textOf(), textsOf("alert")]).toEqual([expect.stringContaining("not certified"), []]);
  });
});

test("a list of webhooks has the last success of each", async () => {
  const health = { ...webhook.health, last_success_at: new Date(now - 120_000).toISOString() };
  respond("GET webhooks", () =>
    json([
      { ...webhook, health },
      { ...webhook, id: "w-2", events: ["deploy.started", "deploy.succeeded", "deploy.failed"] },
    ]),
  );
  await start(`#/projects/${projectId}`);
  await shows("2 min ago");
  expect(textOf()).toContain("deploy.started deploy.succeeded +1 : deploy.failed");
  expect(textOf().match(/2 min ago|none recently/g)).toEqual(["2 min ago", "none recently"]);
});

test("a slow webhook without a recent success is not said to fail", async () => {
  const health = { ...webhook.health, state: "slow", since: new Date(now - 120_000).toISOString() };
  respond(`GET ${webhookId}`, () => json({ ...webhook, health }));
  await start();
  await shows("The receiver has been slow for 2 min .");
});

test("a part of the page whose code cannot be loaded says so", async () => {
  const { lazy } = await source("lazy.tsx");
  render(
    h(
      lazy(() => Promise.reject(new TypeError("Failed to fetch"))),
      {},
    ),
    browser.page.body,
  );
  await shows("This part of the page could not be loaded.");
});

const read = ["webhooks:read list and show webhooks", "deliveries:read list and show deliveries"];
const ciRead = ["projects:read list the projects", ...read, "events:read read the deployment events"];
const chosenEvents = ["deploy.succeeded", "deploy.failed"];
test.each([
  ["New key", "#/keys", { Name: "ci" }, ciRead],
  ["New webhook", `#/projects/${projectId}`, { URL: "https://example.com" }, chosenEvents],
  ["Trust a workflow", `#/projects/${projectId}/access`, { "Repository id": "7", "CI system": "gitlab" }, read],
  ["New service account", `#/projects/${projectId}/access`, { Name: "job" }, []],
])(
  "%s: the form can be sent once every required field is set and something is chosen",
  async (name, address, fields, boxes) => {
    for (const list of ["webhooks", "service-accounts", "trusted-workflows"]) respond(`GET ${list}`, () => json([]));
    await start(address);
    await click(name);
    const isReady = () =>
      browser.page.body.all().find((node) => node.getAttribute("type") === "submit" && node.closest("dialog"))
        ?.disabled === false;
    for (const [label, value] of Object.entries(fields)) await enter(label, value);
    if (name === "New key") await enter("Choose permissions", true);
    for (const [label, value] of Object.entries(fields)) {
      expect(isReady()).toBe(true);
      await enter(label, "  ");
      expect(isReady()).toBe(false);
      await enter(label, value);
    }
    for (const label of boxes) {
      expect(isReady()).toBe(true);
      const box = browser.page.body.all().find((node) => node.localName === "label" && textOf(node).startsWith(label));
      await enter(textOf(box), true);
    }
    expect(isReady()).toBe(boxes.length === 0);
  },
);

test("a new service account is listed, and its first key is for its project, whatever is chosen", async () => {
  const account = { id: "a-1", project_id: projectId, name: "job", role: "viewer", created_at: at, created_by: "me" };
  const accounts: object[] = [];
  respond("GET trusted-workflows", () => json([]));
  respond("GET service-accounts", () => json(accounts));
  respond("POST service-accounts", () => json(accounts[accounts.push(account) - 1], {}, 201));
  respond("POST api-keys", () => json({ id: "k-1", name: "ci", key: "svc_1" }, {}, 201));
  await start(`#/projects/${projectId}/access`);
  await click("New service account");
  await enter("Name", "job");
  await click("Create");
  await shows("New key for “job”");
  // At once, not at the end of the interval.
  expect([sentTo("GET service-accounts").length, count("tr")]).toEqual([2, 2]);
  await enter("Name", "ci");
  await enter("Everything that a project viewer may do", true);
  await enter("Expires after", "never");
  await click("Create key");
  await shows("Your new API key");
  expect(sentTo("POST api-keys").map(({ body }) => body)).toEqual([{ name: "ci" }]);
});

test("a new key for everything has neither permissions nor projects", async () => {
  respond("POST api-keys", () => json({ id: "k-1", name: "all", key: "svc_1" }, {}, 201));
  await start("#/keys");
  await shows("No API keys yet");
  await click("New key");
  await enter("Name", "all");
  await enter("Everything I may do", true);
  await enter("Expires after", "never");
  await click("Create key");
  await shows("Your new API key");
  expect(sentTo("POST api-keys").map(({ body }) => body)).toEqual([{ name: "all" }]);
});

test("a workflow is trusted by the conditions that are set, without spaces", async () => {
  respond("GET service-accounts", () => json([]));
  respond("GET trusted-workflows", () => json([]));
  respond("POST trusted-workflows", () => json({}, {}, 201));
  await start(`#/projects/${projectId}/access`);
  await click("Trust a workflow");
  await enter("Repository id", " 7 ");
  await enter("Environment optional", " ");
  await enter("Event optional", " push ");
  await click("Trust");
  const permissions = ["webhooks:read", "deliveries:read"];
  const trusted = { issuer: "github", repository_id: "7", ref: "refs/heads/main", event_name: "push", permissions };
  expect(sentTo("POST trusted-workflows").map(({ body }) => body)).toEqual([trusted]);
});

test("the deliveries of a project without webhooks say that it needs one", async () => {
  respond("GET webhooks", () => json([]));
  await start(`#/projects/${projectId}/deliveries`);
  await shows("Create a webhook first");
});

test("the statistics of a list of webhooks are loaded four at a time, without one that fails, and for no other view", async () => {
  const ids = Array.from({ length: 6 }, (_, index) => `w-${index}`);
  respond("GET webhooks", () => json(ids.map((id) => ({ ...webhook, id }))));
  const isLoaded = Promise.withResolvers<void>();
  respond("GET stats", async ({ path }) => {
    await isLoaded.promise;
    if (path.includes("w-2")) return failure(500, "internal_error", "No.");
    return json({ attempts: 1, succeeded: 0, window: "24h", buckets: [] });
  });
  await start(`#/projects/${projectId}/deliveries`);
  await shows("No deliveries yet");
  expect(sentTo("GET stats")).toEqual([]);
  await open(`#/projects/${projectId}`);
  await shows("Last 24 h");
  expect(sentTo("GET stats")).toHaveLength(4);
  isLoaded.resolve();
  await shows("1 of 1 failed");
  expect([sentTo("GET stats").length, textOf().match(/1 of 1 failed/g)?.length]).toEqual([6, 5]);
});

test("the code to verify is loaded again after a failure, and the result of a check is that of its inputs", async () => {
  Object.assign(globalThis, { isSecureContext: true });
  respond("GET receivers.json", () => Promise.reject(new TypeError("Failed to fetch")));
  await start(`${hash}/verify`);
  await shows("The files could not be loaded.");
  respond("GET receivers.json", () => new Response('{"node/verify-webhook.mjs":"code"}'));
  await open(hash);
  await open(`${hash}/verify`);
  await shows("verify-webhook.mjs verifies the signature");
  await enter("Headers", "X-Service-Signature: sha256=00");
  await enter("Secret", "whsec_00");
  for (const change of ["Reject it if it is older than 5 minutes, as a receiver does", "Body"]) {
    await click("Check");
    await shows("X-Service-Signature invalid");
    await enter(change, true);
    expect(textOf()).not.toContain("X-Service-Signature invalid");
  }
});

test("a name that is removed is sent as null, and events in their order", async () => {
  respond(`GET ${webhookId}`, () => json({ ...webhook, name: "Chat" }));
  respond(`PATCH ${webhookId}`, () => json(webhook));
  await start();
  await click("Edit");
  await enter("Name optional", " ");
  await enter("deploy.started a build has started", true);
  await click("Save");
  const events = ["deploy.started", "deploy.failed"];
  expect(sentTo(`PATCH ${webhookId}`).map(({ body }) => body)).toEqual([{ name: null, events }]);
});

test("an error about a field is shown once, at the field, and others in full", async () => {
  const message = "must start with https://";
  let path = "url";
  respond("GET webhooks", () => json([]));
  respond("POST webhooks", () => {
    const error = {
      code: "validation_error",
      message: `The input is not valid: ${path} ${message}.`,
      request_id: "r-42",
    };
    return new Response(JSON.stringify({ error: { ...error, details: [{ path, message }] } }), { status: 400 });
  });
  await start(`#/projects/${projectId}`);
  await shows("No webhooks yet");
  await click("New webhook");
  await enter("URL", "http://example.com/");
  await click("Create webhook");
  await shows(message);
  expect([textOf().split(message).length, textsOf("alert")]).toEqual([2, [expect.stringContaining("that is marked")]]);
  path = "filter.branch";
  await click("Create webhook");
  await until(() => textsOf("alert").length === 1 && textOf().split(message).length === 2);
  expect(textsOf("alert")).toEqual([expect.stringContaining("that is marked")]);
  path = "events.0";
  await click("Create webhook");
  await shows("validation_error");
});

describe("deliveries", () => {
  test.each([
    ["", "succeeded", 3],
    ["?status=pending", "pending", 2],
    ["?event=deploy.failed", "pending", 10],
  ])("with the filters %j, and a last one that is %s, are reloaded every %i s", async (query, status, seconds) => {
    respond("GET deliveries", () => json([deliveryOf(2), deliveryOf(1, status)]));
    await start(`${hash}${query}`);
    await until(() => count("tr") === 3);
    sent = [];
    await elapse(30_000);
    expect(sentTo("GET deliveries")).toHaveLength(30 / seconds);
  });

  test("that wait say for what: one that failed for its retry, one that was never sent for its first attempt", async () => {
    const due = { waiting_for: "schedule", next_attempt_at: new Date(now + 300_000).toISOString() };
    const last_attempt = { ...attempt, error_code: "timeout" };
    respond("GET deliveries", () =>
      json([
        { ...deliveryOf(4, "pending"), next_attempt_at: at },
        { ...deliveryOf(3, "pending"), waiting_for: "recovery", next_attempt_at: at },
        { ...deliveryOf(2, "pending"), ...due },
        { ...deliveryOf(1, "pending"), ...due, last_attempt },
      ]),
    );
    await start();
    await until(() => count("tr") === 5);
    const waits = ["being sent", "probe now", "next in 5 min", "retry in 5 min"];
    expect(textOf().match(/(?<=deploy.failed 1 · )\S+ \S+( 5 min)?/g)).toEqual(waits);
  });

  test("are filtered by the end of a period, and cleared fields are no filters", async () => {
    await start(`${hash}?deployment_id=${projectId}`);
    const at = "2026-11-21T10:00";
    await enter("Until", at);
    const until = new URLSearchParams({ deployment_id: projectId, until: new Date(at).toISOString() });
    expect(browser.location.hash).toBe(`${hash}?${until}`);
    await open(browser.location.hash);
    await enter("Deployment", "");
    until.delete("deployment_id");
    expect(browser.location.hash).toBe(`${hash}?${until}`);
  });

  test.each([
    ["pending", 1.5],
    ["succeeded", 10],
  ])("the detail of one that is %s is reloaded every %d s", async (status, seconds) => {
    const { id } = deliveryOf(1);
    respond(`GET ${id}`, () => json({ ...deliveryOf(1, status), payload: {}, attempts: [] }));
    await start(`${hash}/deliveries/${id}`);
    await shows("No attempts yet.");
    sent = [];
    await elapse(30_000);
    expect(sentTo(`GET ${id}`)).toHaveLength(30 / seconds);
  });

  test("an attempt whose request was sent twice is marked, and no other; bars compare with the slowest one", async () => {
    const { id } = deliveryOf(1);
    const attempts = [attempt, { ...attempt, number: 2, request_count: 2, duration_ms: 20 }];
    respond(`GET ${id}`, () => json({ ...deliveryOf(1), payload: {}, attempts }));
    await start(`${hash}/deliveries/${id}`);
    await shows("2 requests");
    expect(textOf().match(/\d requests?\b/g)).toEqual(["2 requests"]);
    const widths = browser.page.body.all().flatMap((node) => node.getAttribute("width") ?? []);
    expect(widths.slice(-4)).toEqual(["56", "14", "56", "56"]);
  });

  test("an attempt that is opened says that the service keeps the responses of the newest three", async () => {
    const { id } = deliveryOf(1);
    const attempts = [1, 2, 3, 4].map((number) => ({ ...attempt, number }));
    respond(`GET ${id}`, () => json({ ...deliveryOf(1), attempt_count: 4, payload: {}, attempts }));
    await start(`${hash}/deliveries/${id}`);
    await shows("Attempt 4");
    for (const details of browser.page.body.all().filter((node) => node.getAttribute("class") === "as-sent")) {
      details.open = true;
      details.dispatchEvent(new Event("toggle"));
    }
    await shows("newest three");
    expect(textOf()).not.toContain("No attempts yet");
    expect(textOf().match(/Body (empty|not kept)/g)).toEqual(["Body not kept", ...Array(3).fill("Body empty")]);
  });

  test("of a webhook in shadow mode show the headers of the request, and one button switches it to live", async () => {
    const { id } = deliveryOf(1);
    const shadow = { at: new Date().toISOString(), headers: { "webhook-signature": "v1,abc=" } };
    respond(`GET ${id}`, () => json({ ...deliveryOf(1, "shadowed"), payload: {}, attempts: [], shadow }));
    respond(`GET ${webhookId}`, () => json({ ...webhook, mode: "shadow" }));
    respond(`PATCH ${webhookId}`, () => json(webhook));
    await start(`${hash}/deliveries/${id}`);
    await shows("webhook-signature: v1,abc=");
    expect(textOf()).toContain("Shadow mode: deliveries are signed and logged, and not sent.");
    expect(textOf()).not.toContain("does the receiver accept a delivery?");
    await click("Go live");
    await shows("Webhook switched to live.");
    expect(sentTo(`PATCH ${webhookId}`).map(({ body }) => body)).toEqual([{ mode: "live" }]);
  });

  test("are reloaded as many as are shown, up to 100, and the status filter applies to every page", async () => {
    const lists: Record<string, ReturnType<typeof deliveryOf>[]> = {
      // The failed ones are newer: rows of another filter that stay would be shown below them.
      failed: Array.from({ length: 30 }, (_, index) => deliveryOf(9999 - index, "failed")),
      "": Array.from({ length: 150 }, (_, index) => deliveryOf(5000 - index)),
    };
    respond("GET deliveries", ({ query }) => {
      const list = lists[query.status ?? ""] ?? [];
      const from = list.findIndex(({ id }) => id === query.cursor) + 1;
      // A page after a cursor is larger than requested, so that 100 rows need few clicks.
      const to = from + (query.cursor === undefined ? Number(query.limit) : 60);
      const link = `<https://api.test/v1/next?cursor=${list[to - 1]?.id}>; rel="next"`;
      return json(list.slice(from, to), to < list.length ? { Link: link } : {});
    });
    const rows = () => count("tr") - 1;
    const lastQuery = () => sentTo("GET deliveries").at(-1)?.query;
    await start();
    await until(() => rows() === 20);
    expect(lastQuery()).toEqual({ limit: "20" });
    await click("Load more");
    await until(() => rows() === 80);
    await until(() => lastQuery()?.limit === "80");
    await click("Load more");
    await until(() => rows() === 140);
    await until(() => lastQuery()?.limit === "100");
    expect(lastQuery()).toEqual({ limit: "100" });
    expect(rows()).toBe(140);
    lists[""]?.unshift(deliveryOf(5001));
    await until(() => rows() === 141);
    await click("Load more");
    await until(() => rows() === 151);

    await enter("Status", "failed");
    await open(browser.location.hash);
    await until(() => rows() === 20);
    expect(lastQuery()).toEqual({ status: "failed", limit: "20" });
    const links = browser.page.body.all().map((node) => node.getAttribute("href"));
    expect(links).toContain(`${hash}/deliveries/${lists.failed?.[0]?.id}?status=failed`);
    await click("Load more");
    await until(() => rows() === 30);
    const queries = sentTo("GET deliveries").map(({ query }) => query);
    expect(queries).toContainEqual({ status: "failed", limit: "20", cursor: lists.failed?.[19]?.id });
    expect(textOf()).not.toMatch(/d301 succeeded/);
  });

  test("are reloaded in full pages while none of those that were searched match", async () => {
    const link = '<https://api.test/v1/next?cursor=c>; rel="next"';
    respond("GET deliveries", () => json([], { Link: link }));
    await start(`${hash}?status=failed`);
    await shows("None found so far");
    await click("Load more");
    await elapse(5_000);
    expect(sentTo("GET deliveries").at(-1)?.query).toEqual({ status: "failed", limit: "20" });
  });

  test("are sent again oldest first, after a 429 later, and one that is rejected is listed", async () => {
    respond("GET deliveries", () => json([3, 2, 1].map((number) => deliveryOf(number))));
    const responses = [
      failure(429, "rate_limited", "Wait.", { "Retry-After": "1" }),
      failure(404, "not_found", "There is no such delivery."),
    ];
    respond("POST redeliver", () => responses.shift() ?? json({}, {}, 202));
    await start();
    for (const label of [
      `Select delivery ${deliveryOf(3).id}`,
      "Select all shown",
      `Select delivery ${deliveryOf(3).id}`,
    ]) {
      await enter(label, true);
    }
    await click("Resend 2");
    await shows("2 deliveries are sent again, oldest first");
    // A dialog that sent nothing keeps the selection.
    for (const name of ["Cancel", "Resend 2"]) await click(name);
    expect(sentTo("POST redeliver")).toEqual([]);
    await click("Resend 2");
    await shows("1 of 2 sent again, 1 rejected.");
    expect(textOf()).toContain(`${deliveryOf(1).id} There is no such delivery.`);
    const ids = sentTo("POST redeliver").map(({ path }) => path.split("/").at(-2));
    expect(ids).toEqual([1, 1, 2].map((number) => deliveryOf(number).id));
    await click("Cancel");
    expect(count("dialog")).toBe(0);
    expect(textOf()).not.toContain("Resend");
  });
});

test("deliveries that are sent again: a dialog that was closed sends no more, and says how many it sent", async () => {
  const isClosed = Promise.withResolvers<void>();
  respond("GET deliveries", () => json([2, 1].map((number) => deliveryOf(number))));
  respond("POST redeliver", async () => {
    await isClosed.promise;
    return json({}, {}, 202);
  });
  await start();
  await enter("Select all shown", true);
  for (const name of ["Resend 2", "Resend 2", "Cancel", "Recover…"]) await click(name);
  isClosed.resolve();
  await shows("1 delivery is sent again.");
  expect([sentTo("POST redeliver").length, textOf()]).toEqual([1, expect.stringContaining("Recover deliveries")]);
});

test("an action whose dialog was closed leaves the next dialog open", async () => {
  const isClosed = Promise.withResolvers<void>();
  respond(`PATCH ${webhookId}`, async () => {
    await isClosed.promise;
    return json({ ...webhook, enabled: false });
  });
  await start();
  for (const name of ["Disable", "Disable webhook", "Cancel", "Edit"]) await click(name);
  isClosed.resolve();
  await shows("Webhook disabled.");
  expect(textOf()).toContain("Edit webhook");
});

test("deliveries that are sent again: an error of all ends the run, which continues with the others", async () => {
  respond("GET deliveries", () => json([3, 2, 1].map((number) => deliveryOf(number))));
  const responses = [
    failure(404, "not_found", "There is no such delivery."),
    failure(409, "project_suspended", "The project is suspended."),
  ];
  respond("POST redeliver", () => responses.shift() ?? json({}, {}, 202));
  await start();
  await enter("Select all shown", true);
  for (const name of ["Resend 3", "Resend 3"]) await click(name);
  await shows("The project is suspended.");
  await click("Resend 2");
  await shows("2 of 3 sent again, 1 rejected.");
  const ids = sentTo("POST redeliver").map(({ path }) => path.split("/").at(-2));
  expect(ids).toEqual([1, 2, 2, 3].map((number) => deliveryOf(number).id));
  await click("Cancel");
});

describe("a recovery", () => {
  beforeEach(() => {
    const statuses = ["failed", "failed", "held", "succeeded"];
    // Their ids contain the time of their creation.
    const id = (index: number) =>
      deliveryOf(0)
        .id.replace(/^[\w-]{13}/, now.toString(16).padStart(12, "0").replace(/^.{8}/, "$&-"))
        .replace("d301", `000${index}`);
    respond("GET deliveries", ({ query }) =>
      json(query.limit === "100" ? statuses.map((status, index) => ({ ...deliveryOf(0, status), id: id(index) })) : []),
    );
  });

  const countFirst = async (recovered: string) => {
    await click("Recover…");
    await click("Count");
    await shows(recovered);
  };

  test.each([
    ["Failed and held", undefined, 3],
    ["Failed", "failed", 2],
    ["Held", "held", 1],
  ])("of the last 24 hours with the choice %s sends the status %s", async (choice, status, total) => {
    respond("POST recover", () => json({ count: 0, complete: true, next_cursor: null }, {}, 202));
    await start();
    await countFirst("3 would be sent again: 2 failed, 1 held.");
    // Another choice needs another count.
    await enter("Held", true);
    await enter(choice, true);
    await click("Count");
    await click(`Recover ${total}`);
    await shows("There were no deliveries to recover.");
    const since = new Date(now - 24 * 3_600_000).toISOString();
    expect(sentTo("POST recover").map(({ body }) => body)).toEqual([{ since, ...(status && { status }) }]);
  });

  test("continues call by call until it is complete, and shows the progress", async () => {
    const lastCall = Promise.withResolvers<void>();
    respond("POST recover", async () => {
      const { length } = sentTo("POST recover");
      if (length < 3) return json({ count: 500, complete: false, next_cursor: `c${length}` }, {}, 202);
      await lastCall.promise;
      return json({ count: 3, complete: true, next_cursor: null }, {}, 202);
    });
    await start();
    await countFirst("3 would be sent again");
    // Another time needs another count.
    await enter("Created since", "2026-11-21T00:00");
    await click("Count");
    await click("Recover 3");
    await shows("1000 sent again so far.");
    lastCall.resolve();
    await shows("1003 deliveries are sent again.");
    const bodies = sentTo("POST recover").map(({ body }) => body);
    const first = { since: expect.any(String) };
    expect(bodies).toEqual([first, { ...first, cursor: "c1" }, { ...first, cursor: "c2" }]);
  });

  test("counts the newest 2000 deliveries", async () => {
    const id = `${now.toString(16).padStart(12, "0").replace(/^.{8}/, "$&-")}-7000-8000-00000000d301`;
    const page = Array(100).fill({ ...deliveryOf(0, "failed"), id });
    respond("GET deliveries", () => json(page, { Link: '<https://api.test/v1/next?cursor=c>; rel="next"' }));
    await start();
    await countFirst("At least 2000 would be sent again");
  });

  test("whose dialog was closed makes no further call, and shows what was sent", async () => {
    const isClosed = Promise.withResolvers<void>();
    respond("POST recover", async () => {
      await isClosed.promise;
      const complete = sentTo("POST recover").length > 1;
      return json({ count: 500, complete, next_cursor: complete ? null : "c1" }, {}, 202);
    });
    await start();
    await countFirst("3 would be sent again");
    await click("Recover 3");
    await click("Cancel");
    isClosed.resolve();
    await shows("500 deliveries are sent again.");
    await elapse(5_000);
    expect(sentTo("POST recover")).toHaveLength(1);
  });
});

test("a new key: warns before one that may do everything and one that never expires, and offers each permission", async () => {
  await start("#/keys");
  await click("New key");
  await enter("Everything I may do", true);
  await shows("Who finds this key can do all that you can do");
  expect(textOf()).not.toContain("All my projects");
  await enter("Choose permissions", true);
  await shows("webhooks:write");
  await shows("audit:read");
  await enter("Expires after", "never");
  await shows("The key works until someone revokes it.");
});

test("a new key is for the only project unless others are chosen, and expires after 90 days", async () => {
  respond("POST api-keys", () => json({ id: "k-1", name: "ci", key: "svc_1" }, {}, 201));
  const isOpen = Promise.withResolvers<void>();
  respond("GET v1/projects", async () => {
    await isOpen.promise;
    return json([{ id: projectId, name: "Shop", role: "admin", created_at: at }]);
  });
  await start("#/keys");
  await shows("No API keys yet");
  await click("New key");
  await enter("Name", "ci");
  expect(textOf()).toContain("Choose at least one project.");
  isOpen.resolve();
  await shows("Shop");
  await click("Create key");
  await shows("Your new API key");
  const { project_ids, expires_at } = sentTo("POST api-keys")[0]?.body ?? {};
  expect([project_ids, expires_at.slice(0, 10)]).toEqual([[projectId], "2027-02-19"]);
});

test("a new key may be for 20 projects, and no more", async () => {
  const names = Array.from({ length: 21 }, (_, index) => `project ${index}`);
  respond("GET v1/projects", () => json(names.map((name) => ({ id: name, name, role: "admin", created_at: at }))));
  await start("#/keys");
  await shows("No API keys yet");
  await click("New key");
  for (const name of names.slice(1)) await enter(name, true);
  expect(textOf()).not.toContain("at most 20 projects");
  await enter("project 0", true);
  expect(textOf()).toContain("A key can be limited to at most 20 projects.");
});

test("a new key may have permissions that the platform adds", async () => {
  const platform_permissions = [{ name: "registry:push", description: "push images" }];
  respond("GET current", () => json({ platform_permissions }));
  respond("POST api-keys", () => json({ id: "k-1", name: "ci", key: "svc_1" }, {}, 201));
  await start("#/keys");
  await shows("No API keys yet");
  await click("New key");
  await enter("Name", "ci");
  await enter("Choose permissions", true);
  await shows("push images");
  await enter("registry:push push images", true);
  await enter("All my projects, also later ones", true);
  await click("Create key");
  await shows("Your new API key");
  const find = (name: string) => browser.page.body.all().find(({ localName }) => localName === name);
  // A secret that was copied from its field is not asked about.
  find("textarea")?.dispatchEvent(new Event("copy"));
  await click("Done");
  expect(count("dialog")).toBe(0);
  // Not the button of the form, which is gone.
  expect(textOf(browser.page.activeElement)).toBe("New key");
  const { permissions } = sentTo("POST api-keys")[0]?.body ?? {};
  expect(permissions).toEqual(["projects:read", "webhooks:read", "deliveries:read", "events:read", "registry:push"]);
});

test("the header counts down only the last five minutes of a session", async () => {
  await start("#/keys", 301);
  expect(textOf()).not.toContain("session ends in");
  await shows("session ends in 04:");
});

test("older events that arrive after the filter was changed are not shown", async () => {
  const isChanged = Promise.withResolvers<void>();
  const eventOf = (id: string, event: string) => ({
    ...{ id, event, deployment_id: id, timestamp: at, received_at: at, payload: {} },
  });
  respond("GET events", async ({ query }) => {
    if (query.event) return json([eventOf("e-failed", "deploy.failed")]);
    if (query.after === undefined)
      return json([eventOf("e-new", "deploy.started")], { Link: '<https://api.test/v1/events?after=old>; rel="next"' });
    await isChanged.promise;
    return json([eventOf("e-old", "deploy.started")]);
  });
  await start(`#/projects/${projectId}/events`);
  await shows("e-new");
  await click("Load more");
  await open(`#/projects/${projectId}/events?event=deploy.failed`);
  await shows("e-failed");
  isChanged.resolve();
  await elapse(10_000);
  expect(textOf().match(/e-(old|new|failed)/g)).toEqual(["e-failed"]);
});

test("the search for a deployment shows the one of the address, and a wrong id leaves the filter as it is", async () => {
  const address = `#/projects/${projectId}/deliveries`;
  respond("GET webhooks", () => json([webhook]));
  const field = () => browser.page.body.all().find((node) => node.getAttribute("type") === "search");
  await start(`${address}?deployment_id=${projectId}`);
  await until(() => field()?.value === projectId);
  await elapse(200);
  await enter("Deployment", "123");
  await click("Search");
  expect([browser.location.hash, textsOf("alert")]).toEqual([
    `${address}?deployment_id=${projectId}`,
    ["Not a deployment id. Paste the full id."],
  ]);
  await open(address);
  expect(field()?.value).toBe("");
});

test("a field for a time shows the local time of the browser", async () => {
  const { toLocalInput } = await source("filter-bar.tsx");
  const offset = jest.spyOn(Date.prototype, "getTimezoneOffset").mockReturnValue(-330);
  expect(toLocalInput(new Date("2026-11-21T20:00:00.000Z"))).toBe("2026-11-22T01:30");
  offset.mockRestore();
});

test("the health of a webhook is that of the chosen period, with the attempts that failed", async () => {
  const stats = {
    attempts: 12,
    succeeded: 9,
    success_rate: 0.75,
    response_ms: null,
    buckets: [],
    by_event: [],
    by_error: [],
  };
  respond("GET stats", ({ query }) =>
    json({
      ...stats,
      window: query.window,
      complete: true,
      deliveries_read: query.window === "7d" ? 80 : 10,
      covered_since: at,
    }),
  );
  await start(`${hash}/health`);
  await shows("Covers all 10 deliveries of the last 24 hours.");
  expect(textOf()).toContain("Attempts 12 Succeeded 75 % Failed 3 ");
  await open(`${hash}/health?window=7d`);
  // At once, not at the end of the interval.
  expect(textOf()).toContain("Covers all 80 deliveries of the last 7 days.");
});

test("pages of admins show no message until the role is known, and an expired key is marked", async () => {
  const isShown = Promise.withResolvers<void>();
  respond("GET v1/projects", async () => {
    await isShown.promise;
    return json([{ id: projectId, name: "Shop", role: "viewer", created_at: at }]);
  });
  const key = { id: "k-1", name: "ci", key_prefix: "svc_1", created_at: at, last_used_at: null, expires_at: at };
  respond("GET api-keys", () => json([key]));
  await start(`#/projects/${projectId}/access`);
  expect(textOf()).not.toContain("Only admins");
  isShown.resolve();
  await shows("Only admins of the project see this page");
  await open("#/keys");
  await shows("ci svc_1");
  expect(textOf()).toMatch(/ci svc_1.* expired never/);
});

test("signing in ends the message of the session before, and is sent once", async () => {
  const isAccepted = Promise.withResolvers<void>();
  respond(`GET ${webhookId}`, () => failure(401, "invalid_api_key", "The API key is not valid."));
  await start();
  await shows("Your session has ended");
  await open("#/projects");
  sent = [];
  respond("GET v1/projects", async () => {
    await isAccepted.promise;
    return json([]);
  });
  await enter("JWT or API key", "svc_1");
  for (const name of ["Sign in", "Sign in"]) await click(name);
  expect([sent.length, browser.stored.has("credential")]).toEqual([1, false]);
  isAccepted.resolve();
  await click("Sign out");
  await shows("JWT or API key");
  expect(textOf()).not.toContain("Your session has ended");
});

test("an outage has no box of its own while the device is offline", async () => {
  await start();
  await shows("No deliveries yet");
  browser.isOnline = false;
  browser.window.dispatchEvent(new Event("offline"));
  jest.mocked(globalThis.fetch).mockRejectedValue(new TypeError("Failed to fetch"));
  await elapse(6_000);
  expect([textOf().includes("You are offline."), textOf().includes("Retry now")]).toEqual([true, false]);
});

test("the events of a project: older ones are added page by page, new ones as they are stored", async () => {
  const eventOf = (number: number) => {
    const id = `e-${String(number).padStart(3, "0")}`;
    const time = new Date(now - number * 1000).toISOString();
    const received_at = new Date(Date.parse(time) + 57_000 + number * 1000).toISOString();
    return { id, event: "deploy.started", deployment_id: id, timestamp: time, received_at, payload: {} };
  };
  const link = (after: string, rel: string) => `<https://api.test/v1/events?after=${after}>; rel="${rel}"`;
  const pages: Record<string, [items: number[], link: string]> = {
    "": [[2], `${link("older", "next")}, ${link("new", "monitor")}`],
    older: [[], link("oldest", "next")],
    oldest: [[3], link("last", "next")],
    last: [[4], ""],
    new: [[1], link("newer", "next")],
    newer: [[0], link("newest", "monitor")],
    newest: [[], link("newest", "monitor")],
  };
  respond("GET events", ({ query }) => {
    const [items, Link] = pages[query.after ?? ""] ?? [[], ""];
    return json(items.map(eventOf), { Link });
  });
  const shown = () => textOf().match(/e-\d{3}/g);
  await start(`#/projects/${projectId}/events`);
  await until(() => shown()?.length === 1);
  // A page without events is no reason to click again, and one with an event is no reason to read on.
  await click("Load more");
  expect(shown()).toEqual(expect.arrayContaining(["e-002", "e-003"]));
  await elapse(6_000);
  expect(shown()).toEqual(["e-000", "e-001", "e-002", "e-003"]);
  // The last one was received 60 seconds after its time.
  expect(textOf()).not.toContain("later");
  await click("Load more");
  await until(() => shown()?.includes("e-004") ?? false);
  expect(textOf()).toContain("received 1 min later");
  expect(textOf()).not.toContain("Load more");
  const afters = sentTo("GET events").map(({ query }) => query.after ?? "");
  expect(new Set(afters)).toEqual(new Set(Object.keys(pages)));
});

import { browser, click, count, elapse, enter, shows, textOf, textsOf, until } from "../../support/browser-page.ts";
import {
  at,
  deliveryOf,
  failure,
  hash,
  json,
  projectId,
  respond,
  sentTo,
  start,
  undocumented,
  useConsole,
  webhook,
  webhookId,
} from "../../support/console-app.ts";

/* The console's forms and actions: when they can be sent, what they send, and what they show of errors. */

useConsole();

test("an action runs once at a time", async () => {
  const sentEvent = Promise.withResolvers<Response>();
  respond("POST events", () => sentEvent.promise);
  await start();
  await click("Simulate a deployment");
  for (let clicks = 0; clicks < 2; clicks++) await click("Send deployment event");
  expect(sentTo("POST events")).toHaveLength(1);
  sentEvent.resolve(json({}));
  await shows("deploy.succeeded was added to the queue.");
  await elapse(3_000);
  for (const name of ["Simulate a deployment", "Send deployment event"]) await click(name);
  expect(sentTo("POST events")).toHaveLength(2);
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

  test("shows its error until it is sent again", async () => {
    respond(`PATCH ${webhookId}`, () => failure(409, "conflict", "Not now."));
    await start();
    for (const name of ["Disable", "Disable webhook"]) await click(name);
    expect(textsOf("alert")).toEqual([expect.stringMatching(/^Not now\. conflict .*request r-42$/)]);
    const isSent = Promise.withResolvers<void>();
    respond(`PATCH ${webhookId}`, async () => {
      await isSent.promise;
      return json({});
    });
    await click("Disable webhook");
    expect(textsOf("alert")).toEqual([]);
    isSent.resolve();
  });
});

const access = `#/projects/${projectId}/access`;
const conditions = ["ref", "environment", "job_workflow_ref", "event_name", "repository_owner_id"];
const keyFields = { Name: "ci", "All my projects, also later ones": true } as const;
test.each([
  ["New key", "#/keys", "Create key", "POST api-keys", keyFields, ["name"]],
  ["Rename ci", "#/keys", "Rename", "PATCH k-1", {}, ["name"]],
  [
    "New webhook",
    `#/projects/${projectId}`,
    "Create webhook",
    "POST webhooks",
    { URL: "http://x" },
    ["url", "name", "filter.a"],
  ],
  ["New service account", access, "Create", "POST service-accounts", { Name: "job" }, ["name"]],
  [
    "Trust a workflow",
    access,
    "Trust",
    "POST trusted-workflows",
    { "Repository id": "7" },
    ["issuer", "name", ...conditions],
  ],
] as const)("%s: an error about a field is shown once, at the field, and others in full", async (...row) => {
  const [button, address, verb, route, fields, paths] = row;
  const message = "must be another one";
  const atField = /must be another one/gi;
  let path = "";
  respond("GET api-keys", () =>
    json([{ id: "k-1", name: "ci", key_prefix: "svc_1", created_at: at, last_used_at: null }]),
  );
  for (const list of ["webhooks", "members", "service-accounts", "trusted-workflows"])
    respond(`GET ${list}`, () => json([]));
  respond(route, () => {
    const error = {
      code: "validation_error",
      message: `The input is not valid: ${path} ${message}.`,
      request_id: "r-42",
    };
    const details = path.split(" ").map((each) => ({ path: each, message }));
    return Response.json({ error: { ...error, details } }, { status: 400 });
  });
  await start(address);
  await click(button);
  for (const [label, value] of Object.entries(fields)) await enter(label, value);
  for (path of paths) {
    await click(verb);
    await until(() => textOf().match(atField)?.length === 1);
    expect([path, ...textsOf("alert")]).toEqual([path, expect.stringContaining("that is marked")]);
    const closed = browser.page.body.all().filter(({ localName, open }) => localName === "details" && !open);
    expect(closed.map(textOf).join()).not.toMatch(atField);
  }
  path = `${paths[0]} permissions.0`;
  await click(verb);
  await shows("validation_error");
});

test("a form survives an expired session of its user, and no other one", async () => {
  respond("GET v1/projects", () => json([{ id: projectId, name: "Shop", role: "admin", created_at: at }]));
  respond("GET webhooks", () => json([]));
  const expire = async () => {
    respond("POST webhooks", () => failure(401, "token_expired", "The token has expired."));
    await click("Create webhook");
    await shows("Your session has ended");
  };
  const openForm = async () => {
    await click("New webhook");
    const url = browser.page.body.all().find((node) => node.localName === "label" && textOf(node) === "URL");
    return browser.page.getElementById(url?.getAttribute("for") ?? "")?.value;
  };
  await start(`#/projects/${projectId}`);
  const credential = browser.stored.get("credential") ?? "";
  await openForm();
  await enter("URL", "https://example.com/1");
  await expire();
  await enter("JWT or API key", credential);
  await click("Sign in");
  expect(await openForm()).toBe("https://example.com/1");
  // Whose key it is, is not known.
  const key = `svc_${"0".repeat(64)}`;
  for (const [index, next] of [key, key, credential].entries()) {
    await enter("URL", `https://example.com/2/${index}`);
    await expire();
    await enter("JWT or API key", next);
    await click("Sign in");
    expect([index, await openForm()]).toEqual([index, ""]);
  }
});

test("a machine that was found is not shown with another code, also one that was typed during the search", async () => {
  const found = { client: "build-7", address: null, created_at: at, status: "pending" };
  const isFound = Promise.withResolvers<void>();
  respond("PATCH sign-ins", async () => {
    await isFound.promise;
    return json(found);
  });
  await start("#/sign-in");
  await enter("Code", "BCDF-GHJK");
  await click("Look up");
  await enter("Code", "LMNP-QRST");
  isFound.resolve();
  await elapse(100);
  expect(textOf()).not.toContain("wants to act as you");
  await click("Look up");
  await shows("build-7 wants to act as you");
  await enter("Code", "BCDF-GHJK");
  expect(textOf()).not.toContain("wants to act as you");
});

describe("a user name and password of a URL, sent as a header,", () => {
  const Authorization = `Basic ${btoa("ann:word")}`;
  const enterInto = (name: string, value: string) => {
    const field = browser.page.body.all().find((node) => node.getAttribute("aria-label") === name);
    if (!field) throw new Error(`There is no ${name}.`);
    field.value = value;
    field.dispatchEvent(new Event("input"));
    return elapse(50);
  };

  test("keep the headers that were entered before", async () => {
    respond("GET webhooks", () => json([]));
    await start(`#/projects/${projectId}`);
    await click("New webhook");
    await enter("URL", "https://ann:word@example.com/");
    await click("Add a header");
    await enterInto("Name of header 1", "X-Team");
    await enterInto("Value of header 1", "7");
    for (const name of ["Send them as a header", "Create webhook"]) await click(name);
    expect(sentTo("POST webhooks")[0]?.body).toMatchObject({
      url: "https://example.com/",
      headers: { "X-Team": "7", Authorization },
    });
  });

  test("ask for the headers that the webhook has, and replace its Authorization", async () => {
    respond(`GET ${webhookId}`, () => json({ ...webhook, header_names: ["X-Team", "authorization"] }));
    respond(`PATCH ${webhookId}`, () => json(webhook));
    await start();
    await click("Edit");
    await enter("URL", "https://ann:word@example.com/");
    await click("Send them as a header");
    await enterInto("Value of header 1", "7");
    await click("Save");
    expect(sentTo(`PATCH ${webhookId}`)[0]?.body.headers).toEqual({ "X-Team": "7", Authorization });
  });

  test("do not remove a header of the webhook whose value was left empty: the service refuses it", async () => {
    respond(`GET ${webhookId}`, () => json({ ...webhook, header_names: ["X-Team"] }));
    respond(`PATCH ${webhookId}`, () => failure(400, "validation_error", "There is no value for X-Team."));
    await start();
    await click("Edit");
    await enter("URL", "https://ann:word@example.com/");
    for (const name of ["Send them as a header", "Save"]) await click(name);
    expect(sentTo(`PATCH ${webhookId}`)[0]?.body.headers).toEqual({ "X-Team": "", Authorization });
    // The rule of the service that it breaks.
    expect(undocumented.splice(0)).toEqual([expect.stringContaining("/headers/X-Team ")]);
    expect(textsOf("alert")).toEqual([expect.stringContaining("There is no value for X-Team.")]);
  });
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
  ["a delivery that is redelivered", `${hash}/deliveries/${newest.id}`, newest.id, [], {}, ["Resend"]],
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
  const urls = sentTo("POST webhooks").map(({ body }) => body.url);
  expect(urls).toEqual(end === "webhooks" ? ["https://example.com"] : []);
});

/** Whether the form of the dialog can be sent. */
const isReady = () =>
  browser.page.body.all().find((node) => node.getAttribute("type") === "submit" && node.closest("dialog"))?.disabled ===
  false;

const read = ["webhooks:read list and show webhooks", "deliveries:read list and show deliveries"];
const ciRead = ["projects:read list the projects", ...read, "events:read read the deployment events"];
const chosenEvents = ["deploy.succeeded", "deploy.failed"];
test.each([
  ["New key", "#/keys", { Name: "ci" }, ["Choose permissions", ...ciRead]],
  ["New webhook", `#/projects/${projectId}`, { URL: "https://example.com" }, chosenEvents],
  ["Trust a workflow", `#/projects/${projectId}/access`, { "Repository id": "7", "CI system": "gitlab" }, read],
  ["New service account", `#/projects/${projectId}/access`, { Name: "job" }, []],
])(
  "%s: the form can be sent once every required field is set and something is chosen",
  async (name, address, fields, boxes) => {
    for (const list of ["webhooks", "members", "service-accounts", "trusted-workflows"])
      respond(`GET ${list}`, () => json([]));
    await start(address);
    await click(name);
    for (const [label, value] of Object.entries(fields)) await enter(label, value);
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
  await enter("Shop", true);
  expect(textOf()).toContain("Choose at least one project.");
  await enter("Shop", true);
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
  await enter("Name", "ci");
  for (const name of names.slice(1)) await enter(name, true);
  expect([isReady(), textOf()]).toEqual([true, expect.not.stringContaining("at most 20 projects")]);
  await enter("project 0", true);
  expect([isReady(), textOf()]).toEqual([
    false,
    expect.stringContaining("A key can be limited to at most 20 projects."),
  ]);
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
  // The documentation has the permissions of the service alone.
  expect(undocumented.splice(0)).toEqual([expect.stringContaining("/permissions/4 ")]);
});

/** Creates a key that never expires. @param choice what it may do @returns what was sent */
async function createKey(choice: string): Promise<unknown[]> {
  await enter("Name", "ci");
  await enter(choice, true);
  await enter("Expires after", "never");
  await click("Create key");
  await shows("Your new API key");
  return sentTo("POST api-keys").map(({ body }) => body);
}

test("a new service account is listed at once, and its first key names neither permissions nor projects", async () => {
  const account = { id: "a-1", project_id: projectId, name: "job", role: "admin", created_at: at, created_by: "me" };
  const accounts: object[] = [];
  respond("GET trusted-workflows", () => json([]));
  respond("GET service-accounts", () => json(accounts));
  respond("POST service-accounts", () => json(accounts[accounts.push(account) - 1], {}, 201));
  respond("POST api-keys", () => json({ id: "k-1", name: "ci", key: "svc_1" }, {}, 201));
  await start(`#/projects/${projectId}/access`);
  await click("New service account");
  await enter("Name", "job");
  await enter("admin: its keys may read and change", true);
  await click("Create");
  await shows("New key for “job”");
  expect([sentTo("GET service-accounts").length, count("tr")]).toEqual([2, 2]);
  expect(sentTo("POST service-accounts")[0]?.body).toEqual({ name: "job", role: "admin" });
  expect(await createKey("Everything that a project admin may do")).toEqual([{ name: "ci" }]);
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

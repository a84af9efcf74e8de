import { jest } from "@jest/globals";
import {
  account,
  ago,
  bucket,
  certified,
  checks,
  deliveryOf,
  deploymentId,
  events,
  key,
  later,
  newest,
  otherProjectId,
  report,
  stats,
  unhealthy,
  workflow,
} from "../../support/api-samples.ts";
import { browser, click, elapse, enter, outlineOf, shows, textOf, textsOf } from "../../support/browser-page.ts";
import {
  at,
  failure,
  hash,
  json,
  projectId,
  respond,
  respondWithSamples,
  sent,
  show,
  source,
  start,
  useConsole,
  webhook,
  webhookId,
} from "../../support/console-app.ts";

/* What each screen and each dialog shows, element by element, in __snapshots__. What a click does is tested beside it. */

useConsole();

beforeEach(async () => {
  (await source("data/session.ts")).clearSession();
  const inUtc = function (this: Date, _: unknown, options?: object) {
    return `${this.toISOString()} ${Object.values(options ?? {})}`;
  };
  jest.spyOn(Date.prototype, "toLocaleString").mockImplementation(inUtc);
  jest.spyOn(Date.prototype, "getTimezoneOffset").mockReturnValue(0);
  jest.spyOn(Number.prototype, "toLocaleString").mockImplementation(function (this: number) {
    return String(this);
  });
  respondWithSamples();
});

interface Screen {
  address: string;
  /** The responses that differ from those above. */
  responses?: [route: string, data: object | (() => Response)][];
  /** The label of the part that differs from the other screens. Absent = the whole screen. */
  part?: string;
  /** Opens a dialog or a part of the screen. */
  steps?: () => Promise<void>;
}
const project = `#/projects/${projectId}`;
const withWebhook = (changes: object): NonNullable<Screen["responses"]> => [
  [`GET ${webhookId}`, { ...webhook, ...changes }],
  ["GET deliveries", []],
];
const withDelivery = (changes: object): Screen["responses"] => [
  [`GET ${newest.id}`, { ...newest, payload: {}, attempts: [], ...changes }],
];
const withReport = (changes: object): NonNullable<Screen["responses"]> => [["GET c-1", { ...report, ...changes }]];
const detail = `${hash}/deliveries/${newest.id}`;
const certification = `${hash}/certification?id=c-1`;
/** The title of the page and what it shows. The end that all ids have in common is left out. */
const seen = (node: Parameters<typeof outlineOf>[0] | null) =>
  `${browser.page.title}\n${outlineOf(node ?? undefined)}`.replaceAll("-0000-7000-8000-00000000d301", "");
const clicks =
  (...names: string[]) =>
  async () => {
    for (const name of names) await click(name);
  };
const waiting = { client: "svc on build-7", address: "192.0.2.1", created_at: webhook.created_at, status: "pending" };
const noCode = { error: { code: "not_found", message: "No machine waits with this code.", request_id: "r-42" } };
async function lookUp(): Promise<void> {
  await enter("Code", "BCDF-GHJK");
  await click("Look up");
}
/** Counts in the dialog of a recovery. The ids of the samples contain times of 2024. */
async function countSince2020(): Promise<void> {
  await click("Resend…");
  await enter("Created since", "2020-01-01T00:00");
  await click("Count");
}

const ofProduct = {
  format: "github-dispatch",
  header_names: ["Authorization"],
  delivery: "latest",
  settle_seconds: 5,
} as const;

const screens: Record<string, Screen> = {
  projects: { address: "#/projects" },
  "no projects": { address: "#/projects", responses: [["GET v1/projects", []]] },
  "webhooks of a project": { address: project },
  "no webhooks": { address: project, responses: [["GET webhooks", []]] },
  "a project that is not of the user": {
    address: `#/projects/${webhookId}`,
    responses: [["GET webhooks", () => failure(404, "not_found", "No project with this id exists.")]],
  },
  "webhooks of a project, for a viewer": { address: `#/projects/${otherProjectId}` },
  "deliveries of a project": { address: `${project}/deliveries` },
  "deliveries of a project, filtered": { address: `${project}/deliveries?until=${at}`, part: "Deliveries" },
  "deliveries of a project without webhooks": { address: `${project}/deliveries`, responses: [["GET webhooks", []]] },
  "deliveries of a project, for a viewer": { address: `#/projects/${otherProjectId}/deliveries` },
  "events of a project": { address: `${project}/events` },
  "no events": { address: `${project}/events`, responses: [["GET events", []]] },
  "no events that match": { address: `${project}/events?event=deploy.failed`, responses: [["GET events", []]] },
  "access to a project": { address: `${project}/access` },
  "audit of a project": { address: `${project}/audit` },
  "audit of a project, for a viewer": { address: `#/projects/${otherProjectId}/audit` },
  "a new webhook": { address: project, steps: clicks("New webhook") },
  "a webhook": { address: hash, responses: withWebhook({ name: "Chat", last_certification: certified }) },
  "a webhook with a format, headers and the latest state": {
    address: `${hash}/certification`,
    responses: withWebhook({ ...ofProduct, events: ["deploy.*", "build.queued"], last_certification: certified }),
  },
  "a webhook with a format is edited": { address: hash, responses: withWebhook(ofProduct), steps: clicks("Edit") },
  "a new webhook of Slack": {
    address: project,
    steps: async () => {
      await click("New webhook");
      await enter("URL", "https://hooks.slack.com/services/T0/B0/x");
    },
  },
  "a new webhook of Slack with another format, and a password in its URL": {
    address: project,
    steps: async () => {
      await click("New webhook");
      await enter("URL", "https://ann:word@hooks.slack.com/services/T0/B0/x");
      await click("Send them as a header");
      await enter("Format", "discord");
    },
  },
  "a delivery that is superseded": {
    address: `${hash}/deliveries/${newest.id}`,
    part: "Delivery",
    responses: [
      [`GET ${newest.id}`, { ...deliveryOf(1, "superseded"), superseded_by: newest.id, payload: {}, attempts: [] }],
    ],
  },
  "a webhook, for a viewer": { address: hash.replace(projectId, otherProjectId) },
  "a webhook with a filter": {
    address: `${hash}/certification`,
    responses: withWebhook({ filter: { environment: ["production"] } }),
  },
  "a webhook that fails": {
    address: `${hash}/certification`,
    responses: withWebhook({ health: { ...unhealthy, state: "probing", next_probe_at: later(60) } }),
  },
  "a slow webhook": {
    address: `${hash}/certification`,
    responses: withWebhook({ health: { ...webhook.health, state: "slow", since: ago(120) } }),
  },
  "a webhook that was disabled": {
    address: hash,
    responses: withWebhook({ enabled: false, disabled_at: ago(60), disabled_reason: "failing" }),
  },
  "a webhook of a suspended project": { address: hash, responses: withWebhook({ suspended_at: ago(60) }) },
  "a webhook in shadow mode": { address: hash, responses: withWebhook({ mode: "shadow" }) },
  "an error with details": {
    address: hash,
    responses: [
      [
        `GET ${webhookId}`,
        () => {
          const details = ["is long", "is not a URL"].map((message) => ({ path: "url", message }));
          return Response.json(
            { error: { code: "validation_error", message: "The url is long.", request_id: "r-42", details } },
            { status: 400 },
          );
        },
      ],
    ],
  },
  "a webhook that does not exist": {
    address: hash,
    responses: [[`GET ${webhookId}`, () => failure(404, "not_found", "No webhook with this id exists.")]],
  },
  "no deliveries that match": {
    address: `${hash}?status=failed&since=${ago(60)}`,
    part: "Deliveries",
    responses: [["GET deliveries", []]],
  },
  "no deliveries with an error": {
    address: `${hash}?error_code=timeout`,
    part: "Deliveries",
    responses: [["GET deliveries", []]],
  },
  "what waits is sent": {
    address: hash,
    responses: withWebhook({ health: { ...unhealthy, state: "probing", next_probe_at: later(60) } }),
    steps: clicks("Send what waits"),
  },
  "a deployment is simulated": { address: project, steps: clicks("Simulate a deployment") },
  "chosen deliveries": {
    address: hash,
    steps: async () => {
      await enter(
        `Select deploy.failed to https://example.com/hook, failing, ${at} 2-digit,2-digit (00000000d301)`,
        true,
      );
      await click("Resend 1");
    },
  },
  "health of a webhook": {
    address: `${hash}/health`,
    part: "Health",
    responses: withWebhook({ health: { ...unhealthy, next_probe_at: later(60) } }),
  },
  "health of a webhook without deliveries": {
    address: `${hash}/health?window=7d`,
    part: "Health",
    responses: [
      [
        "GET stats",
        {
          ...{ ...stats, window: "7d", deliveries_read: 0, attempts: 0, succeeded: 0, success_rate: null },
          ...{ response_ms: null, by_event: [], by_error: [], buckets: [bucket] },
        },
      ],
    ],
  },
  "health of one delivery": {
    address: `${hash}/health`,
    part: "Health",
    responses: [["GET stats", { ...stats, deliveries_read: 1 }]],
  },
  "health of the newest deliveries only": {
    address: `${hash}/health`,
    part: "Health",
    responses: [["GET stats", { ...stats, complete: false }]],
  },
  "a webhook without a certification": { address: `${hash}/certification`, part: "Certification" },
  "a webhook without a certification, for a viewer": {
    address: `${hash.replace(projectId, otherProjectId)}/certification`,
    part: "Certification",
  },
  "a certification that runs": { address: certification, part: "Certification" },
  "a certification that was passed": {
    address: certification,
    part: "Certification",
    responses: [
      ...withReport({ status: "finished", passed: true, checks: [checks[0]] }),
      // A later one, which the address does not name.
      ...withWebhook({ last_certification: { ...certified, id: "c-2" } }),
    ],
  },
  "a certification that was not passed": {
    address: certification,
    part: "Certification",
    responses: withReport({ status: "finished", passed: false, checks }),
  },
  "a certification whose report is no longer kept": {
    address: certification,
    part: "Certification",
    responses: [["GET c-1", () => failure(404, "not_found", "No certification with this id exists.")]],
  },
  "a certification of a suspended project": {
    address: certification,
    part: "Certification",
    responses: [["GET c-1", () => failure(403, "project_suspended", "The project is suspended.")]],
  },
  "a certification that was not finished": {
    address: certification,
    part: "Certification",
    responses: withReport({ status: "unfinished" }),
  },
  "code to verify": { address: `${hash}/verify`, part: "Verify" },
  "a delivery that waits for its retry": { address: detail, part: "Delivery" },
  "a delivery, for a viewer": { address: detail.replace(projectId, otherProjectId), part: "Delivery" },
  "an attempt as it was sent": {
    address: detail,
    part: "Delivery",
    steps: async () => {
      const [opened] = browser.page.body.all().filter((node) => node.getAttribute("class") === "as-sent");
      Object.assign(opened ?? {}, { open: true });
      opened?.dispatchEvent(new Event("toggle"));
    },
  },
  "a delivery that is being sent": {
    address: detail,
    part: "Delivery",
    responses: withDelivery({ waiting_for: null, next_attempt_at: at }),
  },
  "a delivery that waits for a sender": {
    address: detail,
    part: "Delivery",
    responses: withDelivery({ waiting_for: "busy", deployment_id: deploymentId, test: true }),
  },
  "a delivery that waits for the recovery": {
    address: detail,
    part: "Delivery",
    responses: withDelivery({ waiting_for: "recovery" }),
  },
  "a delivery that is on hold": {
    address: detail,
    part: "Delivery",
    responses: withDelivery({ waiting_for: "suspended", next_attempt_at: null }),
  },
  "a delivery in shadow mode": {
    address: detail,
    part: "Delivery",
    responses: withDelivery({
      ...{ status: "shadowed", waiting_for: null, next_attempt_at: null, last_attempt: null },
      shadow: { at: ago(60), headers: { "webhook-id": "d-1", "webhook-signature": "v1,abc=" } },
    }),
  },
  "the sign-in of a machine": { address: "#/sign-in" },
  "the sign-in of a machine that is found": {
    address: "#/sign-in",
    responses: [["PATCH sign-ins", waiting]],
    steps: lookUp,
  },
  "a code that is none": {
    address: "#/sign-in",
    responses: [["PATCH sign-ins", () => Response.json(noCode, { status: 404 })]],
    steps: lookUp,
  },
  "API keys": { address: "#/keys" },
  "no API keys": { address: "#/keys", responses: [["GET api-keys", []]] },
  "audit of the user": { address: "#/audit" },
  "nothing in the audit": { address: "#/audit", responses: [["GET audit-events", []]] },
  "an unknown page": { address: "#/elsewhere" },
  "a new API key": { address: "#/keys", steps: clicks("New key") },
  "a new API key with chosen permissions": {
    address: "#/keys",
    steps: async () => {
      await click("New key");
      await enter("Choose permissions", true);
      await enter("All my projects, also later ones", true);
    },
  },
  "a new API key without limits": {
    address: "#/keys",
    steps: async () => {
      await click("New key");
      await enter("Everything I may do", true);
      await enter("Expires after", "never");
    },
  },
  "a key that is shown once": {
    address: "#/keys",
    responses: [["POST api-keys", { ...key, key: "svc_1234567890" }]],
    steps: async () => {
      await click("New key");
      await enter("Name", "ci");
      await enter("All my projects, also later ones", true);
      await click("Create key");
    },
  },
  "a key is renamed": { address: "#/keys", steps: clicks("Rename ci") },
  "a key is rolled": { address: "#/keys", steps: clicks("Roll ci") },
  "a key is revoked": { address: "#/keys", steps: clicks("Revoke ci") },
  "a new service account": { address: `${project}/access`, steps: clicks("New service account") },
  "keys of a service account": { address: `${project}/access`, steps: clicks("Keys deploy job") },
  "a new key of a service account": { address: `${project}/access`, steps: clicks("Keys deploy job", "New key") },
  "a service account is deleted": { address: `${project}/access`, steps: clicks("Delete deploy job") },
  "a workflow is trusted": { address: `${project}/access`, steps: clicks("Trust a workflow") },
  "a trusted workflow is deleted": { address: `${project}/access`, steps: clicks("Delete main") },
  "a filter that is tried": {
    address: `${hash}/certification`,
    responses: [...withWebhook({ filter: { environment: ["production"] } }), ["GET events", events]],
    steps: clicks("Try on the last 100 events"),
  },
  "a filter that is tried without events": {
    address: `${hash}/certification`,
    responses: [...withWebhook({ filter: { environment: ["production"] } }), ["GET events", []]],
    steps: clicks("Try on the last 100 events"),
  },
  "a webhook is created with headers and the latest state": {
    address: project,
    responses: [["POST webhooks", { ...webhook, secret: "whsec_1234" }]],
    steps: async () => {
      await click("New webhook");
      await enter("URL", "https://ann:word@example.com/hook");
      await click("Send them as a header");
      await enter("Only the latest state an event is not sent once a newer one of its deployment exists", true);
      await enter("Seconds that an event waits for a newer one", "5");
      await enter("Format", "cloudevents");
      await click("Create webhook");
    },
  },
  "a webhook loses its headers and its format": {
    address: hash,
    responses: withWebhook(ofProduct),
    steps: async () => {
      await click("Edit");
      await enter("Format", "standard");
      await click("Replace all headers");
      await click("Remove header 1");
      await click("Save");
    },
  },
  "a webhook is edited": {
    address: hash,
    responses: withWebhook({ name: "Chat", filter: { a: ["b"] } }),
    steps: clicks("Edit"),
  },
  "a filter that is not valid": {
    address: hash,
    steps: async () => {
      await click("Edit");
      await enter("Filter optional", "environment=production\nbranch");
    },
  },
  "a secret is rotated": { address: hash, steps: clicks("Rotate secret") },
  "a secret that was not copied": {
    address: hash,
    responses: [["POST rotate-secret", { ...webhook, secret: "whsec_1234" }]],
    steps: clicks("Rotate secret", "Rotate", "Close"),
  },
  "the secret of a new webhook": {
    address: project,
    responses: [["POST webhooks", { ...webhook, secret: "whsec_1234" }]],
    steps: async () => {
      await click("New webhook");
      await enter("URL", "https://example.com/hook");
      await click("Create webhook");
    },
  },
  "a test delivery": { address: hash, steps: clicks("Send test") },
  "a webhook is disabled": { address: hash, steps: clicks("Disable") },
  "a webhook is deleted": { address: hash, steps: clicks("Delete") },
  "deliveries are recovered": { address: hash, steps: clicks("Resend…") },
  "more deliveries than are counted": { address: hash, steps: countSince2020 },
  "deliveries that are being counted": {
    address: hash,
    steps: async () => {
      await click("Resend…");
      respond("GET deliveries", () => new Promise(() => {}));
      await click("Count");
    },
  },
  "deliveries are counted before they are recovered": {
    address: hash,
    responses: [["GET deliveries", [deliveryOf(1, "held"), deliveryOf(2, "failed")]]],
    steps: countSince2020,
  },
  "a certification is requested": { address: `${hash}/certification`, steps: clicks("Certify…") },
};

const labelled = (label: string) =>
  browser.page.body.all().find((node) => node.getAttribute("aria-label") === label && node.localName === "section");

test.each(Object.entries(screens))("%s", async (_, { address, responses = [], part, steps }) => {
  for (const [route, data] of responses) respond(route, typeof data === "function" ? () => data() : () => json(data));
  await start(address);
  await elapse(1_000);
  await steps?.();
  await elapse(100);
  const shown = part ? labelled(part) : browser.page.getElementById("main");
  const dialog = browser.page.querySelector("dialog[open]");
  expect(seen(dialog ?? shown)).toMatchSnapshot();
  if (!dialog || !textOf(dialog).includes("Cancel")) return;
  sent.length = 0;
  await click("Cancel");
  expect([browser.page.querySelector("dialog[open]"), sent.filter(({ method }) => method !== "GET")]).toEqual([
    null,
    [],
  ]);
});

test.each(Object.entries(screens).filter(([, { steps }]) => steps === undefined))(
  "%s, while it loads",
  async (_, screen) => {
    const own = screen.responses?.map(([route]) => route) ?? [];
    const loads = ["webhooks", "stats", "deliveries", "events", "api-keys", "service-accounts", "audit-events", "c-1"];
    for (const route of [...own, ...loads.map((name) => `GET ${name}`)]) respond(route, () => new Promise(() => {}));
    await start(screen.address);
    await elapse(1_000);
    const skeletons = browser.page.body.all().filter((node) => node.getAttribute("class") === "skeleton");
    expect(skeletons.map(({ childNodes }) => childNodes.length)).toMatchSnapshot();
  },
);

/** What ends with a request that changes something, or with a new address. */
const actions: Record<string, Screen> = {
  "the sign-in of a machine is approved": {
    address: "#/sign-in",
    responses: [["PATCH sign-ins", waiting]],
    steps: async () => {
      await lookUp();
      await click("Choose what it may do…");
      await enter("Everything I may do", true);
      await click("Give it a key");
    },
  },
  "the sign-in of a machine is denied": {
    address: "#/sign-in",
    responses: [["PATCH sign-ins", waiting]],
    steps: async () => {
      await lookUp();
      await click("Deny");
    },
  },
  "a webhook is created": {
    address: project,
    responses: [["POST webhooks", { ...webhook, secret: "whsec_1234" }]],
    steps: async () => {
      await click("New webhook");
      await enter("URL", "https://example.com/hook");
      await click("Create webhook");
    },
  },
  "a webhook is created with all that is optional": {
    address: project,
    responses: [["POST webhooks", { ...webhook, secret: "whsec_1234" }]],
    steps: async () => {
      await click("New webhook");
      await enter("URL", "https://example.com/hook");
      await enter("Name optional", "Chat");
      await enter("Filter optional", "branch=main");
      await click("Create webhook");
    },
  },
  "a webhook is edited": {
    address: hash,
    steps: async () => {
      await click("Edit");
      await enter("URL", "https://example.com/2");
      await enter("Filter optional", "branch=main");
      await click("Save");
    },
  },
  "a webhook loses its name and its filter, and gets another event": {
    address: hash,
    responses: withWebhook({ name: "Chat", filter: { a: ["b"] } }),
    steps: async () => {
      await click("Edit");
      await enter("Name optional", " ");
      await enter("Filter optional", " ");
      await enter("deploy.started a build has started", true);
      await click("Save");
    },
  },
  "a webhook goes live": { address: hash, responses: withWebhook({ mode: "shadow" }), steps: clicks("Go live") },
  "a deployment is simulated": {
    address: hash,
    responses: [["POST events", {}]],
    steps: clicks("Simulate a deployment", "Send deployment event"),
  },
  "a key without limits is created": {
    address: "#/keys",
    responses: [["POST api-keys", { ...key, key: "svc_1" }]],
    steps: async () => {
      await click("New key");
      await enter("Name", "ci");
      await enter("Everything I may do", true);
      await enter("Expires after", "never");
      await click("Create key");
    },
  },
  "a workflow is trusted": {
    address: `${project}/access`,
    responses: [["POST trusted-workflows", {}]],
    steps: async () => {
      await click("Trust a workflow");
      await enter("Repository id", " 7 ");
      await enter("Environment optional", " ");
      await enter("Event optional", " push ");
      await click("Trust");
    },
  },
  "a webhook is not changed": { address: hash, steps: clicks("Edit", "Save") },
  "a webhook is disabled": { address: hash, steps: clicks("Disable", "Disable webhook") },
  "a webhook is enabled": { address: hash, responses: withWebhook({ enabled: false }), steps: clicks("Enable") },
  "a webhook is deleted": { address: hash, steps: clicks("Delete", "Delete webhook") },
  "a test delivery is sent": {
    address: hash,
    responses: [["POST test", newest]],
    steps: clicks("Send test", "Send test"),
  },
  "a delivery is sent again": { address: detail, responses: [["POST redeliver", newest]], steps: clicks("Resend") },
  "deliveries are recovered": {
    address: hash,
    responses: [
      ["GET deliveries", [deliveryOf(1, "held"), deliveryOf(2, "failed")]],
      ["POST recover", { count: 2, complete: true }],
    ],
    steps: async () => {
      await countSince2020();
      await click("Resend 2");
    },
  },
  "a certification is requested": {
    address: `${hash}/certification`,
    responses: [["POST certify", report]],
    steps: clicks("Certify…", "Certify"),
  },
  "a key is renamed": {
    address: "#/keys",
    steps: async () => {
      await click("Rename ci");
      await enter("Name", "build");
      await click("Rename");
    },
  },
  "a key is rolled": {
    address: "#/keys",
    responses: [["POST roll", { ...key, key: "svc_1" }]],
    steps: async () => {
      await click("Roll ci");
      await enter("1 hour", true);
      await click("Roll key");
    },
  },
  "a secret is discarded": {
    address: hash,
    responses: [["POST rotate-secret", { ...webhook, secret: "whsec_1234" }]],
    steps: clicks("Rotate secret", "Rotate", "Close", "Close"),
  },
  "a key is revoked": { address: "#/keys", steps: clicks("Revoke ci", "Revoke key") },
  "a service account is deleted": { address: `${project}/access`, steps: clicks("Delete deploy job", "Delete") },
  "a trusted workflow is deleted": { address: `${project}/access`, steps: clicks("Delete main", "Delete") },
};

/** Opens a screen, takes its steps, and lets the requests end. */
async function take({ address, responses = [], steps }: Screen, response: (data: unknown) => Response): Promise<void> {
  const ids = [webhookId, key.id, account.id, workflow.id];
  const changes = ids.flatMap((id) => ["PATCH", "DELETE"].map((method): [string, object] => [`${method} ${id}`, {}]));
  for (const [route, data] of [...changes, ...responses])
    respond(route, () => (route.startsWith("GET") ? json(data) : response(data)));
  await start(address);
  await elapse(1_000);
  await steps?.();
  await elapse(1_000);
}

test.each(Object.entries(actions))("an action: %s", async (_, action) => {
  await take(action, json);
  const changes = sent.filter(({ method }) => method !== "GET");
  const lines = changes.map(({ method, path, body }) => `${method} ${path} ${JSON.stringify(body) ?? ""}`.trim());
  const title = browser.page.querySelector("dialog[open]")?.childNodes[0]?.textContent;
  const since2020 = new Date("2020-01-01T00:00").toISOString();
  const shown = [...lines, browser.location.hash, textsOf("status").at(-1), title, ...textsOf("alert")];
  expect(
    shown
      .filter(Boolean)
      .join("\n")
      .replace(since2020, "2020-01-01 in local time")
      .replaceAll("-0000-7000-8000-00000000d301", ""),
  ).toMatchSnapshot();
});

test.each(Object.entries(actions).filter(([name]) => !/^(a secret is discarded|the sign-in of a machine)/.test(name)))(
  "an action that fails says why, and nothing else: %s",
  async (_, action) => {
    await take(action, () => failure(409, "conflict", "Not now."));
    const announcement = browser.page.body.all().find((node) => node.getAttribute("class") === "announcement");
    const { hash } = browser.location;
    expect([textsOf("alert").length, announcement && textOf(announcement), hash]).toEqual([1, "", action.address]);
    expect(textsOf("alert")[0]).toContain("Not now.");
  },
);

test("the page around a screen, which counts down the end of the session and says that the device is offline", async () => {
  browser.isOnline = false;
  browser.page.activeElement = browser.page.body;
  await start("#/elsewhere", 100);
  await elapse(200);
  expect(seen(browser.page.body)).toMatchSnapshot();
  // The browser sets the focus of the first screen.
  expect(browser.page.activeElement).toBe(browser.page.body);
});

test("the page around a screen, with an API key", async () => {
  browser.stored.set("credential", `svc_${"0".repeat(64)}`);
  show();
  await shows("Sign out");
  expect(seen(browser.page.body)).toMatchSnapshot();
});

test("the sign-in page of a local run", async () => {
  browser.stored.clear();
  show({ signInCommand: "npm run open" });
  await elapse(200);
  expect(seen(browser.page.body)).toMatchSnapshot();
});

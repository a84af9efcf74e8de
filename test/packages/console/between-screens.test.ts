/**
 * @jest-environment-options {"timeZone":"America/New_York"}
 */
import { jest } from "@jest/globals";
import {
  account,
  at,
  deliveryOf,
  deploymentId,
  key,
  later,
  newest,
  report,
  webhooks,
  workflow,
} from "../../support/api-samples.ts";
import {
  browser,
  click,
  elapse,
  enter,
  open,
  outlineOf,
  shows,
  textOf,
  textsOf,
  until,
} from "../../support/browser-page.ts";
import {
  close,
  failure,
  hash,
  json,
  now,
  projectId,
  respond,
  respondWithSamples,
  sent,
  sentTo,
  source,
  start,
  startWithKey,
  useConsole,
  webhook,
  webhookId,
} from "../../support/console-app.ts";

/* What holds for every screen, list or form: what it leaves behind for the next one, and what it does as time passes. */

useConsole();

const otherProjectId = "0193a000-0000-7000-8000-00000000d303";
const otherWebhookId = "0193b000-0000-7000-8000-00000000d303";
const project = `#/projects/${projectId}`;
const otherProject = `#/projects/${otherProjectId}`;
const otherHash = `${otherProject}/webhooks/${otherWebhookId}`;
const detail = `${hash}/deliveries/${newest.id}`;
const clicks =
  (...names: string[]) =>
  async () => {
    for (const name of names) await click(name);
  };

beforeEach(async () => {
  (await source("data/session.ts")).clearSession();
  respondWithSamples();
  const shop = { id: projectId, name: "Shop", role: "admin", created_at: at };
  respond("GET v1/projects", () => json([shop, { ...shop, id: otherProjectId, name: "Library" }]));
  const last_certification = { id: "c-2", finished_at: at, passed: true };
  const other = { ...webhook, id: otherWebhookId, project_id: otherProjectId, last_certification };
  respond(`GET ${otherWebhookId}`, () => json(other));
  respond("GET c-2", () => json({ ...report, id: "c-2", status: "finished", passed: true }));
});

/** The requests since they were counted last, by the end of the path. */
function countRequests(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { path } of sent.splice(0)) {
    const end = path.split("/").at(-1) ?? "";
    counts[end] = (counts[end] ?? 0) + 1;
  }
  return counts;
}

const { length } = webhooks;
test.each<[name: string, address: string, inAMinute: Record<string, number>, once?: string[]]>([
  ["projects", "#/projects", { webhooks: 4 }],
  ["API keys", "#/keys", { "api-keys": 5 }],
  ["audit", "#/audit", { "audit-events": 5 }],
  ["webhooks", project, { webhooks: 7, stats: length }, ["stats"]],
  ["deliveries of a project", `${project}/deliveries`, { webhooks: 7, deliveries: 7 }],
  ["events", `${project}/events`, { webhooks: 7, events: 13 }],
  ["access", `${project}/access`, { members: 1, "service-accounts": 5, "trusted-workflows": 5 }, ["members"]],
  ["audit of a project", `${project}/audit`, { "audit-events": 5 }],
  ["a webhook with a pending delivery", hash, { [webhookId]: 13, deliveries: 31 }],
  ["a list with a filter", `${hash}?event=deploy.failed`, { [webhookId]: 13, deliveries: 7 }],
  ["a pending delivery", detail, { [webhookId]: 13, deliveries: 31, [newest.id]: 41 }],
  ["health", `${hash}/health`, { [webhookId]: 13, stats: 2 }],
  [
    "a delivery that has succeeded",
    `${otherHash}/deliveries/${deliveryOf(1).id}?status=succeeded`,
    { [otherWebhookId]: 13, deliveries: 21, [deliveryOf(1).id]: 7 },
  ],
  ["a running certification", `${hash}/certification?id=c-1`, { [webhookId]: 13, "c-1": 41 }],
  ["a finished certification", `${otherHash}/certification`, { [otherWebhookId]: 13, "c-2": 1 }, ["c-2"]],
])("%s: loads at its interval, pauses in a hidden tab, and ends with the screen", async (...row) => {
  const [, address, inAMinute, once = []] = row;
  respond("GET events", () => json([], { Link: '<https://api.test/v1/events?after=new>; rel="monitor"' }));
  respond(`GET ${otherWebhookId}/deliveries`, () => json([deliveryOf(1)]));
  respond(`GET ${deliveryOf(1).id}`, () => json({ ...deliveryOf(1), payload: {}, attempts: [] }));
  await start(address);
  await elapse(61_000);
  expect(countRequests()).toEqual({ projects: 3, ...inAMinute });
  browser.page.hidden = true;
  await elapse(60_000);
  expect(countRequests()).toEqual({});
  browser.page.hidden = false;
  // Nothing is due at the second one, nor for a device that is online again.
  for (const _ of [1, 2]) {
    browser.page.dispatchEvent(new Event("visibilitychange"));
    browser.window.dispatchEvent(new Event("online"));
    await elapse(100);
  }
  const ends = ["projects", ...Object.keys(inAMinute)].filter((end) => !once.includes(end));
  // The list of projects loads the webhooks of each.
  const times = (end: string) => (address === "#/projects" && end === "webhooks" ? 2 : 1);
  expect(countRequests()).toEqual(Object.fromEntries(ends.map((end) => [end, times(end)])));
  await open("#/elsewhere");
  expect([textOf(browser.page.activeElement), browser.page.title]).toEqual([
    "Page not found",
    "Page not found · Deployment webhooks",
  ]);
  sent.length = 0;
  await elapse(65_000);
  expect(countRequests()).toEqual({ projects: 2 });
});

test("the statistics of a webhook that appears in a list are loaded at once", async () => {
  respond("GET webhooks", () => json([webhook]));
  await start(project);
  await elapse(1_000);
  respond("GET webhooks", () => json([webhook, { ...webhook, id: otherWebhookId }]));
  sent.length = 0;
  await elapse(10_000);
  expect(sentTo("GET stats").map(({ path }) => path.split("/").at(-2))).toEqual([webhookId, otherWebhookId]);
});

test("times relative to now change as time passes, without a request", async () => {
  await start(`${hash}/health`);
  respond(`GET ${webhookId}`, () => json({ ...webhook, health: { ...webhook.health, state: "slow", since: at } }));
  await shows("slow for");
  await elapse(5_000);
  browser.page.hidden = true;
  const seen = () => textOf().match(/created (\d+) s ago|slow for (\d+) s/g);
  const before = seen();
  await elapse(20_000);
  expect(seen()).toHaveLength(2);
  for (const [index, text] of seen()?.entries() ?? []) {
    const seconds = (each = "") => Number(/\d+/.exec(each)?.[0]);
    expect(seconds(text) - seconds(before?.[index])).toBeGreaterThanOrEqual(15);
  }
});

/** Each list in several pages: where its rows are, how they are recognized, and how many a reload asks for after "Load more". */
const lists = [
  ["deliveries of a webhook", `${hash}?status=failed`, "deliveries", "cursor", 100],
  ["deliveries of a project", `${project}/deliveries?event=deploy.failed`, "deliveries", "cursor", 100],
  ["the audit", "#/audit", "audit-events", "cursor", 30],
  ["the audit of a project", `${project}/audit`, "audit-events", "cursor", 30],
  ["events", `${project}/events?event=deploy.failed`, "events", "after", 100],
] as const;
const rowOf = (number: number) => {
  const id = deliveryOf(number).id;
  // Lists show the last part of it.
  const deployment_id = `00000000-0000-7000-8000-${id.slice(0, 8)}0000`;
  return {
    ...{ ...deliveryOf(number, "failed"), deployment_id, timestamp: at, received_at: at, payload: {} },
    ...{ at, action: "webhook.deleted", actor: { type: "system" }, resource_id: id, details: {} },
  };
};
const numberOf = (id = "") => Number(id.slice(4, 8));
const shownIds = () => [...new Set(textOf().match(/0193\d{4}-?0000/g))].map(numberOf);
/** Responds with rows of falling numbers from `newest()` to 1. */
function respondWithRows(end: string, parameter: string, newest: () => number): void {
  const link = (number: number, rel: string) =>
    `<https://api.test/v1/next?${parameter}=${deliveryOf(number).id}>; rel="${rel}"`;
  respond(`GET ${end}`, ({ query }) => {
    if (query.order === "oldest") {
      const after = numberOf(query.after);
      const rows = Array.from({ length: newest() - after }, (_, index) => rowOf(after + index + 1));
      return json(rows, { Link: link(newest(), "monitor") });
    }
    const first = query[parameter] === undefined ? newest() : numberOf(query[parameter]) - 1;
    // A page after a cursor is larger than requested, so that more than 100 rows need few clicks.
    const count = Math.min(query[parameter] === undefined ? Number(query.limit) : 60, first);
    const next = first - count + 1;
    const links = [...(next > 1 ? [link(next, "next")] : []), link(newest(), "monitor")];
    return json(
      Array.from({ length: count }, (_, index) => rowOf(first - index)),
      { Link: links.join(", ") },
    );
  });
}
test.each(lists)(
  "%s: older rows stay below new ones, and every request has the filters",
  async (_, address, end, parameter, limit) => {
    let newest = 130;
    respondWithRows(end, parameter, () => newest);
    await start(address);
    await until(() => shownIds().length > 0);
    // Twice at most: a cursor that does not advance would never end.
    for (let clicks = 0; clicks < 2 && textOf().includes("Load more"); clicks++) await click("Load more");
    const all = (count: number) => Array.from({ length: count }, (_, index) => count - index);
    expect(shownIds().sort((one, other) => other - one)).toEqual(all(130));
    newest = 132;
    await elapse(20_000);
    expect(shownIds().sort((one, other) => other - one)).toEqual(all(132));
    const filters = Object.fromEntries(new URLSearchParams(address.split("?")[1]));
    for (const { query } of sentTo(`GET ${end}`)) expect(query).toMatchObject(filters);
    expect(sentTo(`GET ${end}`).at(-1)?.query.limit).toBe(String(limit));
  },
);

test("rows that are selected stay selected when others arrive, and leave the selection with the list", async () => {
  let numbers = [2, 1];
  respond("GET deliveries", ({ query }) => json((query.status ? [9, 8] : numbers).map((each) => deliveryOf(each))));
  const boxes = () =>
    browser.page.body.all().flatMap((node) => (node.getAttribute("type") === "checkbox" ? node.checked : []));
  await start();
  await enter("Select all shown", true);
  expect(boxes()).toEqual([true, true, true]);
  numbers = [4, 2, 1];
  await elapse(10_000);
  expect(boxes()).toEqual([false, false, true, true]);
  await open(`${hash}?status=failed`);
  await elapse(1_000);
  expect([boxes(), textOf().includes("selected")]).toEqual([[false, false, false], false]);
  await enter("Select all shown", true);
  await open(hash);
  await elapse(1_000);
  expect(boxes()).toEqual([false, false, false, false]);
});

/** From a screen with this state to another one of the same kind. */
test.each<[state: string, from: string, to: string, steps: () => Promise<void>]>([
  ["a dialog of another project", project, otherProject, clicks("New webhook")],
  ["a dialog of another webhook", hash, otherHash, clicks("Edit")],
  ["a dialog of another project's access", `${project}/access`, `${otherProject}/access`, clicks("Trust a workflow")],
  ["an error of another project's audit", `${project}/audit`, `${otherProject}/audit`, clicks("Load more")],
  ["the filters of the user's audit", "#/audit", `${project}/audit`, clicks("Load more")],
  [
    "older deliveries of another webhook",
    hash,
    otherHash,
    async () => {
      await enter("Select all shown", true);
      await click("Load more");
    },
  ],
  ["older deliveries without a filter", hash, `${hash}?event=deploy.failed`, clicks("Load more")],
  ["a dialog of another list", hash, `${hash}/certification`, clicks("Resend…")],
  ["older events without a filter", `${project}/events`, `${project}/events?event=deploy.failed`, clicks("Load more")],
  ["events of another project", `${project}/events`, `${otherProject}/events`, clicks("Load more")],
  ["an error of another delivery", detail, `${hash}/deliveries/${deliveryOf(8).id}`, clicks("Resend")],
  ["another report", `${hash}/certification?id=c-2`, `${hash}/certification?id=c-1`, clicks()],
  ["another period", `${hash}/health`, `${hash}/health?window=7d`, clicks()],
  [
    "a search that found nothing",
    `${project}/deliveries`,
    `${project}/deliveries?deployment_id=${deploymentId}`,
    async () => {
      await enter("Deployment", "123");
      await click("Search");
    },
  ],
])("%s is not shown on the next screen", async (_, from, to, steps) => {
  const numbers: Record<string, number> = { [otherProjectId]: 300, [otherWebhookId]: 300 };
  for (const end of ["deliveries", "events", "audit-events"])
    respond(`GET ${end}`, ({ path, query }) => {
      const base = Object.keys(numbers).some((id) => path.includes(id)) ? 300 : query.event ? 200 : 100;
      const isOlder = query.cursor !== undefined;
      if (isOlder && end === "audit-events" && path.includes(projectId)) return failure(409, "conflict", "Not now.");
      const first = query.cursor === undefined && query.after === undefined ? base : base - 50;
      const link = (rel: string) => `<https://api.test/v1/next?cursor=${newest.id}&after=${newest.id}>; rel="${rel}"`;
      return json(query.order ? [] : [rowOf(first), rowOf(first - 1)], { Link: `${link("next")}, ${link("monitor")}` });
    });
  respond(`GET ${deliveryOf(8).id}`, () => json({ ...deliveryOf(8), payload: {}, attempts: [] }));
  respond("POST redeliver", () => failure(409, "conflict", "Not now."));
  const main = () => outlineOf(browser.page.getElementById("main") ?? undefined).replaceAll(/\d+ s ago/g, "… ago");
  await start(to);
  await elapse(1_000);
  const direct = main();
  close();
  await start(from);
  await elapse(1_000);
  await steps();
  await elapse(1_000);
  expect(main()).not.toBe(direct);
  jest.setSystemTime(now);
  await open(to);
  await elapse(1_000);
  expect(main()).toBe(direct);
});

const dialog = () => browser.page.querySelector("dialog[open]") ?? undefined;

/** What the fields of forms accept, by their labels. Every other one accepts 7. */
const accepted: Record<string, string> = {
  ...{ URL: "https://example.com/2", Filter: "a=b", Ref: "refs/heads/2", "Workflow file": "a@b", Event: "push" },
  ...{ "Created since": "2020-01-01T00:00", "Expires after": "never" },
};

/** Enters something into every field of the dialog, and clicks what can be clicked. */
async function useEveryField(): Promise<void> {
  for (const field of dialog()?.all() ?? []) {
    if (!/^(input|textarea|select)$/.test(field.localName)) continue;
    const isChoice = /checkbox|radio/.test(field.getAttribute("type") ?? "");
    const label = dialog()
      ?.all()
      .find((node) => node.localName === "label" && node.getAttribute("for") === field.id);
    if (isChoice) field.checked = !field.checked;
    else field.value = accepted[textOf(label).replace(" optional", "")] ?? "7";
    for (const type of ["input", "change"]) field.dispatchEvent(new Event(type));
    await elapse(50);
  }
  const names = dialog()
    ?.all()
    .flatMap((node) =>
      node.localName === "button" && !node.disabled ? (node.getAttribute("aria-label") ?? textOf(node)) : [],
    );
  for (const name of names ?? []) if (!/^(Cancel|Close|New key)$/.test(name)) await click(name);
}

test.each([
  [project, "New webhook", "Cancel"],
  ["#/keys", "New key", "Cancel"],
  ["#/keys", "Rename ci", "Cancel"],
  ["#/keys", "Roll ci", "Cancel"],
  ["#/keys", "Revoke ci", "Cancel"],
  [`${project}/access`, "New service account", "Cancel"],
  [`${project}/access`, "Keys deploy job", "Close"],
  [`${project}/access`, "Delete deploy job", "Cancel"],
  [`${project}/access`, "Trust a workflow", "Cancel"],
  [`${project}/access`, "Delete main", "Cancel"],
  [hash, "Edit", "Cancel"],
  [hash, "Rotate secret", "Cancel"],
  [hash, "Send test", "Cancel"],
  [hash, "Disable", "Cancel"],
  [hash, "Delete", "Cancel"],
  [hash, "Resend…", "Cancel"],
  [`${hash}/certification`, "Certify…", "Cancel"],
])("on %s the dialog of “%s” opens as it was at first, and gives the focus back", async (address, name, end) => {
  for (const route of [
    "POST webhooks",
    "POST api-keys",
    "POST service-accounts",
    "POST trusted-workflows",
    "POST roll",
  ])
    respond(route, () => failure(409, "conflict", "Not now."));
  for (const id of [webhookId, key.id, account.id, workflow.id])
    for (const method of ["PATCH", "DELETE"]) respond(`${method} ${id}`, () => failure(409, "conflict", "Not now."));
  for (const route of ["POST rotate-secret", "POST test", "POST certify", "POST recover"])
    respond(route, () => failure(409, "conflict", "Not now."));
  await start(address);
  await elapse(1_000);
  await click(name);
  await elapse(200);
  const opener = browser.page.activeElement;
  const first = outlineOf(dialog());
  await useEveryField();
  await elapse(200);
  expect(outlineOf(dialog())).not.toBe(first);
  await click(end);
  expect(browser.page.activeElement).toBe(opener);
  jest.setSystemTime(now);
  await click(name);
  await elapse(200);
  expect(outlineOf(dialog())).toBe(first);
  // The browser's own event, after a second Escape.
  dialog()?.dispatchEvent(new Event("close"));
  await elapse(50);
  expect([dialog(), browser.page.activeElement]).toEqual([undefined, opener]);
});

test.each([
  ["a certification is requested", `${hash}/certification`, ["Certify…", "Certify"], "POST certify", "id=c-1"],
  ["a test delivery is sent", hash, ["Send test", "Send test"], "POST test", `deliveries/${newest.id}`],
  ["a webhook is deleted", hash, ["Delete", "Delete webhook"], `DELETE ${webhookId}`, project],
] as const)(
  "%s: the screen of the result opens, unless the user went elsewhere",
  async (_, address, names, route, end) => {
    for (const hasLeft of [false, true]) {
      const isDone = Promise.withResolvers<void>();
      respond(route, async () => {
        await isDone.promise;
        return json(route === "POST certify" ? report : newest);
      });
      await start(address);
      for (const name of names) await click(name);
      if (hasLeft) await open("#/keys");
      isDone.resolve();
      await elapse(100);
      expect(browser.location.hash.endsWith(hasLeft ? "#/keys" : end)).toBe(true);
      close();
    }
  },
);

const filters = {
  status: "failed",
  event: "deploy.failed",
  deployment_id: deploymentId,
  error_code: "timeout",
  since: "2026-11-20T15:00:00.000Z",
  until: "2026-11-21T15:00:00.000Z",
};
test.each([
  ["Status", "status", "held", "held"],
  ["Event", "event", "deploy.started", "deploy.started"],
  ["Deployment", "deployment_id", projectId, projectId],
  ["Error", "error_code", "dns_error", "dns_error"],
  // Five hours before UTC.
  ["Since", "since", "2026-11-19T08:30", "2026-11-19T13:30:00.000Z"],
  ["Until", "until", "2026-11-22T08:30", "2026-11-22T13:30:00.000Z"],
])("the filter %s changes only itself in the address, and is cleared alone", async (label, name, value, changed) => {
  const address = `${project}/deliveries`;
  await start(`${address}?${new URLSearchParams(filters)}`);
  const query = () => Object.fromEntries(new URLSearchParams(browser.location.hash.split("?")[1]));
  await shows("Filter: 6");
  await elapse(200);
  const shown = browser.page.body.all().filter((node) => node.getAttribute("type") === "datetime-local");
  expect(shown.map(({ value }) => value)).toEqual(["2026-11-20T10:00", "2026-11-21T10:00"]);
  await enter(label, value);
  if (label === "Deployment") await click("Search");
  expect(query()).toEqual({ ...filters, [name]: changed });
  await open(browser.location.hash);
  await elapse(200);
  await enter(label, "");
  const { [name]: _, ...others } = { ...filters } as Record<string, string>;
  expect(query()).toEqual(others);
});

test("a recovery starts at the local time of its field", async () => {
  respond("GET deliveries", () => json([{ ...newest, status: "failed" }]));
  respond("POST recover", () => json({ count: 1, complete: true, next_cursor: null }, {}, 202));
  await start();
  await click("Resend…");
  await elapse(200);
  const field = browser.page.body
    .all()
    .find((node) => node.closest("dialog") && node.getAttribute("type") === "datetime-local");
  expect(field?.value).toBe("2026-11-20T07:00");
  await enter("Created since", "2020-01-01T00:00");
  await click("Count");
  await click("Resend 1");
  expect(sentTo("POST recover")[0]?.body.since).toBe("2020-01-01T05:00:00.000Z");
});

/** The name of each button that copies, and what it copies. */
async function copies(): Promise<[name: string, text: string][]> {
  const found: [string, string][] = [];
  for (const button of browser.page.body.all().filter((node) => node.getAttribute("class") === "plain small copy")) {
    const name = button.getAttribute("aria-label") ?? textOf(button);
    button.dispatchEvent(new Event("click"));
    await elapse(50);
    found.push([name, browser.copied]);
  }
  return found;
}

test("every button to copy copies what is shown beside it, and says so for a while", async () => {
  respond(`GET ${newest.id}`, () =>
    json({ ...newest, deployment_id: deploymentId, payload: { event: "deploy.failed" }, attempts: [] }),
  );
  await start(detail);
  await shows("Copy payload");
  expect(await copies()).toEqual([
    ["Copy delivery id", newest.id],
    ["Copy deployment id", deploymentId],
    ["Copy as curl", expect.stringContaining(`curl --include --request POST 'https://example.com/hook'`)],
    ["Copy payload", '{\n  "event": "deploy.failed"\n}'],
  ]);
  expect(textOf().match(/Copied(?!\.)/g)).toHaveLength(4);
  await elapse(3_000);
  expect(textOf()).not.toMatch(/Copied(?!\.)/);
  await open(`${project}/events`);
  await shows("Deliveries");
  const ids = [...textOf().matchAll(/(?:running|succeeded|failed) (\S+) Copy /g)].map(([, id]) => id);
  expect([ids.length, (await copies()).map(([, id]) => id)]).toEqual([2, ids]);

  respond("POST rotate-secret", () => json({ ...webhook, secret: "whsec_1234" }));
  await open(`${hash}/verify`);
  await shows("express.mjs");
  const [[, withPlaceholder] = []] = await copies();
  expect(withPlaceholder).toContain('const secret = "whsec_…"');
  for (const name of ["Rotate secret", "Rotate", "Close", "Copy"]) await click(name);
  expect([browser.copied, textOf(dialog())]).toEqual(["whsec_1234", expect.not.stringContaining("Not copied yet")]);
  await click("Done");
  await elapse(3_000);
  sent.length = 0;
  const [, ...files] = await copies();
  expect(files).toEqual([
    ["Copy verify-webhook.mjs", "code"],
    ["Copy express.mjs", "code for Express"],
  ]);
  await click("Python");
  expect((await copies())[0]?.[1]).toContain('SECRET = "whsec_1234"');
  expect(sentTo("GET receivers.json")).toEqual([]);
});

test("a secret that the browser does not let the page copy is not taken for copied", async () => {
  respond("POST rotate-secret", () => json({ ...webhook, secret: "whsec_1234" }));
  await start();
  for (const name of ["Rotate secret", "Rotate"]) await click(name);
  const field = dialog()
    ?.all()
    .find(({ localName }) => localName === "textarea");
  const select = jest.fn();
  Object.assign(field ?? {}, { select });
  field?.dispatchEvent(new Event("focus"));
  expect(select).toHaveBeenCalledTimes(1);
  browser.blocksCopy = true;
  await click("Copy");
  expect(textOf()).toContain("The browser blocked the copy.");
  const pressEscape = () => dialog()?.dispatchEvent(new Event("cancel", { cancelable: true }));
  pressEscape();
  await elapse(50);
  expect(textsOf("alert")).toEqual(["Not copied yet. Close again to discard the secret."]);
  pressEscape();
  await elapse(50);
  expect(dialog()).toBeUndefined();
});

test("a new webhook is the next screen, once its secret was copied", async () => {
  respond("POST webhooks", () => json({ ...webhook, id: "w-2", secret: "whsec_1" }));
  await start(project);
  await click("New webhook");
  await enter("URL", "https://example.com/2");
  await click("Create webhook");
  dialog()
    ?.all()
    .find(({ localName }) => localName === "textarea")
    ?.dispatchEvent(new Event("copy"));
  await click("Done");
  expect(browser.location.hash).toBe(`${project}/webhooks/w-2`);
});

test("each rotation with an overlap of an hour counts down from an hour, and closes with the link to the code", async () => {
  respond("POST rotate-secret", () => json({ ...webhook, secret: "whsec_1" }));
  await start();
  for (const number of [1, 2]) {
    // In the middle of a second of the countdown.
    await elapse(number * 1_400);
    await click("Rotate secret");
    await enter("1 hour", true);
    await click("Rotate");
    expect([number, textOf()]).toEqual([number, expect.stringMatching(/The previous one expires in (01:00:00|59:59)/)]);
    // The link to the code with the secret leads to another view of the same screen, which a dialog would cover.
    dialog()
      ?.all()
      .find(({ localName }) => localName === "a")
      ?.dispatchEvent(new Event("click"));
    await until(() => dialog() === undefined);
  }
  // A view of a project is in the section of projects.
  const current = browser.page.body.all().filter((node) => node.getAttribute("aria-current") === "page");
  expect(current.map(textOf)).toEqual(["Projects", "Deliveries"]);
  expect(JSON.stringify([...browser.stored])).not.toContain("whsec_");
});

test("a key expires the chosen time after it is created, not after its form was opened", async () => {
  respond("POST api-keys", () => json({ ...key, key: "svc_1" }));
  await start("#/keys");
  await click("New key");
  await elapse(600_000);
  await enter("Name", "ci");
  await enter("All my projects, also later ones", true);
  const created = Date.now();
  await click("Create key");
  const { expires_at } = sentTo("POST api-keys")[0]?.body ?? {};
  expect(Date.parse(expires_at) - created).toBe(90 * 86_400_000);
});

test("a key in the list is marked as expired when its time has come", async () => {
  respond("GET api-keys", () => json([{ ...key, expires_at: later(30) }]));
  await start("#/keys");
  await shows("svc_12345678");
  browser.page.hidden = true;
  expect(textOf()).not.toContain("may do expired");
  await elapse(35_000);
  expect(textOf()).toContain("may do expired");
});

describe("the session of an API key", () => {
  const prefix = key.key_prefix;
  const buttons = () =>
    browser.page
      .getElementById("main")
      ?.all()
      .flatMap((node) => (node.localName === "button" ? (node.getAttribute("aria-label") ?? textOf(node)) : []));

  test("offers what such a key may do, and says what needs a JWT", async () => {
    respond("GET api-keys", () => json([key]));
    await startWithKey("#/keys", prefix);
    await shows("Rename");
    expect(textOf()).toContain("sign in with a JWT");
    expect(buttons()).toEqual(["Rename ci", "Revoke ci"]);
    await open(`${project}/access`);
    await shows("Only admins who sign in with a JWT can add");
    await shows("deploy job");
    expect(buttons()).toEqual(["Keys deploy job", "Delete deploy job"]);
    await click("Keys deploy job");
    expect(textOf(dialog())).not.toContain("New key");
    sent.length = 0;
    await elapse(9_000);
    expect(sentTo("GET api-keys")).toEqual([]);
    expect(sentTo("GET trusted-workflows")).toEqual([]);
  });

  test.each([
    ["ends when that key is revoked", "Revoke ci", "JWT or API key"],
    ["continues when another key is revoked", "Revoke other", "API key “other” revoked."],
  ])("%s", async (_, button, shown) => {
    respond("GET api-keys", () => json([key, { ...key, id: "k-2", name: "other", key_prefix: "svc_9" }]));
    for (const id of ["k-1", "k-2"]) respond(`DELETE ${id}`, () => json({}));
    await startWithKey("#/keys", prefix);
    await click(button);
    const endsSession = button === "Revoke ci";
    expect(textOf(dialog()).includes("will be signed out")).toBe(endsSession);
    await click("Revoke key");
    await shows(shown);
    expect([browser.stored.size, browser.location.hash]).toEqual([endsSession ? 0 : 1, "#/keys"]);
  });
});

test("a credential that is rejected is not stored, and another one can be entered, which leads to the same screen", async () => {
  respond("GET v1/projects", () => failure(401, "invalid_api_key", "The API key is not valid."));
  await start("#/keys");
  await shows("Your session has ended");
  sent.length = 0;
  await enter("JWT or API key", "svc_ 1");
  await click("Sign in");
  expect([sent, textsOf("alert")]).toEqual([[], [expect.stringContaining("it has spaces or special characters")]]);
  await enter("JWT or API key", "svc_2");
  await click("Sign in");
  expect(textsOf("alert")).toEqual([
    expect.stringMatching(/^The API key is not valid\. invalid_api_key .*request r-42$/),
  ]);
  expect([sent.length, browser.stored.size, textOf().includes("session has ended")]).toEqual([1, 0, false]);
  const isAccepted = Promise.withResolvers<void>();
  respond("GET v1/projects", async () => {
    await isAccepted.promise;
    return json([]);
  });
  await enter("JWT or API key", " bearer svc_3 ");
  sent.length = 0;
  for (const name of ["Sign in", "Sign in"]) await click(name);
  expect([sent.length, textsOf("alert"), browser.stored.size]).toEqual([1, [], 0]);
  isAccepted.resolve();
  await shows("svc_12345678");
  expect([[...browser.stored.values()], browser.location.hash]).toEqual([["svc_3"], "#/keys"]);
  await click("Sign out");
  expect([browser.stored.size, browser.location.hash]).toEqual([0, "#/keys"]);
  expect(textOf()).not.toMatch(/session has ended|npm run/);
});

test("a delivery that is closed gives the focus back to its row, with the filters of the list", async () => {
  respond("GET deliveries", () => json([newest, deliveryOf(1)]));
  await start(`${detail}?status=pending`);
  await shows("Copy payload");
  const links = browser.page.body.all().flatMap((node) => node.getAttribute("href") ?? []);
  expect(links).toEqual(expect.arrayContaining([`${detail}?status=pending`, `${hash}?status=pending`]));
  await open(`${hash}?status=pending`);
  await elapse(200);
  expect(browser.page.activeElement.id).toBe(newest.id);
});

test("the main part of the page gets the focus from the first button, and from a dialog whose button is gone", async () => {
  await start("#/keys");
  await shows("Revoke");
  await click("Skip to main content");
  expect(browser.page.activeElement.id).toBe("main");
  await click("Revoke ci");
  respond("GET api-keys", () => json([]));
  await elapse(15_000);
  await click("Cancel");
  expect(browser.page.activeElement.id).toBe("main");
});

test("a wrong deployment id is marked until it is changed", async () => {
  const address = `${project}/events?deployment_id=${deploymentId}`;
  await start(address);
  // Until the effects of the first render have run.
  await elapse(500);
  await enter("Deployment", "123");
  expect(textsOf("alert")).toEqual([]);
  await click("Search");
  expect([textsOf("alert").length, browser.location.hash]).toEqual([1, address]);
  await enter("Deployment", "1234");
  expect(textsOf("alert")).toEqual([]);
});

import { jest } from "@jest/globals";
import type { Command } from "commander";
import { createProgram } from "../../../packages/cli/src/program.ts";
import { undocumentedRequest } from "../../support/api-contract.ts";
import {
  account,
  ago,
  attempt,
  audit,
  certified,
  checks,
  deliveries,
  deliveryOf,
  deploymentId,
  events,
  failed,
  key,
  keys,
  later,
  newest,
  now,
  otherProjectId,
  projectId,
  report,
  stats,
  unhealthy,
  webhook,
  webhookId,
  webhooks,
  workflow,
} from "../../support/api-samples.ts";
import { secretCommands } from "../../support/secret-commands.ts";
import { svcHere } from "../../support/svc-here.ts";

/*
 * What each command sends, and what it prints for a person and with --json, in __snapshots__. The API is a stub in place of
 * `fetch`: the other tests of `svc` use the real service.
 */

interface Row {
  args: string[];
  /** The responses that differ from those below, by method and end of the path. */
  responses?: Record<string, unknown>;
  showsSecret?: boolean;
  /** Whether every request that changes something is refused. */
  isRefused?: boolean;
}

const keyId = "0193e000-0000-7000-8000-00000000d301";
const workflowId = "0193f000-0000-7000-8000-00000000d301";
const projects = [
  { id: projectId, name: "Shop", role: "admin", created_at: ago(86_400) },
  { id: otherProjectId, name: "Library", role: "viewer", created_at: ago(60) },
];
const person = { type: "jwt", user_id: "ann", permissions: null, project_ids: null, expires_at: null };
const created = { ...key, key: "svc_12345678" };
const withSecret = { ...webhook, secret: "whsec_1234" };
const attempts = [failed, { ...attempt, number: 2, request_count: 2 }];
const delivered = { ...newest, payload: { event: "deploy.failed" }, attempt_count: 2, attempts };
const tested = { ...delivered, status: "succeeded", test: true, last_attempt: attempt };

const responses: Record<string, unknown> = {
  "GET current": person,
  "GET projects": projects,
  "GET api-keys": keys,
  "POST api-keys": created,
  [`PATCH ${keyId}`]: key,
  "POST roll": created,
  "GET service-accounts": [account],
  "POST service-accounts": account,
  "GET webhooks": webhooks,
  "POST webhooks": withSecret,
  [`GET ${webhookId}`]: webhook,
  [`PATCH ${webhookId}`]: webhook,
  "POST rotate-secret": withSecret,
  "GET stats": stats,
  "POST test": { ...tested, attempt_count: 0 },
  "POST certify": report,
  "GET c-1": { ...report, status: "finished", finished_at: ago(0), passed: false, checks },
  "GET deliveries": deliveries,
  [`GET ${newest.id}`]: delivered,
  "POST redeliver": newest,
  "POST recover": { count: 2, complete: true },
  "GET events": events,
  "GET trusted-workflows": [workflow],
  "POST trusted-workflows": workflow,
  "GET audit-events": audit,
};

const refused = { ...attempt, error_code: "http_status", status_code: 500, response_excerpt: "\u001b[2J out of disk" };
const withAll = {
  ...{ ...webhook, events: ["deploy.*", "build.queued"], format: "teams", header_names: ["A", "B"] },
  ...{ delivery: "latest", settle_seconds: 10 },
};
const superseded = {
  status: "superseded",
  superseded_by: newest.id,
  attempt_count: 0,
  attempts: [],
  last_attempt: null,
  waiting_for: null,
  next_attempt_at: null,
};
const failure = {
  status: "failed",
  attempt_count: 3,
  attempts: [attempt, failed, refused],
  last_attempt: refused,
  next_attempt_at: null,
};

const inProject = ["--project", projectId];
const once = ["--idempotency-key", "run-1"];
const onWebhook = [webhookId, ...inProject];
const ofWebhook = ["--webhook", ...onWebhook];
const without = (route: string) => ({ [route]: [] });
const rows: Record<string, Row> = {
  "who a person is": { args: ["whoami"] },
  "who a key is": {
    args: ["whoami"],
    responses: {
      "GET current": { ...person, type: "api_key", permissions: ["webhooks:read"], project_ids: [projectId], ...key },
    },
  },
  "keys of the user": { args: ["keys", "list"] },
  "keys of the user with their last use": { args: ["keys", "list", "--last-use"] },
  "keys without limits": { args: ["keys", "list"], responses: { "GET api-keys": [keys[2]] } },
  "no keys": { args: ["keys", "list"], responses: without("GET api-keys") },
  "a new key": {
    args: [
      "keys",
      "create",
      "ci",
      "--project",
      "Shop",
      "--project",
      "Library",
      "--permission",
      "webhooks:read",
      "--expires",
      "7d",
    ],
    showsSecret: true,
  },
  "a new key that is created once": { args: ["keys", "create", "ci", ...once], showsSecret: true },
  "a key is renamed": { args: ["keys", "rename", keyId, "ci"] },
  "a key is rolled": { args: ["keys", "roll", keyId, "--overlap", "1h"], showsSecret: true },
  "a key is deleted": { args: ["keys", "delete", keyId, "--yes"] },
  "a key is deleted, without a confirmation": { args: ["keys", "delete", keyId] },
  "a key is rolled with an overlap without an end": { args: ["keys", "roll", keyId, "--overlap", "never"] },
  projects: { args: ["projects", "list"] },
  "no projects": { args: ["projects", "list"], responses: without("GET projects") },
  "a new service account": {
    args: ["service-accounts", "create", "deploy-job", "--role", "admin", ...once, ...inProject],
  },
  "service accounts": { args: ["service-accounts", "list", ...inProject] },
  "no service accounts": {
    args: ["service-accounts", "list", ...inProject],
    responses: without("GET service-accounts"),
  },
  "a service account is deleted": { args: ["service-accounts", "delete", account.id, "--yes", ...inProject] },
  "a service account is deleted, without a confirmation": {
    args: ["service-accounts", "delete", account.id, ...inProject],
  },
  "a new key of a service account": {
    args: ["service-accounts", "create-key", account.id, "ci", "--permission", "audit:read", ...once, ...inProject],
    showsSecret: true,
  },
  "keys of a service account": { args: ["service-accounts", "list-keys", account.id, ...inProject] },
  "a key of a service account is renamed": {
    args: ["service-accounts", "rename-key", account.id, keyId, "ci", ...inProject],
  },
  "a key of a service account is rolled": {
    args: ["service-accounts", "roll-key", account.id, keyId, "--overlap", "0", ...inProject],
    showsSecret: true,
  },
  "a key of a service account is deleted": {
    args: ["service-accounts", "delete-key", account.id, keyId, "--yes", ...inProject],
  },
  "a key of a service account is deleted, without a confirmation": {
    args: ["service-accounts", "delete-key", account.id, keyId, ...inProject],
  },
  "a service account that does not exist": { args: ["service-accounts", "list-keys", "other", ...inProject] },
  "a new webhook": {
    args: [
      ...["webhooks", "create", webhook.url, "--events", "deploy.failed", "--name", "Chat"],
      ...["--filter", "environment=production", "branch=a,b", "--mode", "shadow", ...once, ...inProject],
    ],
    showsSecret: true,
  },
  "a new webhook of Slack": {
    args: ["webhooks", "create", "https://hooks.slack.com/services/T0/B0/x", ...inProject],
    showsSecret: true,
  },
  "a new webhook with headers, for the latest state, with another format than its URL gives away": {
    args: [
      ...["webhooks", "create", "https://discord.com/api/webhooks/1/x", "--events", "*", "--format", "cloudevents"],
      ...["--header", "Authorization: Bearer abc:d", "--header", "X-Team:shop", "--delivery", "latest"],
      ...["--settle", "10s", ...inProject],
    ],
    showsSecret: true,
  },
  "a new webhook without events": { args: ["webhooks", "create", webhook.url, ...inProject] },
  "a new webhook with a password in its URL": {
    args: ["webhooks", "create", "https://ann:pass-word@example.com/hook", "--events", "*", ...inProject],
  },
  "a new webhook with a password in its URL that is not percent-encoded": {
    args: ["webhooks", "create", "https://ann:100%@example.com/hook", "--events", "*", ...inProject],
  },
  "a new webhook with a header without a value": {
    args: ["webhooks", "create", webhook.url, "--events", "*", "--header", "Bearer abc", ...inProject],
  },
  "a new webhook with a file of headers that has none": {
    args: ["webhooks", "create", webhook.url, "--events", "*", "--header-file", "/dev/null", ...inProject],
  },
  webhooks: { args: ["webhooks", "list", ...inProject] },
  "webhooks with formats, headers and the latest state only": {
    args: ["webhooks", "list", ...inProject],
    responses: { "GET webhooks": [webhook, withAll] },
  },
  "webhooks without names": { args: ["webhooks", "list", ...inProject], responses: { "GET webhooks": [webhook] } },
  "no webhooks": { args: ["webhooks", "list", ...inProject], responses: without("GET webhooks") },
  "a webhook": { args: ["webhooks", "show", ...onWebhook] },
  "a webhook by the start of its id": {
    args: ["webhooks", "show", webhookId.slice(0, 30).toUpperCase(), ...inProject],
  },
  "the only webhook of a project": {
    args: ["webhooks", "update", "--enable", ...inProject],
    responses: { "GET webhooks": [webhook] },
  },
  "a webhook in every state at once": {
    args: ["webhooks", "show", ...onWebhook],
    responses: {
      [`GET ${webhookId}`]: {
        ...{ ...webhook, name: "Chat", filter: { environment: ["production"] }, mode: "shadow", health: unhealthy },
        ...{ enabled: false, disabled_reason: "failing", disabled_at: ago(60), suspended_at: ago(60) },
        ...{ last_certification: certified, created_by: "ann", updated_by: "bob", secret_rotated_at: ago(60) },
      },
    },
  },
  "a webhook that fails": {
    args: ["webhooks", "show", ...onWebhook],
    responses: {
      [`GET ${webhookId}`]: {
        ...webhook,
        health: { ...unhealthy, state: "probing", last_success_at: null, next_probe_at: later(40) },
      },
    },
  },
  "a webhook that was disabled": {
    args: ["webhooks", "show", ...onWebhook],
    responses: {
      [`GET ${webhookId}`]: { ...webhook, enabled: false, disabled_reason: "gone", disabled_at: ago(9) },
    },
  },
  "the only webhook of a project with several": { args: ["webhooks", "show", ...inProject] },
  "a webhook that does not exist": { args: ["webhooks", "show", "ffff", ...inProject] },
  "statistics of a webhook": { args: ["webhooks", "stats", ...onWebhook] },
  "statistics of a week without deliveries": {
    args: ["webhooks", "stats", "--window", "7d", ...onWebhook],
    responses: {
      "GET stats": {
        ...{ ...stats, window: "7d", deliveries_read: 0, attempts: 0, succeeded: 0, success_rate: null },
        ...{ response_ms: null, by_event: [], by_error: [] },
      },
    },
  },
  "statistics of the newest deliveries only, without a response": {
    args: ["webhooks", "stats", ...onWebhook],
    responses: {
      "GET stats": {
        ...{ ...stats, complete: false, response_ms: null },
        buckets: stats.buckets.map((each) => ({ ...each, p50_ms: null, p95_ms: null })),
      },
    },
  },
  "a webhook is changed": {
    args: [
      ...["webhooks", "update", "--url", "https://example.com/2", "--name", "", "--events", "deploy.started"],
      ...["--filter", "", "--enable", "--mode", "live", ...onWebhook],
    ],
  },
  "a webhook gets other headers and a format": {
    args: ["webhooks", "update", "--format", "standard", "--header", "A: 1", "--delivery", "every", ...onWebhook],
  },
  "a webhook loses its headers": { args: ["webhooks", "update", "--remove-headers", ...onWebhook] },
  "a webhook gets headers and loses them": {
    args: ["webhooks", "update", "--remove-headers", "--header", "A: 1", ...onWebhook],
  },
  "a webhook with all options": {
    args: ["webhooks", "show", ...onWebhook],
    responses: { [`GET ${webhookId}`]: withAll },
  },
  "a webhook gets a format that its URL does not give away": {
    args: ["webhooks", "update", "--format", "cloudevents", ...onWebhook],
    responses: { [`PATCH ${webhookId}`]: { ...webhook, url: "https://hooks.slack.com/services/T0/B0/x" } },
  },
  "a webhook gets a URL of a product": {
    args: ["webhooks", "update", "--url", "https://chat.googleapis.com/v1/spaces/A/messages", ...onWebhook],
  },
  "a webhook is disabled": { args: ["webhooks", "update", "--disable", ...onWebhook] },
  "a webhook is not changed": { args: ["webhooks", "update", ...onWebhook] },
  "a webhook is deleted": { args: ["webhooks", "delete", webhookId, "--yes", ...inProject] },
  "a webhook is deleted, without a confirmation": { args: ["webhooks", "delete", webhookId, ...inProject] },
  "a secret is rotated": { args: ["webhooks", "rotate", "--overlap", "1d", ...onWebhook], showsSecret: true },
  "a secret is rotated without an overlap": {
    args: ["webhooks", "rotate", "--overlap", "0", "--yes", ...onWebhook],
    showsSecret: true,
  },
  "a secret is rotated without an overlap, without a confirmation": {
    args: ["webhooks", "rotate", "--overlap", "0", ...onWebhook],
  },
  "a test delivery": { args: ["webhooks", "test", "--event", "deploy.failed", ...onWebhook] },
  "a test delivery, without its outcome": { args: ["webhooks", "test", "--no-wait", ...onWebhook] },
  "a test delivery that fails": {
    args: ["webhooks", "test", ...onWebhook],
    responses: { [`GET ${newest.id}`]: { ...tested, ...failure } },
  },
  "a test delivery of a webhook in shadow mode": {
    args: ["webhooks", "test", ...onWebhook],
    responses: {
      [`GET ${webhookId}`]: { ...webhook, mode: "shadow" },
      [`GET ${newest.id}`]: { ...tested, status: "shadowed", attempt_count: 0, attempts: [], last_attempt: null },
    },
  },
  "a filter is tried": { args: ["webhooks", "test-filter", ...onWebhook, "--filter", "environment=production"] },
  "a filter is tried without events": {
    args: ["webhooks", "test-filter", ...onWebhook, "--filter", "environment=production"],
    responses: without("GET events"),
  },
  "a certification that is not passed": { args: ["webhooks", "certify", ...onWebhook] },
  "a certification of a product, which verifies nothing": {
    args: ["webhooks", "certify", ...onWebhook],
    responses: {
      "GET c-1": {
        ...report,
        status: "finished",
        passed: true,
        checks: checks.slice(0, 1),
        note: "It rejects nothing.",
      },
    },
  },
  "a certification that is passed": {
    args: ["webhooks", "certify", ...onWebhook],
    responses: { "GET c-1": { ...report, status: "finished", finished_at: ago(0), passed: true, checks: [checks[0]] } },
  },
  "deliveries of a project": { args: ["deliveries", "list", ...inProject] },
  "deliveries of webhooks with the same name, of one host, and of another": {
    args: ["deliveries", "list", ...inProject],
    responses: {
      "GET webhooks": [
        ...[1, 2].map((number) => ({ ...webhook, id: `w-${number}`, name: "Chat" })),
        ...[3, 4].map((number) => ({ ...webhook, id: `w-${number}`, url: `https://example.com/${number}` })),
        { ...webhook, id: "w-5", url: "https://example.org/hook" },
      ],
      "GET deliveries": [1, 2, 3, 4, 5].map((number) => ({ ...deliveryOf(number), webhook_id: `w-${number}` })),
    },
  },
  "deliveries of a webhook, filtered": {
    args: [
      ...["deliveries", "list", "--status", "failed", "--event", "deploy.failed", "--deployment", deploymentId],
      ...["--error", "timeout", "--since", "2h", "--until", "1h", "--limit", "5", ...ofWebhook],
    ],
  },
  "no deliveries": { args: ["deliveries", "list", ...inProject], responses: without("GET deliveries") },
  "a delivery": { args: ["deliveries", "show", newest.id, ...ofWebhook] },
  "a delivery that waits for the receiver": {
    args: ["deliveries", "show", newest.id, ...ofWebhook],
    responses: { [`GET ${newest.id}`]: { ...delivered, waiting_for: "recovery", attempts: [] } },
  },
  "a delivery that is held": {
    args: ["deliveries", "show", newest.id, ...ofWebhook],
    responses: {
      [`GET ${newest.id}`]: { ...delivered, status: "held", waiting_for: "suspended", next_attempt_at: null },
    },
  },
  "a delivery that is sent again and waits": {
    args: ["deliveries", "redeliver", newest.id, ...ofWebhook],
    responses: {
      [`GET ${newest.id}`]: { ...delivered, attempt_count: 2, waiting_for: "recovery" },
    },
  },
  "a delivery in shadow mode": {
    args: ["deliveries", "show", newest.id, ...ofWebhook],
    responses: {
      [`GET ${newest.id}`]: {
        ...{ ...delivered, status: "shadowed", waiting_for: null, next_attempt_at: null, last_attempt: null },
        ...{ attempts: [], deployment_id: deploymentId, test: true },
        shadow: { at: ago(60), headers: { "webhook-id": "d-1", "webhook-signature": "v1,abc=" } },
      },
    },
  },
  "a delivery that is superseded": {
    args: ["deliveries", "show", newest.id, ...ofWebhook],
    responses: { [`GET ${newest.id}`]: { ...delivered, ...superseded } },
  },
  "a delivery is sent again": { args: ["deliveries", "redeliver", newest.id, ...ofWebhook] },
  "a delivery is sent again and fails": {
    args: ["deliveries", "redeliver", newest.id, ...ofWebhook],
    responses: { [`GET ${newest.id}`]: { ...delivered, ...failure } },
  },
  "a delivery is sent again, without its outcome": {
    args: ["deliveries", "redeliver", newest.id, "--no-wait", ...ofWebhook],
  },
  "deliveries are recovered": { args: ["deliveries", "recover", "--since", "2h", "--status", "held", ...ofWebhook] },
  "deliveries are counted": { args: ["deliveries", "recover", "--since", "2h", "--dry-run", ...ofWebhook] },
  "deliveries of a disabled webhook of a suspended project are counted": {
    args: ["deliveries", "recover", "--since", "2h", "--dry-run", ...ofWebhook],
    responses: { [`GET ${webhookId}`]: { ...webhook, enabled: false, suspended_at: ago(60) } },
  },
  deployments: { args: ["deployments", "list", ...inProject] },
  "no deployments": { args: ["deployments", "list", ...inProject], responses: without("GET events") },
  "a deployment that has succeeded": {
    args: ["deployments", "wait", deploymentId, ...inProject],
    responses: { "GET events": events.slice(0, 2) },
  },
  "a deployment that has failed": {
    args: ["deployments", "wait", otherProjectId.toUpperCase(), ...inProject],
    responses: { "GET events": events.slice(2) },
  },
  "events of a deployment": {
    args: ["events", "list", "--event", "deploy.started", "--deployment", deploymentId, "--limit", "5", ...inProject],
  },
  "no events": { args: ["events", "list", ...inProject], responses: without("GET events") },
  "a workflow is trusted": {
    args: [
      ...["workflows", "trust", "42", "--ref", "refs/heads/main", "--environment", "production", "--event", "push"],
      ...["--file", "acme/shop/.github/workflows/ci.yml@refs/heads/main", "--owner-id", "7", "--name", "main"],
      ...["--issuer", "github", "--permission", "webhooks:read", ...once, ...inProject],
    ],
  },
  "trusted workflows": { args: ["workflows", "list", ...inProject] },
  "no trusted workflows": { args: ["workflows", "list", ...inProject], responses: without("GET trusted-workflows") },
  "a workflow is no longer trusted": { args: ["workflows", "untrust", workflowId, "--yes", ...inProject] },
  "a workflow is no longer trusted, without a confirmation": {
    args: ["workflows", "untrust", workflowId, ...inProject],
  },
  "audit of the user": { args: ["audit"] },
  "audit of a project": { args: ["audit", "--limit", "5", ...inProject] },
  "nothing in the audit": { args: ["audit"], responses: without("GET audit-events") },
};

beforeAll(() => {
  jest.useFakeTimers({
    now,
    doNotFake: [
      ...(["clearImmediate", "clearInterval", "clearTimeout", "setImmediate", "setInterval", "setTimeout"] as const),
      ...(["hrtime", "nextTick", "performance", "queueMicrotask"] as const),
    ],
  });
});
afterAll(() => jest.useRealTimers());

const refusal = { code: "refused", message: "Not now.", request_id: "r-42", details: [{ path: "a", message: "b" }] };

/** The command with its requests, its output and its exit code, as a text. */
async function transcript({ args, responses: own = {}, showsSecret = false, isRefused = false }: Row): Promise<string> {
  const sent: string[] = [];
  const problems: string[] = [];
  const all = Object.entries({ ...responses, ...own });
  const spy = jest.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = new Request(input, init);
    const { pathname, search } = new URL(request.url);
    const onceKey = request.headers.get("idempotency-key");
    const once = onceKey && args.includes(onceKey) ? ` (idempotency key ${onceKey})` : "";
    const body = await request.text();
    sent.push(`${request.method} ${pathname}${search}${once} ${body}`.trim());
    problems.push(...undocumentedRequest(request, body));
    if (!/^svc\/\d+\.\d+\.\d+$/.test(request.headers.get("user-agent") ?? "")) problems.push("no user agent");
    const [, data] = all.find(([route]) => {
      const [method, end] = route.split(" ");
      return method === request.method && pathname.endsWith(`/${end}`);
    }) ?? ["", undefined];
    if (isRefused && request.method !== "GET") return Response.json({ error: refusal }, { status: 409 });
    if (request.method === "DELETE") return new Response(null, { status: 204 });
    if (data !== undefined) return Response.json({ data });
    throw new Error(`No stub for ${sent.at(-1)}`);
  });
  const env = { SVC_BASE_URL: "https://api.test", SVC_API_KEY: `svc_${"0".repeat(64)}` };
  const { code, stdout, stderr } = await svcHere(args, { env, showsSecret });
  spy.mockRestore();
  expect(problems).toEqual([]);
  const notes = stderr.replaceAll(/^(?=.)/gm, "! ");
  return [`$ svc ${args.join(" ")}`, ...sent, stdout.trimEnd(), notes.trimEnd(), `exit ${code}`]
    .filter((part) => part !== "")
    .join("\n");
}

test.each(Object.entries(rows))("%s", async (_, row) => {
  const both = [await transcript(row), await transcript({ ...row, args: [...row.args, "--json"] })];
  expect(both.join("\n")).toMatchSnapshot();
});

test.each(Object.entries(rows))("%s: a refusal is all that is printed", async (_, row) => {
  const lines = (await transcript({ ...row, isRefused: true })).split("\n");
  const last = lines.findLastIndex((line) => /^(POST|PATCH|DELETE) /.test(line));
  if (last !== -1) expect(lines.slice(last + 1)).toEqual(["! Not now. (refused, request r-42)", "exit 1"]);
});

/** Commands that read a file or stdin, write one, or run until they are interrupted. They have tests of their own. */
const others = [
  ...["login", "logout", "keys revoke-leaked", "projects use", "apply", "deliveries tail", "deployments watch"],
  ...["listen", "trigger", "verify", "mcp", "completion", "help"],
];

const isCalled = (name: string, { args }: Row) => `${args.join(" ")} `.startsWith(`${name} `);

test("each command that prints a secret is run with a stdout that cannot be written", () => {
  const printing = Object.values(rows).filter(({ showsSecret }) => showsSecret);
  expect(printing.filter((row) => !secretCommands.some((name) => isCalled(name, row)))).toEqual([]);
});

test("each command has a row", () => {
  const leaves = (command: Command, path: string[]): string[] =>
    command.commands.length === 0
      ? [path.join(" ")]
      : command.commands.flatMap((each) => leaves(each, [...path, each.name()]));
  const called = Object.values(rows).map(({ args }) => args.join(" "));
  const missing = leaves(createProgram(), []).filter(
    (name) => !called.some((args) => `${args} `.startsWith(`${name} `)),
  );
  expect(missing).toEqual(others);
});

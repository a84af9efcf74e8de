import { randomUUID } from "node:crypto";
import { jest } from "@jest/globals";
import { mintToken } from "../../bin/command/mint-token.ts";
import { fromSources, invoke } from "../../bin/emulator/lambda.ts";
import { endpointRows } from "../../functions/foundation/manifest/function-rows.ts";
import { workerRows } from "../../functions/foundation/manifest/workers.ts";
import { tableName } from "../../functions/foundation/platform/env.ts";
import type { Webhook } from "../../functions/webhooks/webhook/webhook.ts";
import {
  type AwsCall,
  interceptDynamo,
  interceptSns,
  interceptSqs,
  loseEveryResponse,
  repeatable,
  restoreAws,
} from "../support/aws-calls.ts";
import { call as callFunction } from "../support/call.ts";
import { eventOf, givenDelivery, pipelineBatch, sqsEvent } from "../support/deliveries.ts";
import { fakeDate } from "../support/fake-date.ts";
import { useReceiver } from "../support/receiver.ts";
import { type Response, send, useService } from "../support/service.ts";

/*
 * What each endpoint and each function of an operator returns, and its calls to AWS: each read with its bounds, each write with
 * its condition, each message. As text in __snapshots__, with a clock that stands still and with names in place of what is random.
 */

const service = useService();
const projectId = "0193a000-0000-7000-8000-00000000d301";
const project = `/v1/projects/${projectId}`;
let calls: string[] = [];
/** What the steps have called: the files of functions, and the endpoints as "GET /v1/projects". */
const called = new Set<string>();
/** The commands whose response was lost. */
let lost: Set<string>;
/** The steps whose request was rejected. */
const rejected: string[] = [];
/** Messages to the senders. */
const queued: { kind: string }[] = [];
let tablePrefix: string;
let clock: ReturnType<typeof fakeDate>;
/** A session of the only admin. */
const ann = () => service.as(mintToken(process.env.JWT_SECRET ?? "", "ann"));
/** What the steps have created, by name. */
const ids: Record<string, string> = { project: projectId };

function call<Result>(id: string, payload: object): Promise<Result> {
  called.add(id);
  return callFunction(id, payload);
}

beforeAll(() => {
  const { fetch } = globalThis;
  jest.spyOn(globalThis, "fetch").mockImplementation((url, init) => {
    called.add(`${init?.method} ${new URL(String(url)).pathname}`);
    return fetch(url, init);
  });
  tablePrefix = tableName("auditEvents").replace("audit-events", "");
  clock = fakeDate();
  jest.spyOn(Math, "random").mockReturnValue(0.5);
  jest.setSystemTime(Date.parse("2026-11-21T12:00:00Z"));
  lost = loseEveryResponse();
  for (const intercept of [interceptDynamo, interceptSqs, interceptSns]) {
    intercept(async (each, send) => {
      calls.push(textOf(each));
      const entries = (each.input.Entries ?? []) as { MessageBody: string }[];
      queued.push(...entries.map(({ MessageBody }) => JSON.parse(MessageBody)));
      return send();
    });
  }
});
afterAll(() => {
  restoreAws();
  jest.restoreAllMocks();
  jest.useRealTimers();
});

/** The order of the attributes of a row that was read is that of the engine. */
const jsonOf = (value: unknown): string | undefined =>
  JSON.stringify(value, (name, each) => {
    if (name === "MessageBody") return JSON.parse(each);
    if (typeof each !== "object" || each === null || Array.isArray(each)) return each;
    return Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  });

/** A call as one line: the command, the table or queue, and its parameters with the names and values of its expressions. */
function textOf({ command, input }: AwsCall): string {
  const {
    ExpressionAttributeNames = {},
    ExpressionAttributeValues = {},
    TableName,
    QueueUrl,
    TopicArn,
    ...rest
  } = input;
  const tokens = new Map([
    ...Object.entries(ExpressionAttributeNames as object),
    ...Object.entries(ExpressionAttributeValues as object).map(([name, value]) => [name, jsonOf(value)] as const),
  ]);
  const resolved = (value: unknown): string => {
    if (typeof value === "string") return value.replaceAll(/[#:]\w+/g, (token) => tokens.get(token) ?? token);
    if (
      !Array.isArray(value) &&
      typeof value === "object" &&
      value !== null &&
      "TableName" in Object(Object.values(value)[0])
    )
      return textOf({ command: Object.keys(value)[0] ?? "", input: Object.values(value)[0] });
    if (Array.isArray(value)) return value.map((each) => `\n    ${resolved(each)}`).join("");
    return jsonOf(value) ?? "";
  };
  const target = String(TableName ?? QueueUrl ?? TopicArn ?? "").replace(/.*[/:]/, "");
  const parameters = Object.entries(rest).map(
    ([name, value]) => `${name} ${name === "Message" ? jsonOf(JSON.parse(String(value))) : resolved(value)}`,
  );
  return [command.replace("Command", ""), target, ...parameters].join(" ").replaceAll(tablePrefix, "");
}

/** Names what is random: what a step has created, and the rest by the order in which it appears in the text. */
function withNames(text: string): string {
  const kinds: [kind: string, pattern: RegExp][] = [
    ["uuid", /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g],
    ["key", /svcp?_[0-9a-f]{64}/g],
    ["prefix", /svcp?_[0-9a-f]{8}/g],
    ["hash", /\b[0-9a-f]{64}\b/g],
    ["secret", /whsec_[\w+/=]{20,}/g],
    ["snapshot", /#[\w-]{12}(?=")/g],
    ["bytes", /(?<![\w+/-])[\w+/-]{40,}={0,2}/g],
  ];
  const known = new Map(Object.entries(ids).map(([name, id]) => [id, `<${name}>`]));
  const measured = text
    .replaceAll(/127\.0\.0\.1:\d+/g, "127.0.0.1:<port>")
    .replaceAll(/"(duration_ms|p50|p95|p50_ms|p95_ms)":[\d.]+/g, '"$1":<ms>')
    .replaceAll(/(due_shard"?(?: =|:) ?)\d+/g, "$1<shard>")
    // The shard of a revocation.
    .replaceAll(/("day":"[\d-]{10})(#\d)?"/g, '$1<shard>"')
    .replaceAll(/((?:write_id|version|lease_id)"?(?: =|:) ?)"[\w-]{8,16}"/g, "$1<random>")
    .replaceAll(/("requested_at":"[^" ]+) [\w-]{12}"/g, '$1 <random>"')
    .split("\n")
    // A query of each shard is shown once.
    .filter((line, index, lines) => !line.includes("due_shard = <shard> AND") || lines.indexOf(line) === index)
    .join("\n");
  return kinds.reduce((done, [kind, pattern]) => {
    const found: string[] = [];
    return done.replaceAll(pattern, (each) => {
      if (!known.has(each)) known.set(each, `<${kind} ${found.push(each)}>`);
      return known.get(each) ?? "";
    });
  }, measured);
}

/** Takes one step of the story, and compares what it returned and its calls. */
function step(title: string, act: () => Promise<unknown>): void {
  test(title, async () => {
    // Ids that are created later are greater.
    clock.advance(1);
    calls = [];
    const result = await act();
    const isResponse = typeof result === "object" && result !== null && "status" in result && "headers" in result;
    const { status, body } = (isResponse ? result : {}) as Response;
    if (status >= 400) rejected.push(title);
    const returned = isResponse ? `${status} ${jsonOf(body) ?? ""}` : jsonOf(result);
    expect(withNames([`returns ${returned}`, ...calls, ""].join("\n"))).toMatchSnapshot();
  });
}

/** Remembers the id of what a response contains. */
async function remember(name: string, response: Promise<Response>): Promise<Response> {
  const result = await response;
  ids[name] = result.body.data.id;
  if (result.body.data.key) ids[`${name} secret`] = result.body.data.key;
  return result;
}

const imported = { hash: "ab".repeat(32), user_id: "ann", name: "earlier", key_prefix: "acme_1" };
const trust = { issuer: "github", repository_id: "42", permissions: ["webhooks:read"], ref: "refs/heads/main" };
const expires_at = "2027-02-21T12:00:00Z";
const webhookPath = () => `${project}/webhooks/${ids.webhook}`;
const accountPath = () => `${project}/service-accounts/${ids.account}`;
const change = (changes: object) => () => ann().patch(webhookPath(), changes);
const member = { user_id: "ann", project_id: projectId, name: "Shop" };

describe("members of a project", () => {
  step("one is added", () => call("projects-upsert-member", member));
  step("one that is there is not written again", () => call("projects-upsert-member", member));
  const bob = { ...member, user_id: "bob", role: "viewer" };
  step("a viewer is added", () => call("projects-upsert-member", bob));
  step("one gets another role and name", () =>
    call("projects-upsert-member", { ...bob, name: "Store", role: "admin" }),
  );
  step("one is removed", () => call("projects-remove-member", { user_id: "bob", project_id: projectId }));
  step("one that is not there is not removed", () =>
    call("projects-remove-member", { user_id: "bob", project_id: projectId }),
  );
  step("those of a snapshot are written", () =>
    call("projects-sync-members", {
      ...{ after: projectId.replace(/.$/, "0"), until: projectId, version: "2026-11-21T11:00:00Z" },
      ...{ members: [{ ...member, user_id: "cy", role: "viewer" }], dry_run: false, force: true },
    }),
  );
  step("projects are listed", () => ann().get("/v1/projects"));
});

describe("API keys", () => {
  const limits = { permissions: ["projects:read"], project_ids: [projectId], expires_at };
  step("one is created", () => remember("key", ann().post("/v1/api-keys", { name: "ci", ...limits })));
  step("one is read by itself", () => service.as(ids["key secret"] ?? "").get("/v1/api-keys/current"));
  step("a session is read by itself", () => ann().get("/v1/api-keys/current"));
  step("they are listed", () => ann().get("/v1/api-keys"));
  step("they are listed with their last use", () => ann().get("/v1/api-keys?include=last_use"));
  step("one is renamed", () => ann().patch(`/v1/api-keys/${ids.key}`, { name: "build" }));
  step("one is rolled", () => remember("key", ann().post(`/v1/api-keys/${ids.key}/roll`, { overlap_seconds: 600 })));
  step("one is rolled again", () => {
    ids["earlier secret"] = ids["key secret"] ?? "";
    return remember("key", ann().post(`/v1/api-keys/${ids.key}/roll`, { overlap_seconds: 60 }));
  });
  step("the earlier secret of one is read by itself", () =>
    service.as(ids["earlier secret"] ?? "").get("/v1/api-keys/current"),
  );
  step("the earlier secret of one leaked and is revoked", () =>
    ann().post("/v1/credentials/revoke", { credentials: [ids["earlier secret"]] }),
  );
  step("one is rolled without an overlap", () =>
    remember("key", ann().post(`/v1/api-keys/${ids.key}/roll`, { overlap_seconds: 0 })),
  );
  step("one is verified", () =>
    call("credentials-verify", { credentials: [{ token: ids["key secret"], project_id: projectId }] }),
  );
  step("one that leaked is revoked", () => ann().post("/v1/credentials/revoke", { credentials: [ids["key secret"]] }));
  step("the leaked one is not verified", () =>
    call("credentials-verify", { credentials: [{ token: ids["key secret"], project_id: projectId }] }),
  );
  step("another one is created", () => remember("key", ann().post("/v1/api-keys", { name: "ci" })));
  step("one is deleted", () => ann().delete(`/v1/api-keys/${ids.key}`));
  step("one that was deleted is not found", () => ann().delete(`/v1/api-keys/${ids.key}`));
  step("one is provisioned", () =>
    call("api-keys-provision", { user_id: "ann", name: "partner", project_ids: [projectId], expires_at }),
  );
  step("the audit of the user is read", () => ann().get("/v1/audit-events?limit=3"));
  step("those of a user are revoked", () => call("api-keys-revoke-all", { user_id: "ann" }));
  step("the owner is told", () => call("deliveries-publish-notifications", {}));
  step("one is imported", () => {
    process.env.IMPORTED_KEYS = '[{"prefix":"acme_","hash":"sha256"}]';
    return call("api-keys-import", { keys: [imported], dry_run: false });
  });
  step("one that was imported is not written again", () =>
    call("api-keys-import", { keys: [imported], dry_run: false }),
  );
});

describe("revocations", () => {
  step("the cursor is read", () => call("credentials-revocations", {}));
  step("those of the keys are read", () => call("credentials-revocations", { after: "2026-11-21T12:00:00.000Z" }));
});

describe("service accounts", () => {
  step("one is created", () =>
    remember("account", ann().post(`${project}/service-accounts`, { name: "deploy", role: "admin" })),
  );
  step("they are listed", () => ann().get(`${project}/service-accounts`));
  step("a key of one is created", () =>
    remember("account key", ann().post(`${accountPath()}/api-keys`, { name: "ci", expires_at })),
  );
  step("keys of one are listed", () => ann().get(`${accountPath()}/api-keys`));
  step("keys of one are listed with their last use", () => ann().get(`${accountPath()}/api-keys?include=last_use`));
  step("a key of one is renamed", () =>
    ann().patch(`${accountPath()}/api-keys/${ids["account key"]}`, { name: "build" }),
  );
  step("a key of one is rolled", () =>
    remember("account key", ann().post(`${accountPath()}/api-keys/${ids["account key"]}/roll`, {})),
  );
  step("a key of one is used", () => service.as(ids["account key secret"] ?? "").get("/v1/projects"));
  step("a key of one is deleted", () => ann().delete(`${accountPath()}/api-keys/${ids["account key"]}`));
  step("another key of one is created", () => ann().post(`${accountPath()}/api-keys`, { name: "ci" }));
  step("one is deleted with its keys", () => ann().delete(accountPath()));
});

describe("trusted workflows", () => {
  step("one is created", () => remember("workflow", ann().post(`${project}/trusted-workflows`, trust)));
  step("one with all conditions is created", () =>
    ann().post(`${project}/trusted-workflows`, {
      ...{ ...trust, name: "shop", repository_owner_id: "65", environment: "prod", event_name: "push" },
      job_workflow_ref: "acme/shop/.github/workflows/deploy.yml@refs/heads/main",
    }),
  );
  step("they are listed", () => ann().get(`${project}/trusted-workflows`));
  step("one is deleted", () => ann().delete(`${project}/trusted-workflows/${ids.workflow}`));
});

describe("webhooks", () => {
  const fields = { url: "https://example.com/hook", events: ["deploy.failed"], name: "Chat" };
  step("one is created", () => remember("webhook", ann().post(`${project}/webhooks`, fields)));
  step("one is read", () => ann().get(webhookPath()));
  step("they are listed", () => ann().get(`${project}/webhooks`));
  step(
    "one gets another URL, name and events",
    change({ url: "https://example.com/2", name: "Talk", events: ["deploy.started"] }),
  );
  step("one gets a filter, and no name", change({ filter: { branch: ["main"] }, name: null }));
  step("one is in shadow mode", change({ mode: "shadow", name: "Chat" }));
  step("one is disabled", change({ enabled: false }));
  step("one is enabled", change({ enabled: true, filter: null, mode: "live" }));
  step("the secret of one is rotated", () => ann().post(`${webhookPath()}/rotate-secret`, { overlap_seconds: 60 }));
  step("the secret of one is rotated without an overlap", () =>
    ann().post(`${webhookPath()}/rotate-secret`, { overlap_seconds: 0 }),
  );
  step("one is imported", () =>
    call("webhooks-import", {
      webhooks: [{ project_id: projectId, ...fields, secret: "a secret of theirs" }],
      dry_run: false,
    }),
  );
  step("one is suspended", () =>
    call("projects-suspend", { project_id: projectId, webhook_id: ids.webhook, suspended: true }),
  );
  step("the suspension of one ends", () =>
    call("projects-suspend", { project_id: projectId, webhook_id: ids.webhook, suspended: false }),
  );
  step("all of a project are suspended", () => call("projects-suspend", { project_id: projectId, suspended: true }));
  step("the suspension of a project ends", () => call("projects-suspend", { project_id: projectId, suspended: false }));
  step("the audit of the project is read", () => ann().get(`${project}/audit-events?limit=3`));
  step("the owners are told", () => {
    clock.advance(600);
    return call("deliveries-publish-notifications", {});
  });
});

describe("deliveries", () => {
  const receiver = useReceiver();
  let webhook: Webhook;
  let event: object;
  const inWebhook = (path: string) => `/v1/projects/${ids.pipeline}/webhooks/${ids.webhook}/${path}`.replace(/\/$/, "");
  const newEvent = (event: string) => eventOf(ids.pipeline ?? "", { event, deployment_id: projectId });
  /** Passes the messages of the last steps to the sender, and returns what it did and what the receiver got. */
  async function sendAll(): Promise<object> {
    const messages = queued.splice(0);
    const returned: unknown[] = [];
    for (const [id, isOwn] of [
      ["attempts-send", true],
      ["attempts-send-slow", false],
    ] as const) {
      const own = messages.filter(({ kind }) => (kind === "first") === isOwn);
      if (own.length === 0) continue;
      called.add(id);
      returned.push(await invoke(await fromSources(id), sqsEvent(...own), { functionName: id, timeoutSeconds: 60 }));
    }
    const requests = receiver.received.splice(0).map(({ method, headers, body }) => ({ method, headers, body }));
    return { returned, requests };
  }

  step("a webhook of a receiver is created", async () => {
    const fields = { url: receiver.url, events: ["deploy.started", "deploy.failed"] };
    ids.pipeline = randomUUID();
    await call("projects-upsert-member", { ...member, project_id: ids.pipeline });
    calls = [];
    queued.splice(0);
    const created = await remember("webhook", ann().post(`/v1/projects/${ids.pipeline}/webhooks`, fields));
    webhook = created.body.data;
    event = newEvent("deploy.started");
    return created;
  });
  step("an event becomes a delivery", () => call("deliveries-fan-out", pipelineBatch(event)));
  step("a first attempt succeeds", sendAll);
  step("an event that comes again is ignored", () => call("deliveries-fan-out", pipelineBatch(event)));
  step("another event becomes a delivery", () => call("deliveries-fan-out", pipelineBatch(newEvent("deploy.failed"))));
  step("a first attempt fails", () => {
    receiver.respondWith(500);
    return sendAll();
  });
  step("nothing is due", () => call("deliveries-sweep", {}));
  step("the retry is due", () => {
    clock.advance(600);
    return call("deliveries-sweep", {});
  });
  step("a retry fails too", sendAll);
  step("deliveries are listed", () => ann().get(inWebhook("deliveries")));
  step("statistics are read", () => ann().get(inWebhook("stats")));
  step("the health is read", () => ann().get(inWebhook("")));
  step("a test delivery is requested", () => ann().post(inWebhook("test"), { event: "deploy.failed" }));
  step("the receiver recovers", () => {
    receiver.respondWith(200);
    clock.advance(86_400);
    return sendAll();
  });
  step("a delivery is redelivered", async () => {
    const [{ id }] = (await ann().get(inWebhook("deliveries"))).body.data;
    ids.delivery = id;
    calls = [];
    return ann().post(inWebhook(`deliveries/${id}/redeliver`));
  });
  step("the redelivery is sent", sendAll);
  step("the delivery is read", () => ann().get(inWebhook(`deliveries/${ids.delivery}`)));
  step("deliveries are recovered", async () => {
    await givenDelivery(webhook, { status: "failed", attempt_count: 3 });
    calls = [];
    return ann().post(inWebhook("recover"), { since: "2026-11-21T12:00:00Z" });
  });
  step("the recovered one is sent", sendAll);
  step("the events of a period are replayed", () =>
    call("deliveries-replay", { project_id: ids.pipeline, since: "2026-11-21T12:00:00Z" }),
  );
  step("events are listed", () => ann().get(`/v1/projects/${ids.pipeline}/events`));
  step("a receiver that is gone disables its webhook", async () => {
    receiver.respondWith(410);
    await call("deliveries-fan-out", pipelineBatch(newEvent("deploy.started")));
    calls = [];
    return sendAll();
  });
  step("the owners are told", () => {
    clock.advance(3600);
    return call("deliveries-publish-notifications", {});
  });
  step("an event of a disabled webhook is held", () =>
    call("deliveries-fan-out", pipelineBatch(newEvent("deploy.started"))),
  );
  step("a certification is requested", () => {
    receiver.respondWith(200);
    return remember("certification", ann().post(inWebhook("certify")));
  });
  // The forged requests are random.
  step("the receiver is certified", async () => ({ ...(await sendAll()), requests: "random" }));
  step("the certification is read", () => ann().get(inWebhook(`certifications/${ids.certification}`)));
  step("deliveries of the project are listed, by page", () =>
    ann().get(`/v1/projects/${ids.pipeline}/deliveries?limit=2`),
  );
  step("events are listed, by page", () => ann().get(`/v1/projects/${ids.pipeline}/events?limit=1&order=oldest`));
  step("the webhook is deleted", () => ann().delete(inWebhook("")));
  step("an event of a deleted webhook has no delivery", () =>
    call("deliveries-fan-out", pipelineBatch(newEvent("deploy.started"))),
  );
});

describe("people of a project", () => {
  step("they are listed", () => ann().get(`${project}/members`));
  // Its codes are random.
  step("a machine asks for a sign-in", async () => {
    const body = JSON.stringify({ client: "svc" });
    const init = { method: "POST", headers: { "content-type": "application/json" }, body };
    const { status, body: asked } = await send(`${service.baseUrl}/v1/sign-ins`, init);
    ids.code = asked.data.user_code;
    calls = calls.map((each) => each.replaceAll(/(device|user-code):[0-9a-f]{64}/g, "$1:HASH"));
    return status;
  });
  step("a person denies it", async () => {
    const { status } = await ann().patch("/v1/sign-ins", { user_code: ids.code, decision: "deny" });
    calls = calls.map((each) => each.replaceAll(/(device|user-code):[0-9a-f]{64}/g, "$1:HASH"));
    return status;
  });
});

test("only one step is rejected", () => {
  expect(rejected).toEqual(["one that was deleted is not found"]);
});

test("every kind of write was sent again", () => {
  const commands = ["DeleteItemCommand", "PutItemCommand", "TransactWriteItemsCommand", "UpdateItemCommand"];
  expect([...lost].sort()).toEqual(commands.filter((command) => repeatable.test(command)));
});

// Each request calls the authorizer.
const rows = [...endpointRows, ...workerRows].filter(({ id }) => id !== "auth-authorizer");

test.each(rows)("$id is called by a step", (row) => {
  const pattern = "path" in row && new RegExp(`^${row.method} ${row.path.replaceAll(/{\w+}/g, "[\\w-]{36}")}$`);
  expect([...called].some((each) => (pattern ? pattern.test(each) : each === row.id))).toBe(true);
});

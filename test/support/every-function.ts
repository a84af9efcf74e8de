import { randomBytes, randomUUID } from "node:crypto";
import { SendMessageCommand } from "@aws-sdk/client-sqs";
import { startDemoIssuer } from "../../bin/demo/demo-issuer.ts";
import type { Delivery } from "../../functions/deliveries/line/delivery.ts";
import { enqueue } from "../../functions/deliveries/line/delivery-queue.ts";
import type { EndpointRow } from "../../functions/foundation/manifest/endpoints.ts";
import { endpointRows } from "../../functions/foundation/manifest/function-rows.ts";
import { sqs } from "../../functions/foundation/platform/aws.ts";
import { queueUrl } from "../../functions/foundation/platform/env.ts";
import { newSignIn } from "../../functions/identity/sign-ins/sign-in.ts";
import * as signIns from "../../functions/identity/sign-ins/sign-in-store.ts";
import { givenAuditEvents } from "./audit-events.ts";
import { interceptDynamo, interceptSqs, isCall, isHold } from "./aws-calls.ts";
import { call } from "./call.ts";
import {
  changeWebhook,
  eventOf,
  givenDelivery,
  givenEvent,
  givenWaiting,
  makeDue,
  newDelivery,
  publish,
  rowOf,
  rowsOf,
  takeMessages,
  wakeUpOf,
} from "./deliveries.ts";
import { eventually } from "./eventually.ts";
import { notificationsAbout } from "./notifications.ts";
import { type Receiver, startReceiver } from "./receiver.ts";
import { newScenario, type Scenario } from "./scenario.ts";
import { send, type TestService } from "./service.ts";
import { newServiceAccount } from "./service-accounts.ts";
import { validBodyOf } from "./valid-bodies.ts";

/*
 * Calls every endpoint and worker, and every branch of them that reads, writes or sends. Responses are tested
 * elsewhere; here a status only shows that a branch was reached.
 *
 * A new endpoint needs no entry here: `callEveryEndpoint` calls all rows. When only a certain branch makes a call that
 * its row grants, add a function that reaches the branch.
 */

/**
 * Runs all scenarios at the same time.
 * @param service runs with `deliver`, a schedule of `0,0` and a `last_used_at` resolution of 0. Installs interceptors, which `restoreAws` removes.
 * @throws the first failure, after all scenarios have ended
 */
export async function useEveryFunction(service: TestService): Promise<void> {
  const api = [
    callEveryEndpoint,
    useKeys,
    useProjects,
    suspendProject,
    importWebhook,
    useWorkflows,
    useServiceAccounts,
    useWebhooks,
    useSubscriptions,
    signIn,
    readLargeRows,
    readLongLists,
  ];
  const scenarios = [...api, rejectEvents, replayEvents, ...pipeline];
  const results = await Promise.allSettled(scenarios.map((scenario) => scenario(service)));
  const failure = results.find((result) => result.status === "rejected");
  if (failure) throw failure.reason;
}

const expectStatus = async (response: Promise<{ status: number }>, status: number) =>
  expect((await response).status).toBe(status);

const trust = { issuer: "github", repository_id: "1296269", permissions: ["projects:read"] };

/** Calls the endpoint of each row once, with valid parameters and a valid body. Deletes last. */
async function callEveryEndpoint(service: TestService): Promise<void> {
  await withReceiver(service, async ({ api, token, projectId, webhook }) => {
    const ids: Record<string, string> = {
      id: (await api.post("/v1/api-keys", { name: "unused", expires_at: secondsFromNow(90 * 86_400) })).body.data.id,
      project_id: projectId,
      webhook_id: webhook.id,
      delivery_id: (await givenDelivery(webhook, { status: "failed", attempt_count: 1 })).id,
      certification_id: (await api.post(`/v1/projects/${projectId}/webhooks/${webhook.id}/certify`)).body.data.id,
      trusted_workflow_id: (await api.post(`/v1/projects/${projectId}/trusted-workflows`, trust)).body.data.id,
    };
    // With the code of the example.
    await signIns.insert(newSignIn(randomUUID(), "svc", undefined, new Date()), "BCDF-GHJK");
    const accounts = `/v1/projects/${projectId}/service-accounts`;
    const account = (await api.post(accounts, { name: "deploy", role: "viewer" })).body.data;
    const expires_at = secondsFromNow(90 * 86_400);
    const accountKey = (await api.post(`${accounts}/${account.id}/api-keys`, { name: "ci", expires_at })).body.data;
    const idsOfAccount = { ...ids, service_account_id: account.id, id: accountKey.id };
    for (const method of ["GET", "POST", "PATCH", "DELETE"] as const) {
      // From the longest path to the shortest, so that a delivery is deleted before its webhook.
      const ofMethod = endpointRows
        .filter((row) => row.method === method)
        .toSorted((a, b) => b.path.length - a.path.length);
      for (const row of ofMethod) {
        await callEndpoint(service, token, row, row.path.includes("{service_account_id}") ? idsOfAccount : ids);
      }
      await eventually(async () => expect(await statusesOf(webhook)).not.toContain("pending"));
    }
  });
}

async function callEndpoint(
  { baseUrl }: TestService,
  token: string,
  row: EndpointRow,
  ids: Record<string, string>,
): Promise<void> {
  const { method, file } = row;
  const path = row.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const id = ids[name];
    if (id === undefined)
      throw new Error(`Add an id for {${name}} to callEveryEndpoint in test/support/every-function.ts.`);
    return id;
  });
  const body = validBodyOf(row);
  const headers = {
    authorization: `Bearer ${token}`,
    ...(body && { "content-type": "application/json" }),
    ...(row.repeatReturns && { "idempotency-key": randomUUID() }),
  };
  const response = await send(`${baseUrl}${path}`, { method, headers, ...(body && { body }) });
  if (response.status < 300) return;
  const { code, message } = response.body.error;
  throw new Error(
    `${method} ${path} returned ${code}: ${message} If the body is wrong, fix the example of ${file} in contract/operations.ts, then run npm run openapi.`,
  );
}

/** Imports a key that expires, after a dry run. It is deleted with the other keys of the user. */
async function importKeys(user_id: string): Promise<void> {
  process.env.IMPORTED_KEYS = '[{"prefix":"acme_","hash":"sha256"}]';
  const hash = randomBytes(32).toString("hex");
  const row = { hash, user_id, name: "earlier", key_prefix: "acme_1", expires_at: secondsFromNow(90 * 86_400) };
  for (const dry_run of [true, false]) {
    expect(await call("api-keys-import", { keys: [row], dry_run })).toEqual({ imported: 1, unchanged: 0, refused: [] });
  }
}

async function useKeys(service: TestService): Promise<void> {
  const { api, userId } = service.user();
  const { id, key } = (await api.post("/v1/api-keys", { name: "own" })).body.data;
  const projectId = await service.project(userId);
  const limits = { permissions: ["projects:read", "keys:read"], project_ids: [projectId] };
  const scoped = (await api.post("/v1/api-keys", { name: "scoped", ...limits })).body.data;
  expect((await service.as(scoped.key).get("/v1/api-keys/current")).body.data).toMatchObject(limits);
  expect((await service.as(scoped.key).get("/v1/projects")).body.data).toMatchObject([{ id: projectId }]);
  for (const overlap_seconds of [600, 0]) {
    await expectStatus(api.post(`/v1/api-keys/${scoped.id}/roll`, { overlap_seconds }), 200);
  }
  await expectStatus(api.patch(`/v1/api-keys/${scoped.id}`, { name: "renamed" }), 200);
  const leaked = (await api.post("/v1/api-keys", { name: "leaked", expires_at: secondsFromNow(90 * 86_400) })).body
    .data;
  const next = (await api.post(`/v1/api-keys/${leaked.id}/roll`, {})).body.data;
  for (const credential of [leaked.key, next.key]) {
    await expectStatus(api.post("/v1/credentials/revoke", { credentials: [credential] }), 202);
  }
  await expectStatus(api.delete(`/v1/api-keys/${scoped.id}`), 204);
  // Its reminder is due at once: the key is read, the reminder published, and the next one takes its place.
  const soon = new Date(Date.now() + 7 * 24 * 3600_000 + 2_000).toISOString();
  const expiring = (await api.post("/v1/api-keys", { name: "expiring", expires_at: soon })).body.data;
  await eventually(async () =>
    expect(await notificationsAbout(expiring.id)).toMatchObject([{ data: { days_left: 1 } }]),
  );
  await expectStatus(api.delete(`/v1/api-keys/${expiring.id}`), 204);
  const partner = { user_id: userId, name: "partner", project_ids: [projectId] };
  await call<{ id: string; key: string }>("api-keys-provision", {
    ...partner,
    expires_at: secondsFromNow(90 * 86_400),
  });
  const provisioned = await call<{ id: string; key: string }>("api-keys-provision", {
    user_id: userId,
    name: "partner",
  });
  await importKeys(userId);
  const { results } = await call<{ results: object[] }>("credentials-verify", {
    credentials: [key, provisioned.key].map((token) => ({ token, project_id: projectId })),
  });
  expect(results).toMatchObject([{ role: "admin" }, { role: "admin" }]);
  await expectStatus(service.as(key).post("/v1/api-keys", { name: "more" }), 403);
  for (const credential of [key, provisioned.key]) {
    expect((await service.as(credential).get("/v1/api-keys")).body.data).toHaveLength(4);
  }
  await expectStatus(api.delete(`/v1/api-keys/${id}`), 204);
  await expectStatus(api.delete(`/v1/api-keys/${id}`), 404);
  const one = { user_id: userId, api_key_id: provisioned.id };
  expect(await call("api-keys-revoke-all", one)).toEqual({ revoked: 1 });
  expect(await call("api-keys-revoke-all", { user_id: userId })).toEqual({ revoked: 2 });
  for (const credential of [key, provisioned.key, "svc_malformed", "no.jwt.atall"]) {
    await expectStatus(service.as(credential).get("/v1/api-keys"), 401);
  }
}

async function useServiceAccounts(service: TestService): Promise<void> {
  const { admin, path, createKey } = await newServiceAccount(service);
  const { id } = await createKey({ expires_at: secondsFromNow(90 * 86_400) });
  for (const overlap_seconds of [600, 0]) {
    await expectStatus(admin.api.post(`${path}/api-keys/${id}/roll`, { overlap_seconds }), 200);
  }
  await expectStatus(admin.api.delete(path), 204);
  await expectStatus(admin.api.delete(path), 404);
}

/** Takes a snapshot of a project while a later change of a member arrives, then one without the members. */
async function syncMembers(): Promise<void> {
  const base = randomUUID().slice(0, -1);
  const range = { after: `${base}0`, until: `${base}1` };
  const member = { user_id: `synced-${randomUUID()}`, project_id: range.until, name: "Shop", role: "viewer" };
  const start = Date.now() - 60_000;
  const at = (seconds: number) => new Date(start + seconds * 1000).toISOString();
  let isFirst = true;
  interceptDynamo(async (sent, send) => {
    if (
      isFirst &&
      sent.command === "TransactWriteItemsCommand" &&
      JSON.stringify(sent.input).includes(member.user_id)
    ) {
      isFirst = false;
      await call("projects-upsert-member", { ...member, role: "admin", version: at(1) });
    }
    return send();
  });
  const sync = (seconds: number, members: object[]) =>
    call("projects-sync-members", { ...range, members, version: at(seconds), dry_run: false, force: true });
  expect(await sync(0, [member])).toMatchObject({ added: 1 });
  await call("projects-upsert-member", { ...member, version: at(0) });
  const result = await sync(2, []);
  expect(result).toMatchObject({ removed: 1, applied: true });
}

async function useProjects(service: TestService): Promise<void> {
  const { api, userId } = service.user();
  const { cursor } = await call<{ cursor: string }>("credentials-revocations", {});
  expect((await api.get("/v1/projects")).body.data).toEqual([]);
  const member = { user_id: userId, project_id: randomUUID(), name: "Shop", role: "viewer" };
  for (const role of ["viewer", "admin"]) await call("projects-upsert-member", { ...member, role });
  expect((await api.get("/v1/projects")).body.data).toHaveLength(1);
  const { user_id, project_id } = member;
  for (const removed of [true, false]) {
    expect(await call("projects-remove-member", { user_id, project_id })).toEqual({ removed });
  }
  await call("credentials-revocations", { after: cursor });
  await syncMembers();
}

/** Imports a webhook, after a dry run, and again. */
async function importWebhook(service: TestService): Promise<void> {
  const project_id = await service.project(service.user().userId);
  const row = { project_id, url: "https://example.com/", events: ["deploy.failed"], secret: "a secret of theirs" };
  for (const [dry_run, imported] of [
    [true, 1],
    [false, 1],
    [false, 0],
  ] as const) {
    const result = await call("webhooks-import", { webhooks: [row], dry_run });
    expect(result).toEqual({ imported, unchanged: 1 - imported, refused: [] });
  }
}

async function suspendProject(service: TestService): Promise<void> {
  await withReceiver(service, async ({ api, path, projectId, webhook }) => {
    const suspend = (suspended: boolean, of = {}) =>
      call("projects-suspend", { project_id: projectId, ...of, suspended });
    for (const suspended of [true, false]) await suspend(suspended, { webhook_id: webhook.id });
    await suspend(true);
    await expectStatus(
      api.post(`/v1/projects/${projectId}/webhooks`, { url: webhook.url, events: webhook.events }),
      403,
    );
    await publish(eventOf(projectId));
    await untilAll(webhook, ["held"]);
    await suspend(false);
    await expectStatus(api.post(`${path}/recover`, { since: secondsFromNow(-60) }), 202);
    await untilAll(webhook, ["succeeded"]);
  });
}

/** With an issuer on this machine, beside that of GitHub. */
async function useWorkflows(service: TestService): Promise<void> {
  const { api, userId } = service.user();
  const projectId = await service.project(userId);
  const trusts = `/v1/projects/${projectId}/trusted-workflows`;
  const issuer = await startDemoIssuer();
  const given = process.env.OIDC_ISSUERS;
  const ci = { name: "ci", issuer: issuer.url, jwks_uri: issuer.jwksUri, audience: "deployments" };
  process.env.OIDC_ISSUERS = JSON.stringify([...JSON.parse(given ?? "[]"), ci]);
  try {
    const { id } = (await api.post(trusts, { ...trust, issuer: "ci" })).body.data;
    const token = issuer.sign({ aud: "deployments", repository_id: trust.repository_id });
    const workflow = service.as(token);
    expect((await workflow.get("/v1/projects")).body.data).toMatchObject([{ id: projectId }]);
    const { results } = await call<{ results: object[] }>("credentials-verify", { credentials: [{ token }] });
    expect(results).toMatchObject([{ type: "workflow" }]);
    await expectStatus(workflow.get(trusts), 403);
    await expectStatus(api.delete(`${trusts}/${id}`), 204);
    await expectStatus(api.delete(`${trusts}/${id}`), 404);
    await expectStatus(workflow.get("/v1/projects"), 401);
  } finally {
    process.env.OIDC_ISSUERS = given;
    issuer.stop();
  }
}

async function useWebhooks(service: TestService): Promise<void> {
  const { api, viewer, path, projectId } = await newScenario(service);
  const nowhere = `/v1/projects/${projectId}/webhooks/${randomUUID()}`;
  await expectStatus(viewer.get(`/v1/projects/${projectId}/webhooks`), 200);
  await expectStatus(viewer.delete(path), 403);
  for (const [target, status] of [
    [path, 200],
    [nowhere, 404],
  ] as const) {
    await expectStatus(api.get(target), status);
    await expectStatus(api.patch(target, { url: "https://example.com/other", events: ["deploy.failed"] }), status);
    for (const enabled of [false, true]) await expectStatus(api.patch(target, { enabled }), status);
    for (const overlap_seconds of [60, 0]) {
      await expectStatus(api.post(`${target}/rotate-secret`, { overlap_seconds }), status);
    }
  }
  await expectStatus(api.delete(nowhere), 404);
  await expectStatus(api.delete(path), 204);
}

/** Lists that read more than is free. */
async function readLargeRows(service: TestService): Promise<void> {
  const { api, path, projectId, webhook } = await newScenario(service);
  const data = { log: "x".repeat(200_000) };
  const paths: string[] = [];
  for (let count = 0; count < 3; count++) {
    const { id } = await givenDelivery(webhook, { status: "succeeded", body: JSON.stringify({ data }) });
    paths.push(`${path}/deliveries/${id}`);
    await givenEvent(eventOf(projectId, { data }));
  }
  const project = `/v1/projects/${projectId}`;
  const lists = ["deliveries", "events", "webhooks"].map((name) => `${project}/${name}`);
  for (const read of [path, `${path}/deliveries`, `${path}/stats`, ...lists, ...paths]) {
    await expectStatus(api.get(read), 200);
  }
}

/** Lists so many keys of a user and of a service account, and so many audit events, that the list is charged. */
async function readLongLists(service: TestService): Promise<void> {
  const { admin, path, projectId } = await newServiceAccount(service);
  await givenAuditEvents(`user:${admin.userId}`, 60);
  await givenAuditEvents(`project:${projectId}`, 60);
  for (const log of ["/v1/audit-events", `/v1/projects/${projectId}/audit-events`]) {
    await expectStatus(admin.api.get(`${log}?limit=100`), 200);
  }
  for (const keys of ["/v1/api-keys", `${path}/api-keys`]) {
    for (let count = 0; count < 26; count++) await expectStatus(admin.api.post(keys, { name: "ci" }), 201);
    await expectStatus(admin.api.get(keys), 200);
  }
  for (let count = 0; count < 26; count++) await service.project(randomUUID(), { projectId });
  await expectStatus(admin.api.get(`/v1/projects/${projectId}/members`), 200);
}

async function rejectEvents(): Promise<void> {
  await sqs().send(new SendMessageCommand({ QueueUrl: queueUrl("events"), MessageBody: "not an event" }));
  await eventually(async () =>
    expect(await takeMessages("events", "dead letters")).toMatchObject([{ body: "not an event" }]),
  );
}

/** Replays an event for a webhook that is healthy, then failing, then disabled. */
async function replayEvents(service: TestService): Promise<void> {
  await withReceiver(service, async ({ projectId, webhook }) => {
    const since = secondsFromNow(-60);
    for (const state of [{ created_at: since }, { failing_since: since }, { disabled_at: since }]) {
      await changeWebhook(webhook, state);
      await givenEvent(eventOf(projectId));
      const replayed = await call("deliveries-replay", { project_id: projectId, since });
      expect(replayed).toMatchObject({ deliveries: 1, complete: true });
    }
  });
}

/** Branches of fan-out, send and sweep, by the response of the receiver. */
const pipeline = [
  deliverOnce,
  disableOn410,
  disableAfterFailingForDays,
  probeDuringOutage,
  redeliverDuringAttempt,
  recordBesideAnotherSender,
  recordUnrecorded,
  useSlowWebhook,
  workOnLines,
  notifyOwners,
  enableDuringFanOut,
  disableBeforeSend,
  loseRaces,
  supersedeOlderStates,
];

async function deliverOnce(service: TestService): Promise<void> {
  await withReceiver(service, async ({ projectId, webhook }, receiver) => {
    const event = eventOf(projectId);
    await publish(event);
    await receiver.waitFor(1);
    await publish(event);
    await publish(eventOf(projectId, { event: "deploy.failed" }));
    await publish(eventOf(randomUUID()));
    await untilAll(webhook, ["succeeded"]);
  });
}

async function disableOn410(service: TestService): Promise<void> {
  await withReceiver(service, async ({ api, path, projectId, webhook }, receiver) => {
    receiver.respondWith(410);
    await publish(eventOf(projectId));
    await untilAll(webhook, ["failed"]);
    await eventually(async () => expect((await api.get(path)).body.data.disabled_reason).toBe("gone"));
    await publish(eventOf(projectId));
    await untilAll(webhook, ["failed", "held"]);
    // A delivery that was due when the webhook was disabled.
    await untilStatus(await overdue(webhook), "held");
  });
}

async function disableAfterFailingForDays(service: TestService): Promise<void> {
  await withReceiver(service, async ({ api, path, webhook }, receiver) => {
    receiver.respondWith(500);
    await changeWebhook(webhook, { failing_since: secondsFromNow(-6 * 24 * 3600) });
    await untilStatus(await overdue(webhook, { attempt_count: 1 }), "failed");
    await eventually(async () => expect((await api.get(path)).body.data.disabled_reason).toBe("failing"));
  });
}

async function probeDuringOutage(service: TestService): Promise<void> {
  await withReceiver(service, async ({ api, path, projectId, webhook }, receiver) => {
    receiver.respondWith(500);
    await changeWebhook(webhook, { failing_since: secondsFromNow(-600) });
    await publish(eventOf(projectId));
    await receiver.waitFor(1);
    await publish(eventOf(projectId));
    await untilAll(webhook, ["pending", "pending"]);
    expect(receiver.received).toHaveLength(1);
    await expectStatus(api.get(path), 200);
    await expectStatus(api.get(`/v1/projects/${projectId}/webhooks`), 200);
    await expectStatus(api.patch(path, { events: ["deploy.started"] }), 200);
  });
  await withReceiver(service, async ({ api, path, webhook }) => {
    await givenWaiting(webhook, { due: new Date(Date.now() + 3_600_000), attempt_count: 1 });
    await expectStatus(api.patch(path, { mode: "live" }), 200);
    await untilAll(webhook, ["succeeded"]);
  });
}

async function redeliverDuringAttempt(service: TestService): Promise<void> {
  await withReceiver(service, async ({ api, path, webhook }, receiver) => {
    receiver.respondWith(async (_, response) => {
      receiver.respondWith(200);
      const [delivery] = await rowsOf(webhook);
      await api.post(`${path}/deliveries/${delivery?.id}/redeliver`);
      response.writeHead(500).end();
    });
    await overdue(webhook);
    await untilAll(webhook, ["succeeded"]);
    expect(receiver.received).toHaveLength(2);
  });
}

/** While a carried attempt waits for its response, another sender records one, or a duplicate of the event lets it wait. */
async function recordBesideAnotherSender(service: TestService): Promise<void> {
  await withReceiver(service, async ({ projectId, webhook }, receiver) => {
    receiver.respondWith(async ({ headers }, response) => {
      const id = String(headers["x-service-delivery"]);
      await givenDelivery(webhook, { id, status: "succeeded", attempt_count: 1 });
      response.end();
    });
    await publish(eventOf(projectId));
    await eventually(async () => expect(await rowsOf(webhook)).toMatchObject([{ attempt_count: 2 }]));
  });
  await withReceiver(service, async ({ projectId, webhook }, receiver) => {
    receiver.respondWith(async ({ headers }, response) => {
      const due = new Date(Date.now() + 75_000);
      await givenWaiting(webhook, { id: String(headers["x-service-delivery"]), due });
      response.end();
    });
    await publish(eventOf(projectId));
    await untilAll(webhook, ["succeeded"]);
  });
}

/** The outcome of a first attempt could not be recorded. */
async function recordUnrecorded(service: TestService): Promise<void> {
  await withReceiver(service, async ({ projectId, webhook }) => {
    const basis = newDelivery(webhook);
    const attempt = { number: 1, at: basis.created_at, duration_ms: 5, status_code: 200, trigger: "schedule" } as const;
    await enqueue([{ kind: "unrecorded", project_id: projectId, basis, attempt }]);
    await untilAll(webhook, ["succeeded"]);
  });
}

async function useSlowWebhook(service: TestService): Promise<void> {
  await withReceiver(service, async ({ api, path, projectId, webhook }) => {
    await changeWebhook(webhook, { slow_since: secondsFromNow(0) });
    const old = await givenDelivery(webhook, { status: "succeeded" });
    await givenDelivery(webhook, { status: "failed", attempt_count: 3 });
    await publish(eventOf(projectId));
    await expectStatus(api.post(`${path}/test`, { event: "deploy.failed" }), 202);
    await expectStatus(api.post(`${path}/deliveries/${old.id}/redeliver`), 202);
    await expectStatus(api.post(`${path}/recover`, { since: secondsFromNow(-60) }), 202);
    await untilAll(webhook, Array(4).fill("succeeded"));
  });
}

/** The line of a webhook that is failing, of a disabled one and of a deleted one. */
async function workOnLines(service: TestService): Promise<void> {
  await withReceiver(service, async ({ webhook }) => {
    await changeWebhook(webhook, { failing_since: secondsFromNow(-600) });
    await Promise.all([overdue(webhook), overdue(webhook)]);
    await untilAll(webhook, ["succeeded", "succeeded"]);
    await eventually(async () => expect(await wakeUpOf(webhook)).toBeUndefined());
  });
  await withReceiver(service, async ({ api, path, webhook }) => {
    await expectStatus(api.patch(path, { enabled: false }), 200);
    await untilStatus(await overdue(webhook), "held");
  });
  await withReceiver(service, async ({ api, path, webhook }) => {
    await expectStatus(api.delete(path), 204);
    await untilStatus(await overdue(webhook), "cancelled");
  });
  // No message waits for an hour, so the sweep finds it.
  await withReceiver(service, async ({ webhook }) => {
    await givenWaiting(webhook, { due: new Date(Date.now() + 3_600_000) });
    await makeDue(webhook);
    await untilAll(webhook, ["succeeded"]);
  });
}

/** A webhook is disabled, for which others of the project have a subscription: healthy, slow, disabled and enabled again. */
async function notifyOwners(service: TestService): Promise<void> {
  await withReceiver(service, async ({ api, path, projectId, webhook }, receiver) => {
    const others: Scenario["webhook"][] = [];
    for (let count = 0; count < 3; count++) {
      const body = { url: receiver.url, events: ["webhook.disabled"] };
      others.push((await api.post(`/v1/projects/${projectId}/webhooks`, body)).body.data);
    }
    const [, slow, disabled] = others as [Scenario["webhook"], Scenario["webhook"], Scenario["webhook"]];
    await changeWebhook(slow, { slow_since: secondsFromNow(0) });
    await changeWebhook(disabled, { disabled_at: secondsFromNow(0) });
    interceptDynamo(async (call, send) => {
      if (isHold(call) && JSON.stringify(call.input).includes(disabled.id)) {
        await api.patch(`/v1/projects/${projectId}/webhooks/${disabled.id}`, { enabled: true });
      }
      return send();
    });
    // Older than ten minutes, so that it is announced at once.
    await changeWebhook(webhook, { created_at: secondsFromNow(-3600) });
    await expectStatus(api.patch(path, { enabled: false }), 200);
    // The last one waits, because a message might carry its delivery.
    for (const other of others) await untilAll(other, [other === disabled ? "pending" : "succeeded"]);
    await untilAll(webhook, []);
  });
}

/** The webhook is enabled after fan-out has read it as disabled. */
async function enableDuringFanOut(service: TestService): Promise<void> {
  await withReceiver(service, async ({ api, path, projectId, webhook }) => {
    await expectStatus(api.patch(path, { enabled: false }), 200);
    interceptDynamo(async (call, send) => {
      if (isHold(call) && JSON.stringify(call.input).includes(webhook.id)) await api.patch(path, { enabled: true });
      return send();
    });
    await publish(eventOf(projectId));
    await untilAll(webhook, ["pending"]);
  });
}

/** The webhook is disabled after fan-out has read it. */
async function disableBeforeSend(service: TestService): Promise<void> {
  await withReceiver(service, async ({ api, path, projectId, webhook }) => {
    interceptSqs(async ({ input }, send) => {
      const isCarried = JSON.stringify(input.Entries ?? "").includes(webhook.id);
      if (isCarried) await expectStatus(api.patch(path, { enabled: false }), 200);
      return send();
    });
    await publish(eventOf(projectId));
    await untilAll(webhook, ["held"]);
  });
}

/** Each row that is to wait is written by another process first, so that the place of this one is removed. */
async function loseRaces(service: TestService): Promise<void> {
  await withReceiver(service, async ({ api, path, projectId, webhook, viewer }, receiver) => {
    const body = { url: receiver.url, events: ["webhook.disabled"] };
    const notified = (await api.post(`/v1/projects/${projectId}/webhooks`, body)).body.data;
    const slow = { slow_since: secondsFromNow(0) };
    await Promise.all([
      changeWebhook(webhook, { ...slow, created_at: secondsFromNow(-3600) }),
      changeWebhook(notified, slow),
    ]);
    const [failed, old] = [await givenDelivery(webhook, { status: "failed" }), await givenDelivery(webhook)];
    let lost = 0;
    interceptDynamo(async (call, send) => {
      const Item = call.input.Item as Record<string, unknown> | undefined;
      const isMeant = [webhook.id, notified.id].includes(Item?.webhook_id as string);
      if (!isMeant || Item?.status !== "pending" || !isCall(call, "PutItem", "deliveries")) return send();
      lost += 1;
      await send({ ...call.input, Item: { ...Item, place: `1#${secondsFromNow(60)}#another`, version: randomUUID() } });
      return send();
    });
    await publish(eventOf(projectId));
    await eventually(() => expect(lost).toBe(1));
    await givenEvent(eventOf(projectId));
    await call("deliveries-replay", { project_id: projectId, since: secondsFromNow(-60) });
    await expectStatus(api.post(`${path}/test`, { event: "deploy.failed" }), 202);
    await expectStatus(api.post(`${path}/deliveries/${old.id}/redeliver`), 202);
    await expectStatus(api.post(`${path}/recover`, { since: secondsFromNow(-60) }), 202);
    expect(lost).toBe(5);
    await expectStatus(viewer.get(`${path}/deliveries/${failed.id}`), 200);
    await expectStatus(api.patch(path, { enabled: false }), 200);
    await eventually(() => expect(lost).toBe(6));
  });
}

/** A deployment has a newer state: than one that a message carries, and than one that waits. */
async function supersedeOlderStates(service: TestService): Promise<void> {
  await withReceiver(service, async ({ api, path, projectId, webhook }, receiver) => {
    await expectStatus(api.patch(path, { delivery: "latest", headers: { Authorization: "Bearer t" } }), 200);
    const deployment_id = randomUUID();
    await publish(eventOf(projectId, { event: "deploy.failed", deployment_id }));
    await receiver.waitFor(1);
    await publish(eventOf(projectId, { deployment_id, timestamp: secondsFromNow(-60) }));
    await overdue(webhook, { deployment_id });
    await untilAll(webhook, ["succeeded", "superseded", "superseded"]);
  });
}

/** An assistant subscribes with a key, gets an event after a retry, and ends what fails; then its project is full. */
async function useSubscriptions(service: TestService): Promise<void> {
  await withReceiver(service, async ({ api, projectId }, receiver) => {
    const { key } = (await api.post("/v1/api-keys", { name: "assistant" })).body.data;
    const path = `/v1/projects/${projectId}/subscriptions`;
    const secret = () => `whsec_${randomBytes(32).toString("base64")}`;
    const subscribe = (more: object = {}) =>
      service.as(key).post(path, { url: `${receiver.url}/2`, event: "deploy.failed", secret: secret(), ...more });
    receiver.respondWith(({ body, path }, response) => {
      const { challenge } = JSON.parse(body);
      response.writeHead(challenge || !path.endsWith("/2") ? 200 : 500).end(JSON.stringify({ challenge }));
    });
    const { id } = (await subscribe()).body.data;
    await expectStatus(subscribe(), 200);
    await publish(eventOf(projectId, { event: "deploy.failed" }));
    await untilAll({ id } as Scenario["webhook"], ["failed"]);
    await expectStatus(subscribe({ ttl_seconds: 0 }), 200);
    const { id: ended } = (await subscribe({ event: "deploy.started" })).body.data;
    const expires_at = secondsFromNow(-1);
    const subscription = { user_id: "", expires_at, secret_hash: "" };
    await changeWebhook({ project_id: projectId, id: ended }, { subscription });
    await changeWebhook({ project_id: projectId, id: "#count" }, { subscription_count: 200 } as object);
    await expectStatus(subscribe({ event: "deploy.succeeded" }), 200);
  });
}

/** Each function that has the secret of the signatures reads it. @param wait until the others no longer share what one has read */
export async function usePublicKeys(service: TestService, wait: () => void): Promise<void> {
  await withReceiver(service, async ({ api, path, projectId, webhook }) => {
    await expectStatus(api.patch(path, { signatures: ["ed25519"] }), 200);
    wait();
    const directory = `/.well-known/http-message-signatures-directory?project_id=${projectId}`;
    expect((await fetch(service.baseUrl + directory)).status).toBe(200);
    wait();
    await publish(eventOf(projectId, { event: "deploy.failed" }));
    await untilAll(webhook, ["succeeded"]);
    wait();
    await expectStatus(api.post(`${path}/test`, {}), 202);
    await untilAll(webhook, ["succeeded", "succeeded"]);
  });
}

/** A machine signs in, and gets a key. */
async function signIn(service: TestService): Promise<void> {
  const { api, userId } = service.user();
  const project = await service.project(userId);
  const post = (body: object) =>
    send(`${service.baseUrl}/v1/sign-ins`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const { device_code, user_code } = (await post({ client: "svc" })).body.data;
  const limits = { name: "svc", project_ids: [project], expires_at: secondsFromNow(80 * 86_400) };
  await expectStatus(api.patch("/v1/sign-ins", { user_code, decision: "approve", ...limits }), 200);
  expect((await post({ device_code })).body.data.status).toBe("approved");
}

async function withReceiver(
  service: TestService,
  use: (scenario: Scenario, receiver: Receiver) => Promise<void>,
): Promise<void> {
  const receiver = await startReceiver();
  try {
    await use(await newScenario(service, { url: receiver.url, events: ["deploy.started", "deploy.failed"] }), receiver);
  } finally {
    await receiver.close();
  }
}

const secondsFromNow = (seconds: number): string => new Date(Date.now() + seconds * 1000).toISOString();

/** Lets a delivery wait that is overdue. */
const overdue = (webhook: Scenario["webhook"], changes: Partial<Delivery> = {}) =>
  givenWaiting(webhook, { due: new Date(Date.now() - 600_000), ...changes });

const untilStatus = (delivery: Delivery, status: Delivery["status"]) =>
  eventually(async () => expect((await rowOf(delivery)).status).toBe(status));

/** Waits until the deliveries of a webhook have these statuses, in any order. */
const untilAll = (webhook: Scenario["webhook"], statuses: Delivery["status"][]) =>
  eventually(async () => expect((await statusesOf(webhook)).toSorted()).toEqual(statuses));

const statusesOf = async (webhook: Scenario["webhook"]) => (await rowsOf(webhook)).map(({ status }) => status);

import { randomUUID } from "node:crypto";
import { DeleteCommand, GetCommand } from "@aws-sdk/lib-dynamodb";
import type { Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import type { OperationId } from "../../../../functions/foundation/manifest/endpoints.ts";
import { endpointRows } from "../../../../functions/foundation/manifest/function-rows.ts";
import { dynamo } from "../../../../functions/foundation/platform/aws.ts";
import { tableName } from "../../../../functions/foundation/platform/env.ts";
import { type SuspensionResult, handler as suspendFor } from "../../../../functions/webhooks/webhook/suspend.ts";
import * as webhooks from "../../../../functions/webhooks/webhook/webhook-store.ts";
import { visitLine } from "../../../support/attempts.ts";
import { beforeHold, interceptDynamo, restoreAws } from "../../../support/aws-calls.ts";
import { call } from "../../../support/call.ts";
import {
  changeWebhook,
  eventOf,
  givenDelivery,
  givenWaiting,
  pipelineBatch,
  rowOf,
  rowsOf,
  sqsEvent,
  takeDeliveryMessages,
} from "../../../support/deliveries.ts";
import { fakeDate } from "../../../support/fake-date.ts";
import { notifications } from "../../../support/notifications.ts";
import { putAll } from "../../../support/put-all.ts";
import { useReceiver } from "../../../support/receiver.ts";
import { errorOf, useScenario } from "../../../support/scenario.ts";
import { send, useService } from "../../../support/service.ts";
import { itemsOf } from "../../../support/stored-items.ts";
import { successStatusOf, validBodyOf } from "../../../support/valid-bodies.ts";

const service = useService();
const receiver = useReceiver("test");
const scenario = useScenario(service, () => ({ url: receiver.url }));
afterEach(() => takeDeliveryMessages());

const suspend = (project_id = scenario.projectId) =>
  call<SuspensionResult>("projects-suspend", { project_id, suspended: true });
const resume = (project_id = scenario.projectId) =>
  call<SuspensionResult>("projects-suspend", { project_id, suspended: false });

const webhooksPath = (projectId = scenario.projectId) => `/v1/projects/${projectId}/webhooks`;
const create = (projectId = scenario.projectId) =>
  scenario.api.post(webhooksPath(projectId), { url: receiver.url, events: ["deploy.started"] });
const shown = async (path = scenario.path) => (await scenario.api.get(path)).body.data;
const recover = () => scenario.api.post(`${scenario.path}/recover`, { since: "2020-01-01T00:00:00Z", status: "held" });
const fanOut = (event: object) => call("deliveries-fan-out", pipelineBatch(event));
const suspendedError = { status: 403, code: "project_suspended" };

/** Returns the time of suspension in each item of a project: the counter and its webhooks. */
async function marksOf(projectId = scenario.projectId): Promise<(string | undefined)[]> {
  return (await itemsOf("webhooks", { project_id: projectId })).map(({ suspended_at }) => suspended_at);
}

/** Lets the worker look at the line of the webhook. */
const visit = () => visitLine({ project_id: scenario.projectId, id: scenario.webhook.id });

/** Sends the messages that are in the queue. */
async function sendQueued(): Promise<void> {
  for (const message of await takeDeliveryMessages()) {
    await call(message.kind === "first" ? "attempts-send" : "attempts-send-slow", sqsEvent(message));
  }
}

describe("the function", () => {
  test("keeps the time of the first call, and answers it again at the end", async () => {
    const first = await suspend();
    expect(await suspend()).toEqual(first);
    expect(await resume()).toEqual({ ...first, suspended: false });
    expect(await resume()).toEqual({ ...first, suspended: false, suspended_at: null });
    expect(await marksOf()).toEqual([undefined, undefined]);
  });

  test("ending removes a mark that one webhook alone has", async () => {
    await changeWebhook(scenario.webhook, { suspended_at: "2026-03-01T12:00:00.000Z" });
    await resume();
    expect(await marksOf()).toEqual([undefined, undefined]);
  });

  test("ending what never began answers null, and leaves no item for an unknown project", async () => {
    const project_id = randomUUID();
    const result = await resume(project_id);
    expect(result).toEqual({ project_id, suspended: false, suspended_at: null, webhooks: [] });
    const Key = { project_id, id: "#count" };
    expect((await dynamo().send(new GetCommand({ TableName: tableName("webhooks"), Key }))).Item).toBeUndefined();
  });

  test("suspends a project that has no item, also an unknown one", async () => {
    const { userId, api } = service.user();
    const project = await service.project(userId);
    expect(await suspend(project)).toMatchObject({ webhooks: [], suspended_at: expect.any(String) });
    const body = { url: receiver.url, events: ["deploy.started"] };
    expect(errorOf(await api.post(webhooksPath(project), body))).toEqual(suspendedError);
    expect((await api.get(webhooksPath(project))).body.data).toEqual([]);
    await resume(project);
    expect((await api.post(webhooksPath(project), body)).status).toBe(201);
  });

  test("suspends a project whose webhooks were all deleted, and one with 20 webhooks", async () => {
    await scenario.api.delete(scenario.path);
    expect((await suspend()).webhooks).toEqual([]);
    expect(await marksOf()).toEqual([expect.any(String)]);
    await resume();
    for (let count = 0; count < 20; count++) expect((await create()).status).toBe(201);
    expect((await suspend()).webhooks).toHaveLength(20);
    expect(await marksOf()).toEqual(Array(21).fill(expect.any(String)));
    // The limit does not hide the suspension.
    expect(errorOf(await create())).toEqual(suspendedError);
  });

  test("suspends a project with 200 subscriptions of assistants, more than fit into a transaction, which get no mark", async () => {
    const { url, project_id } = scenario.webhook;
    const subscription = { user_id: "ann", expires_at: "2099-01-01T00:00:00.000Z", secret_hash: "" };
    await putAll(
      "webhooks",
      Array.from({ length: 200 }, () => ({
        project_id,
        id: randomUUID(),
        url,
        events: ["deploy.failed"],
        subscription,
      })),
    );
    for (const change of [suspend, resume]) expect((await change()).webhooks).toEqual([scenario.webhook.id]);
    await suspend();
    expect((await marksOf()).filter((mark) => mark !== undefined)).toHaveLength(2);
  });

  test("with the id of a webhook, disables or enables only that one, as an admin of the project would", async () => {
    const other = (await create()).body.data.id;
    const ofWebhook = (suspended: boolean, webhook_id = scenario.webhook.id) =>
      call<SuspensionResult>("projects-suspend", { project_id: scenario.projectId, webhook_id, suspended });
    const { suspended_at, ...rest } = await ofWebhook(true);
    expect(rest).toEqual({ project_id: scenario.projectId, suspended: true, webhooks: [scenario.webhook.id] });
    const disabled = { enabled: false, disabled_at: suspended_at, disabled_reason: "manual" };
    expect(await shown()).toMatchObject(disabled);
    expect(await shown(`${webhooksPath()}/${other}`)).toMatchObject({ enabled: true });
    expect((await ofWebhook(true)).suspended_at).toBe(suspended_at);
    expect(await marksOf()).toEqual([undefined, undefined, undefined]);
    expect(await notifications()).toContainEqual(
      expect.objectContaining({ type: "webhook.disabled", project_id: scenario.projectId }),
    );
    expect((await ofWebhook(false)).suspended_at).toBeNull();
    expect(await shown()).toMatchObject({ enabled: true });
    await expect(ofWebhook(true, randomUUID())).rejects.toThrow("No webhook with this id exists.");
  });

  test.each([
    ["undefined", undefined, ""],
    ["no project", { suspended: true }, "project_id"],
    ["a project that is not a UUID", { project_id: "7", suspended: true }, "project_id"],
    ["no state", { project_id: randomUUID() }, "suspended"],
    ["a state that is text", { project_id: randomUUID(), suspended: "false" }, "suspended"],
    ["an unknown field", { project_id: randomUUID(), suspended: true, reason: "x" }, "reason"],
  ])("throws validation_error for %s with the path of the field", async (_title, input, path) => {
    await expect(suspendFor(input)).rejects.toMatchObject({ code: "validation_error", details: [{ path }] });
  });
});

describe("concurrently with", () => {
  /** Runs `act` once, between the read and the transaction of the function. */
  function beforeMark(act: () => Promise<unknown>): void {
    let hasActed = false;
    interceptDynamo(async ({ command, input }, send) => {
      if (command === "TransactWriteItemsCommand" && !hasActed && JSON.stringify(input).includes("suspended_at =")) {
        hasActed = true;
        await act();
      }
      return send();
    });
  }

  test("a webhook that is created, it marks that one too", async () => {
    beforeMark(create);
    expect((await suspend()).webhooks).toHaveLength(2);
    expect(await marksOf()).toEqual(Array(3).fill(expect.any(String)));
  });

  test("the first webhook of a project, it marks that one", async () => {
    const project = await service.project(service.user().userId);
    const { userId, api } = service.user();
    await service.project(userId, { projectId: project });
    const first = () => api.post(webhooksPath(project), { url: receiver.url, events: ["deploy.started"] });
    beforeMark(first);
    expect((await suspend(project)).webhooks).toHaveLength(1);
    expect(await marksOf(project)).toEqual(Array(2).fill(expect.any(String)));
  });

  test("a webhook that is deleted, it does not create it again", async () => {
    beforeMark(() => scenario.api.delete(scenario.path));
    expect((await suspend()).webhooks).toEqual([]);
    expect(await marksOf()).toEqual([expect.any(String)]);
  });

  test("a webhook that replaces another one, it marks the new one", async () => {
    beforeMark(async () => {
      await scenario.api.delete(scenario.path);
      await create();
    });
    const { webhooks: marked } = await suspend();
    expect(marked).toHaveLength(1);
    expect(marked).not.toContain(scenario.webhook.id);
    expect(await marksOf()).toEqual(Array(2).fill(expect.any(String)));
  });

  test("a change of a webhook by a user and by a sender, nothing is lost", async () => {
    const { id } = scenario.webhook;
    beforeMark(async () => {
      await scenario.api.patch(scenario.path, { enabled: false, events: ["deploy.failed"] });
      await changeWebhook(scenario.webhook, { slow_since: "2026-03-02T12:00:00.000Z" });
    });
    await suspend();
    expect(await webhooks.find(scenario.projectId, id)).toMatchObject({
      disabled_reason: "manual",
      events: ["deploy.failed"],
      slow_since: expect.any(String),
      suspended_at: expect.any(String),
    });
  });

  test("calls that suspend, resume and create, all items have the state of the last one", async () => {
    for (let round = 0; round < 5; round++) {
      await Promise.all([suspend(), resume(), create(), suspend(), resume(), create()]);
      const marks = await marksOf();
      expect(new Set(marks).size).toBe(1);
    }
    await suspend();
    expect(await marksOf()).not.toContain(undefined);
    await resume();
    expect(new Set(await marksOf())).toEqual(new Set([undefined]));
  });
});

describe("while a project is suspended", () => {
  test("what sends is rejected with project_suspended, sends nothing and uses no budget", async () => {
    const failed = await givenDelivery(scenario.webhook, { status: "failed", attempt_count: 1 });
    await suspend();
    const rejected = [
      await create(),
      await scenario.api.post(`${scenario.path}/test`),
      await scenario.api.post(`${scenario.path}/deliveries/${failed.id}/redeliver`),
      await recover(),
    ];
    expect(rejected.map(errorOf)).toEqual(Array(4).fill(suspendedError));
    const replay = { project_id: scenario.projectId, since: "2026-03-01T00:00:00Z" };
    await expect(call("deliveries-replay", replay)).rejects.toMatchObject({ code: "project_suspended" });
    expect(await rowsOf(scenario.webhook)).toEqual([failed]);
    expect(await takeDeliveryMessages()).toEqual([]);
    expect(await itemsOf("requestBudgets", { project_id: scenario.projectId })).toEqual([]);
  });

  test("deliveries and events cannot be read, and are not; why can be read, and the credentials", async () => {
    const { id } = await givenDelivery(scenario.webhook);
    const project = `/v1/projects/${scenario.projectId}`;
    await suspend();
    const queries: string[] = [];
    interceptDynamo(async ({ command, input }, send) => {
      if (command === "QueryCommand") queries.push(String(input.TableName));
      return send();
    });
    const ofWebhook = ["", `/${id}`].map((rest) => `${scenario.path}/deliveries${rest}`);
    const ofProject = ["deliveries", "events"].map((name) => `${project}/${name}`);
    const certification = `${scenario.path}/certifications/${randomUUID()}`;
    for (const path of [...ofWebhook, ...ofProject, `${scenario.path}/stats`, certification]) {
      expect({ path, ...errorOf(await scenario.api.get(path)) }).toEqual({ path, ...suspendedError });
    }
    expect(queries.filter((table) => /-(deliveries|events)$/.test(table))).toEqual([]);
    const names = ["webhooks", "audit-events", "service-accounts", "trusted-workflows"];
    for (const path of ["/v1/projects", scenario.path, ...names.map((name) => `${project}/${name}`)]) {
      expect({ path, status: (await scenario.api.get(path)).status }).toEqual({ path, status: 200 });
    }
    restoreAws();
    await resume();
    for (const path of [...ofWebhook, ...ofProject]) expect((await scenario.api.get(path)).status).toBe(200);
  });

  test("a viewer still gets forbidden, and another user not_found", async () => {
    await suspend();
    expect(errorOf(await scenario.viewer.post(`${scenario.path}/test`))).toMatchObject({ code: "forbidden" });
    expect(errorOf(await service.user().api.post(`${scenario.path}/test`))).toMatchObject({ code: "not_found" });
  });

  /** Each endpoint that changes something in a project: what takes away is allowed. A new row must be added here. */
  const whileSuspended: Partial<Record<OperationId, "allowed" | "refused">> = {
    createWebhook: "refused",
    updateWebhook: "refused",
    rotateWebhookSecret: "refused",
    deleteWebhook: "allowed",
    sendTestDelivery: "refused",
    certifyWebhook: "refused",
    redeliver: "refused",
    recoverDeliveries: "refused",
    createServiceAccount: "refused",
    deleteServiceAccount: "allowed",
    createServiceAccountApiKey: "refused",
    updateServiceAccountApiKey: "refused",
    rollServiceAccountApiKey: "refused",
    deleteServiceAccountApiKey: "allowed",
    createTrustedWorkflow: "refused",
    deleteTrustedWorkflow: "allowed",
  };
  const changing = endpointRows.filter(({ method, path }) => method !== "GET" && path.includes("{project_id}"));

  test("the table has each endpoint that changes something in a project", () => {
    expect(Object.keys(whileSuspended).sort()).toEqual(changing.map(({ id }) => id).sort());
  });

  test.each(changing)("$id is allowed or refused as the table says, and allowed after the suspension", async (row) => {
    const { api, projectId, path } = scenario;
    const post = async (resource: string, body: object) =>
      (await api.post(`/v1/projects/${projectId}/${resource}`, body)).body.data.id as string;
    const account = await post("service-accounts", { name: "ci", role: "viewer" });
    const trust = { issuer: "github", repository_id: "1296269", permissions: ["webhooks:read"] };
    const ids: Record<string, string> = {
      project_id: projectId,
      webhook_id: scenario.webhook.id,
      delivery_id: (await api.post(`${path}/test`, {})).body.data.id,
      service_account_id: account,
      id: await post(`service-accounts/${account}/api-keys`, { name: "job" }),
      trusted_workflow_id: await post("trusted-workflows", trust),
    };
    const target = row.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? "");
    const headers = { authorization: `Bearer ${scenario.token}`, "content-type": "application/json" };
    const request = () =>
      send(`${service.baseUrl}${target}`, { method: row.method, headers, body: validBodyOf(row) ?? null });
    await suspend();
    const { status, body } = await request();
    const isRefused = whileSuspended[row.id as OperationId] === "refused";
    const success = { status: successStatusOf(row), code: undefined };
    expect({ status, code: body?.error?.code }).toEqual(isRefused ? suspendedError : success);
    await resume();
    if (isRefused) expect((await request()).body?.error?.code).not.toBe(suspendedError.code);
  });

  /**
   * Keys belong to their user, who may need them for other projects: they can be rolled, renamed and deleted. But a new key that names
   * the project is a new credential for it.
   */
  test.each<[string, "allowed" | "refused", string, string, (suspended: string, other: string) => object | undefined]>([
    ["create a key", "allowed", "POST", "", () => ({})],
    ["create one for the project", "refused", "POST", "", (suspended) => ({ project_ids: [suspended] })],
    ["create one for another project", "allowed", "POST", "", (_, other) => ({ project_ids: [other] })],
    ["create one for both", "refused", "POST", "", (suspended, other) => ({ project_ids: [other, suspended] })],
    ["rename one for the project", "allowed", "PATCH", "/{id}", () => ({})],
    ["roll one for the project", "allowed", "POST", "/{id}/roll", () => undefined],
    ["delete one for the project", "allowed", "DELETE", "/{id}", () => undefined],
  ])("a member can %s: %s", async (_title, expected, method, path, fieldsFor) => {
    const { userId, token, api } = service.user();
    const [project, other] = [await service.project(userId), await service.project(userId)];
    const { id } = (await api.post("/v1/api-keys", { name: "ci", project_ids: [project] })).body.data;
    const fields = fieldsFor(project, other);
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const body = fields === undefined ? null : JSON.stringify({ name: "ci", ...fields });
    const request = () => send(`${service.baseUrl}/v1/api-keys${path.replace("{id}", id)}`, { method, headers, body });
    await suspend(project);
    const response = await request();
    if (expected === "refused") expect(errorOf(response)).toEqual(suspendedError);
    else expect(response.status).toBeLessThan(300);
    await resume(project);
    if (expected === "refused") expect((await request()).status).toBe(201);
  });

  test("webhooks show since when, and only then; they can be read and deleted", async () => {
    expect(await shown()).not.toHaveProperty("suspended_at");
    const { suspended_at } = await suspend();
    expect(await shown()).toMatchObject({ enabled: true, disabled_at: null, suspended_at });
    expect(await shown(webhooksPath())).toMatchObject([{ enabled: true, suspended_at }]);
    expect((await scenario.api.delete(scenario.path)).status).toBe(204);
    expect(await marksOf()).toEqual([suspended_at]);
  });

  test("enabling a webhook does not end the suspension, and its end does not enable a webhook", async () => {
    await scenario.api.patch(scenario.path, { enabled: false });
    const { suspended_at } = await suspend();
    const ofWebhook = { project_id: scenario.projectId, webhook_id: scenario.webhook.id };
    await call("projects-suspend", { ...ofWebhook, suspended: false });
    expect(await shown()).toMatchObject({ enabled: true, suspended_at });
    expect(errorOf(await scenario.api.post(`${scenario.path}/test`))).toEqual(suspendedError);
    await call("projects-suspend", { ...ofWebhook, suspended: true });
    await resume();
    const after = await shown();
    expect(after).toMatchObject({ enabled: false, disabled_reason: "manual" });
    expect(after).not.toHaveProperty("suspended_at");
  });

  test("an event is held: a row without a message", async () => {
    await suspend();
    await fanOut(eventOf(scenario.projectId));
    expect(await takeDeliveryMessages()).toEqual([]);
    const [row, ...others] = await rowsOf(scenario.webhook);
    expect(others).toEqual([]);
    expect(row).toMatchObject({ status: "held", attempt_count: 0 });
    expect(row).not.toHaveProperty("place");
  });

  test("a message that was in the queue sends nothing, and its delivery is held", async () => {
    await fanOut(eventOf(scenario.projectId));
    await suspend();
    await sendQueued();
    expect(receiver.received).toEqual([]);
    expect(await rowsOf(scenario.webhook)).toMatchObject([{ status: "held", attempt_count: 0 }]);
  });

  test.each([
    ["a retry", {}],
    ["a redelivery", { trigger: "redeliver" }],
    ["a recovered delivery", { trigger: "recover" }],
    ["a test delivery", { trigger: "test", test: true }],
  ] as [string, Partial<Delivery>][])("%s that is due is held", async (_, changes) => {
    const delivery = await givenWaiting(scenario.webhook, { attempt_count: 1, ...changes });
    await suspend();
    await visit();
    expect(receiver.received).toEqual([]);
    expect(await rowOf(delivery)).toMatchObject({ status: "held", attempt_count: 1 });
  });

  test("a request in flight is recorded as usual, and its retry is held", async () => {
    const delivery = await givenWaiting(scenario.webhook);
    receiver.respondWith(async (_, response) => {
      await suspend();
      response.writeHead(500).end();
    });
    await visit();
    expect(await rowOf(delivery)).toMatchObject({ status: "pending", attempt_count: 1 });
    fakeDate().advance(10);
    await visit();
    expect(receiver.received).toHaveLength(1);
    expect(await rowOf(delivery)).toMatchObject({ status: "held", attempt_count: 1 });
  });
});

describe("when the suspension ends", () => {
  test("held deliveries stay held until a recovery sends them", async () => {
    await givenWaiting(scenario.webhook, { attempt_count: 1 });
    await suspend();
    await fanOut(eventOf(scenario.projectId));
    await visit();
    await resume();
    expect((await rowsOf(scenario.webhook)).map(({ status }) => status)).toEqual(["held", "held"]);
    expect((await recover()).body.data).toMatchObject({ count: 2, complete: true });
    await sendQueued();
    expect(receiver.received).toHaveLength(2);
    expect((await rowsOf(scenario.webhook)).map(({ status }) => status)).toEqual(["succeeded", "succeeded"]);
  });

  test("a delivery that no sender has touched continues as planned", async () => {
    await fanOut(eventOf(scenario.projectId));
    await suspend();
    await resume();
    await sendQueued();
    expect(await rowsOf(scenario.webhook)).toMatchObject([{ status: "succeeded" }]);
  });

  test("before the hold is written, an event is sent after all", async () => {
    await suspend();
    beforeHold(resume);
    await fanOut(eventOf(scenario.projectId));
    expect(await rowsOf(scenario.webhook)).toMatchObject([{ status: "pending" }]);
    // When a message that may carry it as well has ended.
    fakeDate().advance(76);
    await visit();
    expect(await rowsOf(scenario.webhook)).toMatchObject([{ status: "succeeded" }]);
  });

  test.each(["schedule", "redeliver"] as const)(
    "before the hold is written, an attempt (%s) is made after all",
    async (trigger) => {
      const delivery = await givenWaiting(scenario.webhook, trigger === "schedule" ? {} : { trigger });
      await suspend();
      beforeHold(resume);
      // It waits at the same place, for the next visit.
      await visit();
      fakeDate().advance(10);
      await visit();
      expect(receiver.received).toHaveLength(1);
      expect(await rowOf(delivery)).toMatchObject({ status: "succeeded", attempt_count: 1 });
    },
  );

  test("and begins again before the hold is written, the delivery is held", async () => {
    const delivery = await givenWaiting(scenario.webhook);
    await suspend();
    beforeHold(async () => {
      await resume();
      await suspend();
    });
    await visit();
    expect(receiver.received).toEqual([]);
    expect((await rowOf(delivery)).status).toBe("held");
  });

  test("while its webhook is disabled, a delivery that is being held stays held", async () => {
    const delivery = await givenWaiting(scenario.webhook);
    await scenario.api.patch(scenario.path, { enabled: false });
    await suspend();
    beforeHold(resume);
    await visit();
    expect((await rowOf(delivery)).status).toBe("held");
    expect(errorOf(await recover())).toEqual({ status: 409, code: "conflict" });
  });

  test("a webhook that was deleted meanwhile stays deleted, without a row that only has a mark", async () => {
    await suspend();
    const { project_id, id } = scenario.webhook;
    await dynamo().send(new DeleteCommand({ TableName: tableName("webhooks"), Key: { project_id, id } }));
    await resume();
    const { Item } = await dynamo().send(new GetCommand({ TableName: tableName("webhooks"), Key: { project_id, id } }));
    expect(Item).toBeUndefined();
  });
});

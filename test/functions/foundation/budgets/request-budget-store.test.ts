import { randomUUID } from "node:crypto";
import type { Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import { chargeRequest } from "../../../../functions/foundation/budgets/request-budget-store.ts";
import { inParallel } from "../../../../functions/foundation/platform/parallel.ts";
import { interceptDynamo, watchQueue } from "../../../support/aws-calls.ts";
import { call } from "../../../support/call.ts";
import { givenDelivery, rowsOf, takeDeliveryMessages } from "../../../support/deliveries.ts";
import { givenUsedBudget, usedBudget } from "../../../support/request-budget.ts";
import { errorOf, newScenario, useScenario } from "../../../support/scenario.ts";
import { type Api, useService } from "../../../support/service.ts";
import { newServiceAccount } from "../../../support/service-accounts.ts";

const service = useService();
let failed: Delivery;
const scenario = useScenario(service);
beforeEach(async () => {
  failed = await givenDelivery(scenario.webhook, { status: "failed" });
});
afterEach(() => takeDeliveryMessages());

const since = "2026-03-01T00:00:00Z";
type Request = "test" | "redeliver" | "recover";
const requests: [Request, number][] = [
  ["test", 1],
  ["redeliver", 1],
  ["recover", 10],
];

function send(request: Request, { api = scenario.api, path = scenario.path }: { api?: Api; path?: string } = {}) {
  if (request === "redeliver") return api.post(`${path}/deliveries/${failed.id}/redeliver`);
  return api.post(`${path}/${request}`, request === "recover" ? { since } : {});
}

describe.each(requests)("%s", (request, cost) => {
  test("uses its part of the project's budget, in one write", async () => {
    const writes: unknown[] = [];
    interceptDynamo(async ({ command, input }, send) => {
      if (String(input.TableName).endsWith("request-budgets")) writes.push(command);
      return send();
    });
    expect((await send(request)).status).toBe(202);
    expect(writes).toEqual(["UpdateItemCommand"]);
    expect(await usedBudget(scenario.projectId)).toBe(cost);
  });

  test("is accepted as long as the budget covers it", async () => {
    await givenUsedBudget(scenario.projectId, 120 - cost);
    expect((await send(request)).status).toBe(202);
  });

  test("is rejected with 429 beyond the budget, before it changes or sends anything", async () => {
    await givenUsedBudget(scenario.projectId, 120 - cost + 1);
    const batches = watchQueue();
    const response = await send(request);
    expect(errorOf(response)).toEqual({ status: 429, code: "rate_limited" });
    const seconds = Number(response.headers.get("retry-after"));
    expect(seconds).toBeGreaterThanOrEqual(1);
    expect(seconds).toBeLessThanOrEqual(60);
    expect(response.body.error.message).toContain(`Try again in ${seconds} s.`);
    expect(await rowsOf(scenario.webhook)).toEqual([failed]);
    expect(batches).toEqual([]);
    expect(await usedBudget(scenario.projectId)).toBe(2 * (120 - cost + 1));
  });

  test("uses nothing when the caller is a viewer, or the webhook is unknown", async () => {
    expect((await send(request, { api: scenario.viewer })).status).toBe(403);
    expect((await send(request, { path: scenario.path.replace(/[^/]+$/, randomUUID()) })).status).toBe(404);
    expect(await usedBudget(scenario.projectId)).toBe(0);
  });
});

test.each<[string, string, unknown]>([
  ["a test with an invalid event", "test", { event: "deploy.unknown" }],
  ["a test with an event to which the webhook does not subscribe", "test", { event: "webhook.failing" }],
  ["a recovery without a time", "recover", {}],
  ["a recovery with an invalid cursor", "recover", { since, cursor: "A".repeat(43) }],
])("%s uses nothing", async (_, action, body) => {
  expect((await scenario.api.post(`${scenario.path}/${action}`, body)).status).toBe(400);
  expect(await usedBudget(scenario.projectId)).toBe(0);
});

test("a recovery of a disabled webhook uses nothing", async () => {
  await scenario.api.patch(scenario.path, { enabled: false });
  expect((await send("recover")).status).toBe(409);
  expect(await usedBudget(scenario.projectId)).toBe(0);
});

test("a redelivery of an unknown delivery uses the budget, because it costs a write", async () => {
  const { status } = await scenario.api.post(`${scenario.path}/deliveries/${randomUUID()}/redeliver`);
  expect({ status, used: await usedBudget(scenario.projectId) }).toEqual({ status: 404, used: 1 });
});

const changes = [
  { enabled: false },
  { enabled: true },
  { url: "https://example.com/other" },
  { mode: "shadow" },
  { mode: "live" },
  { name: "Chat" },
  { filter: { branch: ["main"] } },
  { events: ["deploy.failed"] },
];

test.each(changes)("the change %j of a webhook uses a budget of its own", async (change) => {
  await givenUsedBudget(scenario.projectId, 120);
  expect((await scenario.api.patch(scenario.path, change)).status).toBe(200);
  expect(await usedBudget(`toggle:${scenario.projectId}`)).toBe(1);
});

test.each(changes)("the change %j beyond this budget is rejected, and other requests are accepted", async (change) => {
  await givenUsedBudget(`toggle:${scenario.projectId}`, 120);
  expect(errorOf(await scenario.api.patch(scenario.path, change))).toEqual({ status: 429, code: "rate_limited" });
  const { status, body } = await scenario.api.get(scenario.path);
  expect({ status, enabled: body.data.enabled }).toEqual({ status: 200, enabled: true });
  expect((await send("redeliver")).status).toBe(202);
  expect((await scenario.api.delete(scenario.path)).status).toBe(204);
});

test("all webhooks of a project share its budget, and another project has its own", async () => {
  const { body } = await scenario.api.post(`/v1/projects/${scenario.projectId}/webhooks`, {
    url: "https://example.com/second",
    events: ["deploy.failed"],
  });
  await givenUsedBudget(scenario.projectId, 120);
  expect((await send("test", { path: scenario.path.replace(/[^/]+$/, body.data.id) })).status).toBe(429);
  const other = await newScenario(service);
  expect((await other.api.post(`${other.path}/test`, {})).status).toBe(202);
});

test("a user who has created and rolled 120 credentials in a minute creates and rolls no more, of any kind, and all can be ended", async () => {
  const { admin, accounts, path, createKey } = await newServiceAccount(service);
  const { id, key } = (await admin.api.post("/v1/api-keys", { name: "ci" })).body.data;
  const [first, second] = [await createKey(), await createKey()];
  const budget = `credentials:${admin.userId}`;
  expect(await usedBudget(budget)).toBe(4);
  await givenUsedBudget(budget, 120);
  const creations = {
    "/v1/api-keys": { name: "ci" },
    [`/v1/api-keys/${id}/roll`]: {},
    [accounts]: { name: "deploy", role: "viewer" },
    [`${path}/api-keys`]: { name: "ci" },
    [`${path}/api-keys/${first.id}/roll`]: {},
    [accounts.replace("service-accounts", "trusted-workflows")]: {
      issuer: "github",
      repository_id: "1",
      permissions: ["projects:read"],
    },
  };
  for (const [url, body] of Object.entries(creations)) {
    const response = await admin.api.post(url, body);
    expect({ url, ...errorOf(response) }).toEqual({ url, status: 429, code: "rate_limited" });
    expect(Number(response.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  }
  const statuses = () =>
    Promise.all(
      [key, first.key, second.key].map(async (each) => (await service.as(each).get("/v1/api-keys/current")).status),
    );
  expect(await statuses()).toEqual([200, 200, 200]);
  await admin.api.post("/v1/credentials/revoke", { credentials: [key] });
  for (const url of [`${path}/api-keys/${first.id}`, path]) expect((await admin.api.delete(url)).status).toBe(204);
  expect(await statuses()).toEqual([401, 401, 401]);
  expect(await call("api-keys-provision", { user_id: admin.userId, name: "partner" })).toHaveProperty("key");
});

describe("chargeRequest", () => {
  const minute = Date.parse("2026-03-01T10:15:00.000Z");
  const at = (seconds: number) => new Date(minute + seconds * 1000);
  const isAccepted = (projectId: string, now: Date, request: Request = "test") =>
    chargeRequest(projectId, request, now).then(
      () => true,
      (error) => {
        expect(error).toMatchObject({ code: "rate_limited" });
        return false;
      },
    );

  test("accepts exactly 120 of 200 concurrent requests in a minute", async () => {
    const projectId = randomUUID();
    const results = await inParallel([...Array(200).keys()], 50, () => isAccepted(projectId, at(30)));
    expect(results.filter(Boolean)).toHaveLength(120);
    expect(await usedBudget(projectId)).toBe(120);
  });

  test("throws the error of DynamoDB when the write fails, so that an outage is a 503 and not a 429", async () => {
    interceptDynamo(async () => {
      throw Object.assign(new Error("down"), { name: "ThrottlingException" });
    });
    await expect(chargeRequest(randomUUID(), "test", at(0))).rejects.toThrow("down");
  });
});

import { randomBytes, randomUUID } from "node:crypto";
import type { Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import { type MeteredReads, meteredReads } from "../../../../functions/foundation/budgets/metered-reads-store.ts";
import { tableName } from "../../../../functions/foundation/platform/env.ts";
import { inParallel } from "../../../../functions/foundation/platform/parallel.ts";
import { timeOrderedUuid } from "../../../../functions/foundation/platform/uuid.ts";
import type { Webhook } from "../../../../functions/webhooks/webhook/webhook.ts";
import { givenAuditEvents } from "../../../support/audit-events.ts";
import { interceptDynamo, isCall, restoreAws, watchDynamo } from "../../../support/aws-calls.ts";
import { eventOf, givenDelivery, givenEvent, givenWebhook } from "../../../support/deliveries.ts";
import { putAll } from "../../../support/put-all.ts";
import { givenUsedReads, usedReads } from "../../../support/request-budget.ts";
import { errorOf, newScenario, type Scenario } from "../../../support/scenario.ts";
import { useService } from "../../../support/service.ts";
import { itemsOf } from "../../../support/stored-items.ts";

const service = useService();

/** Payloads that make a row consume 12.5 units, or 25 if the read is strongly consistent. */
const data = { log: "x".repeat(98_000) };

const givenRows = (webhook: Webhook, count: number, body = JSON.stringify({ data })) =>
  inParallel([...Array(count).keys()], 10, (index) =>
    givenDelivery(webhook, { at: new Date(Date.now() - 1_000 * (index + 1)), status: "succeeded", body }),
  );

describe("each list", () => {
  let scenario: Scenario;
  let paths: Record<string, string>;
  beforeAll(async () => {
    scenario = await newScenario(service);
    const { projectId, webhook, path } = scenario;
    await givenRows(webhook, 30);
    for (let count = 0; count < 8; count++) await givenRows((await givenWebhook({ projectId })).webhook, 3);
    await inParallel([...Array(15).keys()], 5, () => givenEvent(eventOf(projectId, { data })));
    paths = {
      "deliveries of a webhook": `${path}/deliveries?error_code=tls_error`,
      "deliveries of a project": `/v1/projects/${projectId}/deliveries?deployment_id=${randomUUID()}`,
      statistics: `${path}/stats`,
      events: `/v1/projects/${projectId}/events?deployment_id=${randomUUID()}`,
      "events, oldest first": `/v1/projects/${projectId}/events?order=oldest&deployment_id=${randomUUID()}`,
      webhooks: `/v1/projects/${projectId}/webhooks`,
    };
  });

  const lists = ["deliveries of a webhook", "deliveries of a project", "statistics", "events", "events, oldest first"];

  /** Calls a list, and returns the units that its queries consumed. */
  async function call(list: string) {
    const calls = watchDynamo();
    const response = await scenario.viewer.get(paths[list] ?? "");
    restoreAws();
    const units = calls.filter(({ command }) => command === "QueryCommand").reduce((sum, each) => sum + each.units, 0);
    return { ...response, units, writes: calls.filter(({ command }) => command.startsWith("Update")).length };
  }

  test.each([...lists, "webhooks"])(
    "%s: a page of large rows reads at most 250 units, charged in at most two writes",
    async (list) => {
      const before = await usedReads(scenario.projectId);
      const { status, units, writes } = await call(list);
      expect(status).toBe(200);
      expect(units).toBeGreaterThan(150);
      // The query for the webhooks of a project is not metered: one unit for 4 KB of them.
      expect(units).toBeLessThanOrEqual(250 + 1);
      expect(writes).toBeLessThanOrEqual(2);
      expect(units - ((await usedReads(scenario.projectId)) - before)).toBeLessThanOrEqual(2);
    },
  );

  test.each([...lists, "webhooks"])("%s: is rejected with 429 beyond the budget, before it reads", async (list) => {
    await givenUsedReads(scenario.projectId, 10_000);
    const response = await call(list);
    expect(errorOf(response)).toEqual({ status: 429, code: "rate_limited" });
    const seconds = Number(response.headers.get("retry-after"));
    expect(seconds).toBeGreaterThanOrEqual(1);
    expect(seconds).toBeLessThanOrEqual(30);
    expect(response.body.error.message).toContain(`Try again in ${seconds} s.`);
    expect(response.units).toBeLessThanOrEqual(1);
    await givenUsedReads(scenario.projectId, 0);
  });
});

test("a list of small rows costs no write", async () => {
  const { viewer, path, webhook } = await newScenario(service);
  await givenRows(webhook, 40, "{}");
  const writes: string[] = [];
  interceptDynamo(async (call, send) => {
    if (isCall(call, "UpdateItem", "request-budgets")) writes.push(call.command);
    return send();
  });
  for (const list of ["/deliveries?limit=100", "/deliveries?status=failed", "/stats", ""]) {
    expect((await viewer.get(`${path}${list}`)).status).toBe(200);
  }
  expect(writes).toEqual([]);
});

test("a poll of a feed with an event a second reads 120 units, so that 13 followers fit who poll every 10 seconds", async () => {
  const { viewer, projectId } = await newScenario(service);
  await givenEvent(eventOf(projectId));
  const [row] = await itemsOf("events", { project_id: projectId });
  // The others of 15 minutes and 35 seconds.
  const others = Array.from({ length: 934 }, (_, seconds) => {
    const at = new Date(Date.now() - (seconds + 1) * 1_000);
    return { ...row, id: timeOrderedUuid(at.getTime(), randomBytes(16)), stored_at: at.toISOString() };
  });
  await putAll("events", others);
  const { headers } = await viewer.get(`/v1/projects/${projectId}/events?limit=100`);
  const monitor = /<([^>]+)>; rel="monitor"/.exec(headers.get("link") ?? "")?.[1] ?? "";
  const before = await usedReads(projectId);
  const { status, body } = await viewer.get(monitor.slice(service.baseUrl.length));
  expect({ status, data: body.data }).toEqual({ status: 200, data: [] });
  const used = (await usedReads(projectId)) - before;
  expect(used).toBeGreaterThan(100);
  expect(13 * 3 * used).toBeLessThanOrEqual(5_000 - 250);
});

test("the budget of reads leaves that of test deliveries as it is", async () => {
  const { api, path, projectId } = await newScenario(service);
  await givenUsedReads(projectId, 10_000);
  expect((await api.post(`${path}/test`, {})).status).toBe(202);
});

test("one webhook is not shown beyond the budget of reads, and a change of it is made and shows its own row", async () => {
  const { api, path, projectId, webhook } = await newScenario(service);
  await givenRows(webhook, 1, "{}");
  await givenUsedReads(projectId, 10_000);
  expect(errorOf(await api.get(path))).toEqual({ status: 429, code: "rate_limited" });
  const { status, body } = await api.patch(path, { enabled: false });
  expect(status).toBe(200);
  expect(body.data).toMatchObject({ enabled: false, health: { state: "disabled", last_success_at: null } });
});

test("one delivery is charged if its row is large, and not shown beyond the budget of reads", async () => {
  const { viewer, path, projectId, webhook } = await newScenario(service);
  const small = await givenDelivery(webhook, { status: "succeeded" });
  const large = await givenDelivery(webhook, {
    status: "succeeded",
    body: JSON.stringify({ log: "x".repeat(256_000) }),
  });
  const get = ({ id }: Delivery) => viewer.get(`${path}/deliveries/${id}`);
  expect((await get(small)).status).toBe(200);
  expect(await usedReads(projectId)).toBe(0);
  expect((await get(large)).status).toBe(200);
  expect(await usedReads(projectId)).toBe(63);
  // A page of 250 units still fits.
  await givenUsedReads(projectId, 9_750);
  expect((await get(small)).status).toBe(200);
  await givenUsedReads(projectId, 9_751);
  expect(errorOf(await get(small))).toEqual({ status: 429, code: "rate_limited" });
});

test.each(["user", "project"])(
  "a page of 100 large events of the audit log of a %s is charged to the caller, and not shown beyond their budget",
  async (kind) => {
    const { userId, api } = service.user();
    const projectId = await service.project(userId);
    const scope = kind === "user" ? (`user:${userId}` as const) : (`project:${projectId}` as const);
    const path = kind === "user" ? "/v1/audit-events" : `/v1/projects/${projectId}/audit-events`;
    await givenAuditEvents(scope, 105);
    const { status, body, headers } = await api.get(`${path}?limit=100`);
    expect({ status, count: body.data.length, link: headers.get("link") }).toEqual({
      status: 200,
      count: 100,
      link: expect.stringContaining(`cursor=${body.data[99].id}`),
    });
    expect(await usedReads(`user:${userId}`)).toBeGreaterThan(50);
    await givenUsedReads(`user:${userId}`, 5_000);
    expect(errorOf(await api.get(path))).toEqual({ status: 429, code: "rate_limited" });
  },
);

/** What a viewer, or a leaked key of one, must not take from the admins of the project. */
test("a user who uses up their half of a project's budget, with any credentials, leaves the others theirs and the audit log", async () => {
  const { viewer, path, projectId, webhook } = await newScenario(service);
  const { userId, api } = service.user();
  await service.project(userId, { projectId });
  await givenRows(webhook, 20);
  const keys = await Promise.all(
    [undefined, ["deliveries:read"]].map((permissions) => viewer.post("/v1/api-keys", { name: "ci", permissions })),
  );
  const credentials = [viewer, ...keys.map(({ body }) => service.as(body.data.key))];
  const search = `${path}/deliveries?error_code=tls_error`;
  let searches = 0;
  for (const credential of credentials) {
    for (let status = 200; status === 200; searches++) ({ status } = await credential.get(search));
  }
  // Of 20 pages in each window, in which the test may end.
  expect(searches).toBeGreaterThan(18);
  const account = (await api.post(`/v1/projects/${projectId}/service-accounts`, { name: "ci", role: "admin" })).body
    .data;
  const lists = [
    search,
    path,
    `/v1/projects/${projectId}/webhooks`,
    `/v1/projects/${projectId}/events`,
    `${path}/stats`,
  ];
  const ofCaller = [
    `/v1/projects/${projectId}/audit-events`,
    `/v1/projects/${projectId}/service-accounts/${account.id}/api-keys`,
  ];
  for (const list of [...lists, ...ofCaller]) expect([list, (await api.get(list)).status]).toEqual([list, 200]);
  await givenUsedReads(projectId, 10_000);
  for (const list of ofCaller) expect([list, (await api.get(list)).status]).toEqual([list, 200]);
  await givenUsedReads(`user:${userId}`, 5_000);
  for (const list of ofCaller) expect([list, (await api.get(list)).status]).toEqual([list, 429]);
});

test.each(["all webhooks", "all but the first"])(
  "a list of 9 webhooks reads at most 250 units, with the largest rows of %s",
  async (which) => {
    const { viewer, projectId, webhook } = await newScenario(service);
    const large = JSON.stringify({ log: "x".repeat(256_000) });
    await givenRows(webhook, 3, which === "all webhooks" ? large : "{}");
    for (let count = 0; count < 8; count++) await givenRows((await givenWebhook({ projectId })).webhook, 3, large);
    expect((await viewer.get(`/v1/projects/${projectId}/webhooks`)).status).toBe(200);
    const used = await usedReads(projectId);
    expect(used).toBeGreaterThan(150);
    expect(used).toBeLessThanOrEqual(250);
  },
);

describe("meteredReads", () => {
  const caller = { userId: "ann", authType: "jwt" } as const;
  const now = new Date("2026-03-01T10:15:40.000Z");
  let webhook: Webhook;
  let projectId: string;
  beforeEach(async () => {
    ({ webhook } = await givenWebhook());
    projectId = webhook.project_id;
  });

  const queryFor = (Limit: number) => ({
    TableName: tableName("deliveries"),
    KeyConditionExpression: "webhook_id = :webhook",
    ExpressionAttributeValues: { ":webhook": webhook.id },
    Limit,
  });

  const readAll = async (reads: MeteredReads, Limit: number) => {
    let ExclusiveStartKey: Record<string, unknown> | undefined;
    do {
      const page = await reads.query({ ...queryFor(Limit), ExclusiveStartKey });
      ExclusiveStartKey = page.LastEvaluatedKey;
    } while (ExclusiveStartKey !== undefined && reads.rowsLeft > 0);
  };

  test("does not let concurrent requests exceed the budget together", async () => {
    await givenRows(webhook, 25);
    let [inFlight, mostInFlight, consumed] = [0, 0, 0];
    interceptDynamo(async (call, send) => {
      const output = (await send()) as { ConsumedCapacity?: { CapacityUnits: number } };
      if (call.command === "QueryCommand") consumed += output.ConsumedCapacity?.CapacityUnits ?? 0;
      return output;
    });
    const startedAt = new Date();
    await givenUsedReads(projectId, 9_000);
    const results = await inParallel([...Array(10).keys()], 10, async () => {
      mostInFlight = Math.max(mostInFlight, ++inFlight);
      return meteredReads({ project: projectId, caller }, startedAt, (reads) => readAll(reads, 100)).then(
        () => true,
        (error) => {
          expect(error).toMatchObject({ code: "rate_limited" });
          return false;
        },
      );
    });
    const accepted = results.filter(Boolean).length;
    expect(mostInFlight).toBe(10);
    expect(accepted).toBeGreaterThan(0);
    expect(accepted).toBeLessThanOrEqual(5);
    const used = (await usedReads(projectId)) - 2 * 9_000;
    expect(used).toBe(consumed);
    // Each rejected request has read three rows, in its first query, before it was rejected.
    expect(used).toBeLessThanOrEqual(1_000 + 36.5 * (10 - accepted));
  });

  test("charges what a request has read before it is rejected: three rows", async () => {
    await givenRows(webhook, 25);
    const result = meteredReads({ project: projectId, caller }, new Date(), async (reads) => {
      await reads.query(queryFor(100));
      await givenUsedReads(projectId, 10_000);
      await reads.query(queryFor(100));
    });
    await expect(result).rejects.toMatchObject({ code: "rate_limited" });
    // Both windows that are set, and the charge in one of them.
    expect(await usedReads(projectId)).toBe(20_036.5);
  });

  test.each([
    [9, false],
    [10, true],
  ])(
    "%d queries at once for three rows each are charged: %s, as each row counts as a unit until it is read",
    async (count, isCharged) => {
      await givenRows(webhook, 3, "{}");
      await meteredReads({ project: projectId, caller }, now, (reads) =>
        inParallel(Array(count).fill(queryFor(3)), count, (query) => reads.query(query)),
      );
      expect((await usedReads(projectId)) > 0).toBe(isCharged);
    },
  );

  test("a query that ends leaves what the others in flight are expected to read", async () => {
    await givenRows(webhook, 3, "{}");
    const isReleased = Promise.withResolvers<void>();
    let queries = 0;
    interceptDynamo(async ({ command }, send) => {
      if (command === "QueryCommand" && ++queries === 2) await isReleased.promise;
      return send();
    });
    await meteredReads({ project: projectId, caller }, now, async (reads) => {
      const [first, second] = [reads.query(queryFor(3)), reads.query(queryFor(3))];
      await first;
      expect(reads.unitsLeft).toBe(250 - 0.5 - 3);
      isReleased.resolve();
      await second;
    });
  });

  test.each([
    [25, 0],
    [25.5, 25.5],
  ])("charges %d units that are no queries with %d", async (units, charged) => {
    await meteredReads({ project: projectId, caller }, now, (reads) => reads.add(units));
    expect(await usedReads(projectId)).toBe(charged);
  });

  test("counts the workflows of a repository as one caller, whichever trusted workflow they match", async () => {
    const spend = (trustId: string, repositoryId: string) => {
      const workflow = { userId: `workflow:${trustId}`, authType: "workflow", repositoryId } as const;
      return meteredReads({ project: projectId, caller: workflow }, now, (reads) => reads.add(4_900));
    };
    await spend("of main", "https://ci.example.com#1");
    await expect(spend("of a tag", "https://ci.example.com#1")).rejects.toMatchObject({ code: "rate_limited" });
    await spend("of another repository", "https://ci.example.com#2");
  });

  test("charges a single query that consumed more than expected", async () => {
    await givenRows(webhook, 3);
    await meteredReads({ project: projectId, caller }, now, (reads) => readAll(reads, 5));
    // And half a unit for the query that finds no more.
    expect(await usedReads(projectId)).toBe(37);
  });

  test("returns what it reserved and did not use, to the window in which it reserved", async () => {
    await givenRows(webhook, 6);
    await meteredReads({ project: projectId, caller }, now, (reads) => readAll(reads, 2));
    expect(await usedReads(projectId)).toBe(74);
  });
});

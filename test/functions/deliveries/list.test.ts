import { randomUUID } from "node:crypto";
import { type Delivery, deliveryStatuses, parkingShardOf } from "../../../functions/deliveries/delivery.ts";
import { inParallel } from "../../../functions/platform/parallel.ts";
import { interceptDynamo, restoreAws } from "../../support/aws-calls.ts";
import { changeWebhook, givenDelivery, givenWebhook } from "../../support/deliveries.ts";
import { expectNotFound, invalidFieldsOf, newScenario, type Scenario } from "../../support/scenario.ts";
import { type Api, startTestService, type TestService } from "../../support/service.ts";

let service: TestService;
let scenario: Scenario;
let path: string;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());
beforeEach(async () => {
  scenario = await newScenario(service);
  path = `${scenario.path}/deliveries`;
});

const startOfDay = Date.parse("2026-03-01T00:00:00.000Z");

/** Creates deliveries of events one second apart, oldest first. */
const givenMany = (count: number, changesOf: (index: number) => Partial<Delivery> = () => ({})) =>
  inParallel([...Array(count).keys()], 20, (index) =>
    givenDelivery(scenario.webhook, { at: new Date(startOfDay + index * 1000), ...changesOf(index) }),
  );
const newestFirst = (rows: Delivery[]) => rows.map(({ id }) => id).reverse();
const idsOf = (data: { id: string }[]) => data.map(({ id }) => id);

/** Returns the path of the next page from the Link header (RFC 8288); undefined on the last page. */
function nextOf(headers: Headers): string | undefined {
  const link = headers.get("link");
  if (link === null) return undefined;
  const url = /^<([^>]+)>; rel="next"$/.exec(link)?.[1] ?? "";
  expect(url.startsWith(`${service.baseUrl}${path}?`)).toBe(true);
  return url.slice(service.baseUrl.length);
}

/** Reads this page and all that follow. */
async function readPages(first: string, api: Api = scenario.api): Promise<string[][]> {
  const pages: string[][] = [];
  for (let next: string | undefined = first; next !== undefined; ) {
    const { status, body, headers } = await api.get(next);
    expect(status).toBe(200);
    pages.push(idsOf(body.data));
    next = nextOf(headers);
  }
  return pages;
}

test("the delivery list returns an empty array for a webhook without deliveries", async () => {
  const { status, body, headers } = await scenario.api.get(path);
  expect({ status, body, link: headers.get("link") }).toEqual({ status: 200, body: { data: [] }, link: null });
});

test("the delivery list returns the summary of each delivery, without payload, attempts and secret", async () => {
  const attempt = { number: 1, at: "2026-03-01T00:00:00.000Z", duration_ms: 3, trigger: "schedule" as const };
  const row = await givenDelivery(scenario.webhook, { attempt_count: 1, attempts: [attempt], test: true });
  const { body } = await scenario.api.get(path);
  expect(body).toEqual({
    data: [
      {
        id: row.id,
        webhook_id: scenario.webhook.id,
        event: "deploy.started",
        deployment_id: row.deployment_id,
        status: "pending",
        test: true,
        created_at: row.created_at,
        waiting_for: null,
        next_attempt_at: row.next_attempt_at,
        attempt_count: 1,
      },
    ],
  });
});

test("the delivery list returns test false and next_attempt_at null for a finished delivery of an event", async () => {
  await givenDelivery(scenario.webhook, { status: "succeeded", attempt_count: 1 });
  expect((await scenario.api.get(path)).body.data).toMatchObject([{ test: false, next_attempt_at: null }]);
});

test("the delivery list and the detail say what each delivery waits for", async () => {
  const at = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString();
  const parked = { due_shard: parkingShardOf(scenario.webhook.id), due_at: at(-300) };
  const rows = await givenMany(
    6,
    (index) =>
      [
        { status: "held" as const },
        { status: "succeeded" as const },
        { next_attempt_at: at(600) },
        { next_attempt_at: at(-300), ...parked },
        { next_attempt_at: at(-300) },
        { next_attempt_at: at(-300), sending_until: at(30) },
      ][index] ?? {},
  );
  const waits = async () =>
    (await scenario.api.get(path)).body.data.map((row: { waiting_for: unknown }) => row.waiting_for);
  expect(await waits()).toEqual([null, "busy", "recovery", "schedule", null, "suspended"]);
  const probe_at = at(60);
  await changeWebhook(scenario.webhook, { failing_since: at(-600), probe_at });
  expect(await waits()).toEqual([null, "recovery", "recovery", "schedule", null, "suspended"]);
  for (const row of [rows[3], rows[4]]) {
    const { body } = await scenario.api.get(`${path}/${row?.id}`);
    expect(body.data).toMatchObject({ waiting_for: "recovery", next_attempt_at: probe_at });
  }
  await changeWebhook(scenario.webhook, { suspended_at: at(-1) });
  expect(await waits()).toEqual([null, "suspended", "suspended", "suspended", null, "suspended"]);
});

test("the delivery list returns the newest delivery first", async () => {
  const rows = await givenMany(5);
  expect(idsOf((await scenario.api.get(path)).body.data)).toEqual(newestFirst(rows));
});

test("the delivery list returns no deliveries of the project's other webhooks", async () => {
  const { webhook: other } = await givenWebhook({ projectId: scenario.projectId });
  await givenDelivery(other);
  const [row] = await givenMany(1);
  expect(idsOf((await scenario.api.get(path)).body.data)).toEqual([row?.id]);
});

describe("a page of the delivery list", () => {
  test.each([
    ["", 20],
    ["?limit=1", 1],
    ["?limit=9", 9],
    ["?limit=99", 99],
    ["?limit=100", 100],
  ])("for %p has at most %i deliveries and a link to the next page", async (query, count) => {
    const rows = await givenMany(count + 1);
    const { body, headers } = await scenario.api.get(`${path}${query}`);
    expect(idsOf(body.data)).toEqual(newestFirst(rows).slice(0, count));
    const last = await scenario.api.get(nextOf(headers) ?? "");
    expect(idsOf(last.body.data)).toEqual([rows[0]?.id]);
    expect(last.headers.get("link")).toBeNull();
  });

  test("that is exactly full has no link when no delivery follows", async () => {
    await givenMany(20);
    expect(await readPages(path)).toHaveLength(1);
  });

  test("links to the next until each delivery was returned once", async () => {
    const rows = await givenMany(45);
    const pages = await readPages(`${path}?limit=7`);
    expect(pages.map(({ length }) => length)).toEqual([7, 7, 7, 7, 7, 7, 3]);
    expect(pages.flat()).toEqual(newestFirst(rows));
  });

  test("is not shifted by deliveries that are created between two pages", async () => {
    const rows = await givenMany(10);
    const { headers } = await scenario.api.get(`${path}?limit=5`);
    await givenDelivery(scenario.webhook, { at: new Date(startOfDay + 3_600_000) });
    expect((await readPages(nextOf(headers) ?? "")).flat()).toEqual(newestFirst(rows).slice(5));
  });

  test("starts at a cursor whose delivery was deleted", async () => {
    const rows = await givenMany(3);
    const between = rows[2]?.id.replace(/.{12}$/, "000000000000");
    const { body } = await scenario.api.get(`${path}?cursor=${between?.toUpperCase()}`);
    expect(idsOf(body.data)).toEqual(newestFirst(rows).slice(1));
  });
});

describe("the delivery list with a status", () => {
  test.each(deliveryStatuses)("%s returns only deliveries with that status", async (status) => {
    const rows = await givenMany(15, (index) => ({ status: deliveryStatuses[index % 5] ?? "pending" }));
    const { body } = await scenario.api.get(`${path}?status=${status}`);
    expect(body.data).toHaveLength(3);
    expect(idsOf(body.data)).toEqual(newestFirst(rows.filter((row) => row.status === status)));
  });

  test("keeps status and limit in the links until each match was returned once", async () => {
    const isMatch = (index: number) => index % 3 === 0;
    const rows = await givenMany(40, (index) => ({ status: isMatch(index) ? "held" : "succeeded" }));
    const pages = await readPages(`${path}?status=held&limit=4`);
    for (const page of pages) expect(page.length).toBeLessThanOrEqual(4);
    expect(pages.flat()).toEqual(newestFirst(rows.filter((_, index) => isMatch(index))));
  });

  test("finds few matches among many deliveries, with pages that may be short", async () => {
    const matches = [0, 1, 140, 1_150, 1_299];
    const rows = await givenMany(1_300, (index) => ({ status: matches.includes(index) ? "failed" : "succeeded" }));
    const expected = newestFirst(rows.filter((_, index) => matches.includes(index)));
    for (const limit of [1, 2, 5, 100]) {
      const pages = await readPages(`${path}?status=failed&limit=${limit}`);
      expect(pages.flat()).toEqual(expected);
      // A call reads at most 1,000 rows.
      expect(pages.length).toBeGreaterThan(1);
    }
  });

  test("ends a page after 1,000 rows without a match", async () => {
    const [row] = await givenMany(1);
    let rowsRead = 0;
    interceptDynamo(async ({ command, input }, send) => {
      if (command !== "QueryCommand" || !String(input.TableName).endsWith("-deliveries")) return send();
      rowsRead += Number(input.Limit);
      const Items = Array.from({ length: Number(input.Limit) }, () => row);
      return { Items, LastEvaluatedKey: { webhook_id: scenario.webhook.id, id: row?.id } };
    });
    const { body } = await scenario.api.get(`${path}?status=failed`);
    restoreAws();
    expect({ data: body.data, rowsRead }).toEqual({ data: [], rowsRead: 1_000 });
  });

  test("ends a page after 20 queries, when large rows make each query short", async () => {
    const [row] = await givenMany(1);
    let queries = 0;
    interceptDynamo(async ({ command, input }, send) => {
      if (command !== "QueryCommand" || !String(input.TableName).endsWith("-deliveries")) return send();
      queries += 1;
      return { Items: [], LastEvaluatedKey: { webhook_id: scenario.webhook.id, id: row?.id } };
    });
    const { body, headers } = await scenario.api.get(`${path}?status=failed`);
    restoreAws();
    expect({ data: body.data, queries }).toEqual({ data: [], queries: 20 });
    expect(nextOf(headers)).toBe(`${path}?status=failed&cursor=${row?.id}`);
  });

  test("that no delivery has returns empty pages", async () => {
    await givenMany(3);
    expect((await readPages(`${path}?status=cancelled`)).flat()).toEqual([]);
  });
});

test.each<[string, string]>([
  ["limit=0", "limit"],
  ["limit=101", "limit"],
  ["limit=-1", "limit"],
  ["limit=1.5", "limit"],
  ["limit=1e2", "limit"],
  ["limit=0x10", "limit"],
  ["limit=ten", "limit"],
  ["limit=%2010", "limit"],
  ["limit=", "limit"],
  ["limit=%D9%A3", "limit"],
  ["limit=99999999999999999999", "limit"],
  ["status=lost", "status"],
  ["status=", "status"],
  ["status=FAILED", "status"],
  ["cursor=", "cursor"],
  ["cursor=7", "cursor"],
  [`cursor=${"f".repeat(10_000)}`, "cursor"],
  [`cursor=${randomUUID()}%00`, "cursor"],
  ["state=failed", "state"],
  ["__proto__=1", "__proto__"],
])("the delivery list returns 400 for %.40s and names %s", async (query, field) => {
  expect(invalidFieldsOf(await scenario.api.get(`${path}?${query}`))).toEqual([field]);
});

test("the delivery list names all invalid parameters at once", async () => {
  const fields = invalidFieldsOf(await scenario.api.get(`${path}?limit=0&status=x&cursor=y`));
  expect(fields.sort()).toEqual(["cursor", "limit", "status"]);
});

test("the delivery list returns the same pages to a viewer and to an API key", async () => {
  await givenMany(5);
  const expected = await readPages(`${path}?limit=2`);
  for (const api of [scenario.viewer, scenario.key]) expect(await readPages(`${path}?limit=2`, api)).toEqual(expected);
});

test("the delivery list returns 404 for a webhook that the caller cannot see", async () => {
  await expectNotFound(scenario, (webhook) => scenario.api.get(`${webhook}/deliveries`));
});

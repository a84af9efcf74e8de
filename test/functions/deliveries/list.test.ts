import { randomUUID } from "node:crypto";
import { type Delivery, deliveryStatuses } from "../../../functions/deliveries/delivery.ts";
import { inParallel } from "../../../functions/platform/parallel.ts";
import { givenDelivery, givenWebhook } from "../../support/deliveries.ts";
import { expectNotFound, newScenario, type Scenario, wrongFieldsOf } from "../../support/scenario.ts";
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

/** Deliveries of events that were a second apart, oldest first. */
const givenMany = (count: number, changesOf: (index: number) => Partial<Delivery> = () => ({})) =>
  inParallel([...Array(count).keys()], 20, (index) =>
    givenDelivery(scenario.webhook, { at: new Date(startOfDay + index * 1000), ...changesOf(index) }),
  );
const newestFirst = (rows: Delivery[]) => rows.map(({ id }) => id).reverse();
const idsOf = (data: { id: string }[]) => data.map(({ id }) => id);

/** The path of the next page, as a client that knows RFC 8288 finds it. */
function nextOf(headers: Headers): string | undefined {
  const link = headers.get("link");
  if (link === null) return undefined;
  const url = /^<([^>]+)>; rel="next"$/.exec(link)?.[1] ?? "";
  expect(url.startsWith(`${service.baseUrl}${path}?`)).toBe(true);
  return url.slice(service.baseUrl.length);
}

/** All pages from this one on. */
async function walk(first: string, api: Api = scenario.api): Promise<string[][]> {
  const pages: string[][] = [];
  for (let next: string | undefined = first; next !== undefined; ) {
    const { status, body, headers } = await api.get(next);
    expect(status).toBe(200);
    pages.push(idsOf(body.data));
    next = nextOf(headers);
  }
  return pages;
}

test("is an empty array for a webhook without deliveries", async () => {
  const { status, body, headers } = await scenario.api.get(path);
  expect({ status, body, link: headers.get("link") }).toEqual({ status: 200, body: { data: [] }, link: null });
});

test("shows of each delivery where it stands, and neither payload nor attempts nor secret", async () => {
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
        next_attempt_at: row.next_attempt_at,
        attempt_count: 1,
      },
    ],
  });
});

test("says false and null of what is no test and is over", async () => {
  await givenDelivery(scenario.webhook, { status: "succeeded", attempt_count: 1 });
  expect((await scenario.api.get(path)).body.data).toMatchObject([{ test: false, next_attempt_at: null }]);
});

test("begins with the newest", async () => {
  const rows = await givenMany(5);
  expect(idsOf((await scenario.api.get(path)).body.data)).toEqual(newestFirst(rows));
});

test("shows nothing of the project's other webhooks", async () => {
  const { webhook: other } = await givenWebhook({ projectId: scenario.projectId });
  await givenDelivery(other);
  const [row] = await givenMany(1);
  expect(idsOf((await scenario.api.get(path)).body.data)).toEqual([row?.id]);
});

describe("a page", () => {
  test.each([
    ["", 20],
    ["?limit=1", 1],
    ["?limit=9", 9],
    ["?limit=99", 99],
    ["?limit=100", 100],
  ])("of %p has %i deliveries at most, and links to the next", async (query, count) => {
    const rows = await givenMany(count + 1);
    const { body, headers } = await scenario.api.get(`${path}${query}`);
    expect(idsOf(body.data)).toEqual(newestFirst(rows).slice(0, count));
    const last = await scenario.api.get(nextOf(headers) ?? "");
    expect(idsOf(last.body.data)).toEqual([rows[0]?.id]);
    expect(last.headers.get("link")).toBeNull();
  });

  test("that just fits is the last", async () => {
    await givenMany(20);
    expect(await walk(path)).toHaveLength(1);
  });

  test("leads to the next until each delivery was shown once", async () => {
    const rows = await givenMany(45);
    const pages = await walk(`${path}?limit=7`);
    expect(pages.map(({ length }) => length)).toEqual([7, 7, 7, 7, 7, 7, 3]);
    expect(pages.flat()).toEqual(newestFirst(rows));
  });

  test("is not shifted by deliveries that come meanwhile", async () => {
    const rows = await givenMany(10);
    const { headers } = await scenario.api.get(`${path}?limit=5`);
    await givenDelivery(scenario.webhook, { at: new Date(startOfDay + 3_600_000) });
    expect((await walk(nextOf(headers) ?? "")).flat()).toEqual(newestFirst(rows).slice(5));
  });

  test("may be asked for by a cursor whose delivery is gone", async () => {
    const rows = await givenMany(3);
    const between = rows[2]?.id.replace(/.{12}$/, "000000000000");
    const { body } = await scenario.api.get(`${path}?cursor=${between?.toUpperCase()}`);
    expect(idsOf(body.data)).toEqual(newestFirst(rows).slice(1));
  });
});

describe("with a status", () => {
  test.each(deliveryStatuses)("shows those that are %s, and no others", async (status) => {
    const rows = await givenMany(15, (index) => ({ status: deliveryStatuses[index % 5] ?? "pending" }));
    const { body } = await scenario.api.get(`${path}?status=${status}`);
    expect(body.data).toHaveLength(3);
    expect(idsOf(body.data)).toEqual(newestFirst(rows.filter((row) => row.status === status)));
  });

  test("keeps status and limit in the links, until each match was shown once", async () => {
    const isMatch = (index: number) => index % 3 === 0;
    const rows = await givenMany(40, (index) => ({ status: isMatch(index) ? "held" : "succeeded" }));
    const pages = await walk(`${path}?status=held&limit=4`);
    for (const page of pages) expect(page.length).toBeLessThanOrEqual(4);
    expect(pages.flat()).toEqual(newestFirst(rows.filter((_, index) => isMatch(index))));
  });

  test("finds few matches among many deliveries, though a page may come back short", async () => {
    const matches = [0, 1, 140, 1_150, 1_299];
    const rows = await givenMany(1_300, (index) => ({ status: matches.includes(index) ? "failed" : "succeeded" }));
    const expected = newestFirst(rows.filter((_, index) => matches.includes(index)));
    for (const limit of [1, 2, 5, 100]) {
      const pages = await walk(`${path}?status=failed&limit=${limit}`);
      expect(pages.flat()).toEqual(expected);
      // A call looks at 1,000 rows at most.
      expect(pages.length).toBeGreaterThan(1);
    }
  });

  test("that none has is an empty array in the end", async () => {
    await givenMany(3);
    expect((await walk(`${path}?status=cancelled`)).flat()).toEqual([]);
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
])("refuses %.40s and names %s", async (query, field) => {
  expect(wrongFieldsOf(await scenario.api.get(`${path}?${query}`))).toEqual([field]);
});

test("names all that is wrong at once", async () => {
  const fields = wrongFieldsOf(await scenario.api.get(`${path}?limit=0&status=x&cursor=y`));
  expect(fields.sort()).toEqual(["cursor", "limit", "status"]);
});

test("is the same for a viewer and for an API key, page by page", async () => {
  await givenMany(5);
  const expected = await walk(`${path}?limit=2`);
  for (const api of [scenario.viewer, scenario.key]) expect(await walk(`${path}?limit=2`, api)).toEqual(expected);
});

test("finds no webhook that is not there for the caller", async () => {
  await expectNotFound(scenario, (webhook) => scenario.api.get(`${webhook}/deliveries`));
});

import type { Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import { inParallel } from "../../../../functions/foundation/platform/parallel.ts";
import { timeOrderedUuid } from "../../../../functions/foundation/platform/uuid.ts";
import { interceptDynamo, restoreAws, watchDynamo } from "../../../support/aws-calls.ts";
import { givenDelivery, givenWebhook } from "../../../support/deliveries.ts";
import { expectPages, linkOf, readPages } from "../../../support/pages.ts";
import { useScenario } from "../../../support/scenario.ts";
import { useService } from "../../../support/service.ts";

// Filters, limits and cursors are those of the list of a webhook: see list.test.ts.

let path: string;
const service = useService();
const scenario = useScenario(service);
beforeEach(() => {
  path = `/v1/projects/${scenario.projectId}/deliveries`;
});

const startOfDay = Date.parse("2026-03-01T00:00:00.000Z");
const idsOf = (data: { id: string }[]) => data.map(({ id }) => id);

/** Creates webhooks with these numbers of deliveries. The times of all deliveries interleave. */
async function givenWebhooks(counts: number[], changesOf: (index: number) => Partial<Delivery> = () => ({})) {
  const rows = counts.map(async (count) => {
    const { webhook } = await givenWebhook({ projectId: scenario.projectId });
    return inParallel([...Array(count).keys()], 20, (index) =>
      givenDelivery(webhook, {
        at: new Date(startOfDay + Math.floor((index / count) * 3_600_000)),
        ...changesOf(index),
      }),
    );
  });
  return (await Promise.all(rows)).flat();
}
const sorted = (rows: Delivery[]) =>
  rows
    .map(({ id }) => id)
    .sort()
    .reverse();

test("the list of a project is empty for a project without webhooks, and for one without deliveries", async () => {
  const user = service.user();
  const project = await service.project(user.userId);
  for (const [api, list] of [
    [user.api, `/v1/projects/${project}/deliveries`] as const,
    [scenario.api, path] as const,
  ]) {
    const { body, headers } = await api.get(list);
    expect({ body, link: headers.get("link") }).toEqual({ body: { data: [] }, link: null });
  }
});

test.each([[[9, 0, 2]], [[150, 0, 1, 40, 3]]])(
  "the list of a project has the deliveries of webhooks with %j of them once, newest first",
  async (counts) => {
    const rows = sorted(await givenWebhooks(counts));
    if (rows.length < 100) await expectPages(scenario.api, path, rows);
    else expect(await readPages(scenario.api, `${path}?limit=100`)).toEqual([rows.slice(0, 100), rows.slice(100)]);
  },
);

test("the list of a project has filters, which find rare matches of a webhook with few deliveries among many others", async () => {
  const isMatch = (index: number) => index % 97 === 3;
  const rows = await givenWebhooks([600, 6, 150], (index) => ({ status: isMatch(index) ? "failed" : "succeeded" }));
  const expected = sorted(rows.filter(({ status }) => status === "failed"));
  expect(expected.length).toBeGreaterThan(7);
  for (const limit of [2, 100]) {
    const pages = await readPages(scenario.api, `${path}?status=failed&limit=${limit}`);
    expect(pages.flat()).toEqual(expected);
  }
  const calls = watchDynamo();
  await scenario.api.get(`${path}?status=failed&limit=100`);
  restoreAws();
  // The queries of a webhook double their rows, up to 100, so that a page of 1,000 rows takes few.
  expect(calls.filter(({ command }) => command === "QueryCommand")).toHaveLength(18);
  const since = new Date(startOfDay + 1_800_000).toISOString();
  const recent = rows.filter(
    ({ id, status }) => status === "failed" && id > timeOrderedUuid(Date.parse(since), new Uint8Array(16)),
  );
  expect((await readPages(scenario.api, `${path}?status=failed&since=${since}`)).flat()).toEqual(sorted(recent));
});

test.each<[string, (index: number) => number]>([
  ["the largest", () => 256_000],
  ["small and the largest", (index) => (index % 3 === 0 ? 256_000 : 10)],
  ["small and, newest, the largest", (index) => (index % 3 === 2 ? 256_000 : 10)],
])("a page of the list of a project reads at most 250 units from 20 webhooks with %s rows", async (_, sizeOf) => {
  // The scenario has a webhook of its own.
  const rows = await givenWebhooks(Array(19).fill(3), (index) => ({ body: "x".repeat(sizeOf(index)) }));
  const pages: string[][] = [];
  for (let next: string | undefined = path; next !== undefined; ) {
    const calls = watchDynamo();
    const queries = { inFlight: 0, most: 0 };
    interceptDynamo(async ({ command }, send) => {
      if (command !== "QueryCommand") return send();
      queries.most = Math.max(queries.most, ++queries.inFlight);
      return send().finally(() => queries.inFlight--);
    });
    const page = await scenario.api.get(next);
    restoreAws();
    // Their rows are not charged yet.
    expect(queries.most).toBeLessThanOrEqual(3);
    const units = calls.filter(({ command }) => command === "QueryCommand").reduce((sum, call) => sum + call.units, 0);
    expect(units).toBeLessThanOrEqual(250);
    pages.push(idsOf(page.body.data));
    next = linkOf(page.headers);
  }
  expect(pages.flat()).toEqual(sorted(rows));
});

test("a list of a project goes on after a page that large rows cut short, with a webhook deleted and one created since", async () => {
  const rows = await givenWebhooks(Array(19).fill(1), () => ({ body: "x".repeat(256_000) }));
  const until = encodeURIComponent(new Date(startOfDay + 3_600_000).toISOString());
  const first = await scenario.api.get(`${path}?limit=2&until=${until}`);
  // Not even one row of each webhook fits into a page.
  expect(first.body.data).toEqual([]);
  const gone = rows.at(-1)?.webhook_id ?? "";
  await scenario.api.delete(`/v1/projects/${scenario.projectId}/webhooks/${gone}`);
  const later = await givenWebhooks([2]);
  const rest = await readPages(scenario.api, linkOf(first.headers) ?? "");
  expect(rest.flat()).toEqual(sorted([...rows.slice(0, -1), ...later]));
});

test("the list of a project does not have the deliveries of a deleted webhook, also between two pages", async () => {
  const rows = await givenWebhooks([5, 5]);
  const { headers } = await scenario.api.get(`${path}?limit=3`);
  const gone = rows[0]?.webhook_id ?? "";
  await scenario.api.delete(`/v1/projects/${scenario.projectId}/webhooks/${gone}`);
  const rest = await readPages(scenario.api, linkOf(headers) ?? "");
  expect(rest.flat()).toEqual(
    sorted(rows)
      .slice(3)
      .filter((id) => rows.find((row) => row.id === id)?.webhook_id !== gone),
  );
});

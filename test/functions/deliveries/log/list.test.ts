import { randomBytes, randomUUID } from "node:crypto";
import { DeleteCommand } from "@aws-sdk/lib-dynamodb";
import { type Attempt, type Delivery, deliveryStatuses } from "../../../../functions/deliveries/line/delivery.ts";
import { type ListPosition, listCursor } from "../../../../functions/deliveries/log/list-cursor.ts";
import type { FailureCode } from "../../../../functions/foundation/events/failure-code.ts";
import { dynamo } from "../../../../functions/foundation/platform/aws.ts";
import { tableName } from "../../../../functions/foundation/platform/env.ts";
import { inParallel } from "../../../../functions/foundation/platform/parallel.ts";
import { timeOrderedUuid } from "../../../../functions/foundation/platform/uuid.ts";
import { interceptDynamo, restoreAws, watchDynamo } from "../../../support/aws-calls.ts";
import { changeWebhook, givenDelivery, givenWaiting, givenWebhook } from "../../../support/deliveries.ts";
import { expectPages, linkOf, readPages } from "../../../support/pages.ts";
import { invalidFieldsOf, useScenario } from "../../../support/scenario.ts";
import { useService } from "../../../support/service.ts";

let path: string;
const service = useService();
const scenario = useScenario(service);
beforeEach(() => {
  path = `${scenario.path}/deliveries`;
});

const startTime = "2026-03-01T00:00:00.000Z";
const startOfDay = Date.parse(startTime);
const attemptOf = (values: Partial<Attempt>): Attempt => ({
  ...{ number: 1, at: startTime, duration_ms: 3, trigger: "schedule" },
  ...values,
});

/** Creates deliveries of events one second apart, oldest first. */
const givenMany = (count: number, changesOf: (index: number) => Partial<Delivery> = () => ({})) =>
  inParallel([...Array(count).keys()], 20, (index) =>
    givenDelivery(scenario.webhook, { at: new Date(startOfDay + index * 1000), ...changesOf(index) }),
  );
const newestFirst = (rows: Delivery[]) => rows.map(({ id }) => id).reverse();
const idsOf = (data: { id: string }[]) => data.map(({ id }) => id);

test("the lists of a webhook and of a project have the result of the last attempt, from one query and no other read", async () => {
  const refused = attemptOf({ error_code: "http_status", status_code: 401, response_excerpt: "no" });
  await givenDelivery(scenario.webhook);
  await givenWaiting(scenario.webhook, { attempt_count: 2, attempts: [attemptOf({ error_code: "timeout" }), refused] });
  for (const list of [path, `/v1/projects/${scenario.projectId}/deliveries`]) {
    const reads: string[] = [];
    interceptDynamo(({ command, input }, send) => {
      if (JSON.stringify(input).includes(tableName("deliveries"))) reads.push(command);
      return send();
    });
    const { body } = await scenario.api.get(list);
    restoreAws();
    expect(reads).toEqual(["QueryCommand"]);
    const hint = expect.stringContaining("401");
    const last = { at: startTime, duration_ms: 3, status_code: 401, error_code: "http_status", hint };
    expect(body.data.map((each: { last_attempt: unknown }) => each.last_attempt)).toEqual([last, null]);
  }
});

test("the delivery list and the detail say what each delivery waits for", async () => {
  const at = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString();
  const planned = (seconds: number) => ({ status: "pending" as const, next_attempt_at: at(seconds) });
  const states = [
    { status: "held" as const },
    { status: "succeeded" as const },
    planned(600),
    planned(-300),
    planned(-1),
  ];
  const rows = await givenMany(states.length, (index) => states[index] ?? {});
  const waits = async () =>
    (await scenario.api.get(path)).body.data.map((row: { waiting_for: unknown }) => row.waiting_for);
  expect(await waits()).toEqual([null, "busy", "schedule", null, "suspended"]);
  const probe_at = at(60);
  await changeWebhook(scenario.webhook, { failing_since: at(-600), probe_at });
  expect(await waits()).toEqual(["recovery", "recovery", "recovery", null, "suspended"]);
  for (const row of [rows[2], rows[3], rows[4]]) {
    const { body } = await scenario.api.get(`${path}/${row?.id}`);
    expect(body.data).toMatchObject({ waiting_for: "recovery", next_attempt_at: probe_at });
  }
  await changeWebhook(scenario.webhook, { disabled_at: at(-1) });
  expect(await waits()).toEqual(["suspended", "suspended", "suspended", null, "suspended"]);
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
    const rowsRead: number[] = [];
    interceptDynamo(async ({ command, input }, send) => {
      if (command === "QueryCommand") rowsRead.push(Number(input.Limit));
      return send();
    });
    const { body, headers } = await scenario.api.get(`${path}${query}`);
    restoreAws();
    expect(idsOf(body.data)).toEqual(newestFirst(rows).slice(0, count));
    // One more shows that a page follows. The first query reads three rows at most, which show the size of a row.
    expect(rowsRead).toEqual(count < 3 ? [count + 1] : [3, count - 2]);
    const last = await scenario.api.get(linkOf(headers) ?? "");
    expect(idsOf(last.body.data)).toEqual([rows[0]?.id]);
    expect(last.headers.get("link")).toBeNull();
  });

  test("links to the next until each delivery was returned once", async () => {
    await expectPages(scenario.api, path, newestFirst(await givenMany(23)));
  });

  test("is not shifted by deliveries that are created between two pages", async () => {
    const rows = await givenMany(10);
    const { headers } = await scenario.api.get(`${path}?limit=5`);
    await givenDelivery(scenario.webhook, { at: new Date(startOfDay + 3_600_000) });
    expect((await readPages(scenario.api, linkOf(headers) ?? "")).flat()).toEqual(newestFirst(rows).slice(5));
  });

  test("starts at a cursor whose delivery was deleted", async () => {
    const rows = await givenMany(4);
    const { headers } = await scenario.api.get(`${path}?limit=2`);
    const { webhook_id, id } = rows[2] ?? {};
    await dynamo().send(new DeleteCommand({ TableName: tableName("deliveries"), Key: { webhook_id, id } }));
    const { body } = await scenario.api.get(linkOf(headers) ?? "");
    expect(idsOf(body.data)).toEqual(newestFirst(rows).slice(2));
  });
});

describe("the delivery list with a status", () => {
  test("returns only deliveries with that status", async () => {
    const rows = await givenMany(21, (index) => ({ status: deliveryStatuses[index % 7] ?? "pending" }));
    for (const status of deliveryStatuses) {
      const { body } = await scenario.api.get(`${path}?status=${status}`);
      expect(body.data).toHaveLength(3);
      expect({ status, ids: idsOf(body.data) }).toEqual({
        status,
        ids: newestFirst(rows.filter((row) => row.status === status)),
      });
    }
  });

  test("finds few matches among many deliveries, with pages that may be short", async () => {
    const matches = [0, 1, 140, 1_150, 1_299];
    const rows = await givenMany(1_300, (index) => ({ status: matches.includes(index) ? "failed" : "succeeded" }));
    const expected = newestFirst(rows.filter((_, index) => matches.includes(index)));
    // A call reads at most 1,000 rows, and the next one begins after them.
    for (const [limit, lengths] of [
      [2, [2, 2, 1]],
      [100, [2, 3]],
    ] as const) {
      const pages = await readPages(scenario.api, `${path}?status=failed&limit=${limit}`);
      expect(pages.flat()).toEqual(expected);
      expect(pages.map(({ length }) => length)).toEqual(lengths);
    }
  });

  test("ends a page after 1,000 rows without a match", async () => {
    const [row] = await givenMany(1);
    let rowsRead = 0;
    interceptDynamo(async ({ command, input }, send) => {
      if (command !== "QueryCommand" || !String(input.TableName).endsWith("-deliveries")) return send();
      rowsRead += Number(input.Limit);
      const ScannedCount = Number(input.Limit);
      return { Items: [], ScannedCount, LastEvaluatedKey: { webhook_id: scenario.webhook.id, id: row?.id } };
    });
    const { body, headers } = await scenario.api.get(`${path}?status=failed`);
    restoreAws();
    expect({ data: body.data, rowsRead }).toEqual({ data: [], rowsRead: 1_000 });
    expect(linkOf(headers)).toContain(`${path}?status=failed&cursor=`);
  });

  test("ends a page after 250 read units, when rows are large", async () => {
    const data = { log: "x".repeat(60_000) };
    const rows = await givenMany(60, () => ({ status: "succeeded", body: JSON.stringify({ data }) }));
    const calls = watchDynamo();
    const { body, headers } = await scenario.api.get(`${path}?status=failed`);
    restoreAws();
    expect(body.data).toEqual([]);
    const units = calls.filter(({ command }) => command === "QueryCommand").reduce((sum, call) => sum + call.units, 0);
    expect(units).toBeGreaterThan(240);
    // The engine reports a row more than it charges when a query ends at 1 MB.
    expect(units).toBeLessThanOrEqual(250 + 8);
    const pages = await readPages(scenario.api, linkOf(headers) ?? "");
    expect(pages.flat()).toEqual([]);
    const unfiltered = await readPages(scenario.api, `${path}?limit=100`);
    expect(unfiltered.length).toBeGreaterThan(1);
    expect(unfiltered.flat()).toEqual(newestFirst(rows));
  });
});

describe("the delivery list with filters", () => {
  const failedWith = (error_code: FailureCode, number = 1): Attempt => ({
    ...{ number, at: "2026-03-01T00:00:00.000Z", duration_ms: 3, trigger: "schedule", error_code },
  });
  const list = async (query: string) => idsOf((await scenario.api.get(`${path}?${query}`)).body.data);

  test("event and deployment_id returns only deliveries that match both", async () => {
    const deployment_id = randomUUID();
    const rows = await givenMany(8, (index) => ({
      event: index % 2 === 0 ? "deploy.failed" : "deploy.started",
      ...(index >= 4 && { deployment_id }),
    }));
    expect(await list(`deployment_id=${deployment_id.toUpperCase()}`)).toEqual(newestFirst(rows.slice(4)));
    expect(await list(`deployment_id=${deployment_id}&event=deploy.failed`)).toEqual([rows[6]?.id, rows[4]?.id]);
  });

  test("event returns deliveries of events about webhooks, whose deployment_id is null", async () => {
    const events = ["webhook.failing", "deploy.started", "webhook.disabled"] as const;
    const rows = await givenMany(3, (index) => ({
      event: events[index] ?? "deploy.failed",
      ...(index !== 1 && { deployment_id: null }),
    }));
    const { body } = await scenario.api.get(`${path}?event=webhook.failing`);
    expect(body.data).toMatchObject([{ id: rows[0]?.id, event: "webhook.failing", deployment_id: null }]);
    expect(await list("event=deploy.started")).toEqual([rows[1]?.id]);
  });

  test("error_code looks at the last attempt of deliveries that have not succeeded", async () => {
    const attemptsOf: [Delivery["status"], Attempt[]][] = [
      ["failed", [failedWith("timeout"), failedWith("dns_error", 2)]],
      ["failed", [failedWith("dns_error"), failedWith("timeout", 2)]],
      ["pending", [failedWith("timeout")]],
      ["pending", [{ ...failedWith("timeout"), error_code: undefined, status_code: 200 }]],
      // A slower sender has recorded its failure after the success of another.
      ["succeeded", [{ ...failedWith("timeout"), error_code: undefined }, failedWith("timeout", 2)]],
      ["held", []],
    ];
    const rows = await givenMany(6, (index) => {
      const [status, attempts] = attemptsOf[index] ?? ["pending", []];
      return { status, attempts, attempt_count: attempts.length };
    });
    expect(await list("error_code=timeout")).toEqual([rows[2]?.id, rows[1]?.id]);
    expect(await list("error_code=timeout&status=failed")).toEqual([rows[1]?.id]);
    expect(await list("error_code=tls_error")).toEqual([]);
    // The attempts themselves are not in the list.
    expect((await scenario.api.get(`${path}?error_code=dns_error`)).body.data[0]).not.toHaveProperty("attempts");
  });

  test("since and until returns deliveries by the time of the event, from since on and before until", async () => {
    const created_at = "2026-03-05T00:00:00.000Z";
    const rows = await givenMany(10, () => ({ created_at }));
    const at = (seconds: number) => new Date(startOfDay + seconds * 1000).toISOString();
    expect(await list(`since=${at(3)}&until=${at(6)}`)).toEqual(newestFirst(rows.slice(3, 6)));
    expect(await list(`since=${at(9)}`)).toEqual([rows[9]?.id]);
    expect(await list(`until=${at(1)}`)).toEqual([rows[0]?.id]);
    expect(await list("since=2026-03-01T01:00:08%2B01:00")).toEqual(newestFirst(rows.slice(8)));
    expect(await list("since=0001-01-01T00:00:00Z&until=1969-01-01T00:00:00Z")).toEqual([]);
    expect(await list("since=9999-12-31T23:59:59.999Z")).toEqual([]);
  });

  test("since and until reads no rows outside the time", async () => {
    await givenMany(300, () => ({ status: "succeeded" }));
    let rowsRead = 0;
    interceptDynamo(async ({ input }, send) => {
      const result = (await send()) as { ScannedCount?: number };
      if (String(input.TableName).endsWith("-deliveries")) rowsRead += result.ScannedCount ?? 0;
      return result;
    });
    const time = new Date(startOfDay + 100_000).toISOString();
    await list(`status=failed&since=${time}&until=2026-03-01T00:01:50Z`);
    restoreAws();
    expect(rowsRead).toBe(10);
  });

  test("keeps all filters in the links until each match was returned once", async () => {
    const rows = await givenMany(30, (index) => ({ status: index % 2 === 0 ? "held" : "failed" }));
    const query = `since=2026-03-01T00:00:05Z&until=2026-03-01T00:00:25.000Z&event=deploy.started&status=held`;
    const pages = await readPages(scenario.api, `${path}?${query}&limit=3`);
    const expected = rows.filter(({ status }, index) => status === "held" && index >= 5 && index < 25);
    expect(pages.map(({ length }) => length)).toEqual([3, 3, 3, 1]);
    expect(pages.flat()).toEqual(newestFirst(expected));
  });
});

describe("a cursor of the delivery list", () => {
  /** Returns the cursor after the first of three deliveries. */
  async function cursorOf(query: string): Promise<string> {
    const { headers } = await scenario.api.get(`${path}?limit=1${query}`);
    const cursor = new URL(linkOf(headers) ?? "", service.baseUrl).searchParams.get("cursor");
    if (cursor === null) throw new Error("The page has no link to a next one.");
    return cursor;
  }

  test("is accepted with another limit, and with the same times written in another way", async () => {
    const rows = await givenMany(3);
    const cursor = await cursorOf("&since=2026-03-01T00:00:00Z");
    const { body } = await scenario.api.get(`${path}?limit=9&since=2026-03-01T01:00:00.000%2B01:00&cursor=${cursor}`);
    expect(idsOf(body.data)).toEqual(newestFirst(rows).slice(1));
  });

  test("is rejected with another filter, with one more, and with none", async () => {
    await givenMany(3);
    const cursor = await cursorOf("&status=succeeded");
    for (const query of [
      "?status=failed",
      "?status=succeeded&event=deploy.started",
      `?status=succeeded&deployment_id=${randomUUID()}`,
      "?status=succeeded&error_code=timeout",
      "?status=succeeded&since=2026-03-01T00:00:00Z",
      "?status=succeeded&until=2027-03-01T00:00:00Z",
      "?",
    ]) {
      const { status, body } = await scenario.api.get(`${path}${query}&cursor=${cursor}`);
      const message = expect.stringContaining("must be the cursor of an earlier response for the same webhook");
      const error = { code: "validation_error", details: [{ path: "cursor" }], message };
      expect({ query, status, body }).toMatchObject({ query, status: 400, body: { error } });
    }
  });

  test("is rejected by the list of another webhook, and by that of the project", async () => {
    await givenMany(3);
    const { webhook: other } = await givenWebhook({ projectId: scenario.projectId });
    const project = `/v1/projects/${scenario.projectId}`;
    const cursor = await cursorOf("");
    for (const list of [`${project}/webhooks/${other.id}/deliveries`, `${project}/deliveries`]) {
      expect(invalidFieldsOf(await scenario.api.get(`${list}?cursor=${cursor}`))).toEqual(["cursor"]);
    }
  });

  test("that is invented and outside of since and until is rejected", async () => {
    const webhookId = scenario.webhook.id;
    const times = { since: new Date(startOfDay), until: new Date(startOfDay + 1000) };
    const query = `since=${times.since.toISOString()}&until=${times.until.toISOString()}`;
    const get = async (position: ListPosition) => {
      const cursor = listCursor(position, { scope: `webhook:${webhookId}`, filters: times });
      return scenario.api.get(`${path}?${query}&cursor=${cursor}`);
    };
    const idAt = (millis: number) => timeOrderedUuid(millis, new Uint8Array(16));
    const after = idAt(startOfDay);
    expect((await get({ after })).status).toBe(200);
    expect((await get({ after, reached: { [webhookId]: after } })).status).toBe(200);
    for (const millis of [startOfDay - 1, startOfDay + 1000]) {
      expect(invalidFieldsOf(await get({ after: idAt(millis) }))).toEqual(["cursor"]);
      expect(invalidFieldsOf(await get({ after, reached: { [webhookId]: idAt(millis) } }))).toEqual(["cursor"]);
    }
  });

  test("with 8, 16 or 24 bytes more than an id and a digest is rejected", async () => {
    await givenMany(2);
    const cursor = Buffer.from(await cursorOf(""), "base64url");
    for (const bytes of [8, 16, 24]) {
      const longer = Buffer.concat([cursor, randomBytes(bytes)]).toString("base64url");
      expect(invalidFieldsOf(await scenario.api.get(`${path}?cursor=${longer}`))).toEqual(["cursor"]);
    }
  });
});

test("the delivery list returns 400 for an invalid parameter, and names it", async () => {
  const invalid: [query: string, field: string][] = [
    ["limit=101", "limit"],
    ["limit=1.5", "limit"],
    ["status=lost", "status"],
    ["status=FAILED", "status"],
    ["event=deploy.lost", "event"],
    ["deployment_id=7", "deployment_id"],
    ["error_code=lost", "error_code"],
    ["since=yesterday", "since"],
    ["since=2026-02-30T00:00:00Z", "since"],
    ["until=2026-02-01T00:00:00", "until"],
    ["since=2026-02-01T00:00:00Z&until=2026-02-01T00:00:00Z", "until"],
    ["cursor=", "cursor"],
    ["cursor=7", "cursor"],
    [`cursor=${randomUUID()}`, "cursor"],
    [`cursor=${"A".repeat(32)}`, "cursor"],
    [`cursor=${"f".repeat(10_000)}`, "cursor"],
    [`cursor=${randomUUID()}%00`, "cursor"],
    ["state=failed", "state"],
    ["__proto__=1", "__proto__"],
  ];
  for (const [query, field] of invalid) {
    const { status, body } = await scenario.api.get(`${path}?${query}`);
    const fields = body.error?.details?.map((detail: { path: string }) => detail.path);
    expect({ query, status, code: body.error?.code, fields }).toEqual({
      query,
      status: 400,
      code: "validation_error",
      fields: [field],
    });
  }
});

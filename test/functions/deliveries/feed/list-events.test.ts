import { randomUUID } from "node:crypto";
import { UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { oldestPage } from "../../../../functions/deliveries/feed/event-feed-store.ts";
import * as events from "../../../../functions/deliveries/feed/event-store.ts";
import { MeteredReads } from "../../../../functions/foundation/budgets/metered-reads-store.ts";
import { parseDeploymentEvent } from "../../../../functions/foundation/events/parse-deployment-event.ts";
import { dynamo } from "../../../../functions/foundation/platform/aws.ts";
import { tableName } from "../../../../functions/foundation/platform/env.ts";
import { inParallel } from "../../../../functions/foundation/platform/parallel.ts";
import { interceptDynamo, loseNextResponse, restoreAws, watchDynamo } from "../../../support/aws-calls.ts";
import { eventOf, givenEvent } from "../../../support/deliveries.ts";
import { expectPages, linkOf } from "../../../support/pages.ts";
import { invalidFieldsOf } from "../../../support/scenario.ts";
import { type Api, type TestService, useService } from "../../../support/service.ts";
import { itemsOf } from "../../../support/stored-items.ts";

let user: ReturnType<TestService["user"]>;
let api: Api;
let projectId: string;
let path: string;
const service = useService();
beforeEach(async () => {
  user = service.user();
  api = user.api;
  // Without webhooks: the feed has its events, too.
  projectId = await service.project(user.userId);
  path = `/v1/projects/${projectId}/events`;
});

const secondsAgo = (seconds: number) => new Date(Date.now() - seconds * 1000);

interface Given {
  /** Time of the event. Default: now. */
  at?: Date;
  /** When its row was written. Default: the time of the event. */
  storedAt?: Date;
  /** When SQS received it. Default: the time of the event. */
  receivedAt?: Date;
  [field: string]: unknown;
}

/** Stores an event as fan-out does. Returns its deployment. */
async function given({ at = new Date(), storedAt = at, receivedAt = at, ...changes }: Given = {}): Promise<string> {
  const event = eventOf(projectId, { timestamp: at.toISOString(), ...changes });
  expect(await givenEvent(event, { receivedAt, storedAt })).toBe(true);
  return String(event.deployment_id);
}

const range = (length: number) => Array.from({ length }, (_, index) => index);

type Record = { id: string; deployment_id: string };
const deploymentsOf = (data: Record[]) => data.map(({ deployment_id }) => deployment_id);

/** Reads this page and all that follow. Returns the deployments of each, and the link with which to follow. */
async function readAll(first: string): Promise<{ pages: string[][]; monitor: string }> {
  const pages: string[][] = [];
  let monitor: string | undefined;
  for (let next: string | undefined = first; next !== undefined; ) {
    const { status, body, headers } = await api.get(next);
    expect(status).toBe(200);
    pages.push(deploymentsOf(body.data));
    next = linkOf(headers, "next");
    // One page of a list has it: the first of the newest, or the last of the oldest.
    const follow = linkOf(headers, "monitor");
    if (follow !== undefined) expect(monitor).toBeUndefined();
    monitor ??= follow;
    expect(pages.length).toBeLessThan(50);
  }
  return { pages, monitor: monitor ?? "" };
}

describe("a record", () => {
  test("has the event with its payload, and numbers as the pipeline wrote them", async () => {
    const at = new Date("2026-11-21T04:04:29.027Z");
    const text = JSON.stringify(eventOf(projectId, { timestamp: at.toISOString() })).replace(
      '"c0ffee"',
      '9007199254740993,"ratio":1.0,"tiny":1e-400',
    );
    const message = parseDeploymentEvent(text);
    if (!message.ok) throw new Error(message.reason);
    await events.insert(message.event, new Date(at.getTime() + 1500), randomUUID());
    const response = await fetch(`${service.baseUrl}${path}`, { headers: { authorization: `Bearer ${user.token}` } });
    const body = await response.text();
    expect(body).toContain(`"payload":${text}`);
    expect(JSON.parse(body).data).toEqual([
      {
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        event: "deploy.started",
        deployment_id: message.event.deployment_id,
        timestamp: "2026-11-21T04:04:29.027Z",
        received_at: "2026-11-21T04:04:30.527Z",
        payload: expect.anything(),
      },
    ]);
  });
});

describe("the feed", () => {
  test("is empty for a project without events, and can be followed", async () => {
    const { body, headers } = await api.get(path);
    expect(body).toEqual({ data: [] });
    expect(linkOf(headers, "next")).toBeUndefined();
    const deployment = await given();
    const later = await api.get(linkOf(headers, "monitor") ?? "");
    expect(deploymentsOf(later.body.data)).toEqual([deployment]);
  });

  test.each(["newest", "oldest"])("has each event once, in pages, with order=%s", async (order) => {
    const all: string[] = [];
    for (let index = 7; index > 0; index--) all.push(await given({ at: secondsAgo(index * 60) }));
    const expected = order === "newest" ? all.toReversed() : all;
    await expectPages(api, `${path}?order=${order}`, expected, "deployment_id");
  });

  test("is newest first without an order", async () => {
    const older = await given({ at: secondsAgo(60) });
    const newer = await given();
    expect((await readAll(path)).pages).toEqual([[newer, older]]);
  });

  test.each(["newest", "oldest"])("has only what the filters select, with order=%s", async (order) => {
    const deployment_id = randomUUID();
    const data = { url: "https://app.example.com", status: "running" };
    await given({ deployment_id, at: secondsAgo(3) });
    await given({ deployment_id, at: secondsAgo(2), event: "deploy.succeeded", data });
    const other = await given({ event: "deploy.succeeded", data });
    const eventsOf = async (query: string) =>
      (await api.get(`${path}?order=${order}&${query}`)).body.data.map(({ event }: { event: string }) => event).sort();
    expect(await eventsOf(`deployment_id=${deployment_id}`)).toEqual(["deploy.started", "deploy.succeeded"]);
    expect(await eventsOf("event=deploy.succeeded")).toEqual(["deploy.succeeded", "deploy.succeeded"]);
    expect(await eventsOf(`event=deploy.started&deployment_id=${deployment_id}`)).toEqual(["deploy.started"]);
    expect(await eventsOf(`event=deploy.started&deployment_id=${other}`)).toEqual([]);
  });

  test.each(["newest", "oldest"])("reads at most 1,000 rows for one page, with order=%s", async (order) => {
    let rowsRead = 0;
    const id = randomUUID();
    interceptDynamo(async ({ command, input }, send) => {
      if (command !== "QueryCommand" || input.TableName !== tableName("events")) return send();
      rowsRead += Number(input.Limit);
      return { Items: [], ScannedCount: input.Limit, LastEvaluatedKey: { project_id: projectId, id } };
    });
    const { body, headers } = await api.get(`${path}?order=${order}&event=deploy.failed&limit=7`);
    restoreAws();
    expect({ data: body.data, rowsRead }).toEqual({ data: [], rowsRead: 1_000 });
    const next = linkOf(headers, "next") ?? "";
    expect(next).toMatch(/event=deploy.failed/);
    expect(next).toMatch(/limit=7/);
    expect((await api.get(next)).status).toBe(200);
  });

  test("ends a page early when the payloads are large", async () => {
    const data = { log: "x".repeat(200_000) };
    for (let index = 9; index > 0; index--) await given({ at: secondsAgo(index), data });
    for (const order of ["newest", "oldest"]) {
      const { pages } = await readAll(`${path}?order=${order}&limit=100`);
      expect(pages.length).toBeGreaterThan(1);
      expect(new Set(pages.flat()).size).toBe(9);
    }
  });
});

describe("a reader who follows the feed", () => {
  let monitor: string;
  beforeEach(async () => {
    ({ monitor } = await readAll(`${path}?order=oldest`));
  });

  /** Follows the feed until it has nothing more. Returns the deployments. */
  async function follow(): Promise<string[]> {
    const read = await readAll(monitor);
    monitor = read.monitor;
    return read.pages.flat();
  }

  test("gets each event once, although a pass reads what others have read", async () => {
    const [one, two] = [await given({ at: secondsAgo(2) }), await given({ at: secondsAgo(1) })];
    expect(await follow()).toEqual([one, two]);
    expect(await follow()).toEqual([]);
    const three = await given();
    expect(await follow()).toEqual([three]);
    expect(await follow()).toEqual([]);
  });

  test("gets an event that is stored after a later one", async () => {
    const later = await given();
    expect(await follow()).toEqual([later]);
    const earlier = await given({ at: secondsAgo(60), storedAt: new Date() });
    expect(await follow()).toEqual([earlier]);
  });

  test("gets an event whose write began before the last pass and ended after it", async () => {
    const later = await given();
    expect(await follow()).toEqual([later]);
    const slow = await given({ at: secondsAgo(30), storedAt: secondsAgo(29) });
    expect(await follow()).toEqual([slow]);
  });

  test.each([16 * 60, 3 * 86_400])("gets an event that is stored %i seconds after its time", async (seconds) => {
    const later = await given();
    expect(await follow()).toEqual([later]);
    const late = await given({ at: secondsAgo(seconds), storedAt: new Date() });
    expect(await follow()).toEqual([late]);
    expect(await follow()).toEqual([]);
    // A list has the event once, in its place.
    expect((await readAll(path)).pages).toEqual([[later, late]]);
    expect((await readAll(`${path}?order=oldest`)).pages).toEqual([[late, later]]);
  });

  test("gets an event that was received in time, and waited in the queue until it was late", async () => {
    const later = await given();
    expect(await follow()).toEqual([later]);
    const late = await given({ at: secondsAgo(960), receivedAt: secondsAgo(900), storedAt: new Date() });
    expect(await follow()).toEqual([late]);
  });

  test("sees a late event with the id that the list shows", async () => {
    await given({ at: secondsAgo(86_400), storedAt: new Date() });
    const [followed] = (await api.get(monitor)).body.data;
    const [listed] = (await api.get(path)).body.data;
    expect(followed).toEqual(listed);
  });

  test("gets an event whose time is in the future", async () => {
    const future = await given({ at: secondsAgo(-7200), storedAt: new Date() });
    expect(await follow()).toEqual([future]);
    const next = await given();
    expect(await follow()).toEqual([next]);
  });

  test("gets what is stored behind the page at which the pass is", async () => {
    const all = [];
    for (let index = 5; index > 0; index--) all.push(await given({ at: secondsAgo(index) }));
    const first = await api.get(`${monitor}&limit=2`);
    const behind = await given({ at: secondsAgo(10), storedAt: new Date() });
    const rest = await readAll(linkOf(first.headers, "next") ?? "");
    monitor = rest.monitor;
    expect([...deploymentsOf(first.body.data), ...rest.pages.flat()]).toEqual(all);
    expect(await follow()).toEqual([behind]);
  });

  test("gets what is stored during a pass that takes longer than an event needs to settle, and the others once", async () => {
    const now = Date.now();
    const at = (seconds: number) => new Date(now + seconds * 1000);
    const page = (query: Parameters<typeof oldestPage>[2], time: Date) =>
      oldestPage(new MeteredReads(`user:${projectId}`, time), projectId, query, time);
    // The first one has just as much time as an event needs.
    const events = [await given({ at: at(-35) }), await given({ at: at(-20) }), await given({ at: at(-10) })];
    const first = await page({ limit: 2 }, at(0));
    const behind = await given({ at: at(-30), storedAt: at(1) });
    const rest = await page({ limit: 5, after: first.next }, at(120));
    const later = await page({ limit: 5, after: rest.follow }, at(121));
    expect(deploymentsOf([...first.items, ...rest.items, ...later.items])).toEqual([...events, behind]);
  });

  test("gets each of 20 events a second once", async () => {
    const all = await inParallel(range(680), 50, (index) => given({ at: secondsAgo(34 - index / 20) }));
    expect((await follow()).toSorted()).toEqual(all.toSorted());
    expect(await follow()).toEqual([]);
  });

  test("gets more events at once than a position can hold", async () => {
    const all = await inParallel(range(800), 50, (index) => given({ at: secondsAgo(20 - index / 50) }));
    const { pages } = await readAll(`${monitor}&limit=100`);
    expect(pages.flat().toSorted()).toEqual(all.toSorted());
  });

  test("begins with the newest page, and keeps the filters", async () => {
    const deployment_id = await given({ at: secondsAgo(3) });
    const { headers } = await api.get(`${path}?deployment_id=${deployment_id}&limit=5`);
    await given();
    await given({ deployment_id, event: "deploy.failed" });
    const { body } = await api.get(linkOf(headers, "monitor") ?? "");
    expect(body.data).toMatchObject([{ deployment_id, event: "deploy.failed" }]);
  });

  test("gets an event of an earlier version, whose row does not say when it was stored", async () => {
    const old = await given();
    const [{ id }] = (await api.get(path)).body.data;
    const Key = { project_id: projectId, id };
    await dynamo().send(
      new UpdateCommand({ TableName: tableName("events"), Key, UpdateExpression: "REMOVE stored_at" }),
    );
    expect(await follow()).toEqual([old]);
    expect(await follow()).toEqual([]);
  });

  test("causes few reads when nothing happens", async () => {
    for (let index = 1; index <= 20; index++) await given({ at: secondsAgo(index * 3600) });
    await follow();
    const calls = watchDynamo();
    expect(await follow()).toEqual([]);
    expect(calls.filter(({ command }) => command === "QueryCommand")).toEqual([{ command: "QueryCommand", units: 1 }]);
  });
});

test("a late event and its copy are written together, and a duplicate writes neither", async () => {
  const event = eventOf(projectId, { timestamp: secondsAgo(3600).toISOString() });
  const insert = () => givenEvent(event);
  const sent = loseNextResponse("TransactWriteItemsCommand");
  expect([await insert(), await insert()]).toEqual([true, false]);
  expect(sent.requests).toBe(3);
  expect(await itemsOf("events", { project_id: projectId })).toHaveLength(2);
  expect((await events.findReceived(projectId, secondsAgo(60), new Date())).events).toHaveLength(1);
});

test.each(
  [
    ["order=up", "order"],
    ["event=deploy.lost", "event"],
    ["deployment_id=7", "deployment_id"],
    ["limit=101", "limit"],
    ["after=", "after"],
    ["after=7", "after"],
    [`after=${"A".repeat(38)}`, "after"],
    [`order=oldest&after=${randomUUID()}`, "after"],
    [`order=oldest&after=${"-".repeat(10_000)}`, "after"],
    ["cursor=7", "cursor"],
  ].map(([query = "", field]) => ({ title: query.slice(0, 60), query, field })),
)("the feed returns 400 for $title and names $field", async ({ query, field }) => {
  expect(invalidFieldsOf(await api.get(`${path}?${query}`))).toEqual([field]);
});

import type http from "node:http";
import { DeleteCommand } from "@aws-sdk/lib-dynamodb";
import { jest } from "@jest/globals";
import { placeOf, putPlace } from "../../../../functions/deliveries/line/backlog-store.ts";
import { change } from "../../../../functions/deliveries/line/change-delivery.ts";
import type { Delivery, Trigger } from "../../../../functions/deliveries/line/delivery.ts";
import { newRequest, requested } from "../../../../functions/deliveries/line/delivery-transitions.ts";
import { handler as sweep } from "../../../../functions/deliveries/sending/sweep.ts";
import { work } from "../../../../functions/deliveries/sending/work.ts";
import { dynamo } from "../../../../functions/foundation/platform/aws.ts";
import { tableName } from "../../../../functions/foundation/platform/env.ts";
import { lease, wake } from "../../../../functions/webhooks/webhook/wake-up-store.ts";
import type { Webhook } from "../../../../functions/webhooks/webhook/webhook.ts";
import * as webhooks from "../../../../functions/webhooks/webhook/webhook-store.ts";
import {
  attempt,
  failRecords,
  givenLine,
  requestAgain,
  type SentMessage,
  visitLine,
  watchMessages,
} from "../../../support/attempts.ts";
import {
  type AwsCall,
  beforeHold,
  failDynamo,
  interceptDynamo,
  isCall,
  isHold,
  restoreAws,
  watchDynamo,
} from "../../../support/aws-calls.ts";
import {
  changeWakeUp,
  changeWebhook,
  givenDelivery,
  givenWaiting,
  givenWebhook,
  newDelivery,
  placesOf,
  prepareDeliveries,
  rowOf,
  takeMessages,
  wakeUpOf,
  workCall,
} from "../../../support/deliveries.ts";
import { eventually } from "../../../support/eventually.ts";
import { fakeDate } from "../../../support/fake-date.ts";
import { metricsIn, watchLog } from "../../../support/metrics.ts";
import { useReceiver } from "../../../support/receiver.ts";

/* The worker of a webhook, on a fake date. */

const receiver = useReceiver("test");
let webhook: Webhook;
let clock: ReturnType<typeof fakeDate>;
let sent: SentMessage[];
beforeAll(prepareDeliveries);
beforeEach(async () => {
  clock = fakeDate();
  ({ webhook } = await givenWebhook({ url: receiver.url }));
  sent = watchMessages();
});
afterEach(async () => {
  jest.restoreAllMocks();
  delete process.env.RETRY_SCHEDULE;
  await takeMessages("slowDeliveries");
});

const at = (seconds: number) => new Date(Date.now() + 1_000 * seconds);
const iso = (seconds: number) => at(seconds).toISOString();
/** Ten minutes of failures: a probe every minute. */
const openCircuit = (probeInSeconds = 0) =>
  changeWebhook(webhook, { failing_since: iso(-600), probe_at: iso(probeInSeconds) });
const webhookNow = async () => (await webhooks.find(webhook.project_id, webhook.id)) ?? webhook;
const requestedIds = () => receiver.received.map(({ headers }) => String(headers["webhook-id"]));
const idsOf = (rows: Pick<Delivery, "id">[]) => rows.map(({ id }) => id);
const rowsNow = (rows: Delivery[]) => Promise.all(rows.map(rowOf));
const statusesNow = async (rows: Delivery[]) => (await rowsNow(rows)).map(({ status }) => status);
const firstOf = <T>([first]: T[]): T => {
  if (first === undefined) throw new Error("nothing is given");
  return first;
};
/** Takes the delays of the calls of the worker that were sent. */
const takeCalls = () => sent.splice(0).map(({ delaySeconds, message }) => [message.kind, delaySeconds]);
const requestsPerVisit = async () => {
  const before = receiver.received.length;
  await visitLine(webhook);
  return receiver.received.length - before;
};
const enable = () => webhooks.update(webhook.project_id, webhook.id, { enabled: true }, iso(0));
const changeUrl = () =>
  webhooks.update(webhook.project_id, webhook.id, { url: `${receiver.url}/new`, enabled: true }, iso(0));
const expectEmpty = async () => expect([await placesOf(webhook), await wakeUpOf(webhook)]).toEqual([[], undefined]);

/** Lets the requests wait for their responses, which are numbered in the order of the line. */
function holdResponses(line: Delivery[]): (index: number, code: number) => void {
  const waiting = new Map<string, http.ServerResponse>();
  receiver.respondWith(({ headers }, response) => void waiting.set(String(headers["webhook-id"]), response));
  return (index, code) =>
    waiting
      .get(line[index]?.id ?? "")
      ?.writeHead(code)
      .end();
}

test("fifty requests at once, what a user waits for before the oldest; three failures in a row stop the visit", async () => {
  process.env.RETRY_SCHEDULE = "600";
  const old = await givenLine(webhook, 60);
  const line = [await requestAgain(await givenDelivery(webhook)), ...old];
  const respond = holdResponses(line);
  const visit = visitLine(webhook);
  await receiver.waitFor(50);
  expect(requestedIds().toSorted()).toEqual(idsOf(line.slice(0, 50)).toSorted());
  // Each response makes room for the next delivery. The redelivery does not count, and the success starts again.
  for (const [index, code] of [500, 500, 500, 200, 500, 500].entries()) {
    respond(index, code);
    await receiver.waitFor(51 + index);
    expect(requestedIds().at(-1)).toBe(line[50 + index]?.id);
  }
  respond(6, 500);
  await eventually(async () => expect(await rowOf(line[6] ?? firstOf(line))).toMatchObject({ attempt_count: 1 }));
  for (let index = 7; index < 56; index++) respond(index, 500);
  await visit;
  expect(receiver.received).toHaveLength(56);
  expect(await wakeUpOf(webhook)).toMatchObject({ due: iso(10) });
  expect(takeCalls().at(-1)).toEqual(["work", 10]);
  receiver.respondWith(200);
  clock.advance(10);
  await visitLine(webhook);
  // The first success makes what waits for a later attempt due too.
  expect(requestedIds().slice(56)).toHaveLength(60);
  expect(await statusesNow(line)).toEqual(Array(61).fill("succeeded"));
});

test("a receiver that fails gets one request at a time until it accepts one, and what users wait for at once", async () => {
  await changeWebhook(webhook, { failing_since: iso(-10) });
  const line = await givenLine(webhook, 20);
  const respond = holdResponses(line);
  const visit = visitLine(webhook);
  await receiver.waitFor(1);
  respond(0, 500);
  await receiver.waitFor(2);
  expect(await rowOf(firstOf(line))).toMatchObject({ attempt_count: 1 });
  respond(1, 200);
  await receiver.waitFor(20);
  for (let index = 2; index < 20; index++) respond(index, 200);
  await visit;
  await changeWebhook(webhook, { failing_since: iso(-10) });
  const asked = [];
  for (let count = 0; count < 3; count++) asked.push(await requestAgain(await givenDelivery(webhook)));
  const respondToAsked = holdResponses(asked);
  const visitAgain = visitLine(webhook);
  await receiver.waitFor(23);
  for (const index of asked.keys()) respondToAsked(index, 500);
  await visitAgain;
});

test("a request that takes long does not hold up the others of its line", async () => {
  const line = await givenLine(webhook, 105);
  let respondToFirst = () => {};
  receiver.respondWith(({ headers }, response) => {
    if (headers["webhook-id"] === line[0]?.id) respondToFirst = () => void response.end();
    else response.end();
  });
  const calls = watchDynamo();
  const visit = visitLine(webhook);
  await receiver.waitFor(105);
  respondToFirst();
  await visit;
  // Two pages, which all requests share, the look for more, and the one that plans the next visit.
  expect(calls.filter(({ command }) => command === "QueryCommand")).toHaveLength(4);
  expect(await statusesNow(line)).toEqual(Array(105).fill("succeeded"));
});

test("the lines of one process share fifty requests, but each has five in any case", async () => {
  const others = await Promise.all(Array.from({ length: 12 }, () => givenWebhook({ url: receiver.url })));
  const all = [webhook, ...others.map((other) => other.webhook)];
  for (const each of all) await givenLine(each, 8);
  // All have their leases before one of them reads its line.
  const allLeased = Promise.withResolvers<void>();
  const reads = { lines: 0, rows: 0 };
  interceptDynamo(async ({ command }, proceed) => {
    if (command === "BatchGetItemCommand") reads.rows += 1;
    if (command === "QueryCommand") {
      reads.lines += 1;
      if (reads.lines === all.length) allLeased.resolve();
      await allLeased.promise;
    }
    return proceed();
  });
  const held: http.ServerResponse[] = [];
  receiver.respondWith((_, response) => void held.push(response));
  const visits = all.map((each) => visitLine(each));
  await receiver.waitFor(13 * 5);
  // Nothing more is about to be sent.
  expect(reads.rows).toBe(13 * 5);
  receiver.respondWith(200);
  for (const response of held) response.end();
  await Promise.all(visits);
  expect(receiver.received).toHaveLength(13 * 8);
});

test("a visit goes on until nothing is due, with what enters meanwhile, and plans the next look", async () => {
  const line = await givenLine(webhook, 105);
  const later = await givenWaiting(webhook, { due: at(7) });
  const old = await givenDelivery(webhook);
  let late: Delivery | undefined;
  receiver.respondWith(async (_, response) => {
    if (receiver.received.length === 1) {
      late = await givenWaiting(webhook, { due: at(-500) });
      await requestAgain(old);
    }
    response.end();
  });
  takeCalls();
  await visitLine(webhook);
  expect(receiver.received).toHaveLength(107);
  expect(await statusesNow([...line, old, late ?? later])).toEqual(Array(107).fill("succeeded"));
  expect(await rowOf(later)).toEqual(later);
  expect(await wakeUpOf(webhook)).toMatchObject({ due: iso(7), lease_until: new Date(0).toISOString() });
  expect(takeCalls().at(-1)).toEqual(["work", 7]);
});

test("the next look is planned from the first page of what is due later, however much that is", async () => {
  await givenLine(webhook, 1);
  await Promise.all(Array.from({ length: 40 }, (_, index) => givenWaiting(webhook, { due: at(60 + index) })));
  const calls = watchDynamo();
  await visitLine(webhook);
  expect(await wakeUpOf(webhook)).toMatchObject({ due: iso(60) });
  // What is due, what has become due meanwhile, and what is due later.
  expect(calls.filter(({ command }) => command === "QueryCommand")).toHaveLength(3);
});

test("failures of what users wait for do not stop a visit", async () => {
  receiver.respondWith(500);
  jest.spyOn(Math, "random").mockReturnValue(0.5);
  for (const row of [1, 2, 3].map(() => givenDelivery(webhook))) await requestAgain(await row);
  await visitLine(webhook);
  expect(receiver.received).toHaveLength(3);
  await visitLine(webhook);
  expect(await wakeUpOf(webhook)).toMatchObject({ due: iso(5) });
});

describe("the lease", () => {
  test("keeps all other workers away, while the line is not due too", async () => {
    const rows = await givenLine(webhook, 3);
    const waiting: http.ServerResponse[] = [];
    receiver.respondWith((_, response) => void waiting.push(response));
    const visit = visitLine(webhook, 50_000);
    await receiver.waitFor(3);
    expect(await wakeUpOf(webhook)).toMatchObject({ lease_until: iso(55) });
    clock.advance(55);
    expect(await requestsPerVisit()).toBe(0);
    for (const response of waiting) response.end();
    await visit;
    expect(await statusesNow(rows)).toEqual(Array(3).fill("succeeded"));
    await givenWaiting(webhook, { due: at(5) });
    expect(await requestsPerVisit()).toBe(0);
  });

  test("lasts for the longest life of a process, where that is not known", async () => {
    await givenWaiting(webhook);
    receiver.respondWith(async (_, response) => {
      expect(await wakeUpOf(webhook)).toMatchObject({ lease_until: iso(65) });
      response.end();
    });
    await work(workCall(webhook), () => Number.POSITIVE_INFINITY);
    await expectEmpty();
  });

  test("of a process that ended ends, and the sweep calls the next worker", async () => {
    const row = await givenWaiting(webhook);
    takeCalls();
    const enoughTime = { getRemainingTimeInMillis: () => 50_000 };
    expect(await lease(webhook, "killed", at(0), at(65))).toBeDefined();
    clock.advance(65);
    await sweep({}, enoughTime);
    expect(takeCalls()).toContainEqual(["work", 0]);
    expect(await requestsPerVisit()).toBe(0);
    clock.advance(0.001);
    await visitLine(webhook);
    expect(await rowOf(row)).toMatchObject({ status: "succeeded", attempt_count: 1 });
  });
});

test.each([
  [44_999, 0],
  [45_000, 2],
])("with %i ms left, a visit makes %i attempts, and leaves the rest to the next", async (remainingMs, count) => {
  await givenLine(webhook, 2);
  takeCalls();
  await visitLine(webhook, remainingMs);
  expect(receiver.received).toHaveLength(count);
  expect(takeCalls()).toEqual(count === 0 ? [["work", 0]] : []);
  await visitLine(webhook);
  expect(receiver.received).toHaveLength(2);
});

describe("while the circuit is open", () => {
  let line: Delivery[];
  beforeEach(async () => {
    line = await givenLine(webhook, 5);
    await openCircuit();
  });

  test("the oldest row is the probe; after its failure the others stay, until the next one is due", async () => {
    receiver.respondWith(500);
    const [, ...others] = line;
    await visitLine(webhook);
    expect(requestedIds()).toEqual([line[0]?.id]);
    expect(await rowsNow(others)).toEqual(others);
    expect(await webhookNow()).toMatchObject({ failing_since: iso(-600), probe_at: iso(60), probed_id: line[0]?.id });
    expect(await wakeUpOf(webhook)).toMatchObject({ due: iso(60) });
    expect(takeCalls().at(-1)).toEqual(["work", 60]);
    expect(await requestsPerVisit()).toBe(0);
    clock.advance(60);
    expect(await requestsPerVisit()).toBe(1);
    expect(requestedIds()).toEqual(idsOf(line.slice(0, 2)));
  });

  test("a failed probe costs as much with 5 rows as with 55", async () => {
    receiver.respondWith(500);
    await visitLine(webhook);
    const costOfProbe = async () => {
      clock.advance(300);
      const calls = watchDynamo();
      await visitLine(webhook);
      return calls.map(({ command }) => command.replace("Command", ""));
    };
    const expected = [
      // Lease, line, row, probe, the place and the row of the retry, its place before, line and webhook again, the end.
      ...["UpdateItem", "Query", "BatchGetItem", "UpdateItem", "PutItem", "PutItem", "DeleteItem"],
      ...["Query", "GetItem", "UpdateItem"],
    ];
    expect(await costOfProbe()).toEqual(expected);
    await givenLine(webhook, 50);
    expect(await costOfProbe()).toEqual(expected);
  });

  test("a row that waits for the first attempt of its message is no probe before its time; the next row is", async () => {
    receiver.respondWith(500);
    const { webhook: other } = await givenWebhook({ url: receiver.url });
    await changeWebhook(other, { failing_since: iso(-600), probe_at: iso(0) });
    const carried = await givenWaiting(other, { at: at(-20), due: at(40) });
    const retried = await givenWaiting(other, { at: at(-10), due: at(3_600), attempt_count: 1 });
    await changeWakeUp(other, { due: iso(0) });
    await visitLine(other);
    expect(requestedIds()).toEqual([retried.id]);
    clock.advance(60);
    await visitLine(other);
    expect(requestedIds()).toEqual([retried.id, carried.id]);
  });

  test("a row that waits alone for the first attempt of its message is looked at when it is due", async () => {
    const { webhook: other } = await givenWebhook({ url: receiver.url });
    await changeWebhook(other, { failing_since: iso(-600), probe_at: iso(0) });
    await givenWaiting(other, { at: at(-20), due: at(40) });
    await changeWakeUp(other, { due: iso(0) });
    await visitLine(other);
    expect(receiver.received).toEqual([]);
    expect(await wakeUpOf(other)).toMatchObject({ due: iso(40) });
  });

  test("a probe that is not due yet, or that another process has made, is waited for", async () => {
    await openCircuit(20);
    await visitLine(webhook);
    expect(receiver.received).toEqual([]);
    expect(await wakeUpOf(webhook)).toMatchObject({ due: iso(20) });
    clock.advance(20);
    interceptDynamo(async (call, proceed) => {
      if (isCall(call, "UpdateItem", "webhooks")) {
        restoreAws();
        await changeWebhook(webhook, { probe_at: iso(30) });
      }
      return proceed();
    });
    await visitLine(webhook);
    expect(receiver.received).toEqual([]);
    expect(await wakeUpOf(webhook)).toMatchObject({ due: iso(30) });
  });

  test("after a success all others are sent in the same visit, many at once", async () => {
    line = await givenLine(webhook, 25);
    const waiting: http.ServerResponse[] = [];
    receiver.respondWith((_, response) => {
      waiting.push(response);
      // The probe alone, then all 29 others.
      if ([1, 30].includes(receiver.received.length)) for (const each of waiting.splice(0)) each.end();
    });
    await visitLine(webhook);
    expect(receiver.received).toHaveLength(30);
    expect(await statusesNow(line)).toEqual(Array(25).fill("succeeded"));
    expect(await webhookNow()).toEqual(webhook);
    await expectEmpty();
  });

  test("what users wait for is sent without a probe, which is the oldest of the others", async () => {
    await openCircuit(20);
    const asked = await requestAgain(await givenDelivery(webhook));
    receiver.respondWith(500);
    await visitLine(webhook);
    expect(requestedIds()).toEqual([asked.id]);
    await requestAgain(await givenDelivery(webhook));
    clock.advance(20);
    receiver.respondWith(({ headers }, response) =>
      response.writeHead(headers["webhook-id"] === line[0]?.id ? 200 : 500).end(),
    );
    await visitLine(webhook);
    expect((await rowsNow(line)).map(({ attempt_count }) => attempt_count)).toEqual(Array(5).fill(1));
    expect(await statusesNow(line)).toEqual(["succeeded", ...Array(4).fill("pending")]);
  });

  test.each([
    ["at the time of the next probe", async () => clock.advance(200)],
    ["with a redelivery before it", async () => requestAgain(await givenDelivery(webhook))],
  ])("and the URL is changed, all are sent %s", async (_, act) => {
    await openCircuit(200);
    await visitLine(webhook);
    await changeUrl();
    expect(await requestsPerVisit()).toBe(0);
    await act();
    await visitLine(webhook);
    expect(await statusesNow(line)).toEqual(Array(line.length).fill("succeeded"));
  });

  test("what a user asked for succeeds, and all others follow at once", async () => {
    await openCircuit(20);
    await requestAgain(await givenDelivery(webhook));
    await visitLine(webhook);
    await visitLine(webhook);
    expect(await statusesNow(line)).toEqual(Array(line.length).fill("succeeded"));
  });
});

describe("a webhook that has changed", () => {
  test("was deleted: its rows are cancelled", async () => {
    const rows = await givenLine(webhook, 3);
    await webhooks.remove(webhook.project_id, webhook.id);
    await visitLine(webhook);
    expect(receiver.received).toEqual([]);
    expect(await statusesNow(rows)).toEqual(Array(3).fill("cancelled"));
    await expectEmpty();
  });

  test("is read again before each request", async () => {
    const rows = await givenLine(webhook, 60);
    const respond = holdResponses(rows);
    const visit = visitLine(webhook);
    await receiver.waitFor(50);
    await changeWebhook(webhook, { disabled_at: iso(0) });
    for (let index = 0; index < 50; index++) respond(index, 200);
    await visit;
    expect(receiver.received).toHaveLength(50);
    expect(await statusesNow(rows)).toEqual([...Array(50).fill("succeeded"), ...Array(10).fill("held")]);
  });

  const disabled = { disabled_at: new Date(0).toISOString(), disabled_reason: "failing" } as const;
  test.each<[Trigger, string, Partial<Webhook>, Delivery["status"]]>([
    ["schedule", "disabled", disabled, "held"],
    ["recover", "disabled", disabled, "held"],
    ["redeliver", "disabled", disabled, "succeeded"],
    ["test", "disabled", disabled, "succeeded"],
    ["schedule", "suspended", { suspended_at: new Date(0).toISOString() }, "held"],
    ["redeliver", "suspended", { suspended_at: new Date(0).toISOString() }, "held"],
    ["test", "suspended", { suspended_at: new Date(0).toISOString() }, "held"],
  ])("a %s of a webhook that is %s becomes %s", async (trigger, _, state, status) => {
    await changeWebhook(webhook, state);
    const row = await givenWaiting(webhook, trigger === "schedule" ? {} : { trigger });
    await visitLine(webhook);
    expect(receiver.received).toHaveLength(status === "succeeded" ? 1 : 0);
    const now = await rowOf(row);
    expect(now).toMatchObject({ status, attempt_count: status === "held" ? 0 : 1 });
    if (status === "held") expect(now).not.toHaveProperty("next_attempt_at");
    await expectEmpty();
  });

  test.each<[string, Partial<Webhook>, () => Promise<unknown>]>([
    ["enabled", { disabled_at: new Date(0).toISOString() }, () => enable()],
    ["given a new URL", { disabled_at: new Date(0).toISOString(), disabled_reason: "gone" }, () => changeUrl()],
  ])("is %s before a hold is written: the row waits again", async (_, state, act) => {
    await changeWebhook(webhook, state);
    const row = await givenWaiting(webhook);
    beforeHold(act);
    await visitLine(webhook);
    expect(await rowOf(row)).toMatchObject({ status: "pending", place: row.place });
    restoreAws();
    await visitLine(webhook);
    expect(await rowOf(row)).toMatchObject({ status: "succeeded" });
  });

  test("the second look of a hold that a crash interrupted is taken by the next visit", async () => {
    await changeWebhook(webhook, disabled);
    const row = await givenWaiting(webhook);
    failDynamo((call) => isCall(call, "GetItem", "webhooks"));
    await visitLine(webhook);
    restoreAws();
    expect(await rowOf(row)).toMatchObject({ status: "held", place: row.place });
    await enable();
    clock.advance(61);
    await visitLine(webhook);
    expect(await rowOf(row)).toMatchObject({ status: "pending" });
    await visitLine(webhook);
    expect(await rowOf(row)).toMatchObject({ status: "succeeded" });
    await expectEmpty();
  });

  test("is disabled, and a row that expires before it is held causes no error", async () => {
    await changeWebhook(webhook, disabled);
    const { webhook_id, id } = await givenWaiting(webhook);
    const lines = watchLog();
    interceptDynamo(async (call, send) => {
      const Key = { webhook_id, id };
      if (isHold(call)) await dynamo().send(new DeleteCommand({ TableName: tableName("deliveries"), Key }));
      return send();
    });
    await visitLine(webhook);
    expect(lines.filter(({ level }) => level === "error")).toEqual([]);
  });

  test("410 holds all that waits behind it at once", async () => {
    receiver.respondWith(410);
    const rows = await givenLine(webhook, 3);
    await openCircuit();
    await visitLine(webhook);
    clock.advance(60);
    const both = Promise.withResolvers<void>();
    let holds = 0;
    interceptDynamo(async (call, send) => {
      if (isHold(call) && ++holds === 2) both.resolve();
      if (isHold(call)) await both.promise;
      return send();
    });
    await visitLine(webhook);
    expect(await statusesNow(rows)).toEqual(["failed", "held", "held"]);
    expect(receiver.received).toHaveLength(1);
  });
});

describe("a delivery that is requested during its attempt", () => {
  test.each([200, 500])("(%i) is sent again after it, by the next visit", async (code) => {
    const row = await givenWaiting(webhook);
    receiver.respondWith(async (_, response) => {
      if (receiver.received.length === 1) await requestAgain(row);
      response.writeHead(receiver.received.length === 1 ? code : 200).end();
    });
    await visitLine(webhook);
    await visitLine(webhook);
    expect(await rowOf(row)).toMatchObject({ status: "succeeded", attempts: [{}, { trigger: "redeliver" }] });
    expect(receiver.received).toHaveLength(2);
    await expectEmpty();
  });

  test("is not sent twice at once by the same visit", async () => {
    const line = await givenLine(webhook, 51);
    const row = firstOf(line);
    // Its next place is written when the visit reads the line, and its row during its attempt.
    const place = placeOf(row, at(-0.5));
    await putPlace(place);
    const respond = holdResponses(line);
    const visit = visitLine(webhook);
    await receiver.waitFor(50);
    await change(row, requested("recover", newRequest(at(0)))(place));
    respond(1, 200);
    respond(2, 200);
    await receiver.waitFor(51);
    for (let index = 3; index < 51; index++) respond(index, 200);
    await eventually(async () => expect(await statusesNow(line.slice(1))).toEqual(Array(50).fill("succeeded")));
    respond(0, 200);
    await visit;
    expect(receiver.received).toHaveLength(51);
    receiver.respondWith(200);
    await visitLine(webhook);
    expect(await rowOf(row)).toMatchObject({ status: "succeeded", attempts: [{}, { trigger: "recover" }] });
  });
});

describe("a place that no row names", () => {
  /** Puts a place as a process does that ends before it writes its row. */
  async function givenLeftover(ageSeconds: number): Promise<Delivery> {
    const delivery = newDelivery(webhook, at(-ageSeconds));
    await putPlace({ ...placeOf(delivery, at(-ageSeconds)), written_at: iso(-ageSeconds) });
    await wake(webhook, at(-ageSeconds));
    return delivery;
  }

  test("is kept for two minutes, because its row may be about to be written", async () => {
    await givenLeftover(0);
    for (let seconds = 0; seconds <= 120; seconds += 5) {
      await visitLine(webhook);
      expect(await placesOf(webhook)).toHaveLength(1);
      expect(await wakeUpOf(webhook)).toMatchObject({ due: iso(5) });
      clock.advance(5);
    }
    await visitLine(webhook);
    await expectEmpty();
  });

  test("does not hide a row behind a page of such places", async () => {
    await Promise.all(Array.from({ length: 100 }, () => putPlace(placeOf(newDelivery(webhook), at(-1)))));
    const row = await givenWaiting(webhook);
    await visitLine(webhook);
    expect(await statusesNow([row])).toEqual(["succeeded"]);
  });

  test("of a row that has another place, or is over, is removed without a request", async () => {
    const row = await givenWaiting(webhook, { due: at(60) });
    const over = await givenDelivery(webhook);
    for (const { id } of [row, over]) {
      await putPlace({ ...placeOf({ webhook_id: webhook.id, id }, at(-300)), written_at: iso(-121) });
    }
    await wake(webhook, at(-1));
    await visitLine(webhook);
    expect(receiver.received).toEqual([]);
    expect(idsOf(await rowsNow([row, over]))).toEqual(idsOf([row, over]));
    expect((await placesOf(webhook)).map(({ entry }) => entry)).toEqual([row.place]);
  });

  test("of a carried attempt that cannot be removed does not lead to a second request", async () => {
    const row = await givenWaiting(webhook, { due: at(75) });
    failDynamo(({ command }) => command === "DeleteItemCommand");
    await attempt(row);
    restoreAws();
    expect(await placesOf(webhook)).toHaveLength(1);
    clock.advance(130);
    await visitLine(webhook);
    expect(receiver.received).toHaveLength(1);
    await expectEmpty();
  });
});

test("a row that cannot be read does not hold up the others, and is tried again after a minute", async () => {
  const rows = await givenLine(webhook, 5);
  const broken = rows[1]?.id ?? "";
  const lines = watchLog();
  failDynamo(({ command, input }) => command === "BatchGetItemCommand" && JSON.stringify(input).includes(broken));
  await visitLine(webhook);
  restoreAws();
  expect(await statusesNow(rows)).toEqual(["succeeded", "pending", ...Array(3).fill("succeeded")]);
  expect(lines.filter(({ level }) => level === "error")).toMatchObject([{ message: "delivery not sent" }]);
  expect(metricsIn(lines).messagesFailed).toEqual([1]);
  expect(await wakeUpOf(webhook)).toMatchObject({ due: iso(60) });
  clock.advance(60);
  await visitLine(webhook);
  expect(await statusesNow(rows)).toEqual(Array(5).fill("succeeded"));
});

test("a row that cannot be read does not hold up a later one that is due before it is tried again", async () => {
  const broken = await givenWaiting(webhook);
  await givenWaiting(webhook, { due: at(3) });
  failDynamo(({ command, input }) => command === "BatchGetItemCommand" && JSON.stringify(input).includes(broken.id));
  await visitLine(webhook);
  expect(await wakeUpOf(webhook)).toMatchObject({ due: iso(3) });
  clock.advance(3);
  await visitLine(webhook);
  restoreAws();
  expect(receiver.received).toHaveLength(1);
  expect(await wakeUpOf(webhook)).toMatchObject({ due: iso(60) });
});

test("a row whose webhook cannot be updated does not hold up those that are due before it is tried again", async () => {
  process.env.RETRY_SCHEDULE = "600";
  receiver.respondWith(500);
  await givenWaiting(webhook);
  await givenWaiting(webhook, { due: at(3) });
  failDynamo((call) => isCall(call, "UpdateItem", "webhooks"));
  await visitLine(webhook);
  expect(await wakeUpOf(webhook)).toMatchObject({ due: iso(3) });
});

test("a line whose attempt could not be recorded is kept from other workers until it is, also when another row enters", async () => {
  const row = await givenWaiting(webhook);
  failRecords();
  await visitLine(webhook);
  restoreAws();
  await givenWaiting(webhook);
  expect(await requestsPerVisit()).toBe(0);
  expect(await wakeUpOf(webhook)).toMatchObject({ lease_until: iso(60) });
  expect((await rowOf(row)).attempt_count).toBe(0);
});

describe("the end of a visit", () => {
  /** Runs `act` once, or several times, after the worker has read its line to plan the next look. */
  function beforeEnd(act: () => Promise<unknown>, times = 1): void {
    let acts = 0;
    interceptDynamo(async ({ command, input }, proceed) => {
      const output = await proceed();
      if (command === "QueryCommand" && input.Limit === 15 && acts++ < times) await act();
      return output;
    });
  }

  test.each([0, 60])("removes no wake-up, and looks again, when a row enters that is due in %i s", async (seconds) => {
    await givenWaiting(webhook);
    let late: Delivery | undefined;
    beforeEnd(async () => {
      late = await givenWaiting(webhook, { due: at(seconds) });
    });
    takeCalls();
    await visitLine(webhook);
    expect(await wakeUpOf(webhook)).toMatchObject({ due: iso(seconds), wakes: 2 });
    expect(takeCalls()).toContainEqual(["work", seconds]);
    clock.advance(seconds);
    await visitLine(webhook);
    expect(await rowOf(late ?? firstOf([]))).toMatchObject({ status: "succeeded" });
  });

  test("plans no later look when a row enters", async () => {
    await givenWaiting(webhook, { due: at(600) });
    await changeWakeUp(webhook, { due: iso(0) });
    beforeEnd(() => givenWaiting(webhook, { due: at(5) }));
    await visitLine(webhook);
    expect(await wakeUpOf(webhook)).toMatchObject({ due: iso(5) });
  });

  test.each([
    [2, 60],
    [3, 1],
  ])("plans the probe although rows enter %i times meanwhile, or looks again in a second: %i s", async (times, due) => {
    await givenWaiting(webhook);
    await openCircuit(60);
    beforeEnd(() => givenWaiting(webhook), times);
    takeCalls();
    await visitLine(webhook);
    expect(await wakeUpOf(webhook)).toMatchObject({ due: iso(due) });
    expect(takeCalls().at(-1)).toEqual(["work", due]);
  });

  test("does nothing when another worker has the line by then", async () => {
    await givenWaiting(webhook);
    beforeEnd(() => changeWakeUp(webhook, { lease_id: "another", lease_until: iso(60) }));
    await visitLine(webhook);
    expect(await wakeUpOf(webhook)).toMatchObject({ lease_id: "another", lease_until: iso(60) });
  });

  /** Lets a call of a visit fail. */
  const calls: [string, (call: AwsCall) => boolean][] = [
    ["the line", ({ command, input }) => command === "QueryCommand" && input.Limit === 100],
    ["the line to plan the next look", ({ command, input }) => command === "QueryCommand" && input.Limit === 15],
    [
      "the wake-up",
      ({ command, input }) => command === "DeleteItemCommand" && JSON.stringify(input).includes("wake-up"),
    ],
  ];

  test.each(calls)("leaves the line alone for a minute when the call fails that needs %s", async (_, isFailing) => {
    const row = await givenWaiting(webhook);
    failDynamo(isFailing);
    const lines = watchLog();
    await visitLine(webhook);
    restoreAws();
    expect(lines.filter(({ level }) => level === "error")).toMatchObject([{ message: "line not served" }]);
    expect(metricsIn(lines).messagesFailed).toEqual([1]);
    expect(await wakeUpOf(webhook)).toMatchObject({ due: iso(60), lease_until: iso(60) });
    expect(takeCalls().at(-1)).toEqual(["work", 60]);
    clock.advance(60.001);
    await visitLine(webhook);
    expect(await rowOf(row)).toMatchObject({ status: "succeeded", attempt_count: 1 });
    await expectEmpty();
  });

  test("is repeated by the sweep when it cannot be written at all", async () => {
    await givenWaiting(webhook);
    failDynamo(({ input }) => JSON.stringify(input).includes("lease_id = :v"));
    await expect(work(workCall(webhook), () => 60_000)).rejects.toThrow("slow down");
    restoreAws();
    clock.advance(66);
    await visitLine(webhook);
    await expectEmpty();
    expect(receiver.received).toHaveLength(1);
  });
});

test("a retry whose time has come is made in the same visit", async () => {
  process.env.RETRY_SCHEDULE = "0,0";
  receiver.respondWith((_, response) => {
    clock.advance(1);
    response.writeHead(receiver.received.length < 3 ? 500 : 200).end();
  });
  const row = await givenWaiting(webhook);
  await visitLine(webhook);
  expect(await rowOf(row)).toMatchObject({ status: "succeeded", attempt_count: 3 });
  await expectEmpty();
});

test("the line of another webhook is left alone", async () => {
  const { webhook: other } = await givenWebhook({ url: receiver.url, projectId: webhook.project_id });
  const rows = [await givenWaiting(webhook), await givenWaiting(other)];
  await visitLine(webhook);
  expect(await statusesNow(rows)).toEqual(["succeeded", "pending"]);
});

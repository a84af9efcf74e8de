import { randomUUID } from "node:crypto";
import type http from "node:http";
import { jest } from "@jest/globals";
import { makeAttempt } from "../../../functions/attempts/attempt.ts";
import { KeyedSemaphore } from "../../../functions/attempts/keyed-semaphore.ts";
import { noteResponseTime } from "../../../functions/attempts/response-times.ts";
import { acquireSlot } from "../../../functions/attempts/slots.ts";
import type { Webhook } from "../../../functions/webhooks/webhook.ts";
import { attemptOf, carriedDelivery, failRecords, watchMessages } from "../../support/attempts.ts";
import { interceptSqs, restoreAws } from "../../support/aws-calls.ts";
import {
  dueAttempt,
  givenDelivery,
  givenWebhook,
  prepareDeliveries,
  rowOf,
  takeDueAttempts,
} from "../../support/deliveries.ts";
import { eventually } from "../../support/eventually.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";

/* The limits on requests in flight, and what happens to an attempt that finds no slot. */

let receiver: Receiver;
let webhook: Webhook;
let waiting: http.ServerResponse[];
/** Responds to the requests that have arrived. */
const respond = () => waiting.splice(0).map((response) => response.writeHead(200).end());
beforeAll(prepareDeliveries);
beforeEach(async () => {
  receiver = await startReceiver();
  waiting = [];
  receiver.respondWith((_, response) => void waiting.push(response));
  ({ webhook } = await givenWebhook({ url: receiver.url }));
});
afterEach(async () => {
  restoreAws();
  jest.restoreAllMocks();
  await takeDueAttempts();
  await receiver.close();
});

/** Starts attempts of new rows of a webhook. */
async function startAttempts(count: number, target = webhook) {
  const started = await Promise.all(Array.from({ length: count }, () => givenDelivery(target)));
  return { started, done: Promise.all(started.map((each) => makeAttempt(attemptOf(each)))) };
}

test("a webhook has at most ten requests in flight; the others are enqueued in the slow lane, 5 s later", async () => {
  const sent = watchMessages();
  const { started, done } = await startAttempts(13);
  await receiver.waitFor(10);
  await eventually(() => expect(sent).toHaveLength(3));
  const posted = receiver.received.map(({ headers }) => headers["x-service-delivery"]);
  expect(posted).toHaveLength(10);
  const delayed = started.filter(({ id }) => !posted.includes(id));
  expect(sent).toEqual(
    expect.arrayContaining(
      delayed.map((each) => ({
        lane: "slow",
        delaySeconds: 5,
        group: webhook.project_id,
        message: { ...dueAttempt(each), waits: 1 },
      })),
    ),
  );
  for (const each of delayed) expect(await rowOf(each)).toEqual(each);
  respond();
  expect((await done).toSorted()).toEqual([...Array(3).fill("delayed"), ...Array(10).fill("succeeded")]);
  expect(receiver.received).toHaveLength(10);
});

test("a waiting delivery is sent as soon as a request has finished", async () => {
  // On a slow machine the first requests arrive only after the usual patience.
  const { acquire } = KeyedSemaphore.prototype;
  jest.spyOn(KeyedSemaphore.prototype, "acquire").mockImplementation(function (this: KeyedSemaphore, key) {
    return acquire.call(this, key, 60_000);
  });
  const { done } = await startAttempts(11);
  await receiver.waitFor(10);
  waiting.shift()?.end();
  await receiver.waitFor(11);
  respond();
  expect(await done).toEqual(Array(11).fill("succeeded"));
});

test("all slots are free again after attempts that could not be recorded", async () => {
  receiver.respondWith(200);
  failRecords();
  interceptSqs(() => Promise.reject(new Error("SQS is unavailable")));
  const started = await Promise.all(Array.from({ length: 11 }, () => givenDelivery(webhook)));
  for (const each of started) await expect(makeAttempt(attemptOf(each))).rejects.toThrow("DynamoDB is unavailable");
  expect(receiver.received).toHaveLength(11);
});

describe("an attempt without a slot", () => {
  let fill: Promise<unknown>;
  beforeEach(async () => {
    ({ done: fill } = await startAttempts(10));
    await receiver.waitFor(10);
  });
  afterEach(async () => {
    respond();
    await fill;
  });

  test.each([
    [0, 5],
    [1, 5],
    [2, 10],
    [3, 20],
    [4, 40],
    [5, 40],
    [99, 40],
  ])("after %i waits is enqueued with a delay of %i s", async (waits, delaySeconds) => {
    const sent = watchMessages();
    const delivery = await givenDelivery(webhook);
    expect(await makeAttempt({ ...attemptOf(delivery), waits })).toBe("delayed");
    const message = { ...dueAttempt(delivery), waits: waits + 1 };
    expect(sent).toEqual([{ lane: "slow", delaySeconds, group: webhook.project_id, message }]);
  });

  const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString();
  test.each([
    ["whose message is stale", () => ({ validUntil: inSeconds(-1) })],
    ["whose message would be stale after the delay", () => ({ validUntil: inSeconds(19), waits: 3 })],
    ["of a drain, which comes back by itself,", () => ({ isDrain: true })],
  ])("%s is not enqueued", async (_, changes) => {
    const sent = watchMessages();
    const delivery = await givenDelivery(webhook);
    expect(await makeAttempt({ ...attemptOf(delivery), ...changes() })).toBe("delayed");
    expect(sent).toEqual([]);
    expect(await rowOf(delivery)).toEqual(delivery);
  });

  test("whose message is valid after the delay keeps its time of expiry", async () => {
    const sent = watchMessages();
    const delivery = await givenDelivery(webhook);
    const validUntil = inSeconds(25);
    await makeAttempt({ ...attemptOf(delivery), validUntil, waits: 3 });
    expect(sent).toMatchObject([{ delaySeconds: 20, message: { valid_until: validUntil, waits: 4 } }]);
  });

  test("that its message carries gets a row first", async () => {
    const sent = watchMessages();
    const carried = carriedDelivery(webhook);
    const { validUntil, ...request } = attemptOf(carried);
    const before = Date.now();
    expect(await makeAttempt({ ...request, carried })).toBe("delayed");
    const row = await rowOf(carried);
    expect(row).toEqual({ ...carried, due_at: row.due_at });
    // The sweep waits for the delayed message and the grace period.
    expect(Date.parse(row.due_at ?? "")).toBeGreaterThanOrEqual(before + 125_000);
    expect(Date.parse(row.due_at ?? "")).toBeLessThanOrEqual(Date.now() + 125_000);
    expect(sent).toMatchObject([{ lane: "slow", delaySeconds: 5, message: { ...dueAttempt(row), waits: 1 } }]);
  });

  test("that its message carries and that has a row is left to the message of the row", async () => {
    const sent = watchMessages();
    const carried = carriedDelivery(webhook);
    const request = { ...attemptOf(carried), carried };
    await makeAttempt(request);
    await makeAttempt(request);
    expect(sent).toHaveLength(1);
  });

  test("does not use up the slots of another webhook of its project", async () => {
    const { webhook: other } = await givenWebhook({ url: receiver.url, projectId: webhook.project_id });
    const delivery = await givenDelivery(other);
    const attempt = makeAttempt(attemptOf(delivery));
    await receiver.waitFor(11);
    respond();
    expect(await attempt).toBe("succeeded");
  });
});

test("a project has at most 40 requests in flight, and another project is not affected", async () => {
  const siblings = await Promise.all(
    Array.from({ length: 5 }, () => givenWebhook({ url: receiver.url, projectId: webhook.project_id })),
  );
  const fills: Promise<unknown>[] = [];
  for (const { webhook: sibling } of siblings.slice(0, 4)) fills.push((await startAttempts(10, sibling)).done);
  await receiver.waitFor(40);

  const over = await startAttempts(1, siblings[4]?.webhook);
  expect(await over.done).toEqual(["delayed"]);

  const healthy = await startReceiver();
  const { webhook: stranger } = await givenWebhook({ url: healthy.url });
  expect(stranger.project_id).not.toBe(webhook.project_id);
  const { done } = await startAttempts(10, stranger);
  expect(await done).toEqual(Array(10).fill("succeeded"));
  expect(receiver.received).toHaveLength(40);

  respond();
  await Promise.all(fills);
  await healthy.close();
  // The slots of the project are free again.
  const next = startAttempts(1, siblings[4]?.webhook);
  await receiver.waitFor(41);
  respond();
  expect(await (await next).done).toEqual(["succeeded"]);
});

test("a webhook without a slot in its project gives its own slot back", async () => {
  const releases: ((() => void) | undefined)[] = [];
  const projectId = randomUUID();
  for (let n = 0; n < 40; n++) releases.push(await acquireSlot(projectId, `webhook-${n % 4}`));
  for (let n = 0; n < 11; n++) expect(await acquireSlot(projectId, "webhook-4")).toBeUndefined();
  for (const release of releases) release?.();
  const again = await Promise.all(Array.from({ length: 10 }, () => acquireSlot(projectId, "webhook-4")));
  for (const release of again) expect(release).toEqual(expect.any(Function));
  for (const release of again) release?.();
});

describe("the patience for a slot", () => {
  test.each([
    ["a webhook without responses", undefined, 200],
    ["responses after 50 ms", 50, 200],
    ["responses after 300 ms", 300, 600],
    ["responses after 14 s", 14_000, 1_000],
  ])("with %s (%p ms) is %i ms without a release, and 2 s overall", async (_, usualMs, patienceMs) => {
    const webhookId = randomUUID();
    const projectId = randomUUID();
    if (usualMs !== undefined) noteResponseTime(webhookId, usualMs);
    const acquire = jest.spyOn(KeyedSemaphore.prototype, "acquire");
    const release = await acquireSlot(projectId, webhookId);
    expect(acquire.mock.calls).toEqual([
      [webhookId, patienceMs, 2_000],
      [projectId, 200, 2_000],
    ]);
    release?.();
  });

  test("knows the response time of the requests before", async () => {
    receiver.respondWith((_, response) => void setTimeout(() => response.end(), 400));
    const delivery = await givenDelivery(webhook);
    await makeAttempt(attemptOf(delivery));
    const acquire = jest.spyOn(KeyedSemaphore.prototype, "acquire");
    (await acquireSlot(webhook.project_id, webhook.id))?.();
    const [, patienceMs] = acquire.mock.calls[0] ?? [];
    expect(patienceMs).toBeGreaterThanOrEqual(780);
  });
});

import { setTimeout as sleep } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";
import { jest } from "@jest/globals";
import { tail } from "../../../../packages/cli/src/commands/tail.ts";
import type { Client, Delivery, WebhookRef } from "../../../../packages/client/src/client.ts";
import { ApiError, NetworkError } from "../../../../packages/client/src/errors.ts";
import { eventually } from "../../../support/eventually.ts";

/* `tail` with more deliveries than one page, against a stub of the client. */

const [webhook, other] = ["w-1", "w-2"].map((webhookId) => ({ projectId: "p-1", webhookId })) as [
  WebhookRef,
  WebhookRef,
];
const errorOf = (status: number) => new ApiError(status, { code: "x", message: "No.", request_id: "r" });
const idOf = (number: number) => `d-${String(number).padStart(4, "0")}`;
const newDelivery = (number: number, status: Delivery["status"], { webhookId } = webhook): Delivery => ({
  id: idOf(number),
  webhook_id: webhookId,
  event: "deploy.started",
  deployment_id: "x",
  status,
  test: false,
  created_at: "2026-11-21T12:00:00.000Z",
  waiting_for: null,
  next_attempt_at: null,
  attempt_count: status === "pending" ? 0 : 1,
  last_attempt: null,
});

/** Oldest first. */
let deliveries: Delivery[];
/** Whether the second webhook cannot be read, and no delivery looked up. */
let isDown: boolean;
/** By the id of a webhook whose deliveries cannot be listed, or of a delivery that cannot be looked up. */
let errors: Map<string, ApiError>;
let printed: string[];
let lookups: string[];
/** The number of lookups before each pause. */
let lookupCounts: number[];
/** In seconds. */
let pauses: number[];
let stop: AbortController;
let ended: Promise<unknown>;

beforeEach(() => {
  [deliveries, isDown, errors, printed, lookups, lookupCounts, pauses] = [[], false, new Map(), [], [], [], []];
  stop = new AbortController();
  jest.spyOn(process.stderr, "write").mockReturnValue(true);
  jest.spyOn(process.stdout, "write").mockImplementation((text) => {
    const { id, status } = JSON.parse(String(text));
    printed.push(`${id} ${status}`);
    return true;
  });
});
afterEach(async () => {
  stop.abort();
  await ended;
  jest.restoreAllMocks();
});

function start(last: number, json = true): void {
  const api = {
    listDeliveries: async ({ webhookId }: WebhookRef, { limit = 20, cursor = "0" }) => {
      if (isDown && webhookId === other.webhookId) throw new NetworkError("Gone.");
      const error = errors.get(webhookId);
      if (error) throw error;
      const end = Number(cursor) + limit;
      const all = deliveries.filter(({ webhook_id }) => webhook_id === webhookId);
      const items = all.toReversed().slice(Number(cursor), end);
      return end < all.length ? { items, nextCursor: String(end) } : { items };
    },
    getDelivery: async (_webhook: unknown, id: string) => {
      lookups.push(id);
      if (isDown) throw errorOf(503);
      const error = errors.get(id);
      if (error) throw error;
      return deliveries.find((delivery) => delivery.id === id);
    },
  } as unknown as Client;
  const labels = new Map([[webhook.webhookId, "Chat"]]);
  const { signal } = stop;
  const pause = async (ms: number) => {
    pauses.push(ms / 1000);
    lookupCounts.push(lookups.length);
    await sleep(5, undefined, { signal });
  };
  ended = tail(api, [webhook, other], { last, json, labels, signal, pause }).catch((error) => error);
}

test("without --json, a line has the time and the cause of the last attempt, and names the webhook", async () => {
  jest.spyOn(process.stdout, "write").mockImplementation((text) => {
    printed.push(stripVTControlCharacters(String(text)).replaceAll(/^ +| {2}d-\d{4}|\n$/gm, ""));
    return true;
  });
  const attempt = {
    ...{ at: "2026-11-21T12:34:56.000Z", duration_ms: 1, status_code: 404, error_code: "http_status" as const },
    ...{ hint: "Check the URL.", response_excerpt: "no such hook" },
  };
  const last_attempt = { ...attempt, status_code: 200, error_code: null, hint: null };
  const attempts = [{ ...attempt, status_code: 500 }, attempt];
  const failed = { ...newDelivery(2, "failed"), attempt_count: 2, attempts };
  deliveries = [newDelivery(0, "pending"), { ...newDelivery(1, "succeeded"), last_attempt }, failed];
  start(3, false);
  await eventually(() => expect(printed).toHaveLength(3));
  expect(printed).toEqual([
    "2026-11-21T12:00:00.000Z  pending    deploy.started  Chat  attempt 0",
    "2026-11-21T12:34:56.000Z  succeeded  deploy.started  Chat  attempt 1",
    "2026-11-21T12:00:00.000Z  failed     deploy.started  Chat  attempt 2  404 in 1 ms\n→ Check the URL.\nresponse: no such hook",
  ]);
  expect(lookups).toEqual(["d-0002"]);
  // Without its cause, which cannot be read.
  isDown = true;
  deliveries.push(newDelivery(3, "failed"));
  await eventually(() => expect(printed[3]).toMatch(/failed +deploy.started +Chat +attempt 1$/));
  isDown = false;
  // It has expired since.
  errors.set("d-0004", errorOf(404));
  deliveries.push(newDelivery(4, "failed"));
  await eventually(() => expect(printed[4]).toMatch(/failed +deploy.started +Chat +attempt 1$/));
});

test("continues without a webhook that was deleted, and ends when all were, or when the credential is rejected", async () => {
  start(0);
  await eventually(() => expect(pauses.length).toBeGreaterThan(0));
  errors.set(other.webhookId, errorOf(404));
  deliveries = [newDelivery(0, "succeeded")];
  await eventually(() => expect(printed).toEqual(["d-0000 succeeded"]));
  const { length } = pauses;
  await eventually(() => expect(pauses.length).toBeGreaterThan(length + 2));
  const notes = jest.mocked(process.stderr.write).mock.calls.map(([text]) => text);
  expect(notes.slice(1)).toEqual(["The webhook w-2 was deleted.\n"]);
  errors.set(webhook.webhookId, errorOf(404));
  expect(await ended).toBe(errors.get(webhook.webhookId));
  errors.set(webhook.webhookId, errorOf(401));
  start(0);
  expect(await ended).toBe(errors.get(webhook.webhookId));
});

test("prints the changes of a webhook once while another cannot be read, and those of both in their order", async () => {
  isDown = true;
  deliveries = [newDelivery(0, "succeeded"), newDelivery(1, "succeeded", other), newDelivery(2, "succeeded")];
  start(2);
  await eventually(() => expect(pauses.length).toBeGreaterThan(3));
  isDown = false;
  await eventually(() => expect(printed).toEqual([1, 2].map((number) => `${idOf(number)} succeeded`)));
  isDown = true;
  deliveries.push(newDelivery(3, "succeeded"), newDelivery(4, "succeeded", other));
  await eventually(() => expect(printed.slice(2)).toEqual(["d-0003 succeeded"]));
  deliveries.push(newDelivery(5, "succeeded"));
  await eventually(() => expect(printed.slice(3)).toEqual(["d-0005 succeeded"]));
  isDown = false;
  await eventually(() => expect(printed.slice(4)).toEqual(["d-0004 succeeded"]));
  const outage = ["Gone. Retrying.\n", "The service is available again.\n"];
  const started = ["Following 2 webhooks. Press Ctrl-C to stop.\n"];
  const noted = jest.mocked(process.stderr.write).mock.calls.map(([text]) => text);
  expect(noted).toEqual([...outage, ...started, ...outage]);
});

test("polls each second, while nothing happens up to every 10 s, and during an outage up to every 30 s", async () => {
  start(0);
  await eventually(() => expect(pauses).toContain(10));
  expect(pauses.slice(0, 3)).toEqual([1.3, 1.69, expect.closeTo(2.197)]);
  isDown = true;
  await eventually(() => expect(pauses).toContain(30));
  isDown = false;
  deliveries.push(newDelivery(0, "succeeded"));
  await eventually(() => expect(pauses).toContain(1));
  const changes = pauses.filter((each, index) => each !== pauses[index - 1]);
  expect(changes.slice(changes.indexOf(10)).slice(0, 4)).toEqual([10, 20, 30, 1]);
});

test("prints all new deliveries of a poll, over several pages", async () => {
  deliveries = [newDelivery(0, "succeeded")];
  start(1);
  await eventually(() => expect(printed).toEqual(["d-0000 succeeded"]));
  for (let number = 1; number <= 250; number++) deliveries.push(newDelivery(number, "succeeded"));
  await eventually(() => expect(printed).toHaveLength(251));
  expect(printed.slice(1)).toEqual(deliveries.slice(1).map(({ id }) => `${id} succeeded`));
});

test("prints the newest thousand when more are new: a poll reads ten pages at most", async () => {
  deliveries = [newDelivery(0, "succeeded")];
  start(1);
  await eventually(() => expect(printed).toHaveLength(1));
  for (let number = 1; number <= 1_300; number++) deliveries.push(newDelivery(number, "succeeded"));
  await eventually(() => expect(printed).toHaveLength(1_001));
  expect(printed.slice(1)).toEqual(deliveries.slice(-1_000).map(({ id }) => `${id} succeeded`));
});

test("prints a pending delivery again once it waits for its receiver to recover, and not while it waits for its turn", async () => {
  const pending = newDelivery(0, "pending");
  deliveries = [pending];
  start(1);
  await eventually(() => expect(printed).toEqual(["d-0000 pending"]));
  deliveries = [{ ...pending, waiting_for: "busy" }, newDelivery(1, "succeeded")];
  await eventually(() => expect(printed.slice(1)).toEqual(["d-0001 succeeded"]));
  deliveries[0] = { ...pending, waiting_for: "recovery" };
  await eventually(() => expect(printed.slice(2)).toEqual(["d-0000 pending"]));
});

test("remembers the deliveries of the last pages and the pending ones, and no more", async () => {
  const [done, pending] = [newDelivery(0, "succeeded"), newDelivery(1, "pending")];
  deliveries = [done, pending];
  start(2);
  await eventually(() => expect(printed).toHaveLength(2));
  for (let number = 2; number < 102; number++) deliveries.push(newDelivery(number, "succeeded"));
  await eventually(() => expect(printed).toHaveLength(102));
  // The poll that found these has read a second page.
  deliveries.push(newDelivery(102, "succeeded"));
  await eventually(() => expect(printed).toHaveLength(103));
  deliveries = [done, pending];
  await eventually(() => expect(printed.slice(103)).toEqual(["d-0000 succeeded"]));
});

test("looks up a pending delivery no more once it has expired", async () => {
  deliveries = [newDelivery(0, "pending")];
  start(0);
  await eventually(() => expect(process.stderr.write).toHaveBeenCalled());
  deliveries = [];
  for (const poll of [1, 2]) {
    for (let number = 0; number < 100; number++) deliveries.push(newDelivery(100 * poll + number, "succeeded"));
    await eventually(() => expect(printed).toHaveLength(100 * poll));
  }
  expect(lookups).toEqual(["d-0000"]);
});

test("looks up all pending deliveries beyond the first page in turn, 20 per poll", async () => {
  deliveries = Array.from({ length: 50 }, (_, number) => newDelivery(number, "pending"));
  start(0);
  await eventually(() => expect(process.stderr.write).toHaveBeenCalled());
  for (let number = 50; number < 150; number++) deliveries.push(newDelivery(number, "succeeded"));
  await eventually(() => expect(new Set(lookups).size).toBe(50));
  expect(new Set(lookups.slice(0, 40)).size).toBe(40);
  expect(Math.max(...lookupCounts.map((count, poll) => count - (lookupCounts[poll - 1] ?? 0)))).toBe(20);
  // Not one that has not changed, which waited for its lookup.
  expect(printed).toEqual(deliveries.slice(50).map(({ id }) => `${id} succeeded`));
  // A lookup that fails is made again.
  isDown = true;
  const { length } = pauses;
  await eventually(() => expect(pauses.length).toBeGreaterThan(length + 4));
  isDown = false;
  deliveries[49] = newDelivery(49, "failed");
  await eventually(() => expect(printed).toContain("d-0049 failed"));
});

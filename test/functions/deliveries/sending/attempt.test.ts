import { createHmac, randomBytes } from "node:crypto";
import { DeleteCommand } from "@aws-sdk/lib-dynamodb";
import { jest } from "@jest/globals";
import type { Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import { readForRequest } from "../../../../functions/deliveries/line/delivery-store.ts";
import { toDetail } from "../../../../functions/deliveries/log/delivery-presenter.ts";
import { dynamo } from "../../../../functions/foundation/platform/aws.ts";
import { tableName } from "../../../../functions/foundation/platform/env.ts";
import { timeOfUuid } from "../../../../functions/foundation/platform/uuid.ts";
import { bodySignature } from "../../../../functions/webhooks/receiver/signature.ts";
import { generateSecret, type Webhook } from "../../../../functions/webhooks/webhook/webhook.ts";
import * as webhooks from "../../../../functions/webhooks/webhook/webhook-store.ts";
import { attempt } from "../../../support/attempts.ts";
import { interceptDynamo, restoreAws } from "../../../support/aws-calls.ts";
import {
  changeSecrets,
  changeWebhook,
  givenWebhook,
  newDelivery,
  prepareDeliveries,
  rowOf,
} from "../../../support/deliveries.ts";
import { fakeDate } from "../../../support/fake-date.ts";
import { watchLog } from "../../../support/metrics.ts";
import { type Receiver, startReceiver, useReceiver } from "../../../support/receiver.ts";

/* One attempt: what it reads, the request, and what is recorded of the response. */

const receiver = useReceiver("test");
/** A second receiver: the new URL of a changed webhook, or the target of a redirect. */
let next: Receiver | undefined;
let webhook: Webhook;
let secret: string;
let delivery: Delivery;
beforeAll(prepareDeliveries);
beforeEach(async () => {
  ({ webhook, secret } = await givenWebhook({ url: receiver.url }));
  delivery = newDelivery(webhook);
});
afterEach(async () => {
  jest.restoreAllMocks();
  await Promise.all([receiver.close(), next?.close()]);
  next = undefined;
});

const read = ({ webhook_id, id, project_id }: Delivery) =>
  readForRequest({ webhook_id, id }, { project_id, webhook_id });

test("sends exactly the headers of the contract, in this spelling", async () => {
  let raw: string[] = [];
  receiver.respondWith((_, response) => {
    raw = response.req.rawHeaders;
    response.end();
  });
  const before = Math.floor(Date.now() / 1000);
  await attempt(delivery);
  const names = raw.filter((_, index) => index % 2 === 0);
  const headers = Object.fromEntries(names.map((name, index) => [name, raw[2 * index + 1]]));
  expect(names).toHaveLength(Object.keys(headers).length);
  expect(headers).toEqual({
    Host: new URL(receiver.url).host,
    Connection: "keep-alive",
    Accept: "*/*",
    "Accept-Encoding": "identity",
    "Content-Length": String(Buffer.byteLength(delivery.body)),
    "Content-Type": "application/json",
    "User-Agent": "Deployment-Webhooks/1.0",
    "X-Service-Event": "deploy.started",
    "X-Service-Delivery": delivery.id,
    "X-Service-Sequence": String(timeOfUuid(delivery.id).getTime() * 10),
    "X-Service-Signature": `sha256=${createHmac("sha256", secret).update(delivery.body, "utf8").digest("hex")}`,
    "webhook-id": delivery.id,
    "webhook-timestamp": expect.stringMatching(/^\d{10}$/),
    "webhook-signature": expect.stringMatching(/^v1,[\w+/]{43}=$/),
  });
  const timestamp = Number(headers["webhook-timestamp"]);
  expect(timestamp).toBeGreaterThanOrEqual(before);
  expect(timestamp).toBeLessThanOrEqual(Date.now() / 1000);
});

test("a refused connection is recorded with its error code", async () => {
  await receiver.close();
  expect(await attempt(delivery)).toBe("failed");
  const [recorded] = (await rowOf(delivery)).attempts ?? [];
  expect(recorded).toMatchObject({ number: 1, error_code: "connection_refused" });
  expect(recorded).not.toHaveProperty("status_code");
});

/** The waits of the default schedule without jitter, in seconds. */
const waits = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000];

/** Returns the seconds between the newest attempt and the next, on a clock that stands still. */
async function waitSeconds(): Promise<number> {
  const { next_attempt_at = "", attempts = [] } = await rowOf(delivery);
  return (Date.parse(next_attempt_at) - Date.parse(attempts.at(-1)?.at ?? "")) / 1_000;
}

test("a receiver that returns 503 gets the eight attempts of the schedule, with one id and body", async () => {
  receiver.respondWith(503);
  jest.spyOn(Math, "random").mockReturnValue(0.5);
  const clock = fakeDate();
  for (const seconds of waits) {
    await attempt(delivery);
    expect((await rowOf(delivery)).status).toBe("pending");
    expect(await waitSeconds()).toBe(seconds);
    clock.advance(seconds);
  }
  await attempt(delivery);
  expect(await rowOf(delivery)).toMatchObject({ status: "failed", attempt_count: 8 });
  const requests = receiver.received.map(({ headers, body }) => [headers["webhook-id"], body]);
  expect(requests).toEqual(Array(8).fill([delivery.id, delivery.body]));
  expect(await webhooks.find(webhook.project_id, webhook.id)).not.toHaveProperty("disabled_at");
});

test.each([302, 308])("a redirect with %i is not followed", async (status) => {
  next = await startReceiver();
  const { url } = next;
  receiver.respondWith((_, response) => response.writeHead(status, { Location: url }).end());
  await attempt(delivery);
  expect(receiver.received).toHaveLength(1);
  expect(next.received).toEqual([]);
  const [recorded] = (await rowOf(delivery)).attempts ?? [];
  expect(recorded).toMatchObject({ status_code: status, error_code: "http_status", detail: url });
});

describe("a webhook that has changed since the event", () => {
  test("has a new URL and secret: the next attempt uses them", async () => {
    receiver.respondWith(500);
    await attempt(delivery);
    next = await startReceiver();
    const current = generateSecret(randomBytes(32));
    await changeWebhook(webhook, { url: next.url });
    await changeSecrets(webhook, { current });
    await attempt(delivery);
    expect(receiver.received).toHaveLength(1);
    expect(next.received[0]?.headers["x-service-signature"]).toBe(bodySignature(delivery.body, current));
  });
});

describe("the reads before a request", () => {
  /** Splits the batch: the rows of the other tables are read first, those of this table after `meanwhile`. */
  function readLast(table: string, meanwhile: () => Promise<unknown>): void {
    interceptDynamo(async ({ command, input }, send) => {
      if (command !== "BatchGetItemCommand") return send();
      restoreAws();
      const items = Object.entries(input.RequestItems as Record<string, unknown>);
      const isLast = ([name]: [string, unknown]) => name.endsWith(`-${table}`);
      const before = await send({ RequestItems: Object.fromEntries(items.filter((item) => !isLast(item))) });
      await meanwhile();
      const after = await send({ RequestItems: Object.fromEntries(items.filter(isLast)) });
      return { ...before, Responses: { ...(before.Responses as object), ...(after.Responses as object) } };
    });
  }

  test("find no webhook that is deleted meanwhile", async () => {
    readLast("webhook-secrets", () => webhooks.remove(webhook.project_id, webhook.id));
    expect(await read(delivery)).toEqual({ row: undefined });
  });

  test("fail for a webhook whose secret is lost", async () => {
    await dynamo().send(new DeleteCommand({ TableName: tableName("webhookSecrets"), Key: { webhook_id: webhook.id } }));
    await expect(read(delivery)).rejects.toThrow("has no secret");
  });

  test.each(["webhooks", "webhook-secrets"])("are repeated when %s is among the unprocessed keys", async (table) => {
    let reads = 0;
    interceptDynamo(async ({ command, input }, send) => {
      if (command !== "BatchGetItemCommand") return send();
      reads += 1;
      const items = Object.entries(input.RequestItems as Record<string, unknown>);
      const left = items.filter(([name]) => name.endsWith(`-${table}`));
      if (reads > 2 || left.length === 0) return send();
      const others = items.filter(([name]) => !name.endsWith(`-${table}`));
      const output = others.length > 0 ? await send({ RequestItems: Object.fromEntries(others) }) : {};
      return { ...output, UnprocessedKeys: Object.fromEntries(left) };
    });
    expect(await read(delivery)).toMatchObject({
      webhook: { id: webhook.id },
      secrets: expect.anything(),
    });
    expect(reads).toBe(3);
  });
});

test.each([
  [200, { status: "succeeded", attempt_count: 1 }],
  [500, { status: "pending", attempt_count: 1 }],
])(
  "a request that was sent again, because its connection was stale, and got %i counts twice",
  async (status, expected) => {
    receiver.respondWith((_, response) => {
      if (receiver.received.length === 2) response.socket?.destroy();
      else response.writeHead(status).end();
    });
    const lines = watchLog();
    const second = newDelivery(webhook);
    await attempt(delivery);
    await attempt(second);
    expect(receiver.received.map(({ headers }) => headers["webhook-id"])).toEqual([delivery.id, second.id, second.id]);
    const rows = [await rowOf(delivery), await rowOf(second)];
    expect(rows[1]).toMatchObject(expected);
    const shown = rows.map((row) => toDetail(row, webhook, new Date()).attempts[0]?.request_count);
    const logged = lines.filter(({ message }) => message === "attempt").map(({ request_count }) => request_count);
    expect([shown, logged]).toEqual([
      [1, 2],
      [undefined, 2],
    ]);
  },
);

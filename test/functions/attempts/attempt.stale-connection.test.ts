import { makeAttempt } from "../../../functions/attempts/attempt.ts";
import { toDetail } from "../../../functions/deliveries/delivery-presenter.ts";
import type { Webhook } from "../../../functions/webhooks/webhook.ts";
import { dueAttempt, givenDelivery, givenWebhook, prepareDeliveries, rowOf } from "../../support/deliveries.ts";
import { type LoggedLine, watchLog } from "../../support/metrics.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";

/* An attempt whose reused connection the receiver closes, so that the request is sent again. */

let receiver: Receiver;
let webhook: Webhook;
let lines: LoggedLine[];
beforeAll(prepareDeliveries);
beforeEach(async () => {
  receiver = await startReceiver();
  ({ webhook } = await givenWebhook({ url: receiver.url }));
  lines = watchLog();
});
afterEach(() => receiver.close());

/** Makes the first attempt of a new delivery. Returns its row and the number of requests that arrived for it. */
async function attempt() {
  const delivery = await givenDelivery(webhook);
  await makeAttempt(dueAttempt(delivery));
  const requests = receiver.received.filter(({ headers }) => headers["webhook-id"] === delivery.id).length;
  return { row: await rowOf(delivery), requests };
}

/** Closes the connection of the second request without a response, and responds with this status to the others. */
function closeSecond(status: number): void {
  receiver.respondWith((_, response) => {
    if (receiver.received.length === 2) response.socket?.destroy();
    else response.writeHead(status).end();
  });
}

test("a request that was sent again counts twice in the row, the log and the API", async () => {
  closeSecond(200);
  const [first, second] = [await attempt(), await attempt()];
  expect([first.requests, second.requests]).toEqual([1, 2]);
  expect(first.row.attempts?.[0]).not.toHaveProperty("request_count");
  expect(second.row).toMatchObject({ status: "succeeded", attempt_count: 1, attempts: [{ request_count: 2 }] });
  expect(lines.map(({ message, request_count }) => [message, request_count])).toEqual([
    ["attempt", undefined],
    ["attempt", 2],
  ]);
  const shown = [first, second].map(({ row }) => toDetail(row, webhook, new Date()).attempts[0]?.request_count);
  expect(shown).toEqual([1, 2]);
});

test("a request that was sent again and failed counts twice", async () => {
  closeSecond(500);
  await attempt();
  const { row, requests } = await attempt();
  expect(requests).toBe(2);
  expect(row.attempts).toEqual([expect.objectContaining({ status_code: 500, request_count: 2 })]);
});

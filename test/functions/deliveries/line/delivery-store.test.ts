import { randomUUID } from "node:crypto";
import { readsForRequests } from "../../../../functions/deliveries/line/delivery-store.ts";
import { interceptDynamo, watchDynamo } from "../../../support/aws-calls.ts";
import { givenWaiting, givenWebhook, prepareDeliveries, takeDeliveryMessages } from "../../../support/deliveries.ts";

/* What the senders of a batch read together. */

beforeAll(prepareDeliveries);
afterEach(takeDeliveryMessages);

test("rows of one webhook that are asked for in the same moment share a read, and each gets its own", async () => {
  const { webhook } = await givenWebhook();
  const rows = [await givenWaiting(webhook), await givenWaiting(webhook)];
  const calls = watchDynamo();
  const read = readsForRequests();
  const found = await Promise.all(rows.map(read));
  expect(found.map(({ row, webhook: one }) => [row?.id, one?.id])).toEqual(rows.map(({ id }) => [id, webhook.id]));
  expect(calls.map(({ command }) => command)).toEqual(["BatchGetItemCommand"]);
});

test("a row that is asked for while a read of its webhook is in flight is read, and not taken for one that does not exist", async () => {
  const { webhook } = await givenWebhook();
  const row = await givenWaiting(webhook);
  const read = readsForRequests();
  let later: ReturnType<typeof read> | undefined;
  interceptDynamo(async (_call, send) => {
    later ??= read(row);
    return send();
  });
  expect((await read({ ...row, id: randomUUID() })).row).toBeUndefined();
  expect((await later)?.row).toMatchObject({ id: row.id, version: row.version });
});

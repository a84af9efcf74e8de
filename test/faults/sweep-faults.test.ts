import { handler } from "../../functions/deliveries/sweep.ts";
import { interceptDynamo, restoreAws } from "../support/aws-calls.ts";
import { givenDelivery, givenWebhook, prepareDeliveries, takeDueAttempts } from "../support/deliveries.ts";

/* The sweep recovers lost deliveries, so one failed call must not stop it for the other rows. */

const sweep = () => handler({}, { getRemainingTimeInMillis: () => 50_000 });
const overdue = { at: new Date(Date.now() - 300_000) };

beforeAll(prepareDeliveries);
afterEach(restoreAws);

/** Stores one overdue delivery for each shard in the list. Returns their ids. */
async function givenOverdue(shards: number[]): Promise<string[]> {
  const { webhook } = await givenWebhook();
  const given = shards.map((due_shard) => givenDelivery(webhook, { ...overdue, due_shard }));
  return (await Promise.all(given)).map(({ id }) => id);
}

/** Throttles the calls of a command whose input the test selects. */
function throttle(command: string, isThrottled: (input: string) => boolean): void {
  interceptDynamo(async (call, send) => {
    if (call.command !== command || !isThrottled(JSON.stringify(call.input))) return send();
    throw Object.assign(new Error("slow down"), { name: "ThrottlingException" });
  });
}

const enqueued = async () => (await takeDueAttempts()).map(({ delivery_id }) => delivery_id).sort();

test("enqueues the other rows of a batch when one claim fails, and that row in the next run", async () => {
  const [throttled = "", ...others] = await givenOverdue(Array(10).fill(7));
  throttle("UpdateItemCommand", (input) => input.includes(throttled));
  await expect(sweep()).rejects.toThrow("slow down");
  expect(await enqueued()).toEqual(others.sort());
  restoreAws();
  await sweep();
  expect(await enqueued()).toEqual([throttled]);
});

test("enqueues all other shards when one shard cannot be read, and then fails the run", async () => {
  const ids = await givenOverdue([0, ...Array.from({ length: 31 }, (_, index) => index + 1)]);
  throttle("QueryCommand", (input) => input.includes('":shard":0,'));
  await expect(sweep()).rejects.toThrow("slow down");
  // The invocation ends with the error, so all rows must be enqueued by now.
  expect(await enqueued()).toEqual(ids.slice(1).sort());
});

test("a webhook whose partition is throttled does not delay the others of its shard, on any page", async () => {
  await sweep();
  await enqueued();
  const { webhook: throttled } = await givenWebhook();
  const { webhook: other } = await givenWebhook();
  const at = new Date(Date.now() - 600_000);
  await Promise.all(Array.from({ length: 150 }, () => givenDelivery(throttled, { at, due_shard: 4 })));
  const behind = await Promise.all(
    Array.from({ length: 120 }, () => givenDelivery(other, { ...overdue, due_shard: 4 })),
  );
  throttle("UpdateItemCommand", (input) => input.includes(throttled.id));
  await expect(sweep()).rejects.toThrow("slow down");
  expect(await enqueued()).toEqual(behind.map(({ id }) => id).sort());
  restoreAws();
  await sweep();
  expect(await enqueued()).toHaveLength(150);
});

import { handler } from "../../functions/deliveries/sweep.ts";
import { interceptDynamo, restoreAws } from "../support/aws-calls.ts";
import { givenDelivery, givenWebhook, prepareDeliveries, takeDueAttempts } from "../support/deliveries.ts";

/* The sweep is what mends everything else, so one broken call must not spoil it for the rows beside. */

const sweep = () => handler({}, { getRemainingTimeInMillis: () => 50_000 });
const overdue = { at: new Date(Date.now() - 300_000) };

beforeAll(prepareDeliveries);
afterEach(restoreAws);

/** The ids of `count` overdue deliveries, the given ones in the shard. */
async function givenOverdue(shards: number[]): Promise<string[]> {
  const { webhook } = await givenWebhook();
  const given = shards.map((due_shard) => givenDelivery(webhook, { ...overdue, due_shard }));
  return (await Promise.all(given)).map(({ id }) => id);
}

/** Throttles calls of a kind, and only those that the test chooses. */
function throttle(command: string, isThrottled: (input: string) => boolean): void {
  interceptDynamo(async (call, send) => {
    if (call.command !== command || !isThrottled(JSON.stringify(call.input))) return send();
    throw Object.assign(new Error("slow down"), { name: "ThrottlingException" });
  });
}

const taken = async () => (await takeDueAttempts()).map(({ delivery_id }) => delivery_id).sort();

test("a claim that fails does not keep back the rows that were claimed beside it", async () => {
  const [unlucky = "", ...others] = await givenOverdue(Array(10).fill(7));
  throttle("UpdateItemCommand", (input) => input.includes(unlucky));
  await expect(sweep()).rejects.toThrow("slow down");
  expect(await taken()).toEqual(others.sort());
  restoreAws();
  await sweep();
  expect(await taken()).toEqual([unlucky]);
});

test("a shard that cannot be read does not keep back the others, and fails the run when they are done", async () => {
  const ids = await givenOverdue([0, ...Array.from({ length: 31 }, (_, index) => index + 1)]);
  throttle("QueryCommand", (input) => input.includes('":shard":0,'));
  await expect(sweep()).rejects.toThrow("slow down");
  // What is not there now, a Lambda that has failed would not do any more.
  expect(await taken()).toEqual(ids.slice(1).sort());
});

test("a webhook whose partition is throttled does not keep back the others of its shard, on any page", async () => {
  await sweep();
  await taken();
  const { webhook: throttled } = await givenWebhook();
  const { webhook: other } = await givenWebhook();
  const at = new Date(Date.now() - 600_000);
  await Promise.all(Array.from({ length: 150 }, () => givenDelivery(throttled, { at, due_shard: 4 })));
  const behind = await Promise.all(
    Array.from({ length: 120 }, () => givenDelivery(other, { ...overdue, due_shard: 4 })),
  );
  throttle("UpdateItemCommand", (input) => input.includes(throttled.id));
  await expect(sweep()).rejects.toThrow("slow down");
  expect(await taken()).toEqual(behind.map(({ id }) => id).sort());
  restoreAws();
  await sweep();
  expect(await taken()).toHaveLength(150);
});

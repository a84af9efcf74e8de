import { handler } from "../../functions/deliveries/sending/sweep.ts";
import { DUE_SHARDS } from "../../functions/webhooks/webhook/wake-up-store.ts";
import { failDynamo, restoreAws } from "../support/aws-calls.ts";
import {
  changeWakeUp,
  givenWaiting,
  givenWebhook,
  prepareDeliveries,
  takeDeliveryMessages,
  workCall,
} from "../support/deliveries.ts";

beforeAll(prepareDeliveries);

const sweep = () => handler({}, { getRemainingTimeInMillis: () => 50_000 });

test("the sweep calls the workers of all other shards when one shard cannot be read, and then fails", async () => {
  const shards = Array.from({ length: DUE_SHARDS }, (_, shard) => shard);
  const given = shards.map(async (due_shard) => {
    const { webhook } = await givenWebhook();
    await givenWaiting(webhook, { due: new Date(Date.now() - 300_000) });
    await changeWakeUp(webhook, { due_shard });
    return workCall(webhook);
  });
  const calls = await Promise.all(given);
  await takeDeliveryMessages();
  const called = async () => (await takeDeliveryMessages()).map((call) => JSON.stringify(call)).toSorted();
  failDynamo(({ command, input }) => command === "QueryCommand" && JSON.stringify(input).includes('":v0":0,'));
  // The invocation ends with the error, so all workers are called by then.
  await expect(sweep()).rejects.toThrow("slow down");
  expect(await called()).toEqual(
    calls
      .slice(1)
      .map((call) => JSON.stringify(call))
      .toSorted(),
  );
  restoreAws();
  await sweep();
  expect(await called()).toHaveLength(DUE_SHARDS);
});

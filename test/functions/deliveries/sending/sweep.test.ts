import { jest } from "@jest/globals";
import { handler } from "../../../../functions/deliveries/sending/sweep.ts";
import { DUE_SHARDS, endVisit, lease, wake } from "../../../../functions/webhooks/webhook/wake-up-store.ts";
import type { WorkCall } from "../../../../functions/webhooks/webhook/worker-call.ts";
import {
  failDynamo,
  interceptDynamo,
  interceptSqs,
  restoreAws,
  watchDynamo,
  watchQueue,
} from "../../../support/aws-calls.ts";
import {
  givenWaiting,
  givenWebhook,
  prepareDeliveries,
  takeDeliveryMessages,
  wakeUpOf,
  workCall,
} from "../../../support/deliveries.ts";
import { metricsIn, watchLog } from "../../../support/metrics.ts";
import { freshResources } from "../../../support/resources.ts";

type Key = { project_id: string; id: string };
const enoughTime = { getRemainingTimeInMillis: () => 50_000 };
const sweep = (context = enoughTime) => handler({}, context);
const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000);

beforeAll(prepareDeliveries);
beforeEach(freshResources);
afterEach(() => jest.restoreAllMocks());

/** Returns a webhook whose wake-up is in this shard of the index. Its rows do not exist. */
const webhookIn = (shard: number, n = 0): Key => ({
  project_id: "00000000-0000-7000-8000-000000000001",
  id: `00000000-0000-7000-8000-${String(n).padStart(4, "0")}${(n * DUE_SHARDS + shard).toString(16).padStart(8, "0")}`,
});
const callsOf = async () => ((await takeDeliveryMessages()) as WorkCall[]).map(({ webhook_id }) => webhook_id);

test("the sweep calls the worker of each webhook whose wake-up is due, in all shards, and changes nothing", async () => {
  const { webhook } = await givenWebhook();
  const due = await givenWaiting(webhook, { due: minutesAgo(5) });
  // Without the call that was enqueued when the row entered.
  await takeDeliveryMessages();
  const before = await wakeUpOf(webhook);
  const others = Array.from({ length: DUE_SHARDS }, (_, shard) => webhookIn(shard));
  for (const other of others) await wake(other, minutesAgo(1));
  await wake(webhookIn(3, 1), minutesAgo(-1));
  await sweep();
  const taken = await takeDeliveryMessages();
  expect(taken).toContainEqual(workCall({ project_id: due.project_id, id: webhook.id }));
  const expected = [webhook, ...others].map(({ id }) => id);
  expect(taken.map((message) => (message as WorkCall).webhook_id).sort()).toEqual(expected.sort());
  expect(await wakeUpOf(webhook)).toEqual(before);
});

test("a wake-up is called for at each run until a worker has planned its next look", async () => {
  const webhook = webhookIn(7);
  await wake(webhook, minutesAgo(5));
  await sweep();
  await sweep();
  expect(await callsOf()).toEqual([webhook.id, webhook.id]);
  await lease(webhook, "visit", new Date(), new Date(Date.now() + 60_000));
  await endVisit(webhook, "visit", minutesAgo(-1));
  await sweep();
  expect(await callsOf()).toEqual([]);
});

test("the sweep calls for many webhooks page by page, the longest overdue first, in batches of ten", async () => {
  const all = Array.from({ length: 230 }, (_, n) => webhookIn(5, n));
  await Promise.all(all.map((webhook, n) => wake(webhook, minutesAgo(300 - n))));
  const batches = watchQueue();
  const pages: number[] = [];
  interceptDynamo(async ({ input }, send) => {
    const output = await send();
    const read = (output.Items as unknown[]).length;
    if (read > 0) pages.push(read, Number(input.Limit));
    return output;
  });
  await sweep();
  expect(pages).toEqual([100, 100, 100, 100, 30, 100]);
  expect(batches.map(({ Entries }) => Entries.length)).toEqual(Array(23).fill(10));
  const order = batches.flatMap(({ Entries }) => Entries.map(({ MessageBody }) => JSON.parse(MessageBody).webhook_id));
  expect(order.slice(0, 100).sort()).toEqual(
    all
      .slice(0, 100)
      .map(({ id }) => id)
      .sort(),
  );
  expect(new Set(order).size).toBe(230);
});

test("the sweep costs one query of half a unit for each shard when nothing is due", async () => {
  const calls = watchDynamo();
  await sweep();
  expect(calls).toEqual(Array.from({ length: DUE_SHARDS }, () => ({ command: "QueryCommand", units: 0.5 })));
});

test("the sweep reads no page when 5 s or less are left, and leaves the rest due", async () => {
  await Promise.all(Array.from({ length: 150 }, (_, n) => wake(webhookIn(9, n), minutesAgo(5))));
  // The time runs out during the first page of the shard.
  let isLate = false;
  interceptSqs(async (_, send) => {
    isLate = true;
    return send();
  });
  await sweep({ getRemainingTimeInMillis: () => (isLate ? 5_000 : 50_000) });
  expect(await callsOf()).toHaveLength(100);
  await sweep({ getRemainingTimeInMillis: () => 5_000 });
  expect(await callsOf()).toEqual([]);
  await sweep({ getRemainingTimeInMillis: () => 5_001 });
  expect(await callsOf()).toHaveLength(150);
});

test("the sweep ends only after its messages are enqueued", async () => {
  await wake(webhookIn(1), minutesAgo(5));
  let enqueued = 0;
  interceptSqs(async ({ input }, send) => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const output = await send();
    enqueued += (input.Entries as unknown[]).length;
    return output;
  });
  await sweep();
  expect(enqueued).toBe(1);
});

test("a call that SQS does not accept is left to the next run", async () => {
  await wake(webhookIn(1), minutesAgo(5));
  interceptSqs(() => Promise.reject(new Error("SQS is unavailable")));
  await sweep();
  restoreAws();
  await sweep();
  expect(await callsOf()).toEqual([webhookIn(1).id]);
});

describe("the metrics of a run", () => {
  async function metricsOf(run: () => Promise<void>) {
    const lines = watchLog();
    await run();
    return metricsIn(lines);
  }

  test("count the calls, and say how late the longest overdue wake-up is", async () => {
    await wake(webhookIn(1), minutesAgo(2));
    await wake(webhookIn(2), minutesAgo(5));
    await wake(webhookIn(2, 1), minutesAgo(3));
    const { redriven, sweepLag: [lag = 0] = [] } = await metricsOf(sweep);
    expect(redriven).toEqual([3]);
    expect(lag).toBeGreaterThanOrEqual(300);
    expect(lag).toBeLessThan(330);
  });

  test("are 0 when nothing is due", async () => {
    expect(await metricsOf(sweep)).toMatchObject({ redriven: [0], sweepLag: [0] });
  });

  test("leave the lag out when a shard fails; the others are swept, and the run throws, so that the alarm fires", async () => {
    await wake(webhookIn(1), minutesAgo(5));
    failDynamo(({ input }) => JSON.stringify(input.ExpressionAttributeValues).includes('":v0":2,'));
    const lines = watchLog();
    await expect(sweep()).rejects.toThrow("slow down");
    expect(metricsIn(lines)).toMatchObject({ redriven: [1] });
    expect(metricsIn(lines)).not.toHaveProperty("sweepLag");
    expect(lines).toMatchObject([{ message: "sweep", failed_shards: 1 }]);
    expect(await callsOf()).toEqual([webhookIn(1).id]);
  });
});

import type { Context } from "aws-lambda";
import { log } from "../../foundation/platform/log.ts";
import { inParallel } from "../../foundation/platform/parallel.ts";
import { DUE_SHARDS, overduePages } from "../../webhooks/webhook/wake-up-store.ts";
import { enqueue } from "../line/delivery-queue.ts";

const PAGE_SIZE = 100;
const PARALLEL_SHARDS = 4;
/** No further page is read when this much time or less is left. */
const MIN_REMAINING_MS = 5_000;

/**
 * Calls the worker of each webhook whose wake-up is due: retries beyond the queue's maximum delay, probes, and webhooks
 * whose message was lost or whose worker died. Runs every minute. A call too many costs a write that fails, because only
 * one worker gets the lease of a line.
 */
export async function handler(_event: unknown, context: Pick<Context, "getRemainingTimeInMillis">): Promise<void> {
  const hasTime = () => context.getRemainingTimeInMillis() > MIN_REMAINING_MS;
  const shards = Array.from({ length: DUE_SHARDS }, (_, shard) => shard);
  const failures: unknown[] = [];
  /** By how much the longest overdue wake-up of each page was late, in seconds; 0 when none was due. */
  const lags: number[] = [];
  let redriven = 0;
  await inParallel(shards, PARALLEL_SHARDS, async (shard) => {
    if (!hasTime()) return;
    const now = new Date();
    try {
      for await (const wakeUps of overduePages(shard, now, PAGE_SIZE)) {
        const [longestDue] = wakeUps;
        lags.push(longestDue === undefined ? 0 : (now.getTime() - Date.parse(longestDue.due)) / 1000);
        await enqueue(wakeUps.map(({ project_id, id }) => ({ kind: "work", project_id, webhook_id: id })));
        redriven += wakeUps.length;
        if (!hasTime()) return;
      }
    } catch (error) {
      failures.push(error);
    }
  });
  // Emit the lag even when it is 0, so that missing data means that no run succeeded. When a shard failed, or none was read,
  // the lag is unknown.
  const sweepLag = failures.length === 0 && lags.length > 0 ? Math.max(...lags) : undefined;
  log.info("sweep", { failed_shards: failures.length }, { redriven, sweepLag });
  // Throw only after all shards are done, because the invocation ends with the error.
  if (failures.length > 0) throw failures[0];
}

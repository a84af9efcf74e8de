import type { Context } from "aws-lambda";
import { log } from "../platform/log.ts";
import { inParallel } from "../platform/parallel.ts";
import { DUE_SHARDS, findOverdue } from "./backlog-store.ts";
import { enqueue } from "./delivery-queue.ts";

const PAGE_SIZE = 100;
const PARALLEL_SHARDS = 4;
/** No further page is read when this much time or less is left. */
const MIN_REMAINING_MS = 5_000;

/** The result of sweeping one shard. */
interface ShardResult {
  redriven: number;
  /** By how much the longest overdue wake-up was late, 0 when none was due; undefined when the shard was not read. */
  lagSeconds?: number | undefined;
  /** The first error; absent when the shard was swept. */
  failure?: { error: unknown };
}

/**
 * Calls the worker of each webhook whose wake-up is due: retries beyond the queue's maximum delay, probes, and webhooks
 * whose message was lost or whose worker died. Runs every minute. A call too many costs a write that fails, because only
 * one worker gets the lease of a line.
 */
export async function handler(_event: unknown, context: Pick<Context, "getRemainingTimeInMillis">): Promise<void> {
  const hasTime = () => context.getRemainingTimeInMillis() > MIN_REMAINING_MS;
  const shards = Array.from({ length: DUE_SHARDS }, (_, shard) => shard);
  const results = await inParallel(shards, PARALLEL_SHARDS, (shard) => sweepShard(shard, hasTime));
  const failures = results.flatMap(({ failure }) => failure ?? []);
  const redriven = results.reduce((sum, result) => sum + result.redriven, 0);
  // Emit the lag even when it is 0, so that missing data means that no run succeeded. When a shard failed, the lag is
  // unknown.
  const sweepLag = failures.length === 0 ? maxLagSeconds(results) : undefined;
  log.info("sweep", { failed_shards: failures.length }, { redriven, sweepLag });
  // Throw only after all shards are done, because the invocation ends with the error.
  const [failure] = failures;
  if (failure) throw failure.error;
}

/** @returns undefined when no shard was read */
function maxLagSeconds(results: ShardResult[]): number | undefined {
  const lags = results.flatMap(({ lagSeconds }) => lagSeconds ?? []);
  return lags.length === 0 ? undefined : Math.max(...lags);
}

/** Sweeps one shard page by page. Does not throw: an error is part of the result. */
async function sweepShard(shard: number, hasTime: () => boolean): Promise<ShardResult> {
  const result: ShardResult = { redriven: 0 };
  const now = new Date();
  let after: Record<string, unknown> | undefined;
  try {
    while (hasTime()) {
      const { wakeUps, next } = await findOverdue(shard, now, PAGE_SIZE, after);
      const [longestDue] = wakeUps;
      // Pages are in order of due time, so the first wake-up of the first page is the longest overdue.
      result.lagSeconds ??= longestDue === undefined ? 0 : (now.getTime() - Date.parse(longestDue.due)) / 1000;
      await enqueue(wakeUps.map(({ project_id, id }) => ({ kind: "work", project_id, webhook_id: id })));
      result.redriven += wakeUps.length;
      if (next === undefined) break;
      after = next;
    }
    return result;
  } catch (error) {
    return { ...result, failure: { error } };
  }
}

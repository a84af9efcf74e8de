import type { Context } from "aws-lambda";
import { settings } from "../platform/env.ts";
import { log } from "../platform/log.ts";
import { inParallel } from "../platform/parallel.ts";
import { addSeconds } from "../platform/time.ts";
import { DUE_SHARDS } from "./delivery.ts";
import { enqueue } from "./delivery-queue.ts";
import { claim, findDue } from "./due-index.ts";

const PAGE_SIZE = 100;
const PARALLEL_SHARDS = 8;
/** No further page is read when this much time or less is left. */
const MIN_REMAINING_MS = 5_000;
/**
 * Length of the lease on an enqueued row, in grace periods. With the default grace of two minutes, a slow queue gets
 * one more message per row every quarter of an hour, not every minute.
 */
const GRACES_PER_LEASE = 7.5;

/** The result of sweeping one shard. */
interface ShardResult {
  redriven: number;
  /** By how much the longest overdue row was late, 0 when no row was due; undefined when the shard was not read. */
  lagSeconds?: number | undefined;
  /** The first error; absent when the shard was swept. */
  failure?: { error: unknown };
}

/**
 * Enqueues every delivery whose due time has passed: attempts beyond the queue's maximum delay, and attempts whose
 * message was lost. Runs every minute. Concurrent runs are safe.
 */
export async function handler(_event: unknown, context: Pick<Context, "getRemainingTimeInMillis">): Promise<void> {
  const hasTime = () => context.getRemainingTimeInMillis() > MIN_REMAINING_MS;
  const shards = Array.from({ length: DUE_SHARDS }, (_, shard) => shard);
  const results = await inParallel(shards, PARALLEL_SHARDS, (shard) => sweepShard(shard, hasTime));
  const failures = results.flatMap(({ failure }) => failure ?? []);
  const redriven = results.reduce((sum, result) => sum + result.redriven, 0);
  // Always emit the lag, so that missing data means that no run happened. Exception: when a shard failed, its lag is
  // unknown.
  const sweepLag = failures.length === 0 ? maxLagSeconds(results) : undefined;
  log.info("sweep", { failed_shards: failures.length }, { redriven, sweepLag });
  // Throw only after all shards are done: Lambda stops the process then.
  const [failure] = failures;
  if (failure) throw failure.error;
}

/** @returns undefined when no shard was read */
function maxLagSeconds(results: ShardResult[]): number | undefined {
  const lags = results.flatMap(({ lagSeconds }) => lagSeconds ?? []);
  return lags.length === 0 ? undefined : Math.max(...lags);
}

/**
 * Sweeps one shard page by page. Does not throw: an error is part of the result, beside the rows enqueued before it.
 */
async function sweepShard(shard: number, hasTime: () => boolean): Promise<ShardResult> {
  let redriven = 0;
  let lagSeconds: number | undefined;
  try {
    const leaseSeconds = GRACES_PER_LEASE * settings.deliveryGraceSeconds();
    while (hasTime()) {
      const now = new Date();
      const page = await findDue(shard, now, PAGE_SIZE);
      const [longestDue] = page;
      const pageLag = longestDue === undefined ? 0 : (now.getTime() - Date.parse(longestDue.due_at)) / 1000;
      lagSeconds = Math.max(lagSeconds ?? 0, pageLag);
      const claims = await Promise.allSettled(page.map((row) => claim(row, addSeconds(now, leaseSeconds))));
      // Enqueue the claimed rows even when another claim fails, or they would wait until the end of their lease.
      const claimed = claims.flatMap((each) => (each.status === "fulfilled" ? (each.value ?? []) : []));
      await enqueue(claimed);
      redriven += claimed.length;
      const failed = claims.find((each) => each.status === "rejected");
      if (failed) throw failed.reason;
      if (page.length < PAGE_SIZE) break;
    }
    return { redriven, lagSeconds };
  } catch (error) {
    return { redriven, lagSeconds, failure: { error } };
  }
}

import type { Context } from "aws-lambda";
import { settings } from "../platform/env.ts";
import { log } from "../platform/log.ts";
import { inParallel } from "../platform/parallel.ts";
import { addSeconds } from "../platform/time.ts";
import { DUE_SHARDS } from "./delivery.ts";
import { enqueue, enqueueWakeUps } from "./delivery-queue.ts";
import { type ClaimedRow, changeLease, claim, type DueCursor, findDue } from "./due-index.ts";
import { isWakeUp } from "./parking-store.ts";

const PAGE_SIZE = 100;
const PARALLEL_SHARDS = 4;
/** No further page is read when this much time or less is left. */
const MIN_REMAINING_MS = 5_000;
/**
 * Length of the lease on an enqueued row, in grace periods. With the default grace of two minutes, a slow queue gets
 * one more message per row every quarter of an hour, not every minute.
 */
const GRACES_PER_LEASE = 7.5;
/**
 * The lease doubles with each further hand-over of the same attempt, up to this factor: when the queue is slower than
 * the lease, more messages would only make it slower.
 */
const MAX_LEASE_FACTOR = 16;
/** When a row is due again whose message SQS did not accept. */
const REJECTED_RETRY_SECONDS = 60;

/** Upper bound on the rows of one webhook that a run enqueues, so that one backlog does not use up the time of all. */
const MAX_CLAIMS_PER_WEBHOOK = 1_000;

/**
 * How many rows of each webhook this run has claimed. Infinity once a claim has failed, so that the run skips further
 * rows of a throttled partition.
 */
type ClaimCounts = Map<string, number>;

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
  const counts: ClaimCounts = new Map();
  const results = await inParallel(shards, PARALLEL_SHARDS, (shard) => sweepShard(shard, counts, hasTime));
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

/**
 * Sweeps one shard page by page. Does not throw: an error is part of the result, beside the rows enqueued before it.
 */
async function sweepShard(shard: number, counts: ClaimCounts, hasTime: () => boolean): Promise<ShardResult> {
  const result: ShardResult = { redriven: 0 };
  const now = new Date();
  // The random fraction of a second tells the claims of two sweeps apart.
  const leaseEnd = addSeconds(now, GRACES_PER_LEASE * settings.deliveryGraceSeconds() + Math.random());
  let after: DueCursor | undefined;
  try {
    while (hasTime()) {
      const { rows, next } = await findDue(shard, now, PAGE_SIZE, after);
      const [longestDue] = rows;
      // Pages are in order of due time, so the first row of the first page is the longest overdue.
      result.lagSeconds ??= longestDue === undefined ? 0 : (now.getTime() - Date.parse(longestDue.due_at)) / 1000;
      const wanted = rows.filter(({ webhook_id }) => isWithinBound(counts, webhook_id));
      const claims = await Promise.allSettled(wanted.map((row) => claim(row, leaseEnd)));
      // Enqueue the claimed rows even when another claim fails, or they would wait until the end of their lease.
      const claimed = claims.flatMap((each) => (each.status === "fulfilled" ? (each.value ?? []) : []));
      await enqueueClaimed(claimed, now);
      result.redriven += claimed.length;
      for (const [index, each] of claims.entries()) {
        if (each.status === "fulfilled") continue;
        counts.set(wanted[index]?.webhook_id ?? "", Number.POSITIVE_INFINITY);
        result.failure ??= { error: each.reason };
      }
      if (next === undefined) break;
      after = next;
    }
    return result;
  } catch (error) {
    return { ...result, failure: { error } };
  }
}

/**
 * Enqueues claimed rows, then changes the leases that are not the usual one: longer for a row that was handed over
 * before, a minute for a row whose message is not accepted.
 */
async function enqueueClaimed(claimed: ClaimedRow[], now: Date): Promise<void> {
  const leased = claimed.map((row) => ({ ...row, due_at: leaseEndOf(row, now) }));
  const [wakeUps, rows] = [leased.filter(isWakeUp), leased.filter((row) => !isWakeUp(row))];
  const calls = wakeUps.map(({ project_id, id, generation = 0 }) => {
    return { kind: "wake-up", project_id, webhook_id: id, generation } as const;
  });
  const [rejectedRows, rejectedCalls] = await Promise.all([enqueue(rows), enqueueWakeUps(calls)]);
  const rejected = new Set<ClaimedRow>(rejectedRows);
  for (const [index, call] of calls.entries()) {
    if (rejectedCalls.includes(call)) rejected.add(wakeUps[index] as ClaimedRow);
  }
  const retryAt = addSeconds(now, REJECTED_RETRY_SECONDS);
  const changes = claimed.map((row, index) => {
    const next = leased[index] as ClaimedRow;
    const until = rejected.has(next) ? [retryAt, row.due_at].sort()[0] : next.due_at;
    return until === undefined || until === row.due_at ? undefined : changeLease(row, until);
  });
  for (const change of await Promise.allSettled(changes)) {
    if (change.status === "rejected") log.error("lease not changed", change.reason);
  }
}

/** Returns the end of the lease of a row: later with each time that its attempt was handed over before. */
function leaseEndOf({ due_at, handovers }: ClaimedRow, now: Date): string {
  if (handovers <= 1) return due_at;
  const factor = Math.min(MAX_LEASE_FACTOR, 2 ** (handovers - 1));
  return addSeconds(now, factor * GRACES_PER_LEASE * settings.deliveryGraceSeconds());
}

/** Counts one more claim for the webhook. @returns false when it has reached its bound in this run */
function isWithinBound(counts: ClaimCounts, webhookId: string): boolean {
  const count = (counts.get(webhookId) ?? 0) + 1;
  if (count > MAX_CLAIMS_PER_WEBHOOK) return false;
  counts.set(webhookId, count);
  return true;
}

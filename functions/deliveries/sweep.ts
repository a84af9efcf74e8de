import type { Context } from "aws-lambda";
import { settings } from "../platform/env.ts";
import { log } from "../platform/log.ts";
import { inParallel } from "../platform/parallel.ts";
import { addSeconds } from "../platform/time.ts";
import { DUE_SHARDS } from "./delivery.ts";
import { enqueue } from "./delivery-queue.ts";
import { claim, findDue } from "./due-index.ts";

const PAGE = 100;
const PARALLEL_SHARDS = 8;
/** Time left in which no further page is begun. */
const RESERVE_MS = 5_000;
/**
 * A row that was handed over is left alone for so many times the grace: when the queue is merely slow, each row adds one more
 * message per quarter of an hour, not one per minute.
 */
const GRACES_PER_LEASE = 7.5;

/** What one run has found and done so far. */
interface Run {
  redriven: number;
  /** How long the longest overdue row had been due when its shard was looked at; 0 for none, undefined before any look. */
  lagSeconds: number | undefined;
}

/**
 * Hands every delivery whose due time has passed to the queue: attempts that wait longer than the queue can delay, and those
 * whose message was lost. Runs each minute; two at once do no harm.
 */
export async function handler(_event: unknown, context: Pick<Context, "getRemainingTimeInMillis">): Promise<void> {
  const hasTime = () => context.getRemainingTimeInMillis() > RESERVE_MS;
  const shards = Array.from({ length: DUE_SHARDS }, (_, shard) => shard);
  const run: Run = { redriven: 0, lagSeconds: undefined };
  const failures: unknown[] = [];
  await inParallel(shards, PARALLEL_SHARDS, (shard) =>
    sweepShard(shard, run, hasTime).catch((error: unknown) => void failures.push(error)),
  );
  // Every run says how late it was, so that silence means that there was none. Nobody knows what waits in a shard that could
  // not be worked on: then it is better to say nothing than 0.
  const sweepLag = failures.length === 0 ? run.lagSeconds : undefined;
  log.info("sweep", { failed_shards: failures.length }, { redriven: run.redriven, sweepLag });
  // Only now: what a Lambda has not done when it fails, it does not do.
  if (failures.length > 0) throw failures[0];
}

async function sweepShard(shard: number, run: Run, hasTime: () => boolean): Promise<void> {
  const leaseSeconds = GRACES_PER_LEASE * settings.deliveryGraceSeconds();
  while (hasTime()) {
    const now = new Date();
    const page = await findDue(shard, now, PAGE);
    const [longestDue] = page;
    const lagSeconds = longestDue === undefined ? 0 : (now.getTime() - Date.parse(longestDue.due_at)) / 1000;
    run.lagSeconds = Math.max(run.lagSeconds ?? 0, lagSeconds);
    const claims = await Promise.allSettled(page.map((row) => claim(row, addSeconds(now, leaseSeconds))));
    // A claim that fails must not leave those beside it claimed and not sent until their lease ends.
    const due = claims.flatMap((claim) => (claim.status === "fulfilled" ? (claim.value ?? []) : []));
    await enqueue(due);
    run.redriven += due.length;
    const failure = claims.find((claim) => claim.status === "rejected");
    if (failure) throw failure.reason;
    if (page.length < PAGE) break;
  }
}

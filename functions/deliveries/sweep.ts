import type { Context } from "aws-lambda";
import { settings } from "../platform/env.ts";
import { log } from "../platform/log.ts";
import { inParallel } from "../platform/parallel.ts";
import { later } from "../platform/time.ts";
import { DUE_SHARDS } from "./delivery.ts";
import { enqueue } from "./delivery-queue.ts";
import { claim, findDue } from "./due-store.ts";

const PAGE = 100;
const PARALLEL_SHARDS = 8;
/** Time left in which no further page is begun. */
const RESERVE_MS = 5_000;
/**
 * A row that was handed over is left alone for so many times the grace: when the queue is merely slow, each row adds one more
 * message per quarter of an hour, not one per minute.
 */
const GRACES_PER_LEASE = 7.5;

/**
 * Hands every delivery whose due time has passed to the queue: attempts that wait longer than the queue can delay, and those
 * whose message was lost. Runs each minute; two at once do no harm.
 */
export async function handler(_event: unknown, context: Pick<Context, "getRemainingTimeInMillis">): Promise<void> {
  const hasTime = () => context.getRemainingTimeInMillis() > RESERVE_MS;
  const shards = Array.from({ length: DUE_SHARDS }, (_, shard) => shard);
  const failures: unknown[] = [];
  const counts = await inParallel(shards, PARALLEL_SHARDS, (shard) =>
    sweepShard(shard, hasTime).catch((error: unknown) => {
      failures.push(error);
      return 0;
    }),
  );
  const swept = counts.reduce((sum, count) => sum + count, 0);
  if (swept > 0) log.info("sweep", { swept });
  // Only now: what a Lambda has not done when it fails, it does not do.
  if (failures.length > 0) throw failures[0];
}

async function sweepShard(shard: number, hasTime: () => boolean): Promise<number> {
  let swept = 0;
  const leaseSeconds = GRACES_PER_LEASE * settings.deliveryGraceSeconds();
  while (hasTime()) {
    const now = new Date();
    const page = await findDue(shard, now, PAGE);
    const claims = await Promise.allSettled(page.map((row) => claim(row, later(now, leaseSeconds))));
    // A claim that fails must not leave those beside it claimed and not sent until their lease ends.
    const due = claims.flatMap((claim) => (claim.status === "fulfilled" ? (claim.value ?? []) : []));
    await enqueue(due);
    const failure = claims.find((claim) => claim.status === "rejected");
    if (failure) throw failure.reason;
    swept += due.length;
    if (page.length < PAGE) break;
  }
  return swept;
}

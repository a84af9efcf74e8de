import * as z from "zod/mini";
import type { FailureCode } from "../../foundation/events/failure-code.ts";
import type { WebhookEventName } from "../../foundation/events/webhook-event.ts";
import { fields } from "../../foundation/schema/input.ts";
import type { DeliveryStatus } from "../line/delivery.ts";

/* Statistics of the attempts of a webhook, computed from its deliveries when they are read. */

export const statsWindows = ["24h", "7d"] as const;
export type StatsWindow = (typeof statsWindows)[number];

/** Length of a window and of one of its buckets, in seconds: 48 buckets, or 28. */
const windows: Record<StatsWindow, { seconds: number; bucketSeconds: number }> = {
  "24h": { seconds: 24 * 3600, bucketSeconds: 1800 },
  "7d": { seconds: 7 * 24 * 3600, bucketSeconds: 6 * 3600 },
};

/**
 * A delivery that is this old has had its last attempt by the default retry schedule, each delay up to 20 % longer.
 * An attempt can be later if its delivery waited for a receiver that failed, or was sent again.
 */
export const LATEST_ATTEMPT_SECONDS = 36 * 3600;

/** Query parameters of the statistics. */
export const statsQuery = fields({
  window: z._default(z.enum(statsWindows, `must be one of ${statsWindows.join(", ")}`), "24h"),
});

export interface StatsRange {
  window: StatsWindow;
  /** Start of the first bucket. */
  since: Date;
  until: Date;
  bucketSeconds: number;
}

/** Returns the range of a window that ends now. It starts at a multiple of the bucket, so that charts do not flicker. */
export function statsRange(window: StatsWindow, now: Date): StatsRange {
  const { seconds, bucketSeconds } = windows[window];
  const bucketMillis = bucketSeconds * 1000;
  const end = (Math.floor(now.getTime() / bucketMillis) + 1) * bucketMillis;
  return { window, since: new Date(end - seconds * 1000), until: now, bucketSeconds };
}

/** A delivery with its attempts, as far as the statistics need them. */
export interface CountedDelivery {
  event: WebhookEventName;
  /** Present for a test delivery, which is not counted: its data is a sample. */
  test?: boolean;
  status?: DeliveryStatus;
  attempts?: readonly CountedAttempt[];
}

export interface CountedAttempt {
  at: string;
  duration_ms: number;
  /** Absent when no response arrived. */
  status_code?: number | undefined;
  /** Absent for a success. */
  error_code?: FailureCode | undefined;
}

/** The deliveries that were read. */
export interface StatsReads {
  deliveries: readonly CountedDelivery[];
  /** The time of the event of the oldest delivery read, if there are older ones in the range; absent = all were read. */
  readBackTo?: Date | undefined;
}

/** Counts the attempts of a range. */
export function statsOf({ window, since, until, bucketSeconds }: StatsRange, { deliveries, readBackTo }: StatsReads) {
  const coveredSince = readBackTo !== undefined && readBackTo > since ? readBackTo : since;
  const [first, last] = [coveredSince.toISOString(), until.toISOString()];
  const attempts = deliveries
    .filter(({ test }) => !test)
    .flatMap(({ event, attempts = [] }) => attempts.map((attempt) => ({ ...attempt, event })))
    .filter(({ at }) => at >= first && at <= last);
  const inBuckets = Map.groupBy(attempts, ({ at }) =>
    Math.floor((Date.parse(at) - since.getTime()) / (bucketSeconds * 1000)),
  );
  // With the bucket that begins now.
  const bucketCount = Math.floor((until.getTime() - since.getTime()) / (bucketSeconds * 1000)) + 1;
  const failures = attempts.filter((attempt) => !isSuccess(attempt));
  const totals = countOf(attempts);
  const superseded = deliveries.filter(({ status }) => status === "superseded").length;
  const p50 = percentileOf(attempts, 0.5);
  const p95 = percentileOf(attempts, 0.95);
  return {
    window,
    since: since.toISOString(),
    until: last,
    bucket_seconds: bucketSeconds,
    deliveries_read: deliveries.length,
    complete: readBackTo === undefined,
    covered_since: first,
    ...totals,
    ...(superseded > 0 && { superseded }),
    success_rate: totals.attempts === 0 ? null : totals.succeeded / totals.attempts,
    response_ms: p50 === null || p95 === null ? null : { p50, p95 },
    by_event: mostFirst(
      [...Map.groupBy(attempts, ({ event }) => event)].map(([event, of]) => ({ event, ...countOf(of) })),
    ),
    by_error: mostFirst(
      [...Map.groupBy(failures, ({ error_code }) => error_code)].flatMap(([error_code, of]) =>
        error_code === undefined ? [] : [{ error_code, attempts: of.length }],
      ),
    ),
    buckets: Array.from({ length: bucketCount }, (_, index) => {
      const inBucket = inBuckets.get(index) ?? [];
      return {
        start: new Date(since.getTime() + index * bucketSeconds * 1000).toISOString(),
        ...countOf(inBucket),
        p50_ms: percentileOf(inBucket, 0.5),
        p95_ms: percentileOf(inBucket, 0.95),
      };
    }),
  };
}

const isSuccess = ({ error_code }: CountedAttempt): boolean => error_code === undefined;

const countOf = (attempts: readonly CountedAttempt[]) => ({
  attempts: attempts.length,
  succeeded: attempts.filter(isSuccess).length,
});

const mostFirst = <Item extends { attempts: number }>(items: Item[]): Item[] =>
  items.toSorted((a, b) => b.attempts - a.attempts);

/** Only attempts with a response: the others end after a time that the sender sets. */
function percentileOf(attempts: readonly CountedAttempt[], share: number): number | null {
  return percentile(
    attempts.flatMap(({ status_code, duration_ms }) => (status_code === undefined ? [] : duration_ms)),
    share,
  );
}

/**
 * Returns the smallest value that at least this share of the values do not exceed (nearest rank).
 * @param share above 0, at most 1
 * @returns null without values
 */
export function percentile(values: readonly number[], share: number): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null;
}

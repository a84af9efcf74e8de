import { firstIdAt, timeOrderedUuid } from "../platform/uuid.ts";

/*
 * The feed of revocations: which results of `credentials-verify` are out of date, for services that cache them. A row is
 * written in the transaction of its change, in one of four partitions of its day. A follower continues from a time and reads recent rows
 * again. Continuing after the last row would skip a transaction that began earlier and ended later, and a number that
 * counts the rows would be one item that all changes wait for.
 */

/** Why a result is out of date. The words are part of the feed. */
export type RevocationWord =
  | "deleted"
  | "leaked"
  | "revoked_by_platform"
  | "service_account_deleted"
  | "rolled"
  | "member_removed"
  | "role_changed"
  | "project_suspended"
  | "trusted_workflow_deleted";

/** The results that are out of date: those of some secrets of a key, of a user, or in a project. */
export type Revoked = { key_id: string; key_hashes: string[] } | { user_id: string } | { project_id: string };

export type RevocationRow = Revoked & {
  /** The partition: the day, and the number of the shard unless it is 0. */
  day: string;
  /** Time-ordered. */
  id: string;
  at: string;
  reason: RevocationWord;
  /** Time to live, in epoch seconds. */
  expires_at: number;
};

/** An entry of the feed. A key has one for each secret. */
export type Revocation = ({ key_hash: string; key_id: string } | { user_id: string } | { project_id: string }) & {
  reason: RevocationWord;
  at: string;
};

/** The feed has the revocations of a day. */
const DAY_MS = 24 * 3_600_000;

/** How much the clocks of two functions may differ. */
const CLOCK_SKEW_MS = 5_000;

/**
 * How long after its `at` a row may become visible to a reader: the longest timeout of a function that writes one, and the skew
 * of clocks. Each read goes back this far, so it returns recent rows again.
 */
export const SETTLING_MS = 55_000 + CLOCK_SKEW_MS;

/**
 * Partitions of a day. One takes 500 transactions a second, so that one user's revocations could throttle those of all. Shard 0 is the
 * day itself, where earlier releases write all rows.
 */
const SHARDS = 4;

const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);

const partitionOf = (day: string, shard: number): string => (shard === 0 ? day : `${day}#${shard}`);

/** @param random at least 16 random bytes */
export function createRevocation(revoked: Revoked, reason: RevocationWord, now: Date, random: Buffer): RevocationRow {
  const time = now.getTime();
  return {
    ...revoked,
    day: partitionOf(dayOf(time), (random[0] ?? 0) % SHARDS),
    id: timeOrderedUuid(time, random),
    at: now.toISOString(),
    reason,
    expires_at: Math.ceil((time + DAY_MS) / 1000),
  };
}

/**
 * Returns what to read for a follower whose last read began at the time `after`: the partitions, and the id to begin with.
 * @returns undefined when rows of that time may have been deleted
 */
export function rangeAfter(after: Date, now: Date): { partitions: string[]; firstId: string } | undefined {
  const since = Math.min(after.getTime(), now.getTime()) - SETTLING_MS;
  if (since < now.getTime() - DAY_MS) return undefined;
  const lastDay = dayOf(now.getTime() + CLOCK_SKEW_MS);
  const days: string[] = [];
  for (let time = since; dayOf(time) <= lastDay; time += DAY_MS) days.push(dayOf(time));
  const partitions = days.flatMap((day) => Array.from({ length: SHARDS }, (_, shard) => partitionOf(day, shard)));
  return { partitions, firstId: firstIdAt(since) };
}

/** Returns the entries of the feed for a row. */
export function toRevocations({ reason, at, ...row }: RevocationRow): Revocation[] {
  if ("user_id" in row) return [{ user_id: row.user_id, reason, at }];
  if ("project_id" in row) return [{ project_id: row.project_id, reason, at }];
  return row.key_hashes.map((key_hash) => ({ key_hash, key_id: row.key_id, reason, at }));
}

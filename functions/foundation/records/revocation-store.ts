import { randomBytes } from "node:crypto";
import type { TransactItem } from "../platform/aws.ts";
import { pagesOf } from "../platform/dynamo.ts";
import { tableName } from "../platform/env.ts";
import { when } from "../platform/expression.ts";
import { allEnded } from "../platform/parallel.ts";
import {
  createRevocation,
  type Revocation,
  type RevocationRow,
  type RevocationWord,
  type Revoked,
  rangeAfter,
  toRevocations,
} from "./revocation.ts";

/** Returns the write of a revocation, for the transaction that makes the change: none is missing from the feed. */
export const revocationPut = (revoked: Revoked, reason: RevocationWord, now = new Date()): TransactItem => ({
  Put: { TableName: tableName("revocations"), Item: createRevocation(revoked, reason, now, randomBytes(16)) },
});

/** Upper bound on the entries of one read: a response of Lambda has at most 6 MB. */
const MAX_REVOCATIONS = 10_000;

/**
 * Reads the revocations since a read that began at the time `after`, and those of the minute before it. Strongly consistent.
 * @returns undefined when they are no longer all stored, or too many
 */
export async function revocationsAfter(after: Date, now: Date): Promise<Revocation[] | undefined> {
  const range = rangeAfter(after, now);
  if (range === undefined) return undefined;
  const rows: RevocationRow[] = [];
  const reads = range.partitions.map(async (partition) => {
    const key = when`#day = ${partition} AND id >= ${range.firstId}`;
    for await (const page of pagesOf<RevocationRow>("revocations", key)) {
      rows.push(...page);
      if (rows.length > MAX_REVOCATIONS) return;
    }
  });
  await allEnded(reads);
  const revocations = rows.sort((a, b) => (a.id < b.id ? -1 : 1)).flatMap(toRevocations);
  return revocations.length > MAX_REVOCATIONS ? undefined : revocations;
}

import { paginateQuery } from "@aws-sdk/lib-dynamodb";
import type { MemberRef, MemberState } from "../access/membership.ts";
import { dynamo } from "../platform/aws.ts";
import { readItem, readItems, readMany, transactIf, updateIf } from "../platform/dynamo.ts";
import { tableName } from "../platform/env.ts";
import { changing, selecting, when } from "../platform/expression.ts";
import { allEnded, inParallel } from "../platform/parallel.ts";
import { invalidField } from "../schema/input.ts";
import { type MemberChange, type MemberVersion, memberName, type ProjectRange } from "./member-difference.ts";
import { forgottenAt, removeMember, shards, upsertMember, writesOf } from "./member-store.ts";

/*
 * The snapshots of the platform's memberships: what they are compared with, and the changes that they make. Those that were
 * applied are remembered, because a membership that a snapshot leaves as it is has no new version.
 */

/** The shards of the snapshots that were applied, by version, and of the numbers of snapshots. */
const [APPLIED, NUMBERS] = ["applied-snapshots", "snapshot-numbers"];
const snapshotKey = (shard: string, member: string) => ({
  TableName: tableName("memberVersions"),
  Key: { shard, member },
});

/** Greater numbers are times, in milliseconds since 1970. */
const MAX_NUMBER = 1e12;

/**
 * Returns the time of a snapshot that has a number: when the first call with this number began.
 * @throws ApiError `validation_error` when the number is new, and a greater one was used before
 */
export async function timeOfSnapshot(number: number, now: Date): Promise<Date> {
  if (number > MAX_NUMBER) return new Date(number);
  const member = String(number).padStart(13, "0");
  const item = snapshotKey(NUMBERS, member);
  const sinceThis = when`#shard = ${NUMBERS} AND #member >= ${member}`;
  const [next] = await readItems<MemberVersion>("memberVersions", sinceThis, { Limit: 1 });
  if (next && next.member !== member) throw invalidField("version", "must be greater than that of an earlier snapshot");
  if (next) return new Date(next.version);
  await updateIf(item, changing({ set: { version: when`if_not_exists(#version, ${now.toISOString()})` } }));
  // Another page with the number may have been first.
  const stored = await readItem<MemberVersion>(item);
  return stored ? new Date(stored.version) : now;
}

/** Returns the ranges of the snapshots later than a version that were applied. */
export const appliedAfter = (version: string): Promise<ProjectRange[]> =>
  // `$` follows the `#` of an entry.
  readItems("memberVersions", when`#shard = ${APPLIED} AND #member > ${`${version}$`}`);

/** Returns the versions of all memberships in a range that the platform has reported, by name. Strongly consistent. */
export async function versionsIn({ after, until }: ProjectRange): Promise<Map<string, MemberVersion>> {
  // `$` follows the `#` of a name.
  const [first, last] = [after === undefined ? "0" : `${after}$`, until === undefined ? "g" : `${until}$`];
  const found = await allEnded(
    shards.map(async (shard) => {
      const key = when`#shard = ${shard} AND #member BETWEEN ${first} AND ${last}`;
      const query = { TableName: tableName("memberVersions"), ConsistentRead: true, ...selecting(key) };
      const versions: MemberVersion[] = [];
      for await (const { Items = [] } of paginateQuery({ client: dynamo() }, query))
        versions.push(...(Items as MemberVersion[]));
      return versions;
    }),
  );
  return new Map(found.flat().map((each) => [each.member, each]));
}

/** Returns those of these memberships that are stored, by name. Strongly consistent. */
export async function membersOf(refs: MemberRef[]): Promise<Map<string, MemberState>> {
  const keys = refs.map(({ user_id, project_id }) => ({ user_id, project_id }));
  const stored = await readMany<MemberRef & MemberState>("projects", keys);
  return new Map(stored.map((each) => [memberName(each), each]));
}

/** A change has up to four of the 100 items of a transaction. */
const CHANGES_PER_TRANSACTION = 25;
const PARALLEL_TRANSACTIONS = 4;

/** Makes the changes of a snapshot, except for memberships that a later change has changed meanwhile. */
export async function applySnapshot(
  changes: MemberChange[],
  version: string,
  range: ProjectRange,
  now: Date,
): Promise<void> {
  const entry = snapshotKey(APPLIED, `${version}#${range.after ?? ""}#${range.until ?? ""}`);
  await updateIf(entry, changing({ set: { ...range, delete_after: forgottenAt(now) } }));
  const batches = Array.from({ length: Math.ceil(changes.length / CHANGES_PER_TRANSACTION) }, (_, index) =>
    changes.slice(index * CHANGES_PER_TRANSACTION, (index + 1) * CHANGES_PER_TRANSACTION),
  );
  await inParallel(batches, PARALLEL_TRANSACTIONS, async (batch) => {
    const writes = batch.flatMap((change, index) =>
      Object.entries(writesOf(change, version, now)).map(([name, item]) => [`${name} ${index}`, item] as const),
    );
    if (await transactIf(Object.fromEntries(writes))) return;
    for (const { after, ...ref } of batch) {
      if (after) await upsertMember(ref, after, version, now);
      else await removeMember(ref, version, now);
    }
  });
}

import { DeleteCommand } from "@aws-sdk/lib-dynamodb";
import type { MemberRef, MemberState } from "../../foundation/access/member.ts";
import { dynamo } from "../../foundation/platform/aws.ts";
import {
  joined,
  readAllItems,
  readItem,
  readItems,
  readMany,
  transactIf,
  updateIf,
} from "../../foundation/platform/dynamo.ts";
import { tableName } from "../../foundation/platform/env.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { changing, when } from "../../foundation/platform/expression.ts";
import { inBatches, inParallel } from "../../foundation/platform/parallel.ts";
import { randomId } from "../../foundation/platform/random-id.ts";
import { addSeconds } from "../../foundation/platform/time.ts";
import { invalidField } from "../../foundation/schema/input.ts";
import { forgottenAt, removeMember, shards, upsertMember, writesOf } from "./member-change-store.ts";
import { type MemberChange, type MemberVersion, memberName, overlaps, type ProjectRange } from "./member-difference.ts";

/*
 * The snapshots of the platform's members: what they are compared with, and the changes that they make. Those that were
 * applied are remembered, because a member that a snapshot leaves as it is has no new version.
 */

/** The shards of the snapshots that were applied, by version, of those that are being applied, by time, and of numbers. */
const [APPLIED, CURRENT, NUMBERS] = ["applied-snapshots", "current-snapshots", "snapshot-numbers"];
const snapshotKey = (shard: string, member: string) => ({
  TableName: tableName("memberVersions"),
  Key: { shard, member },
});

/**
 * Returns the version of a snapshot that has a number: the time when the first call with it began, and the number.
 * @throws ApiError `validation_error` when the number is new, and a greater one was used before
 */
export async function versionOfNumber(number: number, now: Date): Promise<string> {
  const member = String(number).padStart(13, "0");
  const item = snapshotKey(NUMBERS, member);
  const sinceThis = when`#shard = ${NUMBERS} AND #member >= ${member}`;
  const [next] = await readItems<MemberVersion>("memberVersions", sinceThis, { Limit: 1 });
  if (next && next.member !== member) throw invalidField("version", "must be greater than that of an earlier snapshot");
  // Another page with the number may be first.
  await updateIf(item, changing({ set: { version: when`if_not_exists(#version, ${now.toISOString()})` } }));
  const { version } = (await readItem<MemberVersion>(item)) ?? { version: now.toISOString() };
  return `${version}#${member}`;
}

/** The timeout of a call, and the difference of two clocks. */
const MAX_CALL_SECONDS = 60;

/**
 * Runs a step while no other snapshot is applied to the same projects. The earlier of two at once would remove what the later
 * one has just found as it should be, and leaves without a new version: that would be a write for each member, every night.
 * @throws ApiError `conflict` when another snapshot is being applied to some of these projects
 */
export async function whileAlone<Result>(
  version: string,
  range: ProjectRange,
  now: Date,
  step: () => Promise<Result>,
): Promise<Result> {
  const entry = snapshotKey(CURRENT, `${now.toISOString()}#${randomId()}`);
  await updateIf(entry, changing({ set: { ...range, version, delete_after: forgottenAt(now) } }));
  try {
    // After the write, so that of two calls at least one finds the other.
    const running = when`#shard = ${CURRENT} AND #member > ${addSeconds(now, -MAX_CALL_SECONDS)}`;
    const current = await readItems<ProjectRange & MemberVersion>("memberVersions", running);
    if (current.some((other) => other.version !== version && overlaps(range, other)))
      throw new ApiError("conflict", "Another snapshot of these projects is being applied. Repeat the call.");
    return await step();
  } finally {
    await dynamo().send(new DeleteCommand(entry));
  }
}

/** Returns the ranges of the snapshots later than a version that were applied: with one for each project, more than a page. */
export const appliedAfter = (version: string): Promise<ProjectRange[]> =>
  // `$` follows the `#` of an entry.
  readAllItems("memberVersions", when`#shard = ${APPLIED} AND #member > ${`${version}$`}`);

/** Shards read at once: each has pages of up to 1 MB in memory, and a cold start sends as many requests before its first response. */
const PARALLEL_SHARDS = 2;

/** Returns the versions of all members in a range that the platform has reported, by name. Strongly consistent. */
export async function versionsIn({ after, until }: ProjectRange): Promise<Map<string, MemberVersion>> {
  // `$` follows the `#` of a name.
  const [first, last] = [after === undefined ? "0" : `${after}$`, until === undefined ? "g" : `${until}$`];
  const found = await inParallel(shards, PARALLEL_SHARDS, (shard) =>
    readAllItems<MemberVersion>("memberVersions", when`#shard = ${shard} AND #member BETWEEN ${first} AND ${last}`),
  );
  return new Map(found.flat().map((each) => [each.member, each]));
}

/** Returns those of these members that are stored, by name. Strongly consistent. */
export async function membersOf(refs: MemberRef[]): Promise<Map<string, MemberState>> {
  const keys = refs.map(({ user_id, project_id }) => ({ user_id, project_id }));
  const stored = await readMany<MemberRef & MemberState>("projects", keys);
  return new Map(stored.map((each) => [memberName(each), each]));
}

/** A change has up to four of the 100 items of a transaction. */
const CHANGES_PER_TRANSACTION = 25;
const PARALLEL_TRANSACTIONS = 4;

/** Makes the changes of a snapshot, except for members that a later change has changed meanwhile. */
export async function applySnapshot(
  changes: MemberChange[],
  version: string,
  range: ProjectRange,
  now: Date,
): Promise<void> {
  const entry = snapshotKey(APPLIED, `${version}#${range.after ?? ""}#${range.until ?? ""}`);
  await updateIf(entry, changing({ set: { ...range, delete_after: forgottenAt(now) } }));
  await inParallel(inBatches(changes, CHANGES_PER_TRANSACTION), PARALLEL_TRANSACTIONS, async (batch) => {
    if (await transactIf(joined(batch.map((change) => writesOf(change, version, now))))) return;
    for (const { after, ...ref } of batch) {
      if (after) await upsertMember(ref, after, version, now);
      else await removeMember(ref, version, now);
    }
  });
}

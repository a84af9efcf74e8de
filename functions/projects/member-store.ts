import { paginateQuery } from "@aws-sdk/lib-dynamodb";
import { platform } from "../access/actor.ts";
import type { MemberRef, MemberState, Project } from "../access/membership.ts";
import { revocationPut } from "../access/revocation-store.ts";
import { auditPut } from "../audit/audit-store.ts";
import { dynamo, type TransactItem } from "../platform/aws.ts";
import { readItem, readItems, readMany, transactIf, updateIf } from "../platform/dynamo.ts";
import { tableName } from "../platform/env.ts";
import { changing, isAsRead, onlyIf, selecting, when } from "../platform/expression.ts";
import { allEnded, inParallel } from "../platform/parallel.ts";
import { addSeconds } from "../platform/time.ts";
import { invalidField } from "../schema/input.ts";
import {
  isSame,
  type MemberChange,
  type MemberVersion,
  memberName,
  type ProjectRange,
  REMOVALS_KEPT_SECONDS,
} from "./member-difference.ts";

/*
 * The changes of memberships, which only the platform makes. access/membership-store.ts reads them. The version of a membership
 * is the time at which the platform changed it. It is an item of its own, which stays for a while when the membership is
 * removed, so that an older change that arrives later does not add the member again.
 */

const memberKey = ({ user_id, project_id }: MemberRef) => ({
  TableName: tableName("projects"),
  Key: { user_id, project_id },
});

/** Versions are spread by the last digit of the project. Each part has them in the order of the projects. */
const shards = [..."0123456789abcdef"];
const versionKey = (ref: MemberRef) => ({
  TableName: tableName("memberVersions"),
  Key: { shard: ref.project_id.slice(-1), member: memberName(ref) },
});

/** When a change is no longer remembered, in epoch seconds. */
const forgottenAt = (now: Date): number => Math.ceil(Date.parse(addSeconds(now, REMOVALS_KEPT_SECONDS)) / 1000);

/** @param version undefined = the change is made now, and is never late */
function versionUpdate(isRemoved: boolean, version: string | undefined, now: Date) {
  const isInOrder = when`attribute_not_exists(#version) OR #version <= ${version}`;
  return changing({
    set: {
      version: version ?? now.toISOString(),
      ...(isRemoved && { removed: true, delete_after: forgottenAt(now) }),
    },
    ...(!isRemoved && { remove: ["removed", "delete_after"] }),
    ...(version !== undefined && { when: isInOrder }),
  });
}

/** Returns the writes of a change, which fail after a later change; without a difference only that of the version. */
function writesOf(
  { before, after, ...ref }: MemberChange,
  version: string | undefined,
  now: Date,
): Record<string, TransactItem> {
  const versionItem = { Update: { ...versionKey(ref), ...versionUpdate(after === undefined, version, now) } };
  if (after && isSame(before, after)) return { version: versionItem };
  const set = { ...after, created_at: when`if_not_exists(created_at, ${now.toISOString()})` };
  const isRevoked = after === undefined || (before !== undefined && before.role !== after.role);
  return {
    version: versionItem,
    member: after
      ? { Update: { ...memberKey(ref), ...changing({ set, when: isAsRead("role", before?.role) }) } }
      : { Delete: { ...memberKey(ref), ...onlyIf(when`attribute_exists(user_id)`) } },
    ...(isRevoked && {
      revocation: revocationPut({ user_id: ref.user_id }, after ? "role_changed" : "member_removed"),
    }),
    audit: auditPut({
      scope: `project:${ref.project_id}`,
      action: after ? "member.updated" : "member.removed",
      actor: platform,
      resource_id: ref.user_id,
      ...(after && { details: { role: after.role } }),
    }),
  };
}

/**
 * Adds a user to a project, or changes the project name and the role of that membership. Idempotent.
 * @param version undefined = now
 * @returns the membership as it is stored, which a later change may have made; undefined = a later change has removed it
 */
export async function upsertMember(
  ref: MemberRef,
  after: MemberState,
  version: string | undefined,
  now: Date,
): Promise<Project | undefined> {
  const before = await readItem<Project>(memberKey(ref));
  // A platform may repeat the call at every sign-in: that is no change for the audit log.
  const isWritten = await transactIf(writesOf({ ...ref, before, after }, version, now));
  const stored = await readItem<Project>(memberKey(ref));
  if (isWritten || (await isLate(ref, version))) {
    return stored && { id: ref.project_id, name: stored.name, role: stored.role, created_at: stored.created_at };
  }
  // Another call has changed the role since it was read.
  return upsertMember(ref, after, version, now);
}

async function isLate(ref: MemberRef, version: string | undefined): Promise<boolean> {
  const stored = await readItem<MemberVersion>(versionKey(ref));
  return version !== undefined && stored !== undefined && stored.version > version;
}

/**
 * Removes a user from a project. Idempotent.
 * @param version undefined = now
 * @returns whether the user was a member, and no later change was made
 */
export async function removeMember(ref: MemberRef, version: string | undefined, now: Date): Promise<boolean> {
  if (await transactIf(writesOf(ref, version, now))) return true;
  // An older addition may arrive later.
  await updateIf(versionKey(ref), versionUpdate(true, version ?? now.toISOString(), now));
  return false;
}

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

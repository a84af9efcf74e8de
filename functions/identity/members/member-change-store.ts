import { platform } from "../../foundation/access/actor.ts";
import type { MemberRef, MemberState, Project } from "../../foundation/access/member.ts";
import type { TransactItem } from "../../foundation/platform/aws.ts";
import { readItem, transactIf, updateIf } from "../../foundation/platform/dynamo.ts";
import { tableName } from "../../foundation/platform/env.ts";
import { changing, isAsRead, onlyIf, when } from "../../foundation/platform/expression.ts";
import { addSeconds } from "../../foundation/platform/time.ts";
import { projectAudit } from "../../foundation/records/audit-store.ts";
import { revocationPut } from "../../foundation/records/revocation-store.ts";
import {
  isSame,
  type MemberChange,
  type MemberVersion,
  memberName,
  REMOVALS_KEPT_SECONDS,
} from "./member-difference.ts";

/*
 * The changes of members, which only the platform makes. foundation/access/member-store.ts reads them. The version of a member
 * is the time at which the platform changed it. It is an item of its own, which stays for a while when the member is
 * removed, so that an older change that arrives later does not add the member again.
 */

const memberKey = ({ user_id, project_id }: MemberRef) => ({
  TableName: tableName("projects"),
  Key: { user_id, project_id },
});

/** Versions are spread by the last digit of the project. Each part has them in the order of the projects. */
export const shards = [..."0123456789abcdef"];
const versionKey = (ref: MemberRef) => ({
  TableName: tableName("memberVersions"),
  Key: { shard: ref.project_id.slice(-1), member: memberName(ref) },
});

/** When a change is no longer remembered, in epoch seconds. */
export const forgottenAt = (now: Date): number => Math.ceil(Date.parse(addSeconds(now, REMOVALS_KEPT_SECONDS)) / 1000);

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
export function writesOf(
  { before, after, ...ref }: MemberChange,
  version: string | undefined,
  now: Date,
): Record<string, TransactItem> {
  const versionItem = { Update: { ...versionKey(ref), ...versionUpdate(after === undefined, version, now) } };
  if (after && isSame(before, after)) return { version: versionItem };
  const resource = { project_id: ref.project_id, id: ref.user_id };
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
    audit: projectAudit(after ? "member.updated" : "member.removed", platform, resource, after && { role: after.role }),
  };
}

/**
 * Adds a user to a project, or changes the project name and the role of that member. Idempotent.
 * @param version undefined = now
 * @returns the member as it is stored, which a later change may have made; undefined = a later change has removed it
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

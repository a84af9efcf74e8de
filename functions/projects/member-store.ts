import { platform } from "../access/actor.ts";
import type { Membership, Project } from "../access/membership.ts";
import { revocationPut } from "../access/revocation-store.ts";
import { auditPut } from "../audit/audit-store.ts";
import { readItem, transactIf } from "../platform/dynamo.ts";
import { tableName } from "../platform/env.ts";
import { changing, isAsRead, onlyIf, when } from "../platform/expression.ts";

/* The changes of memberships, which only the platform makes. access/membership-store.ts reads them. */

const memberKey = (user_id: string, project_id: string) => ({
  TableName: tableName("projects"),
  Key: { user_id, project_id },
});

/** Adds a user to a project, or changes the project name and the role of that membership. Idempotent. */
export async function upsertMember({ user_id, project_id, name, role }: Membership, now: Date): Promise<Project> {
  const member = memberKey(user_id, project_id);
  const before = await readItem<Project>(member);
  const isSame = before?.name === name && before.role === role;
  // A platform may repeat the call at every sign-in: that is no change for the audit log.
  if (before && isSame) return { id: project_id, name, role, created_at: before.created_at };
  const isOtherRole = before !== undefined && before.role !== role;
  const isWritten = await transactIf({
    member: {
      Update: {
        ...member,
        ...changing({
          set: { name, role, created_at: when`if_not_exists(created_at, ${now.toISOString()})` },
          when: isAsRead("role", before?.role),
        }),
      },
    },
    ...(isOtherRole && { revocation: revocationPut({ user_id }, "role_changed") }),
    audit: auditPut({
      scope: `project:${project_id}`,
      action: "member.updated",
      actor: platform,
      resource_id: user_id,
      details: { role },
    }),
  });
  // Another call has changed the role since it was read.
  if (!isWritten) return upsertMember({ user_id, project_id, name, role }, now);
  const after = await readItem<Project>(member);
  return { id: project_id, name, role, created_at: after?.created_at ?? now.toISOString() };
}

/**
 * Removes a user from a project. Idempotent.
 * @returns whether the user was a member
 */
export const removeMember = (user_id: string, project_id: string): Promise<boolean> =>
  transactIf({
    member: { Delete: { ...memberKey(user_id, project_id), ...onlyIf(when`attribute_exists(user_id)`) } },
    revocation: revocationPut({ user_id }, "member_removed"),
    audit: auditPut({
      scope: `project:${project_id}`,
      action: "member.removed",
      actor: platform,
      resource_id: user_id,
    }),
  });

import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { platform } from "../access/actor.ts";
import type { Membership, Project } from "../access/membership.ts";
import { auditPut } from "../audit/audit-store.ts";
import { ConditionsFailedError, dynamo, transact } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";

/* The changes of memberships, which only the platform makes. access/membership-store.ts reads them. */

const memberKey = (user_id: string, project_id: string) => ({
  TableName: tableName("projects"),
  Key: { user_id, project_id },
});

/** Adds a user to a project, or changes the project name and the role of that membership. Idempotent. */
export async function upsertMember({ user_id, project_id, name, role }: Membership, now: Date): Promise<Project> {
  const member = memberKey(user_id, project_id);
  const before = await find(member);
  const isSame = before?.name === name && before.role === role;
  // A platform may repeat the call at every sign-in: that is no change for the audit log.
  if (before && isSame) return { id: project_id, name, role, created_at: before.created_at };
  await transact({
    member: {
      Update: {
        ...member,
        UpdateExpression: "SET #name = :name, #role = :role, created_at = if_not_exists(created_at, :now)",
        ExpressionAttributeNames: { "#name": "name", "#role": "role" },
        ExpressionAttributeValues: { ":name": name, ":role": role, ":now": now.toISOString() },
      },
    },
    audit: auditPut({
      scope: `project:${project_id}`,
      action: "member.updated",
      actor: platform,
      resource_id: user_id,
      details: { role },
    }),
  });
  const after = await find(member);
  return { id: project_id, name, role, created_at: after?.created_at ?? now.toISOString() };
}

async function find(member: ReturnType<typeof memberKey>): Promise<Project | undefined> {
  const { Item } = await dynamo().send(new GetCommand({ ...member, ConsistentRead: true }));
  return Item as Project | undefined;
}

/**
 * Removes a user from a project. Idempotent.
 * @returns whether the user was a member
 */
export async function removeMember(user_id: string, project_id: string): Promise<boolean> {
  try {
    await transact({
      member: {
        Delete: { ...memberKey(user_id, project_id), ConditionExpression: "attribute_exists(user_id)" },
      },
      audit: auditPut({
        scope: `project:${project_id}`,
        action: "member.removed",
        actor: platform,
        resource_id: user_id,
      }),
    });
    return true;
  } catch (error) {
    if (error instanceof ConditionsFailedError) return false;
    throw error;
  }
}

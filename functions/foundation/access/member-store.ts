import { QueryCommand } from "@aws-sdk/lib-dynamodb";
import type { MeteredReads } from "../budgets/metered-reads-store.ts";
import { dynamo } from "../platform/aws.ts";
import { readItem, readMany } from "../platform/dynamo.ts";
import { tableName } from "../platform/env.ts";
import { allOf, selecting, when } from "../platform/expression.ts";
import type { Page } from "../schema/page.ts";
import type { Project, Role } from "./member.ts";

/**
 * Returns a project and the role of a user in it; undefined = not a member. Strongly consistent: a change applies at once.
 */
export async function projectOf(user_id: string, project_id: string): Promise<Project | undefined> {
  const item = await readItem({ TableName: tableName("projects"), Key: { user_id, project_id } });
  return item && toProject(item);
}

/** Returns the role of a user in a project; undefined = not a member. Strongly consistent. */
export const roleOf = async (userId: string, projectId: string): Promise<Role | undefined> =>
  (await projectOf(userId, projectId))?.role;

/**
 * Reads a page of the projects of a user, in the order of their ids. Strongly consistent.
 * @returns `nextCursor` is absent on the last page
 */
export async function projectsOf(
  userId: string,
  { limit, cursor }: Page,
): Promise<{ items: Project[]; nextCursor?: string | undefined }> {
  const key = allOf(when`user_id = ${userId}`, cursor !== undefined && when`project_id > ${cursor}`);
  const { Items = [], LastEvaluatedKey } = await dynamo().send(
    new QueryCommand({
      TableName: tableName("projects"),
      ConsistentRead: true,
      ...selecting(key),
      // One more than requested shows whether there is a next page.
      Limit: limit + 1,
    }),
  );
  const items = Items.slice(0, limit).map(toProject);
  return { items, nextCursor: LastEvaluatedKey && items.at(-1)?.id };
}

/** Returns those of these projects that a user is a member of. Strongly consistent. */
export async function projectsWith(user_id: string, ids: string[]): Promise<Project[]> {
  const keys = ids.map((project_id) => ({ user_id, project_id }));
  return (await readMany<Record<string, unknown>>("projects", keys)).map(toProject);
}

export interface ProjectMember {
  user_id: string;
  role: Role;
  created_at: string;
}

const MAX_MEMBERS = 500;

/**
 * Returns the people who are members of a project. Their ids are in the table of versions, which has them in the order of the projects;
 * their roles in that of members. Strongly consistent.
 */
export async function membersOf(reads: MeteredReads, projectId: string): Promise<ProjectMember[]> {
  const { Items = [], ConsumedCapacity } = await dynamo().send(
    new QueryCommand({
      TableName: tableName("memberVersions"),
      ConsistentRead: true,
      // `#` is between project and user, and `$` follows it.
      ...selecting(when`#shard = ${projectId.slice(-1)} AND #member BETWEEN ${`${projectId}#`} AND ${`${projectId}$`}`),
      Limit: MAX_MEMBERS,
      ReturnConsumedCapacity: "TOTAL",
    }),
  );
  const ids = Items.filter(({ removed }) => !removed).map(({ member }) => String(member).slice(projectId.length + 1));
  await reads.add((ConsumedCapacity?.CapacityUnits ?? 0) + ids.length);
  const keys = ids.map((user_id) => ({ user_id, project_id: projectId }));
  const found = await readMany<ProjectMember>("projects", keys);
  return found.map(({ user_id, role, created_at }) => ({ user_id, role, created_at }));
}

const toProject = (item: Record<string, unknown>): Project =>
  ({ id: item.project_id, name: item.name, role: item.role, created_at: item.created_at }) as Project;

import { GetCommand, paginateQuery } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import type { Project, Role } from "./membership.ts";

/**
 * Returns a project and the role of a user in it; undefined = not a member. Strongly consistent: a change applies at once.
 */
export async function membershipOf(user_id: string, project_id: string): Promise<Project | undefined> {
  const { Item } = await dynamo().send(
    new GetCommand({ TableName: tableName("projects"), Key: { user_id, project_id }, ConsistentRead: true }),
  );
  return Item && { id: project_id, name: Item.name, role: Item.role, created_at: Item.created_at };
}

/** Returns the role of a user in a project; undefined = not a member. Strongly consistent. */
export const roleOf = async (userId: string, projectId: string): Promise<Role | undefined> =>
  (await membershipOf(userId, projectId))?.role;

/** Returns all projects of a user, oldest membership first. */
export async function projectsOf(userId: string): Promise<Project[]> {
  const pages = paginateQuery(
    { client: dynamo() },
    {
      TableName: tableName("projects"),
      ConsistentRead: true,
      KeyConditionExpression: "user_id = :user",
      ExpressionAttributeValues: { ":user": userId },
    },
  );
  const projects: Project[] = [];
  for await (const { Items = [] } of pages) {
    for (const { project_id, name, role, created_at } of Items)
      projects.push({ id: project_id, name, role, created_at });
  }
  return projects.sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
}

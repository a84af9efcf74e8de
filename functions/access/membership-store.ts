import { GetCommand, paginateQuery } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import type { Membership, Project, Role } from "./membership.ts";

/**
 * Returns the role of a user in a project; undefined = not a member. Strongly consistent: a change applies at once.
 */
export async function roleOf(user_id: string, project_id: string): Promise<Role | undefined> {
  return (await membershipOf(user_id, project_id))?.role;
}

/** Returns the membership of a user in a project; undefined = not a member. Strongly consistent. */
export async function membershipOf(
  user_id: string,
  project_id: string,
): Promise<Pick<Membership, "name" | "role"> | undefined> {
  const { Item } = await dynamo().send(
    new GetCommand({ TableName: tableName("projects"), Key: { user_id, project_id }, ConsistentRead: true }),
  );
  return Item as Membership | undefined;
}

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

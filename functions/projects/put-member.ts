import { parse } from "../platform/input.ts";
import { membership, type Project } from "./project.ts";
import * as projects from "./project-store.ts";

/** The platform puts a user into a project. Invoked under IAM with `{user_id, project_id, name, role}`. */
export async function handler(input: unknown): Promise<Project> {
  return projects.putMember(parse(membership, input), new Date());
}

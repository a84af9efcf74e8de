import { membershipInput, type Project } from "../access/membership.ts";
import { parse } from "../schema/input.ts";
import * as members from "./member-store.ts";

/**
 * Adds a user to a project or changes the membership. The platform invokes this function with IAM credentials.
 * @param input `{user_id, project_id, name, role}`
 */
export async function handler(input: unknown): Promise<Project> {
  return members.upsertMember(parse(membershipInput, input), new Date());
}

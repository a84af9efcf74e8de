import { membershipInput, type Project } from "../access/membership.ts";
import * as memberships from "../access/membership-store.ts";
import { parse } from "../schema/input.ts";

/**
 * Adds a user to a project or changes the membership. The platform invokes this function with IAM credentials.
 * @param input `{user_id, project_id, name, role}`
 */
export async function handler(input: unknown): Promise<Project> {
  return memberships.upsertMember(parse(membershipInput, input), new Date());
}

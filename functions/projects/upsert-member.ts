import { membershipInput, type Project } from "../access/membership.ts";
import * as memberships from "../access/membership-store.ts";
import { parse } from "../schema/input.ts";

/** The platform puts a user into a project. Invoked under IAM with `{user_id, project_id, name, role}`. */
export async function handler(input: unknown): Promise<Project> {
  return memberships.upsertMember(parse(membershipInput, input), new Date());
}

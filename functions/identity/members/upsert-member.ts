import { memberInput, type Project } from "../../foundation/access/member.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { parse } from "../../foundation/schema/input.ts";
import * as members from "./member-change-store.ts";
import { storedVersion } from "./member-difference.ts";

/**
 * Adds a user to a project or changes the member. The platform invokes this function with IAM credentials.
 * @param input `{user_id, project_id, name, role, version}`. `version` is when the platform made the change; absent = now
 * @returns the member as it is stored: that of a later change, if one was made
 * @throws ApiError `conflict` when a later change has removed the user
 */
export async function handler(input: unknown): Promise<Project> {
  const { user_id, project_id, name, role, version } = parse(memberInput, input);
  const now = new Date();
  const ref = { user_id, project_id };
  const project = await members.upsertMember(ref, { name, role }, version && storedVersion(version, now), now);
  if (project) return project;
  throw new ApiError("conflict", "A later change of the platform has removed the user from the project.");
}

import { removalInput } from "../../foundation/access/member.ts";
import { log } from "../../foundation/platform/log.ts";
import { parse } from "../../foundation/schema/input.ts";
import * as members from "./member-change-store.ts";
import { storedVersion } from "./member-difference.ts";

/**
 * Removes a user from a project. The next request of the user for this project is `not_found`, with any credential.
 * Idempotent. The platform invokes this function with IAM credentials.
 * @param input `{user_id, project_id, version}`. `version` is when the platform made the change; absent = now
 * @returns whether this call has removed the member
 */
export async function handler(input: unknown): Promise<{ removed: boolean }> {
  const { user_id, project_id, version } = parse(removalInput, input);
  const now = new Date();
  const removed = await members.removeMember({ user_id, project_id }, version && storedVersion(version, now), now);
  log.info("member removed", { user_id, project_id, removed });
  return { removed };
}

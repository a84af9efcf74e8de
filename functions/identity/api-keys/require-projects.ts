import { projectsWith } from "../../foundation/access/member-store.ts";
import { requireActive } from "../../foundation/access/suspension-store.ts";
import { allEnded } from "../../foundation/platform/parallel.ts";
import { invalidField } from "../../foundation/schema/input.ts";

/**
 * Checks that a user is a member of the projects that a new key is limited to, so that a typo fails here and
 * not later in a CI job.
 * @param projectIds undefined = the key is not limited to projects, and nothing is read
 * @throws ApiError `validation_error` for the first project that is not one of the user
 */
export async function requireMember(userId: string, projectIds: string[] | undefined): Promise<void> {
  if (projectIds === undefined) return;
  const own = new Set((await projectsWith(userId, projectIds)).map(({ id }) => id));
  const unknown = projectIds.findIndex((id) => !own.has(id));
  if (unknown !== -1) throw invalidField(`project_ids.${unknown}`, "is not a project of the user");
}

/**
 * Checks the projects that a user limits a new key to: the user is a member of all, and none is suspended.
 * @param projectIds undefined = the key is not limited to projects, and nothing is read
 * @throws ApiError `validation_error` as `requireMember`, `project_suspended`
 */
export async function requireProjects(userId: string, projectIds: string[] | undefined): Promise<void> {
  await requireMember(userId, projectIds);
  await allEnded(projectIds?.map(requireActive) ?? []);
}

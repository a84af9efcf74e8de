import type { Identity } from "../../foundation/access/identity.ts";
import type { Project } from "../../foundation/access/member.ts";
import * as members from "../../foundation/access/member-store.ts";
import { defineEndpoint, okPage } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { workflowPermissions } from "../../foundation/manifest/permissions.ts";
import { fields } from "../../foundation/schema/input.ts";
import { MAX_PAGE, type Page, page, pageFields } from "../../foundation/schema/page.ts";
import * as trustedWorkflows from "../trusted-workflows/trusted-workflow-store.ts";

/**
 * Lists the projects of the caller, or those of them that a scoped credential can see. Pages are in the order of the ids,
 * which is the order of the table; a page is sorted by the time of joining.
 */
export const handler = defineEndpoint(endpoints.listProjects, {
  query: page(fields(pageFields), MAX_PAGE),
  async run({ identity, query, requestUrl }) {
    const { userId, projectIds } = identity;
    const { items, nextCursor } = projectIds
      ? pageOf(await projectsOfScoped({ ...identity, projectIds }), query)
      : await members.projectsOf(userId, query);
    const oldestFirst = items.toSorted((a, b) => (a.created_at < b.created_at ? -1 : 1));
    return okPage(oldestFirst, { requestUrl, query, nextCursor });
  },
});

/** A scoped credential names its projects, at most 20. */
async function projectsOfScoped({
  authType,
  userId,
  projectIds,
  permissions = [],
}: ScopedIdentity): Promise<Project[]> {
  if (authType !== "workflow") return members.projectsWith(userId, projectIds);
  // A workflow is not a member. Its permissions are the same in all projects that it sees.
  const writes = workflowPermissions.filter((name) => name.endsWith(":write"));
  const role = writes.some((name) => permissions.includes(name)) ? "admin" : "viewer";
  const projects = await trustedWorkflows.projectsWith(projectIds);
  return projects.map(({ id, name, created_at }) => ({ id, name, role, created_at }));
}

type ScopedIdentity = Identity & { projectIds: string[] };

function pageOf(projects: Project[], { limit, cursor = "" }: Page) {
  const rest = projects.filter(({ id }) => id > cursor).sort((a, b) => (a.id < b.id ? -1 : 1));
  const items = rest.slice(0, limit);
  return { items, nextCursor: rest.length > limit ? items.at(-1)?.id : undefined };
}

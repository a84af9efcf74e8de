import type { Access } from "../manifest/endpoints.ts";
import { ApiError } from "../platform/errors.ts";
import type { Identity } from "./identity.ts";
import type { Role } from "./member.ts";
import { roleOf } from "./member-store.ts";

/**
 * Enforces `access` and `permission` of an endpoint row, or the same for another service of the platform.
 * @returns the role in the project that `access` is about, of a workflow `admin`; undefined = `access` is about none
 * @throws ApiError `session_required` for an API key or a workflow; `insufficient_permission` for a scoped credential that
 * does not have the permission; `not_found` when the caller is not a member of the project, whether it exists or not, or
 * when the credential is limited to other projects; `forbidden` for a viewer where an admin is required
 */
export async function requireAccess(
  { access, permission }: { access: Access; permission: string },
  caller: Identity,
  params: Record<string, string>,
): Promise<Role | undefined> {
  const needsSession = access === "session" || access === "admin_session";
  if (needsSession && caller.authType !== "jwt") {
    const kind = caller.authType === "workflow" ? "workflows" : "API keys";
    throw new ApiError("session_required", `This endpoint does not accept ${kind}. Sign in and send a JWT.`);
  }
  // Before the permission: another project is not found, whatever the credential may do.
  if (params.project_id !== undefined && caller.projectIds?.includes(params.project_id) === false) throw notFound();
  requirePermission(permission, caller);
  if (access === "viewer") return requireRole("viewer", caller, params.project_id ?? "");
  if (access === "admin" || access === "admin_session") return requireRole("admin", caller, params.project_id ?? "");
  return undefined;
}

const notFound = () =>
  new ApiError(
    "not_found",
    "No project with this id exists, or you are not a member of it, or the credential is limited to other projects.",
  );

/** A workflow has only the listed permissions: the check fails closed. */
const heldBy = ({ permissions, authType }: Identity) => permissions ?? (authType === "workflow" ? [] : undefined);

/** Returns whether a credential has a permission, whatever the role of its user. */
export const holds = (caller: Identity, permission: string): boolean =>
  permission === "none" || (heldBy(caller)?.includes(permission) ?? true);

function requirePermission(permission: string, caller: Identity): void {
  if (holds(caller, permission)) return;
  const held = heldBy(caller) ?? [];
  const others = held.length === 0 ? "It has none" : `It has: ${held.join(", ")}`;
  const message = `The credential does not have the permission ${permission}. ${others}.`;
  throw new ApiError("insufficient_permission", message);
}

async function requireRole(wanted: Role, caller: Identity, projectId: string): Promise<Role> {
  const role = await roleIn(projectId, caller);
  if (role === undefined) throw notFound();
  if (wanted === "viewer" || role === "admin") return role;
  throw new ApiError(
    "forbidden",
    "This requires the role admin in the project, and yours is viewer. Ask an admin of the project.",
  );
}

/**
 * A workflow has no role: in the projects that trust it, its permissions are the limit. Without a list of projects,
 * access is denied: the check fails closed.
 */
const roleIn = async (projectId: string, { authType, userId, projectIds }: Identity): Promise<Role | undefined> => {
  if (authType !== "workflow") return roleOf(userId, projectId);
  return projectIds?.includes(projectId) ? "admin" : undefined;
};

import type { Access } from "../manifest/endpoints.ts";
import { ApiError } from "../platform/errors.ts";
import type { Identity } from "./identity.ts";
import { roleOf } from "./membership-store.ts";

/**
 * Enforces the `access` of an endpoint row.
 * @throws ApiError `session_required` for an API key; `not_found` when the caller is not a member of the project,
 * whether it exists or not; `forbidden` for a viewer where an admin is required
 */
export async function requireAccess(access: Access, caller: Identity, params: Record<string, string>): Promise<void> {
  switch (access) {
    case "user":
      return;
    case "session":
      if (caller.authType === "jwt") return;
      throw new ApiError("session_required", "This endpoint does not accept API keys. Sign in and send a JWT.");
    case "viewer":
    case "admin": {
      const role = await roleOf(caller.userId, params.project_id ?? "");
      if (role === undefined)
        throw new ApiError("not_found", "No project with this id exists, or you are not a member of it.");
      if (access === "viewer" || role === "admin") return;
      throw new ApiError(
        "forbidden",
        "Your role in this project is viewer (read-only). Ask an admin of the project to make the change.",
      );
    }
  }
}

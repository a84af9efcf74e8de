import type { Access } from "../manifest/endpoints.ts";
import { ApiError } from "../platform/errors.ts";
import type { Identity } from "./identity.ts";
import { roleOf } from "./membership-store.ts";

/**
 * Enforces the `access` column of a row.
 * @throws ApiError `session_required`; `not_found` for a project the caller is no member of, whether it exists or not;
 * `forbidden` for a member who may look but not change
 */
export async function requireAccess(access: Access, caller: Identity, params: Record<string, string>): Promise<void> {
  switch (access) {
    case "user":
      return;
    case "session":
      if (caller.authType === "jwt") return;
      throw new ApiError("session_required", "An API key cannot do this. Sign in and send a JWT.");
    case "viewer":
    case "admin": {
      const role = await roleOf(caller.userId, params.project_id ?? "");
      if (role === undefined) throw new ApiError("not_found", "There is no such project.");
      if (access === "viewer" || role === "admin") return;
      throw new ApiError("forbidden", "Your role in this project is viewer. Ask an admin of the project.");
    }
  }
}

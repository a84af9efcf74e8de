import * as z from "zod/mini";
import { displayName, fields, orRequired, userId, uuid } from "../schema/input.ts";
import { personId } from "./person-id.ts";

export type Role = "admin" | "viewer";

/** A project and the membership of one user in it. */
export interface Project {
  id: string;
  name: string;
  role: Role;
  /** Time at which the user became a member. */
  created_at: string;
}

/** Input of the platform that adds a user to a project, or changes the role or the project name of that membership. */
export const membershipInput = fields({
  user_id: personId,
  project_id: uuid,
  name: displayName,
  role: z._default(z.enum(["admin", "viewer"], orRequired('must be "admin" or "viewer"')), "admin"),
});
export type Membership = z.infer<typeof membershipInput>;

/** Input of the platform that removes a user from a project. */
export const removalInput = fields({ user_id: userId, project_id: uuid });

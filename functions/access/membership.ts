import * as z from "zod/mini";
import { fields, label, orRequired, userId, uuid } from "../schema/input.ts";

export type Role = "admin" | "viewer";

/** A project as one of its members sees it. */
export interface Project {
  id: string;
  name: string;
  role: Role;
  created_at: string;
}

/** What the platform sends to put a user into a project, or to change the user's role or the project's name there. */
export const membershipInput = fields({
  user_id: userId,
  project_id: uuid,
  name: label,
  role: z._default(z.enum(["admin", "viewer"], orRequired('must be "admin" or "viewer"')), "admin"),
});
export type Membership = z.infer<typeof membershipInput>;

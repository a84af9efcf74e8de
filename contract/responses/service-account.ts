import * as z from "zod/mini";
import type { Role } from "../../functions/foundation/access/member.ts";
import type { ProjectMember } from "../../functions/foundation/access/member-store.ts";
import type { toListItem } from "../../functions/identity/service-accounts/service-account.ts";
import { type FieldsOf, id, instant, oneOf, text } from "./fields.ts";

/** A service account. */
export const serviceAccountSchema = z.strictObject({
  id: id("Id of the service account, as used in paths."),
  project_id: id("Id of its project."),
  user_id: text("Id of the user that its keys act for.", { pattern: "^service-account:" }),
  name: text("Display name."),
  role: oneOf<Role>("Role of its keys in the project.", { admin: "may read and change", viewer: "may read" }),
  created_at: instant("Time of creation."),
  created_by: text("Id of the user who created it."),
} satisfies FieldsOf<ReturnType<typeof toListItem>>);

/** A person who is a member of a project. */
export const memberSchema = z.strictObject({
  user_id: text("Id of the user at the platform."),
  role: oneOf<Role>("Role in the project.", { admin: "may read and change", viewer: "may read" }),
  created_at: instant("When the user became a member."),
} satisfies FieldsOf<ProjectMember>);

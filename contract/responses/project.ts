import * as z from "zod/mini";
import type { Project, Role } from "../../functions/foundation/access/member.ts";
import { type FieldsOf, id, instant, oneOf, text } from "./fields.ts";

/** A project, and the caller as a member of it. */
export const projectSchema = z.strictObject({
  id: id("Id of the project, as used in paths."),
  name: text("Name of the project on the platform."),
  role: oneOf<Role>("Role of the caller in the project.", { admin: "may read and change", viewer: "may read" }),
  created_at: instant("Time at which the caller became a member."),
} satisfies FieldsOf<Project>);

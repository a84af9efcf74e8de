import * as z from "zod/mini";
import type { Project, Role } from "../access/membership.ts";
import { type FieldsOf, id, instant, oneOf, text } from "../schema/response-schema.ts";

/** A project as one of its members sees it. */
export const projectSchema = z.strictObject({
  id: id("Names the project in paths."),
  name: text("What the platform calls it."),
  role: oneOf<Role>("What the caller may do in it.", { admin: "see and change", viewer: "see" }),
  created_at: instant("When the caller became a member."),
} satisfies FieldsOf<Project>);

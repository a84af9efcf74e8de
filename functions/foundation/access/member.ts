import * as z from "zod/mini";
import { fields, isoTime, listOf, orRequired, platformName, userId, uuid } from "../schema/input.ts";
import { personId } from "./person-id.ts";

export type Role = "admin" | "viewer";

/** A project, and one user as a member of it. */
export interface Project {
  id: string;
  name: string;
  role: Role;
  /** Time at which the user became a member. */
  created_at: string;
}

/** What the platform says about a member. */
export type MemberState = Pick<Project, "name" | "role">;

export interface MemberRef {
  user_id: string;
  project_id: string;
}

const role = z.enum(["admin", "viewer"], orRequired('must be "admin" or "viewer"'));
const member = { user_id: personId, project_id: uuid, name: platformName };

/** Input of the platform that adds a user to a project, or changes the role or the project name of that member. */
export const memberInput = fields({
  ...member,
  role: z._default(role, "admin"),
  version: z.optional(isoTime),
});

/** Input of the platform that removes a user from a project. */
export const removalInput = fields({ user_id: userId, project_id: uuid, version: z.optional(isoTime) });

const MAX_MEMBERS = 5_000;
/** Greater numbers are times, in milliseconds since 1970. */
const MAX_NUMBER = 1e12;
/** The last time that a Date can hold. */
const LAST_MS = 8.64e15;
const snapshotRule = "must be an ISO 8601 time with a time zone, or a whole number that grows with each snapshot";

/** Input of the platform that has all members of a range of projects. */
export const snapshotInput = fields({
  version: z.pipe(
    z.union(
      [isoTime, z.int(snapshotRule).check(z.nonnegative(snapshotRule), z.maximum(LAST_MS, snapshotRule))],
      orRequired(snapshotRule),
    ),
    z.transform((given: Date | number) => (typeof given === "number" && given > MAX_NUMBER ? new Date(given) : given)),
  ),
  members: listOf(fields({ ...member, role }), MAX_MEMBERS),
  after: z.optional(uuid),
  until: z.optional(uuid),
  dry_run: z.optional(z.boolean("must be true or false")),
  force: z.optional(z.boolean("must be true or false")),
});

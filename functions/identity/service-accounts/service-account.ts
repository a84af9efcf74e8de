import * as z from "zod/mini";
import { serviceAccountUserId } from "../../foundation/access/identity.ts";
import type { Role } from "../../foundation/access/member.ts";
import { timeOrderedUuid } from "../../foundation/platform/uuid.ts";
import { displayName, fields, orRequired } from "../../foundation/schema/input.ts";

/**
 * A caller without a person: it belongs to one project, has API keys of its own, and stays when people leave. As a user, it
 * is a member of one project.
 */
export interface ServiceAccount {
  id: string;
  project_id: string;
  name: string;
  role: Role;
  created_at: string;
  /** Id of the user who created it. */
  created_by: string;
  /** Time at which its removal began, or was continued; absent = it is not being removed. */
  removing_at?: string;
}

export const serviceAccountInput = fields({
  name: displayName,
  role: z.enum(["admin", "viewer"], orRequired('must be "admin" or "viewer"')),
});

export const MAX_SERVICE_ACCOUNTS_PER_PROJECT = 50;

/**
 * Creates a service account of a project.
 * @param random at least 16 bytes
 */
export const createServiceAccount = (
  { name, role }: z.infer<typeof serviceAccountInput>,
  project_id: string,
  created_by: string,
  now: Date,
  random: Buffer,
): ServiceAccount => ({
  id: timeOrderedUuid(now.getTime(), random),
  project_id,
  name,
  role,
  created_at: now.toISOString(),
  created_by,
});

/** Returns the fields of a service account in a list. */
export const toListItem = ({ id, project_id, name, role, created_at, created_by }: ServiceAccount) => ({
  id,
  project_id,
  user_id: serviceAccountUserId(id),
  name,
  role,
  created_at,
  created_by,
});

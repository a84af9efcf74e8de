import * as z from "zod/mini";

/* Not in endpoints.ts: the authorizer needs the names, and its bundle would contain all rows. */

/**
 * What a credential can be scoped to: an API key with `permissions`, or a workflow of a CI system. They are part of
 * the API, and never add to what the user may do.
 */
export const permissions = [
  "projects:read",
  "webhooks:read",
  "webhooks:write",
  "deliveries:read",
  "deliveries:write",
  "events:read",
  "webhook-secrets:write",
  "keys:read",
  "keys:write",
  "service-accounts:read",
  "service-accounts:write",
  "audit:read",
] as const;
export type Permission = (typeof permissions)[number];

/**
 * What a workflow can be given: the permissions in a project. It has no API keys to manage, the audit log contains the
 * addresses of people, and with a new secret of a webhook a leaked token could sign what its receiver believes.
 */
export const workflowPermissions = [
  "projects:read",
  "webhooks:read",
  "webhooks:write",
  "deliveries:read",
  "deliveries:write",
  "events:read",
] as const satisfies readonly Permission[];
export type WorkflowPermission = (typeof workflowPermissions)[number];

/** They fit into the context that the authorizer passes on. */
const MAX_PLATFORM_PERMISSIONS = 20;

const PLATFORM_PERMISSION = /^(?=.{3,40}$)([a-z][a-z0-9-]*):[a-z][a-z0-9-]*$/;
const nameRule = "must be at most 40 characters such as registry:push, and not begin with a resource of this API";

/** Returns whether the platform may use a name. A resource of this API is reserved: a later release may add permissions for it. */
function isPlatformPermission(name: string): boolean {
  const resource = PLATFORM_PERMISSION.exec(name)?.[1];
  return resource !== undefined && !permissions.some((own) => own.startsWith(`${resource}:`));
}

const descriptionRule = "must be text of at most 100 characters";

/**
 * The permissions that the platform defines for its other services: option and setting. The API lists them and gives them to
 * credentials, and uses them for nothing.
 */
export const platformPermissionList = () =>
  z
    .array(
      z.strictObject({
        name: z.string(nameRule).check(z.refine(isPlatformPermission, nameRule)),
        /** What it allows, in a sentence. */
        description: z
          .string(descriptionRule)
          .check(z.refine((text) => text.trim() !== "" && text.length <= 100, descriptionRule)),
      }),
      "must be a list",
    )
    .check(
      z.minLength(1, "must not be empty"),
      z.maxLength(MAX_PLATFORM_PERMISSIONS, `must have at most ${MAX_PLATFORM_PERMISSIONS} entries`),
      z.refine((list) => new Set(list.map(({ name }) => name)).size === list.length, "must have different names"),
    );
export type PlatformPermission = z.infer<ReturnType<typeof platformPermissionList>>[number];

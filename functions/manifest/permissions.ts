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

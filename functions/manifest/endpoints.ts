import type { Grants } from "./grants-schema.ts";

/**
 * The HTTP API, one row per endpoint. Routes, Lambdas, grants, the local gateway and the security tests all follow from
 * these rows. Data only: `file` is a path below `functions/` that the row does not import.
 */
export interface EndpointRow {
  method: "GET" | "POST" | "PATCH" | "DELETE";
  path: `/v1/${string}`;
  file: string;
  access: Access;
  uses: Grants;
  /** How long a call may take, when the default of a few seconds is not enough. API Gateway waits for 29 at most. */
  timeoutSeconds?: number;
}

/**
 * Who may call:
 * - `session`: a user who signed in (JWT). An API key may not: a leaked key that mints keys would outlive its revocation.
 * - `user`: either credential.
 * - `viewer`: either credential, of a member of the project in the path, whatever the role.
 * - `admin`: either credential, of an admin of the project in the path.
 */
export type Access = "session" | "user" | "viewer" | "admin";

export const endpoints = [
  {
    method: "POST",
    path: "/v1/api-keys",
    file: "api-keys/create",
    access: "session",
    uses: { tables: { apiKeys: ["PutItem"], userApiKeys: ["PutItem", "UpdateItem"] } },
  },
  {
    method: "GET",
    path: "/v1/api-keys",
    file: "api-keys/list",
    access: "user",
    uses: { tables: { apiKeys: ["BatchGetItem"], userApiKeys: ["Query"] } },
  },
  {
    method: "DELETE",
    path: "/v1/api-keys/{id}",
    file: "api-keys/delete",
    access: "user",
    uses: { tables: { apiKeys: ["DeleteItem"], userApiKeys: ["GetItem", "DeleteItem", "UpdateItem"] } },
  },
  {
    method: "GET",
    path: "/v1/projects",
    file: "projects/list",
    access: "user",
    uses: { tables: { projects: ["Query"] } },
  },
  {
    method: "POST",
    path: "/v1/projects/{project_id}/webhooks",
    file: "webhooks/create",
    access: "admin",
    uses: { tables: { projects: ["GetItem"], webhooks: ["PutItem", "UpdateItem"], webhookSecrets: ["PutItem"] } },
  },
  {
    method: "GET",
    path: "/v1/projects/{project_id}/webhooks",
    file: "webhooks/list",
    access: "viewer",
    uses: { tables: { projects: ["GetItem"], webhooks: ["Query"] } },
  },
  {
    method: "DELETE",
    path: "/v1/projects/{project_id}/webhooks/{webhook_id}",
    file: "webhooks/delete",
    access: "admin",
    uses: { tables: { projects: ["GetItem"], webhooks: ["DeleteItem", "UpdateItem"], webhookSecrets: ["DeleteItem"] } },
  },
  {
    method: "GET",
    path: "/v1/projects/{project_id}/webhooks/{webhook_id}",
    file: "webhooks/get",
    access: "viewer",
    uses: { tables: { projects: ["GetItem"], webhooks: ["GetItem"] } },
  },
  {
    method: "PATCH",
    path: "/v1/projects/{project_id}/webhooks/{webhook_id}",
    file: "webhooks/update",
    access: "admin",
    uses: { tables: { projects: ["GetItem"], webhooks: ["UpdateItem"] } },
  },
  {
    method: "POST",
    path: "/v1/projects/{project_id}/webhooks/{webhook_id}/rotate-secret",
    file: "webhooks/rotate-secret",
    access: "admin",
    uses: { tables: { projects: ["GetItem"], webhooks: ["GetItem"], webhookSecrets: ["UpdateItem"] } },
  },
  {
    method: "POST",
    path: "/v1/projects/{project_id}/webhooks/{webhook_id}/test",
    file: "deliveries/send-test-delivery",
    access: "admin",
    uses: {
      tables: { projects: ["GetItem"], webhooks: ["GetItem"], deliveries: ["PutItem"] },
      sendsTo: ["deliveries"],
    },
  },
  {
    method: "GET",
    path: "/v1/projects/{project_id}/webhooks/{webhook_id}/deliveries",
    file: "deliveries/list",
    access: "viewer",
    uses: { tables: { projects: ["GetItem"], webhooks: ["GetItem"], deliveries: ["Query"] } },
  },
  {
    method: "GET",
    path: "/v1/projects/{project_id}/webhooks/{webhook_id}/deliveries/{delivery_id}",
    file: "deliveries/get",
    access: "viewer",
    uses: { tables: { projects: ["GetItem"], webhooks: ["GetItem"], deliveries: ["GetItem"] } },
  },
  {
    method: "POST",
    path: "/v1/projects/{project_id}/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver",
    file: "deliveries/redeliver",
    access: "admin",
    uses: {
      tables: { projects: ["GetItem"], webhooks: ["GetItem"], deliveries: ["GetItem", "UpdateItem"] },
      sendsTo: ["deliveries"],
    },
  },
  {
    method: "POST",
    path: "/v1/projects/{project_id}/webhooks/{webhook_id}/recover",
    file: "deliveries/recover",
    access: "admin",
    uses: {
      tables: { projects: ["GetItem"], webhooks: ["GetItem"], deliveries: ["Query", "UpdateItem"] },
      sendsTo: ["deliveries"],
    },
    timeoutSeconds: 28,
  },
] as const satisfies readonly EndpointRow[];

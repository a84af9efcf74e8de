import { can } from "./capabilities.ts";
import type { Grants, SettingKey } from "./grants-schema.ts";
import type { Permission } from "./permissions.ts";

/**
 * An endpoint of the HTTP API. Routes, Lambda functions, grants, the local gateway and the security tests are derived
 * from these rows (function-rows.ts). Data only.
 */
interface EndpointFields {
  method: "GET" | "POST" | "PATCH" | "DELETE";
  path: `/v1/${string}`;
  /** Module of the handler: a path below `functions/`, without `.ts`. The row does not import it, and no name comes from it. */
  file: string;
  access: Access;
  /** What a scoped credential must have been given to call this; `none` = nothing beyond `access`. */
  permission: Permission | "none";
  /**
   * The endpoint creates something, and a request with the header `Idempotency-Key` can be repeated safely: it returns the
   * record again (`record`), or only its id, because the record has a secret (`id`).
   */
  repeatReturns?: "record" | "id";
  /** Timeout of the function; absent = the stack's default. API Gateway itself times out after 29 seconds. */
  timeoutSeconds?: number;
  settings?: readonly SettingKey[];
  /** The option of `reservedConcurrency` of a stage that applies to it; absent = nothing is reserved. */
  reserves?: "recover";
  /** Rate limit for requests that cause far more work than others; absent = the stage's. The lower one applies. */
  throttle?: Throttle;
  /**
   * For an endpoint without a credential: the number of API keys that one IP address can send per minute; beyond it, it gets
   * 429. The endpoint counts those with a valid checksum, and imported ones, because each of them costs a read.
   */
  apiKeysPerMinutePerAddress?: number;
  /**
   * The endpoint creates or rolls what a revocation may end later: how often one user can do so per minute, at all such endpoints
   * together; beyond it, they get 429. Nothing that revokes has this limit.
   */
  credentialsPerMinutePerUser?: number;
}

/** A row with its id: of an endpoint, or of a route of another protocol (protocols.ts), whose path is not below /v1. */
export interface EndpointRow extends Omit<EndpointFields, "path"> {
  path: string;
  /** Operation id in the OpenAPI document, and name of the function in the stack, its bundle and a local run. */
  id: string;
  uses: Grants;
}

/** A token bucket, shared by all callers of an endpoint. A request without a token gets 429. */
export interface Throttle {
  /** Tokens added per second. */
  requestsPerSecond: number;
  /** Size of the bucket, in tokens. It is full at first. */
  burst: number;
}

/**
 * The credential and the project role that a caller needs:
 * - `anyone`: no credential. The authorizer does not run, and a credential that is sent is ignored.
 * - `session`: a JWT. API keys are rejected: with a leaked key an attacker could create another one, which would stay
 *   valid after the leaked key is deleted.
 * - `user`: a JWT or an API key.
 * - `viewer`: a JWT or an API key of any member of the project in the path.
 * - `admin`: a JWT or an API key of an admin of the project in the path.
 * - `admin_session`: a JWT of an admin of the project in the path. API keys and workflows are rejected: with a leaked one
 *   an attacker could create another credential.
 *
 * A workflow has no role. It may call `viewer` and `admin` rows of its projects for which it has the permission.
 */
export type Access = "anyone" | "session" | "user" | "viewer" | "admin" | "admin_session";

/** A scanner of repositories reports many keys from a few addresses. */
export const REVOCATIONS_PER_MINUTE_PER_ADDRESS = 1_000;

/**
 * More than the 100 keys that a user can have. At a steady rate each leads to two entries in the feed of revocations at most, so that 42
 * users together reach its 10,000 entries a minute. A user who prepares for 84 minutes, 2,500 keys with three previous secrets each, can
 * reach them alone with 2,500 deletions in a minute.
 */
const credentialsPerMinutePerUser = 120;

/** The beginning of their user ids (foundation/access/identity.ts): these endpoints never change a member who is a person. */
const serviceAccountMembers = { projects: "service-account:" } as const;

/**
 * Keyed by operation id. `uses` has the calls of its function that do not follow from the other fields: a check of the role,
 * `Idempotency-Key` and the entry in the audit log do.
 */
export const endpoints = {
  createApiKey: {
    method: "POST",
    path: "/v1/api-keys",
    file: "identity/api-keys/create",
    settings: ["permissions"],
    access: "session",
    permission: "none",
    repeatReturns: "id",
    credentialsPerMinutePerUser,
    uses: [can.createKey, { tables: { projects: ["BatchGetItem"], webhooks: ["GetItem"] } }],
  },
  listApiKeys: {
    method: "GET",
    path: "/v1/api-keys",
    file: "identity/api-keys/list",
    access: "user",
    permission: "keys:read",
    uses: [can.chargeReads, can.listKeys],
  },
  getCurrentCredential: {
    method: "GET",
    path: "/v1/api-keys/current",
    file: "identity/api-keys/get-current",
    settings: ["permissions"],
    access: "user",
    permission: "none",
    uses: [{ tables: { apiKeys: ["GetItem"], userApiKeys: ["GetItem"] } }],
  },
  deleteApiKey: {
    method: "DELETE",
    path: "/v1/api-keys/{id}",
    file: "identity/api-keys/delete",
    access: "user",
    permission: "keys:write",
    uses: [can.deleteKey],
  },
  updateApiKey: {
    method: "PATCH",
    path: "/v1/api-keys/{id}",
    file: "identity/api-keys/update",
    access: "user",
    permission: "keys:write",
    uses: [can.renameKey],
  },
  rollApiKey: {
    method: "POST",
    path: "/v1/api-keys/{id}/roll",
    file: "identity/api-keys/roll",
    access: "session",
    permission: "none",
    credentialsPerMinutePerUser,
    uses: [can.rollKey],
  },
  revokeCredentials: {
    method: "POST",
    path: "/v1/credentials/revoke",
    file: "identity/api-keys/revoke-leaked",
    settings: ["importedKeys", "importedKeysPepper", "secretScanning"],
    access: "anyone",
    permission: "none",
    // A hundred keys of one user are removed one after the other.
    timeoutSeconds: 28,
    // No throttle of its own: it would count any text of any caller, and a stranger could keep it used up.
    apiKeysPerMinutePerAddress: REVOCATIONS_PER_MINUTE_PER_ADDRESS,
    uses: [
      {
        tables: {
          apiKeys: ["BatchGetItem", "PutItem", "DeleteItem"],
          userApiKeys: ["GetItem", "DeleteItem", "UpdateItem"],
          notifications: ["PutItem", "DeleteItem", "Query"],
          revocations: ["PutItem"],
          requestBudgets: ["UpdateItem"],
        },
      },
    ],
  },
  requestSignIn: {
    method: "POST",
    path: "/v1/sign-ins",
    file: "identity/sign-ins/request",
    access: "anyone",
    permission: "none",
    uses: [
      can.createKey,
      {
        tables: {
          apiKeys: ["GetItem", "UpdateItem", "DeleteItem"],
          projects: ["BatchGetItem"],
          webhooks: ["GetItem"],
          requestBudgets: ["UpdateItem"],
          auditEvents: ["PutItem"],
        },
      },
    ],
  },
  decideSignIn: {
    method: "PATCH",
    path: "/v1/sign-ins",
    file: "identity/sign-ins/decide",
    settings: ["permissions"],
    access: "session",
    permission: "none",
    uses: [
      {
        tables: {
          apiKeys: ["GetItem", "UpdateItem"],
          projects: ["BatchGetItem"],
          webhooks: ["GetItem"],
          requestBudgets: ["UpdateItem"],
        },
        writesOnly: { apiKeys: "device:" },
      },
    ],
  },
  listProjects: {
    method: "GET",
    path: "/v1/projects",
    file: "identity/members/list",
    access: "user",
    permission: "projects:read",
    uses: [{ tables: { projects: ["Query", "BatchGetItem"], trustedWorkflows: ["BatchGetItem"] } }],
  },
  listEvents: {
    method: "GET",
    path: "/v1/projects/{project_id}/events",
    file: "deliveries/feed/list-events",
    access: "viewer",
    permission: "events:read",
    settings: ["events"],
    uses: [can.chargeReads, { tables: { webhooks: ["GetItem"], events: ["Query"] } }],
  },
  listProjectDeliveries: {
    method: "GET",
    path: "/v1/projects/{project_id}/deliveries",
    file: "deliveries/log/list-of-project",
    access: "viewer",
    permission: "deliveries:read",
    settings: ["events"],
    uses: [can.chargeReads, { tables: { webhooks: ["Query"], deliveries: ["Query"] } }],
  },
  createWebhook: {
    method: "POST",
    path: "/v1/projects/{project_id}/webhooks",
    file: "webhooks/webhook/create",
    access: "admin",
    permission: "webhooks:write",
    repeatReturns: "id",
    settings: ["events"],
    uses: [{ tables: { webhooks: ["PutItem", "UpdateItem"], webhookSecrets: ["PutItem"] } }],
  },
  listWebhooks: {
    method: "GET",
    path: "/v1/projects/{project_id}/webhooks",
    file: "webhooks/webhook/list",
    access: "viewer",
    permission: "webhooks:read",
    uses: [can.chargeReads, { tables: { webhooks: ["Query"], deliveries: ["Query"], backlog: ["Query"] } }],
  },
  deleteWebhook: {
    method: "DELETE",
    path: "/v1/projects/{project_id}/webhooks/{webhook_id}",
    file: "webhooks/webhook/delete",
    access: "admin",
    permission: "webhooks:write",
    uses: [
      {
        tables: {
          webhooks: ["GetItem", "DeleteItem", "UpdateItem"],
          webhookSecrets: ["DeleteItem"],
          notifications: ["DeleteItem"],
        },
      },
    ],
  },
  getWebhook: {
    method: "GET",
    path: "/v1/projects/{project_id}/webhooks/{webhook_id}",
    file: "webhooks/webhook/get",
    access: "viewer",
    permission: "webhooks:read",
    uses: [can.chargeReads, { tables: { webhooks: ["GetItem"], deliveries: ["Query"], backlog: ["Query"] } }],
  },
  updateWebhook: {
    method: "PATCH",
    path: "/v1/projects/{project_id}/webhooks/{webhook_id}",
    file: "webhooks/webhook/update",
    access: "admin",
    permission: "webhooks:write",
    settings: ["events"],
    uses: [
      can.chargeReads,
      {
        tables: {
          webhooks: ["GetItem", "UpdateItem"],
          webhookSecrets: ["UpdateItem"],
          deliveries: ["Query"],
          backlog: ["Query", "UpdateItem"],
          notifications: ["PutItem", "Query"],
        },
        sendsTo: ["slowDeliveries"],
      },
    ],
  },
  rotateWebhookSecret: {
    method: "POST",
    path: "/v1/projects/{project_id}/webhooks/{webhook_id}/rotate-secret",
    file: "webhooks/webhook/rotate-secret",
    access: "admin",
    permission: "webhook-secrets:write",
    uses: [{ tables: { webhooks: ["GetItem", "UpdateItem"], webhookSecrets: ["UpdateItem"] } }],
  },
  getWebhookStats: {
    method: "GET",
    path: "/v1/projects/{project_id}/webhooks/{webhook_id}/stats",
    file: "deliveries/log/get-stats",
    access: "viewer",
    permission: "deliveries:read",
    uses: [can.chargeReads, { tables: { webhooks: ["GetItem"], deliveries: ["Query"] } }],
  },
  // Takes no Idempotency-Key: a repeat sends at most one more sample, which the project's budget bounds.
  sendTestDelivery: {
    method: "POST",
    path: "/v1/projects/{project_id}/webhooks/{webhook_id}/test",
    file: "deliveries/log/send-test-delivery",
    access: "admin",
    permission: "deliveries:write",
    throttle: { requestsPerSecond: 5, burst: 20 },
    settings: ["events"],
    uses: [can.sendDeliveries],
  },
  certifyWebhook: {
    method: "POST",
    path: "/v1/projects/{project_id}/webhooks/{webhook_id}/certify",
    file: "deliveries/certification/create",
    access: "admin",
    permission: "deliveries:write",
    throttle: { requestsPerSecond: 5, burst: 20 },
    uses: [
      {
        tables: { webhooks: ["GetItem"], deliveries: ["PutItem"], requestBudgets: ["UpdateItem"] },
        sendsTo: ["slowDeliveries"],
      },
    ],
  },
  getCertification: {
    method: "GET",
    path: "/v1/projects/{project_id}/webhooks/{webhook_id}/certifications/{certification_id}",
    file: "deliveries/certification/get",
    access: "viewer",
    permission: "deliveries:read",
    uses: [{ tables: { webhooks: ["GetItem"], deliveries: ["GetItem"] } }],
  },
  listDeliveries: {
    method: "GET",
    path: "/v1/projects/{project_id}/webhooks/{webhook_id}/deliveries",
    file: "deliveries/log/list",
    access: "viewer",
    permission: "deliveries:read",
    settings: ["events"],
    uses: [can.chargeReads, { tables: { webhooks: ["GetItem"], deliveries: ["Query"] } }],
  },
  getDelivery: {
    method: "GET",
    path: "/v1/projects/{project_id}/webhooks/{webhook_id}/deliveries/{delivery_id}",
    file: "deliveries/log/get",
    access: "viewer",
    permission: "deliveries:read",
    uses: [can.chargeReads, { tables: { webhooks: ["GetItem"], deliveries: ["Query"] } }],
  },
  redeliver: {
    method: "POST",
    path: "/v1/projects/{project_id}/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver",
    file: "deliveries/log/redeliver",
    access: "admin",
    permission: "deliveries:write",
    throttle: { requestsPerSecond: 5, burst: 20 },
    uses: [can.sendDeliveries, { tables: { deliveries: ["GetItem"] } }],
  },
  recoverDeliveries: {
    method: "POST",
    path: "/v1/projects/{project_id}/webhooks/{webhook_id}/recover",
    file: "deliveries/log/recover",
    access: "admin",
    permission: "deliveries:write",
    reserves: "recover",
    timeoutSeconds: 28,
    throttle: { requestsPerSecond: 3, burst: 10 },
    uses: [can.sendDeliveries, { tables: { deliveries: ["Query"] } }],
  },
  listAuditEvents: {
    method: "GET",
    path: "/v1/audit-events",
    file: "identity/audit/list",
    access: "user",
    permission: "audit:read",
    uses: [can.chargeReads, { tables: { auditEvents: ["Query"] } }],
  },
  listProjectAuditEvents: {
    method: "GET",
    path: "/v1/projects/{project_id}/audit-events",
    file: "identity/audit/list-of-project",
    access: "admin",
    permission: "audit:read",
    uses: [can.chargeReads, { tables: { auditEvents: ["Query"] } }],
  },
  createServiceAccount: {
    method: "POST",
    path: "/v1/projects/{project_id}/service-accounts",
    file: "identity/service-accounts/create",
    access: "admin_session",
    permission: "none",
    repeatReturns: "record",
    credentialsPerMinutePerUser,
    uses: [
      {
        tables: { projects: ["PutItem"], serviceAccounts: ["PutItem", "UpdateItem"], webhooks: ["GetItem"] },
        writesOnly: serviceAccountMembers,
      },
    ],
  },
  listMembers: {
    method: "GET",
    path: "/v1/projects/{project_id}/members",
    file: "identity/members/list-of-project",
    access: "viewer",
    permission: "projects:read",
    uses: [can.chargeReads, { tables: { memberVersions: ["Query"], projects: ["BatchGetItem"] } }],
  },
  listServiceAccounts: {
    method: "GET",
    path: "/v1/projects/{project_id}/service-accounts",
    file: "identity/service-accounts/list",
    access: "admin",
    permission: "service-accounts:read",
    uses: [{ tables: { serviceAccounts: ["Query"] } }],
  },
  deleteServiceAccount: {
    method: "DELETE",
    path: "/v1/projects/{project_id}/service-accounts/{service_account_id}",
    file: "identity/service-accounts/delete",
    access: "admin",
    permission: "service-accounts:write",
    timeoutSeconds: 28,
    // A hundred keys are deleted, in about 25 calls one after the other.
    throttle: { requestsPerSecond: 5, burst: 20 },
    uses: [
      {
        tables: {
          apiKeys: ["BatchGetItem", "DeleteItem"],
          notifications: ["PutItem", "DeleteItem", "Query"],
          revocations: ["PutItem"],
          projects: ["DeleteItem"],
          serviceAccounts: ["GetItem", "UpdateItem", "DeleteItem"],
          userApiKeys: ["Query", "DeleteItem", "UpdateItem"],
        },
        writesOnly: serviceAccountMembers,
      },
    ],
  },
  createServiceAccountApiKey: {
    method: "POST",
    path: "/v1/projects/{project_id}/service-accounts/{service_account_id}/api-keys",
    file: "identity/service-accounts/create-api-key",
    settings: ["permissions"],
    access: "admin_session",
    permission: "none",
    repeatReturns: "id",
    credentialsPerMinutePerUser,
    uses: [can.createKey, { tables: { serviceAccounts: ["UpdateItem"], webhooks: ["GetItem"] } }],
  },
  listServiceAccountApiKeys: {
    method: "GET",
    path: "/v1/projects/{project_id}/service-accounts/{service_account_id}/api-keys",
    file: "identity/service-accounts/list-api-keys",
    access: "admin",
    permission: "service-accounts:read",
    uses: [can.chargeReads, can.listKeys, { tables: { serviceAccounts: ["GetItem"] } }],
  },
  updateServiceAccountApiKey: {
    method: "PATCH",
    path: "/v1/projects/{project_id}/service-accounts/{service_account_id}/api-keys/{id}",
    file: "identity/service-accounts/update-api-key",
    access: "admin",
    permission: "service-accounts:write",
    uses: [can.renameKey, { tables: { serviceAccounts: ["GetItem"], webhooks: ["GetItem"] } }],
  },
  rollServiceAccountApiKey: {
    method: "POST",
    path: "/v1/projects/{project_id}/service-accounts/{service_account_id}/api-keys/{id}/roll",
    file: "identity/service-accounts/roll-api-key",
    access: "admin_session",
    permission: "none",
    credentialsPerMinutePerUser,
    uses: [can.rollKey, { tables: { serviceAccounts: ["GetItem"], webhooks: ["GetItem"] } }],
  },
  deleteServiceAccountApiKey: {
    method: "DELETE",
    path: "/v1/projects/{project_id}/service-accounts/{service_account_id}/api-keys/{id}",
    file: "identity/service-accounts/delete-api-key",
    access: "admin",
    permission: "service-accounts:write",
    uses: [can.deleteKey, { tables: { serviceAccounts: ["GetItem"] } }],
  },
  createTrustedWorkflow: {
    method: "POST",
    path: "/v1/projects/{project_id}/trusted-workflows",
    file: "identity/trusted-workflows/create",
    access: "admin_session",
    permission: "none",
    settings: ["workflowIssuers", "permissions"],
    repeatReturns: "record",
    credentialsPerMinutePerUser,
    uses: [{ tables: { trustedWorkflows: ["PutItem", "UpdateItem"], webhooks: ["GetItem"] } }],
  },
  listTrustedWorkflows: {
    method: "GET",
    path: "/v1/projects/{project_id}/trusted-workflows",
    file: "identity/trusted-workflows/list",
    access: "admin_session",
    permission: "none",
    uses: [{ tables: { trustedWorkflows: ["Query"] } }],
  },
  deleteTrustedWorkflow: {
    method: "DELETE",
    path: "/v1/projects/{project_id}/trusted-workflows/{trusted_workflow_id}",
    file: "identity/trusted-workflows/delete",
    access: "admin_session",
    permission: "none",
    uses: [{ tables: { trustedWorkflows: ["GetItem", "DeleteItem", "UpdateItem"], revocations: ["PutItem"] } }],
  },
} as const satisfies Record<string, EndpointFields & { uses?: readonly Grants[] }>;

export type OperationId = keyof typeof endpoints;

import type { EndpointRow } from "./endpoints.ts";

/*
 * Routes of the same API in the form of another protocol: not below /v1, without the envelope `data`, and not in the
 * OpenAPI document. Route, Lambda, authorizer and grants follow from these rows as from those of endpoints. Data only.
 */

/** Where a client learns from which authorization server its tokens come (RFC 9728). */
export const RESOURCE_METADATA_PATH = "/.well-known/oauth-protected-resource";

export const PUBLIC_KEYS_PATH = "/.well-known/http-message-signatures-directory";

export const protocols = {
  /** Model Context Protocol. Calls the API as its caller, and nothing else: it has no grants. */
  serveMcp: {
    method: "POST",
    path: "/mcp",
    file: "assistants/serve-mcp",
    access: "user",
    permission: "none",
    timeoutSeconds: 28,
    settings: ["events"],
    uses: {},
  },
  /**
   * What `events/subscribe` and `events/unsubscribe` of `POST /mcp` request. The first sends a challenge to the
   * callback.
   */
  subscribe: {
    method: "POST",
    path: "/v1/projects/{project_id}/subscriptions",
    file: "webhooks/subscription/subscribe",
    access: "viewer",
    permission: "events:read",
    timeoutSeconds: 28,
    throttle: { requestsPerSecond: 5, burst: 20 },
    settings: ["events"],
    uses: {
      tables: {
        projects: ["GetItem"],
        userApiKeys: ["GetItem"],
        apiKeys: ["BatchGetItem"],
        webhooks: ["GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"],
        webhookSecrets: ["PutItem", "UpdateItem", "DeleteItem"],
        notifications: ["DeleteItem"],
        requestBudgets: ["UpdateItem"],
        auditEvents: ["PutItem"],
      },
    },
  },
  getResourceMetadata: {
    method: "GET",
    path: RESOURCE_METADATA_PATH,
    file: "assistants/get-resource-metadata",
    access: "anyone",
    permission: "none",
    settings: ["credentials"],
    uses: {},
  },
  /** Public keys of a project (draft-meunier-webbotauth-httpsig-directory). */
  getPublicKeys: {
    method: "GET",
    path: PUBLIC_KEYS_PATH,
    file: "webhooks/receiver/get-public-keys",
    access: "anyone",
    permission: "none",
    uses: { reads: ["signatureSecret"] },
  },
} as const satisfies Record<string, Omit<EndpointRow, "id">>;

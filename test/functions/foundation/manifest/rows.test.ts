import { ciSystems } from "../../../../functions/foundation/manifest/ci-systems.ts";
import { endpointRows, routeRows } from "../../../../functions/foundation/manifest/function-rows.ts";
import {
  type GatewayResponseRow,
  gatewayResponses,
  gatewayResponseTemplate,
  methodNotAllowed,
} from "../../../../functions/foundation/manifest/gateway-responses.ts";
import { METRICS_NAMESPACE, type MetricRow, metrics } from "../../../../functions/foundation/manifest/metrics.ts";
import { workflowPermissions } from "../../../../functions/foundation/manifest/permissions.ts";
import { cors, securityHeaders } from "../../../../functions/foundation/manifest/response-headers.ts";

/*
 * The values of rows, as literals: other tests derive their expectations from these, so only this id detects an unintended
 * change. When you change one on purpose, change it here too. Tables, queues, topics and workers are literals in test/lib.
 */

test("each route has its handler, access, permission, timeout and limits", () => {
  const table = routeRows.map(
    ({ method, path, id, access, permission, timeoutSeconds, throttle, ...limits }) =>
      `${method} ${path} -> ${id}, ${access}, ${permission}${timeoutSeconds === undefined ? "" : `, ${timeoutSeconds} s`}` +
      (throttle ? `, ${throttle.requestsPerSecond}/s, burst ${throttle.burst}` : "") +
      (limits.apiKeysPerMinutePerAddress ? `, ${limits.apiKeysPerMinutePerAddress} keys/min per address` : "") +
      (limits.credentialsPerMinutePerUser ? `, ${limits.credentialsPerMinutePerUser}/min per user` : ""),
  );
  const webhook = "/v1/projects/{project_id}/webhooks/{webhook_id}";
  const accounts = "/v1/projects/{project_id}/service-accounts";
  const accountKeys = `${accounts}/{service_account_id}/api-keys`;
  expect(table).toEqual([
    "POST /v1/api-keys -> createApiKey, session, none, 120/min per user",
    "GET /v1/api-keys -> listApiKeys, user, keys:read",
    "GET /v1/api-keys/current -> getCurrentCredential, user, none",
    "DELETE /v1/api-keys/{id} -> deleteApiKey, user, keys:write",
    "PATCH /v1/api-keys/{id} -> updateApiKey, user, keys:write",
    "POST /v1/api-keys/{id}/roll -> rollApiKey, session, none, 120/min per user",
    "POST /v1/credentials/revoke -> revokeCredentials, anyone, none, 28 s, 1000 keys/min per address",
    "POST /v1/sign-ins -> requestSignIn, anyone, none",
    "PATCH /v1/sign-ins -> decideSignIn, session, none",
    "GET /v1/projects -> listProjects, user, projects:read",
    "GET /v1/projects/{project_id}/events -> listEvents, viewer, events:read",
    "GET /v1/projects/{project_id}/deliveries -> listProjectDeliveries, viewer, deliveries:read",
    "POST /v1/projects/{project_id}/webhooks -> createWebhook, admin, webhooks:write",
    "GET /v1/projects/{project_id}/webhooks -> listWebhooks, viewer, webhooks:read",
    `DELETE ${webhook} -> deleteWebhook, admin, webhooks:write`,
    `GET ${webhook} -> getWebhook, viewer, webhooks:read`,
    `PATCH ${webhook} -> updateWebhook, admin, webhooks:write`,
    `POST ${webhook}/rotate-secret -> rotateWebhookSecret, admin, webhook-secrets:write`,
    `GET ${webhook}/stats -> getWebhookStats, viewer, deliveries:read`,
    `POST ${webhook}/test -> sendTestDelivery, admin, deliveries:write, 5/s, burst 20`,
    `POST ${webhook}/certify -> certifyWebhook, admin, deliveries:write, 5/s, burst 20`,
    `GET ${webhook}/certifications/{certification_id} -> getCertification, viewer, deliveries:read`,
    `GET ${webhook}/deliveries -> listDeliveries, viewer, deliveries:read`,
    `GET ${webhook}/deliveries/{delivery_id} -> getDelivery, viewer, deliveries:read`,
    `POST ${webhook}/deliveries/{delivery_id}/redeliver -> redeliver, admin, deliveries:write, 5/s, burst 20`,
    `POST ${webhook}/recover -> recoverDeliveries, admin, deliveries:write, 28 s, 3/s, burst 10`,
    "GET /v1/audit-events -> listAuditEvents, user, audit:read",
    "GET /v1/projects/{project_id}/audit-events -> listProjectAuditEvents, admin, audit:read",
    `POST ${accounts} -> createServiceAccount, admin_session, none, 120/min per user`,
    "GET /v1/projects/{project_id}/members -> listMembers, viewer, projects:read",
    `GET ${accounts} -> listServiceAccounts, admin, service-accounts:read`,
    `DELETE ${accounts}/{service_account_id} -> deleteServiceAccount, admin, service-accounts:write, 28 s, 5/s, burst 20`,
    `POST ${accountKeys} -> createServiceAccountApiKey, admin_session, none, 120/min per user`,
    `GET ${accountKeys} -> listServiceAccountApiKeys, admin, service-accounts:read`,
    `PATCH ${accountKeys}/{id} -> updateServiceAccountApiKey, admin, service-accounts:write`,
    `POST ${accountKeys}/{id}/roll -> rollServiceAccountApiKey, admin_session, none, 120/min per user`,
    `DELETE ${accountKeys}/{id} -> deleteServiceAccountApiKey, admin, service-accounts:write`,
    "POST /v1/projects/{project_id}/trusted-workflows -> createTrustedWorkflow, admin_session, none, 120/min per user",
    "GET /v1/projects/{project_id}/trusted-workflows -> listTrustedWorkflows, admin_session, none",
    "DELETE /v1/projects/{project_id}/trusted-workflows/{trusted_workflow_id} -> deleteTrustedWorkflow, admin_session, none",
    "POST /mcp -> serveMcp, user, none, 28 s",
    "POST /v1/projects/{project_id}/subscriptions -> subscribe, viewer, events:read, 28 s, 5/s, burst 20",
    "GET /.well-known/oauth-protected-resource -> getResourceMetadata, anyone, none",
    "GET /.well-known/http-message-signatures-directory -> getPublicKeys, anyone, none",
  ]);
});

test("a credential without a person needs a permission for whatever it can call in a project", () => {
  const inProjects = endpointRows.filter(({ access }) => access === "viewer" || access === "admin");
  expect(inProjects.length).toBeGreaterThan(5);
  expect(inProjects.filter(({ permission }) => permission === "none")).toEqual([]);
});

test("a workflow can be given what there is in a project, and nothing of API keys", () => {
  expect(workflowPermissions).toEqual([
    "projects:read",
    "webhooks:read",
    "webhooks:write",
    "deliveries:read",
    "deliveries:write",
    "events:read",
  ]);
});

test("the public CI systems have their issuers and the addresses of their keys", () => {
  expect(ciSystems).toEqual({
    github: { issuer: "https://token.actions.githubusercontent.com", jwksPath: "/.well-known/jwks" },
    gitlab: { issuer: "https://gitlab.com", jwksPath: "/oauth/discovery/keys" },
  });
});

test("the endpoints that create something accept an Idempotency-Key", () => {
  const repeatable = endpointRows.filter(({ repeatReturns }) => repeatReturns);
  expect(repeatable.map(({ id, repeatReturns }) => `${id}: ${repeatReturns}`)).toEqual([
    "createApiKey: id",
    "createWebhook: id",
    "createServiceAccount: record",
    "createServiceAccountApiKey: id",
    "createTrustedWorkflow: record",
  ]);
});

test("each gateway response has its status, code and headers", () => {
  const retryable = [503, "service_unavailable", { "Retry-After": "1" }];
  const metadata = 'resource_metadata="$api/.well-known/oauth-protected-resource"';
  const unknownRoute = [404, "not_found", undefined];
  const rows = Object.entries<GatewayResponseRow>({ ...gatewayResponses, methodNotAllowed });
  expect(Object.fromEntries(rows.map(([type, { status, code, headers }]) => [type, [status, code, headers]]))).toEqual({
    UNAUTHORIZED: [401, "unauthorized", { "WWW-Authenticate": `Bearer realm="api", ${metadata}` }],
    ACCESS_DENIED: [
      401,
      "$context.authorizer.errorCode",
      { "WWW-Authenticate": `Bearer realm="api", error="invalid_token", ${metadata}` },
    ],
    AUTHORIZER_FAILURE: retryable,
    AUTHORIZER_CONFIGURATION_ERROR: retryable,
    MISSING_AUTHENTICATION_TOKEN: unknownRoute,
    INVALID_SIGNATURE: unknownRoute,
    RESOURCE_NOT_FOUND: unknownRoute,
    REQUEST_TOO_LARGE: [413, "payload_too_large", undefined],
    UNSUPPORTED_MEDIA_TYPE: [415, "unsupported_media_type", undefined],
    BAD_REQUEST_BODY: [400, "validation_error", undefined],
    BAD_REQUEST_PARAMETERS: [400, "validation_error", undefined],
    THROTTLED: [429, "rate_limited", { "Retry-After": "1" }],
    QUOTA_EXCEEDED: [429, "rate_limited", { "Retry-After": "60" }],
    WAF_FILTERED: [429, "rate_limited", { "Retry-After": "60" }],
    INTEGRATION_TIMEOUT: retryable,
    INTEGRATION_FAILURE: retryable,
    DEFAULT_5XX: [500, "internal_error", undefined],
    DEFAULT_4XX: [undefined, "validation_error", undefined],
    methodNotAllowed: [405, "method_not_allowed", undefined],
  });
});

test.each(Object.entries<GatewayResponseRow>({ ...gatewayResponses, methodNotAllowed }))(
  "the template of %s is JSON with code, message and request id, and uses only the expected variables",
  (_, row) => {
    const template = gatewayResponseTemplate(row);
    const { error, ...rest } = JSON.parse(template);
    expect(rest).toEqual({});
    expect(error).toEqual({ code: row.code, message: row.message, request_id: "$context.requestId" });
    const variables = template.match(/\$[\w.]+/g)?.filter((name) => name !== "$context.requestId");
    expect(variables).toEqual(
      row === gatewayResponses.ACCESS_DENIED
        ? ["$context.authorizer.errorCode", "$context.authorizer.errorMessage"]
        : [],
    );
  },
);

test("each metric has its name, unit and dimension", () => {
  expect(METRICS_NAMESPACE).toBe("DeploymentWebhooks");
  expect(metrics).toEqual<Record<keyof typeof metrics, MetricRow>>({
    attempts: { name: "Attempts", unit: "Count", dimensions: ["outcome"] },
    firstAttemptSuccess: { name: "FirstAttemptSuccess", unit: "Count" },
    eventToFirstAttempt: { name: "EventToFirstAttempt", unit: "Milliseconds" },
    deliveryLatency: { name: "DeliveryLatency", unit: "Milliseconds" },
    retries: { name: "Retries", unit: "Count" },
    exhausted: { name: "Exhausted", unit: "Count" },
    webhooksDisabled: { name: "WebhooksDisabled", unit: "Count" },
    blockedAddresses: { name: "BlockedAddresses", unit: "Count" },
    rejectedCredentials: { name: "RejectedCredentials", unit: "Count", dimensions: ["reason", "version"] },
    messagesFailed: { name: "MessagesFailed", unit: "Count" },
    failedMessageAge: { name: "FailedMessageAge", unit: "Seconds" },
    rejectedEvents: { name: "RejectedEvents", unit: "Count" },
    sweepLag: { name: "SweepLag", unit: "Seconds" },
    notificationLag: { name: "NotificationLag", unit: "Seconds" },
    redriven: { name: "Redriven", unit: "Count" },
  });
});

test("all responses have the security headers, and pages of allowed origins the CORS headers", () => {
  expect(securityHeaders).toEqual({
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Strict-Transport-Security": "max-age=63072000",
  });
  expect(cors).toEqual({
    allowedMethods: ["GET", "POST", "PATCH", "DELETE"],
    allowedHeaders: [
      "Authorization",
      "Content-Type",
      "Idempotency-Key",
      "MCP-Protocol-Version",
      "Mcp-Method",
      "Mcp-Name",
      "traceparent",
      "baggage",
      "sentry-trace",
    ],
    exposedHeaders: ["x-request-id", "Link", "Retry-After", "WWW-Authenticate"],
    maxAgeSeconds: 7200,
  });
});

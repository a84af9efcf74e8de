import { ciSystems } from "../../../functions/manifest/ci-systems.ts";
import { endpointRows } from "../../../functions/manifest/function-rows.ts";
import {
  type GatewayResponseRow,
  gatewayResponses,
  gatewayResponseTemplate,
  methodNotAllowed,
} from "../../../functions/manifest/gateway-responses.ts";
import { METRICS_NAMESPACE, type MetricRow, metrics } from "../../../functions/manifest/metrics.ts";
import { workflowPermissions } from "../../../functions/manifest/permissions.ts";
import {
  deadLetterMaxMessageBytes,
  deadLetterName,
  type QueueRow,
  queues,
  retentionSeconds,
} from "../../../functions/manifest/queues.ts";
import { cors, securityHeaders } from "../../../functions/manifest/response-headers.ts";
import { type TableRow, tables } from "../../../functions/manifest/tables.ts";
import { type TopicRow, topics } from "../../../functions/manifest/topics.ts";
import { type Trigger, type WorkerRow, workers } from "../../../functions/manifest/workers.ts";

/*
 * The values of all rows, as literals. Other tests derive their expectations from the rows, so only this file detects
 * an unintended change of a row. When you change a row on purpose, change it here too.
 */

const workerRows: readonly WorkerRow[] = workers;

test("each endpoint has its route, handler, access, permission, timeout and limits", () => {
  const table = endpointRows.map(
    ({ method, path, file, access, permission, timeoutSeconds, throttle, ...limits }) =>
      `${method} ${path} -> ${file}, ${access}, ${permission}${timeoutSeconds === undefined ? "" : `, ${timeoutSeconds} s`}` +
      (throttle ? `, ${throttle.requestsPerSecond}/s, burst ${throttle.burst}` : "") +
      (limits.apiKeysPerMinutePerAddress ? `, ${limits.apiKeysPerMinutePerAddress} keys/min per address` : "") +
      (limits.credentialsPerMinutePerUser ? `, ${limits.credentialsPerMinutePerUser}/min per user` : ""),
  );
  const webhook = "/v1/projects/{project_id}/webhooks/{webhook_id}";
  const accounts = "/v1/projects/{project_id}/service-accounts";
  const accountKeys = `${accounts}/{service_account_id}/api-keys`;
  expect(table).toEqual([
    "POST /v1/api-keys -> api-keys/create, session, none, 120/min per user",
    "GET /v1/api-keys -> api-keys/list, user, keys:read",
    "GET /v1/api-keys/current -> api-keys/get-current, user, none",
    "DELETE /v1/api-keys/{id} -> api-keys/delete, user, keys:write",
    "PATCH /v1/api-keys/{id} -> api-keys/update, user, keys:write",
    "POST /v1/api-keys/{id}/roll -> api-keys/roll, session, none, 120/min per user",
    "POST /v1/credentials/revoke -> api-keys/revoke-leaked, anyone, none, 28 s, 1000 keys/min per address",
    "GET /v1/projects -> projects/list, user, projects:read",
    "GET /v1/projects/{project_id}/events -> deliveries/list-events, viewer, events:read",
    "GET /v1/projects/{project_id}/deliveries -> deliveries/list-of-project, viewer, deliveries:read",
    "POST /v1/projects/{project_id}/webhooks -> webhooks/create, admin, webhooks:write",
    "GET /v1/projects/{project_id}/webhooks -> webhooks/list, viewer, webhooks:read",
    `DELETE ${webhook} -> webhooks/delete, admin, webhooks:write`,
    `GET ${webhook} -> webhooks/get, viewer, webhooks:read`,
    `PATCH ${webhook} -> webhooks/update, admin, webhooks:write`,
    `POST ${webhook}/rotate-secret -> webhooks/rotate-secret, admin, webhook-secrets:write`,
    `GET ${webhook}/stats -> deliveries/get-stats, viewer, deliveries:read`,
    `POST ${webhook}/test -> deliveries/send-test-delivery, admin, deliveries:write, 5/s, burst 20`,
    `POST ${webhook}/certify -> certifications/create, admin, deliveries:write, 5/s, burst 20`,
    `GET ${webhook}/certifications/{certification_id} -> certifications/get, viewer, deliveries:read`,
    `GET ${webhook}/deliveries -> deliveries/list, viewer, deliveries:read`,
    `GET ${webhook}/deliveries/{delivery_id} -> deliveries/get, viewer, deliveries:read`,
    `POST ${webhook}/deliveries/{delivery_id}/redeliver -> deliveries/redeliver, admin, deliveries:write, 5/s, burst 20`,
    `POST ${webhook}/recover -> deliveries/recover, admin, deliveries:write, 28 s, 3/s, burst 10`,
    "GET /v1/audit-events -> audit/list, user, audit:read",
    "GET /v1/projects/{project_id}/audit-events -> audit/list-of-project, admin, audit:read",
    `POST ${accounts} -> service-accounts/create, admin_session, none, 120/min per user`,
    `GET ${accounts} -> service-accounts/list, admin, service-accounts:read`,
    `DELETE ${accounts}/{service_account_id} -> service-accounts/delete, admin, service-accounts:write, 28 s, 5/s, burst 20`,
    `POST ${accountKeys} -> service-accounts/create-api-key, admin_session, none, 120/min per user`,
    `GET ${accountKeys} -> service-accounts/list-api-keys, admin, service-accounts:read`,
    `PATCH ${accountKeys}/{id} -> service-accounts/update-api-key, admin, service-accounts:write`,
    `POST ${accountKeys}/{id}/roll -> service-accounts/roll-api-key, admin_session, none, 120/min per user`,
    `DELETE ${accountKeys}/{id} -> service-accounts/delete-api-key, admin, service-accounts:write`,
    "POST /v1/projects/{project_id}/trusted-workflows -> trusted-workflows/create, admin_session, none, 120/min per user",
    "GET /v1/projects/{project_id}/trusted-workflows -> trusted-workflows/list, admin_session, none",
    "DELETE /v1/projects/{project_id}/trusted-workflows/{trusted_workflow_id} -> trusted-workflows/delete, admin_session, none",
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
  expect(repeatable.map(({ file, repeatReturns }) => `${file}: ${repeatReturns}`)).toEqual([
    "api-keys/create: id",
    "webhooks/create: id",
    "service-accounts/create: record",
    "service-accounts/create-api-key: id",
    "trusted-workflows/create: record",
  ]);
});

test("each table has its keys, indexes and ttl", () => {
  expect(tables).toEqual<Record<keyof typeof tables, TableRow>>({
    apiKeys: { env: "API_KEYS_TABLE", name: "api-keys", partitionKey: "key_hash", ttl: "delete_after" },
    userApiKeys: { env: "USER_API_KEYS_TABLE", name: "user-api-keys", partitionKey: "user_id", sortKey: "id" },
    projects: { env: "PROJECTS_TABLE", name: "projects", partitionKey: "user_id", sortKey: "project_id" },
    memberVersions: {
      env: "MEMBER_VERSIONS_TABLE",
      name: "member-versions",
      partitionKey: "shard",
      sortKey: "member",
      ttl: "delete_after",
    },
    webhooks: { env: "WEBHOOKS_TABLE", name: "webhooks", partitionKey: "project_id", sortKey: "id" },
    webhookSecrets: {
      env: "WEBHOOK_SECRETS_TABLE",
      name: "webhook-secrets",
      partitionKey: "webhook_id",
      isSecret: true,
    },
    events: { env: "EVENTS_TABLE", name: "events", partitionKey: "project_id", sortKey: "id", ttl: "expires_at" },
    deliveries: {
      env: "DELIVERIES_TABLE",
      name: "deliveries",
      partitionKey: "webhook_id",
      sortKey: "id",
      ttl: "expires_at",
    },
    backlog: {
      env: "BACKLOG_TABLE",
      name: "backlog",
      partitionKey: "line",
      sortKey: "entry",
      indexes: [{ name: "due", partitionKey: { name: "due_shard", type: "N" }, sortKey: "due" }],
    },
    requestBudgets: {
      env: "REQUEST_BUDGETS_TABLE",
      name: "request-budgets",
      partitionKey: "project_id",
      sortKey: "window",
      ttl: "expires_at",
    },
    serviceAccounts: {
      env: "SERVICE_ACCOUNTS_TABLE",
      name: "service-accounts",
      partitionKey: "project_id",
      sortKey: "id",
    },
    revocations: {
      env: "REVOCATIONS_TABLE",
      name: "revocations",
      partitionKey: "day",
      sortKey: "id",
      ttl: "expires_at",
    },
    idempotencyKeys: {
      env: "IDEMPOTENCY_KEYS_TABLE",
      name: "idempotency-keys",
      partitionKey: "user_id",
      sortKey: "key",
      ttl: "expires_at",
    },
    auditEvents: {
      env: "AUDIT_EVENTS_TABLE",
      name: "audit-events",
      partitionKey: "scope",
      sortKey: "id",
      ttl: "expires_at",
    },
    notifications: {
      env: "NOTIFICATIONS_TABLE",
      name: "notifications",
      partitionKey: "owner",
      sortKey: "due",
      indexes: [{ name: "due", partitionKey: { name: "due_shard", type: "N" }, sortKey: "due_owner" }],
    },
    trustedWorkflows: {
      env: "TRUSTED_WORKFLOWS_TABLE",
      name: "trusted-workflows",
      partitionKey: "listed_under",
      sortKey: "entry",
    },
  });
});

test("each queue has its visibility timeout, maxReceives, message size and retention", () => {
  const row = { visibilitySeconds: 360, maxReceives: 100, maxMessageBytes: 262_144 };
  expect(queues).toEqual<Record<keyof typeof queues, QueueRow>>({
    events: {
      env: "EVENTS_QUEUE_URL",
      deadLetterEnv: "EVENTS_DLQ_URL",
      name: "deployment-events",
      ...row,
      visibilitySeconds: 180,
    },
    deliveries: { env: "DELIVERIES_QUEUE_URL", deadLetterEnv: "DELIVERIES_DLQ_URL", name: "deliveries", ...row },
    slowDeliveries: {
      env: "SLOW_DELIVERIES_QUEUE_URL",
      deadLetterEnv: "SLOW_DELIVERIES_DLQ_URL",
      name: "deliveries-slow",
      ...row,
    },
  });
  expect(Object.values(queues).map(deadLetterName)).toEqual([
    "deployment-events-dlq",
    "deliveries-dlq",
    "deliveries-slow-dlq",
  ]);
  expect({ retentionSeconds, deadLetterMaxMessageBytes }).toEqual({
    retentionSeconds: 1_209_600,
    deadLetterMaxMessageBytes: 1_048_576,
  });
});

test("each topic has its name", () => {
  expect(topics).toEqual<Record<keyof typeof topics, TopicRow>>({
    notifications: { env: "NOTIFICATIONS_TOPIC_ARN", name: "notifications" },
  });
});

test("each worker has its trigger, timeout and memory", () => {
  const table = workerRows.map(({ file, trigger, timeoutSeconds, memoryMb }) => ({
    file,
    trigger,
    limits: `${timeoutSeconds} s, ${memoryMb} MB`,
  }));
  expect(table).toEqual<{ file: string; trigger: Trigger; limits: string }[]>([
    { file: "auth/authorizer", trigger: { kind: "authorizer" }, limits: "10 s, 512 MB" },
    { file: "credentials/verify", trigger: { kind: "invoke" }, limits: "10 s, 512 MB" },
    { file: "credentials/revocations", trigger: { kind: "invoke" }, limits: "10 s, 256 MB" },
    {
      file: "deliveries/fan-out",
      trigger: { kind: "queue", queue: "events", batchSize: 10, maxConcurrency: 50 },
      limits: "30 s, 512 MB",
    },
    {
      file: "attempts/send",
      trigger: { kind: "queue", queue: "deliveries", batchSize: 10, maxConcurrency: 300 },
      limits: "60 s, 256 MB",
    },
    {
      file: "attempts/send-slow",
      trigger: { kind: "queue", queue: "slowDeliveries", batchSize: 10, maxConcurrency: 100 },
      limits: "60 s, 256 MB",
    },
    { file: "deliveries/sweep", trigger: { kind: "everyMinutes", minutes: 1 }, limits: "55 s, 512 MB" },
    {
      file: "deliveries/publish-notifications",
      trigger: { kind: "everyMinutes", minutes: 1 },
      limits: "55 s, 256 MB",
    },
    { file: "deliveries/replay", trigger: { kind: "invoke" }, limits: "55 s, 512 MB" },
    { file: "projects/upsert-member", trigger: { kind: "invoke" }, limits: "10 s, 256 MB" },
    { file: "projects/remove-member", trigger: { kind: "invoke" }, limits: "10 s, 256 MB" },
    { file: "projects/sync-members", trigger: { kind: "invoke" }, limits: "55 s, 512 MB" },
    { file: "projects/suspend", trigger: { kind: "invoke" }, limits: "30 s, 256 MB" },
    { file: "api-keys/provision", trigger: { kind: "invoke" }, limits: "10 s, 256 MB" },
    { file: "api-keys/import", trigger: { kind: "invoke" }, limits: "55 s, 512 MB" },
    { file: "api-keys/revoke-all", trigger: { kind: "invoke" }, limits: "55 s, 256 MB" },
    { file: "webhooks/import", trigger: { kind: "invoke" }, limits: "55 s, 512 MB" },
  ]);
});

test("the visibility timeout of a queue is at least six times the timeout of its consumer", () => {
  const consumers = workerRows.flatMap(({ trigger, timeoutSeconds }) =>
    trigger.kind === "queue" ? [{ queue: trigger.queue, timeoutSeconds }] : [],
  );
  expect(consumers.map(({ queue }) => queue).sort()).toEqual(["deliveries", "events", "slowDeliveries"]);
  for (const { queue, timeoutSeconds } of consumers) {
    expect(queues[queue].visibilitySeconds).toBeGreaterThanOrEqual(6 * timeoutSeconds);
  }
});

test("each gateway response has its status, code and headers", () => {
  const retryable = [503, "service_unavailable", { "Retry-After": "1" }];
  const unknownRoute = [404, "not_found", undefined];
  const rows = Object.entries<GatewayResponseRow>({ ...gatewayResponses, methodNotAllowed });
  expect(Object.fromEntries(rows.map(([type, { status, code, headers }]) => [type, [status, code, headers]]))).toEqual({
    UNAUTHORIZED: [401, "unauthorized", { "WWW-Authenticate": 'Bearer realm="api"' }],
    ACCESS_DENIED: [
      401,
      "$context.authorizer.errorCode",
      { "WWW-Authenticate": 'Bearer realm="api", error="invalid_token"' },
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
    allowedHeaders: ["Authorization", "Content-Type", "Idempotency-Key"],
    exposedHeaders: ["x-request-id", "Link", "Retry-After", "WWW-Authenticate"],
    maxAgeSeconds: 7200,
  });
});

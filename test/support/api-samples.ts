/* Samples of what the API returns, in the states that clients show differently. The service's own tests use real responses. */

export const now = Date.parse("2026-11-21T12:00:00Z");
export const at = new Date(now).toISOString();
export const projectId = "0193a000-0000-7000-8000-00000000d301";
export const webhookId = "0193b000-0000-7000-8000-00000000d301";
export const webhook = {
  ...{ id: webhookId, project_id: projectId, url: "https://example.com/hook", events: ["deploy.failed"] },
  ...{ created_at: at, enabled: true, disabled_at: null, disabled_reason: null },
  health: { state: "healthy", since: null, last_success_at: null, last_error: null, next_probe_at: null },
};
export const deliveryOf = (number: number, status = "succeeded") => ({
  ...{ id: `0193${String(number).padStart(4, "0")}-0000-7000-8000-00000000d301`, webhook_id: webhookId, status },
  ...{ event: "deploy.failed", deployment_id: null, test: false, created_at: at, attempt_count: 1 },
  ...{ waiting_for: null, next_attempt_at: null, last_attempt: null },
});
export const attempt = {
  ...{ number: 1, at, duration_ms: 5, request_count: 1, status_code: 200, error_code: null, hint: null },
  ...{ response_excerpt: null, trigger: "schedule" },
};

export const ago = (seconds: number) => new Date(now - seconds * 1_000).toISOString();
export const deploymentId = "0193d000-0000-7000-8000-00000000d301";
export const otherProjectId = "0193a000-0000-7000-8000-00000000d302";
export const hint = "The receiver did not respond in time.";
export const failed = { ...attempt, error_code: "timeout", status_code: null, hint, duration_ms: 15_000 };
export const listed = { ...failed, at: ago(60) };
export const unhealthy = {
  state: "failing",
  since: ago(3_600),
  last_success_at: ago(7_200),
  last_error: failed,
  next_probe_at: null,
};
export const certified = { id: "c-1", finished_at: ago(600), passed: true };
export const webhooks = [
  { ...webhook, name: "Chat", events: ["deploy.started", "deploy.succeeded", "deploy.failed"] },
  { ...webhook, id: "w-2", health: unhealthy, last_certification: certified },
  ...["gone", "failing", "manual"].map((reason) => ({
    ...{ ...webhook, id: reason, enabled: false, disabled_reason: reason },
  })),
  ...["new", "slow", "probing"].map((state) => ({ ...webhook, id: state, health: { ...webhook.health, state } })),
  { ...webhook, id: "w-6", enabled: false },
  { ...webhook, id: "w-4", mode: "shadow", last_certification: { ...certified, passed: false } },
  { ...webhook, id: "w-5", suspended_at: ago(60), health: { ...webhook.health, state: "disabled" } },
];
export const bucket = { start: ago(7_200), attempts: 0, succeeded: 0, p50_ms: null, p95_ms: null };
export const stats = {
  ...{ window: "24h", since: ago(7_200), until: at, bucket_seconds: 3_600, covered_since: ago(7_200) },
  ...{ deliveries_read: 3, complete: true, attempts: 5, succeeded: 3, success_rate: 0.6 },
  response_ms: { p50: 120, p95: 15_000 },
  by_event: [{ event: "deploy.failed", attempts: 5, succeeded: 3 }],
  by_error: [{ error_code: "timeout", attempts: 2 }],
  buckets: [bucket, { ...bucket, start: ago(3_600), attempts: 5, succeeded: 3, p50_ms: 120, p95_ms: 15_000 }],
};
export const later = (seconds: number) => new Date(now + seconds * 1_000).toISOString();
export const deliveries = [
  { ...deliveryOf(9, "pending"), last_attempt: listed, waiting_for: "schedule", next_attempt_at: later(300) },
  { ...deliveryOf(8, "pending"), waiting_for: "busy", next_attempt_at: later(5), attempt_count: 0 },
  { ...deliveryOf(4, "pending"), waiting_for: "recovery", next_attempt_at: at, last_attempt: listed },
  { ...deliveryOf(3, "pending"), waiting_for: null, next_attempt_at: at },
  { ...deliveryOf(2, "pending"), waiting_for: "schedule", next_attempt_at: later(300), last_attempt: attempt },
  ...[deliveryOf(1, "cancelled"), deliveryOf(0, "shadowed")],
  { ...deliveryOf(7, "held"), waiting_for: "suspended", deployment_id: deploymentId },
  { ...deliveryOf(6, "failed"), last_attempt: { ...failed, error_code: "http_status", status_code: 500 } },
  { ...deliveryOf(5), last_attempt: attempt, test: true, webhook_id: "deleted" },
];
export const newest = { ...deliveries[0], id: deliveryOf(9).id };
export const check = {
  check: "valid",
  expected: "2xx",
  status_code: 204,
  error_code: null,
  duration_ms: 3,
  hint: null,
};
export const report = {
  id: "c-1",
  webhook_id: webhookId,
  created_at: ago(60),
  finished_at: null,
  passed: null,
  checks: [],
};
export const forged = { check: "forged_signature", expected: "4xx", status_code: null, error_code: "timeout" };
export const checks = [
  { ...check, passed: true },
  { ...forged, duration_ms: null, passed: false, hint },
  { ...forged, check: "stale_timestamp", duration_ms: null, passed: false, hint: null },
];
export const events = [
  { event: "deploy.started", deployment_id: deploymentId, data: { environment: "production" } },
  { event: "deploy.succeeded", deployment_id: deploymentId, data: { url: "https://shop.test" } },
  { event: "deploy.failed", deployment_id: otherProjectId, data: { reason: "no memory" } },
].map(({ data, ...event }, index) => ({
  ...{ id: `e-${index}`, ...event, timestamp: ago(600 - index * 60) },
  ...{ received_at: ago(300 - index * 100), payload: { ...event, data } },
}));
export const key = {
  ...{ id: "k-1", name: "ci", key_prefix: "svc_12345678", created_at: ago(86_400), last_used_at: ago(60) },
  ...{ last_used_ip: "192.0.2.1", last_used_user_agent: "curl/8", expires_at: later(86_400) },
};
export const keys = [
  {
    ...key,
    permissions: ["projects:read", "webhooks:read", "deliveries:read", "events:read"],
    project_ids: [projectId],
  },
  { ...key, id: "k-2", name: "old", permissions: ["keys:read"], project_ids: ["p-9"], expires_at: ago(1) },
  { ...key, id: "k-3", name: "own", expires_at: undefined, last_used_at: null },
];
export const account = {
  id: "0193c000-0000-7000-8000-00000000d301",
  project_id: projectId,
  name: "deploy job",
  role: "viewer",
  created_at: at,
  created_by: "ann",
};
export const workflow = {
  ...{ id: "t-1", project_id: projectId, name: "main", issuer: "github", repository_id: "42", created_at: at },
  ...{ ref: "refs/heads/main", environment: null, job_workflow_ref: null, event_name: null, repository_owner_id: null },
  permissions: ["webhooks:read", "deliveries:read"],
};
export const person = { type: "jwt", user_id: "ann", address: "192.0.2.1", user_agent: "curl/8", request_id: "r-1" };
export const audit = [
  { id: "a-3", at, action: "webhook.updated", actor: person, resource_id: "w", details: { url: 1, events: 2 } },
  {
    id: "a-2",
    at,
    action: "webhook.disabled",
    actor: { type: "system" },
    resource_id: "w",
    details: { reason: "gone" },
  },
  ...[
    { type: "workflow", user_id: "workflow:t-1", repository: "acme/shop", ref: "refs/heads/main", run_id: "7" },
    { type: "api_key", user_id: "ann", credential_id: "k-1" },
    ...[{ type: "anonymous", address: "192.0.2.1" }, { type: "platform" }],
  ].map((actor) => ({
    ...{ id: actor.type, at, action: "webhook.created", actor, resource_id: "w", details: { name: "Chat" } },
  })),
];

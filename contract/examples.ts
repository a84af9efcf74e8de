import { createHash } from "node:crypto";
import { createCertification, type ProbeResults } from "../functions/deliveries/certification/certification.ts";
import { toResponse as toCertificationResponse } from "../functions/deliveries/certification/certification-presenter.ts";
import { toRecord } from "../functions/deliveries/feed/event-presenter.ts";
import { type Attempt, createDelivery } from "../functions/deliveries/line/delivery.ts";
import * as deliveries from "../functions/deliveries/log/delivery-presenter.ts";
import { statsOf, statsRange } from "../functions/deliveries/log/delivery-stats.ts";
import type { Project } from "../functions/foundation/access/member.ts";
import { createDeploymentEvent, eventIdOf, sequenceOf } from "../functions/foundation/events/deployment-event.ts";
import { sampleFields, sampleWebhookEvent } from "../functions/foundation/events/sample-event.ts";
import { addSeconds } from "../functions/foundation/platform/time.ts";
import { timeOrderedUuid } from "../functions/foundation/platform/uuid.ts";
import * as audit from "../functions/foundation/records/audit-event.ts";
import * as apiKeys from "../functions/identity/api-keys/api-key.ts";
import * as serviceAccounts from "../functions/identity/service-accounts/service-account.ts";
import * as trustedWorkflows from "../functions/identity/trusted-workflows/trusted-workflow.ts";
import { signatureHeaders } from "../functions/webhooks/receiver/signature.ts";
import { healthOf } from "../functions/webhooks/webhook/health.ts";
import * as webhooks from "../functions/webhooks/webhook/webhook.ts";

/* Example records, produced by the code that produces the real ones. Their signatures are valid. */

const now = new Date("2026-11-21T04:04:29.027Z");

/** Replaces randomness, so that every run produces the same examples. */
const bytes = (name: string, length: number): Buffer =>
  Buffer.concat([0, 1].map((part) => createHash("sha256").update(`${name} ${part}`).digest())).subarray(0, length);

const idOf = (name: string) => timeOrderedUuid(now.getTime(), bytes(name, 16));

const project: Project = { id: idOf("project"), name: "My shop", role: "admin", created_at: now.toISOString() };

const { apiKey, key } = apiKeys.createApiKey("user", { name: "ci" }, now, bytes("api key", 48));

const { webhook, secret } = webhooks.createWebhook(
  { url: "https://hooks.example.com/deployments", events: ["deploy.succeeded", "deploy.failed"] },
  project.id,
  now,
  bytes("webhook", 48),
);

const trustInput = {
  name: "shop, main",
  issuer: "github",
  repository_id: "1296269",
  ref: "refs/heads/main",
  permissions: ["webhooks:read", "deliveries:read"],
};
const trust = trustedWorkflows.createTrustedWorkflow(
  trustInput,
  { issuer: "https://token.actions.githubusercontent.com" },
  project.id,
  now,
  bytes("trusted workflow", 16),
);

const eventOf = (event: string) => {
  const deployment_id = idOf(event);
  return createDeploymentEvent({
    ...sampleFields(event, { projectId: project.id, id: deployment_id, now }),
    deployment_id,
  });
};

const succeeded = eventOf("deploy.succeeded");

const failedAttempt: Attempt = {
  number: 1,
  at: addSeconds(now, 1),
  duration_ms: 41.2,
  status_code: 503,
  error_code: "http_status",
  response_excerpt: "upstream is restarting",
  response_headers: { "content-type": "text/plain", server: "nginx", "x-request-id": "b7ad6b7169203331" },
  trigger: "schedule",
};
const pending = createDelivery(eventOf("deploy.succeeded"), webhook, now, now);
const failing = { ...pending, attempt_count: 1, attempts: [failedAttempt], next_attempt_at: addSeconds(now, 6) };

const certification = createCertification(webhook.id, now, bytes("certification", 16));
const probeResults: ProbeResults = {
  valid: { duration_ms: 48, status_code: 204 },
  repeated: { duration_ms: 12, status_code: 204 },
  unusual_body: { duration_ms: 52, status_code: 204 },
  forged_signature: { duration_ms: 31, status_code: 401, error_code: "http_status" },
  stale_timestamp: { duration_ms: 47, status_code: 204 },
  cut_body: { duration_ms: 33, status_code: 401, error_code: "http_status" },
};
const certified = { ...certification, results: probeResults, finished_at: addSeconds(now, 1) };

const health = healthOf(
  webhook,
  { attempts: [{ at: addSeconds(now, 1), isTest: false }], isComplete: true, hasWaiting: false },
  now,
);
const succeededAttempt: Attempt = {
  number: 2,
  at: addSeconds(now, 6),
  duration_ms: 38.5,
  status_code: 200,
  trigger: "schedule",
};
const stats = statsOf(statsRange("24h", new Date(addSeconds(now, 60))), {
  deliveries: [{ event: "deploy.succeeded", attempts: [failedAttempt, succeededAttempt] }],
});

const failingWebhook = { ...webhook, failing_since: addSeconds(now, 1) };

const user = {
  type: "jwt",
  user_id: "user",
  address: "203.0.113.7",
  user_agent: "svc/1.0",
  request_id: idOf("request"),
} as const;

const auditEvent = (input: Omit<audit.AuditInput, "actor">) =>
  audit.toListItem(audit.createAuditEvent({ ...input, actor: user }, now, bytes(input.action, 16)));

export const exampleSecret = secret;

export const examples = {
  createdApiKey: apiKeys.toCreated(apiKey, key),
  listedApiKey: apiKeys.toListItem({ ...apiKey, last_used_at: addSeconds(now, 60) }),
  currentCredential: apiKeys.toCurrent(
    {
      userId: "user",
      authType: "api_key",
      keyId: apiKey.id,
      permissions: ["deliveries:read"],
      projectIds: [project.id],
      expiresAt: addSeconds(now, 90 * 86_400),
    },
    apiKey,
  ),
  keyAuditEvent: auditEvent({
    scope: "user:user",
    action: "api_key.created",
    resource_id: apiKey.id,
    details: { name: apiKey.name, key_prefix: apiKey.key_prefix },
  }),
  webhookAuditEvent: auditEvent({
    scope: `project:${project.id}`,
    action: "webhook.updated",
    resource_id: webhook.id,
    details: { changed: ["url"] },
  }),
  eventRecord: toRecord({ ...succeeded, id: eventIdOf(succeeded), received_at: addSeconds(now, 1) }),
  project,
  signIn: {
    status: "pending",
    device_code: bytes("device code", 32).toString("base64url"),
    user_code: "BCDF-GHJK",
    verification_uri: "https://console.example.com/#/sign-in",
    expires_in: 600,
    interval: 5,
  },
  shownSignIn: {
    client: "svc on build-7",
    address: "192.0.2.1",
    created_at: now.toISOString(),
    valid_until: new Date(now.getTime() + 600_000).toISOString(),
    status: "pending",
  },
  serviceAccount: serviceAccounts.toListItem(
    serviceAccounts.createServiceAccount(
      { name: "deploy", role: "viewer" },
      project.id,
      "user",
      now,
      bytes("service account", 16),
    ),
  ),
  createdWebhook: webhooks.toCreated(webhook, secret),
  listedWebhook: webhooks.toListItem(webhook, health),
  shownWebhook: webhooks.toDetail(webhook, health),
  rotatedWebhook: webhooks.toRotated(webhook, webhooks.generateSecret(bytes("rotated", 48))),
  testDelivery: deliveries.toListItem(
    { ...createDelivery(eventOf("deploy.failed"), webhook, now), next_attempt_at: now.toISOString() },
    webhook,
    now,
  ),
  failingDelivery: deliveries.toListItem(failing, failingWebhook, now),
  redelivered: deliveries.toListItem({ ...failing, next_attempt_at: addSeconds(now, 120) }, failingWebhook, now),
  shownDelivery: deliveries.toDetail(failing, failingWebhook, now),
  // Only the last bucket, to keep the example short.
  stats: { ...stats, buckets: stats.buckets.slice(-1) },
  startedCertification: toCertificationResponse(certification, now),
  finishedCertification: toCertificationResponse(certified, now),
  trustInput,
  trustedWorkflow: trustedWorkflows.toResponse(trust),
};

/** Returns an example of the request that a receiver gets: the body as sent, and the headers that depend on it. */
export function exampleRequest(name: string): { body: string; headers: Record<string, string> } {
  const ofDeployment = name.startsWith("deploy.");
  const about = idOf(ofDeployment ? name : "other webhook");
  const event = sampleWebhookEvent(name, { projectId: project.id, id: about, now });
  const { body } = event;
  const { id } = createDelivery(event, webhook, now, now);
  const signatures = signatureHeaders({ deliveryId: id, at: now, body }, secret, [
    webhooks.generateSecret(bytes("before", 48)),
  ]);
  const sequence = String(sequenceOf(id, name === "deploy.succeeded" || name === "deploy.failed"));
  const own = { "X-Service-Event": name, "X-Service-Delivery": id, "X-Service-Sequence": sequence };
  return { body, headers: { ...own, ...signatures } };
}

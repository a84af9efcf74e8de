import { createHash } from "node:crypto";
import { mintApiKey, withSecret as withKey, withoutSecret } from "../../functions/api-keys/api-key.ts";
import { type Attempt, openDelivery } from "../../functions/deliveries/delivery.ts";
import { toRecord, withAttempts } from "../../functions/deliveries/delivery-resource.ts";
import { signatureHeaders } from "../../functions/deliveries/signature.ts";
import { deploymentEvent, type EventName } from "../../functions/deployments/deployment-event.ts";
import { sampleEvent } from "../../functions/deployments/sample-event.ts";
import { later } from "../../functions/platform/time.ts";
import { timeOrderedUuid } from "../../functions/platform/uuid.ts";
import type { Project } from "../../functions/projects/project.ts";
import { inList, mintSecret, openWebhook, withSecret, withState } from "../../functions/webhooks/webhook.ts";

/*
 * Examples of records, made by the code that makes the real ones. Their signatures hold.
 */

const now = new Date("2026-11-21T04:04:29.027Z");
const GRACE_SECONDS = 120;

/** What stands in for randomness, so that every run makes the same examples. */
const bytes = (name: string, length: number): Buffer =>
  Buffer.concat([0, 1].map((part) => createHash("sha256").update(`${name} ${part}`).digest())).subarray(0, length);

const idOf = (name: string) => timeOrderedUuid(now.getTime(), bytes(name, 16));

const project: Project = { id: idOf("project"), name: "My shop", role: "admin", created_at: now.toISOString() };

const { apiKey, key } = mintApiKey("user", { name: "ci" }, now, bytes("api key", 48));

const { webhook, secret } = openWebhook(
  { url: "https://hooks.example.com/deployments", events: ["deploy.succeeded", "deploy.failed"] },
  project.id,
  now,
  bytes("webhook", 48),
);
const disabled = { ...webhook, disabled_at: later(now, 3600), disabled_reason: "manual" as const };

const eventOf = (name: EventName) =>
  deploymentEvent(sampleEvent(name, { projectId: project.id, deploymentId: idOf(name), now }));

const refused: Attempt = {
  number: 1,
  at: later(now, 1),
  duration_ms: 41.2,
  status_code: 503,
  error_code: "http_status",
  response_excerpt: "upstream is restarting",
  trigger: "schedule",
};
const opened = openDelivery(eventOf("deploy.succeeded"), webhook, now, GRACE_SECONDS);
const failing = { ...opened, attempt_count: 1, attempts: [refused], next_attempt_at: later(now, 6) };

export const secretExample = secret;

export const examples = {
  createdApiKey: withKey(apiKey, key),
  listedApiKey: withoutSecret({ ...apiKey, last_used_at: later(now, 60) }),
  project,
  createdWebhook: withSecret(webhook, secret),
  listedWebhook: inList(webhook),
  shownWebhook: withState(webhook),
  disabledWebhook: withState(disabled),
  rotatedWebhook: { ...withState(webhook), secret: mintSecret(bytes("rotated", 48)) },
  testDelivery: toRecord(openDelivery(eventOf("deploy.failed"), webhook, now, GRACE_SECONDS, "test")),
  failingDelivery: toRecord(failing),
  redelivered: toRecord({ ...failing, next_attempt_at: later(now, 120) }),
  shownDelivery: withAttempts(failing),
};

/** What a receiver gets of an event: the body as it is sent, and the headers that depend on it. */
export function exampleRequest(name: EventName): { body: string; headers: Record<string, string> } {
  const { body } = eventOf(name);
  const { id } = openDelivery(eventOf(name), webhook, now, GRACE_SECONDS);
  const signatures = signatureHeaders({ deliveryId: id, at: now, body }, secret, [mintSecret(bytes("before", 48))]);
  return { body, headers: { "X-Service-Event": name, "X-Service-Delivery": id, ...signatures } };
}

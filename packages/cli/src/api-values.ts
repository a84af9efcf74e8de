import type {
  Attempt,
  DeliveryStatus,
  EventName,
  Permission,
  TrustedWorkflow,
  WebhookEventName,
  WebhookStats,
} from "../../client/src/client.ts";

/* Lists of the API's values. The compiler reports a value that the API has and a list lacks. */

const listOf = <Value extends string>(values: Record<Value, true>): Value[] => Object.keys(values) as Value[];

/** The events of deployments, in the feed. */
export const eventNames = listOf({
  "deploy.started": true,
  "deploy.succeeded": true,
  "deploy.failed": true,
} satisfies Record<EventName, true>);

/** The events that a webhook can subscribe to. */
export const webhookEventNames = listOf({
  "deploy.started": true,
  "deploy.succeeded": true,
  "deploy.failed": true,
  "webhook.failing": true,
  "webhook.disabled": true,
} satisfies Record<WebhookEventName, true>);

export const deliveryStatuses = listOf({
  pending: true,
  succeeded: true,
  failed: true,
  held: true,
  cancelled: true,
} satisfies Record<DeliveryStatus, true>);

export type StatsWindow = WebhookStats["window"];

export const statsWindows = listOf({ "24h": true, "7d": true } satisfies Record<StatsWindow, true>);

export type DeliveryErrorCode = NonNullable<Attempt["error_code"]>;

export const deliveryErrorCodes = listOf({
  timeout: true,
  dns_error: true,
  connection_refused: true,
  connection_reset: true,
  tls_error: true,
  address_blocked: true,
  invalid_response: true,
  http_status: true,
} satisfies Record<DeliveryErrorCode, true>);

export type WorkflowPermission = TrustedWorkflow["permissions"][number];

export const workflowPermissions = listOf({
  "projects:read": true,
  "webhooks:read": true,
  "webhooks:write": true,
  "deliveries:read": true,
  "deliveries:write": true,
  "events:read": true,
} satisfies Record<WorkflowPermission, true>);

export const permissions = listOf({
  "projects:read": true,
  "webhooks:read": true,
  "webhooks:write": true,
  "deliveries:read": true,
  "deliveries:write": true,
  "events:read": true,
  "webhook-secrets:write": true,
  "keys:read": true,
  "keys:write": true,
  "service-accounts:read": true,
  "service-accounts:write": true,
  "audit:read": true,
} satisfies Record<Permission, true>);

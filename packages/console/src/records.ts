/* The API's records, as far as the console shows them. */

export const eventNames = ["deploy.started", "deploy.succeeded", "deploy.failed"] as const;
export type EventName = (typeof eventNames)[number];

export interface ApiKey {
  id: string;
  name: string;
  key_prefix: string;
  last_used_at: string | null;
  created_at: string;
}

export interface NewApiKey {
  id: string;
  name: string;
  /** Shown this once. */
  key: string;
}

export interface Project {
  id: string;
  name: string;
  role: "admin" | "viewer";
  created_at: string;
}

export interface Webhook {
  id: string;
  project_id: string;
  url: string;
  events: EventName[];
  created_at: string;
  enabled: boolean;
  disabled_reason: "gone" | "failing" | "manual" | null;
  /** Of a webhook on its own; lists do not have it. */
  disabled_at?: string | null;
}

/** A webhook as create and rotate answer it. */
export interface WebhookWithSecret {
  id: string;
  url: string;
  /** Shown this once. */
  secret: string;
}

export const deliveryStatuses = ["pending", "succeeded", "failed", "held", "cancelled"] as const;
export type DeliveryStatus = (typeof deliveryStatuses)[number];

export interface Delivery {
  id: string;
  webhook_id: string;
  event: EventName;
  deployment_id: string;
  status: DeliveryStatus;
  test: boolean;
  created_at: string;
  next_attempt_at: string | null;
  attempt_count: number;
}

export interface Attempt {
  number: number;
  at: string;
  duration_ms: number;
  status_code: number | null;
  error_code: string | null;
  response_excerpt: string | null;
  trigger: "schedule" | "redeliver" | "recover" | "test";
  hint: string | null;
}

export interface DeliveryWithAttempts extends Delivery {
  payload: unknown;
  attempts: Attempt[];
}

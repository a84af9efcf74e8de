import { createHash } from "node:crypto";
import type { webhookEvents } from "../manifest/events.ts";

/**
 * Name of an event about a webhook of the project, which this service creates itself. The pipeline cannot send it:
 * parse-deployment-event.ts accepts deployment events only.
 */
export type HealthEventName = keyof typeof webhookEvents;

/** Name of any event that a webhook can subscribe to. */
export type WebhookEventName = string;

/** An event as webhooks get it. */
export interface WebhookEvent {
  event: WebhookEventName;
  project_id: string;
  /** null = the event is not about a deployment. */
  deployment_id: string | null;
  timestamp: string;
  /** The payload for receivers: the four fields above and `data` as JSON. */
  body: string;
  /** Identity of the event, in hex. Two events with the same digest are the same event. */
  digest: string;
}

/**
 * Creates an event about a webhook.
 * @param id id of the notification: events with equal ids are the same event
 */
export function createHealthEvent(
  event: HealthEventName,
  { id, project_id, timestamp, data }: { id: string; project_id: string; timestamp: string; data: object },
): WebhookEvent {
  const content = { event, project_id, deployment_id: null, timestamp };
  const digest = createHash("sha256").update(id).digest("hex");
  return { ...content, body: JSON.stringify({ ...content, data }), digest };
}

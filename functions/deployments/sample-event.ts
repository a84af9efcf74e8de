import { createDeploymentEvent, type EventName } from "./deployment-event.ts";
import { createHealthEvent, type HealthEventName, type WebhookEvent, type WebhookEventName } from "./webhook-event.ts";

interface SampleFields {
  projectId: string;
  deploymentId: string;
  now: Date;
  /** Public URL of the app, for `deploy.succeeded`. */
  url?: string | undefined;
}

/** Creates a message as the pipeline would put it on the events queue, for trials and tests. */
export function sampleEvent(event: EventName, { projectId, deploymentId, now, url }: SampleFields) {
  const data: Record<EventName, object> = {
    "deploy.started": {},
    "deploy.succeeded": { url: url ?? "https://demo.example.com", status: "running" },
    "deploy.failed": { reason: "health check timed out" },
  };
  return {
    event,
    project_id: projectId,
    deployment_id: deploymentId,
    timestamp: now.toISOString(),
    data: data[event],
  };
}

const isDeploymentEvent = (event: WebhookEventName): event is EventName => event.startsWith("deploy.");

/** Creates an event of sample data for a test delivery. @param id id of the deployment, or of the webhook of the event */
export function sampleWebhookEvent(
  event: WebhookEventName,
  { projectId, id, now }: { projectId: string; id: string; now: Date },
): WebhookEvent {
  if (isDeploymentEvent(event)) {
    return createDeploymentEvent(sampleEvent(event, { projectId, deploymentId: id, now }));
  }
  const failing = {
    webhook_id: id,
    host: "example.com",
    failing_since: new Date(now.getTime() - 1_800_000).toISOString(),
    status_code: 500,
    error_code: "http_status",
  };
  const data: Record<HealthEventName, object> = {
    "webhook.failing": failing,
    "webhook.disabled": { ...failing, reason: "failing" },
  };
  return createHealthEvent(event, { id, project_id: projectId, timestamp: now.toISOString(), data: data[event] });
}

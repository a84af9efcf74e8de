import { type EventName, samples } from "./deployment-event.ts";
import type { HealthEventName, WebhookEventName } from "./webhook-event.ts";

interface SampleFields {
  projectId: string;
  deploymentId: string;
  now: Date;
  /** Public URL of the app, for `deploy.succeeded`. */
  url?: string | undefined;
}

/** Creates a message as the pipeline would put it on the events queue, for trials and tests. */
export function sampleEvent(event: EventName, { projectId, deploymentId, now, url }: SampleFields) {
  const sample = samples[event];
  return {
    event,
    project_id: projectId,
    deployment_id: deploymentId,
    timestamp: now.toISOString(),
    data: url !== undefined && "url" in sample ? { ...sample, url } : sample,
  };
}

export const isDeploymentEvent = (event: WebhookEventName): event is EventName => event.startsWith("deploy.");

/** Returns the fields of a sample of any event. @param id id of the deployment, or of the webhook that the event is about */
export function sampleFields(
  event: WebhookEventName,
  { projectId, id, now }: { projectId: string; id: string; now: Date },
): { event: WebhookEventName; project_id: string; deployment_id: string | null; timestamp: string; data: object } {
  if (isDeploymentEvent(event)) return sampleEvent(event, { projectId, deploymentId: id, now });
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
  return { event, project_id: projectId, deployment_id: null, timestamp: now.toISOString(), data: data[event] };
}

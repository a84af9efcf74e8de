import { createDeploymentEvent } from "./deployment-event.ts";
import { isDeploymentEvent, sampleEvent, sampleFields } from "./sample-event.ts";
import { createHealthEvent, type WebhookEvent, type WebhookEventName } from "./webhook-event.ts";

/** Creates an event of sample data for a test delivery. @param id id of the deployment, or of the webhook of the event */
export function sampleWebhookEvent(
  event: WebhookEventName,
  sample: { projectId: string; id: string; now: Date },
): WebhookEvent {
  if (isDeploymentEvent(event)) {
    return createDeploymentEvent(sampleEvent(event, { ...sample, deploymentId: sample.id }));
  }
  const { project_id, timestamp, data } = sampleFields(event, sample);
  return createHealthEvent(event, { id: sample.id, project_id, timestamp, data });
}

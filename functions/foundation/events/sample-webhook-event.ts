import { createDeploymentEvent } from "./deployment-event.ts";
import { isDeploymentEvent, sampleFields } from "./sample-event.ts";
import { createHealthEvent, type WebhookEvent, type WebhookEventName } from "./webhook-event.ts";

/**
 * Creates an event of sample data.
 * @param id id of the deployment, or of the webhook that the event is about
 * @param marks further fields of `data`; default: none
 */
export function sampleWebhookEvent(
  event: WebhookEventName,
  { id, ...sample }: { projectId: string; id: string; now: Date },
  marks: { test?: true } = {},
): WebhookEvent {
  const { project_id, timestamp, data } = sampleFields(event, { ...sample, id });
  const marked = { project_id, timestamp, data: { ...data, ...marks } };
  return isDeploymentEvent(event)
    ? createDeploymentEvent({ event, deployment_id: id, ...marked })
    : createHealthEvent(event, { id, ...marked });
}

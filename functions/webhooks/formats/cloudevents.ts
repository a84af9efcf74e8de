import type { FormattedEvent } from "./message.ts";

/**
 * A CloudEvent 1.0 in structured mode, with `data` as the pipeline sent it, and the extension `sequence`.
 * https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md
 */
export const cloudEvent = (event: FormattedEvent): object => ({
  specversion: "1.0",
  id: event.deliveryId,
  source: `/v1/projects/${event.project_id}`,
  type: event.event,
  ...(event.deployment_id !== null && { subject: event.deployment_id }),
  time: event.timestamp,
  datacontenttype: "application/json",
  sequence: event.sequence,
  data: event.data,
});

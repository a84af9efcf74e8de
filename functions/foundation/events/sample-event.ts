import { type EventRow, type JsonSchema, webhookEvents } from "../manifest/events.ts";
import { eventRow } from "./catalogue.ts";
import { createDeploymentEvent } from "./deployment-event.ts";
import { createHealthEvent, type HealthEventName, type WebhookEvent } from "./webhook-event.ts";

/* Events of sample data, for trials, test deliveries and documents: what the schema of `data` has as examples. */

interface SampleFields {
  projectId: string;
  /** Id of the deployment, or of the webhook that the event is about. */
  id: string;
  now: Date;
}

interface Sample {
  event: string;
  project_id: string;
  deployment_id: string | null;
  timestamp: string;
  data: Record<string, unknown>;
}

/** A value for a required field without an example. */
const valuesOfTypes: Record<string, unknown> = { string: "sample", number: 1, integer: 1, boolean: true, array: [] };

function sampleOf({ examples, const: only, enum: values, type, properties = {}, required = [] }: JsonSchema): unknown {
  const [example = only] = [examples, values].flat();
  if (example !== undefined) return example;
  if (type !== "object") return valuesOfTypes[String([type].flat()[0])];
  const fields = Object.entries(properties).map(([name, field]): [string, unknown] => {
    const isShown = [required].flat().includes(name) || field.examples !== undefined || field.const !== undefined;
    return [name, isShown ? sampleOf(field) : undefined];
  });
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined));
}

export const sampleData = ({ data }: Pick<EventRow, "data">): Record<string, unknown> =>
  Object(sampleOf({ type: "object", ...data }));

export const isHealthEvent = (event: string): event is HealthEventName => event in webhookEvents;

/**
 * Returns the fields of a sample of an event, as the pipeline would send it.
 * @param data replaces fields of the sample
 */
export function sampleFields(event: string, { projectId, id, now }: SampleFields, data: object = {}): Sample {
  const row = eventRow(event);
  const base = { event, project_id: projectId, timestamp: now.toISOString() };
  const sample = row ? sampleData(row) : {};
  if (!isHealthEvent(event)) return { ...base, deployment_id: id, data: { ...sample, ...data } };
  const about = { webhook_id: id, failing_since: new Date(now.getTime() - 1_800_000).toISOString() };
  return { ...base, deployment_id: null, data: { ...sample, ...about, ...data } };
}

/**
 * Creates an event of sample data.
 * @param more replaces fields of `data`; default: none
 */
export function sampleWebhookEvent(event: string, sample: SampleFields, more: object = {}): WebhookEvent {
  const { project_id, timestamp, data } = sampleFields(event, sample, more);
  const fields = { project_id, timestamp, data };
  return isHealthEvent(event)
    ? createHealthEvent(event, { id: sample.id, ...fields })
    : createDeploymentEvent({ event, deployment_id: sample.id, ...fields });
}

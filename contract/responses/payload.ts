import { fromJSONSchema } from "zod";
import * as z from "zod/mini";
import type { WebhookEvent } from "../../functions/foundation/events/webhook-event.ts";
import {
  deploymentEvents,
  EVENT_NAME,
  type EventRow,
  SUBSCRIPTION,
  webhookEvents,
} from "../../functions/foundation/manifest/events.ts";
import type { DisabledReason } from "../../functions/webhooks/webhook/webhook.ts";
import { type FieldsOf, id, text } from "./fields.ts";

/* Schemas of the payload that is sent to receivers, one for each event of the catalogue, and one for those that a stage adds. */

const rows: Record<string, EventRow> = { ...deploymentEvents, ...webhookEvents };

const meaningsOf = (of: Record<string, EventRow>): Record<string, string> =>
  Object.fromEntries(Object.entries(of).map(([name, { description }]) => [name, description]));

export const webhookEventMeanings = meaningsOf(rows);

/** The name of an event. Not an enum: a platform adds its own. */
const nameOf = (description: string, of: Record<string, EventRow>) => {
  const lines = Object.entries(meaningsOf(of)).map(([name, meaning]) => `- \`${name}\`: ${meaning}`);
  return text([`${description} A platform may add others.`, "", ...lines].join("\n"), { pattern: EVENT_NAME.source });
};

export const eventNameSchema = nameOf("Name of the deployment event.", deploymentEvents);
export const webhookEventNameSchema = nameOf("Name of the event.", rows);

/** An entry of a webhook's `events`. */
export const subscriptionSchema = text(
  "Name of an event, or a pattern that also stands for events to come: `*`, or a beginning and `.*`, such as `deploy.*`.",
  { pattern: SUBSCRIPTION.source },
);

type Payload = Pick<WebhookEvent, "event" | "project_id" | "deployment_id" | "timestamp"> & { data: object };

/** A test delivery has its mark in `data`; what the pipeline sends by that name is renamed. */
const test = {
  description:
    "`true`: a test delivery or a certification; nothing happened. Respond with 2xx, and otherwise ignore it.",
};

const payloadOf = (event: z.ZodMiniType<string>, isAboutDeployment: boolean, { data }: Pick<EventRow, "data">) =>
  z.strictObject({
    event,
    project_id: id("Id of the project."),
    deployment_id: isAboutDeployment
      ? id("Id of the deployment.")
      : z.nullable(id("Always null: the event is not about a deployment.")),
    timestamp: text("Time of the event, ISO 8601 in UTC.", { format: "date-time" }),
    data: fromJSONSchema({ ...data, properties: { ...data.properties, test } }) as unknown as z.ZodMiniType<object>,
  } satisfies FieldsOf<Payload>);

/** The payload of each event, by its name. */
export const webhookPayloadSchemas = Object.fromEntries(
  Object.entries(rows).map(([name, row]) => [
    name,
    payloadOf(z.literal(name).check(z.describe("Name of the event.")), name in deploymentEvents, row),
  ]),
);

/** The payload of an event that a platform has added. */
export const ownPayloadSchema = payloadOf(
  text("Name of an event of the platform.", { pattern: EVENT_NAME.source }),
  true,
  {
    data: { type: "object", description: "Data of the pipeline, passed on unchanged." },
  },
);

/** The payload of any deployment event, and of any event. */
export const payloadSchema = z.union([...eventPayloads(deploymentEvents), ownPayloadSchema]);
export const webhookPayloadSchema = z.union([...eventPayloads(rows), ownPayloadSchema]);

function eventPayloads(of: object): z.ZodMiniType<Payload>[] {
  return Object.keys(of).flatMap((name) => webhookPayloadSchemas[name] ?? []);
}

export const disabledReasonMeanings: Record<DisabledReason, string> = {
  gone: "the receiver responded with 410",
  failing: "no delivery succeeded for days",
  manual: "disabled by a user or the operator",
};

import * as z from "zod/mini";
import { type FieldsOf, HTTP_URL_PATTERN, id, oneOf, text } from "../schema/response-schema.ts";
import type { DeploymentEvent, EventName } from "./deployment-event.ts";

/* Schemas of the payload that is sent to receivers, one for each event. */

export const eventDescriptions: Record<EventName, string> = {
  "deploy.started": "a build has started",
  "deploy.succeeded": "the deployment is live and healthy",
  "deploy.failed": "the build or a health check failed",
};

export const eventNameSchema = oneOf<EventName>("Name of the event.", eventDescriptions);

type Payload = Pick<DeploymentEvent, "event" | "project_id" | "deployment_id" | "timestamp"> & { data: object };

const payloadOf = <Data extends z.ZodMiniType<object>>(event: EventName, data: Data) =>
  z.strictObject({
    event: z.literal(event).check(z.describe("Name of the event.")),
    project_id: id("Id of the project."),
    deployment_id: id("Id of the deployment."),
    timestamp: text("Time of the event, ISO 8601 in UTC.", { format: "date-time" }),
    data,
  } satisfies FieldsOf<Payload>);

const anyData = z
  .looseObject({})
  .check(z.describe("Data of the pipeline, passed on unchanged; `{}` when the pipeline sends none."));

/** The payload of each event, by its name. */
export const payloadSchemas = {
  "deploy.started": payloadOf("deploy.started", anyData),
  "deploy.succeeded": payloadOf(
    "deploy.succeeded",
    z
      .looseObject({
        url: text("Public URL of the app.", { pattern: HTTP_URL_PATTERN }),
        status: z.literal("running").check(z.describe("The app serves requests.")),
      })
      .check(z.describe("URL and status of the app. Other fields of the pipeline are passed on unchanged.")),
  ),
  "deploy.failed": payloadOf("deploy.failed", anyData),
} satisfies Record<EventName, z.ZodMiniType<Payload>>;

type PayloadSchema = (typeof payloadSchemas)[EventName];

/** The payload of any event. A new event in `payloadSchemas` is included automatically. */
export const payloadSchema = z.discriminatedUnion(
  "event",
  Object.values(payloadSchemas) as [PayloadSchema, ...PayloadSchema[]],
);

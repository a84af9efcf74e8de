import * as z from "zod/mini";
import { type EventName, eventNames } from "../../functions/foundation/events/deployment-event.ts";
import type {
  HealthEventName,
  WebhookEvent,
  WebhookEventName,
} from "../../functions/foundation/events/webhook-event.ts";
import type { DisabledReason, StopReason } from "../../functions/webhooks/webhook/webhook.ts";
import { type FieldsOf, HTTP_URL_PATTERN, id, instant, oneOf, text } from "./fields.ts";

/* Schemas of the payload that is sent to receivers, one for each event. */

/** What each deployment event means, the state of a deployment after it, and whether the deployment is then open, or ended well. */
export const deploymentEvents = {
  "deploy.started": { meaning: "a build has started", state: "running", outcome: "open" },
  "deploy.succeeded": { meaning: "the deployment is live and healthy", state: "succeeded", outcome: "good" },
  "deploy.failed": { meaning: "the build or a health check failed", state: "failed", outcome: "bad" },
} satisfies Record<EventName, { meaning: string; state: string; outcome: "open" | "good" | "bad" }>;

export const eventMeanings = Object.fromEntries(
  eventNames.map((name) => [name, deploymentEvents[name].meaning]),
) as Record<EventName, string>;

export const eventNameSchema = oneOf<EventName>("Name of the deployment event.", eventMeanings);

export const webhookEventMeanings: Record<WebhookEventName, string> = {
  ...eventMeanings,
  "webhook.failing": "another webhook of the project has been failing for 30 minutes",
  "webhook.disabled": "another webhook of the project was disabled, or switched to shadow mode",
};

export const webhookEventNameSchema = oneOf<WebhookEventName>("Name of the event.", webhookEventMeanings);

type Payload = Pick<WebhookEvent, "event" | "project_id" | "deployment_id" | "timestamp"> & { data: object };

const payloadOf = <Deployment extends z.ZodMiniType<string | null>, Data extends z.ZodMiniType<object>>(
  event: WebhookEventName,
  deployment_id: Deployment,
  data: Data,
) =>
  z.strictObject({
    event: z.literal(event).check(z.describe("Name of the event.")),
    project_id: id("Id of the project."),
    deployment_id,
    timestamp: text("Time of the event, ISO 8601 in UTC.", { format: "date-time" }),
    data,
  } satisfies FieldsOf<Payload>);

const deploymentId = id("Id of the deployment.");
const noDeployment = z.nullable(id("Always null: the event is not about a deployment."));

/** Any value, because the data of the pipeline is passed on unchanged. */
const test = z
  .optional(z.unknown())
  .check(
    z.describe(
      "`true`: a test delivery or a certification; nothing happened. Respond with 2xx, and otherwise ignore it.",
    ),
  );

const anyData = z
  .looseObject({ test })
  .check(z.describe("Data of the pipeline, passed on unchanged; `{}` when the pipeline sends none."));

const dataSchemas: Partial<Record<EventName, z.ZodMiniType<object>>> = {
  "deploy.succeeded": z
    .looseObject({
      url: text("Public URL of the app.", { pattern: HTTP_URL_PATTERN }),
      status: z.literal("running").check(z.describe("The app serves requests.")),
      test,
    })
    .check(z.describe("URL and status of the app. Other fields of the pipeline are passed on unchanged.")),
};

const payloads = eventNames.map((name) => payloadOf(name, deploymentId, dataSchemas[name] ?? anyData));
type PayloadSchema = (typeof payloads)[number];

/** The payload of each deployment event, by its name. */
export const payloadSchemas = Object.fromEntries(eventNames.map((name, index) => [name, payloads[index]])) as Record<
  EventName,
  PayloadSchema
>;

/** The payload of any deployment event. */
export const payloadSchema = z.discriminatedUnion("event", payloads as [PayloadSchema, ...PayloadSchema[]]);

export const disabledReasonMeanings: Record<DisabledReason, string> = {
  gone: "the receiver responded with 410",
  failing: "no delivery succeeded for days",
  manual: "disabled by a user or the operator",
};

const stopReasonMeanings: Record<StopReason, string> = {
  ...disabledReasonMeanings,
  shadow: "it was switched to shadow mode, and is enabled",
};

const aboutWebhook = {
  webhook_id: id("Id of the webhook. A webhook is never notified about itself."),
  name: z.optional(text("Name of the webhook; absent = it has none.")),
  host: text(
    "Host of its URL, with the port if it is not the usual one. Path and query are left out: they often have a token.",
  ),
  failing_since: z.nullable(instant("Time of the first failure after the last success; null = it was not failing.")),
  status_code: z.nullable(
    z.int().check(z.describe("Status code of the last response; null when none arrived or no attempt led to this.")),
  ),
  error_code: z.nullable(
    text("Why the last attempt failed, as in `error_code` of an attempt; null when no attempt led to this."),
  ),
  test,
};

/** Not strict: a certification adds its marks to `data`, and a receiver that validates its payload must accept them. */
const dataAboutWebhook = <Shape extends typeof aboutWebhook>(shape: Shape) =>
  z
    .looseObject(shape)
    .check(
      z.describe("What happened to the webhook. A certification adds its marks: a receiver ignores other fields."),
    );

/** The payload of each event about a webhook, by its name. */
export const healthPayloadSchemas = {
  "webhook.failing": payloadOf("webhook.failing", noDeployment, dataAboutWebhook(aboutWebhook)),
  "webhook.disabled": payloadOf(
    "webhook.disabled",
    noDeployment,
    dataAboutWebhook({
      ...aboutWebhook,
      reason: oneOf<StopReason>("Why it sends nothing.", stopReasonMeanings),
    }),
  ),
} satisfies Record<HealthEventName, z.ZodMiniType<Payload>>;

/** The payload of each event that a webhook can subscribe to, by its name. */
export const webhookPayloadSchemas = { ...payloadSchemas, ...healthPayloadSchemas };

type WebhookPayloadSchema = (typeof webhookPayloadSchemas)[WebhookEventName];

export const webhookPayloadSchema = z.discriminatedUnion(
  "event",
  Object.values(webhookPayloadSchemas) as [WebhookPayloadSchema, ...WebhookPayloadSchema[]],
);

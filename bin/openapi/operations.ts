import { MAX_KEYS_PER_USER } from "../../functions/api-keys/api-key.ts";
import { apiKeySchema, createdApiKeySchema } from "../../functions/api-keys/api-key-response-schema.ts";
import { MAX_ATTEMPTS } from "../../functions/deliveries/delivery.ts";
import {
  deliveryDetailSchema,
  deliverySchema,
  recoveryResultSchema,
} from "../../functions/deliveries/delivery-response-schema.ts";
import type { endpoints } from "../../functions/manifest/endpoints.ts";
import type { ErrorCode } from "../../functions/platform/errors.ts";
import { projectSchema } from "../../functions/projects/project-response-schema.ts";
import { WEB_ADDRESS } from "../../functions/schema/response-schema.ts";
import { MAX_WEBHOOKS_PER_PROJECT } from "../../functions/webhooks/webhook.ts";
import {
  createdWebhookSchema,
  rotatedWebhookSchema,
  webhookListItemSchema,
  webhookSchema,
} from "../../functions/webhooks/webhook-response-schema.ts";
import { examples } from "./examples.ts";
import { type Json, listOf, type Schema } from "./schemas.ts";

/** What an endpoint's row does not say: what people read about it, and what it answers. */
export interface Operation {
  id: string;
  tag: keyof typeof tags;
  summary: string;
  description?: string;
  answer: { status: 200 | 201 | 202; schema: Schema; example: Json; hasNextPage?: true } | { status: 204 };
  /** Why it may say no, beyond what its row's access, ids and body imply. */
  errors?: ErrorCode[];
  /**
   * For people, and for the rules that its schema checks in code: what JSON Schema has to say of each field of the body, or
   * of each query parameter. `undefined` takes a keyword of the schema away.
   */
  fields?: Record<string, Json>;
  /** Beside the fields, about the body as a whole. */
  body?: Json;
  example?: Json;
}

export const tags = {
  "API keys":
    "Credentials for CI jobs and scripts. A key acts with the permissions of the user who made it, until it is deleted.",
  Projects: "What is deployed. The platform puts users into projects, as `admin` or as `viewer`.",
  Webhooks: "URLs that are told about a project's deployments. At most 20 a project.",
  Deliveries:
    "Events on their way to a webhook: what was sent, what came back and when the next attempt is due. Kept for 30 days.",
  Events: "What receivers get.",
};

const name = { minLength: 1, maxLength: 100, description: "1 to 100 characters, none of them a control character." };

const receiver = {
  description:
    "Where events are posted to: an https URL with a public host name or address, in ASCII, without a user name and password. " +
    "A local run takes plain http to this machine too.",
  pattern: `${WEB_ADDRESS}[!-~]+$`,
  maxLength: 2048,
};

const events = { description: "Which events to send." };

/** By the `file` of the endpoint's row. A row without an entry does not compile. */
export const operations: Record<(typeof endpoints)[number]["file"], Operation> = {
  "api-keys/create": {
    id: "createApiKey",
    tag: "API keys",
    summary: "Create an API key",
    description: `The answer is the only one that ever shows \`key\`. A user can have ${MAX_KEYS_PER_USER} keys.`,
    fields: { name: { ...name, description: `The label that lists show. ${name.description}` } },
    example: { name: "ci" },
    answer: { status: 201, schema: createdApiKeySchema, example: examples.createdApiKey },
    errors: ["api_key_limit_reached"],
  },
  "api-keys/list": {
    id: "listApiKeys",
    tag: "API keys",
    summary: "List your API keys",
    description: "Oldest first.",
    answer: { status: 200, schema: listOf(apiKeySchema), example: [examples.listedApiKey] },
  },
  "api-keys/delete": {
    id: "deleteApiKey",
    tag: "API keys",
    summary: "Delete an API key",
    description: "It is refused from the next request on. A key may delete itself.",
    answer: { status: 204 },
  },
  "projects/list": {
    id: "listProjects",
    tag: "Projects",
    summary: "List your projects",
    description: "Oldest membership first, with what you may do in each.",
    answer: { status: 200, schema: listOf(projectSchema), example: [examples.project] },
  },
  "webhooks/create": {
    id: "createWebhook",
    tag: "Webhooks",
    summary: "Create a webhook",
    description: `The answer shows the signing secret, this once. A project can have ${MAX_WEBHOOKS_PER_PROJECT} webhooks.`,
    fields: { url: receiver, events },
    example: { url: examples.shownWebhook.url, events: examples.shownWebhook.events },
    answer: { status: 201, schema: createdWebhookSchema, example: examples.createdWebhook },
    errors: ["webhook_limit_reached"],
  },
  "webhooks/list": {
    id: "listWebhooks",
    tag: "Webhooks",
    summary: "List the webhooks of a project",
    description: "Oldest first, without their secrets.",
    answer: { status: 200, schema: listOf(webhookListItemSchema), example: [examples.listedWebhook] },
  },
  "webhooks/get": {
    id: "getWebhook",
    tag: "Webhooks",
    summary: "Show a webhook",
    answer: { status: 200, schema: webhookSchema, example: examples.shownWebhook },
  },
  "webhooks/update": {
    id: "updateWebhook",
    tag: "Webhooks",
    summary: "Change, disable or enable a webhook",
    description:
      "What is not given stays as it is. Events of a disabled webhook are kept as `held`; enabling sends none of them by itself, " +
      "`recoverDeliveries` does.",
    fields: { url: receiver, events, enabled: { description: "`false` stops deliveries, `true` starts anew." } },
    body: { minProperties: 1 },
    example: { enabled: false },
    answer: { status: 200, schema: webhookSchema, example: examples.disabledWebhook },
  },
  "webhooks/rotate-secret": {
    id: "rotateWebhookSecret",
    tag: "Webhooks",
    summary: "Replace the signing secret",
    description:
      "The answer shows the new secret, this once. During the overlap every delivery is signed with the old one too, so that " +
      "receivers can follow in their own time. Three old secrets at most stay valid.",
    fields: {
      overlap_seconds: {
        type: "integer",
        minimum: 0,
        maximum: 604_800,
        description: "How long the old secret stays valid. 0 ends all old secrets at once.",
      },
    },
    example: { overlap_seconds: 3600 },
    answer: { status: 200, schema: rotatedWebhookSchema, example: examples.rotatedWebhook },
  },
  "webhooks/delete": {
    id: "deleteWebhook",
    tag: "Webhooks",
    summary: "Delete a webhook",
    description: "Its pending deliveries are cancelled, and its log can no longer be seen.",
    answer: { status: 204 },
  },
  "deliveries/send-test-delivery": {
    id: "sendTestDelivery",
    tag: "Deliveries",
    summary: "Send a sample event",
    description: "One attempt, now, whatever the webhook subscribes to and even while it is disabled.",
    fields: { event: { description: "Which event to pretend." } },
    example: { event: "deploy.failed" },
    answer: { status: 202, schema: deliverySchema, example: examples.testDelivery },
  },
  "deliveries/list": {
    id: "listDeliveries",
    tag: "Deliveries",
    summary: "List the deliveries of a webhook",
    description:
      "Newest first, by the time of the event. While more follow, the header `Link` leads to the next page. With a status, a " +
      "page may hold fewer than `limit`, none even, although more follow: go by the header.",
    fields: {
      status: { description: "Only those that stand there." },
      limit: {
        type: "integer",
        pattern: undefined,
        minimum: 1,
        maximum: 100,
        default: 20,
        description: "How many on a page, at most.",
      },
      cursor: { description: "Where the page starts. Take it from the `Link` of the page before." },
    },
    answer: {
      status: 200,
      schema: listOf(deliverySchema),
      example: [examples.failingDelivery],
      hasNextPage: true,
    },
  },
  "deliveries/get": {
    id: "getDelivery",
    tag: "Deliveries",
    summary: "Show a delivery",
    description: "With its payload, and with what came back at each attempt.",
    answer: { status: 200, schema: deliveryDetailSchema, example: examples.shownDelivery },
  },
  "deliveries/redeliver": {
    id: "redeliver",
    tag: "Deliveries",
    summary: "Send a delivery once more",
    description:
      "Whatever became of it, under the same id, on a disabled webhook too. Should that fail, the schedule starts anew. A " +
      `delivery with ${MAX_ATTEMPTS} attempts or more is not sent again.`,
    answer: { status: 202, schema: deliverySchema, example: examples.redelivered },
    errors: ["conflict"],
  },
  "deliveries/recover": {
    id: "recoverDeliveries",
    tag: "Deliveries",
    summary: "Send what failed or was held once more",
    description:
      "Deliveries of events since a time, oldest first, under the same ids; 10,000 a call. The same call continues one that " +
      "reached its bound. A disabled webhook has to be enabled first.",
    fields: {
      since: { description: "Time of the first event that is meant, with its zone." },
      status: { description: "Only those that stand there. Default: both." },
    },
    example: { since: "2026-11-20T00:00:00Z", status: "failed" },
    answer: { status: 202, schema: recoveryResultSchema, example: { count: 12 } },
    errors: ["conflict"],
  },
};

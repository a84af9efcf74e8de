import * as z from "zod/mini";
import { apiKeySchema, createdApiKeySchema } from "../../functions/api-keys/api-key-response-schema.ts";
import {
  attemptSchema,
  deliveryDetailSchema,
  deliverySchema,
  recoveryResultSchema,
} from "../../functions/deliveries/delivery-response-schema.ts";
import { eventNameSchema, payloadSchemas } from "../../functions/deployments/event-payload.ts";
import { projectSchema } from "../../functions/projects/project-response-schema.ts";
import { label, time, uuid } from "../../functions/schema/input.ts";
import {
  createdWebhookSchema,
  rotatedWebhookSchema,
  webhookListItemSchema,
  webhookSchema,
} from "../../functions/webhooks/webhook-response-schema.ts";

/* From the service's own schemas to JSON Schema, as OpenAPI 3.1 takes it. */

export type Schema = z.ZodMiniType;

// biome-ignore lint/suspicious/noExplicitAny: any JSON; what is built from it is checked as a whole, by the linter
export type Json = any;

/** What has a name of its own in the document; all else is written where it is used. */
const named: Record<string, Schema> = {
  CreatedApiKey: createdApiKeySchema,
  ApiKey: apiKeySchema,
  Project: projectSchema,
  CreatedWebhook: createdWebhookSchema,
  WebhookInList: webhookListItemSchema,
  Webhook: webhookSchema,
  RotatedWebhook: rotatedWebhookSchema,
  Delivery: deliverySchema,
  DeliveryWithAttempts: deliveryDetailSchema,
  Attempt: attemptSchema,
  Recovered: recoveryResultSchema,
  EventName: eventNameSchema,
  DeployStarted: payloadSchemas["deploy.started"],
  DeploySucceeded: payloadSchemas["deploy.succeeded"],
  DeployFailed: payloadSchemas["deploy.failed"],
};

const registry = z.registry<{ id: string }>();
for (const [id, schema] of Object.entries(named)) registry.add(schema, { id });

const refTo = (id: string) => `#/components/schemas/${id}`;

/** The named schemas, for the document's `components`. */
export function componentSchemas(): Record<string, Json> {
  const { schemas } = z.toJSONSchema(registry, { uri: refTo, io: "output" });
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, openedUp(tidy(schema))]));
}

/** The schema of an answer: a reference where it has a name. */
export function answerSchema(schema: Schema): Json {
  const id = registry.get(schema)?.id;
  if (id !== undefined) return { $ref: refTo(id) };
  const list = elements.get(schema);
  if (list !== undefined) return { type: "array", items: answerSchema(list) };
  return openedUp(tidy(z.toJSONSchema(schema, { io: "output" })));
}

const elements = new WeakMap<Schema, Schema>();

export function listOf(element: Schema): Schema {
  const list = z.array(element);
  elements.set(list, element);
  return list;
}

/*
 * Rules that are checked in code, in the words of JSON Schema. What they leave out (a name of spaces alone, the 30th of
 * February) is refused all the same.
 */
const inWords = new Map<unknown, Json>([
  [label, { minLength: 1, maxLength: 100 }],
  [uuid, { format: "uuid" }],
  [time, { format: "date-time" }],
]);

/** The schema of a body, or of query parameters taken together: what is to be sent, rather than what it is read into. */
export function inputSchema(schema: Schema): Json {
  const override = ({ zodSchema, jsonSchema }: { zodSchema: unknown; jsonSchema: Json }) => {
    Object.assign(jsonSchema, inWords.get(zodSchema));
  };
  return tidy(z.toJSONSchema(schema, { io: "input", override }));
}

const SAFE = Number.MAX_SAFE_INTEGER;

/** Without what zod adds, and with `null` among the types rather than as an alternative. */
function tidy(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(tidy);
  if (typeof schema !== "object" || schema === null) return schema;
  const { $schema: _, $id: __, ...rest } = schema;
  if (rest.maximum === SAFE) delete rest.maximum;
  if (rest.minimum === -SAFE) delete rest.minimum;
  const [one, none, ...more] = rest.anyOf ?? [];
  if (none?.type === "null" && more.length === 0) {
    const { anyOf: ___, ...outer } = rest;
    const { type, enum: texts, ...inner } = tidy(one);
    return { ...inner, ...outer, type: [type, "null"], ...(texts && { enum: [...texts, null] }) };
  }
  return Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, tidy(value)]));
}

/** An answer may get new fields; clients are to ignore what they do not know. Today's are all there are: the tests see to it. */
function openedUp(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(openedUp);
  if (typeof schema !== "object" || schema === null) return schema;
  const entries = Object.entries(schema).map(([name, value]): [string, Json] => [name, openedUp(value)]);
  return Object.fromEntries(entries.filter(([name, value]) => name !== "additionalProperties" || value !== false));
}

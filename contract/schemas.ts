import * as z from "zod/mini";
import { apiKeySchema, createdApiKeySchema } from "./responses/api-key.ts";
import { auditEventSchema } from "./responses/audit-event.ts";
import { certificationSchema } from "./responses/certification.ts";
import { attemptSchema, deliveryDetailSchema, deliverySchema, recoveryResultSchema } from "./responses/delivery.ts";
import { eventRecordSchema } from "./responses/event.ts";
import {
  eventNameSchema,
  ownPayloadSchema,
  webhookEventNameSchema,
  webhookPayloadSchemas,
} from "./responses/payload.ts";
import { projectSchema } from "./responses/project.ts";
import { statsSchema } from "./responses/stats.ts";
import { trustedWorkflowSchema } from "./responses/trusted-workflow.ts";
import {
  createdWebhookSchema,
  healthSchema,
  rotatedWebhookSchema,
  webhookListItemSchema,
  webhookSchema,
} from "./responses/webhook.ts";

/* Converts the service's own schemas to the JSON Schema of OpenAPI 3.1. */

export type Schema = z.ZodMiniType;

// biome-ignore lint/suspicious/noExplicitAny: any JSON; an OpenAPI linter checks the finished document
export type Json = any;

/** Schemas with a name in `components`; all others are written inline. Payloads: `deploy.started` is `DeployStarted`. */
const namedSchemas: Record<string, Schema> = {
  CreatedApiKey: createdApiKeySchema,
  ApiKey: apiKeySchema,
  Project: projectSchema,
  CreatedWebhook: createdWebhookSchema,
  WebhookInList: webhookListItemSchema,
  Webhook: webhookSchema,
  WebhookHealth: healthSchema,
  WebhookStats: statsSchema,
  RotatedWebhook: rotatedWebhookSchema,
  Delivery: deliverySchema,
  DeliveryWithAttempts: deliveryDetailSchema,
  Attempt: attemptSchema,
  Recovered: recoveryResultSchema,
  Certification: certificationSchema,
  TrustedWorkflow: trustedWorkflowSchema,
  AuditEvent: auditEventSchema,
  DeploymentEvent: eventRecordSchema,
  EventName: eventNameSchema,
  WebhookEventName: webhookEventNameSchema,
  PlatformEvent: ownPayloadSchema,
  ...Object.fromEntries(Object.entries(webhookPayloadSchemas).map(([event, schema]) => [pascalCase(event), schema])),
};

/** `deploy.started` → `DeployStarted` */
export function pascalCase(eventName: string): string {
  return eventName.replaceAll(/(?:^|\.)(\w)/g, (_, first: string) => first.toUpperCase());
}

const registry = z.registry<{ id: string }>();
for (const [id, schema] of Object.entries(namedSchemas)) registry.add(schema, { id });

const refTo = (id: string) => `#/components/schemas/${id}`;

/** Returns the named schemas, for `components` of the document. */
export function componentSchemas(): Record<string, Json> {
  const { schemas } = z.toJSONSchema(registry, { uri: refTo, io: "output" });
  return Object.fromEntries(
    Object.entries(schemas).map(([id, schema]) => [id, withoutClosedObjects(normalized(schema))]),
  );
}

/** Returns the JSON Schema of an output: a reference if the schema has a name. */
export function outputSchema(schema: Schema): Json {
  const id = registry.get(schema)?.id;
  if (id !== undefined) return { $ref: refTo(id) };
  const list = elements.get(schema);
  if (list !== undefined) return { type: "array", items: outputSchema(list) };
  return withoutClosedObjects(normalized(z.toJSONSchema(schema, { io: "output" })));
}

/** Returns the description of each field of an object; of another schema, none. */
export function descriptionsOf(schema: Schema): Record<string, string | undefined> {
  const { properties = {} } = normalized(z.toJSONSchema(schema, { io: "output" }));
  return Object.fromEntries(Object.entries<Json>(properties).map(([name, { description }]) => [name, description]));
}

const elements = new WeakMap<Schema, Schema>();

export function listOf(element: Schema): Schema {
  const list = z.array(element);
  elements.set(list, element);
  return list;
}

/** Returns the JSON Schema of a body, or of all query parameters: the form before parsing. */
export function inputSchema(schema: Schema): Json {
  return normalized(z.toJSONSchema(schema, { io: "input" }));
}

const SAFE = Number.MAX_SAFE_INTEGER;

/** Removes zod's additions, and turns `anyOf: [x, null]` into a type list that contains `null`. */
function normalized(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(normalized);
  if (typeof schema !== "object" || schema === null) return schema;
  const { $schema: _, $id: __, ...rest } = schema;
  if (rest.maximum === SAFE) delete rest.maximum;
  if (rest.minimum === -SAFE) delete rest.minimum;
  const [value, nothing, ...more] = rest.anyOf ?? [];
  if (nothing?.type === "null" && more.length === 0) {
    const { anyOf: ___, ...outer } = rest;
    const { type, enum: texts, ...inner } = normalized(value);
    return { ...inner, ...outer, type: [type, "null"], ...(texts && { enum: [...texts, null] }) };
  }
  return Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, normalized(value)]));
}

/**
 * Removes `additionalProperties: false`: later versions may add fields to outputs, which clients ignore. The contract test
 * checks that today's outputs have no undocumented field.
 */
function withoutClosedObjects(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(withoutClosedObjects);
  if (typeof schema !== "object" || schema === null) return schema;
  const entries = Object.entries(schema).map(([name, value]): [string, Json] => [name, withoutClosedObjects(value)]);
  return Object.fromEntries(entries.filter(([name, value]) => name !== "additionalProperties" || value !== false));
}

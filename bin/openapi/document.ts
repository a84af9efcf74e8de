import { STATUS_CODES } from "node:http";
import { eventNames } from "../../functions/deployments/deployment-event.ts";
import { eventDescriptions as meaningOfEvent, payloadSchemas } from "../../functions/deployments/event-payload.ts";
import { type Access, type EndpointRow, endpoints } from "../../functions/manifest/endpoints.ts";
import { securityHeaders } from "../../functions/manifest/response-headers.ts";
import { type ErrorCode, statusByCode } from "../../functions/platform/errors.ts";
import { errorResponseSchema } from "../../functions/schema/response-schema.ts";
import { codesOf, meaningOf, messageOf } from "./errors.ts";
import { exampleRequest } from "./examples.ts";
import { type Operation, operations, tags } from "./operations.ts";
import { answerSchema, componentSchemas, inputSchema, type Json, type Schema } from "./schemas.ts";

/* The API in OpenAPI 3.1 (https://spec.openapis.org/oas/v3.1.1), from the endpoints' rows and schemas. */

/** What a handler's module shows of its endpoint, beside handling requests. */
interface Taking {
  input?: Schema | (() => Schema);
  query?: Schema;
}

/** @throws Error that names a field which is told of and not there, or the other way round */
export async function openApiDocument(version: string): Promise<Json> {
  const rows: readonly EndpointRow[] = endpoints;
  const paths: Json = {};
  for (const row of rows) {
    const { handler } = (await import(`../../functions/${row.file}.ts`)) as { handler: Taking };
    paths[row.path] ??= pathItem(row.path);
    paths[row.path][row.method.toLowerCase()] = operationOf(row, handler);
  }
  return {
    openapi: "3.1.1",
    info: {
      title: "API keys and deployment webhooks",
      version,
      summary: "API keys, authentication and deployment webhooks of an application deployment platform.",
      description: introduction,
      license: { name: "Proprietary", identifier: "LicenseRef-Proprietary" },
    },
    servers: [
      {
        url: "https://{api}.execute-api.{region}.amazonaws.com/{stage}",
        description: "A stage: the stack's output `ApiUrl`.",
        variables: {
          api: { default: "abcdef1234", description: "Id of the REST API." },
          region: { default: "eu-central-1" },
          stage: { default: "prod" },
        },
      },
      { url: "http://127.0.0.1:3000", description: "`npm start` on this machine." },
    ],
    security: [{ jwt: [] }, { apiKey: [] }],
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    paths,
    webhooks: Object.fromEntries(eventNames.map((name) => [name, { post: webhookOf(name) }])),
    components: {
      schemas: componentSchemas(),
      responses: Object.fromEntries(errorResponses),
      parameters: Object.fromEntries(
        Object.entries(pathParameters).map(([name, told]) => [name, pathParameter(name, told)]),
      ),
      headers,
      securitySchemes,
    },
  };
}

const introduction = `Requests carry \`Authorization: Bearer <token>\`: a token that starts with \`svc_\` is an API key, any other is a JWT.
Bodies are JSON, of 64 KB at most. Records come as \`{"data": …}\`. Fields and parameters that are not listed are refused in
requests; answers may get new ones, which clients ignore. Times are ISO 8601 in UTC, ids are UUIDs.

Errors come as \`{"error": {"code", "message", "request_id"}}\`. Codes are part of the API, messages are not. Unknown paths
answer 404 \`not_found\`, other methods of a path 405 \`method_not_allowed\` with \`Allow\`. \`Retry-After\` of a 429 or 503 says how
many seconds to wait.`;

const securitySchemes = {
  jwt: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "JWT",
    description: "A user who has signed in: a JWT of the identity provider, an hour old at most.",
  },
  apiKey: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "svc_ and 64 hexadecimal digits",
    description: "An API key, with the permissions of the user who made it. Valid until it is deleted.",
  },
};

const pathParameters: Record<string, string> = {
  id: "Id of the API key.",
  project_id: "Id of the project.",
  webhook_id: "Id of the webhook.",
  delivery_id: "Id of the delivery.",
};

const whoMay: Record<Access, string> = {
  session: "Takes a JWT only.",
  user: "",
  viewer: "For members of the project.",
  admin: "For admins of the project.",
};

function pathParameter(name: string, description: string): Json {
  return { name, in: "path", required: true, description, schema: { type: "string", format: "uuid" } };
}

function pathItem(path: string): Json {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  return {
    ...(names.length > 0 && { parameters: names.map((name) => ({ $ref: `#/components/parameters/${name}` })) }),
    // OpenAPI has no place for the answer to a method that is not there.
    "x-other-methods": { $ref: `#/components/responses/${responseNameOf(["method_not_allowed"])}` },
  };
}

function operationOf(row: EndpointRow, { input, query }: Taking): Json {
  const operation = operations[row.file as keyof typeof operations];
  const { id, tag, summary, description, errors, example } = operation;
  const body = input && inputSchema(typeof input === "function" ? input() : input);
  const parameters = query && inputSchema(query);
  tellOf(operation, body ?? parameters);
  const codes = codesOf(row, { body: body !== undefined, query: query !== undefined }, errors);
  return {
    operationId: id,
    tags: [tag],
    summary,
    description: [description, whoMay[row.access]].filter(Boolean).join(" ") || summary,
    ...(row.access === "session" && { security: [{ jwt: [] }] }),
    ...(parameters && { parameters: queryParameters(parameters) }),
    ...(body && { requestBody: requestBody(body, example) }),
    responses: { ...success(operation), ...failures(codes) },
  };
}

/** Adds to a schema what is told of its fields. */
function tellOf({ id, fields = {}, body = {} }: Operation, schema: Json): void {
  const properties: Record<string, Json> = schema?.properties ?? {};
  const untold = Object.keys(properties).filter((name) => !(name in fields));
  const absent = Object.keys(fields).filter((name) => !(name in properties));
  if (untold.length + absent.length > 0) {
    const problem = [
      ...untold.map((name) => `${name} is not told of`),
      ...absent.map((name) => `${name} is not there`),
    ];
    throw new Error(
      `The fields of ${id} in bin/openapi/operations.ts are not those of its schema: ${problem.join(", ")}`,
    );
  }
  for (const [name, told] of Object.entries(fields)) Object.assign(properties[name], told);
  Object.assign(schema ?? {}, body);
}

function queryParameters({ properties, required = [] }: Json): Json[] {
  return Object.entries<Json>(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: "query",
    required: required.includes(name),
    description,
    schema,
  }));
}

function requestBody(schema: Json, example: Json): Json {
  const required = schema.required !== undefined || schema.minProperties !== undefined;
  return { required, content: { "application/json": { schema, example } } };
}

function success({ answer }: Operation): Json {
  if (answer.status === 204) return { 204: { description: "Done. The body is empty.", headers: headersOf() } };
  const { status, schema, example, hasNextPage } = answer;
  const content = {
    "application/json": {
      schema: { type: "object", required: ["data"], properties: { data: answerSchema(schema) } },
      example: { data: example },
    },
  };
  return { [status]: { description: STATUS_CODES[status], headers: headersOf(hasNextPage ? ["Link"] : []), content } };
}

const headerRef = (name: string) => [name, { $ref: `#/components/headers/${name}` }];

/** The headers of every answer, and more. */
function headersOf(more: (keyof typeof headers)[] = []): Json {
  return Object.fromEntries(["x-request-id", ...Object.keys(securityHeaders), ...more].map(headerRef));
}

const headers: Record<string, Json> = {
  "x-request-id": {
    description: "Id of the request. Name it when you ask for help.",
    required: true,
    schema: { type: "string", format: "uuid" },
  },
  ...Object.fromEntries(
    Object.entries(securityHeaders).map(([name, value]) => [
      name,
      { description: "The same on every answer.", required: true, schema: { type: "string", const: value } },
    ]),
  ),
  Link: {
    description: 'The next page, `<url>; rel="next"` (RFC 8288). Absent on the last one.',
    schema: { type: "string", pattern: '^<[^>]+>; rel="next"$' },
  },
  "Retry-After": {
    description: "Seconds to wait before the next try.",
    required: true,
    schema: { type: "integer", minimum: 1 },
  },
  "WWW-Authenticate": {
    description: 'Asks for a bearer token (RFC 6750); with `error="invalid_token"` when one was sent.',
    required: true,
    schema: { type: "string", pattern: '^Bearer realm="api"(, error="invalid_token")?$' },
  },
  Allow: {
    description: "The methods that the path takes.",
    required: true,
    schema: { type: "string", pattern: "^[A-Z]+(, [A-Z]+)*$" },
  },
};

const headersByStatus: Record<number, string[]> = {
  401: ["WWW-Authenticate"],
  405: ["Allow"],
  429: ["Retry-After"],
  503: ["Retry-After"],
};

/** The error responses that operations refer to, by name: those with the same codes are one. */
const errorResponses = new Map<string, Json>();
responseNameOf(["method_not_allowed"]);

function failures(codes: ErrorCode[]): Json {
  const byStatus = Map.groupBy(codes, (code) => statusByCode[code]);
  return Object.fromEntries(
    [...byStatus].map(([status, group]) => [status, { $ref: `#/components/responses/${responseNameOf(group)}` }]),
  );
}

function responseNameOf(codes: ErrorCode[]): string {
  const [first = "internal_error", ...others] = codes;
  const status = statusByCode[first];
  const words = others.length === 0 ? first.split("_") : (STATUS_CODES[status] ?? "").toLowerCase().split(" ");
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
  errorResponses.set(name, {
    description: codes.map((code) => `\`${code}\`: ${meaningOf[code]}`).join("\n\n"),
    headers: headersOf(headersByStatus[status]),
    content: {
      "application/json": {
        schema: answerSchema(errorResponseSchema([first, ...others])),
        examples: Object.fromEntries(codes.map((code) => [code, { value: errorExample(code) }])),
      },
    },
  });
  return name;
}

function errorExample(code: ErrorCode): Json {
  const request_id = "5f0c1d9e-3f4b-4b0e-9a55-1f6f0a6d2c11";
  if (code !== "validation_error") return { error: { code, message: messageOf(code), request_id } };
  const details = [{ path: "url", message: "must start with https://" }];
  return {
    error: { code, message: "The input is not valid: url must start with https://.", request_id, details },
  };
}

/** What an event's receivers get. */
function webhookOf(name: (typeof eventNames)[number]): Json {
  const { body, headers: example } = exampleRequest(name);
  const schema = answerSchema(payloadSchemas[name]);
  const words = name.split(".").map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return {
    operationId: `on${words.join("")}`,
    tags: ["Events"],
    summary: `${name}: ${meaningOfEvent[name]}`,
    description: delivered,
    security: [],
    parameters: receiverHeaders.map(({ name: header, required = true, ...told }) => ({
      name: header,
      in: "header",
      required,
      ...told,
      ...(example[header] !== undefined && { example: example[header] }),
      ...(header === "X-Service-Event" && { schema: { type: "string", const: name } }),
    })),
    requestBody: { required: true, content: { "application/json": { schema, example: JSON.parse(body) } } },
    responses: receiverResponses,
  };
}

const delivered = `Sent to every webhook that subscribes to it, signed, at least once: the same \`X-Service-Delivery\` is the same event. Verify
a signature over the body as it came, before it is parsed, and answer 2xx within 15 seconds. Anything else is tried again for
27 hours.`;

const bodySignatures = "sha256=[0-9a-f]{64}";

const receiverHeaders: { name: string; required?: boolean; description: string; schema: Json }[] = [
  { name: "User-Agent", description: "Who sends.", schema: { type: "string", const: "Deployment-Webhooks/1.0" } },
  { name: "X-Service-Event", description: "The event, as in the body.", schema: { type: "string" } },
  {
    name: "X-Service-Delivery",
    description: "Id of the delivery, the same at every attempt.",
    schema: { type: "string", format: "uuid" },
  },
  {
    name: "X-Service-Signature",
    description: "HMAC-SHA256 of the body in hexadecimal, keyed with the webhook's whole secret, `whsec_` included.",
    schema: { type: "string", pattern: `^${bodySignatures}$` },
  },
  {
    name: "X-Service-Signature-Previous",
    required: false,
    description: "While a secret is rotated: the same by the secrets before, newest first.",
    schema: { type: "string", pattern: `^${bodySignatures}(, ${bodySignatures}){0,2}$` },
  },
  {
    name: "webhook-id",
    description: "Standard Webhooks: as `X-Service-Delivery`.",
    schema: { type: "string", format: "uuid" },
  },
  {
    name: "webhook-timestamp",
    description: "Standard Webhooks: time of the attempt, in seconds since 1970.",
    schema: { type: "string", pattern: "^\\d+$" },
  },
  {
    name: "webhook-signature",
    description:
      "Standard Webhooks: HMAC-SHA256 of `id.timestamp.body` in base64, keyed with what the part of the secret after `whsec_` " +
      "decodes to; one for each secret that is valid, newest first.",
    schema: { type: "string", pattern: "^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=){0,3}$" },
  },
];

const receiverResponses = {
  "2XX": { description: "Received. The delivery has succeeded." },
  410: { description: "Gone for good. The webhook is disabled." },
  "4XX": { description: "Not received: tried again on schedule." },
  "5XX": {
    description: "Not received: tried again on schedule.",
    headers: {
      "Retry-After": {
        description: "Respected on any answer that is not 2xx, up to 12 hours, where it is longer than the schedule.",
        schema: { type: "integer", minimum: 0 },
      },
    },
  },
};

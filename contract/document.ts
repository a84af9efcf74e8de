import { STATUS_CODES } from "node:http";
import type { ParamOf } from "../functions/foundation/http/define-endpoint.ts";
import type { Access, EndpointRow, endpoints, OperationId } from "../functions/foundation/manifest/endpoints.ts";
import { webhookEventNames } from "../functions/foundation/manifest/events.ts";
import { endpointRows } from "../functions/foundation/manifest/function-rows.ts";
import { workflowPermissions } from "../functions/foundation/manifest/permissions.ts";
import { securityHeaders } from "../functions/foundation/manifest/response-headers.ts";
import { DEFAULT_SCHEDULE } from "../functions/foundation/manifest/retry-schedule.ts";
import { type ErrorCode, statusByCode } from "../functions/foundation/platform/errors.ts";
import { errorCodesOf, errorDescriptions, exampleMessageOf } from "./errors.ts";
import { exampleRequest } from "./examples.ts";
import { type Operation, operations, tagOf, tags } from "./operations.ts";
import { errorResponseSchema } from "./responses/fields.ts";
import { webhookEventMeanings } from "./responses/payload.ts";
import {
  componentSchemas,
  descriptionsOf,
  inputSchema,
  type Json,
  outputSchema,
  pascalCase,
  type Schema,
} from "./schemas.ts";

/* The API in OpenAPI 3.1 (https://spec.openapis.org/oas/v3.1.1), from the endpoints' rows and schemas. */

/** The schemas that a handler exposes. */
interface HandlerSchemas {
  input?: Schema | (() => Schema);
  query?: Schema;
}

/**
 * Builds the OpenAPI document.
 * @param version of the API
 * @throws Error when the fields in operations.ts are not those of an endpoint's schema
 */
export async function openApiDocument(version: string): Promise<Json> {
  const paths: Json = {};
  for (const row of endpointRows) {
    const { handler } = (await import(`../functions/${row.file}.ts`)) as { handler: HandlerSchemas };
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
        description: "A stage: the stack's output `ApiUrl`. `api` is the id of its REST API.",
        // Without a description: a common copy of the schema of OpenAPI 3.1 misspells that keyword and refuses it.
        variables: {
          api: { default: "abcdef1234" },
          region: { default: "eu-central-1" },
          stage: { default: "prod" },
        },
      },
      { url: "http://127.0.0.1:3000", description: "`npm start` on this machine." },
    ],
    security: defaultSecurity,
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    paths,
    webhooks: Object.fromEntries(webhookEventNames.map((name) => [name, { post: webhookOf(name) }])),
    components: {
      schemas: componentSchemas(),
      responses: Object.fromEntries(errorResponses),
      parameters: Object.fromEntries(
        Object.entries(pathParameters).map(([name, description]) => [name, pathParameter(name, description)]),
      ),
      headers,
      securitySchemes,
    },
  };
}

const introduction = `Send \`Authorization: Bearer <token>\` with every request. A token that starts with \`svc_\` is an API key; any other is a
JWT, of a user or of a workflow in a CI system.
Request bodies are JSON of at most 64 KB; unknown fields and query parameters are rejected, cache busters too: no response is
cached. Successful responses have the form \`{"data": …}\`. Later versions may add fields to responses; clients must ignore
fields they do not know. Times are ISO 8601 in UTC, ids are UUIDs.

Errors have the form \`{"error": {"code", "message", "request_id"}}\`. Codes are part of the API, messages may change. An unknown
path returns 404 \`not_found\`. An unsupported method returns 405 \`method_not_allowed\` with \`Allow\`. With a 429 or 503,
\`Retry-After\` is the number of seconds to wait.

Collections generated from this document (Postman, Insomnia) run without their optional parameters: a \`cursor\` must be
that of an earlier response.`;

const securitySchemes = {
  jwt: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "JWT",
    description: "The JWT of a signed-in user, issued by the identity provider at most an hour ago.",
  },
  apiKey: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "svc_ and 64 hexadecimal digits",
    description:
      "An API key, with the permissions of the user who created it, unless it is scoped. Valid until it is deleted or has expired.",
  },
  workflow: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "JWT",
    description:
      "The OIDC token of a job in a CI system, for the audience of this service. Accepted while a project trusts the workflow, with " +
      "the permissions of that trusted workflow. The same header as for a JWT: the issuer in the token decides.",
  },
};

/** The parameters of all paths. A new one does not compile until it is described here. */
const pathParameters: Record<ParamOf<(typeof endpoints)[OperationId]["path"]>, string> = {
  id: "Id of the API key.",
  project_id: "Id of the project.",
  webhook_id: "Id of the webhook.",
  delivery_id: "Id of the delivery.",
  certification_id: "Id of the certification.",
  service_account_id: "Id of the service account.",
  trusted_workflow_id: "Id of the trusted workflow.",
};

const accessNotes: Record<Access, string> = {
  anyone: "Requires no credential.",
  session: "Requires the JWT of a user; API keys and workflows are rejected.",
  user: "",
  viewer: "Only for members of the project.",
  admin: "Requires the role `admin` in the project.",
  admin_session:
    "Requires the JWT of a user with the role `admin` in the project; API keys and workflows are rejected.",
};

/** The credentials that most operations accept. */
const defaultSecurity = [{ jwt: [] }, { apiKey: [] }, { workflow: [] }];

/** Returns the credentials that an operation accepts, if they are not those of most. */
function securityOf(row: EndpointRow): { security?: object[] } {
  if (row.access === "anyone") return { security: [] };
  if (needsSession(row)) return { security: [{ jwt: [] }] };
  const isForWorkflows = row.permission === "none" || workflowPermissions.some((name) => name === row.permission);
  return isForWorkflows ? {} : { security: [{ jwt: [] }, { apiKey: [] }] };
}

const needsSession = ({ access }: EndpointRow): boolean => access === "session" || access === "admin_session";

const permissionNote = ({ permission }: EndpointRow): string =>
  permission === "none" ? "" : `Permission: \`${permission}\`.`;

/** The sentence on a throttle of the endpoint's own. */
function throttleNote({ throttle }: EndpointRow): string {
  if (!throttle) return "";
  const { requestsPerSecond, burst } = throttle;
  return `All callers together can send ${requestsPerSecond} requests a second, ${burst} at once; beyond it, returns 429 \`rate_limited\`.`;
}

/** The sentence on the budget of a user. */
const credentialNote = ({ credentialsPerMinutePerUser: limit }: EndpointRow): string =>
  limit === undefined
    ? ""
    : `A user can create and roll ${limit} API keys, service accounts and trusted workflows a minute; beyond it, returns 429 \`rate_limited\`.`;

function pathParameter(name: string, description: string): Json {
  return { name, in: "path", required: true, description, schema: { type: "string", format: "uuid" } };
}

function pathItem(path: string): Json {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  return {
    ...(names.length > 0 && { parameters: names.map((name) => ({ $ref: `#/components/parameters/${name}` })) }),
    // OpenAPI has no place for the response to an unsupported method.
    "x-other-methods": { $ref: `#/components/responses/${responseNameOf(["method_not_allowed"])}` },
  };
}

function operationOf(row: EndpointRow, { input, query }: HandlerSchemas): Json {
  const operation = operations[row.id as OperationId];
  const { summary, description, errors } = operation;
  const body = input && inputSchema(typeof input === "function" ? input() : input);
  const parameters = query && inputSchema(query);
  addFieldKeywords(row.id, operation, body ?? parameters);
  const codes = errorCodesOf(row, body !== undefined, errors);
  return {
    operationId: row.id,
    tags: [tagOf(row.path)],
    summary,
    description:
      [description, throttleNote(row), credentialNote(row), accessNotes[row.access], permissionNote(row)]
        .filter(Boolean)
        .join(" ") || summary,
    ...securityOf(row),
    ...((parameters || row.repeatReturns) && {
      parameters: [
        ...(parameters ? queryParameters(parameters) : []),
        ...(row.repeatReturns ? [idempotencyKeyOf(row.id)] : []),
      ],
    }),
    ...(body && { requestBody: requestBody(row.id, operation, body) }),
    responses: { ...success(operation), ...failures(codes) },
  };
}

/**
 * Adds the descriptions and keywords of operations.ts to a schema. A field without an entry there has the description of the
 * field of the same name in the response.
 * @throws Error when a field has no description, or an entry no field
 */
function addFieldKeywords(id: string, { fields = {}, body = {}, response }: Operation, schema: Json): void {
  const properties: Record<string, Json> = schema?.properties ?? {};
  const described = response.status === 204 ? {} : descriptionsOf(response.schema);
  const missing = Object.keys(properties).filter((name) => !(name in fields) && described[name] === undefined);
  const unknown = Object.keys(fields).filter((name) => !(name in properties));
  if (missing.length + unknown.length > 0) {
    const problem = [
      ...missing.map((name) => `${name} has no entry, and the response does not describe it`),
      ...unknown.map((name) => `${name} is not in the schema`),
    ];
    throw new Error(`contract/operations.ts, fields of ${id}: ${problem.join(", ")}.`);
  }
  for (const [name, property] of Object.entries(properties)) {
    Object.assign(property, fields[name] ?? { description: described[name] });
  }
  Object.assign(schema ?? {}, body);
}

function queryParameters({ properties, required = [] }: Json): Json[] {
  return Object.entries<Json>(properties).map(([name, { description, example, ...schema }]) => ({
    name,
    in: "query",
    required: required.includes(name),
    description,
    schema,
    ...(example !== undefined && { example }),
  }));
}

/** The example names the operation: tools send it with every request, and one value for two operations gets 422. */
const idempotencyKeyOf = (operationId: string): Json => ({
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description:
    "A value of your own that makes it safe to repeat the request with the same user, or with the same scoped key: for 24 hours, a repeat creates nothing. If the response contained a " +
    "secret, the repeat returns 409 `already_created` with the id. The same value with another body returns 422.",
  schema: { type: "string", minLength: 1, maxLength: 255, pattern: "^[!-~]+$" },
  example: `${operationId}-1`,
});

/** @throws Error when operations.ts has no example */
function requestBody(id: string, { example }: Operation, schema: Json): Json {
  if (example === undefined) throw new Error(`contract/operations.ts, ${id}: add \`example\`, a valid body.`);
  const required = schema.required !== undefined || schema.minProperties !== undefined;
  return { required, content: { "application/json": { schema, example } } };
}

function success({ response }: Operation): Json {
  if (response.status === 204) return { 204: { description: "Success. The body is empty.", headers: headersOf() } };
  const { status, schema, example, hasNextPage } = response;
  const content = {
    "application/json": {
      schema: { type: "object", required: ["data"], properties: { data: outputSchema(schema) } },
      example: { data: example },
    },
  };
  return { [status]: { description: STATUS_CODES[status], headers: headersOf(hasNextPage ? ["Link"] : []), content } };
}

const headerRef = (name: string) => [name, { $ref: `#/components/headers/${name}` }];

/** References to the headers of every response, and to further ones. */
function headersOf(more: (keyof typeof headers)[] = []): Json {
  return Object.fromEntries(["x-request-id", ...Object.keys(securityHeaders), ...more].map(headerRef));
}

const headers: Record<string, Json> = {
  "x-request-id": {
    description: "Id of the request. Quote it when you report a problem.",
    required: true,
    schema: { type: "string", format: "uuid" },
  },
  ...Object.fromEntries(
    Object.entries(securityHeaders).map(([name, value]) => [
      name,
      { description: "The same on every response.", required: true, schema: { type: "string", const: value } },
    ]),
  ),
  Link: {
    description:
      'The next page, `<url>; rel="next"` (RFC 8288). Absent on the last one. A list of deployment events also has ' +
      'what is stored later, `<url>; rel="monitor"`.',
    schema: { type: "string", pattern: '^<[^>]+>; rel="(next|monitor)"(, <[^>]+>; rel="monitor")?$' },
  },
  "Retry-After": {
    description: "Seconds to wait before the next request.",
    required: true,
    schema: { type: "integer", minimum: 1 },
  },
  "WWW-Authenticate": {
    description: 'Challenge for a bearer token (RFC 6750), with `error="invalid_token"` when one was sent.',
    required: true,
    schema: { type: "string", pattern: '^Bearer realm="api"(, error="invalid_token")?, resource_metadata="[^"]+"$' },
  },
  Allow: {
    description: "The methods that the path supports.",
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

/** The error responses that operations refer to, by name. Responses with the same codes share one entry. */
const errorResponses = new Map<string, Json>();
const codesByName = new Map<string, string>();
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
  const ofCodes = codes.map((code) => titleCase(code.split("_"))).join("Or");
  const ofStatus = titleCase((STATUS_CODES[status] ?? "").toLowerCase().split(" "));
  // Two sets of codes must not share a name: `conflict` alone and two other codes with 409 are both "Conflict".
  const isOtherCode = Object.keys(statusByCode).some(
    (code) => titleCase(code.split("_")) === ofStatus && !codes.some((own) => own === code),
  );
  const candidates = [...(others.length === 0 || isOtherCode ? [] : [ofStatus]), ofCodes];
  const isUsable = (name: string) => [undefined, codes.join()].includes(codesByName.get(name));
  const name = candidates.find(isUsable);
  if (name === undefined) throw new Error(`contract/document.ts has no unused name for ${codes.join(", ")}.`);
  codesByName.set(name, codes.join());
  errorResponses.set(name, {
    description: codes.map((code) => `\`${code}\`: ${errorDescriptions[code]}`).join("\n\n"),
    headers: headersOf(headersByStatus[status]),
    content: {
      "application/json": {
        schema: outputSchema(errorResponseSchema([first, ...others])),
        examples: Object.fromEntries(codes.map((code) => [code, { value: errorExample(code) }])),
      },
    },
  });
  return name;
}

function titleCase(words: string[]): string {
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
}

function errorExample(code: ErrorCode): Json {
  const request_id = "5f0c1d9e-3f4b-4b0e-9a55-1f6f0a6d2c11";
  if (code !== "validation_error") return { error: { code, message: exampleMessageOf(code), request_id } };
  const details = [{ path: "url", message: "must start with https://" }];
  return {
    error: { code, message: "The input is not valid: url must start with https://.", request_id, details },
  };
}

/** Describes the request that receivers get for an event. */
function webhookOf(name: string): Json {
  const { body, headers: example } = exampleRequest(name);
  const schema = { $ref: `#/components/schemas/${pascalCase(name)}` };
  return {
    operationId: `on${pascalCase(name)}`,
    tags: ["Events"],
    summary: `${name}: ${webhookEventMeanings[name]}`,
    description: deliveryDescription,
    security: [],
    parameters: receiverHeaders.map(({ name: header, required = true, ...rest }) => ({
      name: header,
      in: "header",
      required,
      ...rest,
      ...(example[header] !== undefined && { example: example[header] }),
      ...(header === "X-Service-Event" && { schema: { type: "string", const: name } }),
    })),
    requestBody: { required: true, content: { "application/json": { schema, example: JSON.parse(body) } } },
    responses: receiverResponses,
  };
}

/** Time from the first attempt to the last, by the default schedule without its jitter. */
const RETRY_SECONDS = DEFAULT_SCHEDULE.reduce((sum, wait) => sum + wait, 0);

const deliveryDescription = `Sent to every webhook that subscribes to the event, signed, at least once, in this form unless the webhook has a \`format\` or \`signatures\`. Requests with the same \`X-Service-Delivery\` are
the same delivery. Verify a signature over the raw body, before parsing it, and respond with 2xx within 15 seconds. Other
responses lead to retries for ${Math.floor(RETRY_SECONDS / 3600)} hours.`;

const bodySignatures = "sha256=[0-9a-f]{64}";

const receiverHeaders: { name: string; required?: boolean; description: string; schema: Json }[] = [
  { name: "User-Agent", description: "The sender.", schema: { type: "string", const: "Deployment-Webhooks/1.0" } },
  { name: "X-Service-Event", description: "The event name, as in the body.", schema: { type: "string" } },
  {
    name: "X-Service-Delivery",
    description: "Id of the delivery, the same for every attempt.",
    schema: { type: "string", format: "uuid" },
  },
  {
    name: "X-Service-Sequence",
    description:
      "A number, larger for a newer event of the same deployment, whichever arrives first. At equal times, a final state is newer.",
    schema: { type: "string", pattern: "^\\d{1,16}$" },
  },
  {
    name: "X-Service-Test",
    required: false,
    description:
      "Present on test deliveries and certifications only. The signatures do not cover it: in the body, `data.test` is `true` as well.",
    schema: { type: "string", const: "true" },
  },
  {
    name: "X-Service-Signature",
    description: "HMAC-SHA256 of the body in hexadecimal, keyed with the webhook's whole secret, including `whsec_`.",
    schema: { type: "string", pattern: `^${bodySignatures}$` },
  },
  {
    name: "X-Service-Signature-Previous",
    required: false,
    description: "During a rotation: the same HMAC with each previous secret that is still valid, newest first.",
    schema: { type: "string", pattern: `^${bodySignatures}(, ${bodySignatures}){0,2}$` },
  },
  {
    name: "webhook-id",
    description: "Standard Webhooks: equal to `X-Service-Delivery`.",
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
      "Standard Webhooks: HMAC-SHA256 of `id.timestamp.body` in base64, one for each valid secret, newest first. The key is " +
      "the part of the secret after `whsec_`, decoded from base64, or the whole text of an imported secret without such a part.",
    schema: { type: "string", pattern: "^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=){0,3}$" },
  },
];

const receiverResponses = {
  "2XX": { description: "Received: the delivery succeeds." },
  410: { description: "Gone: the webhook is disabled." },
  "4XX": { description: "Not received: the delivery is retried on schedule." },
  "5XX": {
    description: "Not received: the delivery is retried on schedule.",
    headers: {
      "Retry-After": {
        description:
          "Postpones the next attempt. Applies to every response other than 2xx, up to 12 hours, if it is longer than the schedule.",
        schema: { type: "integer", minimum: 0 },
      },
    },
  },
};

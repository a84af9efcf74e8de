import middy from "@middy/core";
import type { APIGatewayProxyEvent, APIGatewayProxyResult, Context } from "aws-lambda";
import type * as z from "zod/mini";
import { type Actor, actorOf } from "../access/actor.ts";
import { type Identity, idempotencyScopeOf, identityContext } from "../access/identity.ts";
import { holds, requireAccess } from "../access/require-access.ts";
import { chargeCredential } from "../budgets/request-budget-store.ts";
import type { endpoints, OperationId } from "../manifest/endpoints.ts";
import type { protocols } from "../manifest/protocols.ts";
import { securityHeaders } from "../manifest/response-headers.ts";
import { isContention, isOutage, type TransactItem } from "../platform/aws.ts";
import { settings } from "../platform/env.ts";
import { ApiError } from "../platform/errors.ts";
import { log } from "../platform/log.ts";
import { canonicalUuid } from "../platform/uuid.ts";
import { fields, parse } from "../schema/input.ts";
import { corsHeaders } from "./cors.ts";
import { repeatableRequest } from "./idempotency-store.ts";
import { maskedFor } from "./masking.ts";
import { outcomeItems, type Repeated, runOnce } from "./run-once.ts";

/*
 * The code that all endpoints share: access checks, ids, the JSON body, the `data` envelope, headers and errors. The
 * file of an endpoint names its row and contains only its own logic.
 */

type Row = (typeof endpoints)[OperationId] | (typeof protocols)["subscribe"];

/** The caller of an endpoint; undefined where the access is `anyone`. */
type CallerOf<R extends Row> = R["access"] extends "anyone" ? undefined : Identity;

/** The names between braces in a path: "/v1/projects/{project_id}" -> "project_id". */
export type ParamOf<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamOf<Rest>
  : never;

interface EndpointRequest<Params extends string, Input, Query, Caller> {
  /** The UUIDs in the path. */
  params: Record<Params, string>;
  /** The body, validated and converted by the schema of the endpoint. */
  input: Input;
  /** The query parameters, validated and converted in the same way. */
  query: Query;
  /** The requested URL without its query. */
  requestUrl: URL;
  identity: Caller;
  /** The caller, for the audit log. */
  actor: Actor;
  /**
   * Returns the items that make a repeat of this request safe, for the transaction that creates the resource: none
   * without the header `Idempotency-Key`.
   * @param response what the endpoint returns
   */
  onceOnly(response: Repeated): Record<string, TransactItem>;
  now: Date;
}

interface EndpointResponse {
  statusCode: number;
  /** Sent as `{"data": …}`; absent for an empty body. */
  data?: unknown;
  headers?: Record<string, string> | undefined;
  /** Id of the created resource, for the log. */
  createdId?: string;
}

export const ok = (data: object, headers?: Record<string, string>): EndpointResponse => ({
  statusCode: 200,
  data,
  headers,
});

/**
 * Responds with a page of a list. The `Link` header (RFC 8288) has the URL of the next page.
 * @param nextCursor undefined = this is the last page
 */
export function okPage(
  data: object[],
  { requestUrl, query, nextCursor }: { requestUrl: URL; query: { given: object }; nextCursor: string | undefined },
): EndpointResponse {
  if (nextCursor === undefined) return ok(data);
  return ok(data, { Link: linkTo(requestUrl, { ...query.given, cursor: nextCursor }, "next") });
}

/** Returns a link of a `Link` header (RFC 8288) to the requested URL with other query parameters. */
export function linkTo(requestUrl: URL, query: Record<string, string>, rel: "next" | "monitor"): string {
  const url = new URL(requestUrl);
  url.search = new URLSearchParams(query).toString();
  return `<${url}>; rel="${rel}"`;
}

export const created = (data: { id: string }): EndpointResponse => ({ statusCode: 201, data, createdId: data.id });
export const accepted = (data: object): EndpointResponse => ({ statusCode: 202, data });
export const noContent = (): EndpointResponse => ({ statusCode: 204 });

/** A request whose body was not parsed. */
export interface ForeignRequest {
  text: string;
  /** @param name in lower case */
  header(name: string): string | undefined;
  actor: Actor;
  now: Date;
}

interface EndpointDefinition<
  Params extends string,
  Schema extends z.ZodMiniType,
  Query extends z.ZodMiniType,
  Caller extends Identity | undefined,
> {
  /**
   * Schema of the body, created with `fields` of foundation/schema/input.ts, or a function that derives it from the settings;
   * absent = the body is ignored.
   */
  input?: Schema | (() => Schema);
  /** Schema of the query parameters, created with `fields`; absent = the endpoint has none. */
  query?: Query;
  /** Answers a request in the form of another service, which fixes the JSON of both; returns undefined for another one. */
  answerForeign?(request: ForeignRequest): Promise<object | undefined>;
  run(request: EndpointRequest<Params, z.output<Schema>, z.output<Query>, Caller>): Promise<EndpointResponse>;
}

/**
 * Rejects every parameter: one that is ignored, such as the `limit` of a list without pages, would seem to have an effect. That
 * includes cache busters and tracking parameters, because no response is cached, and no page links to the API.
 */
const noQuery = fields({});

/** Creates the Lambda handler of an endpoint. @param row its row in `endpoints.ts` */
export function defineEndpoint<R extends Row, Schema extends z.ZodMiniType, Query extends z.ZodMiniType>(
  row: R,
  { input, query, answerForeign, run }: EndpointDefinition<ParamOf<R["path"]>, Schema, Query, CallerOf<R>>,
) {
  const { method, path, access, permission } = row;
  const isRepeatable = "repeatReturns" in row;

  async function respond(event: APIGatewayProxyEvent): Promise<APIGatewayProxyResult> {
    const identity =
      access === "anyone" ? undefined : (identityContext.parse(event.requestContext.authorizer) as Identity);
    const params = readParams(event);
    const role = identity && (await requireAccess({ access, permission }, identity, params));
    const given = parse(query ?? noQuery, event.queryStringParameters ?? {}, "query parameter") as z.output<Query>;
    const actor = actorOf(identity, event.requestContext);
    const schema = typeof input === "function" ? input() : input;
    const header = (name: string) => headerOf(event.headers, name);
    const foreign = await answerForeign?.({ text: textOf(event), header, actor, now: new Date() });
    if (foreign) return { statusCode: 200, body: JSON.stringify(foreign) };
    const body = (schema && parse(schema, readJson(event))) as z.output<Schema>;
    const now = new Date();
    const idempotencyKey = isRepeatable ? header("idempotency-key") : undefined;
    const userId = identity ? idempotencyScopeOf(identity, params.project_id) : "";
    // Not the requested path: it has the base path of a custom domain, and ids in any case.
    const target = JSON.stringify([`${method} ${path}`, Object.entries(params).sort()]);
    const request = repeatableRequest(idempotencyKey, { userId, route: target, input: body });
    const call = async () => {
      if (identity && "credentialsPerMinutePerUser" in row)
        await chargeCredential(identity.userId, row.credentialsPerMinutePerUser, now);
      return run({
        params,
        input: body,
        query: given,
        requestUrl: requestUrl(event),
        identity: identity as CallerOf<R>,
        actor,
        onceOnly: (repeated) => outcomeItems(request, repeated, now),
        now,
      });
    };
    const response = await runOnce(request, now, call, created);
    if (method !== "GET") logWrite({ method, path }, params, identity, response);
    const { statusCode, headers } = response;
    const data =
      identity && params.project_id !== undefined
        ? maskedFor((permission) => role === "admin" && holds(identity, permission), response.data)
        : response.data;
    return { statusCode, body: data === undefined ? "" : JSON.stringify({ data }), ...(headers && { headers }) };
  }

  // middy runs what follows a response and an error. The steps before are no middlewares: they hand typed values to each other,
  // which middy would carry untyped in the event, and a repeated request runs around the endpoint, for which it has no hook.
  const handler = middy(respond).use([addResponseHeaders, renderErrors]);
  const lambda = (event: APIGatewayProxyEvent, context: Context): Promise<APIGatewayProxyResult> =>
    log.scope({ request_id: event.requestContext.requestId }, () => handler(event, context));
  // The OpenAPI document is generated from these schemas.
  return Object.assign(lambda, { input, query });
}

/** Logs one line per successful write: the audit trail of keys, webhooks and secrets. */
function logWrite(
  { method, path }: Pick<Row, "method" | "path">,
  params: Record<string, string>,
  identity: Identity | undefined,
  { statusCode, createdId }: EndpointResponse,
): void {
  const { userId, keyId, repository, ref, runId } = identity ?? {};
  const caller = { user_id: userId, key_id: keyId, repository, ref, run_id: runId };
  log.info("request", { method, route: path, status: statusCode, ...caller, ...params, created_id: createdId });
}

export const textOf = ({ body, isBase64Encoded }: APIGatewayProxyEvent): string =>
  isBase64Encoded ? Buffer.from(body ?? "", "base64").toString("utf8") : (body ?? "");

export const MAX_BODY_BYTES = 64 * 1024;

/**
 * Parses the body. A missing body counts as an empty object, so it is valid where all fields are optional.
 * @throws ApiError `payload_too_large`, `unsupported_media_type` or `invalid_json`
 */
function readJson(event: APIGatewayProxyEvent): unknown {
  const { headers } = event;
  const text = textOf(event);
  if (text === "") return {};
  if (Buffer.byteLength(text) > MAX_BODY_BYTES) {
    throw new ApiError("payload_too_large", `The body is larger than the limit of ${MAX_BODY_BYTES / 1024} KB.`);
  }
  if (!/^application\/json *(;|$)/i.test(headerOf(headers, "content-type") ?? "")) {
    throw new ApiError("unsupported_media_type", "Send the body as 'Content-Type: application/json'.");
  }
  // API Gateway decodes none, so that the text is no longer what was sent.
  const coding = headerOf(headers, "content-encoding") ?? "identity";
  if (coding.toLowerCase() !== "identity") {
    throw new ApiError("unsupported_media_type", "Send the body uncompressed, without 'Content-Encoding'.");
  }
  try {
    return JSON.parse(text);
  } catch (cause) {
    const hint = usualMistakes.find(({ begins }) => begins.test(text))?.hint;
    throw new ApiError("invalid_json", ["The body is not valid JSON.", hint].filter(Boolean).join(" "), { cause });
  }
}

/** How bodies begin that tools and shells have changed. Clients should not need a look at the bytes to find the cause. */
const usualMistakes = [
  { begins: /^\uFEFF/, hint: "It begins with a byte order mark: save it as UTF-8 without one." },
  { begins: /^(\uFFFD|.?\0)/, hint: "It is not UTF-8, but probably UTF-16: save it as UTF-8." },
  { begins: /^@/, hint: "It is the name of a file, whose content the client did not send." },
  { begins: /^[\w.-]+=/, hint: 'It is a form: send an object, such as {"name":"ci"}.' },
  { begins: /^\s*('|\{\s*['\w])/, hint: "It lacks double quotes, which some shells remove: send it from a file." },
];

export const headerOf = (headers: APIGatewayProxyEvent["headers"], wanted: string): string | undefined =>
  Object.entries(headers).find(([name]) => name.toLowerCase() === wanted)?.[1];

/** Returns the ids in the path. All resources have UUIDs, so any other text is `not_found`. */
function readParams({ pathParameters }: APIGatewayProxyEvent): Record<string, string> {
  const params = Object.entries(pathParameters ?? {}).map(([name, text]): [string, string] => {
    const id = canonicalUuid(text);
    if (id === undefined) throw new ApiError("not_found", "No resource with this id exists. Ids are UUIDs.");
    return [name, id];
  });
  return Object.fromEntries(params);
}

/**
 * Returns the URL that the client requested: `path` and `domainName` are those of the stage or of the custom domain.
 */
function requestUrl({ headers, requestContext: { domainName, path } }: APIGatewayProxyEvent): URL {
  return new URL(`${headers["X-Forwarded-Proto"] ?? "https"}://${domainName}${path}`);
}

interface Exchange {
  event: APIGatewayProxyEvent;
  response: APIGatewayProxyResult | null;
  error: unknown;
}

/** Returns the headers of each response of a function, also in another protocol. */
export function responseHeaders(event: APIGatewayProxyEvent, body: string): Record<string, string> {
  const requestId = { "x-request-id": event.requestContext.requestId };
  const contentType: Record<string, string> = body === "" ? {} : { "Content-Type": "application/json" };
  const forBrowsers = corsHeaders(headerOf(event.headers, "origin"), settings.corsOrigins());
  return { ...securityHeaders, ...contentType, ...requestId, ...forBrowsers };
}

const addResponseHeaders = {
  after({ event, response }: Exchange): void {
    if (!response) return;
    response.headers = { ...responseHeaders(event, response.body), ...response.headers };
  },
  onError: (exchange: Exchange): void => addResponseHeaders.after(exchange),
};

/** Renders all errors. An unexpected error is logged and returned as 500 or 503 without details. */
const renderErrors = {
  onError(exchange: Exchange): void {
    const { requestId } = exchange.event.requestContext;
    const error = toApiError(exchange.error);
    if (error.status >= 500) log.error("request failed", exchange.error);
    exchange.response = { statusCode: error.status, headers: error.headers, body: error.toBody(requestId) };
  },
};

function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const headers = { "Retry-After": "1" };
  // Not a 5xx, which alarms count: users could cause it as they like.
  if (isContention(error)) {
    log.warn("too many requests for the same data", { reason: String(error) });
    return new ApiError("rate_limited", "Too many requests use the same data at once. Try again.", { headers });
  }
  if (isOutage(error)) {
    return new ApiError("service_unavailable", "The service is temporarily unavailable. Try again.", { headers });
  }
  return new ApiError("internal_error", "An internal error occurred. Try again later.");
}

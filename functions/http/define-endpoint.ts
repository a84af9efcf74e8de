import middy from "@middy/core";
import type { APIGatewayProxyEvent, APIGatewayProxyResult, Context } from "aws-lambda";
import type * as z from "zod/mini";
import { type Identity, identityContext } from "../access/identity.ts";
import { requireAccess } from "../access/require-access.ts";
import { endpoints } from "../manifest/endpoints.ts";
import { securityHeaders } from "../manifest/response-headers.ts";
import { isOutage } from "../platform/aws.ts";
import { settings } from "../platform/env.ts";
import { ApiError } from "../platform/errors.ts";
import { log } from "../platform/log.ts";
import { canonicalUuid } from "../platform/uuid.ts";
import { parse } from "../schema/input.ts";
import { corsHeaders } from "./cors.ts";

/*
 * What all endpoints share, so that a verb file is only its intention: access as its row says, ids, the JSON body, the
 * `data` envelope, headers and errors. A verb file names its row; nothing here is to be remembered there.
 */

type Row = (typeof endpoints)[number];
type Route = `${Row["method"]} ${Row["path"]}`;

/** The names between braces in a path: "/v1/projects/{project_id}" -> "project_id". */
type ParamOf<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | ParamOf<Rest> : never;

interface Call<Params extends string, Input, Query> {
  /** The UUIDs in the path. */
  params: Record<Params, string>;
  /** The body, as the endpoint's schema made it. */
  input: Input;
  /** The query parameters, likewise. */
  query: Query;
  /** The address that was called, without its query. */
  requestUrl: URL;
  identity: Identity;
  now: Date;
}

interface Reply {
  statusCode: number;
  /** Sent as `{"data": …}`; absent for an empty body. */
  data?: unknown;
  headers?: Record<string, string> | undefined;
  /** Id of what was made. */
  createdId?: string;
}

export const ok = (data: unknown, headers?: Record<string, string>): Reply => ({ statusCode: 200, data, headers });
export const created = (data: { id: string }): Reply => ({ statusCode: 201, data, createdId: data.id });
export const accepted = (data: unknown): Reply => ({ statusCode: 202, data });
export const noContent = (): Reply => ({ statusCode: 204 });

interface Definition<Params extends string, Schema extends z.ZodMiniType, Query extends z.ZodMiniType> {
  /** What the body must look like, or how to make that from the settings; an endpoint without it takes no body. */
  input?: Schema | (() => Schema);
  /** What the query parameters must look like; without it they are ignored. */
  query?: Query;
  run(call: Call<Params, z.output<Schema>, z.output<Query>>): Promise<Reply>;
}

/** Makes the Lambda handler of the endpoint in this row of `endpoints.ts`. */
export function defineEndpoint<const R extends Route, Schema extends z.ZodMiniType, Query extends z.ZodMiniType>(
  route: R,
  { input, query, run }: Definition<ParamOf<R>, Schema, Query>,
) {
  const row = endpoints.find(({ method, path }) => `${method} ${path}` === route);
  if (!row) throw new Error(`functions/manifest/endpoints.ts has no row for ${route}`);
  const { access, method, path } = row;

  async function answer(event: APIGatewayProxyEvent): Promise<APIGatewayProxyResult> {
    const identity = identityContext.parse(event.requestContext.authorizer) as Identity;
    const params = readParams(event);
    await requireAccess(access, identity, params);
    const schema = typeof input === "function" ? input() : input;
    const reply = await run({
      params,
      input: (schema && parse(schema, readJson(event))) as z.output<Schema>,
      query: (query && parse(query, event.queryStringParameters ?? {})) as z.output<Query>,
      requestUrl: requestUrl(event),
      identity,
      now: new Date(),
    });
    if (method !== "GET") logWrite({ method, path }, params, identity, reply);
    const { statusCode, data, headers } = reply;
    return { statusCode, body: data === undefined ? "" : JSON.stringify({ data }), ...(headers && { headers }) };
  }

  const handler = middy(answer).use([responseHeaders, errorResponses]);
  const lambda = (event: APIGatewayProxyEvent, context: Context): Promise<APIGatewayProxyResult> =>
    log.scope({ request_id: event.requestContext.requestId }, () => handler(event, context));
  // What it takes can be read from outside: the API's description is made from it.
  return Object.assign(lambda, { input, query });
}

/** Who has changed what, one line for each request that did: the trail of every key, webhook and secret. */
function logWrite(
  { method, path }: Pick<Row, "method" | "path">,
  params: Record<string, string>,
  { userId, keyId }: Identity,
  { statusCode, createdId }: Reply,
): void {
  const who = { user_id: userId, key_id: keyId };
  log.info("request", { method, route: path, status: statusCode, ...who, ...params, created_id: createdId });
}

const MAX_BODY_BYTES = 64 * 1024;

/**
 * The body. None at all is an empty object: where all fields are optional it may be left out, elsewhere the fields are missed.
 * @throws ApiError `payload_too_large`, `unsupported_media_type` or `invalid_json`
 */
function readJson({ body, headers, isBase64Encoded }: APIGatewayProxyEvent): unknown {
  if (!body) return {};
  const text = isBase64Encoded ? Buffer.from(body, "base64").toString("utf8") : body;
  if (Buffer.byteLength(text) > MAX_BODY_BYTES) {
    throw new ApiError("payload_too_large", `The body is larger than ${MAX_BODY_BYTES / 1024} KB.`);
  }
  if (!/^application\/json *(;|$)/i.test(headerOf(headers, "content-type") ?? "")) {
    throw new ApiError("unsupported_media_type", "Send the body as 'Content-Type: application/json'.");
  }
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ApiError("invalid_json", "The body is not valid JSON.", { cause });
  }
}

const headerOf = (headers: APIGatewayProxyEvent["headers"], wanted: string): string | undefined =>
  Object.entries(headers).find(([name]) => name.toLowerCase() === wanted)?.[1];

/** The ids in the path. One that is no UUID names nothing that exists. */
function readParams({ pathParameters }: APIGatewayProxyEvent): Record<string, string> {
  const params = Object.entries(pathParameters ?? {}).map(([name, text]): [string, string] => {
    const id = canonicalUuid(text);
    if (id === undefined) throw new ApiError("not_found", "There is nothing with this id: it is not a UUID.");
    return [name, id];
  });
  return Object.fromEntries(params);
}

/** `path` and `domainName` are those of the stage or of the custom domain, whichever was called. */
function requestUrl({ headers, requestContext: { domainName, path } }: APIGatewayProxyEvent): URL {
  return new URL(`${headers["X-Forwarded-Proto"] ?? "https"}://${domainName}${path}`);
}

interface Exchange {
  event: APIGatewayProxyEvent;
  response: APIGatewayProxyResult | null;
  error: unknown;
}

const responseHeaders = {
  after({ event, response }: Exchange): void {
    if (!response) return;
    const requestId = { "x-request-id": event.requestContext.requestId };
    const contentType: Record<string, string> = response.body === "" ? {} : { "Content-Type": "application/json" };
    const forPages = corsHeaders(headerOf(event.headers, "origin"), settings.corsOrigins());
    response.headers = { ...securityHeaders, ...contentType, ...requestId, ...forPages, ...response.headers };
  },
  onError: (exchange: Exchange): void => responseHeaders.after(exchange),
};

/** One renderer for all errors. What is not meant for the caller is logged, and told as a 500 or 503 without details. */
const errorResponses = {
  onError(exchange: Exchange): void {
    const { requestId } = exchange.event.requestContext;
    const error = toApiError(exchange.error);
    if (error.status >= 500) log.error("request failed", exchange.error);
    exchange.response = { statusCode: error.status, headers: error.headers, body: error.toBody(requestId) };
  },
};

function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (isOutage(error)) {
    const headers = { "Retry-After": "1" };
    return new ApiError("service_unavailable", "The service is busy or partly down. Try again.", { headers });
  }
  return new ApiError("internal_error", "Something went wrong on our side.");
}

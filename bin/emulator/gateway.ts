import { randomUUID } from "node:crypto";
import http from "node:http";
import type { APIGatewayAuthorizerResult, APIGatewayProxyEvent, APIGatewayProxyResult } from "aws-lambda";
import { corsHeaders, preflightHeaders } from "../../functions/foundation/http/cors.ts";
import type { EndpointRow } from "../../functions/foundation/manifest/endpoints.ts";
import { routeRows } from "../../functions/foundation/manifest/function-rows.ts";
import {
  API_ADDRESS,
  type GatewayResponseRow,
  type GatewayResponseType,
  gatewayResponses,
  gatewayResponseTemplate,
  methodNotAllowed,
} from "../../functions/foundation/manifest/gateway-responses.ts";
import { securityHeaders } from "../../functions/foundation/manifest/response-headers.ts";
import { workerRows } from "../../functions/foundation/manifest/workers.ts";
import { settings } from "../../functions/foundation/platform/env.ts";
import { logSink } from "../../functions/foundation/platform/log.ts";
import type { ServePages } from "./console.ts";
import { createInvokeApi } from "./invoke-api.ts";
import { invoke, type LambdaHandler, LambdaTimeout, type LoadHandler } from "./lambda.ts";
import { readBody } from "./read-body.ts";
import { createThrottle, type TakeToken } from "./throttle.ts";

/*
 * API Gateway (REST) in a local run: routes, the authorizer call, the proxy event, gateway responses. Its own responses are
 * rendered from the rows that the stack deploys.
 * https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html
 */

const STAGE = "local";
const METHOD_ARN = `arn:aws:execute-api:us-east-1:000000000000:local/${STAGE}`;
const MAX_BODY_BYTES = 10 * 1024 * 1024;
const INTEGRATION_TIMEOUT_SECONDS = 29;
/**
 * 0 = an idle connection is never closed here. Node announces a limit in `Keep-Alive`, and `fetch` keeps a connection until three seconds
 * before it. If the event loop is busy for longer at that time, Node closes the connection before it reads the request that has arrived:
 * ECONNRESET. Nothing piles up: all clients run on this machine, and the connections of one that ends are closed.
 */
const KEEP_ALIVE_MS = 0;
/** More than API Gateway accepts, so that an oversized token reaches the authorizer, which rejects it. */
const MAX_HEADER_BYTES = 64 * 1024;

interface GatewayResponse {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/**
 * Creates the gateway as a server that does not listen yet. Loads all handlers, so that a broken one stops the start.
 * @param servePages gets each request first and responds to those that are not for the API
 * @param takeToken enforces the throttles of the rows; default: as on AWS
 * @param ready requests wait until it resolves; default: none waits
 */
export async function createGateway(
  load: LoadHandler,
  servePages: ServePages = () => false,
  takeToken: TakeToken = createThrottle(),
  ready = Promise.resolve(),
): Promise<http.Server> {
  const authorize = await load("auth-authorizer");
  const serveInvocations = await createInvokeApi(load);
  const handlers = new Map<string, LambdaHandler>();
  await Promise.all(routeRows.map(async ({ id }) => handlers.set(id, await load(id))));

  async function respond(request: http.IncomingMessage, requestId: string): Promise<GatewayResponse> {
    const body = await readBody(request, MAX_BODY_BYTES);
    if (body === undefined) return gatewayResponse("REQUEST_TOO_LARGE", requestId);
    const [path = "/", query = ""] = (request.url ?? "/").split(/\?(.*)/s);
    const route = findRoute(request.method ?? "", path);
    if (route.kind === "unknown") return gatewayResponse("MISSING_AUTHENTICATION_TOKEN", requestId);
    if (route.kind === "wrong_method") {
      return render({ ...methodNotAllowed, headers: { Allow: route.allow.join(", ") } }, requestId);
    }
    const event = proxyEvent(request, { ...route, path, query, body, requestId });
    // AWS does not document whether API Gateway throttles before it calls the authorizer. Here a flood never reaches it.
    const isThrottled = () => !takeToken(route.row);
    if (route.row.access !== "anyone") {
      if (!event.headers[headerName(event, "authorization")]) return gatewayResponse("UNAUTHORIZED", requestId);
      if (isThrottled()) return gatewayResponse("THROTTLED", requestId);
      const rejection = await authorizeRequest(event, path, requestId);
      if (rejection) return rejection;
    } else if (isThrottled()) return gatewayResponse("THROTTLED", requestId);
    return call(route.row, event, requestId);
  }

  /** Sets the identity in the event. @returns the response to a request that is rejected */
  async function authorizeRequest(
    event: APIGatewayProxyEvent,
    path: string,
    requestId: string,
  ): Promise<GatewayResponse | undefined> {
    const { timeoutSeconds } = workerRows.find(({ trigger }) => trigger.kind === "authorizer") ?? {
      timeoutSeconds: 10,
    };
    let decision: APIGatewayAuthorizerResult | undefined;
    try {
      const request = { type: "REQUEST", methodArn: `${METHOD_ARN}/${event.httpMethod}${path}`, ...event };
      decision = (await invoke(authorize, request, {
        functionName: "auth-authorizer",
        timeoutSeconds,
      })) as typeof decision;
    } catch (error) {
      logSink.write("error", { message: `auth-authorizer failed: ${String(error)}` });
      return gatewayResponse("AUTHORIZER_FAILURE", requestId);
    }
    if (!decision?.policyDocument) return gatewayResponse("AUTHORIZER_CONFIGURATION_ERROR", requestId);
    const context = stringValues({ principalId: decision.principalId, ...decision.context });
    if (decision.policyDocument.Statement[0]?.Effect !== "Allow") {
      return gatewayResponse("ACCESS_DENIED", requestId, context);
    }

    event.requestContext.authorizer = context;
    return undefined;
  }

  async function call({ id }: EndpointRow, event: APIGatewayProxyEvent, requestId: string): Promise<GatewayResponse> {
    const handler = handlers.get(id) as LambdaHandler;
    try {
      const lambda = { functionName: id, timeoutSeconds: INTEGRATION_TIMEOUT_SECONDS };
      return fromLambda((await invoke(handler, event, lambda)) as APIGatewayProxyResult);
    } catch (error) {
      logSink.write("error", { message: `${id} failed: ${String(error)}` });
      return gatewayResponse(error instanceof LambdaTimeout ? "INTEGRATION_TIMEOUT" : "DEFAULT_5XX", requestId);
    }
  }

  // Without a listener for `upgrade`, Node serves an upgrade request as an ordinary one, as API Gateway does.
  const options = { maxHeaderSize: MAX_HEADER_BYTES, keepAliveTimeout: KEEP_ALIVE_MS };
  const server = http.createServer(options, async (request, response) => {
    await ready;
    if (servePages(request, response) || serveInvocations(request, response)) return;
    const origins = settings.corsOrigins();
    const { origin } = request.headers;
    if (request.method === "OPTIONS" && origins.length > 0) {
      response.writeHead(204, preflightHeaders(origin, origins)).end();
      return;
    }
    respond(request, randomUUID()).then(
      ({ status, headers, body }) =>
        // Node sends no body to HEAD.
        response.writeHead(status, { ...withAddress(headers, request), ...corsHeaders(origin, origins) }).end(body),
      // The client disconnected while sending.
      () => response.destroy(),
    );
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable || error.code === "ECONNRESET") {
      socket.destroy();
      return;
    }
    const type = error.code === "HPE_HEADER_OVERFLOW" ? "REQUEST_TOO_LARGE" : "BAD_REQUEST_PARAMETERS";
    const { status, headers, body } = gatewayResponse(type, randomUUID());
    const lines = Object.entries({ ...headers, Connection: "close", "Content-Length": Buffer.byteLength(body) });
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    socket.end(`HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n${head}\r\n${body}`);
  });
  return server;
}

type Route =
  | { kind: "found"; row: EndpointRow; pathParameters: Record<string, string> | null }
  | { kind: "wrong_method"; allow: string[] }
  | { kind: "unknown" };

function findRoute(method: string, path: string): Route {
  const candidates = routeRows.flatMap((row) => {
    const pathParameters = matchPath(row.path, path);
    return pathParameters ? [{ row, pathParameters }] : [];
  });
  // API Gateway prefers a fixed path to one with parameters, also if the fixed one does not have the method.
  const fixed = candidates.filter(({ row }) => row.path === path);
  const matches = fixed.length > 0 ? fixed : candidates;
  const match = matches.find(({ row }) => row.method === method);
  if (match) {
    const hasParameters = Object.keys(match.pathParameters).length > 0;
    return { kind: "found", row: match.row, pathParameters: hasParameters ? match.pathParameters : null };
  }
  if (matches.length === 0) return { kind: "unknown" };
  return { kind: "wrong_method", allow: matches.map(({ row }) => row.method) };
}

function matchPath(template: string, path: string): Record<string, string> | undefined {
  const expected = template.split("/");
  const actual = path.split("/");
  if (actual.length !== expected.length) return undefined;
  const parameters: Record<string, string> = {};
  for (const [index, part] of expected.entries()) {
    const text = actual[index] ?? "";
    const name = /^\{(.+)\}$/.exec(part)?.[1];
    if (name === undefined ? text !== part : text === "") return undefined;
    if (name !== undefined) parameters[name] = decode(text);
  }
  return parameters;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

interface RoutedRequest {
  row: EndpointRow;
  path: string;
  query: string;
  pathParameters: Record<string, string> | null;
  body: string;
  requestId: string;
}

function proxyEvent(request: http.IncomingMessage, { row, path, query, ...rest }: RoutedRequest): APIGatewayProxyEvent {
  const multiValueHeaders = { ...multiMap(pairs(request.rawHeaders)), "X-Forwarded-Proto": ["http"] };
  const multiValueQuery = multiMap([...new URLSearchParams(query)]);
  const isEmpty = Object.keys(multiValueQuery).length === 0;
  return {
    resource: row.path,
    path,
    httpMethod: row.method,
    headers: lastValues(multiValueHeaders),
    multiValueHeaders,
    queryStringParameters: isEmpty ? null : lastValues(multiValueQuery),
    multiValueQueryStringParameters: isEmpty ? null : multiValueQuery,
    pathParameters: rest.pathParameters,
    stageVariables: null,
    body: rest.body === "" ? null : rest.body,
    isBase64Encoded: false,
    requestContext: {
      requestId: rest.requestId,
      resourcePath: row.path,
      resourceId: row.id,
      // No stage in the path, as behind a custom domain.
      path,
      domainName: `127.0.0.1:${request.socket.localPort}`,
      httpMethod: row.method,
      protocol: `HTTP/${request.httpVersion}`,
      stage: STAGE,
      accountId: "000000000000",
      apiId: "local",
      requestTimeEpoch: Date.now(),
      authorizer: undefined,
      identity: {
        sourceIp: request.socket.remoteAddress ?? "",
        userAgent: request.headers["user-agent"] ?? null,
      } as APIGatewayProxyEvent["requestContext"]["identity"],
    },
  };
}

function pairs(flat: string[]): [string, string][] {
  return Array.from({ length: flat.length / 2 }, (_, index) => [flat[2 * index] ?? "", flat[2 * index + 1] ?? ""]);
}

function multiMap(entries: [string, string][]): Record<string, string[]> {
  const map = new Map<string, string[]>();
  for (const [name, value] of entries) map.set(name, [...(map.get(name) ?? []), value]);
  return Object.fromEntries(map);
}

const lastValues = (map: Record<string, string[]>): Record<string, string> =>
  Object.fromEntries(Object.entries(map).map(([name, values]) => [name, values.at(-1) ?? ""]));

const headerName = ({ headers }: APIGatewayProxyEvent, name: string): string =>
  Object.keys(headers).find((candidate) => candidate.toLowerCase() === name) ?? name;

/** Converts the authorizer's context to text, as API Gateway does. */
const stringValues = (context: Record<string, unknown>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(context).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );

function fromLambda(result: APIGatewayProxyResult): GatewayResponse {
  if (!Number.isInteger(result?.statusCode)) throw new Error("malformed Lambda proxy response");
  const headers = Object.entries(result.headers ?? {}).map(([name, value]): [string, string] => [name, String(value)]);
  return { status: result.statusCode, headers: Object.fromEntries(headers), body: result.body ?? "" };
}

function gatewayResponse(
  type: GatewayResponseType,
  requestId: string,
  context: Record<string, string> = {},
): GatewayResponse {
  return render(gatewayResponses[type], requestId, context);
}

/** Inserts the address at which the API was reached. */
const withAddress = (headers: Record<string, string>, { socket }: http.IncomingMessage): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      value.replace(API_ADDRESS, `http://127.0.0.1:${socket.localPort}`),
    ]),
  );

/** Fills in the template of a gateway response, as API Gateway does. */
function render(row: GatewayResponseRow, requestId: string, authorizer: Record<string, string> = {}): GatewayResponse {
  const body = gatewayResponseTemplate(row)
    .replaceAll("$context.requestId", requestId)
    .replaceAll(/\$context\.authorizer\.(\w+)/g, (_, name: string) => authorizer[name] ?? "");
  const headers = { ...securityHeaders, "Content-Type": "application/json", "x-request-id": requestId };
  return { status: row.status ?? 400, headers: { ...headers, ...row.headers }, body };
}

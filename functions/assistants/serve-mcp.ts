import type { APIGatewayProxyEvent, APIGatewayProxyResult, Context } from "aws-lambda";
import { rpcError, serveHttp } from "../../packages/cli/src/mcp/serve-http.ts";
import { createServer } from "../../packages/cli/src/mcp/server.ts";
import { CommandError, exitCodes } from "../../packages/cli/src/terminal/exit-codes.ts";
import { createClient } from "../../packages/client/src/client.ts";
import { parseExactly } from "../../packages/client/src/exact-json.ts";
import { identityContext } from "../foundation/access/identity.ts";
import { headerOf, MAX_BODY_BYTES, responseHeaders, textOf } from "../foundation/http/define-endpoint.ts";
import { settings } from "../foundation/platform/env.ts";
import { log } from "../foundation/platform/log.ts";
import { apiUrlOf } from "./api-url.ts";
import { eventsExtension } from "./events.ts";

/*
 * `POST /mcp`: the tools of `svc mcp` over HTTP.
 *
 * A tool calls the public API at the stage's own address, with the credential of the caller. So a tool call is exactly
 * as powerful as the caller's own request: authorizer, roles, permissions, masks, budgets, throttles, idempotency and
 * the audit log are those of /v1, and a credential that is deleted meanwhile is rejected. This function has no grant
 * that a mistake here could lend to a caller. Invoking the handlers instead would need the grants of all of them in one
 * function, and each check a second time. What it costs: one more request through API Gateway per call of a tool, and
 * the firewall counts these by the address of the function.
 */

/** Time that is left to respond when a call of the API is given up. */
const RESERVE_MS = 2_000;

export async function handler(event: APIGatewayProxyEvent, context: Context): Promise<APIGatewayProxyResult> {
  return log.scope({ request_id: event.requestContext.requestId }, async () => {
    const response = await respond(event, context.getRemainingTimeInMillis() - RESERVE_MS);
    const body = await response.text();
    return { statusCode: response.status, headers: responseHeaders(event, body), body };
  });
}

async function respond(event: APIGatewayProxyEvent, maxMs: number): Promise<Response> {
  if (!isAllowedOrigin(headerOf(event.headers, "origin")))
    return rpcError(403, -32_600, "The origin of this page may not call the API.");
  const text = textOf(event);
  if (Buffer.byteLength(text) > MAX_BODY_BYTES)
    return rpcError(413, -32_600, `The body is larger than the limit of ${MAX_BODY_BYTES / 1024} KB.`);
  const request = new Request(`${apiUrlOf(event)}/mcp`, { method: "POST", headers: protocolHeaders(event) });
  const ended = new AbortController();
  const timer = setTimeout(() => ended.abort(tookTooLong()), maxMs);
  try {
    return await serveHttp(request, text, () => serverFor(event, ended.signal, maxMs), report);
  } finally {
    clearTimeout(timer);
  }
}

const tookTooLong = () =>
  new CommandError(
    exitCodes.unavailable,
    "The call took too long. What it began may still happen: look before you repeat it.",
  );

const report = (error: unknown): void => log.error("mcp request failed", error);

/**
 * A page of another origin must not use the local service through a name that it controls (DNS rebinding). Clients that
 * are no pages send no origin.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#security-endpoint
 */
function isAllowedOrigin(origin: string | undefined): boolean {
  if (origin === undefined || settings.corsOrigins().includes(origin)) return true;
  return settings.isLocal() && /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/.test(origin);
}

/** The headers that the protocol reads, without characters that a header cannot have. */
function protocolHeaders({ headers }: APIGatewayProxyEvent): Record<string, string> {
  const names = ["accept", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name"];
  const given = names.map((name) => [name, headerOf(headers, name)] as const);
  return Object.fromEntries(given.flatMap(([name, value]) => (value === undefined ? [] : [[name, ascii(value)]])));
}

const ascii = (text: string): string => text.replaceAll(/[^ -~]/g, "?");

function serverFor(event: APIGatewayProxyEvent, signal: AbortSignal, maxWaitMs: number) {
  const { permissions = null, authType } = identityContext.parse(event.requestContext.authorizer);
  // The authorizer has accepted the header, so it has this form.
  const token = /^Bearer +(\S+) *$/i.exec(headerOf(event.headers, "authorization") ?? "")?.[1] ?? "";
  const { sourceIp, userAgent } = event.requestContext.identity;
  const baseUrl = apiUrlOf(event);
  // The audit log has the address of this function, so that of the client is here.
  const agent = ascii(`mcp (for ${sourceIp}; ${userAgent ?? "unknown"})`);
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", "user-agent": agent };
  const subscribe = (projectId: string, body: object) =>
    fetch(`${baseUrl}/v1/projects/${projectId}/subscriptions`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
      redirect: "manual",
      signal,
    });
  const api = createClient({
    baseUrl,
    token,
    userAgent: agent,
    parseJson: parseExactly,
    maxRetries: 1,
    maxWaitSeconds: 3,
    signal,
  });
  const maySubscribe = authType !== "workflow" && (permissions?.includes("events:read") ?? true);
  return createServer({
    extension: maySubscribe ? eventsExtension(subscribe) : undefined,
    name: "deployment-webhooks",
    version: "1",
    api,
    isReadOnly: false,
    // A workflow has only the listed permissions.
    permissions: authType === "workflow" ? (permissions ?? []) : permissions,
    maxWaitMs,
    report,
    networkAdvice: () => "the service is partly unavailable.",
  }).server;
}

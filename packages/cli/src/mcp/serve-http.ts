import {
  createMcpHandler,
  isLegacyRequest,
  type McpServer,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";

/*
 * MCP over HTTP, without sessions and streams: each message is one POST with one response. Serves protocol 2026-07-28,
 * and the versions of 2025 that begin with `initialize`.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
 */

export { ProtocolError } from "@modelcontextprotocol/server";

/** https://www.jsonrpc.org/specification#error_object */
const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;
const METHOD_NOT_FOUND = -32_601;

/** Returns an error that is about no message, or whose message has no usable id. */
export function rpcError(status: number, code: number, message: string, id: unknown = null): Response {
  return Response.json({ jsonrpc: "2.0", id, error: { code, message } }, { status });
}

/**
 * @param request with the headers; its body is not read
 * @param text the body
 * @param create called once at most
 * @param report receives an error that is a fault of the server
 */
export async function serveHttp(
  request: Request,
  text: string,
  create: () => McpServer,
  report: (error: unknown) => void,
): Promise<Response> {
  if (!/^application\/json *(;|$)/i.test(request.headers.get("content-type") ?? ""))
    return rpcError(415, INVALID_REQUEST, "Send the message as 'Content-Type: application/json'.");
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    return rpcError(400, PARSE_ERROR, "Parse error: the body is not JSON.");
  }
  // Protocol 2025-03-26 had them for three months. Each part of one would be charged to no limit of the gateway.
  if (Array.isArray(message)) return rpcError(400, INVALID_REQUEST, "Send one message: a batch is not accepted.");
  const { method, id } = Object(message);
  // A stream would stay open until the gateway ends it, and no list changes.
  if (method === "subscriptions/listen") return rpcError(404, METHOD_NOT_FOUND, "Method not found.", id ?? null);
  if (await isLegacyRequest(request, message)) return serveLegacy(request, message, create());
  let fault: unknown;
  const handler = createMcpHandler(create, {
    legacy: "reject",
    onerror: (error) => {
      fault = error;
    },
  });
  const response = await handler.fetch(request, { parsedBody: message });
  if (response.status >= 500) report(fault);
  return response;
}

/** Serves a version of 2025, with a response in JSON: the SDK's own fallback responds with a stream. */
async function serveLegacy(request: Request, message: unknown, server: McpServer): Promise<Response> {
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: undefined,
    enableJsonResponse: true,
  });
  await server.connect(transport);
  try {
    return await transport.handleRequest(request, { parsedBody: message });
  } finally {
    await server.close();
  }
}

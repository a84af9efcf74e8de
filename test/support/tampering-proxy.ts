import { once } from "node:events";
import http from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";

export interface ProxiedRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
}

export interface ProxiedResponse {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** The changes that a proxy makes to requests and responses. All hooks are optional. */
export interface Tampering {
  /** Changes a request in place before it is forwarded. */
  request?(request: ProxiedRequest): void | Promise<void>;
  /** Changes a response in place. Returns "cut" to close the connection instead of responding. */
  response?(response: ProxiedResponse, request: ProxiedRequest): void | "cut" | Promise<void>;
  /** Returns a response to send without forwarding the request; undefined = forward. */
  respond?(request: ProxiedRequest): ProxiedResponse | undefined;
}

export interface TamperingProxy {
  url: string;
  /** All requests as they arrived. */
  requests: ProxiedRequest[];
  close(): Promise<void>;
}

/**
 * Starts a proxy that makes a healthy service look faulty in one respect.
 * @param tls certificate and key of the proxy; absent = plain http
 */
export async function startTamperingProxy(
  baseUrl: string,
  tampering: Tampering = {},
  tls?: { cert: string; key: string },
): Promise<TamperingProxy> {
  const requests: ProxiedRequest[] = [];
  const onRequest = async (incoming: http.IncomingMessage, outgoing: http.ServerResponse) => {
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
      const forwarded = ["authorization", "content-type", "idempotency-key"];
      const request: ProxiedRequest = {
        method: incoming.method ?? "",
        path: incoming.url ?? "",
        headers: Object.fromEntries(
          forwarded.flatMap((name) => (incoming.headers[name] ? [[name, String(incoming.headers[name])]] : [])),
        ),
        body: Buffer.concat(chunks).toString("utf8"),
      };
      requests.push({ ...request });
      const response = tampering.respond?.(request) ?? (await forward(baseUrl, request, tampering));
      if ((await tampering.response?.(response, request)) === "cut") return void outgoing.destroy();
      outgoing.writeHead(response.status, response.headers).end(response.body);
    } catch {
      outgoing.destroy();
    }
  };
  const server = tls ? https.createServer(tls, onRequest) : http.createServer(onRequest);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `${tls ? "https" : "http"}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function forward(baseUrl: string, request: ProxiedRequest, tampering: Tampering): Promise<ProxiedResponse> {
  await tampering.request?.(request);
  const { method, path, headers, body } = request;
  const response = await fetch(`${baseUrl}${path}`, { method, headers, ...(body !== "" && { body }) });
  const {
    connection: _,
    "keep-alive": __,
    "transfer-encoding": ___,
    "content-length": ____,
    ...kept
  } = Object.fromEntries(response.headers);
  return { status: response.status, headers: kept, body: await response.text() };
}

import http from "node:http";
import { setImmediate as nextTick } from "node:timers/promises";
import type { FailureCode } from "../../foundation/events/failure-code.ts";
import {
  answerDetail,
  type Cause,
  causeOf,
  excerptOf,
  isRefusal,
  phaseOf,
  retryAfterIn,
  SWITCHED,
  safeText,
} from "./failure-cause.ts";
import { type Agents, guardedAgents } from "./guarded-connect.ts";
import type { Cidr } from "./receiver-address.ts";
import { normalizedUrl, validateReceiverUrl } from "./receiver-url.ts";
import { createResolver } from "./resolver.ts";
import { keptHeaders } from "./response-headers.ts";

/*
 * One POST to a server that may be slow, endless, broken or hostile. The call always ends within the deadline, reads a
 * bounded number of bytes, follows no redirect, and returns an outcome. It never throws.
 */

export interface Limits {
  /**
   * Total time of a request, from resolving the name to the last byte read. An idle timeout would not end a slow body.
   */
  deadlineMs: number;
  /** Bytes of the response body to read. A longer body is cut and does not make the request fail. */
  maxResponseBytes: number;
  /** Bytes of the response body to return. */
  maxExcerptBytes: number;
}

export const DEFAULT_LIMITS: Limits = { deadlineMs: 15_000, maxResponseBytes: 64 * 1024, maxExcerptBytes: 1024 };

export interface Outcome {
  durationMs: number;
  /**
   * Number of requests sent: 2 when the request was sent again because its connection was stale; absent for one. The
   * receiver may have received both.
   */
  requestCount?: number;
  /** Absent for a 2xx whose body was read in time. */
  errorCode?: FailureCode;
  /** Absent when no response arrived. */
  statusCode?: number;
  /** The `Retry-After` header, not validated. */
  retryAfter?: string;
  /** Start of the response body as text; absent when it is empty. */
  excerpt?: string;
  /** Headers of a response other than 2xx that may explain it (response-headers.ts); absent when none is kept. */
  headers?: Record<string, string>;
  /** More about a failure (failure-cause.ts), for its hint; absent when nothing is known. */
  detail?: string | undefined;
}

export interface ReceiverClient {
  /** Sends one request. Never throws. */
  post(url: string, headers: Record<string, string>, body: string): Promise<Outcome>;
  /** Closes all connections at once. Requests in flight fail. */
  close(): Promise<void>;
}

/**
 * Creates a client with its own connections.
 * @param allowed ranges that may be reached besides the public ones
 * @param resolve resolves host names; by default with the operating system's DNS servers
 */
export function createReceiverClient(
  allowed: Cidr[],
  limits: Limits = DEFAULT_LIMITS,
  resolve = createResolver([], allowed.length > 0),
): ReceiverClient {
  const reusable = guardedAgents(allowed, resolve, { keepAlive: true, timeout: KEEP_ALIVE_MS });
  const singleUse = guardedAgents(allowed, resolve, { keepAlive: false });
  const connections = { reusable, singleUse, allowed };
  return {
    // The host of a stored URL may end in a dot, which TLS does not allow in the name of a server.
    post: (url, headers, body) => post(connections, { url: new URL(normalizedUrl(url)), headers, body }, limits),
    async close() {
      for (const agent of [...Object.values(reusable), ...Object.values(singleUse)]) agent.destroy();
    },
  };
}

const KEEP_ALIVE_MS = 4_000;

interface Connections {
  /** Keep connections open for further requests. */
  reusable: Agents;
  /** Open one connection per request. */
  singleUse: Agents;
  allowed: Cidr[];
}

interface Request {
  url: URL;
  headers: Record<string, string>;
  body: string;
}

async function post({ reusable, singleUse, allowed }: Connections, request: Request, limits: Limits): Promise<Outcome> {
  const startedAt = performance.now();
  const durationMs = () => Math.round(performance.now() - startedAt);
  const { url } = request;
  let head: Head = {};
  let headers: http.IncomingHttpHeaders = {};
  let sentAgain: Pick<Outcome, "requestCount"> = {};
  const send = (agents: Agents, onConnect?: () => void) =>
    sendRequest(agents, request, limits, startedAt + limits.deadlineMs, {
      onConnect,
      onHead(response) {
        head = readHead(response);
        headers = response.headers;
      },
    });
  const sendAgain = () =>
    send(singleUse, () => {
      sentAgain = { requestCount: 2 };
    });
  // Wait, so that requests started in one turn of the event loop are written together, not between the responses to
  // others. This saves a third of the CPU of a delivery (80 to 50 µs, 50 at a time over loopback).
  await nextTick();
  // A receiver may close an idle connection at the moment it is reused. That is not a failure of the receiver, so the
  // request is sent again over a new connection. If the receiver processed the first request after all, the delivery
  // arrives twice under the same id, which at-least-once delivery allows.
  const answer = await send(reusable).catch((error: Error) =>
    error instanceof StaleConnectionError ? sendAgain() : causeOf(error, "connecting"),
  );
  const known = { durationMs: durationMs(), ...sentAgain, ...head };
  if ("errorCode" in answer) return { ...known, ...answer };
  const { statusCode = 0 } = head;
  const excerpt = excerptOf(answer.start, answer.length, headers, limits.maxExcerptBytes);
  const detail = answerDetail(statusCode, headers, excerpt, url);
  const retryAfter = head.retryAfter ?? (statusCode === 429 ? retryAfterIn(excerpt) : undefined);
  const isRefused = isRefusal(excerpt, url);
  const isUsable = detail !== undefined && !(isRedirect(statusCode) && validateReceiverUrl(detail, allowed));
  return {
    ...known,
    ...((!isSuccess(statusCode) || isRefused) && { errorCode: "http_status" as const }),
    ...(retryAfter !== undefined && { retryAfter }),
    ...(isUsable && { detail }),
    ...(excerpt !== "" && { excerpt }),
  };
}

/** A reused connection was closed before any response to this request, or had bytes left of the response before. */
class StaleConnectionError extends Error {}

/** A stale connection fails within a round trip. A later failure is a failure of the receiver. */
const STALE_WITHIN_MS = 1_000;

/** A reused connection is closed, or its first bytes begin no response: they were sent after the one before. */
const STALE = /^(ECONNRESET|EPIPE|ECONNABORTED|HPE_INVALID_CONSTANT)$/;

/** Upper bounds on 1xx responses, and on the names and values of their headers. */
const MAX_INTERIM_RESPONSES = 100;
const MAX_INTERIM_HEADERS = 1_000;

/** Upper bound on the parts in which a body arrives: a chunk of one byte costs as much CPU time as one of many. */
const MAX_BODY_PARTS = 256;

interface Progress {
  /** Called when a new connection is established, TLS included, so that the request can be sent. */
  onConnect?: (() => void) | undefined;
  /** Called when status and headers have arrived, even if reading the body fails later. */
  onHead(response: http.IncomingMessage): void;
}

/**
 * Sends the request and reads the response up to the limit.
 * @param deadlineAt on the clock of `performance`
 * @returns the first `maxExcerptBytes` of the body, and the number of bytes read; or why no complete response arrived
 * @throws StaleConnectionError
 */
function sendRequest(
  agents: Agents,
  { url, headers, body }: Request,
  limits: Limits,
  deadlineAt: number,
  { onConnect, onHead }: Progress,
): Promise<{ start: Buffer; length: number } | Cause> {
  return new Promise((resolve, reject) => {
    const request = http.request({
      agent: agents[url.protocol],
      protocol: url.protocol,
      // A URL has brackets around an IPv6 address, `hostname` must not.
      hostname: url.hostname.replace(/^\[|\]$/g, ""),
      port: url.port,
      method: "POST",
      path: url.pathname + url.search,
      headers: rawHeaders(url, headers, body),
    });
    const sentAt = performance.now();
    const phase = phaseOf(request);
    const timer = setTimeout(() => fail(errorWith("ETIMEDOUT")), Math.max(0, deadlineAt - sentAt));
    // Only the first settlement of the promise counts. Errors that follow, such as a closed connection, are ignored.
    const fail = (error: Error) => {
      clearTimeout(timer);
      if (error instanceof StaleConnectionError) reject(error);
      else resolve(causeOf(error, phase()));
      request.destroy();
    };
    const kept: Uint8Array[] = [];
    let bytesRead = 0;
    const finish = () => {
      clearTimeout(timer);
      resolve({ start: Buffer.concat(kept), length: bytesRead });
    };

    if (onConnect) {
      const connected = url.protocol === "https:" ? "secureConnect" : "connect";
      request.once("socket", (socket) => socket.once(connected, onConnect));
    }
    let interimResponses = 0;
    let response: http.IncomingMessage | undefined;
    let interimHeaders = 0;
    request.on("information", ({ rawHeaders }) => {
      interimResponses += 1;
      interimHeaders += rawHeaders.length;
      if (interimResponses <= MAX_INTERIM_RESPONSES && interimHeaders <= MAX_INTERIM_HEADERS) return;
      stopParsing(request);
      fail(new Error("too many interim responses"));
    });
    // After an upgrade the agent no longer manages the socket. `fail` closes it.
    request.on("upgrade", () => fail(errorWith(SWITCHED)));
    request.on("error", (error: NodeJS.ErrnoException) => {
      // Bytes after a complete response, such as the body of a 204: Node has closed the connection, and `end` follows.
      if (response?.complete) return;
      const isUnanswered = !response && interimResponses === 0 && performance.now() - sentAt < STALE_WITHIN_MS;
      const isStale = request.reusedSocket && isUnanswered && STALE.test(error.code ?? "");
      fail(isStale ? new StaleConnectionError() : error);
    });
    request.on("response", (incoming) => {
      response = incoming;
      onHead(incoming);
      let bytesKept = 0;
      let parts = 0;
      incoming.on("data", (chunk: Uint8Array) => {
        if (bytesKept < limits.maxExcerptBytes) {
          const part = chunk.subarray(0, limits.maxExcerptBytes - bytesKept);
          kept.push(part);
          bytesKept += part.length;
        }
        bytesRead += chunk.length;
        parts += 1;
        if (bytesRead < limits.maxResponseBytes && parts < MAX_BODY_PARTS) return;
        finish();
        request.destroy();
      });
      incoming.on("end", () => {
        finish();
        // The receiver responded before it had read the request: nothing else would close this connection.
        if (!request.writableFinished) request.destroy();
      });
      incoming.on("error", fail);
    });
    request.end(body);
  });
}

/**
 * Ignores what was received after the current 1xx response: a destroyed request still parses the rest of up to 64 KB. Node has no
 * documented call for it. The parser stops after a response whose callback returns 2: after it comes another protocol.
 */
function stopParsing({ parser }: http.ClientRequest & { parser?: { onIncoming: () => number } | null }): void {
  if (parser) parser.onIncoming = () => 2;
}

const errorWith = (code: string): Error => Object.assign(new Error(code), { code });

/**
 * Returns names and values in turn. Node writes headers in this form unchanged, which saves a tenth of the CPU of a
 * delivery, and adds only `Connection`.
 */
function rawHeaders({ host }: URL, headers: Record<string, string>, body: string): string[] {
  // Request no compression. This client does not decompress responses, so a zip bomb has no effect. Firewalls reject
  // requests without `Accept` (rule 920300 of the OWASP Core Rule Set).
  const raw = [
    "Host",
    host,
    "Accept",
    "*/*",
    "Accept-Encoding",
    "identity",
    "Content-Length",
    String(Buffer.byteLength(body)),
  ];
  for (const name in headers) raw.push(name, headers[name] ?? "");
  return raw;
}

const isSuccess = (status = 0): boolean => status >= 200 && status < 300;
const isRedirect = (status: number): boolean => status >= 300 && status < 400;

type Head = Pick<Outcome, "statusCode" | "retryAfter" | "headers">;

/** Reads the part of the outcome that depends on status and headers only. */
function readHead({ statusCode = 0, headers }: http.IncomingMessage): Head {
  const { "retry-after": retryAfter } = headers;
  const known = { statusCode, ...(retryAfter !== undefined && { retryAfter }) };
  if (isSuccess(statusCode)) return known;
  const kept = keptHeaders(headers, safeText);
  return { ...known, ...(Object.keys(kept).length > 0 && { headers: kept }) };
}

import http from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { FailureCode } from "./failure-code.ts";
import { type Agents, guardedAgents } from "./guarded-connect.ts";
import type { Cidr } from "./receiver-address.ts";

/*
 * One POST to a stranger's server, which may be slow, endless, broken or hostile. Whatever it does, the call ends within the
 * deadline, reads a bounded number of bytes, follows nowhere and returns an outcome: it never throws.
 */

export interface Limits {
  /** One deadline for all of it, from the dial to the last byte read. Idle timeouts would let a dripping body live on. */
  deadlineMs: number;
  maxResponseBytes: number;
  maxExcerptBytes: number;
}

export const DEFAULT_LIMITS: Limits = { deadlineMs: 15_000, maxResponseBytes: 64 * 1024, maxExcerptBytes: 1024 };

export interface Outcome {
  durationMs: number;
  /** Absent for a 2xx whose body was read in time. */
  errorCode?: FailureCode;
  /** Absent when no response came. */
  statusCode?: number;
  retryAfter?: string;
  excerpt?: string;
  /** Where a redirect leads, or the cause of a TLS failure. */
  detail?: string;
}

export interface ReceiverClient {
  post(url: string, headers: Record<string, string>, body: string): Promise<Outcome>;
  /** Closes all connections, at once. */
  close(): Promise<void>;
}

/** @param allowed ranges beyond the public ones that may be reached */
export function createReceiverClient(allowed: Cidr[], limits: Limits = DEFAULT_LIMITS): ReceiverClient {
  const kept = guardedAgents(allowed, { keepAlive: true, timeout: KEEP_ALIVE_MS });
  const fresh = guardedAgents(allowed, { keepAlive: false });
  return {
    post: (url, headers, body) => post({ kept, fresh }, { url: new URL(url), headers, body }, limits),
    async close() {
      for (const agent of [...Object.values(kept), ...Object.values(fresh)]) agent.destroy();
    },
  };
}

const KEEP_ALIVE_MS = 4_000;

interface Connections {
  kept: Agents;
  fresh: Agents;
}

interface Request {
  url: URL;
  headers: Record<string, string>;
  body: string;
}

async function post({ kept, fresh }: Connections, request: Request, limits: Limits): Promise<Outcome> {
  const startedAt = performance.now();
  const durationMs = () => Math.round(performance.now() - startedAt);
  let head: Head = {};
  const send = (agents: Agents) =>
    exchange(agents, request, limits, startedAt + limits.deadlineMs, (response) => {
      head = readHead(response, request.url);
    });
  // Requests that come up in one turn of the event loop are written one after the other, not each between the answers to
  // others: a third off the CPU of a delivery (80 to 50 µs, 50 at a time over loopback).
  await nextTurn();
  try {
    // A receiver may hang up on an idle connection at the very moment in which it is used again. That says nothing about the
    // receiver, so the request is made once more, on a connection of its own. If the first one was seen after all, the
    // delivery arrives twice under one id, as it may.
    const body = await send(kept).catch((error: unknown) => {
      if (error instanceof ConnectionStale) return send(fresh);
      throw error;
    });
    const excerpt = safeText(body, limits.maxExcerptBytes);
    return {
      durationMs: durationMs(),
      ...head,
      ...(!isSuccess(head.statusCode) && { errorCode: "http_status" as const }),
      ...(excerpt !== "" && { excerpt }),
    };
  } catch (error) {
    const errorCode = errorCodeOf(error);
    const cause = errorCode === "tls_error" && { detail: (error as { code: string }).code };
    return { durationMs: durationMs(), ...head, errorCode, ...cause };
  }
}

class DeadlineExceeded extends Error {
  readonly code = "ETIMEDOUT";
}

class ConnectionLost extends Error {
  readonly code = "ECONNRESET";
}

/** The connection of an earlier request ended before any answer to this one. */
class ConnectionStale extends Error {}

/** One that had been closed says so within a round trip. What comes later is a receiver that gave up on this very request. */
const STALE_WITHIN_MS = 1_000;

/** Whoever announces that an answer is to come, again and again, does not mean it. */
const MAX_INTERIM_ANSWERS = 100;

/**
 * Makes the request and reads the answer up to the bound. Rejects for whatever keeps it from a complete answer.
 * @param deadlineAt on the clock of `performance`
 * @param onHead is called as soon as status and headers are here, whatever becomes of the body
 * @returns the first bytes of the body, as many as are kept
 */
function exchange(
  agents: Agents,
  { url, headers, body }: Request,
  limits: Limits,
  deadlineAt: number,
  onHead: (response: http.IncomingMessage) => void,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const request = http.request({
      agent: agents[url.protocol],
      protocol: url.protocol,
      // The brackets of an IPv6 address belong to the URL.
      hostname: url.hostname.replace(/^\[|\]$/g, ""),
      port: url.port,
      method: "POST",
      path: url.pathname + url.search,
      headers: wireHeaders(url, headers, body),
    });
    const sentAt = performance.now();
    const timer = setTimeout(() => fail(new DeadlineExceeded()), Math.max(0, deadlineAt - sentAt));
    // The first end counts; what follows from it (a connection cut, an answer half read) changes nothing.
    const fail = (error: Error) => {
      clearTimeout(timer);
      reject(error);
      request.destroy();
    };
    const kept: Uint8Array[] = [];
    const finish = () => {
      clearTimeout(timer);
      resolve(Buffer.concat(kept));
    };

    let interimAnswers = 0;
    let response: http.IncomingMessage | undefined;
    request.on("information", () => {
      interimAnswers += 1;
      if (interimAnswers > MAX_INTERIM_ANSWERS) fail(new Error("too many interim answers"));
    });
    // Node hands the connection over: it is nobody's then but ours.
    request.on("upgrade", (_, socket) => {
      socket.destroy();
      fail(new ConnectionLost());
    });
    request.on("error", (error) => {
      const isUnanswered = !response && interimAnswers === 0 && performance.now() - sentAt < STALE_WITHIN_MS;
      const isStale = request.reusedSocket && isUnanswered && errorCodeOf(error) === "connection_reset";
      fail(isStale ? new ConnectionStale(undefined, { cause: error }) : error);
    });
    request.on("response", (answer) => {
      response = answer;
      onHead(answer);
      let bytesRead = 0;
      let bytesKept = 0;
      answer.on("data", (chunk: Uint8Array) => {
        if (bytesKept < limits.maxExcerptBytes) {
          const part = chunk.subarray(0, limits.maxExcerptBytes - bytesKept);
          kept.push(part);
          bytesKept += part.length;
        }
        bytesRead += chunk.length;
        if (bytesRead < limits.maxResponseBytes) return;
        finish();
        request.destroy();
      });
      answer.on("end", () => {
        finish();
        // An answer that came before the receiver took the request: nothing would ever end this connection.
        if (!request.writableFinished) request.destroy();
      });
      answer.on("error", fail);
    });
    request.end(body);
  });
}

/**
 * Names and values in turn, as they go out. Given this way Node writes them as they are, which takes a tenth off the CPU of a
 * delivery, and adds only `Connection`.
 */
function wireHeaders({ host }: URL, headers: Record<string, string>, body: string): string[] {
  // Compression is declined: what is never inflated cannot be a bomb.
  const wire = ["Host", host, "Accept-Encoding", "identity", "Content-Length", String(Buffer.byteLength(body))];
  for (const name in headers) wire.push(name, headers[name] ?? "");
  return wire;
}

const isSuccess = (status = 0): boolean => status >= 200 && status < 300;
const isRedirect = (status: number): boolean => status >= 300 && status < 400;

const MAX_TARGET_CHARACTERS = 300;

/** The absolute URL that a redirect leads to, fit to be shown; undefined when there is none that could be registered. */
function redirectTarget(location: string | undefined, from: URL): string | undefined {
  if (location === undefined || !URL.canParse(location, from.href)) return undefined;
  const { href, protocol, username, password } = new URL(location, from);
  const isShowable = /^https?:$/.test(protocol) && username + password === "" && href.length <= MAX_TARGET_CHARACTERS;
  return isShowable ? href : undefined;
}

type Head = Pick<Outcome, "statusCode" | "retryAfter" | "detail">;

/** What is known once the headers are here. */
function readHead({ statusCode = 0, headers }: http.IncomingMessage, url: URL): Head {
  const { "retry-after": retryAfter, location } = headers;
  const detail = isRedirect(statusCode) ? redirectTarget(location, url) : undefined;
  return { statusCode, ...(retryAfter !== undefined && { retryAfter }), ...(detail !== undefined && { detail }) };
}

/** Text without control characters, at most so many bytes in UTF-8. Invalid bytes show as U+FFFD. */
function safeText(bytes: Uint8Array, maxBytes: number): string {
  // `stream` drops a character that was cut in half at the end.
  const text = new TextDecoder().decode(bytes, { stream: true }).replace(/[^\P{C}\t\n]/gu, "");
  return new TextDecoder().decode(Buffer.from(text).subarray(0, maxBytes), { stream: true });
}

const TIMEOUT = /^ETIMEDOUT$/;
const DNS = /^(ENOTFOUND|ENODATA|EAI_\w+)$/;
const REFUSED = /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL)$/;
const RESET = /^(ECONNRESET|EPIPE|ECONNABORTED)$/;
const TLS =
  /^(EPROTO|ERR_TLS_\w+|ERR_SSL_\w+|CERT_\w+|\w+_CERT|\w+_CERT_\w+|\w*SELF_SIGNED\w*|UNABLE_TO_\w+|HOSTNAME_MISMATCH)$/;

/** Why no complete response came. What none of the rules knows is something that the HTTP parser refused. */
function errorCodeOf(error: unknown): FailureCode {
  const { code = "", cause } = error as { code?: string; cause?: unknown };
  if (code === "ADDRESS_BLOCKED") return "address_blocked";
  if (TIMEOUT.test(code)) return "timeout";
  if (DNS.test(code)) return "dns_error";
  if (REFUSED.test(code)) return "connection_refused";
  if (RESET.test(code)) return "connection_reset";
  if (TLS.test(code)) return "tls_error";
  return cause === undefined ? "invalid_response" : errorCodeOf(cause);
}

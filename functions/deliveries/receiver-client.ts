import { Agent, type Dispatcher } from "undici";
import type { Cidr } from "../webhooks/receiver-address.ts";
import type { AttemptError } from "./delivery.ts";
import { guardedConnect } from "./guarded-connect.ts";

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
  errorCode?: AttemptError;
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
export function receiverClient(allowed: Cidr[], limits: Limits = DEFAULT_LIMITS): ReceiverClient {
  const agent = new Agent({
    connect: guardedConnect(allowed, limits.deadlineMs),
    // One request at a time per connection: an answer that hangs holds up nobody else's.
    pipelining: 1,
    keepAliveTimeout: 4_000,
    // The deadline covers both.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  return {
    post: (url, headers, body) => post(agent, new URL(url), { headers, body }, limits),
    close: () => agent.destroy(),
  };
}

interface Request {
  headers: Record<string, string>;
  body: string;
}

async function post(agent: Agent, url: URL, { headers, body }: Request, limits: Limits): Promise<Outcome> {
  const startedAt = performance.now();
  const durationMs = () => Math.round(performance.now() - startedAt);
  let head: Pick<Outcome, "statusCode" | "retryAfter" | "detail"> = {};
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(new DeadlineExceeded()), limits.deadlineMs);
  try {
    // Compression is declined: what is never inflated cannot be a bomb.
    const request = { method: "POST", headers: { "Accept-Encoding": "identity", ...headers }, body } as const;
    const { origin, pathname, search } = url;
    const response = await agent.request({ origin, path: pathname + search, ...request, signal: deadline.signal });
    head = readHead(response, url);
    const excerpt = await readExcerpt(response.body, limits);
    return {
      durationMs: durationMs(),
      ...head,
      ...(!isSuccess(response.statusCode) && { errorCode: "http_status" as const }),
      ...(excerpt !== "" && { excerpt }),
    };
  } catch (error) {
    const errorCode = errorCodeOf(error);
    const cause = errorCode === "tls_error" && { detail: (error as { code: string }).code };
    return { durationMs: durationMs(), ...head, errorCode, ...cause };
  } finally {
    clearTimeout(timer);
  }
}

const isSuccess = (status: number): boolean => status >= 200 && status < 300;
const isRedirect = (status: number): boolean => status >= 300 && status < 400;

const MAX_TARGET_CHARACTERS = 300;

/** The absolute URL that a redirect leads to, fit to be shown; undefined when there is none that could be registered. */
function redirectTarget(location: string | undefined, from: URL): string | undefined {
  if (location === undefined || !URL.canParse(location, from.href)) return undefined;
  const { href, protocol, username, password } = new URL(location, from);
  const isShowable = /^https?:$/.test(protocol) && username + password === "" && href.length <= MAX_TARGET_CHARACTERS;
  return isShowable ? href : undefined;
}

/** What is known once the headers are here, whatever becomes of the body. */
function readHead({ statusCode, headers }: Dispatcher.ResponseData, url: URL) {
  const header = (name: string) => [headers[name]].flat()[0];
  const retryAfter = header("retry-after");
  const detail = isRedirect(statusCode) ? redirectTarget(header("location"), url) : undefined;
  return { statusCode, ...(retryAfter !== undefined && { retryAfter }), ...(detail !== undefined && { detail }) };
}

class DeadlineExceeded extends Error {
  readonly code = "ETIMEDOUT";
}

/** Reads up to the bound, lets go of the rest, and keeps the first of it as text that is safe to show. */
async function readExcerpt(body: AsyncIterable<Uint8Array>, limits: Limits): Promise<string> {
  const kept: Uint8Array[] = [];
  let bytesRead = 0;
  let bytesKept = 0;
  for await (const chunk of body) {
    if (bytesKept < limits.maxExcerptBytes) {
      const part = chunk.subarray(0, limits.maxExcerptBytes - bytesKept);
      kept.push(part);
      bytesKept += part.length;
    }
    bytesRead += chunk.length;
    // Leaving the loop destroys the stream, and the connection with it.
    if (bytesRead >= limits.maxResponseBytes) break;
  }
  return safeText(Buffer.concat(kept), limits.maxExcerptBytes);
}

/** Text without control characters, at most so many bytes in UTF-8. Invalid bytes show as U+FFFD. */
function safeText(bytes: Uint8Array, maxBytes: number): string {
  // `stream` drops a character that was cut in half at the end.
  const text = new TextDecoder().decode(bytes, { stream: true }).replace(/[^\P{C}\t\n]/gu, "");
  return new TextDecoder().decode(Buffer.from(text).subarray(0, maxBytes), { stream: true });
}

const TIMEOUT = /^(ETIMEDOUT|UND_ERR_(CONNECT|HEADERS|BODY)_TIMEOUT)$/;
const DNS = /^(ENOTFOUND|ENODATA|EAI_\w+)$/;
const REFUSED = /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL)$/;
const RESET = /^(ECONNRESET|EPIPE|ECONNABORTED|UND_ERR_SOCKET)$/;
const TLS =
  /^(EPROTO|ERR_TLS_\w+|ERR_SSL_\w+|CERT_\w+|\w+_CERT|\w+_CERT_\w+|\w*SELF_SIGNED\w*|UNABLE_TO_\w+|HOSTNAME_MISMATCH)$/;

/** Why no complete response came. What none of the rules knows is something that the HTTP parser refused. */
function errorCodeOf(error: unknown): AttemptError {
  const { code = "", cause } = error as { code?: string; cause?: unknown };
  if (code === "ADDRESS_BLOCKED") return "address_blocked";
  if (TIMEOUT.test(code)) return "timeout";
  if (DNS.test(code)) return "dns_error";
  if (REFUSED.test(code)) return "connection_refused";
  if (RESET.test(code)) return "connection_reset";
  if (TLS.test(code)) return "tls_error";
  return cause === undefined ? "invalid_response" : errorCodeOf(cause);
}

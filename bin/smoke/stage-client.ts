import { setTimeout as sleep } from "node:timers/promises";
import { parseJson } from "../../functions/platform/parse-json.ts";
import { CheckFailed, CheckInterrupted } from "./findings.ts";

/* The HTTP client of the smoke test. Every request ends within a time limit, and every response is recorded. */

export interface StageResponse {
  /** Method and path of the request: `GET /v1/projects`. */
  request: string;
  status: number;
  headers: Headers;
  text: string;
  /** The first characters of the text, with credentials removed. */
  excerpt: string;
  /** The text parsed as JSON; undefined = not valid JSON. */
  json: unknown;
  /** Epoch milliseconds. */
  sentAt: number;
  receivedAt: number;
}

interface Call {
  token?: string;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent unchanged, instead of `body`. */
  text?: string;
  contentType?: string;
  /** Whether a 429 is sent again; absent = yes. */
  isRetried?: boolean;
}

export type Send = (method: string, path: string, call?: Call) => Promise<StageResponse>;

interface RequestLimits {
  /** Timeout of a request including its response body. Retries of a 429 may wait for the same time again. */
  requestMs: number;
  /** Once aborted, no new request is sent. A request in flight is finished, so that no created resource is missed. */
  stop: AbortSignal;
}

/** Upper bound on a response body. Those of the service have a few KB. */
const MAX_RESPONSE_BYTES = 1024 * 1024;

const MAX_EXCERPT_CHARACTERS = 160;

interface Hooks {
  /** Called with every response, including those that lead to a retry. */
  onResponse(response: StageResponse): void;
  /** Removes credentials from a text. */
  redact(text: string): string;
}

/**
 * Returns a function that sends requests to a stage. A 429 is retried after its `Retry-After`, within the limits; redirects
 * are not followed.
 */
export function stageClient(baseUrl: string, { requestMs, stop }: RequestLimits, { onResponse, redact }: Hooks): Send {
  async function once(method: string, path: string, { token, body, text, contentType }: Call): Promise<StageResponse> {
    const content = text ?? (body === undefined ? undefined : JSON.stringify(body));
    const request = `${method} ${path}`;
    if (stop.aborted) throw new CheckInterrupted(`${request} was not sent`);
    const sentAt = Date.now();
    try {
      const response = await fetch(`${baseUrl}${path}`, {
        method,
        redirect: "manual",
        headers: {
          ...(token !== undefined && { Authorization: `Bearer ${token}` }),
          ...(content !== undefined && { "Content-Type": contentType ?? "application/json" }),
        },
        ...(content !== undefined && { body: content }),
        signal: AbortSignal.timeout(requestMs),
      });
      const received = await readText(response);
      const { status, headers } = response;
      // Redact before cutting: half a credential no longer matches the patterns.
      const excerpt = redact(received).replaceAll(/\s+/g, " ").slice(0, MAX_EXCERPT_CHARACTERS);
      const json = parseJson(received);
      return { request, status, headers, text: received, excerpt, json, sentAt, receivedAt: Date.now() };
    } catch (error) {
      throw new CheckFailed(`${request} ${reasonOf(error as Error, requestMs)}`, { cause: error });
    }
  }

  return async (method, path, call = {}) => {
    const giveUpAt = Date.now() + requestMs;
    for (;;) {
      const response = await once(method, path, call);
      onResponse(response);
      const waitMs = 1000 * retryAfterSeconds(response.headers);
      if (response.status !== 429 || call.isRetried === false || Date.now() + waitMs > giveUpAt) return response;
      await pause(waitMs, stop);
    }
  };
}

/** Waits. @throws CheckInterrupted when `stop` is aborted meanwhile */
export async function pause(ms: number, stop: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal: stop }).catch(() => {
    throw new CheckInterrupted("still waiting when the run ended");
  });
}

async function readText({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_RESPONSE_BYTES) throw new Error(`the response exceeds ${MAX_RESPONSE_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Reads Retry-After in seconds, at least 1. The date form counts as 1: the service never sends it. */
function retryAfterSeconds(headers: Headers): number {
  const seconds = Number.parseInt(headers.get("retry-after") ?? "", 10);
  return seconds > 0 ? seconds : 1;
}

function reasonOf(error: Error, requestMs: number): string {
  if (error.name === "TimeoutError") return `got no complete response within ${requestMs / 1000} s`;
  const { name, code = name, message } = (error.cause ?? error) as NodeJS.ErrnoException;
  const reason = reasons.find(({ codes }) => codes.test(code))?.reason;
  return reason === undefined ? `failed: ${message}` : `${reason} (${code})`;
}

const reasons = [
  { codes: /ENOTFOUND|EAI_AGAIN/, reason: "failed: the host name does not resolve" },
  { codes: /ECONNREFUSED/, reason: "failed: nothing accepts connections at that host and port" },
  {
    codes: /UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH/,
    reason: "failed: the host cannot be reached",
  },
  { codes: /ECONNRESET|UND_ERR_SOCKET/, reason: "failed: the connection closed before the response was complete" },
  { codes: /CERT|ALTNAME|UNABLE_TO|SELF_SIGNED/, reason: "was not sent: the TLS certificate is not valid" },
  { codes: /ERR_SSL|EPROTO/, reason: "was not sent: the server does not speak TLS" },
  { codes: /HTTPParserError|^HPE_/, reason: "failed: the response is not HTTP" },
];

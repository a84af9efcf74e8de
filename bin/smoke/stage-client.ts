import { setTimeout as sleep } from "node:timers/promises";
import { CheckFailed, CheckInterrupted } from "./findings.ts";

/* HTTP as the smoke test speaks it: every request ends in bounded time, and every answer is kept to be looked at. */

export interface Answer {
  /** What was asked, `GET /v1/projects`. */
  request: string;
  status: number;
  headers: Headers;
  text: string;
  /** The first of the text, fit to be printed. */
  excerpt: string;
  /** What the text is as JSON; undefined when it is none. */
  json: unknown;
  /** Epoch milliseconds. */
  sentAt: number;
  receivedAt: number;
}

interface Call {
  token?: string;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as it is, in place of `body`. */
  text?: string;
  contentType?: string;
}

export type Send = (method: string, path: string, call?: Call) => Promise<Answer>;

interface Bounds {
  /** How long a request may take, its answer read. Waiting because of a 429 may take as long again. */
  requestMs: number;
  /** Once aborted, no new request goes out. One under way is finished, so that nothing is made that nobody knows of. */
  stop: AbortSignal;
}

/** What an answer may weigh. Ours have a few KB. */
const MAX_ANSWER_BYTES = 1024 * 1024;

const MAX_EXCERPT_CHARACTERS = 160;

interface Ear {
  /** Is told of every answer, those that are asked again included. */
  heard(answer: Answer): void;
  /** Takes credentials out of a text. */
  hide(text: string): string;
}

export function stageClient(baseUrl: string, { requestMs, stop }: Bounds, { heard, hide }: Ear): Send {
  async function once(method: string, path: string, { token, body, text, contentType }: Call): Promise<Answer> {
    const content = text ?? (body === undefined ? undefined : JSON.stringify(body));
    const request = `${method} ${path}`;
    if (stop.aborted) throw new CheckInterrupted(`${request} was not sent any more`);
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
      // Hidden first, cut then: half a credential is one that nobody recognises any more.
      const excerpt = hide(received).replaceAll(/\s+/g, " ").slice(0, MAX_EXCERPT_CHARACTERS);
      const json = parse(received);
      return { request, status, headers, text: received, excerpt, json, sentAt, receivedAt: Date.now() };
    } catch (error) {
      throw new CheckFailed(`${request} ${reasonOf(error as Error, requestMs)}`, { cause: error });
    }
  }

  return async (method, path, call = {}) => {
    const giveUpAt = Date.now() + requestMs;
    for (;;) {
      const answer = await once(method, path, call);
      heard(answer);
      const waitMs = 1000 * retryAfterSeconds(answer.headers);
      if (answer.status !== 429 || Date.now() + waitMs > giveUpAt) return answer;
      await pause(waitMs, stop);
    }
  };
}

/** @throws Stopped when it is to end meanwhile */
export async function pause(ms: number, stop: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal: stop }).catch(() => {
    throw new CheckInterrupted("it was still waiting");
  });
}

async function readText({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) throw new Error(`was answered with more than ${MAX_ANSWER_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A number of seconds; the other form, a date, is what no stage of ours sends. */
function retryAfterSeconds(headers: Headers): number {
  const seconds = Number.parseInt(headers.get("retry-after") ?? "", 10);
  return seconds > 0 ? seconds : 1;
}

function reasonOf(error: Error, requestMs: number): string {
  if (error.name === "TimeoutError") return `had no complete answer within ${requestMs / 1000} s`;
  const { name, code = name, message } = (error.cause ?? error) as NodeJS.ErrnoException;
  const reason = reasons.find(({ codes }) => codes.test(code))?.reason;
  return reason === undefined ? message : `${reason} (${code})`;
}

const reasons = [
  { codes: /ENOTFOUND|EAI_AGAIN/, reason: "went nowhere: the host name does not resolve" },
  { codes: /ECONNREFUSED/, reason: "went nowhere: nothing accepts connections at that host and port" },
  {
    codes: /UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH/,
    reason: "went nowhere: the host is not reached",
  },
  { codes: /ECONNRESET|UND_ERR_SOCKET/, reason: "was cut off before its answer was complete" },
  { codes: /CERT|ALTNAME|UNABLE_TO|SELF_SIGNED/, reason: "was not sent: the TLS certificate does not hold" },
  { codes: /ERR_SSL|EPROTO/, reason: "was not sent: no TLS is spoken there" },
  { codes: /HTTPParserError|^HPE_/, reason: "was answered with what is not HTTP" },
];

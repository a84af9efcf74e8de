import http from "node:http";
import https from "node:https";
import type { Attempt, DeliveryErrorCode } from "../../../client/src/client.ts";
import { isOnThisMachine } from "../commands/session.ts";
import { usageError } from "../terminal/exit-codes.ts";
import { printable, styled } from "../terminal/terminal.ts";
import { shorten } from "../views/table.ts";
import { deliveryHeaders, type LocalDelivery } from "./signed-delivery.ts";

/* Sends a delivery to a receiver that this machine reaches, as the service would: one POST, 15 seconds, no redirects. */

/** The result of a request, with the names and codes of the API. */
export type ForwardResult = Pick<Attempt, "status_code" | "error_code" | "duration_ms" | "response_excerpt">;

export interface Destination {
  url: URL;
  /** The current secret first. */
  secrets: string[];
  /** Deadline for the whole response. Default: that of the service, 15 seconds. */
  timeoutMs?: number;
}

const TIMEOUT_MS = 15_000;
const MAX_RESPONSE_BYTES = 64 * 1024;
const MAX_EXCERPT_BYTES = 1024;

/**
 * Sends a delivery once.
 * @param stop ends the request
 * @throws the reason of `stop` when it is aborted; a failure of the receiver is a result
 */
export async function forwardDelivery(
  delivery: LocalDelivery,
  { url, secrets, timeoutMs = TIMEOUT_MS }: Destination,
  stop?: AbortSignal,
): Promise<ForwardResult> {
  const headers = deliveryHeaders(delivery, secrets, new Date());
  const startedAt = performance.now();
  const durationMs = () => Math.round(performance.now() - startedAt);
  const deadline = AbortSignal.timeout(timeoutMs);
  const signal = stop ? AbortSignal.any([stop, deadline]) : deadline;
  let statusCode: number | null = null;
  try {
    const response = await post(url, headers, delivery.body, signal);
    statusCode = response.statusCode ?? null;
    const excerpt = (await readStart(response)).subarray(0, MAX_EXCERPT_BYTES).toString("utf8");
    const isSuccess = statusCode !== null && statusCode >= 200 && statusCode < 300;
    return {
      status_code: statusCode,
      error_code: isSuccess ? null : "http_status",
      duration_ms: durationMs(),
      response_excerpt: excerpt === "" ? null : excerpt,
    };
  } catch (error) {
    stop?.throwIfAborted();
    const error_code = deadline.aborted ? "timeout" : errorCodeOf(error);
    return { status_code: statusCode, error_code, duration_ms: durationMs(), response_excerpt: null };
  }
}

async function post(
  url: URL,
  headers: Record<string, string>,
  body: Buffer,
  signal: AbortSignal,
): Promise<http.IncomingMessage> {
  const { request, Agent } = url.protocol === "https:" ? https : http;
  // An agent for one request: a connection that is kept may be closed when the receiver is restarted.
  const agent = new Agent({ keepAlive: true });
  const raw = ["Host", url.host, "Accept-Encoding", "identity", "Content-Length", String(body.length)];
  for (const [name, value] of Object.entries(headers)) raw.push(name, value);
  return new Promise((resolve, reject) => {
    request(url, { method: "POST", agent, headers: raw, signal })
      .on("response", resolve)
      .on("error", reject)
      .on("close", () => agent.destroy())
      .end(body);
  });
}

async function readStart(response: http.IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= MAX_RESPONSE_BYTES) break;
  }
  return Buffer.concat(chunks);
}

const codeByError: [RegExp, DeliveryErrorCode][] = [
  [/^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL)$/, "connection_refused"],
  [/^(ENOTFOUND|EAI_\w+)$/, "dns_error"],
  [/^ETIMEDOUT$/, "timeout"],
  [/^HPE_/, "invalid_response"],
  [/^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|EPROTO)/, "tls_error"],
];

function errorCodeOf(error: unknown): DeliveryErrorCode {
  const { code = "" } = error as NodeJS.ErrnoException;
  return codeByError.find(([pattern]) => pattern.test(code))?.[1] ?? "connection_reset";
}

const MAX_SHOWN_EXCERPT = 200;

/** Formats the result for a person: `200 in 12 ms`, and the start of the response. */
export function forwardLines(result: ForwardResult): string[] {
  const { status_code, error_code, duration_ms, response_excerpt: excerpt } = result;
  const outcome = error_code === null || error_code === "http_status" ? String(status_code) : error_code;
  const style = error_code === null ? "green" : "red";
  return [
    `forwarded            ${styled(style, outcome)} in ${duration_ms} ms`,
    ...hintsOf(result).map((hint) => `                     ${styled("dim", `→ ${hint}`)}`),
    ...(excerpt === null ? [] : [`response             ${shorten(printable(excerpt), MAX_SHOWN_EXCERPT)}`]),
  ];
}

function hintsOf({ status_code, error_code }: ForwardResult): string[] {
  if (status_code === 401 || status_code === 403) return ["Does the receiver have the signing secret of this command?"];
  return error_code === "connection_refused" ? ["Does the receiver run, and on this port?"] : [];
}

/**
 * Reads the URL of --forward.
 * @throws CommandError unless it is https, or http on this machine: deployment data must not cross a network unencrypted
 */
export function readForwardUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) throw usageError("--forward must be an absolute http(s) URL.");
  if (url.username || url.password) throw usageError("--forward must have no user name and no password.");
  if (url.protocol === "https:" || isOnThisMachine(url)) return url;
  throw usageError("--forward must start with https://, except for a receiver on this machine.");
}

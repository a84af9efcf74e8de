import http from "node:http";
import https from "node:https";
import {
  answerDetail,
  type Cause,
  causeOf,
  excerptOf,
  type Phase,
  phaseOf,
  SWITCHED,
} from "../../../../functions/webhooks/receiver/failure-cause.ts";
import { failureHint } from "../../../../functions/webhooks/receiver/failure-hints.ts";
import type { Attempt } from "../../../client/src/client.ts";
import { isOnThisMachine } from "../commands/session.ts";
import { usageError } from "../terminal/exit-codes.ts";
import { printable, styled } from "../terminal/terminal.ts";
import { shorten } from "../views/table.ts";
import { deliveryHeaders, type LocalDelivery } from "./signed-delivery.ts";

/* Sends a delivery to a receiver that this machine reaches, as the service would: one POST, 15 seconds, no redirects. */

/** The result of a request, with the names, codes and hints of the API. */
export type ForwardResult = Pick<Attempt, "status_code" | "error_code" | "duration_ms" | "response_excerpt" | "hint">;

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
  let status: number | undefined;
  let phase = (): Phase => "connecting";
  let failure: Error | undefined;
  const resultOf = (cause: Partial<Cause>, excerpt = ""): ForwardResult => ({
    status_code: status ?? null,
    error_code: cause.errorCode ?? null,
    duration_ms: durationMs(),
    response_excerpt: excerpt === "" ? null : excerpt,
    hint: failureHint({ error_code: cause.errorCode, status_code: status, detail: cause.detail }) ?? null,
  });
  try {
    const request = open(url, headers, delivery.body, signal);
    phase = phaseOf(request);
    // The error of a response that was cut off does not say why.
    request.on("error", (error) => {
      failure ??= error;
    });
    const response = await responseTo(request);
    status = response.statusCode ?? 0;
    const body = await readStart(response);
    // A body without a length ends with its connection, also with one that was ended here.
    signal.throwIfAborted();
    const excerpt = excerptOf(body.subarray(0, MAX_EXCERPT_BYTES), body.length, response.headers, MAX_EXCERPT_BYTES);
    const detail = answerDetail(status, response.headers, excerpt, url);
    return resultOf(status >= 200 && status < 300 ? {} : { errorCode: "http_status", detail }, excerpt);
  } catch (error) {
    stop?.throwIfAborted();
    return resultOf(causeOf(deadline.aborted ? { code: "ETIMEDOUT" } : (failure ?? (error as Error)), phase()));
  }
}

function open(url: URL, headers: Record<string, string>, body: Buffer, signal: AbortSignal): http.ClientRequest {
  const { request, Agent } = url.protocol === "https:" ? https : http;
  // An agent for one request: a connection that is kept may be closed when the receiver is restarted.
  const agent = new Agent({ keepAlive: true });
  const raw = ["Host", url.host, "Accept", "*/*", "Accept-Encoding", "identity", "Content-Length", String(body.length)];
  for (const [name, value] of Object.entries(headers)) raw.push(name, value);
  const sent = request(url, { method: "POST", agent, headers: raw, signal });
  return sent.on("close", () => agent.destroy()).end(body);
}

const responseTo = (request: http.ClientRequest): Promise<http.IncomingMessage> =>
  new Promise((resolve, reject) => {
    request
      .on("response", resolve)
      .on("upgrade", (_, socket) => {
        socket.destroy();
        reject(Object.assign(new Error(SWITCHED), { code: SWITCHED }));
      })
      .on("error", reject);
  });

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

const MAX_SHOWN_EXCERPT = 200;

/** Formats the result for a person: `200 in 12 ms`, and the start of the response. */
export function forwardLines(result: ForwardResult): string[] {
  const { status_code, error_code, duration_ms, response_excerpt: excerpt } = result;
  const outcome = error_code === null || error_code === "http_status" ? String(status_code) : error_code;
  const style = error_code === null ? "green" : "red";
  return [
    `forwarded            ${styled(style, outcome)} in ${duration_ms} ms`,
    ...hintsOf(result).map((hint) => `                     ${styled("dim", `→ ${printable(hint)}`)}`),
    ...(excerpt === null ? [] : [`response             ${shorten(printable(excerpt), MAX_SHOWN_EXCERPT)}`]),
  ];
}

const hintsOf = ({ status_code, hint }: ForwardResult): string[] => [
  ...(hint === null ? [] : [hint]),
  ...(status_code === 401 || status_code === 403 ? ["Does the receiver have the signing secret of this command?"] : []),
];

/**
 * Reads the URL of --forward.
 * @throws CommandError unless it is https, or http on this machine: deployment data must not cross a network unencrypted
 */
export function readForwardUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) throw usageError("--forward must be an absolute http(s) URL.");
  if (url.username || url.password) throw usageError("--forward must have no user name and no password.");
  url.hostname = url.hostname.replace(/\.$/, "");
  if (url.protocol === "https:" || isOnThisMachine(url)) return url;
  throw usageError("--forward must start with https://, except for a receiver on this machine.");
}

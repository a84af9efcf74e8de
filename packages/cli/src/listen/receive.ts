import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { parseExactly } from "../../../client/src/exact-json.ts";
import { diagnose, TOLERANCE_SECONDS, type Verdict } from "../../../client/src/verify/diagnose.ts";
import { CommandError, exitCodes } from "../exit-codes.ts";
import { runUntilInterrupted } from "../interrupt.ts";
import { jsonText, note, print, printable, styled } from "../terminal.ts";
import { formatVerdict, toVerdictRecord, type VerdictRecord } from "../verify/verdict-view.ts";

/* A webhook receiver on this machine that shows the deliveries it receives. */

export interface ReceiveOptions {
  /** 0 picks a free port. */
  port: number;
  /** The status code of responses. Not used with `forward`. */
  status: number;
  /** Where to forward deliveries; undefined forwards none. */
  forward: URL | undefined;
  /** Stops after this number of deliveries, with exit code 1 if a signature was invalid. Undefined: runs until Ctrl-C. */
  count: number | undefined;
  secrets: string[];
  json: boolean;
  /** Makes a service deliver to the URL of this receiver; absent = the user has done so. */
  subscribe?: (url: string) => Promise<Subscription>;
}

/** The webhook that delivers to the receiver. */
export interface Subscription {
  secrets: string[];
  /** Ends it. Does not throw. */
  end(): Promise<void>;
}

/** Receives deliveries until `count` is reached or Ctrl-C. @throws CommandError when the port cannot be used */
export async function receive({
  port,
  status,
  forward,
  count,
  json,
  subscribe,
  ...given
}: ReceiveOptions): Promise<void> {
  let { secrets } = given;
  const seenIds = new Set<string>();
  let received = 0;
  const handleRequest = async (request: http.IncomingMessage, response: http.ServerResponse): Promise<void> => {
    const body = await readBounded(request);
    const { method = "", url: path = "" } = request;
    if (body === undefined) {
      response.writeHead(413, { Connection: "close" }).end();
      return note(`Rejected ${printable(`${method} ${path}`)}: the body is larger than ${MAX_BODY_BYTES} bytes.`);
    }
    const receivedAt = new Date();
    const headers = textHeaders(request);
    const reply = forward ? await forwardRequest(forward, method, headers, body) : { status, text: "" };
    response.writeHead(reply.status).end(reply.text);
    const delivery = { headers: new Map(Object.entries(headers)), body };
    const options = { now: receivedAt, toleranceSeconds: TOLERANCE_SECONDS };
    const verdicts = secrets.length === 0 ? [] : await diagnose(delivery, secrets, options);
    const record: ReceivedDelivery = {
      received_at: receivedAt.toISOString(),
      method,
      path,
      headers,
      body: body.toString("utf8"),
      signatures: verdicts.map(toVerdictRecord),
      answered: reply.status,
    };
    print(json ? jsonText(record) : formatDelivery(record, verdicts, secrets.length, seenIds));
    received += 1;
    if (count === undefined) return;
    if (verdicts.some(({ isValid }) => !isValid)) process.exitCode = exitCodes.failed;
    if (received === count) server.emit("count-reached");
  };
  const server = http.createServer((request, response) => {
    handleRequest(request, response).catch(({ message }: Error) => note(`A request was not complete: ${message}.`));
  });
  await open(server, port);
  try {
    await runUntilInterrupted(async (signal) => {
      const countReached = once(server, "count-reached", { signal });
      // It is awaited later, and must not be unhandled until then.
      countReached.catch(() => {});
      const subscription = await subscribe?.(urlOf(server));
      try {
        secrets = subscription?.secrets ?? secrets;
        // Printed after the signal handlers are installed, because a reader of this line may send a signal at once.
        const reply = forward ? `forwards to ${forward.href}` : `responds with ${status}`;
        note(`Listening on ${urlOf(server)} (${reply}). Press Ctrl-C to stop.`);
        if (secrets.length === 0) note("No signing secret given: signatures are not checked.");
        await countReached;
      } finally {
        await subscription?.end();
      }
    });
  } finally {
    server.close().closeIdleConnections();
    // Incomplete requests must not keep the process alive.
    setTimeout(() => server.closeAllConnections(), CLOSE_TIMEOUT_MS).unref();
  }
}

const CLOSE_TIMEOUT_MS = 300;

/** A line of `--json`. */
interface ReceivedDelivery {
  received_at: string;
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
  /** Empty when no secret was given. */
  signatures: VerdictRecord[];
  /** The status code of the response. */
  answered: number;
}

async function open(server: http.Server, port: number): Promise<void> {
  try {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const reason = code === "EADDRINUSE" ? "it is already in use" : code;
    throw new CommandError(exitCodes.failed, `Could not listen on port ${port}: ${reason}.`, "Pass another --port.");
  }
}

const urlOf = (server: http.Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;

/** Four times the limit of a delivery's body. */
const MAX_BODY_BYTES = 1024 * 1024;

/** @returns undefined when the body is larger than MAX_BODY_BYTES */
async function readBounded(request: http.IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Keeps the request open on return, because a 413 response follows.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const textHeaders = ({ headers }: http.IncomingMessage): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));

/** The time that the service waits for a receiver. */
const FORWARD_TIMEOUT_MS = 15_000;
/** Headers of the connection (RFC 9110, section 7.6.1), and those that fetch sets itself. */
const NOT_FORWARDED = /^(connection|content-length|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade)$/;

/** @returns the response of the receiver, or a 502 when there is none */
async function forwardRequest(url: URL, method: string, headers: Record<string, string>, body: Buffer) {
  try {
    const response = await fetch(url, {
      method,
      headers: Object.entries(headers).filter(([name]) => !NOT_FORWARDED.test(name)),
      redirect: "manual",
      signal: AbortSignal.timeout(FORWARD_TIMEOUT_MS),
      ...(method !== "GET" && method !== "HEAD" && { body: new Uint8Array(body) }),
    });
    return { status: response.status, text: await response.text() };
  } catch (error) {
    const { cause, message } = error as Error;
    note(`Could not reach ${url.href} (${(cause as NodeJS.ErrnoException | undefined)?.code ?? message}).`);
    return { status: 502, text: "" };
  }
}

function formatDelivery(
  { received_at, method, path, headers, body, answered }: ReceivedDelivery,
  verdicts: Verdict[],
  secretCount: number,
  seenIds: Set<string>,
): string {
  const event = headers["x-service-event"];
  const id = headers["x-service-delivery"];
  const repeated = id !== undefined && seenIds.has(id) ? styled("yellow", "  (repeated delivery)") : "";
  if (id !== undefined) seenIds.add(id);
  const title = styled("bold", printable(event ?? `${method} ${path}`));
  return [
    `\n${styled("dim", received_at.slice(11, 19))}  ${title}${repeated}`,
    ...(id === undefined ? [] : [`delivery             ${printable(id)}`]),
    ...verdicts.map(formatVerdict(secretCount)),
    `response             ${answered}`,
    formatBody(body),
  ].join("\n");
}

/** Indents JSON. Returns any other text on one line, with control characters escaped. */
function formatBody(body: string): string {
  try {
    return jsonText(parseExactly(body), 2);
  } catch {
    return printable(body);
  }
}

import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { parseExactly } from "../exact-json.ts";
import { CommandError, exitCodes } from "../exit-codes.ts";
import { untilInterrupted } from "../interrupt.ts";
import { jsonText, note, paint, print, printable } from "../terminal.ts";
import { diagnose, TOLERANCE_SECONDS, type Verdict } from "../verify/diagnose.ts";
import { formatVerdict } from "../verify/verdict-view.ts";

/* A receiver on this machine that shows what a receiver gets. */

export interface ReceiveOptions {
  /** 0 is any free one. */
  port: number;
  /** What to answer, unless the answer is somebody else's. */
  status: number;
  forward: URL | undefined;
  /** After so many it ends, and its exit code tells whether all signatures held; undefined goes on until Ctrl-C. */
  count: number | undefined;
  secrets: string[];
  json: boolean;
}

/** Receives until Ctrl-C. @throws CommandError when the port cannot be used */
export async function receive({ port, status, forward, count, secrets, json }: ReceiveOptions): Promise<void> {
  const seen = new Set<string>();
  let received = 0;
  const take = async (request: http.IncomingMessage, response: http.ServerResponse): Promise<void> => {
    const body = await readBounded(request);
    const { method = "", url: path = "" } = request;
    if (body === undefined) {
      response.writeHead(413, { Connection: "close" }).end();
      return note(`Refused ${printable(`${method} ${path}`)}: more than ${MAX_BODY_BYTES} bytes.`);
    }
    const receivedAt = new Date();
    const headers = textHeaders(request);
    const answer = forward ? await passOn(forward, method, headers, body) : { status, text: "" };
    response.writeHead(answer.status).end(answer.text);
    const judgement = { now: receivedAt, toleranceSeconds: TOLERANCE_SECONDS };
    const delivery = { headers: new Map(Object.entries(headers)), body };
    const arrival: Arrival = {
      received_at: receivedAt.toISOString(),
      method,
      path,
      headers,
      body: body.toString("utf8"),
      signatures: secrets.length === 0 ? [] : diagnose(delivery, secrets, judgement),
      answered: answer.status,
    };
    print(json ? jsonText(arrival) : page(arrival, secrets.length, seen));
    received += 1;
    if (count === undefined) return;
    if (arrival.signatures.some(({ holds }) => !holds)) process.exitCode = exitCodes.failed;
    if (received === count) server.emit("enough");
  };
  const server = http.createServer((request, response) => {
    // A sender that hangs up halfway has sent nothing.
    take(request, response).catch(({ message }: Error) => note(`A request was not received: ${message}.`));
  });
  await open(server, port);
  await untilInterrupted((signal) => {
    const enough = once(server, "enough", { signal });
    // Only now: who reads this may end it at once.
    note(`Listening on ${urlOf(server)} (answers ${forward ? `as ${forward.href} does` : status}). Ctrl-C ends.`);
    if (secrets.length === 0) note("No secret was given: signatures are not checked.");
    return enough;
  });
  server.close().closeIdleConnections();
  // Whoever has sent half of a request is not waited for.
  setTimeout(() => server.closeAllConnections(), CLOSE_PATIENCE_MS).unref();
}

const CLOSE_PATIENCE_MS = 300;

/** What arrived, and what became of it: a line of `--json`. */
interface Arrival {
  received_at: string;
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
  /** Empty when no secret was given. */
  signatures: Verdict[];
  answered: number;
}

async function open(server: http.Server, port: number): Promise<void> {
  try {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const reason = code === "EADDRINUSE" ? "something else listens there" : code;
    throw new CommandError(exitCodes.failed, `Port ${port} cannot be used: ${reason}.`, "Say another: --port 4001");
  }
}

const urlOf = (server: http.Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;

/** Deliveries have 64 KB and a little. */
const MAX_BODY_BYTES = 1024 * 1024;

async function readBounded(request: http.IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Not destroyed on the way out: there is an answer to give.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const textHeaders = ({ headers }: http.IncomingMessage): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));

const FORWARD_MS = 15_000;
/** They belong to a connection, not to the message (RFC 9110, section 7.6.1); the length is that of the body anyway. */
const HOP_BY_HOP = /^(connection|content-length|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade)$/;

async function passOn(url: URL, method: string, headers: Record<string, string>, body: Buffer) {
  try {
    const response = await fetch(url, {
      method,
      headers: Object.entries(headers).filter(([name]) => !HOP_BY_HOP.test(name)),
      redirect: "manual",
      signal: AbortSignal.timeout(FORWARD_MS),
      ...(method !== "GET" && method !== "HEAD" && { body: new Uint8Array(body) }),
    });
    return { status: response.status, text: await response.text() };
  } catch (error) {
    const { cause, message } = error as Error;
    note(`${url.href} did not answer: ${(cause as NodeJS.ErrnoException | undefined)?.code ?? message}.`);
    return { status: 502, text: "" };
  }
}

function page(arrival: Arrival, secretCount: number, seen: Set<string>): string {
  const { received_at, method, path, headers, body, signatures, answered } = arrival;
  const event = headers["x-service-event"];
  const id = headers["x-service-delivery"];
  const again = id !== undefined && seen.has(id) ? paint("yellow", "  (it came before: the same delivery)") : "";
  if (id !== undefined) seen.add(id);
  const title = paint("bold", printable(event ?? `${method} ${path}`));
  return [
    `\n${paint("dim", received_at.slice(11, 19))}  ${title}${again}`,
    ...(id === undefined ? [] : [`delivery             ${printable(id)}`]),
    ...signatures.map(formatVerdict(secretCount)),
    `answered             ${answered}`,
    pretty(body),
  ].join("\n");
}

/** As JSON where it is some, and as it came elsewhere. */
function pretty(body: string): string {
  try {
    return jsonText(parseExactly(body), 2);
  } catch {
    return printable(body);
  }
}

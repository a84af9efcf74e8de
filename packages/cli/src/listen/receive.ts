import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { parseExactly } from "../../../client/src/exact-json.ts";
import { remember } from "../commands/recent-ids.ts";
import { CommandError, exitCodes } from "../terminal/exit-codes.ts";
import { runUntilInterrupted } from "../terminal/interrupt.ts";
import { jsonText, note, print, printable, styled } from "../terminal/terminal.ts";
import { diagnose, TOLERANCE_SECONDS, type Verdict } from "../verify/diagnose.ts";
import { formatVerdict, toVerdictRecord, type VerdictRecord } from "../verify/verdict-view.ts";

/* A webhook receiver on this machine that shows the deliveries it receives. */

export interface ReceiveOptions {
  /** 0 picks a free port. */
  port: number;
  /** The status code of responses. */
  status: number;
  /** Stops after this number of deliveries, with exit code 1 if a signature was invalid. Undefined: runs until Ctrl-C. */
  count: number | undefined;
  secrets: string[];
  json: boolean;
}

/** Receives deliveries until `count` is reached or Ctrl-C. @throws CommandError when the port cannot be used */
export async function receive({ port, status, count, secrets, json }: ReceiveOptions): Promise<void> {
  const seenIds = new Set<string>();
  let received = 0;
  const handleRequest = async (request: http.IncomingMessage, response: http.ServerResponse): Promise<void> => {
    const body = await readBounded(request);
    const { method = "", url: path = "" } = request;
    if (body === undefined) {
      response.writeHead(413).end();
      return note(`Rejected ${printable(`${method} ${path}`)}: the body is larger than ${MAX_BODY_BYTES} bytes.`);
    }
    const receivedAt = new Date();
    const headers = textHeaders(request);
    response.writeHead(status).end();
    const delivery = { headers: new Map(Object.entries(headers)), body };
    const options = { now: receivedAt, toleranceSeconds: TOLERANCE_SECONDS };
    const verdicts = secrets.length === 0 ? [] : diagnose(delivery, secrets, options);
    const record: ReceivedDelivery = {
      received_at: receivedAt.toISOString(),
      method,
      path,
      headers,
      body: body.toString("utf8"),
      signatures: verdicts.map(toVerdictRecord),
      answered: status,
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
      // Printed after the signal handlers are installed, because a reader of this line may send a signal at once.
      note(`Listening on ${urlOf(server)} (responds with ${status}). Press Ctrl-C to stop.`);
      if (secrets.length === 0) note("No signing secret given: signatures are not checked.");
      await countReached;
    });
  } finally {
    server.close();
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

/**
 * Reads a body to its end, so that the sender finishes and reads the response.
 * @returns undefined when the body is larger than MAX_BODY_BYTES
 */
async function readBounded(request: http.IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  return bytes > MAX_BODY_BYTES ? undefined : Buffer.concat(chunks);
}

const textHeaders = ({ headers }: http.IncomingMessage): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));

function formatDelivery(
  { received_at, method, path, headers, body, answered }: ReceivedDelivery,
  verdicts: Verdict[],
  secretCount: number,
  seenIds: Set<string>,
): string {
  const event = headers["x-service-event"];
  const id = headers["x-service-delivery"];
  const repeated = id !== undefined && seenIds.has(id) ? styled("yellow", "  (repeated delivery)") : "";
  if (id !== undefined) remember(seenIds, id);
  const title = styled("bold", printable(event ?? `${method} ${path}`));
  return [
    `\n${styled("dim", received_at)}  ${title}${repeated}`,
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

import http from "node:http";
import net from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { FauxqsServer } from "fauxqs";
import { FairLine } from "./fair-line.ts";

/**
 * Starts SQS: `fauxqs` in this thread, stored in SQLite. fauxqs listens on all interfaces whatever host it is given and
 * answers every web page, so its call to `listen` gets the loopback address and a guard while it starts.
 * @param port 0 = any free port
 * @param dataDir folder of the messages; undefined = in memory
 */
export async function startQueueEngine(port: number, dataDir: string | undefined): Promise<FauxqsServer> {
  const { startFauxqs } = await import("fauxqs");
  await acceptAllCharacters();
  await returnFairly();
  const { listen } = net.Server.prototype;
  const { exec } = DatabaseSync.prototype;
  net.Server.prototype.listen = function (this: net.Server, ...args: unknown[]) {
    const [options, ...rest] = args;
    const isOptions = typeof options === "object" && options !== null && "port" in options;
    if (this instanceof http.Server) refuseWebPages(this);
    return Reflect.apply(listen, this, isOptions ? [{ ...options, host: "127.0.0.1" }, ...rest] : args);
  };
  DatabaseSync.prototype.exec = function (sql) {
    Reflect.apply(exec, this, [sql]);
    if (/journal_mode/.test(sql)) Reflect.apply(exec, this, [WITHOUT_FLUSH]);
  };
  try {
    const data = dataDir === undefined ? {} : { dataDir: join(dataDir, "sqs") };
    return await startFauxqs({ port, logger: false, ...data });
  } finally {
    net.Server.prototype.listen = listen;
    DatabaseSync.prototype.exec = exec;
  }
}

/**
 * Leaves the flush of a write to the operating system. By itself, fauxqs (2.4.1) flushes six times per event in its own thread, and
 * handles no call meanwhile. What was written survives the end of the process, `kill -9` included. A power loss may lose the messages
 * of the last seconds. https://www.sqlite.org/pragma.html#pragma_synchronous
 */
const WITHOUT_FLUSH = "PRAGMA synchronous = NORMAL";

/** Makes a server answer 403 to requests that a web page causes, and pass on all others. */
function refuseWebPages(server: http.Server): void {
  const listeners = server.listeners("request");
  server.removeAllListeners("request");
  server.on("request", (request: http.IncomingMessage, response: http.ServerResponse) => {
    if (!isFromWebPage(request)) {
      for (const listener of listeners) Reflect.apply(listener, server, [request, response]);
      return;
    }
    const message =
      "This engine is for programs on this machine, not for web pages. Call it at 127.0.0.1 or localhost.";
    response.writeHead(403, { "Content-Type": "application/json" }).end(JSON.stringify({ message }));
  });
}

const LOOPBACK_HOST = /^(127\.\d+\.\d+\.\d+|\[::1\]|([\w-]+\.)*localhost)(:\d+)?$/i;

/**
 * A browser sends `Origin` with each request that a page of another site makes with a method other than GET and HEAD, and
 * `Sec-Fetch-Site` with all. A page can share an origin with this server only under a name of its own (DNS rebinding).
 */
export function isFromWebPage({ headers }: http.IncomingMessage): boolean {
  const { host = "", origin, "sec-fetch-site": site = "none" } = headers;
  return origin !== undefined || site !== "none" || !LOOPBACK_HOST.test(host);
}

/**
 * Makes fauxqs accept characters beyond U+FFFF, such as emoji, as SQS does: its pattern (2.4.1) lacks the Unicode flag.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
 */
async function acceptAllCharacters(): Promise<void> {
  const types: { INVALID_MESSAGE_BODY_CHAR: RegExp } = await import(
    new URL("sqs/sqsTypes.js", import.meta.resolve("fauxqs")).href
  );
  const allowed = "\\t\\n\\r\\u{20}-\\u{d7ff}\\u{e000}-\\u{fffd}\\u{10000}-\\u{10ffff}";
  types.INVALID_MESSAGE_BODY_CHAR.compile(`[^${allowed}]`, "u");
}

/** fauxqs's object for its queues. */
interface Store {
  createQueue(...args: unknown[]): { messages: { messageId: string; body: string }[] };
}

/** Makes fauxqs return messages as a fair queue does: by itself, it returns them in the order of their arrival. */
async function returnFairly(): Promise<void> {
  const { SqsStore }: { SqsStore: { prototype: Store } } = await import(
    new URL("sqs/sqsStore.js", import.meta.resolve("fauxqs")).href
  );
  const { createQueue } = SqsStore.prototype;
  SqsStore.prototype.createQueue = function (...args) {
    const queue = Reflect.apply(createQueue, this, args);
    queue.messages = new FairLine();
    return queue;
  };
}

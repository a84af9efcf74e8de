import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { closeAfterFile } from "./cleanup.ts";
import { MAX_QUIET_MS } from "./eventually.ts";

export interface Received {
  method: string;
  path: string;
  headers: http.IncomingHttpHeaders;
  body: string;
  at: number;
}

type Respond = (request: Received, response: http.ServerResponse) => void;

/** A webhook receiver on this machine that records all requests and responds as configured. */
export interface Receiver {
  url: string;
  received: Received[];
  /** Sets the response from now on: a status code or a function. The default is 200. */
  respondWith(answer: number | Respond): void;
  /**
   * Waits until at least `count` requests have arrived, as long as requests keep arriving.
   * @throws Error when no request arrived for `MAX_QUIET_MS`
   */
  waitFor(count: number): Promise<Received[]>;
  close(): Promise<void>;
}

export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  let respond: Respond = (_, response) => response.writeHead(200).end("ok");
  const server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const { method = "", url = "", headers } = request;
    const arrived = { method, path: url, headers, body: Buffer.concat(chunks).toString("utf8"), at: Date.now() };
    received.push(arrived);
    server.emit("received");
    respond(arrived, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    respondWith(next) {
      respond = typeof next === "number" ? (_, response) => response.writeHead(next).end() : next;
    },
    async waitFor(count) {
      while (received.length < count) {
        const signal = AbortSignal.timeout(MAX_QUIET_MS);
        await once(server, "received", { signal }).catch(() => {
          const quiet = `no request for ${MAX_QUIET_MS / 1_000} s`;
          throw new Error(`The receiver has ${received.length} of ${count} expected requests, and ${quiet}.`);
        });
      }
      return received;
    },
    close: closeAfterFile(async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }),
  };
}

/** Starts a receiver before the tests of the file, or a new one before each test. It stops after them. */
export function useReceiver(per: "file" | "test" = "file"): Receiver {
  const receiver = {} as Receiver;
  const start = async () => void Object.assign(receiver, await startReceiver());
  if (per === "file") beforeAll(start);
  else {
    beforeEach(start);
    afterEach(() => receiver.close());
  }
  return receiver;
}

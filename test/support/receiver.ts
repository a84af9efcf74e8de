import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";

export interface Received {
  method: string;
  path: string;
  headers: http.IncomingHttpHeaders;
  body: string;
  at: number;
}

type Answer = (request: Received, response: http.ServerResponse) => void;

/** A webhook receiver on this machine: keeps what arrives and answers as it is told. */
export interface Receiver {
  url: string;
  received: Received[];
  /** How to answer from now on; 200 at first. */
  answerWith(answer: number | Answer): void;
  /** Waits until at least so many requests have arrived, up to 20 s. */
  waitFor(count: number): Promise<Received[]>;
  close(): Promise<void>;
}

export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  let answer: Answer = (_, response) => response.writeHead(200).end("ok");
  const server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const { method = "", url = "", headers } = request;
    const arrived = { method, path: url, headers, body: Buffer.concat(chunks).toString("utf8"), at: Date.now() };
    received.push(arrived);
    server.emit("received");
    answer(arrived, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    answerWith(next) {
      answer = typeof next === "number" ? (_, response) => response.writeHead(next).end() : next;
    },
    async waitFor(count) {
      const signal = AbortSignal.timeout(20_000);
      while (received.length < count) await once(server, "received", { signal });
      return received;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

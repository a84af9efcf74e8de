import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import { gzipSync } from "node:zlib";
import { closeAfterFile } from "./cleanup.ts";

/* Receivers that break HTTP or overload their client, over raw sockets. */

/** What a receiver does with a connection when a request arrives. */
export type Misbehavior = (socket: net.Socket, url: string) => void;

const ok = "HTTP/1.1 200 OK\r\n";
export const chunkOf = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

const responds =
  (response: string | Buffer): Misbehavior =>
  (socket) =>
    socket.end(response);

/** Writes as fast as the client reads, until the connection ends. */
export const floods =
  (head: string, chunk: string | Buffer): Misbehavior =>
  (socket) => {
    const write = () => {
      while (!socket.destroyed && socket.write(chunk)) {}
    };
    socket.write(head);
    socket.on("drain", write);
    write();
  };

/** Writes the chunk ten times a second, until the connection ends. */
export const drips =
  (head: string, chunk: string): Misbehavior =>
  (socket) => {
    socket.write(head);
    const timer = setInterval(() => socket.write(chunk), 100);
    socket.once("close", () => clearInterval(timer));
  };

const withBody = (head: string, body: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${head}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n`), body]);

const unavailable = (retryAfter: string) =>
  `HTTP/1.1 503 No\r\nRetry-After: ${retryAfter}\r\nContent-Length: 0\r\n\r\n`;

/** The behavior of each receiver when a request arrives, by its name. */
export const misbehaviors = {
  "an endless body": floods(`${ok}Transfer-Encoding: chunked\r\n\r\n`, chunkOf("x".repeat(16_384))),
  "a dripping body": drips(`${ok}Transfer-Encoding: chunked\r\n\r\n`, chunkOf("drip ")),
  "dripping headers": drips(ok, "x: y\r\n"),
  "no response": () => {},
  "a huge body": floods(`HTTP/1.1 500 No\r\nContent-Length: 10000000000\r\n\r\n`, "e".repeat(65_536)),
  "a gzip bomb": responds(withBody(`${ok}Content-Encoding: gzip\r\n`, gzipSync(Buffer.alloc(50_000_000)))),
  "invalid UTF-8": responds(
    withBody("HTTP/1.1 400 No\r\n", Buffer.from([0xff, 0xfe, 0x00, 0x41, 0xc3, 0x28, 0xf0, 0x9f])),
  ),
  "a flood of headers": floods(ok, `x: ${"y".repeat(1_000)}\r\n`),
  "a redirect to itself": (socket, url) =>
    socket.end(`HTTP/1.1 302 Found\r\nLocation: ${url}\r\nContent-Length: 0\r\n\r\n`),
  "malformed Retry-After": responds(unavailable("soon; or never, 99")),
  "negative Retry-After": responds(unavailable("-100000")),
  "Retry-After with 400 digits": responds(unavailable("9".repeat(400))),
  "Retry-After in the year 9999": responds(unavailable("Fri, 31 Dec 9999 23:59:59 GMT")),
} satisfies Record<string, Misbehavior>;

export type Misbehaving = keyof typeof misbehaviors;

export interface HostileReceiver {
  url: string;
  requests: number;
  close(): void;
}

/** Starts a receiver that misbehaves. @param host a loopback address of this machine */
export async function startHostileReceiver(kind: Misbehaving, host: string): Promise<HostileReceiver> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
    socket.once("data", () => {
      receiver.requests += 1;
      misbehaviors[kind](socket, receiver.url);
    });
  });
  server.listen(0, host);
  await once(server, "listening");
  const receiver: HostileReceiver = {
    url: `http://${host}:${(server.address() as net.AddressInfo).port}/`,
    requests: 0,
    close: closeAfterFile(() => {
      server.close();
      for (const socket of sockets) socket.destroy();
    }),
  };
  return receiver;
}

export interface SteadyReceiver {
  url: string;
  /** The number of requests per delivery id. */
  arrivals: Map<string, number>;
  close(): void;
}

/**
 * Starts a well-behaved receiver on the address of the hostile ones. It always sends the same response and keeps no
 * bodies.
 */
export async function startSteadyReceiver(host: string, status: number, body: string): Promise<SteadyReceiver> {
  const arrivals = new Map<string, number>();
  const server = http.createServer((request, response) => {
    const id = String(request.headers["webhook-id"]);
    arrivals.set(id, (arrivals.get(id) ?? 0) + 1);
    request.resume().once("end", () => response.writeHead(status).end(body));
  });
  server.listen(0, host);
  await once(server, "listening");
  return {
    url: `http://${host}:${(server.address() as net.AddressInfo).port}/`,
    arrivals,
    close: closeAfterFile(() => server.close().closeAllConnections()),
  };
}

import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import { gzipSync } from "node:zlib";

/* Receivers that answer as no honest server would, over raw connections. */

type Misbehaviour = (socket: net.Socket, url: string) => void;

const ok = "HTTP/1.1 200 OK\r\n";
const chunkOf = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

const says =
  (answer: string | Buffer): Misbehaviour =>
  (socket) =>
    socket.end(answer);

/** Writes as fast as the other side reads, until the connection ends. */
const floods =
  (head: string, chunk: string | Buffer): Misbehaviour =>
  (socket) => {
    const write = () => {
      while (!socket.destroyed && socket.write(chunk)) {}
    };
    socket.write(head);
    socket.on("drain", write);
    write();
  };

const drips =
  (head: string, chunk: string): Misbehaviour =>
  (socket) => {
    socket.write(head);
    const timer = setInterval(() => socket.write(chunk), 100);
    socket.once("close", () => clearInterval(timer));
  };

const withBody = (head: string, body: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${head}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n`), body]);

const unavailable = (retryAfter: string) =>
  `HTTP/1.1 503 No\r\nRetry-After: ${retryAfter}\r\nContent-Length: 0\r\n\r\n`;

/** By name: what each does once a request has arrived. */
export const misbehaviours = {
  "an endless body": floods(`${ok}Transfer-Encoding: chunked\r\n\r\n`, chunkOf("x".repeat(16_384))),
  "a dripping body": drips(`${ok}Transfer-Encoding: chunked\r\n\r\n`, chunkOf("drip ")),
  "dripping headers": drips(ok, "x: y\r\n"),
  "no answer": () => {},
  "a huge body": floods(`HTTP/1.1 500 No\r\nContent-Length: 10000000000\r\n\r\n`, "e".repeat(65_536)),
  "a gzip bomb": says(withBody(`${ok}Content-Encoding: gzip\r\n`, gzipSync(Buffer.alloc(50_000_000)))),
  "invalid UTF-8": says(withBody("HTTP/1.1 400 No\r\n", Buffer.from([0xff, 0xfe, 0x00, 0x41, 0xc3, 0x28, 0xf0, 0x9f]))),
  "a flood of headers": floods(ok, `x: ${"y".repeat(1_000)}\r\n`),
  "a redirect to itself": (socket, url) =>
    socket.end(`HTTP/1.1 302 Found\r\nLocation: ${url}\r\nContent-Length: 0\r\n\r\n`),
  "Retry-After with junk": says(unavailable("soon; or never, 99")),
  "Retry-After below zero": says(unavailable("-100000")),
  "Retry-After beyond all numbers": says(unavailable("9".repeat(400))),
  "Retry-After in another era": says(unavailable("Fri, 31 Dec 9999 23:59:59 GMT")),
} satisfies Record<string, Misbehaviour>;

export type Misbehaving = keyof typeof misbehaviours;

export interface HostileReceiver {
  url: string;
  requests: number;
  close(): void;
}

/** @param host an address of this machine's loopback */
export async function startHostileReceiver(kind: Misbehaving, host: string): Promise<HostileReceiver> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
    socket.once("data", () => {
      receiver.requests += 1;
      misbehaviours[kind](socket, receiver.url);
    });
  });
  server.listen(0, host);
  await once(server, "listening");
  const receiver: HostileReceiver = {
    url: `http://${host}:${(server.address() as net.AddressInfo).port}/`,
    requests: 0,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
  return receiver;
}

export interface FlatReceiver {
  url: string;
  /** How often each delivery arrived, by its id. */
  arrivals: Map<string, number>;
  close(): void;
}

/** An honest receiver that always answers the same and keeps no bodies, on the address of the hostile ones. */
export async function startFlatReceiver(host: string, status: number, body: string): Promise<FlatReceiver> {
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
    close: () => server.close().closeAllConnections(),
  };
}

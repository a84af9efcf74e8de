import { once } from "node:events";
import type http from "node:http";
import net from "node:net";
import { jest } from "@jest/globals";
import { post } from "../../../../functions/webhooks/receiver/receiver-client-pool.ts";
import { useReceiver } from "../../../support/receiver.ts";

/* The client of a process that Lambda freezes between invocations. */

const receiver = useReceiver("test");
/** The client's port of each request: requests over one connection have the same. */
let ports: (number | undefined)[];
/** By how much the clock of the process is ahead. Grows from test to test, so that each starts with a long pause. */
let lateMs = 0;
beforeEach(async () => {
  process.env.WEBHOOK_ALLOW_CIDRS = "127.0.0.0/8";
  ports = [];
  lateMs += 3_600_000;
  const now = Date.now.bind(Date);
  jest.spyOn(Date, "now").mockImplementation(() => now() + lateMs);
  receiver.respondWith((_, response) => {
    ports.push(response.req.socket.remotePort);
    response.end("ok");
  });
});
afterEach(() => {
  jest.restoreAllMocks();
});

const send = () => post(receiver.url, {}, "{}");
const success = { durationMs: expect.any(Number), statusCode: 200, excerpt: "ok" };

test("the client pool reuses the connection after a pause of less than 3 s", async () => {
  await send();
  lateMs += 2_500;
  expect(await send()).toEqual(success);
  expect(new Set(ports).size).toBe(1);
});

test("the client pool opens a new connection and closes the old one after a pause of more than 3 s", async () => {
  let closed: Promise<unknown> | undefined;
  receiver.respondWith((_, response) => {
    ports.push(response.req.socket.remotePort);
    closed ??= once(response.req.socket, "close");
    response.end("ok");
  });
  // Without timeouts of idle connections, only the pool closes the connection.
  jest.spyOn(net.Socket.prototype, "setTimeout").mockReturnThis();
  await send();
  lateMs += 3_001;
  expect(await send()).toEqual(success);
  expect(new Set(ports).size).toBe(2);
  await closed;
});

test("the client pool measures the pause from the end of the last request", async () => {
  receiver.respondWith((_, response) => {
    ports.push(response.req.socket.remotePort);
    lateMs += 60_000;
    response.end("ok");
  });
  await send();
  expect(await send()).toEqual(success);
  expect(new Set(ports).size).toBe(1);
});

test("the client pool does not close connections while a request is in flight", async () => {
  const waiting: http.ServerResponse[] = [];
  receiver.respondWith((_, response) => void waiting.push(response));
  const first = send();
  await receiver.waitFor(1);
  lateMs += 60_000;
  const second = send();
  await receiver.waitFor(2);
  for (const response of waiting) response.end("ok");
  expect(await Promise.all([first, second])).toEqual([success, success]);
});

test("the client pool reads at most 64 KB of a response", async () => {
  const server = net.createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n${"x".repeat(65_536)}`));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const outcome = await post(`http://127.0.0.1:${(server.address() as net.AddressInfo).port}/`, {}, "{}");
  server.close();
  expect(outcome).toEqual({ durationMs: expect.any(Number), statusCode: 200, excerpt: "x".repeat(1_024) });
});

test.each(["", "10.0.0.0/8"])(
  "reaches only the ranges of WEBHOOK_ALLOW_CIDRS: not loopback with %p",
  async (ranges) => {
    process.env.WEBHOOK_ALLOW_CIDRS = ranges;
    expect(await send()).toEqual({ durationMs: expect.any(Number), errorCode: "address_blocked" });
    expect(receiver.received).toEqual([]);
  },
);

import { once } from "node:events";
import { readFileSync } from "node:fs";
import https from "node:https";
import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import tls from "node:tls";
import { jest } from "@jest/globals";
import { parseCidrs } from "../../../../functions/webhooks/receiver/receiver-address.ts";
import {
  createReceiverClient,
  DEFAULT_LIMITS,
  type Limits,
} from "../../../../functions/webhooks/receiver/receiver-client.ts";

/* Requests over a connection that is reused from an earlier request. */

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

interface Arrival {
  socket: net.Socket;
  /** From 1. */
  connection: number;
  /** From 1, on this connection. */
  requestOfConnection: number;
}

const open: { close(): void }[] = [];
afterEach(() => {
  for (const each of open.splice(0)) each.close();
});

/**
 * Starts a receiver on raw connections.
 * @param handle returns true when it has handled the request; otherwise the receiver responds `ok`
 */
async function receiverThat(handle: (arrival: Arrival) => boolean, limits: Partial<Limits> = {}) {
  const seen = { connections: 0, requests: 0 };
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    seen.connections += 1;
    const connection = seen.connections;
    let requestOfConnection = 0;
    socket.on("error", () => {});
    socket.on("data", () => {
      if (!socket.writable) return;
      seen.requests += 1;
      requestOfConnection += 1;
      if (!handle({ socket, connection, requestOfConnection })) socket.write(ok);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = createReceiverClient(parseCidrs(["127.0.0.0/8"]), { ...DEFAULT_LIMITS, ...limits });
  open.push(server, { close: () => void client.close() });
  const url = `http://127.0.0.1:${(server.address() as net.AddressInfo).port}/`;
  const stopListening = () => void server.close();
  return { seen, sockets, stopListening, post: (body = "{}") => client.post(url, {}, body) };
}

const success = { durationMs: expect.any(Number), statusCode: 200, excerpt: "ok" };
/** The request was sent again over a new connection. */
const twice = { requestCount: 2 };
const reset = { durationMs: expect.any(Number), errorCode: "connection_reset" };

const resetConnection = (socket: net.Socket) => socket.resetAndDestroy().destroyed;

describe("a receiver that closes a connection at the moment it is reused", () => {
  test.each<[string, (socket: net.Socket) => boolean]>([
    ["with a reset", resetConnection],
    ["with a regular close", (socket) => socket.end().writableEnded],
  ])("%s receives the request over a new connection", async (_, close) => {
    const { post, seen } = await receiverThat(
      ({ socket, requestOfConnection }) => requestOfConnection === 2 && close(socket),
    );
    expect([await post(), await post(), await post()]).toEqual([success, { ...success, ...twice }, success]);
    // The new connection is for that request only; the next request opens another.
    expect(seen).toEqual({ connections: 3, requests: 4 });
  });

  test("receives the request again at most once", async () => {
    const isFirst = ({ connection, requestOfConnection }: Arrival) => connection === 1 && requestOfConnection === 1;
    const { post, seen } = await receiverThat((arrival) => !isFirst(arrival) && resetConnection(arrival.socket));
    expect([await post(), await post()]).toEqual([success, { ...reset, ...twice }]);
    expect(seen).toEqual({ connections: 2, requests: 3 });
  });

  test("over TLS receives the request again, which counts twice", async () => {
    const [cert = "", key = ""] = ["tls-cert.pem", "tls-key.pem"].map((name) =>
      readFileSync(new URL(`../../../fixtures/${name}`, import.meta.url), "utf8"),
    );
    const trusted = tls.getCACertificates();
    tls.setDefaultCACertificates([...trusted, cert]);
    let requests = 0;
    const server = https.createServer({ cert, key }, ({ socket }, response) => {
      requests += 1;
      if (requests === 2) socket.destroy();
      else response.end("ok");
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const client = createReceiverClient(parseCidrs(["127.0.0.0/8"]));
    open.push(server, { close: () => void client.close() }, { close: () => tls.setDefaultCACertificates(trusted) });
    const post = () => client.post(`https://127.0.0.1:${(server.address() as net.AddressInfo).port}/`, {}, "{}");
    expect([await post(), await post()]).toEqual([success, { ...success, ...twice }]);
    expect(requests).toBe(3);
  });

  test("and accepts no new one is sent one request", async () => {
    const { post, seen, stopListening } = await receiverThat(({ socket, requestOfConnection }) => {
      if (requestOfConnection === 1) return false;
      stopListening();
      return resetConnection(socket);
    });
    expect([await post(), await post()]).toEqual([success, { ...reset, errorCode: "connection_refused" }]);
    expect(seen).toEqual({ connections: 1, requests: 2 });
  });

  test.each<[string, (socket: net.Socket) => boolean, number]>([
    ["after more than a second", () => true, 1_200],
    ["after a 1xx response", (socket) => socket.write("HTTP/1.1 102 Processing\r\n\r\n"), 100],
  ])("%s does not receive the request again, because it may have processed it", async (_, begin, afterMs) => {
    const { post, seen } = await receiverThat(({ socket, requestOfConnection }) => {
      if (requestOfConnection === 2) setTimeout(() => resetConnection(socket), afterMs);
      return requestOfConnection === 2 && (begin(socket) || true);
    });
    expect([await post(), await post()]).toEqual([success, reset]);
    expect(seen).toEqual({ connections: 1, requests: 2 });
  });

  test("has one deadline for both requests", async () => {
    const { post, seen } = await receiverThat(
      ({ socket, connection, requestOfConnection }) => {
        if (requestOfConnection === 2) void sleep(300).then(() => resetConnection(socket));
        return connection === 2 || requestOfConnection === 2;
      },
      { deadlineMs: 1_200 },
    );
    await post();
    const timers = jest.spyOn(globalThis, "setTimeout");
    const outcome = await post();
    const [firstMs, secondMs] = timers.mock.calls.map(([, delayMs]) => delayMs);
    timers.mockRestore();
    expect(outcome).toEqual({ durationMs: expect.any(Number), errorCode: "timeout", ...twice });
    expect(outcome.durationMs).toBeGreaterThanOrEqual(1_195);
    // The second request has the rest of the time. Timers may fire a millisecond early.
    expect(firstMs).toBeGreaterThan(1_200 - 300);
    expect(secondMs).toBeLessThanOrEqual(1_200 - 299);
    expect(seen).toEqual({ connections: 2, requests: 3 });
  });

  test("in the middle of the response does not receive the request again", async () => {
    const { post, seen } = await receiverThat(({ socket, requestOfConnection }) => {
      if (requestOfConnection === 1) return false;
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", () =>
        setTimeout(() => resetConnection(socket), 20),
      );
      return true;
    });
    await post();
    expect(await post()).toEqual({ ...reset, statusCode: 200 });
    expect(seen).toEqual({ connections: 1, requests: 2 });
  });
});

test("a reset of a new connection is a failure of the receiver and is not retried", async () => {
  const { post, seen } = await receiverThat(({ socket }) => resetConnection(socket));
  expect(await post()).toEqual(reset);
  expect(seen).toEqual({ connections: 1, requests: 1 });
});

test("a receiver that closes idle connections receives every request once and no request fails", async () => {
  const { post, seen } = await receiverThat(({ socket }) => {
    setTimeout(() => socket.end(), 3);
    return false;
  });
  for (let sent = 0; sent < 150; sent++) {
    // The receiver does not read a request on a connection that it has closed, so a repeat is the only one it receives.
    const { requestCount, ...outcome } = await post();
    expect(outcome).toEqual(success);
    await sleep(2 + (sent % 4) / 2);
  }
  expect(seen.requests).toBe(150);
  expect(seen.connections).toBeGreaterThan(1);
});

test("an idle connection is closed after 4 s, before most receivers close it", async () => {
  const { post, sockets } = await receiverThat(() => false);
  await post();
  const idleSince = performance.now();
  const [socket] = sockets as Set<net.Socket>;
  await new Promise((resolve) => socket?.once("close", resolve));
  expect(performance.now() - idleSince).toBeGreaterThan(3_800);
});

test.each<[string, number]>([
  ["a success", 200],
  ["a failure", 413],
])("%s that arrives before the request is read closes the connection without sending the rest", async (_, status) => {
  const size = 32 * 1024 * 1024;
  const { post, sockets } = await receiverThat(({ socket, requestOfConnection }) => {
    if (requestOfConnection > 1) return true;
    socket.pause();
    socket.write(`HTTP/1.1 ${status} Early\r\nContent-Length: 2\r\n\r\nok`);
    return true;
  });
  expect(await post("x".repeat(size))).toMatchObject({ statusCode: status, excerpt: "ok" });
  const [socket] = sockets as Set<net.Socket>;
  const closed = new Promise((resolve) => socket?.once("close", resolve));
  socket?.resume();
  await closed;
  // The kernel buffers a part of the rest. If all of it arrived, the client did not stop sending.
  expect(socket?.bytesRead).toBeLessThan(size);
});

test("data after a response is not used as the response to the next request", async () => {
  const poison = "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n";
  const { post } = await receiverThat(({ socket, connection }) => connection === 1 && socket.write(ok + poison));
  expect([await post(), await post()]).toEqual([success, success]);
});

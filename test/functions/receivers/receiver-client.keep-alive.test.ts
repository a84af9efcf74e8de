import { once } from "node:events";
import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { parseCidrs } from "../../../functions/receivers/receiver-address.ts";
import { createReceiverClient, DEFAULT_LIMITS, type Limits } from "../../../functions/receivers/receiver-client.ts";

/* What happens to a request whose connection was kept from an earlier one. */

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

interface Arrival {
  socket: net.Socket;
  /** Counted from 1. */
  connection: number;
  requestOfConnection: number;
}

const open: { close(): void }[] = [];
afterEach(() => {
  for (const each of open.splice(0)) each.close();
});

/** A receiver on raw connections. It answers `ok`, unless it was told something else to do, which it says by returning true. */
async function receiverThat(answer: (arrival: Arrival) => boolean, limits: Partial<Limits> = {}) {
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
      if (!answer({ socket, connection, requestOfConnection })) socket.write(ok);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = createReceiverClient(parseCidrs(["127.0.0.0/8"]), { ...DEFAULT_LIMITS, ...limits });
  open.push(server, { close: () => void client.close() });
  const url = `http://127.0.0.1:${(server.address() as net.AddressInfo).port}/`;
  return { seen, sockets, post: (body = "{}") => client.post(url, {}, body) };
}

const success = { durationMs: expect.any(Number), statusCode: 200, excerpt: "ok" };
const reset = { durationMs: expect.any(Number), errorCode: "connection_reset" };

const hangsUp = (socket: net.Socket) => socket.resetAndDestroy().destroyed;

describe("a receiver that hangs up on a connection in the moment in which it is used again", () => {
  test.each<[string, (socket: net.Socket) => boolean]>([
    ["with a reset", hangsUp],
    ["in good order", (socket) => socket.end().writableEnded],
  ])("%s gets the request over a new one", async (_, hangUp) => {
    const { post, seen } = await receiverThat(
      ({ socket, requestOfConnection }) => requestOfConnection === 2 && hangUp(socket),
    );
    expect([await post(), await post(), await post()]).toEqual([success, success, success]);
    // The new one was for that request alone; the one after it dials anew.
    expect(seen).toEqual({ connections: 3, requests: 4 });
  });

  test("gets it once more, not again and again", async () => {
    const isFirst = ({ connection, requestOfConnection }: Arrival) => connection === 1 && requestOfConnection === 1;
    const { post, seen } = await receiverThat((arrival) => !isFirst(arrival) && hangsUp(arrival.socket));
    expect([await post(), await post()]).toEqual([success, reset]);
    expect(seen).toEqual({ connections: 2, requests: 3 });
  });

  test.each<[string, (socket: net.Socket) => boolean]>([
    ["after it has worked on it for a while", () => true],
    ["after it has said that it works on it", (socket) => socket.write("HTTP/1.1 102 Processing\r\n\r\n")],
  ])("%s does not get it again: it had it, and failed", async (_, begin) => {
    const { post, seen } = await receiverThat(({ socket, requestOfConnection }) => {
      if (requestOfConnection === 2) setTimeout(() => hangsUp(socket), 1_200);
      return requestOfConnection === 2 && (begin(socket) || true);
    });
    expect([await post(), await post()]).toEqual([success, reset]);
    expect(seen).toEqual({ connections: 1, requests: 2 });
  });

  test("has no more time than for one request", async () => {
    const { post, seen } = await receiverThat(
      ({ socket, connection, requestOfConnection }) => {
        if (requestOfConnection === 2) setTimeout(() => hangsUp(socket), 300);
        return connection === 2 || requestOfConnection === 2;
      },
      { deadlineMs: 600 },
    );
    await post();
    const outcome = await post();
    expect(outcome).toEqual({ durationMs: expect.any(Number), errorCode: "timeout" });
    expect(outcome.durationMs).toBeGreaterThanOrEqual(595);
    expect(outcome.durationMs).toBeLessThan(850);
    expect(seen).toEqual({ connections: 2, requests: 3 });
  });

  test("but has begun to answer does not get it again: the answer is broken", async () => {
    const { post, seen } = await receiverThat(({ socket, requestOfConnection }) => {
      if (requestOfConnection === 1) return false;
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", () => setTimeout(() => hangsUp(socket), 20));
      return true;
    });
    await post();
    expect(await post()).toEqual({ ...reset, statusCode: 200 });
    expect(seen).toEqual({ connections: 1, requests: 2 });
  });
});

test("a reset of a new connection is the receiver's failure, and not tried again", async () => {
  const { post, seen } = await receiverThat(({ socket }) => hangsUp(socket));
  expect(await post()).toEqual(reset);
  expect(seen).toEqual({ connections: 1, requests: 1 });
});

test("a receiver that closes connections when they are idle loses nothing and fails nothing", async () => {
  const { post, seen } = await receiverThat(({ socket }) => {
    setTimeout(() => socket.end(), 3);
    return false;
  });
  for (let sent = 0; sent < 150; sent++) {
    expect(await post()).toEqual(success);
    await sleep(2 + (sent % 4) / 2);
  }
  expect(seen.requests).toBe(150);
  expect(seen.connections).toBeGreaterThan(1);
});

test("an answer that came before the request was taken ends the connection", async () => {
  const { post, sockets } = await receiverThat(({ socket }) => {
    socket.pause();
    return false;
  });
  expect(await post("x".repeat(32 * 1024 * 1024))).toEqual(success);
  const [socket] = sockets as Set<net.Socket>;
  socket?.resume();
  await new Promise((resolve) => socket?.once("close", resolve));
});

test("what a receiver says after its answer is not taken for the next one", async () => {
  const poison = "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n";
  const { post } = await receiverThat(({ socket, connection }) => connection === 1 && socket.write(ok + poison));
  expect([await post(), await post()]).toEqual([success, success]);
});

import { once } from "node:events";
import net from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { parseCidrs } from "../../../../functions/webhooks/receiver/receiver-address.ts";
import {
  createReceiverClient,
  type Limits,
  type Outcome,
} from "../../../../functions/webhooks/receiver/receiver-client.ts";
import { eventually } from "../../../support/eventually.ts";
import { chunkOf, drips, floods, type Misbehavior } from "../../../support/hostile-receivers.ts";

/** Short enough for a test, long enough for a busy machine. */
const limits: Limits = { deadlineMs: 400, maxResponseBytes: 64 * 1024, maxExcerptBytes: 1024 };
const anyDuration = { durationMs: expect.any(Number) };

/**
 * Posts to a server that runs `misbehave` on the raw connection when the request arrives. Waits until the connection is
 * closed.
 */
async function postTo(misbehave: Misbehavior, within = limits): Promise<{ outcome: Outcome; bytesSent: number }> {
  const server = net.createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => misbehave(socket, ""));
  });
  server.listen(0, "127.0.0.1");
  const connected = new Promise<net.Socket>((resolve) => server.once("connection", resolve));
  await once(server, "listening");
  const client = createReceiverClient(parseCidrs(["127.0.0.0/8"]), within);
  const { port } = server.address() as net.AddressInfo;
  const outcome = await client.post(`http://127.0.0.1:${port}/`, {}, "{}");
  const socket = await connected;
  // The client stays open until here: the request itself must close its connection.
  if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
  server.close();
  await client.close();
  return { outcome, bytesSent: socket.bytesWritten };
}

const respondsAndCloses =
  (text: string): Misbehavior =>
  (socket) =>
    socket.end(text);

/** Writes a text, then keeps the connection open without writing more. */
const stopsAfter =
  (text: string): Misbehavior =>
  (socket) =>
    socket.write(text);

const resetsAfter =
  (text: string): Misbehavior =>
  (socket) => {
    socket.write(text, () => setTimeout(() => socket.resetAndDestroy(), 20));
  };

const status = "HTTP/1.1 200 OK\r\n";
const chunked = `${status}Transfer-Encoding: chunked\r\n\r\n`;
const shortBody = `${status}Content-Length: 10\r\n\r\nabc`;

describe("the request ends at the deadline", () => {
  test.each<[string, Misbehavior, Partial<Outcome>]>([
    ["never responds", stopsAfter(""), { errorCode: "timeout" }],
    ["drips its headers", drips(status, "x: y\r\n"), { errorCode: "timeout" }],
    ["sends 1xx responses without end", drips("", "HTTP/1.1 103 Early Hints\r\n\r\n"), { errorCode: "timeout" }],
    ["drips its body", drips(chunked, chunkOf("x")), { statusCode: 200, errorCode: "timeout" }],
    ["sends less than its Content-Length", stopsAfter(shortBody), { statusCode: 200, errorCode: "timeout" }],
    [
      "sends Retry-After and then hangs",
      stopsAfter("HTTP/1.1 503 Busy\r\nRetry-After: 120\r\nContent-Length: 10\r\n\r\nabc"),
      {
        statusCode: 503,
        retryAfter: "120",
        errorCode: "timeout",
        headers: { "content-length": "10", "retry-after": "120" },
      },
    ],
    [
      "sends the headers of a 410 and then hangs",
      stopsAfter("HTTP/1.1 410 Gone\r\nContent-Length: 10\r\n\r\n"),
      { statusCode: 410, errorCode: "timeout", headers: { "content-length": "10" } },
    ],
  ])("when the receiver %s", async (_, misbehave, expected) => {
    const { outcome } = await postTo(misbehave);
    expect(outcome).toEqual({ ...anyDuration, ...expected });
    expect(outcome.durationMs).toBeGreaterThanOrEqual(limits.deadlineMs - 5);
    expect(outcome.durationMs).toBeLessThan(limits.deadlineMs + 10_000);
  });
});

// Longer than the timeout of a test, so that the deadline cannot end the request.
const noDeadline = { ...limits, deadlineMs: 60_000 };

describe("an endless body", () => {
  test("of a success is cut at the limit and is still a success", async () => {
    const { outcome, bytesSent } = await postTo(floods(chunked, chunkOf("x".repeat(4_096))), noDeadline);
    expect(outcome).toEqual({ ...anyDuration, statusCode: 200, excerpt: "x".repeat(1_024) });
    // 64 KB, plus the buffers of the operating system.
    expect(bytesSent).toBeLessThan(20 * 1024 * 1024);
  });

  test.each<[number, Partial<Outcome>]>([
    [65_536, { statusCode: 200, excerpt: "x".repeat(1_024) }],
    [65_535, { statusCode: 200, errorCode: "timeout" }],
  ])("that stops after %i bytes has the outcome expected for a limit of 65,536 bytes", async (bytes, expected) => {
    const head = `${status}Content-Length: 1000000\r\n\r\n`;
    const { outcome } = await postTo(stopsAfter(head + "x".repeat(bytes)));
    expect(outcome).toEqual({ ...anyDuration, ...expected });
  });

  test("of a failure keeps the status", async () => {
    const head = "HTTP/1.1 500 Oops\r\nConnection: close\r\n\r\n";
    const { outcome } = await postTo(floods(head, "e".repeat(4_096)), noDeadline);
    expect(outcome).toMatchObject({ statusCode: 500, errorCode: "http_status", excerpt: "e".repeat(1_024) });
  });

  test("leaves nothing in memory but its excerpt", async () => {
    setFlagsFromString("--expose-gc");
    const collectGarbage: () => void = runInNewContext("gc");
    const bufferBytes = () => {
      collectGarbage();
      return process.memoryUsage().arrayBuffers;
    };
    const body = `${status}Content-Length: 1000000\r\n\r\n${"x".repeat(100_000)}`;
    const outcomes = [await postTo(stopsAfter(body), noDeadline)];
    const before = bufferBytes();
    for (let count = 0; count < 30; count++) outcomes.push(await postTo(stopsAfter(body), noDeadline));
    expect(outcomes).toHaveLength(31);
    // Half of what was read, had all of it been kept.
    await eventually(() => expect(bufferBytes() - before).toBeLessThan(15 * limits.maxResponseBytes));
  });
});

const invalid = (detail: string) => ({ errorCode: "invalid_response" as const, detail });

test.each<[string, Misbehavior, Partial<Outcome>]>([
  ["is not HTTP", respondsAndCloses("SSH-2.0-OpenSSH_9.6\r\n"), invalid("Expected HTTP/, RTSP/ or ICE/")],
  ["has no status", respondsAndCloses("HTTP/1.1 OK\r\n\r\n"), invalid("Invalid status code")],
  [
    "has two lengths",
    respondsAndCloses(`${status}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`),
    invalid("Duplicate Content-Length"),
  ],
  ["has an endless header", floods(`${status}x: `, "y".repeat(4_096)), invalid("Header overflow")],
  ["has endless headers", floods(status, `x: ${"y".repeat(1_000)}\r\n`), invalid("Header overflow")],
  ...[100, 102, 103].map((code): [string, Misbehavior, Partial<Outcome>] => [
    `has 101 responses ${code} before its 200`,
    respondsAndCloses(`${`HTTP/1.1 ${code} C\r\n\r\n`.repeat(101)}${status}\r\nok`),
    { errorCode: "invalid_response" },
  ]),
  [
    "has endless 1xx responses",
    floods("", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"),
    { errorCode: "invalid_response" },
  ],
  [
    "has a hundred 1xx responses, and then a length that is none",
    respondsAndCloses(`${"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100)}${shortBody}`),
    { statusCode: 200, errorCode: "connection_reset" },
  ],
  [
    "has an invalid chunk size",
    stopsAfter(`${chunked}zz\r\n`),
    { statusCode: 200, ...invalid("Invalid character in chunk size") },
  ],
  // The receiver keeps the connection open: the client must close it.
  [
    "switches to another protocol",
    stopsAfter("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
    invalid("SWITCHED_PROTOCOL"),
  ],
  [
    "switches to another protocol and continues in it",
    drips("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "x"),
    invalid("SWITCHED_PROTOCOL"),
  ],
  ["is a reset", resetsAfter(""), { errorCode: "connection_reset" }],
  ["is empty", respondsAndCloses(""), { errorCode: "connection_reset" }],
  ["is reset in the middle of the body", resetsAfter(shortBody), { statusCode: 200, errorCode: "connection_reset" }],
  [
    "is cut off in the middle of the body",
    respondsAndCloses(shortBody),
    { statusCode: 200, errorCode: "connection_reset" },
  ],
])("the request fails when the response %s", async (_, misbehave, expected) => {
  const { outcome } = await postTo(misbehave, noDeadline);
  expect(outcome).toEqual({ ...anyDuration, ...expected });
});

test("a request that cannot be sent returns an outcome and does not throw", async () => {
  const client = createReceiverClient(parseCidrs(["127.0.0.0/8"]), limits);
  expect(await client.post("http://127.0.0.1:1/", { "X-Bad": "a\r\nb" }, "{}")).toMatchObject({
    errorCode: expect.any(String),
  });
  await client.close();
  expect(await client.post("http://127.0.0.1:1/", {}, "{}")).toMatchObject({ errorCode: expect.any(String) });
});

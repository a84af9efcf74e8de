import { once } from "node:events";
import net from "node:net";
import { parseCidrs } from "../../../functions/receivers/receiver-address.ts";
import { createReceiverClient, type Limits, type Outcome } from "../../../functions/receivers/receiver-client.ts";

/** Short enough for a test, long enough for a busy machine. */
const limits: Limits = { deadlineMs: 400, maxResponseBytes: 64 * 1024, maxExcerptBytes: 1024 };
const anyDuration = { durationMs: expect.any(Number) };

type Misbehaviour = (socket: net.Socket) => void;

/** Posts to a server that does as it likes with the raw connection once the request has arrived. */
async function postTo(misbehave: Misbehaviour, within = limits): Promise<{ outcome: Outcome; bytesSent: number }> {
  const server = net.createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => misbehave(socket));
  });
  server.listen(0, "127.0.0.1");
  const connected = new Promise<net.Socket>((resolve) => server.once("connection", resolve));
  await once(server, "listening");
  const client = createReceiverClient(parseCidrs(["127.0.0.0/8"]), within);
  const { port } = server.address() as net.AddressInfo;
  const outcome = await client.post(`http://127.0.0.1:${port}/`, {}, "{}");
  const socket = await connected;
  // The client is not closed yet: it is the one request that must not leave its connection behind.
  if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
  server.close();
  await client.close();
  return { outcome, bytesSent: socket.bytesWritten };
}

const says =
  (text: string): Misbehaviour =>
  (socket) =>
    socket.end(text);

/** Says something, and then nothing more. */
const stopsAfter =
  (text: string): Misbehaviour =>
  (socket) =>
    socket.write(text);

/** Writes again and again, as fast as the other side reads, until the connection ends. */
const floods =
  (head: string, chunk: string): Misbehaviour =>
  (socket) => {
    const write = () => {
      while (!socket.destroyed && socket.write(chunk)) {}
    };
    socket.write(head);
    socket.on("drain", write);
    write();
  };

/** Writes a little every 20 ms, without end. */
const drips =
  (head: string, chunk: string): Misbehaviour =>
  (socket) => {
    socket.write(head);
    const timer = setInterval(() => socket.write(chunk), 20);
    socket.once("close", () => clearInterval(timer));
  };

const resetsAfter =
  (text: string): Misbehaviour =>
  (socket) => {
    socket.write(text, () => setTimeout(() => socket.resetAndDestroy(), 20));
  };

const status = "HTTP/1.1 200 OK\r\n";
const chunked = `${status}Transfer-Encoding: chunked\r\n\r\n`;
const shortBody = `${status}Content-Length: 10\r\n\r\nabc`;
const chunkOf = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

describe("a receiver that takes too long ends at the deadline", () => {
  test.each<[string, Misbehaviour, Partial<Outcome>]>([
    ["never answers", stopsAfter(""), { errorCode: "timeout" }],
    ["drips its headers", drips(status, "x: y\r\n"), { errorCode: "timeout" }],
    ["sends interim answers for ever", drips("", "HTTP/1.1 103 Early Hints\r\n\r\n"), { errorCode: "timeout" }],
    ["drips its body", drips(chunked, chunkOf("x")), { statusCode: 200, errorCode: "timeout" }],
    ["sends less than it announced", stopsAfter(shortBody), { statusCode: 200, errorCode: "timeout" }],
    [
      "asks for time and then hangs",
      stopsAfter("HTTP/1.1 503 Busy\r\nRetry-After: 120\r\nContent-Length: 10\r\n\r\nabc"),
      { statusCode: 503, retryAfter: "120", errorCode: "timeout" },
    ],
    [
      "says that it is gone and then hangs",
      stopsAfter("HTTP/1.1 410 Gone\r\nContent-Length: 10\r\n\r\n"),
      { statusCode: 410, errorCode: "timeout" },
    ],
  ])("when it %s", async (_, misbehave, expected) => {
    const { outcome } = await postTo(misbehave);
    expect(outcome).toEqual({ ...anyDuration, ...expected });
    expect(outcome.durationMs).toBeGreaterThanOrEqual(limits.deadlineMs - 5);
    expect(outcome.durationMs).toBeLessThan(limits.deadlineMs + 2_000);
  });
});

// A deadline beyond the test's own: something else has to end these.
const noDeadline = { ...limits, deadlineMs: 60_000 };

describe("a body without end", () => {
  test("is cut at the bound and still a success", async () => {
    const { outcome, bytesSent } = await postTo(floods(chunked, chunkOf("x".repeat(4_096))), noDeadline);
    expect(outcome).toEqual({ ...anyDuration, statusCode: 200, excerpt: "x".repeat(1_024) });
    // What lies in the buffers of the system comes on top of the 64 KB.
    expect(bytesSent).toBeLessThan(20 * 1024 * 1024);
  });

  test("of a failure keeps its status", async () => {
    const head = "HTTP/1.1 500 Oops\r\nConnection: close\r\n\r\n";
    const { outcome } = await postTo(floods(head, "e".repeat(4_096)), noDeadline);
    expect(outcome).toMatchObject({ statusCode: 500, errorCode: "http_status", excerpt: "e".repeat(1_024) });
  });
});

test.each<[string, Misbehaviour, Partial<Outcome>]>([
  ["is not HTTP", says("SSH-2.0-OpenSSH_9.6\r\n"), { errorCode: "invalid_response" }],
  ["has no status", says("HTTP/1.1 OK\r\n\r\n"), { errorCode: "invalid_response" }],
  [
    "has two lengths",
    says(`${status}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`),
    { errorCode: "invalid_response" },
  ],
  ["has a header without end", floods(`${status}x: `, "y".repeat(4_096)), { errorCode: "invalid_response" }],
  ["has headers without end", floods(status, `x: ${"y".repeat(1_000)}\r\n`), { errorCode: "invalid_response" }],
  [
    "is announced without end",
    floods("", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"),
    { errorCode: "invalid_response" },
  ],
  ["has a chunk of no size", stopsAfter(`${chunked}zz\r\n`), { statusCode: 200, errorCode: "invalid_response" }],
  [
    "switches to another protocol",
    says("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
    { errorCode: "connection_reset" },
  ],
  ["is a reset", resetsAfter(""), { errorCode: "connection_reset" }],
  ["ends before it begins", says(""), { errorCode: "connection_reset" }],
  ["is reset in its middle", resetsAfter(shortBody), { statusCode: 200, errorCode: "connection_reset" }],
  ["breaks off in its middle", says(shortBody), { statusCode: 200, errorCode: "connection_reset" }],
])("an answer is a failure when it %s", async (_, misbehave, expected) => {
  const { outcome } = await postTo(misbehave, noDeadline);
  expect(outcome).toEqual({ ...anyDuration, ...expected });
});

test("a request that cannot be made is an outcome too, not an exception", async () => {
  const client = createReceiverClient(parseCidrs(["127.0.0.0/8"]), limits);
  expect(await client.post("http://127.0.0.1:1/", { "X-Bad": "a\r\nb" }, "{}")).toMatchObject({
    errorCode: expect.any(String),
  });
  await client.close();
  expect(await client.post("http://127.0.0.1:1/", {}, "{}")).toMatchObject({ errorCode: expect.any(String) });
});

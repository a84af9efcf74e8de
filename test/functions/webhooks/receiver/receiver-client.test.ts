import { once } from "node:events";
import { readFileSync } from "node:fs";
import type http from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { jest } from "@jest/globals";
import { parseCidrs } from "../../../../functions/webhooks/receiver/receiver-address.ts";
import {
  createReceiverClient,
  DEFAULT_LIMITS,
  type ReceiverClient,
} from "../../../../functions/webhooks/receiver/receiver-client.ts";
import { useReceiver } from "../../../support/receiver.ts";

const receiver = useReceiver("test");
let client: ReceiverClient;
beforeEach(async () => {
  client = createReceiverClient(parseCidrs(["127.0.0.0/8", "::1/128"]));
});
afterEach(async () => {
  await client.close();
});

const post = (url = receiver.url, body = "{}") => client.post(url, {}, body);
const respondWithBody = (bytes: Buffer | string, headers: http.OutgoingHttpHeaders = {}, status = 200) =>
  receiver.respondWith((_, response) => response.writeHead(status, headers).end(bytes));

describe("the request", () => {
  test("is a POST to the path and query of the URL with the given headers and the unchanged body", async () => {
    const body = '{"text":"Gerät 🚀 \u2028 \\ud800"}';
    const headers = {
      "Content-Type": "application/json",
      "User-Agent": "Test/1.0",
      "X-Service-Event": "deploy.failed",
    };
    await client.post(`${receiver.url}/a%20b?x=1&y=%C3%BC#fragment`, headers, body);
    const [request] = receiver.received;
    expect(request).toMatchObject({ method: "POST", path: "/hook/a%20b?x=1&y=%C3%BC", body });
    expect(request?.headers).toEqual({
      host: new URL(receiver.url).host,
      connection: "keep-alive",
      "content-type": "application/json",
      "user-agent": "Test/1.0",
      "x-service-event": "deploy.failed",
      accept: "*/*",
      "accept-encoding": "identity",
      "content-length": String(Buffer.byteLength(body)),
    });
  });

  test("leaves no timer behind", async () => {
    const [set, clear] = [jest.spyOn(globalThis, "setTimeout"), jest.spyOn(globalThis, "clearTimeout")];
    await post();
    const deadlines = set.mock.results.filter((_, index) => Number(set.mock.calls[index]?.[1]) > 1_000);
    expect(deadlines).not.toEqual([]);
    for (const { value } of deadlines) expect(clear).toHaveBeenCalledWith(value);
    jest.restoreAllMocks();
  });

  test("reuses the connection of the previous request", async () => {
    const ports = new Set<number | undefined>();
    receiver.respondWith((_, response) => {
      ports.add(response.socket?.remotePort);
      response.end("ok");
    });
    for (let sent = 0; sent < 3; sent++) await post();
    expect(receiver.received).toHaveLength(3);
    expect(ports.size).toBe(1);
  });

  test("does not wait for other requests to the same receiver", async () => {
    const waiting: http.ServerResponse[] = [];
    receiver.respondWith((_, response) => {
      waiting.push(response);
      if (waiting.length === 3) for (const each of waiting) each.end();
    });
    const outcomes = await Promise.all([post(), post(), post()]);
    expect(outcomes.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200]);
  });
});

describe("the response", () => {
  test.each([200, 201, 202, 204, 299])("%i is a success", async (statusCode) => {
    receiver.respondWith(statusCode);
    expect(await post()).toEqual({ durationMs: expect.any(Number), statusCode });
  });

  test.each([300, 304, 399, 400, 401, 404, 410, 422, 429, 500, 502, 503, 599])(
    "%i is a failure",
    async (statusCode) => {
      receiver.respondWith(statusCode);
      expect(await post()).toEqual({ durationMs: expect.any(Number), statusCode, errorCode: "http_status" });
    },
  );

  test.each([301, 302, 303, 307, 308])("%i is a failure and is not followed", async (statusCode) => {
    receiver.respondWith((_, response) => response.writeHead(statusCode, { Location: `${receiver.url}/next` }).end());
    expect(await post()).toMatchObject({ statusCode, errorCode: "http_status", detail: `${receiver.url}/next` });
    expect(receiver.received.map(({ path }) => path)).toEqual(["/hook"]);
  });

  const longUrl = `https://example.com/${"x".repeat(280)}`;
  test.each<[string, string | undefined, string | undefined]>([
    ["an absolute URL", "https://new.example.com/hook?x=1", "https://new.example.com/hook?x=1"],
    ["another path", "/elsewhere", "/elsewhere"],
    ["a relative path", "next", "/next"],
    ["another host, over plain http", "//new.example.com/hook", undefined],
    ["a private address", "https://10.0.0.1/hook", undefined],
    ["a reserved name", "https://hooks.internal/hook", undefined],
    ["a URL with a password", "https://user:secret@new.example.com/hook", undefined],
    ["nothing", undefined, undefined],
    ["an invalid URL", "http://[", undefined],
    ["another protocol", "javascript:alert(1)", undefined],
    ["a URL of 300 characters", longUrl, longUrl],
    ["a longer one", `${longUrl}x`, undefined],
  ])("of a redirect to %s has the target as detail if it could be registered", async (_, location, target) => {
    receiver.respondWith((_, response) => response.writeHead(302, location ? { Location: location } : {}).end());
    const { detail, errorCode } = await post();
    expect(errorCode).toBe("http_status");
    expect(detail).toBe(target?.startsWith("/") ? new URL(target, receiver.url).href : target);
  });

  test("of a success has no detail, even with a Location header", async () => {
    respondWithBody("created", { Location: "/created/1" }, 201);
    expect(await post()).toEqual({ durationMs: expect.any(Number), statusCode: 201, excerpt: "created" });
  });

  test.each([
    ["one", ["120"], "120"],
    ["the first of two", ["60", "120"], "60"],
  ])("has %s Retry-After in the outcome", async (_, values, retryAfter) => {
    respondWithBody("later", { "Retry-After": values }, 429);
    expect(await post()).toMatchObject({ statusCode: 429, retryAfter, excerpt: "later" });
  });

  test("has a duration that includes the last byte", async () => {
    receiver.respondWith((_, response) => {
      response.write("a");
      setTimeout(() => response.end("b"), 100);
    });
    const { durationMs, excerpt } = await post();
    expect(durationMs).toBeGreaterThanOrEqual(95);
    expect(excerpt).toBe("ab");
  });

  test.each<[string, Buffer | string, string]>([
    ["text", "thanks\n\tüber 🚀", "thanks\n\tüber 🚀"],
    ["control characters, removed", "a\u0000b\u001b[31mc\r\nd\u007f\u0085e", "ab[31mc\nde"],
    ["invisible and direction marks, removed", "a\u202eb\u200bc\ufeffd", "abcd"],
    ["invalid UTF-8, as U+FFFD", Buffer.from([0x61, 0xff, 0xfe, 0x62]), "a\ufffd\ufffdb"],
    ["a long text, cut", "x".repeat(2_000), "x".repeat(1_024)],
    ["a character at the cut, removed", `${"x".repeat(1_023)}ü`, "x".repeat(1_023)],
  ])("has an excerpt of %s", async (_, sent, excerpt) => {
    respondWithBody(sent);
    expect((await post()).excerpt).toBe(excerpt);
  });

  test("has an excerpt of at most 1 KB after replacing invalid bytes", async () => {
    // Each of these bytes is invalid and becomes U+FFFD, three bytes.
    respondWithBody(Buffer.alloc(4_000, 0xff));
    const { excerpt = "" } = await post();
    expect(Buffer.byteLength(excerpt)).toBeLessThanOrEqual(1_024);
    expect(excerpt).toMatch(/^\ufffd{300,}$/);
  });

  test("is never decompressed, even with Content-Encoding: gzip", async () => {
    const bomb = gzipSync(Buffer.alloc(50 * 1024 * 1024, "A"));
    respondWithBody(bomb, { "Content-Encoding": "gzip" });
    const { statusCode, errorCode, excerpt = "" } = await post();
    expect({ statusCode, errorCode }).toEqual({ statusCode: 200 });
    expect(excerpt).not.toContain("AA");
  });
});

describe("a request without a response", () => {
  test("to a port on which nothing listens is connection_refused", async () => {
    const { url } = receiver;
    await receiver.close();
    expect(await post(url)).toEqual({ durationMs: expect.any(Number), errorCode: "connection_refused" });
    expect(await post(url.replace("127.0.0.1", "localhost"))).toMatchObject({ errorCode: "connection_refused" });
  });

  test("to a name that does not resolve is dns_error", async () => {
    expect(await post("https://no-such-host.invalid/")).toMatchObject({ errorCode: "dns_error" });
  });

  test.each(["http://10.0.0.1/", "https://169.254.169.254/latest/meta-data", "http://93.184.215.14/"])(
    "to %s, a blocked address, is address_blocked",
    async (url) => {
      expect(await post(url)).toEqual({ durationMs: expect.any(Number), errorCode: "address_blocked" });
    },
  );

  test.each([25, 6379, 11211])(
    "to port %d of a host that is allowed is address_blocked, without a connection",
    async (port) => {
      for (const host of ["127.0.0.1", "localhost"]) {
        const blocked = { errorCode: "address_blocked", detail: "PORT_BLOCKED" };
        expect(await post(`http://${host}:${port}/`)).toEqual({ durationMs: expect.any(Number), ...blocked });
        expect(await post(`https://${host}:${port}/`)).toMatchObject(blocked);
      }
    },
  );

  test.each(["127.0.0.1", "localhost"])("over TLS to %s with a self-signed certificate is tls_error", async (host) => {
    let requests = 0;
    const fixture = (name: string) => readFileSync(new URL(`../../../fixtures/${name}`, import.meta.url));
    const server = https.createServer({ cert: fixture("tls-cert.pem"), key: fixture("tls-key.pem") }, () => requests++);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const outcome = await post(`https://${host}:${port}/`);
    server.close();
    expect(outcome).toEqual({
      durationMs: expect.any(Number),
      errorCode: "tls_error",
      detail: "DEPTH_ZERO_SELF_SIGNED_CERT",
    });
    expect(requests).toBe(0);
  });

  test("over TLS to a plain http server is tls_error", async () => {
    expect(await post(receiver.url.replace("http:", "https:"))).toMatchObject({
      errorCode: "tls_error",
      detail: "wrong version number",
    });
  });
});

test("the default limits are 15 seconds, 64 KB read and 1 KB kept", () => {
  expect(DEFAULT_LIMITS).toEqual({ deadlineMs: 15_000, maxResponseBytes: 65_536, maxExcerptBytes: 1_024 });
});
